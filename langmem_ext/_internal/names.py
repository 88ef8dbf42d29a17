"""Names for people: in words, and the known name nearest to an unknown one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher, get_close_matches

LISTED = 12
"""How many known names a message lists before it says how many more there are."""

LONGEST = 200
"""How many characters of an unknown name are compared: it may be anything, and names are short."""

AS_PART = 0.9
"""The likeness of two names if one is a part of the other; equal names have 1."""


def in_words(name: str) -> str:
    """The name as a user would say it: `order_id` and `orderId` become `order id`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return re.sub(r"[\W_]+", " ", spaced).strip().lower()


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`; None if none is like it."""
    matches = get_close_matches(name[:LONGEST], list(known), n=1)
    return matches[0] if matches else None


def closest(name: str, known: Iterable[str]) -> str:
    """The known name most similar to `name`; parts of a name count.

    `known` must not be empty.
    """
    short = name[:LONGEST]
    return max(known, key=lambda other: _likeness(short, other))


def _likeness(name: str, other: str) -> float:
    matcher = SequenceMatcher(None, name, other, autojunk=False)
    shared = sum(block.size for block in matcher.get_matching_blocks())
    return max(matcher.ratio(), AS_PART * shared / max(min(len(name), len(other)), 1))


def instead_of(name: str, known: Iterable[str]) -> str:
    """What to write instead of the unknown `name`, to end a message: the nearest name, or all."""
    names = tuple(known)
    if near := nearest(name, names):
        return f"did you mean {near!r}?"
    if not names:
        return "none are declared"
    listed = ", ".join(names[:LISTED])
    return f"known: {listed}" + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
