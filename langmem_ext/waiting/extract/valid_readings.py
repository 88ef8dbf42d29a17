"""The choice among readings of the same words: the valid ones, of these those in bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.validity import is_valid, problem_of


def valid_readings(param: Param, candidates: Iterable[Candidate], now: datetime) -> list[Candidate]:
    """The candidates with their valid readings, only those in bounds if there are any.

    A candidate whose every reading is out of bounds is refused, and keeps them.
    """
    readable = []
    for candidate in candidates:
        valid = [
            value for value in (candidate.value, *candidate.alternatives) if is_valid(param, value)
        ]
        if not valid:
            continue
        allowed = [value for value in valid if problem_of(param, value, now=now) is None]
        first, *rest = allowed or valid
        undecided = candidate.undecided and bool(rest) and bool(allowed)
        readable.append(
            replace(
                candidate,
                value=first,
                alternatives=tuple(rest),
                undecided=undecided,
                refused=not allowed,
            )
        )
    return readable
