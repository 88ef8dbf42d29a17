"""The dates that a text names, each completed by the others: "not friday, the day after"."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date as Day
from datetime import timedelta

from langmem_ext.waiting.extract.candidate import Candidate, is_impossible, longest, turned_down
from langmem_ext.waiting.extract.dates import days
from langmem_ext.waiting.extract.dates.grammar import (
    BARE_WEEKDAY,
    GRAMMAR,
    HINT,
    LONG_WEEKDAY,
    MONTH,
    UNTIL,
)
from langmem_ext.waiting.extract.dates.past import (
    latest,
    nearest,
)
from langmem_ext.waiting.extract.dates.spelling import Spelled
from langmem_ext.waiting.extract.english.tokens import before
from langmem_ext.waiting.extract.english.told import is_day_of_others, is_told_as_past
from langmem_ext.waiting.extract.numbers.numerals import WORDS
from langmem_ext.waiting.extract.reading_cache import remembered

_SHIFT = re.compile(
    rf"(?P<lead>\b(?:\w+\s+)?(?:for|within)\s+)?\b(?P<count>\d{{1,3}}|an?|{WORDS})?\s*\b"
    r"(?:(?P<unit>days?|weeks?|fortnights?)\s+(?P<side>after|before)|(?P<weeks>weeks?"
    r"|fortnights?)(?:\s+(?:from|on))?)\s+(?:the\s+)?$",
    re.I,
)

_DAY_AND_MONTH = re.compile(
    rf"(?:[a-z]{{3,6}}day\s+(?:the\s+)?)?(?:\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?{MONTH}"
    rf"|{MONTH.replace('<month>', '<first>')}\s+(?:the\s+)?\d{{1,2}}(?!\d))",
    re.I,
)

_BOOKED = re.compile(
    r"(?:table|booking|reservation|appointment|meeting|it|that|schedule|scheduled|book|reserve"
    r"|set)\s+for\s+$",
    re.I,
)


def _shifted(text: str, start: int, day: Day) -> tuple[int, Day]:
    """The day that is counted from another: "a week from Saturday", "two days before Christmas".

    A length of time that begins there ("4 days from the 1st", "for a week from Friday") moves
    nothing.
    """
    match = _SHIFT.search(text, max(0, start - 60), start)
    if not match or (match["lead"] and not _BOOKED.match(match["lead"])):
        return start, day
    if match["weeks"] and _DAY_AND_MONTH.match(text, start):
        return start, day  # "3 weeks from 31 March" lasts three weeks
    count = days.count(match["count"] or "a")
    if (
        count is None
        or count > 1_000
        or not (
            match["count"]
            or re.search(r"\b(?:from|after|before)\s+(?:the\s+)?$", match[0], re.I)
            or not text[: match.start()].strip()
        )
    ):
        return start, day
    unit = (match["unit"] or match["weeks"]).lower()
    apart = timedelta(
        days=count * (14 if unit.startswith("f") else 7 if unit.startswith("w") else 1)
    )
    begin = (
        match.start("count")
        if match["count"]
        else match.start("unit" if match["unit"] else "weeks")
    )
    return begin, day - apart if (match["side"] or "").lower() == "before" else day + apart


_MOST = 16
"""Dates of one message that are looked at."""


@remembered
def dates(text: str, today: Day, *, past: bool = False) -> list[Candidate]:
    """Every date that `text` names, in order, including misspelt names.

    Days that do not exist are left out.

    Args:
        text: The message.
        today: What relative days count from.
        past: Whether a date that may be past or to come is the past one.
    """
    spelled = Spelled(text)
    if not HINT.search(spelled.text):
        return []
    candidates: list[Candidate] = []
    for pattern, maker, confidence, reason in GRAMMAR:
        for _, match in zip(range(_MOST), pattern.finditer(spelled.text), strict=False):
            candidate = _candidate(spelled, maker, match, today, past=past)
            if candidate:
                candidates.append(replace(candidate, confidence=confidence, reason=reason))
    candidates = longest(candidates)[:_MOST]
    candidates = longest([*candidates, *_range_ends(text, candidates)])
    return _completed(text, today, candidates)


NEXT_TO = re.compile(
    r"\bthe\s+(?P<unit>day|week)\s+(?P<side>after|before)(?:\s+that)?(?=\s*(?:$|[.,;!?)]|(?:at"
    r"|please|instead|then|works?|is|would)\b))",
    re.I,
)

BESIDE = "day next to another"


def apart(match: re.Match[str]) -> timedelta:
    """How far "the week before" is from the day that it stands beside."""
    days_apart = 7 if match["unit"].lower() == "week" else 1
    return timedelta(days=-days_apart if match["side"].lower() == "before" else days_apart)


_SO = re.compile(r"\bso\b", re.I)
"""Words between a day and what follows from it: "back on the 10th, so the day after"."""

_NEXT_WEEK = re.compile(r"(?P<after>\bweek after )?\bnext(?(after)\b| week(?:end)?\b)", re.I)


def _completed(text: str, today: Day, candidates: list[Candidate]) -> list[Candidate]:
    """The dates, each completed by the others: "the 21st, that's a saturday"."""
    completed = _in_months(text, _of_one_week(text, candidates, today), today)
    for match in NEXT_TO.finditer(text) if completed else ():
        first = _last_before(completed, match.start())
        if (
            first
            and not _is_theirs(text, first, match.start())
            and not any(other.overlaps(*match.span()) for other in completed)
        ):
            day = Day.fromisoformat(str(first.value)) + apart(match)
            completed.append(Candidate(*match.span(), day.isoformat(), 0.9, 1, BESIDE))
            completed.sort(key=lambda day: day.start)
    for match in _DAY_AFTER.finditer(text) if completed else ():
        first = _last_before(completed, match.start())
        if first is not None:
            weekday = next((day for day in completed if day.overlaps(*match.span("day"))), None)
            if weekday is None:
                continue
            moved = _first_after(first, weekday)
            completed = [one for one in completed if one is not weekday]
            taken = turned_down(text, first.start, first.end)
            taken = taken or is_impossible(text, first.start, first.end)
            completed.append(Candidate(*match.span(), moved, 0.9, int(taken), BESIDE))
            completed.sort(key=lambda day: day.start)
    for match in _THAT_DAY.finditer(text) if completed else ():
        first = _last_before(completed, match.start())
        if first and not any(other.overlaps(*match.span()) for other in completed):
            completed.append(Candidate(*match.span(), first.value, 0.9, 0, "the day said before"))
    return sorted(completed, key=lambda candidate: candidate.start)


def _of_one_week(text: str, candidates: list[Candidate], today: Day) -> list[Candidate]:
    """The dates; a bare weekday is the one that is said more closely elsewhere."""
    closer: dict[int, Candidate] = {}
    numbered = {
        Day.fromisoformat(str(day.value)).weekday(): day
        for day in reversed(candidates)
        if re.fullmatch(r"\D*\d{1,2}(?!\d)\D*", text[day.start : day.end])
    }
    resolved: list[Candidate] = []
    for day in candidates:
        weekday = Day.fromisoformat(str(day.value)).weekday()
        if BARE_WEEKDAY.fullmatch(text[day.start : day.end]):
            same = numbered.get(weekday)
            known = closer.get(weekday)
            if known is None and same and _is_same(text, day, same):
                known = same
            value = known.value if known else _in_next_week(text, day, weekday, today)
            day = replace(day, value=value)
        resolved.append(day)
        if "weekday" in day.reason:
            closer.setdefault(weekday, day)
    return resolved


def _in_next_week(text: str, day: Candidate, weekday: int, today: Day) -> str:
    """The day's value; in the week that the text names apart from it: "next week, tuesday"."""
    week = _NEXT_WEEK.search(text)
    if week is None or day.overlaps(*week.span()):
        return str(day.value)
    monday = today - timedelta(days=today.weekday())
    return (monday + timedelta(days=(14 if week["after"] else 7) + weekday)).isoformat()


