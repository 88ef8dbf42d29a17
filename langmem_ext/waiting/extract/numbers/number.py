"""Numbers that need not be whole."""

from __future__ import annotations

import re
from dataclasses import replace

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.numbers.integer import counts
from langmem_ext.waiting.extract.reply import Reply

_POINT = re.compile(r"\s+point\s+(\d+)\b", re.I)


def _fraction(text: str, candidate: Candidate) -> Candidate:
    point = _POINT.match(text, candidate.end)
    if point and isinstance(candidate.value, int):
        return replace(
            candidate, end=point.end(), value=float(f"{candidate.value}.{point[1][:12]}")
        )
    return candidate


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The numbers of a reply, with fractions; without a question, only of the parameter's noun."""
    numbers = [_fraction(reply.text, candidate) for candidate in counts(param, reply)]
    return [candidate for candidate in numbers if candidate.fit >= 3] if reply.strict else numbers
