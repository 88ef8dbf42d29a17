"""Dates: an own grammar of what people write, normalised to ISO 8601 against the time of the message."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import date as Day
from datetime import timedelta

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate, longest
from langmem_ext.waiting.extract.dates.spelling import Spelled
from langmem_ext.waiting.extract.english.roles import DATE_CUES, with_roles
from langmem_ext.waiting.extract.numbers.numerals import WORDS, words_value
from langmem_ext.waiting.extract.reply import Reply

_MONTHS = ("january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december")
_DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_ORDINALS = (
    "first",
    "second",
    "third",
    "fourth",
    "fifth",
    "sixth",
    "seventh",
    "eighth",
    "ninth",
    "tenth",
    "eleventh",
    "twelfth",
    "thirteenth",
    "fourteenth",
    "fifteenth",
    "sixteenth",
    "seventeenth",
    "eighteenth",
    "nineteenth",
    "twentieth",
)
ORDINAL_DAYS = {word: day for day, word in enumerate(_ORDINALS, start=1)} | {
    f"twenty{sep}{word}": 20 + day for sep in "- " for day, word in enumerate(_ORDINALS[:9], start=1)
}
ORDINAL_DAYS |= {"thirtieth": 30, "thirty-first": 31, "thirty first": 31}

MONTH = (
    r"(?P<month>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sep(?:t(?:ember)?)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b\.?"
)
_WORD_DAY = "|".join(sorted(ORDINAL_DAYS, key=len, reverse=True))
_DAY = (
    rf"(?P<day>\d{{1,2}}(?=\s*(?:st|nd|rd|th)\b)|\d{{1,2}}(?![\d:.]\d|,\d(?!\d{{3}}\b)|\s*[ap]\.?m|\d)"
    rf"|{_WORD_DAY})(?:\s*(?:st|nd|rd|th)\b)?"
)
_NTH = rf"(?P<day>\d{{1,2}}(?=\s?(?:st|nd|rd|th)\b)|(?:{_WORD_DAY}))(?:\s?(?:st|nd|rd|th)\b)?"
_YEAR = r"(?:,?\s*(?:of\s+)?(?P<year>(?:19|20)\d{2}\b(?!\s*[:.]\d)|['’]?(?:3[2-9]|[4-9]\d)(?=\s*(?:$|[.,;!?\n]))))?"
_WEEKDAY = r"(?P<weekday>mon(?:day)?|tue(?:s(?:day)?)?|wed(?:nesday)?|thu(?:rs?(?:day)?)?|fri(?:day)?|sat(?:urday)?|sun(?:day)?)\b\.?"
_LONG_WEEKDAY = r"(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_SHORT_WEEKDAY = r"(?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)"
_LEAD = rf"(?:(?P<named>{_LONG_WEEKDAY}|{_SHORT_WEEKDAY}\b)\.?,?\s+(?:the\s+)?)?"

Maker = Callable[["re.Match[str]", Day], "Day | None"]


def _safe(year: int, month: int, day: int) -> Day | None:
    try:
        return Day(year, month, day)
    except ValueError:
        return None


def _day_number(text: str) -> int:
    return int(text) if text.isdigit() else ORDINAL_DAYS[re.sub(r"\s+", " ", text.lower())]


def _explicit(match: re.Match[str], today: Day) -> Day | None:
    month = next(n for n, name in enumerate(_MONTHS, start=1) if name.startswith(match["month"].lower()[:3]))
    day = _day_number(match["day"])
    if match["year"]:
        year = int(match["year"].lstrip("'’"))
        return _safe(year if year > 99 else 1900 + year, month, day)
    named = match["named"]
    if named:
        # The weekday decides the year: the coming one where it fits, else the one that has passed, as far as both are near.
        near = [found for year in (today.year, today.year + 1, today.year - 1) if (found := _safe(year, month, day))]
        near = [found for found in near if abs(found - today) < timedelta(days=366) and found.weekday() == _weekday_number(named)]
        if near:
            return max(near)
    return next((found for year in range(today.year, today.year + 5) if (found := _safe(year, month, day)) and found >= today), None)


def _weekday_number(name: str) -> int:
    return next(n for n, day in enumerate(_DAYS) if day.startswith(name.lower()[:3]))


def _year_first(match: re.Match[str], today: Day) -> Day | None:
    return _safe(int(match["year"]), int(match["month"]), int(match["day"]))


def _numeric(match: re.Match[str], today: Day) -> Day | None:
    """`8/3` is month first, `24.4.` day first; what cannot be one is read as the other."""
    first, second = int(match["a"]), int(match["b"])
    orders = [(first, second), (second, first)]
    if match["sep"] == ".":
        orders.reverse()
    for month, day in orders:
        if match["year"]:
            year = int(match["year"])
            found = _safe(year + 2000 if year < 100 else year, month, day)
        else:
            found = next((d for y in range(today.year, today.year + 5) if (d := _safe(y, month, day)) and d >= today), None)
        if found:
            return found
    return None


def _of_month(match: re.Match[str], today: Day) -> Day | None:
    ahead = 1 if match["which"].lower() in ("next", "the next", "the following") else 0
    months = today.year * 12 + today.month - 1 + ahead
    return _safe(months // 12, months % 12 + 1, _day_number(match["day"]))


def _nth(match: re.Match[str], today: Day) -> Day | None:
    day = _day_number(match["day"])
    for ahead in range(3):
        months = today.year * 12 + today.month - 1 + ahead
        found = _safe(months // 12, months % 12 + 1, day)
        if found and found >= today:
            return found
    return None


def _relative(match: re.Match[str], today: Day) -> Day | None:
    words = match.group().lower()
    if "after tomorrow" in words:
        return today + timedelta(days=2)
    if words.startswith("tomorrow"):
        return today + timedelta(days=1)
    return today - timedelta(days=1) if words.startswith(("yesterday", "last")) else today


def _ahead(match: re.Match[str], today: Day) -> Day | None:
    written = match["count"].lower()
    count = int(written) if written.isdigit() else 1 if written in ("a", "an", "one") else words_value(written)
    if count is None or count > 3_000:
        return None
    unit = match["unit"].lower()
    start = today + timedelta(days=1) if (match.groupdict().get("base") or "").lower() == "tomorrow" else today
    if unit.startswith("month"):
        months = start.year * 12 + start.month - 1 + count
        return _safe(months // 12, months % 12 + 1, start.day)
    return start + timedelta(days=count * (14 if unit.startswith("fortnight") else 7 if unit.startswith("week") else 1))


def _weekday(match: re.Match[str], today: Day) -> Day | None:
    """A bare weekday or "this" one is the next to come, today excluded; "next" one is in the next week, which begins on Monday."""
    wanted = next(n for n, name in enumerate(_DAYS) if name.startswith(match["weekday"].lower()[:3]))
    groups = match.groupdict()
    which = f"{groups.get('which') or ''} {groups.get('after') or ''} {groups.get('lead') or ''}".lower()
    if "next" in which or "following" in which:
        weeks = 2 if "after next" in which else 1
        return today - timedelta(days=today.weekday()) + timedelta(days=7 * weeks + wanted)
    return _coming(match["weekday"], today)


_NOT_A_DAY = (
    r"(?!\s*(?:one|option|time|floor|choice|class|person|result|suggestion|street|st\b|avenue|ave\b|road|rd\b|blvd|name|row|flight|thing"
    r"|place|restaurant|hotel|movie|event|half|quarter|party|week|of\b|in\b|"
    rf"{_LONG_WEEKDAY})\b)"
)
_GRAMMAR: tuple[tuple[re.Pattern[str], Maker, float, str], ...] = tuple(
    (re.compile(source, re.I), maker, confidence, reason)
    for source, maker, confidence, reason in (
        (r"(?<!\d)(?P<year>(?:19|20)\d{2})[-/.](?P<month>\d{1,2})[-/.](?P<day>\d{1,2})(?!\d)", _year_first, 0.98, "date, year first"),
        (rf"\b{_LEAD}{MONTH},?\s*(?:the\s+)?{_DAY}{_YEAR}", _explicit, 0.97, "month and day"),
        (rf"(?<![\d:.,#$£€])\b{_LEAD}{_DAY}\s*(?:day\s+)?(?:of\s+|in\s+)?{MONTH}{_YEAR}", _explicit, 0.97, "day and month"),
        (
            r"(?<![\d/.:-])(?P<a>\d{1,2})(?P<sep>[-/.])(?P<b>\d{1,2})(?P=sep)(?P<year>\d{4}|\d{2})(?![\d/]|[-.:]\d)",
            _numeric,
            0.8,
            "numeric date",
        ),
        (r"(?<![\d/.:-])(?P<a>\d{1,2})(?P<sep>\.)(?P<b>\d{1,2})\.(?P<year>)(?!\d)", _numeric, 0.6, "numeric date without a year"),
        (r"(?<![\d/.:-])(?P<a>\d{1,2})(?P<sep>/)(?P<b>\d{1,2})(?P<year>)(?![\d/]|[.:]\d)", _numeric, 0.6, "numeric date without a year"),
        (
            rf"\b{_LEAD}{_NTH}\s+(?:day\s+)?of\s+(?P<which>this|next|the next|the following|the)\s+month\b",
            _of_month,
            0.95,
            "day of a month",
        ),
        (rf"\b{_LONG_WEEKDAY},?\s+(?:the\s+)?{_NTH}(?!\w){_NOT_A_DAY}", _nth, 0.9, "weekday and day of the month"),
        (rf"(?<=\bthe\s){_NTH}(?!\w){_NOT_A_DAY}", _nth, 0.9, "day of the month"),
        (r"(?<![\w#-])(?P<day>\d{1,2})(?:st|nd|rd|th)(?!\w)" + _NOT_A_DAY, _nth, 0.85, "day of the month"),
        (
            rf"\b(?P<nth>first|second|third|fourth|last|1st|2nd|3rd|4th)\s+(?P<weekday>{_LONG_WEEKDAY})\s+(?:of|in)\s+(?:{MONTH}"
            rf"|(?P<which>this|next"
            rf"|the)\s+month)",
            lambda match, today: _nth_weekday(match, today),
            0.9,
            "weekday of a month",
        ),
        (
            r"\b(?:the\s+)?day after tomorrow\b|\b(?:tomorrow|today|tonight|yesterday|last night)\b"
            r"|\bthis (?:morning|afternoon|evening)\b",
            _relative,
            0.95,
            "relative day",
        ),
        (
            rf"\bin\s+(?P<count>\d{{1,3}}|an?|{WORDS})\s+(?:more\s+)?(?P<unit>days?|weeks?|months?|fortnights?)(?:'?s? time)?\b",
            _ahead,
            0.9,
            "days ahead",
        ),
        (
            rf"\b(?P<count>\d{{1,3}}|an?|{WORDS})\s+(?P<unit>days?|weeks?|months?|fortnights?)\s+from\s+(?P<base>now|today|tomorrow)\b",
            _ahead,
            0.9,
            "days ahead",
        ),
        (
            rf"\b(?:(?P<weekday>{_LONG_WEEKDAY})|tomorrow)\s+(?:week(?!\w|\s+day)|(?P<fortnight>fortnight)"
            r"|in\s+(?P<count>two|three|\d)\s+weeks?)\b",
            lambda match, today: _weekday_week(match, today),
            0.95,
            "weeks after a day",
        ),
        (
            rf"\b(?:last|this past)\s+(?P<weekday>{_LONG_WEEKDAY})\b(?!\s+(?:of|in)\b)",
            lambda match, today: _last_weekday(match, today),
            0.9,
            "weekday that has passed",
        ),
        (
            r"\b(?:new year['’]?s?(?:\s+(?:eve|day))?|(?:christmas|xmas)(?:\s+(?:eve|day))?|boxing day|valentine['’]?s(?:\s+day)?"
            r"|st\.?\s+patrick['’]?s\s+day|halloween|independence day)(?!\w|\s+(?:party|dinner|menu|tree|cards?|market|presents?|gifts?))",
            lambda match, today: _feast(match, today),
            0.9,
            "feast",
        ),
        (
            rf"\b(?P<lead>next week(?:'s)?\s+(?:on\s+)?)?(?:(?P<which>this coming|this|next|coming|the following|the next|the coming)\s+)?"
            rf"(?P<weekday>{_LONG_WEEKDAY})s?\b(?P<after>\s+(?:of\s+)?(?:the\s+)?(?:next week|following week|this week|after next))?",
            _weekday,
            0.88,
            "weekday",
        ),
        (
            rf"(?:(?<=\bon )|(?<=\bby )|(?<=\bfor )|^\s*)(?:(?P<which>this|next)\s+)?{_WEEKDAY}(?=\s*(?:$|[.,!?]|at\b|please|next))"
            rf"(?P<after>\s+next week)?|\b(?P<which2>this|next)\s+(?P<weekday2>mon|tues?|wed|thurs?|thu|fri)\b",
            lambda match, today: _short_weekday(match, today),
            0.8,
            "short weekday",
        ),
        (
            r"(?<!\bthe )\b(?:(?P<which>this coming|coming|this|next)\s+)?(?P<weekday>tues?|thurs?|thu|fri"
            r"|(?:mon|wed|sat|sun)(?=,?\s+(?:at|the|\d|noon|night|evening|morning|afternoon)\b|,?\s+\d)"
            r"|(?:mon|wed|sat|sun)(?=\s+(?:or|and|next|is|would|works|better|best|please|instead)\b)|(?<=\bor )(?:mon"
            r"|wed|sat|sun)|(?<=coming )(?:mon|wed|sat|sun))\b(?!['’]\w)"
            r"(?P<after>\s+(?:of\s+)?next week)?",
            _weekday,
            0.8,
            "short weekday",
        ),
    )
)


def _weekday_week(match: re.Match[str], today: Day) -> Day | None:
    """Weeks after the coming weekday, or after tomorrow: "Tuesday week", "Friday in two weeks"."""
    weeks = 2 if match["fortnight"] else _count(match["count"] or "a") or 1
    first = _coming(match["weekday"], today) if match["weekday"] else today + timedelta(days=1)
    return first + timedelta(days=7 * weeks)


def _count(written: str) -> int | None:
    low = written.lower()
    return int(low) if low.isdigit() else 1 if low in ("a", "an") else words_value(low)


_SHIFT = re.compile(
    rf"(?P<lead>\b(?:\w+\s+)?(?:for|within)\s+)?\b(?P<count>\d{{1,3}}|an?|{WORDS})?\s*\b"
    r"(?:(?P<unit>days?|weeks?|fortnights?)\s+(?P<side>after|before)|(?P<weeks>weeks?|fortnights?)(?:\s+(?:from|on))?)\s+(?:the\s+)?$",
    re.I,
)
_BOOKED = re.compile(r"(?:table|booking|reservation|appointment|meeting|it|that|schedule|scheduled|book|reserve|set)\s+for\s+$", re.I)


def _shifted(text: str, start: int, day: Day) -> tuple[int, Day]:
    """The day that is counted from another: "a week from Saturday", "two days before Christmas".

    A length of time that begins there ("4 days from the 1st", "for a week from Friday") moves nothing.
    """
    match = _SHIFT.search(text, max(0, start - 60), start)
    if not match or (match["lead"] and not _BOOKED.match(match["lead"])):
        return start, day
    count = _count(match["count"] or "a")
    if count is None or count > 1_000 or not (match["count"] or re.search(r"\b(?:from|after|before)\s+(?:the\s+)?$", match[0], re.I)):
        return start, day
    unit = (match["unit"] or match["weeks"]).lower()
    days = count * (14 if unit.startswith("f") else 7 if unit.startswith("w") else 1)
    begin = match.start("count") if match["count"] else match.start("unit" if match["unit"] else "weeks")
    return begin, day - timedelta(days=days) if (match["side"] or "").lower() == "before" else day + timedelta(days=days)


def _coming(weekday: str, today: Day) -> Day:
    """The next such day, today excluded."""
    wanted = next(n for n, name in enumerate(_DAYS) if name.startswith(weekday.lower()[:3]))
    return today + timedelta(days=(wanted - today.weekday() - 1) % 7 + 1)


_FEASTS = {
    "newyearseve": (12, 31),
    "newyears": (1, 1),
    "newyear": (1, 1),
    "newyearsday": (1, 1),
    "valentines": (2, 14),
    "valentinesday": (2, 14),
    "stpatricksday": (3, 17),
    "halloween": (10, 31),
    "christmaseve": (12, 24),
    "xmaseve": (12, 24),
    "christmas": (12, 25),
    "christmasday": (12, 25),
    "xmas": (12, 25),
    "xmasday": (12, 25),
    "boxingday": (12, 26),
    "independenceday": (7, 4),
}


def _feast(match: re.Match[str], today: Day) -> Day | None:
    """The next feast of a fixed day."""
    month, day = _FEASTS[re.sub(r"[^a-z]", "", match.group().lower())]
    return next(found for year in (today.year, today.year + 1) if (found := Day(year, month, day)) >= today)


def _last_weekday(match: re.Match[str], today: Day) -> Day | None:
    """The last such day, today excluded."""
    wanted = next(n for n, name in enumerate(_DAYS) if name.startswith(match["weekday"].lower()[:3]))
    return today - timedelta(days=(today.weekday() - wanted - 1) % 7 + 1)


def _nth_weekday(match: re.Match[str], today: Day) -> Day | None:
    month, year = today.month, today.year
    if match["month"]:
        month = next(n for n, name in enumerate(_MONTHS, start=1) if name.startswith(match["month"].lower()[:3]))
        year += month < today.month
    elif match["which"].lower() == "next":
        year, month = year + month // 12, month % 12 + 1
    wanted = next(n for n, name in enumerate(_DAYS) if name.startswith(match["weekday"].lower()[:3]))
    days = [day for number in range(1, 32) if (day := _safe(year, month, number)) and day.weekday() == wanted]
    place = {"first": 0, "second": 1, "third": 2, "fourth": 3, "last": -1, "1st": 0, "2nd": 1, "3rd": 2, "4th": 3}[match["nth"].lower()]
    return days[place]


def _short_weekday(match: re.Match[str], today: Day) -> Day | None:
    wanted = next(n for n, name in enumerate(_DAYS) if name.startswith((match["weekday"] or match["weekday2"]).lower()[:3]))
    which = f"{match['which'] or match['which2'] or ''} {match['after'] or ''}".lower()
    if "next" in which:
        return today - timedelta(days=today.weekday()) + timedelta(days=7 + wanted)
    return _coming(match["weekday"] or match["weekday2"], today)


_HINT = re.compile(
    r"\d|\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mon|tue|wed|thu|fri|sat|sun|to|yest|this|days?|weeks?|months?|first"
    r"|second|third|last|fortnight|new year|xmas|christmas|boxing|halloween|valentine|st\b|independence|\w+th)",
    re.I,
)
"""What every date begins with or contains; without it the grammar need not be tried."""


def dates(text: str, today: Day, *, past: bool = False) -> list[Candidate]:
    """Every date that `text` names, in its order, misspelt names included; days that do not exist are left out.

    Args:
        text: The message.
        today: What relative days count from.
        past: Whether a date that may be past or to come is the past one.
    """
    spelled = Spelled(text)
    if not _HINT.search(spelled.text):
        return []
    found: list[Candidate] = []
    for pattern, maker, confidence, reason in _GRAMMAR:
        for match in pattern.finditer(spelled.text):
            candidate = _candidate(spelled, maker, match, today, past=past)
            if candidate:
                found.append(replace(candidate, confidence=confidence, reason=reason))
    return _told_by_others(text, today, longest(found))


_NEXT_TO = re.compile(
    r"\bthe\s+(?P<unit>day|week)\s+(?P<side>after|before)(?:\s+that)?(?=\s*(?:$|[.,;!?)]|(?:at|please|instead|then|works?|is|would)\b))",
    re.I,
)


_NEXT_WEEK = re.compile(r"\bnext week(?:end)?\b", re.I)


def _told_by_others(text: str, today: Day, found: list[Candidate]) -> list[Candidate]:
    """The dates, with those that another date of the message decides: "not friday, the day after"."""
    named: dict[int, Candidate] = {}
    told: list[Candidate] = []
    for candidate in found:
        weekday = Day.fromisoformat(str(candidate.value)).weekday()
        bare = _BARE_WEEKDAY.fullmatch(text[candidate.start : candidate.end]) is not None
        if bare and weekday not in named and (week := _NEXT_WEEK.search(text)) and not candidate.overlaps(*week.span()):
            monday = today - timedelta(days=today.weekday())
            candidate = replace(candidate, value=(monday + timedelta(days=7 + weekday)).isoformat())
        told.append(replace(candidate, value=named[weekday].value) if bare and weekday in named else candidate)
        if "weekday" in candidate.reason:
            named.setdefault(weekday, told[-1])
    for match in _NEXT_TO.finditer(text) if told else ():
        first = next((other for other in reversed(told) if other.end <= match.start()), None)
        if first and not any(other.overlaps(*match.span()) for other in told):
            days = (7 if match["unit"].lower() == "week" else 1) * (-1 if match["side"].lower() == "before" else 1)
            day = Day.fromisoformat(str(first.value)) + timedelta(days=days)
            told.append(Candidate(match.start(), match.end(), day.isoformat(), 0.9, 1, "day next to another"))
    return sorted(told, key=lambda candidate: candidate.start)


_BARE_WEEKDAY = re.compile(rf"{_LONG_WEEKDAY}|{_SHORT_WEEKDAY}", re.I)


def _candidate(spelled: Spelled, maker: Maker, match: re.Match[str], today: Day, *, past: bool) -> Candidate | None:
    """The day that a match of the grammar names; None where there is none such."""
    start = match.start() + len(match.group()) - len(match.group().lstrip())
    end = match.start() + len(match.group().rstrip(" ."))
    try:
        day = maker(match, today)
        if not day:
            return None
        day = _latest(maker, match, day, today) if past else day
        begin, moved = _shifted(spelled.text, start, day)
    except (OverflowError, ValueError):
        return None
    others = _others(maker, match, day, today) if begin == start else ()
    return Candidate(spelled.place(begin), spelled.place(end), moved.isoformat(), 0.0, alternatives=others)


def _latest(maker: Maker, match: re.Match[str], day: Day, today: Day) -> Day:
    """The latest reading of a date that lies not ahead; the day itself where it can only be ahead."""
    if day <= today:
        return day
    if maker in (_weekday, _short_weekday):
        ahead = re.search(r"\b(?:next|following|coming)\b", match.group(), re.I)
        return day if ahead else day - timedelta(days=7 * -(-(day - today).days // 7))
    if maker is _nth:
        months = (today.year * 12 + today.month - 1 - back for back in range(3))
        return next((found for at in months if (found := _safe(at // 12, at % 12 + 1, day.day)) and found <= today), day)
    if maker in (_explicit, _numeric):
        years = range(today.year, today.year - 5, -1) if not match["year"] else (day.year - 100,) if len(match["year"]) == 2 else ()
        return next((found for year in years if (found := _safe(year, day.month, day.day)) and found <= today), day)
    return day


def _others(maker: Maker, match: re.Match[str], day: Day, today: Day) -> tuple[str, ...]:
    """The readings of a date without its year that only bounds can prefer: the other order of day and month, and a year earlier."""
    if maker not in (_explicit, _numeric) or match["year"]:
        return ()
    years = (today.year, today.year + 1, today.year - 1)
    orders = [(day.month, day.day), (day.day, day.month)] if maker is _numeric else [(day.month, day.day)]
    others = [other for month, number in reversed(orders) for year in years if (other := _safe(year, month, number)) and other != day]
    return tuple(other.isoformat() for other in others)


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The dates of a reply, those that stand in this parameter's role first."""
    found = dates(reply.text, reply.now.date(), past=_is_past(param, reply.prompt))
    if not found and re.fullmatch(r"\W*(?:just|right|as of)? ?now\W*", reply.text, re.I):
        found = [Candidate(0, len(reply.text), reply.now.date().isoformat(), 0.8, 0, "today")]
    if reply.strict and _BIRTH.search(f"{param.name} {param.description}"):
        found = [day for day in found if re.search(r"\d{2}$", reply.text[day.start : day.end]) or _BIRTH.search(reply.text, 0, day.start)]
    if param.future:
        found = [replace(day, fit=-1) if _SINCE.search(reply.text, 0, day.start) else day for day in found]
    return with_roles(param, reply, found, DATE_CUES)


_BIRTH = re.compile(r"birth|born|\bdob\b", re.I)
_SINCE = re.compile(r"\b(?:since|last)\s+(?:the\s+)?$", re.I)
"""Words before a day that has passed."""


_PAST = re.compile(
    r"\b(?:did (?!you (?:want|have|need|plan|wish|like|prefer|mean|say|think))|(?:has|have) (?:it|you|they|he|she) \w+ed|happened|occurred"
    r"|when (?:was|were)|(?:was|were) (?:it|the \w+|you|he|she|they) \w+(?:ed|en|st|ght)|born|birth(?:day|date)?|dob|previous(?:ly)?"
    r"|the past|\(past\)|last (?!day|date|night|name|for\b|\d)\w+|damage|accident|incident|crash|theft|loss"
    r"|purchased?|bought|since when|lost|lose|stolen|missing|broke\w*)",
    re.I,
)
"""Words by which a question or a description speaks of what has happened."""


def _is_past(param: Param, prompt: str) -> bool:
    """Whether the parameter or the question speaks of what has happened."""
    return not param.future and _PAST.search(f"{param.name.replace('_', ' ')}. {param.description}. {prompt or param.prompt}") is not None