def _is_theirs(text: str, first: Candidate, start: int) -> bool:
    """Whether something else is on the day next to a date: "the 20th, we're away the week before".

    Args:
        text: The message.
        first: The date.
        start: Where "the week before" begins.
    """
    lead = before(text, start)
    follows = _SO.search(text, first.end, start) or turned_down(text, first.start, first.end)
    return is_day_of_others(lead) and not follows


_DAY_AFTER = re.compile(
    rf"\b(?:the|on) (?P<day>{LONG_WEEKDAY}) (?:after|following)(?:\s+that)?\b"
    r"(?!\s+(?:the|my|our|next|easter|\d))",
    re.I,
)
"""The first of its kind behind a day: "thursday the 12th, back the monday after"."""


def _first_after(first: Candidate, weekday: Candidate) -> str:
    """The first day of a weekday behind another day."""
    day = Day.fromisoformat(str(first.value))
    apart = (Day.fromisoformat(str(weekday.value)) - day).days % 7 or 7
    return (day + timedelta(days=apart)).isoformat()


def _last_before(candidates: list[Candidate], start: int) -> Candidate | None:
    return next((other for other in reversed(candidates) if other.end <= start), None)


_THAT_DAY = re.compile(r"\bthat (?:same )?(?:morning|afternoon|evening|night)\b", re.I)
"""The day of the date before it: "the 14th, and dinner that evening"."""

_MONTH = re.compile(MONTH, re.I)

_END = re.compile(
    r"\s*(?:[-–—]|\b(?:to|till?|until|through|thru)\b)\s*(?:the\s+)?(?P<day>\d{1,2})"
    r"(?:st|nd|rd|th)?(?=\s*(?:$|[,.;!?)](?!\d)|(?:please|pls|for|if|off|inclusive)\b))",
    re.I,
)
"""The end of a range whose beginning names the month: "march 16-20"."""


