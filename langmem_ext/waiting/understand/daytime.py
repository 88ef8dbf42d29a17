"""An hour that may be in the morning or in the evening, where what the request is about decides it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from langmem_ext.waiting.extract.dates.daypart import day_parts

_EVENING: Final = re.compile(
    r"\b(?:table|restaurants?|dinner|dine|dining|bar|pub|club|concert|show|cinema|movies?|films?|theatre|theater|"
    r"opera|party|gig|nightlife)\b",
    re.IGNORECASE,
)
"""Words of requests that are for the evening."""

_MORNING_FROM: Final = 8
_OPEN_HOUR: Final = 7
"""Whoever says eight of a day's business means the morning, whoever says three the afternoon; seven may be both."""


def likely(choices: Sequence[JsonValue], about: str) -> JsonValue:
    """The reading that a request makes likely; None where the user must be asked.

    Args:
        choices: Two times, twelve hours apart.
        about: What the request and the parameter say of themselves.
    """
    early, late = sorted(str(choice) for choice in choices)
    hour = int(early[-5:-3])
    if _EVENING.search(about):
        return late
    if hour == _OPEN_HOUR:
        return None
    return early if hour >= _MORNING_FROM else late


_FIRST: Final = re.compile(r"\b(?:first|earl(?:y|ier)|former)\b", re.IGNORECASE)
_LAST: Final = re.compile(r"\b(?:second|late|later|latter|last)\b", re.IGNORECASE)


def chosen(text: str, choices: Sequence[JsonValue]) -> JsonValue:
    """Which of two readings an answer means: "in the evening", "the second", "am"; None if neither."""
    early, late = sorted(str(choice) for choice in choices)
    for value in (early, late):
        minute = int(value[-5:-3]) * 60 + int(value[-2:])
        if any(part.holds(minute) for part in day_parts(f" 0{text}" if re.match(r"\s*[ap]\.?m", text, re.IGNORECASE) else text)):
            return value
    return early if _FIRST.search(text) else late if _LAST.search(text) else None
