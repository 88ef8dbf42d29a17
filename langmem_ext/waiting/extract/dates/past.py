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

_NO_WISH: Final = (
    r"(?!(?:want|need|hop|wonder|plann|book|prefer|lik|agre|arrang|suppos|schedul|reserv)ed)"
)
_DONE: Final = (
    rf"(?:{_NO_WISH}[a-z]{{2,}}(?<!e)ed|died|began|broke|bought|came|did|drank|drove|ate|fell|felt|found|gave|lost|left|made"
    r"|paid|put|ran|said|sat|saw|sent|spent|stole|took|tore|went|woke|wrote)"
)
_TOLD: Final = re.compile(
    r"\bsince\s+(?:(?:about|around|at least|last|the|on|like)\s+)*$"
    r"|\b(?:was|were|got)\s+(?!book|schedul|suppos|plann|need)[a-z]+e[dn]\b[^,.;!?]{0,20}$"
    r"|(?<!like )(?<!want )(?<!have )(?<!need )(?<!get )(?<!prefer )"
    r"(?<!can )(?<!could )(?<!will )(?<!would )(?<!may )(?<!shall )"
    rf"\b(?:i|we|he|she|it|they|you|which|who)\s+(?:(?:just|first|only|both|all|\w+ly)\s+)?"
    rf"(?:{_DONE}|(?:was|were)(?!\s+(?:\w+ing|to|due|meant|supposed|booked|scheduled|down"
    r"|for)\b))\b"
    r"(?:(?!\b(?:to|and|but|so|can|could|will|would|please|until|till?|for|by|want|need|if)\b)"
    r"[^,.;!?]){0,60}$"
    r"|\b(?:i|we|he|she|it|they|you)\s+(?:(?:have|['’]?ve|has|just)\s+)?(?:moved|sent|took|brought|drove"
    r"|went|came|flew|switched)\s[^,.;!?]{0,40}$"
    r"|\b(?:happened|occurred|began|broke)\b[^,.;!?]{0,20}$",
    re.I,
)
"""Words before a date that tell what has happened: "we bought it on monday"."""

_OTHERS_DID: Final = re.compile(
    r"(?:\b(?:my|our|his|her|their|the)\s+(?:\w+\s+)?\w+|\bnew one)\s+"
    rf"(?:{_DONE}|was|were)\s+(?:on\s+|last\s+)?$"
    r"|\b(?:he|she|they)(?:['’]?s|['’]?re|\s+is|\s+are|\s+turns?|\s+will be)\s+(?:turning\s+)?"
    r"\d{1,2}\s+(?:on|this|next)\s+$"
    r"|\b(?:my|our|his|her|their|the)\s+\w+\s+(?:is|are|['’]s|['’]re)\s+(?:\w+\s+){0,2}"
    r"(?:till?|until)\s+$",
    re.I,
)
"""Words before a day on which something happened to somebody or something else."""

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


def is_told_as_past(lead: str) -> bool:
    """Whether the words before a date put it into the past."""
    return _TOLD.search(lead) is not None or happened_to_others(lead)


def happened_to_others(lead: str) -> bool:
    """Whether the words before a date tell what was done by others: "my gran died on"."""
    return _OTHERS_DID.search(lead) is not None


_THEY_DID: Final = re.compile(
    rf"\b(?:he|she|they)\s+(?:\w+ly\s+)?(?:{_DONE}|was|were)\b[^.,;!?]*$"
    r"|\b(?:i|we)(?:['’]?ve|\s+have)\s+been\s+(?:\w+ing|together|married)\b[^.,;!?]*$",
    re.I,
)
"""What others did, or what the user has been doing, for a length of time."""


def done_by_others(lead: str) -> bool:
    """Whether the words before a length of time tell what others did: "he drank here for"."""
    return _THEY_DID.search(lead) is not None


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