def _range_ends(text: str, candidates: list[Candidate]) -> list[Candidate]:
    """The ends of ranges that the grammar does not see as days."""
    return [
        Candidate(*match.span("day"), end.isoformat(), 0.9, 0, days.NTH)
        for first in candidates
        if _MONTH.search(text, first.start, first.end)
        and (match := _END.match(text, first.end))
        and (end := days.numbered(first.value, int(match["day"])))
    ]


_BOTH_ENDS = re.compile(rf"\s*{UNTIL}\s*(?:the\s+)?", re.I)

_LATER = re.compile(
    r"[-–—]|\b(?:to|till?|until|through|thru|back|return\w*|leav\w+|end\w*)\b", re.I
)
"""Words between two days of which the second ends what the first begins."""

_OTHER = re.compile(r"\b(?:not?|sorry|actually|instead|rather|or|wait|mean|meant)\b", re.I)
"""Words between two days that make them two readings of one."""


def _in_months(text: str, candidates: list[Candidate], today: Day) -> list[Candidate]:
    """The days of the month, each in the month that another day of the message names.

    "From 12 may till the 20th", "the 28th to 3 april".
    """
    resolved: list[Candidate] = []
    for at, day in enumerate(candidates):
        moved = None
        if day.reason == days.NTH:
            number = Day.fromisoformat(str(day.value)).day
            first = next(
                (earlier for earlier in reversed(resolved) if _has_month(text, earlier, today)),
                None,
            )
            last = candidates[at + 1] if at + 1 < len(candidates) else None
            named = _MONTH_SAID.search(text, 0, day.start)
            if (
                first is None
                and named
                and not re.search(r"[.!?\n]\s", text[named.end() : day.start])
            ):
                moved = _in_named_month(named["month"], number, today)
            elif first:
                between = (first.end, day.start)
                later = _LATER.search(text, *between) and not _OTHER.search(text, *between)
                moved = days.numbered(first.value, number, later=bool(later))
            elif (
                last
                and _has_month(text, last, today)
                and _BOTH_ENDS.fullmatch(text, day.end, last.start)
                and number <= Day.fromisoformat(str(last.value)).day
            ):
                moved = days.numbered(last.value, number, later=False)
        resolved.append(replace(day, value=moved.isoformat()) if moved and moved >= today else day)
    return resolved


_MONTH_SAID = re.compile(rf"\b(?:in|the|this|next|for)\s+{MONTH}(?!\s*\d)", re.I)
"""A month that is named before its day: "the april one, the 18th"."""


def _in_named_month(month: str, number: int, today: Day) -> Day | None:
    """The next day of this number in a month of this name."""
    at = days.month_number(month)
    years = (today.year, today.year + 1)
    return next((day for y in years if (day := days.safe(y, at, number)) and day >= today), None)


def _has_month(text: str, day: Candidate, today: Day) -> bool:
    """Whether a day to come is said with its month."""
    ahead = (Day.fromisoformat(str(day.value)) - today).days
    return 0 <= ahead <= 366 and _MONTH.search(text, day.start, day.end) is not None


_APART = re.compile(r"\b(?:to|till?|until|and|or|then|not|from|through|back)\b|\d", re.I)


def _is_same(text: str, day: Candidate, other: Candidate) -> bool:
    """Whether nothing between two days says that they are two: "the 21st, that's a saturday"."""
    begin, end = min(day.end, other.end), max(day.start, other.start)
    return _APART.search(text, begin, end) is None


def _candidate(
    spelled: Spelled, maker: days.Maker, match: re.Match[str], today: Day, *, past: bool
) -> Candidate | None:
    """The day that a match of the grammar names; None where there is no such day."""
    start = match.start() + len(match.group()) - len(match.group().lstrip())
    end = match.start() + len(match.group().rstrip(" ."))
    try:
        day = maker(match, today)
        if not day:
            return None
        ahead = day
        if past or is_told_as_past(before(spelled.text, start)):
            day = latest(maker, match, day, today)
        else:
            day = nearest(maker, match, day, today)
        begin, moved = _shifted(spelled.text, start, day)
    except (OverflowError, ValueError):
        return None
    others = _others(maker, match, day, today) if begin == start else ()
    if ahead != day and begin == start and not others:
        others = (ahead.isoformat(),)
    return Candidate(
        spelled.place(begin), spelled.place(end), moved.isoformat(), 0.0, alternatives=others
    )


def _others(maker: days.Maker, match: re.Match[str], day: Day, today: Day) -> tuple[str, ...]:
    """The readings of a date without a year that only bounds can prefer.

    They have the other order of day and month, or another year.
    """
    if maker not in (days.explicit, days.numeric) or match["year"]:
        return ()
    years = (today.year, today.year + 1, today.year - 1)
    orders = (
        [(day.month, day.day), (day.day, day.month)]
        if maker is days.numeric
        else [(day.month, day.day)]
    )
    others = [
        other
        for month, number in reversed(orders)
        for year in years
        if (other := days.safe(year, month, number)) and other != day
    ]
    return tuple(other.isoformat() for other in others)
