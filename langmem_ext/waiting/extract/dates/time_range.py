"""From when until when: "9 to 10", "between two and half past three", "2-4"."""

from __future__ import annotations

import re
from itertools import islice
from typing import Final, NamedTuple

from langmem_ext.waiting.extract.dates.grammar import MONTH
from langmem_ext.waiting.extract.numbers.numerals import UNITS

_HALF_DAY: Final = 12 * 60
_MOST: Final = 2
"""Ranges of one message that are looked at: of two none is taken."""

_HOURS: Final = "|".join(
    sorted((word for word, value in UNITS.items() if 1 <= value <= 12), key=len, reverse=True)
)


def _clock(end: str) -> str:
    return (
        rf"(?:(?P<past{end}>half|quarter|ten|twenty|five)\s+past\s+|(?P<to{end}>quarter)\s+to\s+)?"
        rf"(?P<hour{end}>\d{{1,2}}|{_HOURS})(?:[:.](?P<minute{end}>[0-5]\d))?"
        rf"(?:\s*(?P<half{end}>[ap])\.?m\b\.?)?"
    )


_RANGE: Final = re.compile(
    rf"(?<![\w.:/$€£-])(?:(?:betwee?n|from)\s+)?{_clock('1')}"
    rf"\s*(?:[-–—]|\b(?:to|till?|until|and)\b)\s*{_clock('2')}(?![\w:/%-]|[.]\d)"
    r"(?!\s+(?:of\b|people|persons?|guests|adults|(?:minute|hour|day|night|week)s?\b)"
    rf"|\s*(?:st|nd|rd|th)?\s*{MONTH.replace('?P<month>', '?:')})",
    re.IGNORECASE,
)
_AND: Final = re.compile(r"\band\b", re.IGNORECASE)
_PAST: Final = {"half": 30, "quarter": 15, "ten": 10, "twenty": 20, "five": 5}


class TimeRange(NamedTuple):
    """Two times of a day in the order in which they are said, each in its readings.

    Attributes:
        begins: The span of the first, and its readings in minutes of the day.
        ends: The same of the second.
    """

    begins: tuple[int, int, tuple[int, ...]]
    ends: tuple[int, int, tuple[int, ...]]


def time_range(text: str) -> TimeRange | None:
    """The one range of hours that a text names; None where it names none, or several.

    Both hours may be in the morning or in the evening where nothing says which; the second lies
    behind the first, at most half a day.
    """
    ranges = [
        read for match in islice(_RANGE.finditer(text), _MOST) if (read := _read(match)) is not None
    ]
    return ranges[0] if len(ranges) == 1 else None


def _read(match: re.Match[str]) -> TimeRange | None:
    if _AND.search(match.group()) and not match.group().lower().startswith(("betwe", "from")):
        return None  # "3 and 4" are two numbers
    first, second = _readings(match, "1"), _readings(match, "2")
    pairs = [(begin, end) for begin in first for end in second if begin < end <= begin + _HALF_DAY]
    if not pairs:
        return None
    return TimeRange(
        (match.start("hour1"), match.end("hour1"), tuple(dict.fromkeys(b for b, _ in pairs))),
        (match.start("hour2"), match.end("hour2"), tuple(dict.fromkeys(e for _, e in pairs))),
    )


def _readings(match: re.Match[str], end: str) -> tuple[int, ...]:
    """The minutes of the day that one end of a range may mean; empty for no time."""
    written = match[f"hour{end}"].lower()
    hour = int(written) if written.isdigit() else UNITS[written]
    minute = int(match[f"minute{end}"] or 0) + _PAST.get((match[f"past{end}"] or "").lower(), 0)
    minute -= 15 if match[f"to{end}"] else 0
    if hour > 24:
        return ()
    if half := match[f"half{end}"]:
        return (60 * (hour % 12 + 12 * (half.lower() == "p")) + minute,)
    if hour > 12 or hour == 0 or written.startswith("0"):
        return (60 * (hour % 24) + minute,)
    return (60 * (hour % 12) + minute, 60 * (hour % 12 + 12) + minute)
