"""Dates: a grammar of written dates, normalised to ISO 8601 against the message's time."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date as Day

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.dates import days
from langmem_ext.waiting.extract.dates.grammar import BARE_WEEKDAY, MONTH
from langmem_ext.waiting.extract.dates.mentioned import BESIDE, NEXT_TO, apart, dates
from langmem_ext.waiting.extract.dates.past import is_of_past
from langmem_ext.waiting.extract.dates.replacement import (
    in_month_of,
    is_for_limit,
    wished_first,
    without_old,
)
from langmem_ext.waiting.extract.english.roles import DATE_CUES, with_roles
from langmem_ext.waiting.extract.english.tokens import before
from langmem_ext.waiting.extract.english.told import (
    happened_to_others,
    is_told_as_past,
    something_is_on,
)
from langmem_ext.waiting.extract.reply import Reply


def _named(param: Param, reply: Reply) -> list[Candidate]:
    """The dates that a reply names; by the way none on which something happened to others."""
    past = is_of_past(param, reply.prompt)
    named = dates(reply.text, reply.now.date(), past=past)
    named = [day for day in named if not _is_any_such_day(reply.text, day)]
    if past or not reply.strict:
        return named
    if param.future:
        named = [
            day
            for day in named
            if not is_told_as_past(before(reply.text, day.start))
            and not is_for_limit(param, reply.text, day)
        ]
    if param.name in reply.filled:
        named = [day for day in named if not something_is_on(before(reply.text, day.start))]
    return [day for day in named if not happened_to_others(before(reply.text, day.start))]


_ANY = re.compile(r"(?<!\bon )(?<!\bfor )\ba\s+$", re.I)


def _is_any_such_day(text: str, day: Candidate) -> bool:
    """Whether a weekday is spoken of as one of its kind: "oh no, that's a wednesday"."""
    bare = BARE_WEEKDAY.fullmatch(text[day.start : day.end])
    return bare is not None and _ANY.search(before(text, day.start)) is not None


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The dates of a reply, those in this parameter's role first."""
    candidates = _named(param, reply)
    if not candidates and re.fullmatch(r"\W*(?:just|right|as of)? ?now\W*", reply.text, re.I):
        candidates = [Candidate(0, len(reply.text), reply.now.date().isoformat(), 0.8, 0, "today")]
    if not is_birth(param):
        candidates = [day for day in candidates if not _BORN.search(before(reply.text, day.start))]
    elif reply.strict:
        candidates = [
            day
            for day in candidates
            if re.search(r"\d{2}$", reply.text[day.start : day.end])
            or _BIRTH.search(reply.text, 0, day.start)
        ]
    known = str(reply.filled.get(param.name))
    if _MONTH_OF_YEAR.fullmatch(known):
        candidates = _in_said_month(known, reply, candidates)
    candidates = _beside_known(reply.text, known, candidates)
    if is_birth(param):
        if _DAY_OF_YEAR.fullmatch(known):
            candidates = [_in_year_of(day, known, reply.text) for day in candidates]
        if _OF_BIRTH.search(f"{param.name.replace('_', ' ')} {param.description}"):
            today = reply.now.date().isoformat()
            candidates = [day for day in candidates if str(day.value) <= today]
    candidates = without_old(param, reply.text, _in_known_month(param, reply, candidates))
    if param.future:
        candidates = [day for day in candidates if not _SINCE.search(before(reply.text, day.start))]
    candidates = wished_first(param, reply, with_roles(param, reply, candidates, DATE_CUES))
    candidates = [
        day.moved(2) if _NOT_TILL.search(before(reply.text, day.start)) else day
        for day in candidates
    ]
    if not _LAST_OFF.search(f"{param.name.replace('_', ' ')} {param.description}"):
        return candidates
    return [
        replace(day, fit=-1) if _BACK_IN.search(before(reply.text, day.start)) else day
        for day in candidates
    ]


def _beside_known(text: str, known: str, candidates: list[Candidate]) -> list[Candidate]:
    """The dates; where a message names no other, "the day after" is that of the known one."""
    match = NEXT_TO.search(text)
    if match is None or not _DAY_OF_YEAR.fullmatch(known):
        return candidates
    first = Day.fromisoformat(known)
    others = [day for day in candidates if not day.overlaps(*match.span())]
    if any(
        not BARE_WEEKDAY.fullmatch(text[day.start : day.end])
        or Day.fromisoformat(str(day.value)).weekday() != first.weekday()
        for day in others
    ):
        return candidates
    return [Candidate(*match.span(), (first + apart(match)).isoformat(), 0.9, 1, BESIDE)]


