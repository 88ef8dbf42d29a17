"""Numbers that are part of an address, a telephone number or an age: they count nothing."""

from __future__ import annotations

import re

from langmem_ext.waiting.extract.names.address import addresses
from langmem_ext.waiting.extract.reading_cache import remembered

AGE = re.compile(
    r"\b(?P<age>\d{1,3}|\w+)[\s-]*(?:years?|yrs?|months?|weeks?)[\s-]*olds?\b|\b(?:aged"
    r"|age)\s+(?P<aged>\d{1,3})\b",
    re.I,
)
"""A number of years, which counts nobody: "my 7 year old"."""
_STREET = re.compile(
    r"\d+[A-Za-z]?,?\s+(?:[A-Z]|.*\b(?:street|st|avenue|ave|road|rd|lane|drive|boulevard|blvd)\b)"
)
_DIALLED = re.compile(
    r"(?<![\w.,$€£])(?:\+\d{1,3}[\s.-]?)?\(?\d{2,5}\)?(?:[\s.-]\d{3,7}){1,3}(?![\w,])"
)
_AT = re.compile(
    r"\b(?:at|by|before|after|until|till)\s+(?!least|most)(?P<hour>\d{1,2}|[a-z]{3,6})(?![\w.,:]?\d"
    r"|\s*%)",
    re.I,
)


@remembered
def owned(text: str, *, ages: bool = True) -> list[tuple[int, int]]:
    """The spans of numbers that belong to something else.

    Args:
        text: The message.
        ages: Whether ages count as something else.
    """
    if not re.search(r"\d|\bat\b|\bold\b", text):
        return []
    spans = [
        (street.start, street.end)
        for street in addresses(text)
        if street.confidence > 0.8 and _STREET.search(text[street.start : street.end])
    ]
    spans += [match.span() for match in _DIALLED.finditer(text) if _is_dialled(match.group())]
    spans += [match.span("hour") for match in _AT.finditer(text)]
    return spans + ([match.span() for match in AGE.finditer(text)] if ages else [])


def _is_dialled(written: str) -> bool:
    """Whether groups of digits are a telephone number; a decimal number is not."""
    return sum(map(str.isdigit, written)) >= 7 and re.fullmatch(r"\d+\.\d+", written) is None
