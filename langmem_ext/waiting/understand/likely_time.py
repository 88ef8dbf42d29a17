"""Which of two hours or days a message means, judged by the rest of the conversation."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Final

from pydantic import JsonValue

from langmem_ext.waiting.extract.dates.daypart import day_parts

_EVENING: Final = re.compile(
    r"\b(?:table|restaurants?|dinner|dine|dining|bar|pub|club|concert|show|cinema|movies?|films?"
    r"|theatre|theater|"
    r"opera|party|gig|nightlife)\b",
    re.IGNORECASE,
)
"""Words of requests that are for the evening."""

_MORNING_FROM: Final = 8
_HALF_A_DAY: Final = 12 * 60
_OPEN_HOURS: Final = (6, 7)
"""Whoever says eight of a day's business means the morning, whoever says three the afternoon; six
and seven may be both."""


def likely(choices: Sequence[JsonValue], about: str) -> JsonValue:
    """The reading that a request makes likely; None where the user must be asked.

    Args:
        choices: Two times, twelve hours apart; of others none is likely.
        about: What the request and the parameter say of themselves.
    """
    if not _are_halves(choices):
        return None
    early, late = sorted(str(choice) for choice in choices)
    hour = int(early[-5:-3])
    if _EVENING.search(about):
        return late
    if hour in _OPEN_HOURS:
        return None
    return early if hour >= _MORNING_FROM else late


def _are_halves(choices: Sequence[JsonValue]) -> bool:
    """Whether they are the two halves of a day that one hour may mean."""
    times = [str(choice) for choice in choices]
    return (
        len({time[:-5] for time in times}) == 1
        and len(times) == 2
        and all(re.search(r"\d\d:\d\d$", time) for time in times)
        and abs(minutes_of(times[0]) - minutes_of(times[1])) == _HALF_A_DAY
    )


def nearest(choices: Sequence[JsonValue], value: JsonValue) -> JsonValue:
    """The reading nearest to a known time: seven in the evening, moved to eight, stays evening."""
    return min(choices, key=lambda choice: abs(minutes_of(choice) - minutes_of(value)))


def minutes_of(time: JsonValue) -> int:
    """The minutes of the day of a time or a moment, as it is stored."""
    text = str(time)
    return int(text[-5:-3]) * 60 + int(text[-2:])


_FIRST: Final = re.compile(r"\b(?:first|earl(?:y|ier)|former)\b", re.IGNORECASE)
_LAST: Final = re.compile(r"\b(?:second|late|later|latter|last)\b", re.IGNORECASE)


def chosen(text: str, choices: Sequence[JsonValue]) -> JsonValue:
    """Which of two readings an answer means: "in the evening", "the second"; None if neither."""
    if not _are_halves(choices):
        places = ((_FIRST, choices[0]), (_LAST, choices[-1]))
        return next((reading for place, reading in places if place.search(text)), None)
    early, late = sorted(str(choice) for choice in choices)
    for value in (early, late):
        if any(
            part.holds(minutes_of(value))
            for part in day_parts(
                f" 0{text}" if re.match(r"\s*[ap]\.?m", text, re.IGNORECASE) else text
            )
        ):
            return value
    return early if _FIRST.search(text) else late if _LAST.search(text) else None


_WEEKDAY: Final = re.compile(r"\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\b", re.IGNORECASE)
_MONTH: Final = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\b|\d[/.-]\d", re.IGNORECASE
)


def after(begin: str, end: str, text: str) -> str:
    """The day of an end named by weekday or number alone, not before the beginning.

    "The 20th, till monday" ends on the 23rd.
    """
    first, last = date.fromisoformat(begin[:10]), date.fromisoformat(end[:10])
    if last >= first or _MONTH.search(text):
        return end
    if _WEEKDAY.search(text):
        return (last + timedelta(weeks=-(-(first - last).days // 7))).isoformat()
    while last < first:
        month = last.replace(day=1) + timedelta(days=32)
        try:
            last = month.replace(day=last.day)
        except ValueError:
            return end
    return last.isoformat()