def half_said(param: Param, reply: Reply) -> Extraction | None:
    """The month of a reply that says no day: "some time in may"; None where it names no one month.

    What counts of it is the month, as `YYYY-MM`.
    """
    if is_birth(param) or is_of_past(param, reply.prompt) or (reply.strict and not param.future):
        return None
    months = {
        (match["month"] or match["alone"])[:3].lower(): match
        for match in _MONTH_NAMED.finditer(reply.text)
        if not is_told_as_past(before(reply.text, match.start()))
    }
    if len(months) != 1:
        return None
    [(name, match)] = months.items()
    today = reply.now.date()
    number = days.month_number(name)
    year = today.year + (number < today.month)
    if reply.strict and (number - today.month) % 12 > _SOON:
        return None  # who speaks of january in march may mean the last one
    return Extraction(
        "abstained",
        None,
        match.group(),
        match.span(),
        0.9,
        "no day of the month",
        problem=f"I need the day in {days.MONTHS[number - 1].title()}, too",
        half=f"{year}-{number:02}",
    )


_SOON = 8
"""Months ahead of which a message speaks that was not asked for a day, at most."""

_MONTH_NAMED = re.compile(
    rf"\b(?:in|for|of|during|this|next|coming|early|late|mid)[\s-]+{MONTH}"
    r"(?!\s*\d|\s+(?:as|have|not)\b)"
    r"|^\W*(?:(?:sometime|maybe|probably|perhaps|around|about)\s+)*"
    rf"{MONTH.replace('month', 'alone')}\W*$",
    re.I,
)

_MONTH_OF_YEAR = re.compile(r"\d{4}-\d\d")

_NUMBER_ALONE = re.compile(r"\W*(?:(?:on|the|say|maybe)\s+)*(?P<day>\d{1,2})\W*", re.I)


def _in_said_month(known: str, reply: Reply, candidates: list[Candidate]) -> list[Candidate]:
    """The days that a number names, in the month that was said before: "the 10th"."""
    alone = _NUMBER_ALONE.fullmatch(reply.text) if not reply.strict else None
    if alone and (day := days.numbered(f"{known}-01", int(alone["day"]), later=False)):
        return [Candidate(*alone.span("day"), day.isoformat(), 0.9, 0, days.NTH)]
    return [
        replace(candidate, value=day.isoformat())
        if "day of the month" in candidate.reason
        and (day := days.numbered(f"{known}-01", int(str(candidate.value)[-2:]), later=False))
        else candidate
        for candidate in candidates
    ]


_DAY_OF_YEAR = re.compile(r"\d{4}-\d\d-\d\d")


def _in_year_of(birthday: Candidate, known: str, text: str) -> Candidate:
    """A birthday without its year, in the year that is known; without its month, in that month."""
    written = text[birthday.start : birthday.end].rstrip(".")
    if re.search(r"\d{2}$", written) or not re.search(r"\d", written):
        return birthday
    if birthday.reason.endswith("day of the month"):
        number = Day.fromisoformat(str(birthday.value)).day
        value = days.numbered(known, number, later=False) or birthday.value
        return replace(birthday, value=f"{value}", alternatives=())
    return replace(birthday, value=f"{known[:4]}{str(birthday.value)[4:]}", alternatives=())


def _in_known_month(param: Param, reply: Reply, candidates: list[Candidate]) -> list[Candidate]:
    """The days; one of the month alone that takes the place of a known day is in its month."""
    known, today = str(reply.filled.get(param.name)), reply.now.date().isoformat()
    if param.type != ParamType.DATE or known < today or not _DAY_OF_YEAR.fullmatch(known):
        return candidates
    return [in_month_of(day, known, least=today) for day in candidates]


_NOT_TILL = re.compile(
    r"\b(?:did|was|were|is|are)\s?n['’]?t\s+(?:\w+\s+){0,3}(?:till?|until)\s+(?:the\s+)?$", re.I
)
"""Words before the day of what did not happen before it: "didn't move in till the 23rd"."""

_LAST_OFF = re.compile(
    r"\blast (?:day|night|date)\b[^.]*\b(?:off|leave|absen\w+|holidays?|illness)\b", re.I
)

_BACK_IN = re.compile(
    r"\bback\s+(?:in|(?:at|to)\s+(?:work|school|my desk|the office))\b[^,.;!?]{0,20}$", re.I
)
"""Words before the day on which somebody who was away is there again."""

_BIRTH = re.compile(r"birth|born|\bdob\b", re.I)

_OF_BIRTH = re.compile(r"\b(?:birth|birth-?date|born|dob)\b", re.I)
"""Words of a day on which somebody was born; a birthday may be the next one."""

_BORN = re.compile(r"\b(?:born|dob|date of birth)\b\W*(?:(?:on|is|the)\s+)*$", re.I)
"""Words before a day on which somebody was born."""


def is_birth(param: Param) -> bool:
    """Whether a parameter is the day of somebody's birth."""
    return _BIRTH.search(f"{param.name} {param.description}") is not None


_SINCE = re.compile(r"\b(?:since|last)\s+(?:the\s+)?$", re.I)
"""Words before a day that has passed."""
