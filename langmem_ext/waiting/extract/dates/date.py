"""Dates: a grammar of written dates, normalised to ISO 8601 against the message's time."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date as Day
from datetime import timedelta

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate, longest, turned_down
from langmem_ext.waiting.extract.dates import days
from langmem_ext.waiting.extract.dates.past import (
    happened_to_others,
    is_of_past,
    is_told_as_past,
    latest,
    nearest,
)
from langmem_ext.waiting.extract.dates.replacement import in_month_of, wished_first, without_old
from langmem_ext.waiting.extract.dates.spelling import Spelled
from langmem_ext.waiting.extract.english.roles import DATE_CUES, with_roles
from langmem_ext.waiting.extract.english.tokens import before
from langmem_ext.waiting.extract.numbers.numerals import WORDS
from langmem_ext.waiting.extract.reading_cache import remembered
from langmem_ext.waiting.extract.reply import Reply

MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sep(?:t(?:ember)?)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_WORD_DAY = "|".join(sorted(days.ORDINAL_DAYS, key=len, reverse=True))
_DAY = (
    rf"(?P<day>\d{{1,2}}(?=\s*(?:st|nd|rd|th)\b)|\d{{1,2}}(?![\d:.]\d|,\d(?!\d{{3}}\b)|\s*[ap]\.?m"
    rf"|\d)"
    rf"|{_WORD_DAY})(?:\s*(?:st|nd|rd|th)\b)?"
)
_NTH = rf"(?P<day>\d{{1,2}}(?=\s?(?:st|nd|rd|th)\b)|(?:{_WORD_DAY}))(?:\s?(?:st|nd|rd|th)\b)?"
_NUMBER = rf"(?P<day>\d{{1,2}}|{_WORD_DAY})(?:\s?(?:st|nd|rd|th)\b)?"
_UNTIL = r"(?:[-–—]|\b(?:to|till?|until|through|thru)\b|(?<=(?:st|nd|rd|th)\s)and\b)"
"""What stands between the two ends of a range: "16-20 march"."""
_YEAR = (
    r"(?:,?\s*(?:of\s+)?(?P<year>(?:19|20)\d{2}\b(?!\s*[:.]\d)|['’]?(?:3[2-9]|[4-9]\d)(?=\s*(?:$"
    r"|[.,;!?\n]))))?"
)
_WEEKDAY = (
    r"(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs?(?:day)?)?|fri(?:day)?"
    r"|sat(?:urday)?|sun(?:day)?)\b\.?"
)
_LONG_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_SHORT_WEEKDAY = r"(?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)"
_LEAD = rf"(?:(?P<named>{_LONG_WEEKDAY}|{_SHORT_WEEKDAY}\b)\.?,?\s+(?:the\s+)?)?"

_NOT_A_DAY = (
    r"(?!\s*(?:one|option|time|floor|choice|class|person|result|suggestion|street|st\b|avenue|ave\b"
    r"|road|rd\b|blvd|name|row|flight|thing"
    r"|place|restaurant|hotel|movie|event|half|quarter|party|week|of\b|in\b|"
    rf"{_LONG_WEEKDAY})\b)"
)
_GRAMMAR: tuple[tuple[re.Pattern[str], days.Maker, float, str], ...] = tuple(
    (re.compile(source, re.I), maker, confidence, reason)
    for source, maker, confidence, reason in (
        (
            r"(?<!\d)(?P<year>(?:19|20)\d{2})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)",
            days.year_first,
            0.98,
            "date, year first",
        ),
        (rf"\b{_LEAD}{MONTH},?\s*(?:the\s+)?{_DAY}{_YEAR}", days.explicit, 0.97, "month and day"),
        (
            rf"(?<![\d:.,#$£€])\b{_LEAD}{_DAY}\s*(?:day\s+)?(?:of\s+|(?<=(?:st|nd|rd|th) )in\s+)?"
            rf"{MONTH}{_YEAR}",
            days.explicit,
            0.97,
            "day and month",
        ),
        (
            rf"(?<![\d:.,/#$£€-])\b{_LEAD}{_NUMBER}(?=\s*{_UNTIL}\s*"
            rf"(?:(?:{_LONG_WEEKDAY}|{_SHORT_WEEKDAY})\s+)?(?:the\s+)?(?P<last>\d{{1,2}})"
            rf"(?:\s?(?:st|nd|rd|th))?\s*(?:of\s+)?{MONTH}{_YEAR})",
            days.explicit,
            0.97,
            "day and month",
        ),
        (
            rf"(?<![\d/.:-]){_LEAD}(?P<a>\d{{1,2}})(?P<sep>[-/.])(?P<b>\d{{1,2}})(?P=sep)"
            rf"(?P<year>\d{{4}}|\d{{2}})(?![\d/]|[-.:]\d)",
            days.numeric,
            0.8,
            "numeric date",
        ),
        (
            r"(?<![\d/.:-])(?<!\bat )(?<!\babout )(?<!\baround )"  # "at 8.30." is a time
            r"(?P<a>\d{1,2})(?P<sep>\.)(?P<b>0?[1-9]|1[0-2])\.(?P<year>)(?!\d)",
            days.numeric,
            0.6,
            "date without a year",
        ),
        (
            r"(?<![\d/.:-])(?P<a>\d{1,2})(?P<sep>/)(?P<b>\d{1,2})(?P<year>)(?![\d/]|[.:]\d)",
            days.numeric,
            0.6,
            "date without a year",
        ),
        (
            (
                rf"\b{_LEAD}{_NTH}\s+(?:day\s+)?of\s+(?P<which>this|next|the next|the"
                r" following|the)\s+month\b"
            ),
            days.of_month,
            0.95,
            "day of a month",
        ),
        (
            rf"\b(?P<named>{_LONG_WEEKDAY}|{_SHORT_WEEKDAY})\b\.?,?\s+(?:the\s+)?{_NTH}(?!\w)"
            + _NOT_A_DAY.replace("half|quarter|", ""),
            days.nth,
            0.9,
            "weekday and day of the month",
        ),
        (
            rf"\b(?P<named>{_LONG_WEEKDAY}|{_SHORT_WEEKDAY})\b\.?,?\s+(?P<day>1[3-9]|2\d|3[01])"
            r"(?=\s*(?:$|[.,;!?](?!\d)))",
            days.nth,
            0.85,
            "weekday and day of the month",
        ),
        (rf"(?<=\bthe\s){_NTH}(?!\w){_NOT_A_DAY}", days.nth, 0.9, "day of the month"),
        (
            r"(?<![\w#-])(?P<day>\d{1,2})(?:st|nd|rd|th)(?!\w)" + _NOT_A_DAY,
            days.nth,
            0.85,
            days.NTH,
        ),
        (
            rf"\b(?P<nth>first|second|third|fourth|last|1st|2nd|3rd"
            rf"|4th)\s+(?P<weekday>{_LONG_WEEKDAY})\s+(?:of|in)\s+(?:{MONTH}"
            rf"|(?P<which>this|next"
            rf"|the)\s+month)",
            days.nth_weekday,
            0.9,
            "weekday of a month",
        ),
        (
            rf"\b(?:the\s+)?last day\s+(?:of|in)\s+(?:{MONTH}|(?P<which>this|next|the)\s+month\b)",
            days.month_end,
            0.95,
            "last day of a month",
        ),
        (
            rf"\b(?:the\s+)?end\s+of\s+(?:{MONTH}|(?P<which>this|next|the)\s+month\b)",
            days.month_end,
            0.6,
            "end of a month",
        ),
        (
            r"\b(?:the\s+)?day after tomorrow\b|\b(?:tomorrow|today|tonight|yesterday|last night)\b"
            r"|\bthis (?:morning|afternoon|evening)\b",
            days.relative,
            0.95,
            "relative day",
        ),
        (
            (
                rf"\bin\s+(?P<count>\d{{1,3}}|an?|{WORDS})\s+(?:more\s+)?(?P<unit>days?|weeks?"
                rf"|months?|fortnights?)(?:'?s?"
                r" time)?\b"
            ),
            days.ahead,
            0.9,
            "days ahead",
        ),
        (
            rf"\b(?P<count>\d{{1,3}}|an?|{WORDS})\s+(?P<unit>days?|weeks?|months?"
            rf"|fortnights?)\s+from\s+(?P<base>now|today|tomorrow)\b",
            days.ahead,
            0.9,
            "days ahead",
        ),
        (
            rf"\b(?P<count>\d{{1,3}}|a\s+couple\s+of|an?|{WORDS})\s+(?P<unit>days?|weeks?|months?"
            r"|fortnights?)\s+ago\b",
            days.ago,
            0.9,
            "days ago",
        ),
        (
            rf"\b(?:(?P<weekday>{_LONG_WEEKDAY})|tomorrow|(?P<today>today))\s+(?:week(?!\w|\s+day)"
            rf"|(?P<fortnight>fortnight)"
            r"|in\s+(?P<count>two|three|\d)\s+weeks?)\b",
            days.weekday_week,
            0.95,
            "weeks after a day",
        ),
        (
            rf"\b(?:last|this past)\s+(?P<weekday>{_LONG_WEEKDAY})\b(?!\s+(?:of|in)\b)",
            days.last_weekday,
            0.9,
            "weekday that has passed",
        ),
        (
            r"\b(?:new year['’]?s?(?:\s+(?:eve|day))?|(?:christmas|xmas)(?:\s+(?:eve|day))?|boxing"
            r" day|valentine['’]?s(?:\s+day)?"
            r"|st\.?\s+patrick['’]?s\s+day|halloween|independence day|(?:easter|whit)\s*"
            r"(?:sunday|monday)|easter\s+(?:saturday|day)|good\s+friday|maundy\s+thursday|palm\s+sunday"
            r"|ash\s+wednesday|shrove\s+tuesday|pancake\s+day)(?!\w|\s+(?:party|dinner|menu|tree|cards?|market|presents?|gifts?))",
            days.feast,
            0.9,
            "feast",
        ),
        (
            rf"\b(?P<lead>(?:next|last) week(?:'s)?\s+(?:on\s+)?)?(?:(?P<which>this"
            rf" coming|this|next|coming|the following|the next|the coming)\s+)?"
            rf"(?P<weekday>{_LONG_WEEKDAY})s?\b(?P<after>\s+(?:of\s+)?(?:the\s+)?(?:next"
            r" week|last week|following week|this week|after next))?",
            days.weekday,
            0.88,
            "weekday",
        ),
        (
            r"(?:(?<=\bon )|(?<=\bby )|(?<=\bfor"
            rf" )|^\s*)(?:(?P<which>this|next)\s+)?{_WEEKDAY}(?=\s*(?:$|[.,!?]|at\b|please|next))"
            rf"(?P<after>\s+next"
            rf" week)?|\b(?P<which2>this|next)\s+(?P<weekday2>mon|tues?|wed|thurs?|thu|fri)\b",
            days.short_weekday,
            0.8,
            "short weekday",
        ),
        (
            r"(?<!\bthe )\b(?:(?P<which>this"
            r" coming|coming|this|next)\s+)?(?P<weekday>tues?|thurs?|thu|fri"
            r"|(?:mon|wed|sat|sun)(?=,?\s+(?:at|the|\d|noon|night|evening|morning|afternoon)\b"
            r"|,?\s+\d)"
            r"|(?:mon|wed|sat|sun)(?=\s+(?:or|and|next|is|would|works|better|best|please"
            r"|instead)\b)|(?<=\bor"
            r" )(?:mon"
            r"|wed|sat|sun)|(?<=coming )(?:mon|wed|sat|sun))\b(?!['’]\w)"
            r"(?P<after>\s+(?:of\s+)?next week)?",
            days.weekday,
            0.8,
            "short weekday",
        ),
    )
)


_SHIFT = re.compile(
    rf"(?P<lead>\b(?:\w+\s+)?(?:for|within)\s+)?\b(?P<count>\d{{1,3}}|an?|{WORDS})?\s*\b"
    r"(?:(?P<unit>days?|weeks?|fortnights?)\s+(?P<side>after|before)|(?P<weeks>weeks?"
    r"|fortnights?)(?:\s+(?:from|on))?)\s+(?:the\s+)?$",
    re.I,
)
_DAY_AND_MONTH = re.compile(rf"\d{{1,2}}(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{MONTH})", re.I)
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


_HINT = re.compile(
    r"\d|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|to|yest"
    r"|this|days?|weeks?|months?|first"
    r"|second|third|last|fortnight|easter|whit|pancake|new"
    r" year|xmas|christmas|boxing|halloween|valentine|st\b|independence|\w+th)",
    re.I,
)
"""What every date begins with or contains; without it the grammar need not be tried."""


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
    if not _HINT.search(spelled.text):
        return []
    candidates: list[Candidate] = []
    for pattern, maker, confidence, reason in _GRAMMAR:
        for _, match in zip(range(_MOST), pattern.finditer(spelled.text), strict=False):
            candidate = _candidate(spelled, maker, match, today, past=past)
            if candidate:
                candidates.append(replace(candidate, confidence=confidence, reason=reason))
    candidates = longest(candidates)[:_MOST]
    candidates = longest([*candidates, *_range_ends(text, candidates)])
    return _completed_by_others(text, today, candidates)


_NEXT_TO = re.compile(
    r"\bthe\s+(?P<unit>day|week)\s+(?P<side>after|before)(?:\s+that)?(?=\s*(?:$|[.,;!?)]|(?:at"
    r"|please|instead|then|works?|is|would)\b))",
    re.I,
)


_BESIDE = "day next to another"


def _apart(match: re.Match[str]) -> timedelta:
    """How far "the week before" is from the day that it stands beside."""
    days_apart = 7 if match["unit"].lower() == "week" else 1
    return timedelta(days=-days_apart if match["side"].lower() == "before" else days_apart)


_SOMEBODY_IS = re.compile(
    r"\b(?:i|we|he|she|they)(?:['’]?(?:m|re|s)|\s+(?:am|are|is|have|has))\s+"
    r"(?!(?:free|available|around|home|in)\b)[^.,;!?]*$",
    re.I,
)
"""Words up to a day on which somebody is, or has, something of his own."""
_BEGINS = re.compile(
    r"\b(?:the|my|our|his|her|their)\s+(?:\w+\s+)?\w+\s+(?:starts?|begins?|is|ends?|opens?|leaves?)\s*$",
    re.I,
)
"""Words up to a day on which something else is: "the season starts the day after"."""
_NEXT_LED = re.compile(
    r"(?:^|[,.;:!?–—-]\s*|\b(?:so|or|and|but|for|on|by|till?|until|to|from|make it|not|no|then"
    r"|maybe|actually|rather|better|say|do|i mean|meant|can be|could be|is it|about|even|want|need"
    r"|prefer|like|there|get|come|is|would be|['’]d be|['’]s|in|leave|leaving|out|back|take|home|go"
    r"|return))\s*$",
    re.I,
)
"""Words right before "the day after" where nobody else does something then: "nan flies …"."""
_SO = re.compile(r"\bso\b", re.I)
"""Words between a day and what follows from it: "back on the 10th, so the day after"."""
_NEXT_WEEK = re.compile(r"(?P<after>\bweek after )?\bnext(?(after)\b| week(?:end)?\b)", re.I)


def _completed_by_others(text: str, today: Day, candidates: list[Candidate]) -> list[Candidate]:
    """The dates, completed by the others of the message.

    "Not friday, the day after"; "the 21st, that's a saturday".
    """
    named: dict[int, Candidate] = {}
    completed: list[Candidate] = []
    numbered = {
        Day.fromisoformat(str(day.value)).weekday(): day
        for day in reversed(candidates)
        if re.fullmatch(r"\D*\d{1,2}(?!\d)\D*", text[day.start : day.end])
    }
    for candidate in candidates:
        weekday = Day.fromisoformat(str(candidate.value)).weekday()
        bare = _BARE_WEEKDAY.fullmatch(text[candidate.start : candidate.end]) is not None
        if (
            bare
            and weekday not in named
            and (week := _NEXT_WEEK.search(text))
            and not candidate.overlaps(*week.span())
        ):
            monday = today - timedelta(days=today.weekday())
            apart = 14 if week["after"] else 7
            day = monday + timedelta(days=apart + weekday)
            candidate = replace(candidate, value=day.isoformat())
        completed.append(
            replace(candidate, value=(numbered | named)[weekday].value)
            if bare
            and (
                weekday in named
                or (weekday in numbered and _is_same(text, candidate, numbered[weekday]))
            )
            else candidate
        )
        if "weekday" in candidate.reason:
            named.setdefault(weekday, completed[-1])
    completed = _in_months(text, completed, today)
    for match in _NEXT_TO.finditer(text) if completed else ():
        first = _last_before(completed, match.start())
        told = _BEGINS.search(before(text, match.start())) or not _NEXT_LED.search(
            before(text, match.start())
        )
        if (
            first
            and (told or _SOMEBODY_IS.search(before(text, match.start())))
            and not _SO.search(text, first.end, match.start())
            and not turned_down(text, first.start, first.end)
        ):
            continue  # "the 20th, we're away the week before"
        if first and not any(other.overlaps(*match.span()) for other in completed):
            day = Day.fromisoformat(str(first.value)) + _apart(match)
            completed.append(Candidate(*match.span(), day.isoformat(), 0.9, 1, _BESIDE))
    for match in _THAT_DAY.finditer(text) if completed else ():
        first = _last_before(completed, match.start())
        if first and not any(other.overlaps(*match.span()) for other in completed):
            completed.append(Candidate(*match.span(), first.value, 0.9, 0, "the day said before"))
    return sorted(completed, key=lambda candidate: candidate.start)


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


_BOTH_ENDS = re.compile(rf"\s*{_UNTIL}\s*(?:the\s+)?", re.I)
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


_BARE_WEEKDAY = re.compile(rf"{_LONG_WEEKDAY}|{_SHORT_WEEKDAY}", re.I)


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


def _named(param: Param, reply: Reply) -> list[Candidate]:
    """The dates that a reply names; by the way none on which something happened to others."""
    past = is_of_past(param, reply.prompt)
    named = dates(reply.text, reply.now.date(), past=past)
    named = [day for day in named if not _is_any_such_day(reply.text, day)]
    if past or not reply.strict:
        return named
    return [day for day in named if not happened_to_others(before(reply.text, day.start))]


_ANY = re.compile(r"(?<!\bon )(?<!\bfor )\ba\s+$", re.I)


def _is_any_such_day(text: str, day: Candidate) -> bool:
    """Whether a weekday is spoken of as one of its kind: "oh no, that's a wednesday"."""
    bare = _BARE_WEEKDAY.fullmatch(text[day.start : day.end])
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
    match = _NEXT_TO.search(text)
    if match is None or not _DAY_OF_YEAR.fullmatch(known):
        return candidates
    first = Day.fromisoformat(known)
    others = [day for day in candidates if not day.overlaps(*match.span())]
    if any(
        not _BARE_WEEKDAY.fullmatch(text[day.start : day.end])
        or Day.fromisoformat(str(day.value)).weekday() != first.weekday()
        for day in others
    ):
        return candidates
    return [Candidate(*match.span(), (first + _apart(match)).isoformat(), 0.9, 1, _BESIDE)]


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
