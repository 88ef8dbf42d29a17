"""Lengths of time, in the unit that a parameter counts in: "an hour and a half" is 1.5 hours and 90 minutes."""

from __future__ import annotations

import re

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.english.vocabulary import split_name
from langmem_ext.waiting.extract.numbers.numerals import WORDS, words_value

_NUMBER = rf"(?:\d{{1,4}}(?:[.,]\d{{1,2}})?|an?\s+couple\s+of|a\s+few|an?|{WORDS})"
_HOURS = r"(?:hours?|hrs?|(?:(?<=\d)|(?<=\d\s))h)(?![^\W_])"
_MINUTES = r"(?:minutes?|mins?)\b"
_FRACTION = r"(?:half|(?:a\s+)?quarter|three\s+quarters)"
_LENGTH = re.compile(
    rf"\b(?:(?P<part>{_FRACTION})\s+(?:of\s+)?an?\s+hour\b"
    rf"|(?:(?P<hours>{_NUMBER})(?:\s+and\s+(?:an?\s+)?(?P<more>half|quarter))?[\s-]*)?(?<![\w.,]){_HOURS}\s+and\s+(?:an?\s+)?(?P<half>half|quarter)\b"
    rf"|(?P<hours2>{_NUMBER})(?:\s+and\s+(?:an?\s+)?(?P<more2>half|quarter))?[\s-]*{_HOURS}(?:\s*(?:and|,)?\s*(?P<minutes>{_NUMBER})[\s-]*{_MINUTES})?"
    rf"|(?P<h>\d{{1,2}})h(?P<m>\d{{2}})\b"
    rf"|(?P<minutes2>{_NUMBER})[\s-]*{_MINUTES})",
    re.I,
)
_UNITS = {"hour": 60, "hours": 60, "hrs": 60, "minute": 1, "minutes": 1, "mins": 1}


def unit_of(param: Param, prompt: str = "") -> int | None:
    """How many minutes the unit has that the parameter counts in; None where it counts neither hours nor minutes."""
    for words in (split_name(param.name), re.findall(r"[a-z]+", param.description.lower()), re.findall(r"[a-z]+", prompt.lower())):
        found = {_UNITS[word] for word in words if word in _UNITS}
        if found:
            return found.pop() if len(found) == 1 else None
    return None


def _number(written: str | None) -> float | None:
    if written is None:
        return 0.0
    low = written.lower().replace(",", ".")
    if low[0].isdigit():
        return float(low)
    if low in ("a", "an"):
        return 1.0
    return 2.0 if "couple" in low else None if "few" in low else words_value(low)


def _share(written: str | None) -> float:
    return 0.0 if written is None else 0.75 if "three" in written.lower() else 0.5 if written.lower() == "half" else 0.25


def _minutes(match: re.Match[str]) -> float | None:
    """The length that a match names."""
    if match["part"]:
        return 60 * _share(match["part"])
    if match["h"]:
        return 60 * int(match["h"]) + int(match["m"])
    if match["minutes2"]:
        return _number(match["minutes2"])
    hours = 1.0 if match["half"] and not match["hours"] else _number(match["hours"] or match["hours2"])
    minutes = _number(match["minutes"])
    shares = _share(match["half"]) + _share(match["more"]) + _share(match["more2"])
    return None if hours is None or minutes is None else 60 * (hours + shares) + minutes


def durations(param: Param, text: str, prompt: str = "") -> list[Candidate]:
    """The lengths of time of `text`, in the parameter's unit; none where it counts something else."""
    unit = unit_of(param, prompt)
    if unit is None:
        return []
    found = []
    for match in _LENGTH.finditer(text):
        minutes = _minutes(match)
        if minutes is not None:
            value = round(minutes / unit, 4)
            found.append(
                Candidate(match.start(), match.end(), int(value) if value.is_integer() else value, 0.95, 3, "length of time in its unit")
            )
    return found
