"""Names as people read them: in words, and the nearest known one for a name that is not known."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rapidfuzz import fuzz, process

LISTED = 12
"""How many known names a message lists before it says how many more there are."""


def in_words(name: str) -> str:
    """The name as a user would say it: `order_id` and `orderId` become `order id`."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return re.sub(r"[\W_]+", " ", spaced).strip().lower()


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`; None when none is like it."""
    found = process.extractOne(name, tuple(known), scorer=fuzz.ratio, score_cutoff=60)
    return found[0] if found else None


def closest(name: str, known: Iterable[str]) -> str:
    """The known name that is most like `name`, however little that is; to be a part of it counts. There must be one."""
    return str(process.extractOne(name, tuple(known), scorer=fuzz.WRatio)[0])


def instead_of(name: str, known: Iterable[str]) -> str:
    """What to write instead of the unknown `name`, as the end of a message: the nearest known name, or all of them."""
    names = tuple(known)
    if near := nearest(name, names):
        return f"did you mean {near!r}?"
    if not names:
        return "none is declared"
    listed = ", ".join(names[:LISTED])
    return f"known: {listed}" + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
