"""Which of its days a date means that has no year, or no month, where it may lie in the past."""

from __future__ import annotations

import re
from datetime import date as Day
from datetime import timedelta
from typing import Final

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.dates import days

_PAST: Final = re.compile(
    r"\b(?:did (?!you (?:want|have|need|plan|wish|like|prefer|mean|say|think))|(?:has|have)"
    r" (?:it|you|they|he|she) \w+ed|happened|occurred|noticed|spent|since|started|began"
    r"|when (?:was|were)|(?:which|what) day (?:was|were)|injur(?:y|ed)|fell|fall"
    r"|(?:was|were) (?:it|the \w+|you|he|she|they)"
    r" \w+(?:ed|en|st|ght)|(?:it|they|he|she|\w+ (?:was|were)) (?!need|want)"
    r"(?:began|broke|\w+ed)\b"
    r"|born|birth(?:day|date)?|dob|previous(?:ly)?"
    r"|the past|\(past\)|last"
    r" (?!day|date|night|name|for\b|\d)\w+|damage|accident|incident|crash|theft|loss"
    r"|purchased?|bought|lost|lose|stolen|missing|broke\w*)",
    re.I,
)
"""Words by which a question or a description speaks of what has happened."""

_NEAR: Final = timedelta(days=31)
"""How far back a date without a year may lie that nothing puts into the past: of "1 march", three
days after it, nobody means the next year's."""


def is_of_past(param: Param, prompt: str) -> bool:
    """Whether the parameter or the question speaks of what has happened."""
    return (
        not param.future
        and _PAST.search(
            f"{param.name.replace('_', ' ')}. {param.description}. {prompt or param.prompt}"
        )
        is not None
    )


def nearest(maker: days.Maker, match: re.Match[str], day: Day, today: Day) -> Day:
    """The day itself, or the one of the year before where that has only just passed."""
    if maker not in (days.explicit, days.numeric) or match["year"]:
        return day
    passed = days.safe(day.year - 1, day.month, day.day)
    return passed if passed and passed < today and today - passed <= _NEAR else day


def latest(maker: days.Maker, match: re.Match[str], day: Day, today: Day) -> Day:
    """The latest reading of a date that is not in the future; the day itself if all are."""
    if day <= today:
        return day
    if maker in (days.weekday, days.short_weekday):
        ahead = re.search(r"\b(?:next|following|coming)\b", match.group(), re.I)
        return day if ahead else day - timedelta(days=7 * -(-(day - today).days // 7))
    if maker is days.feast:
        starts = (Day(today.year - back, 1, 1) for back in range(2))
        return next((held for at in starts if (held := maker(match, at)) and held <= today), day)
    if maker is days.nth:
        months = (today.year * 12 + today.month - 1 - back for back in range(3))
        return next(
            (
                reading
                for at in months
                if (reading := days.safe(at // 12, at % 12 + 1, day.day)) and reading <= today
            ),
            day,
        )
    if maker in (days.explicit, days.numeric):
        years = (
            range(today.year, today.year - 5, -1)
            if not match["year"]
            else (day.year - 100,)
            if len(match["year"]) == 2
            else ()
        )
        return next(
            (
                reading
                for year in years
                if (reading := days.safe(year, day.month, day.day)) and reading <= today
            ),
            day,
        )
    return day
