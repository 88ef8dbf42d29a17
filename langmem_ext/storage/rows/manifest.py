"""Fragmented lists of messages: the beginning of a long manifest is a row that checkpoints share.

A list that only grows is one run. Where many tasks answer at once, their messages are stored in the
order in which they finish and listed in another, and the list is as many runs as it has messages. A
checkpoint then names a row that holds the first of them, and holds the rest.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Final

from langmem_ext.messages.manifest import Runs, checked
from langmem_ext.messages.packed import pack, unpack

MAX_RUNS: Final = 64
"""The maximum number of runs in a checkpoint itself."""


def plan_row(known: Runs, runs: Runs) -> Runs:
    """The runs to be stored in a row: those of a known row if it still fits, or else more.

    It fits if it is the beginning and not too many runs follow.
    """
    if known and runs[: len(known)] == known and len(runs) - len(known) <= 2 * MAX_RUNS:
        return known
    # Not the last one: it may still grow.
    return runs[:-2] if len(runs) > 2 * MAX_RUNS else ()


def encode_runs(runs: Runs) -> bytes:
    """Runs as the differences between their numbers, which are small."""
    return pack([number - before for before, number in zip((0, *runs), runs, strict=False)])


def decode_runs(body: bytes) -> Runs:
    """The runs that `encode_runs` encoded.

    Raises:
        ValueError: The bytes are invalid (also `TypeError`; the caller names the row).
    """
    differences = unpack(body)
    if not isinstance(differences, list) or not all(type(number) is int for number in differences):
        raise ValueError("it has no runs of messages")
    return checked(tuple(accumulate(differences)))
