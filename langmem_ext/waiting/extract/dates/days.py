"""The days that words name, counted from the message's day: one function for each form."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date as Day
from datetime import timedelta

from langmem_ext.waiting.extract.numbers.numerals import words_value

MONTHS = (
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
)
DAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
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
    f"twenty{sep}{word}": 20 + day
    for sep in "- "
    for day, word in enumerate(_ORDINALS[:9], start=1)
}
ORDINAL_DAYS |= {"thirtieth": 30, "thirty-first": 31, "thirty first": 31}

NTH = "day of the month"
"""The reason of a day that is named by its number alone."""

Maker = Callable[["re.Match[str]", Day], "Day | None"]


def safe(year: int, month: int, day: int) -> Day | None:
    """The day of these numbers; None where the calendar has none."""
    try:
        return Day(year, month, day)
    except ValueError:
        return None


def month_number(name: str) -> int:
    """The number of a month, 1 to 12, from its name or the first three letters of it."""
    return next(n for n, month in enumerate(MONTHS, 1) if month.startswith(name.lower()[:3]))


def day_number(text: str) -> int:
    """The number of a day of the month, in digits or as a word."""
    return int(text) if text.isdigit() else ORDINAL_DAYS[re.sub(r"\s+", " ", text.lower())]


def explicit(match: re.Match[str], today: Day) -> Day | None:
    """`12 March`, the coming one; a weekday or a year beside it decides which."""
    month = month_number(match["month"])
    day = day_number(match["day"])
    if day > int(match.groupdict().get("last") or day):
        month = month - 1 or 12  # "the 28th to 3 april"
    if match["year"]:
        year = int(match["year"].lstrip("'’"))
        return safe(year if year > 99 else 1900 + year, month, day)
    named = match["named"]
    if named:
        # The weekday decides the year: the coming one where it fits, else the one that has passed,
        # as far as both are near.
        near = [
            full_date
            for year in (today.year, today.year + 1, today.year - 1)
            if (full_date := safe(year, month, day))
        ]
        near = [
            near_date
            for near_date in near
            if abs(near_date - today) < timedelta(days=366)
            and near_date.weekday() == weekday_number(named)
        ]
        if near:
            return max(near)
    return next(
        (
            full_date
            for year in range(today.year, today.year + 5)
            if (full_date := safe(year, month, day)) and full_date >= today
        ),
        None,
    )


def weekday_number(name: str) -> int:
    """Monday is 0."""
    return next(n for n, day in enumerate(DAYS) if day.startswith(name.lower()[:3]))


def year_first(match: re.Match[str], today: Day) -> Day | None:
    """As in `2026-03-12`."""
    return safe(int(match["year"]), int(match["month"]), int(match["day"]))


def numeric(match: re.Match[str], today: Day) -> Day | None:
    """`8/3` is month first, `24.4.` day first; what cannot be one is read as the other."""
    first, second = int(match["a"]), int(match["b"])
    orders = [(first, second), (second, first)]
    if match["sep"] == ".":
        orders.reverse()
    for month, day in orders:
        if match["year"]:
            year = int(match["year"])
            full_date = safe(year + 2000 if year < 100 else year, month, day)
        else:
            full_date = next(
                (
                    d
                    for y in range(today.year, today.year + 5)
                    if (d := safe(y, month, day)) and d >= today
                ),
                None,
            )
        if full_date:
            return full_date
    return None


def of_month(match: re.Match[str], today: Day) -> Day | None:
    """As in "the 3rd of next month"."""
    later = 1 if match["which"].lower() in ("next", "the next", "the following") else 0
    months = today.year * 12 + today.month - 1 + later
    return safe(months // 12, months % 12 + 1, day_number(match["day"]))


def nth(match: re.Match[str], today: Day) -> Day | None:
    """As in "the 12th": the next one; a weekday beside it decides the month."""
    day, named = day_number(match["day"]), match.groupdict().get("named")
    months = (today.year * 12 + today.month - 1 + later for later in range(12))
    ahead = [
        full_date
        for at in months
        if (full_date := safe(at // 12, at % 12 + 1, day)) and full_date >= today
    ]
    fits = (day for day in ahead if named and day.weekday() == weekday_number(named))
    return next(fits, ahead[0] if ahead else None)


def numbered(near: object, number: int, *, later: bool = True) -> Day | None:
    """The day of this number in the month of another.

    With `later`, one that would lie before the other is in the month after it.
    """
    other = Day.fromisoformat(str(near))
    months = other.year * 12 + other.month - 1 + (later and number < other.day)
    return safe(months // 12, months % 12 + 1, number)


def relative(match: re.Match[str], today: Day) -> Day | None:
    """As in "tomorrow", "yesterday", "the day after tomorrow"."""
    words = match.group().lower()
    if "after tomorrow" in words:
        return today + timedelta(days=2)
    if words.startswith("tomorrow"):
        return today + timedelta(days=1)
    return today - timedelta(days=1) if words.startswith(("yesterday", "last")) else today


def ahead(match: re.Match[str], today: Day) -> Day | None:
    """As in "in two weeks"."""
    written = match["count"].lower()
    count = (
        int(written)
        if written.isdigit()
        else 1
        if written in ("a", "an", "one")
        else words_value(written)
    )
    if count is None or count > 3_000:
        return None
    unit = match["unit"].lower()
    start = (
        today + timedelta(days=1)
        if (match.groupdict().get("base") or "").lower() == "tomorrow"
        else today
    )
    if unit.startswith("month"):
        months = start.year * 12 + start.month - 1 + count
        return safe(months // 12, months % 12 + 1, start.day)
    return start + timedelta(
        days=count * (14 if unit.startswith("fortnight") else 7 if unit.startswith("week") else 1)
    )


def ago(match: re.Match[str], today: Day) -> Day | None:
    """As in "two weeks ago"."""
    written, unit = match["count"].lower(), match["unit"].lower()
    number = 2 if "couple" in written else count(written)
    if number is None or number > 3_000:
        return None
    if unit.startswith("month"):
        months = today.year * 12 + today.month - 1 - number
        return safe(months // 12, months % 12 + 1, today.day)
    return today - timedelta(
        days=number * (14 if unit.startswith("fortnight") else 7 if unit.startswith("week") else 1)
    )


def weekday(match: re.Match[str], today: Day) -> Day | None:
    """The date of a weekday's name.

    A bare weekday or "this" one is the next to come, today excluded. "Next" one is in the next
    week, which begins on Monday; one of last week is in the week before this one.
    """
    wanted = next(n for n, name in enumerate(DAYS) if name.startswith(match["weekday"].lower()[:3]))
    groups = match.groupdict()
    which = (
        f"{groups.get('which') or ''} {groups.get('after') or ''} {groups.get('lead') or ''}"
    ).lower()
    if "next" in which or "following" in which or "last" in which:
        weeks = -1 if "last" in which else 2 if "after next" in which else 1
        return today - timedelta(days=today.weekday()) + timedelta(days=7 * weeks + wanted)
    return coming(match["weekday"], today)


def weekday_week(match: re.Match[str], today: Day) -> Day | None:
    """Weeks after the coming weekday, or after tomorrow: "Tuesday week", "Friday in two weeks"."""
    weeks = 2 if match["fortnight"] else count(match["count"] or "a") or 1
    tomorrow = today + timedelta(days=0 if match["today"] else 1)
    first = coming(match["weekday"], today) if match["weekday"] else tomorrow
    return first + timedelta(days=7 * weeks)


def month_end(match: re.Match[str], today: Day) -> Day | None:
    """The last day of the coming month of that name, of this month or of the next."""
    month = today.month + ((match["which"] or "").lower() == "next")
    if match["month"]:
        month = month_number(match["month"])
        month += 12 * (month < today.month)
    return Day(today.year + month // 12, month % 12 + 1, 1) - timedelta(days=1)


def count(written: str) -> int | None:
    """A number in digits, as a word, or an article."""
    low = written.lower()
    return int(low) if low.isdigit() else 1 if low in ("a", "an") else words_value(low)


def coming(weekday: str, today: Day) -> Day:
    """The next such day, today excluded."""
    wanted = next(n for n, name in enumerate(DAYS) if name.startswith(weekday.lower()[:3]))
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


_AFTER_EASTER = {
    "shrovetuesday": -47,
    "pancakeday": -47,
    "ashwednesday": -46,
    "palmsunday": -7,
    "maundythursday": -3,
    "goodfriday": -2,
    "eastersaturday": -1,
    "eastersunday": 0,
    "easterday": 0,
    "eastermonday": 1,
    "whitsunday": 49,
    "whitmonday": 50,
}
"""Feasts that move with Easter, by their days after it."""


def feast(match: re.Match[str], today: Day) -> Day | None:
    """The next feast of that name."""
    name = re.sub(r"[^a-z]", "", match.group().lower())
    days = (
        easter(year) + timedelta(days=_AFTER_EASTER[name])
        if name in _AFTER_EASTER
        else Day(year, *_FEASTS[name])
        for year in (today.year, today.year + 1)
    )
    return next((day for day in days if day >= today), None)


def easter(year: int) -> Day:
    """Easter Sunday in the Gregorian calendar.

    By the "anonymous" algorithm (Meeus, Astronomical Algorithms, chapter 8).
    """
    century, rest = divmod(year, 100)
    golden, leaps = year % 19, century // 4
    moon = (century - (century + 8) // 25 + 1) // 3
    epact = (19 * golden + century - leaps - moon + 15) % 30
    weekday = (32 + 2 * (century % 4) + 2 * (rest // 4) - epact - rest % 4) % 7
    late = (golden + 11 * epact + 22 * weekday) // 451
    month, day = divmod(epact + weekday - 7 * late + 114, 31)
    return Day(year, month, day + 1)


def last_weekday(match: re.Match[str], today: Day) -> Day | None:
    """The last such day, today excluded."""
    wanted = next(n for n, name in enumerate(DAYS) if name.startswith(match["weekday"].lower()[:3]))
    return today - timedelta(days=(today.weekday() - wanted - 1) % 7 + 1)


def nth_weekday(match: re.Match[str], today: Day) -> Day | None:
    """As in "the first friday in may"."""
    month, year = today.month, today.year
    if match["month"]:
        month = month_number(match["month"])
        year += month < today.month
    elif match["which"].lower() == "next":
        year, month = year + month // 12, month % 12 + 1
    wanted = next(n for n, name in enumerate(DAYS) if name.startswith(match["weekday"].lower()[:3]))
    days = [
        day
        for number in range(1, 32)
        if (day := safe(year, month, number)) and day.weekday() == wanted
    ]
    place = {
        "first": 0,
        "second": 1,
        "third": 2,
        "fourth": 3,
        "last": -1,
        "1st": 0,
        "2nd": 1,
        "3rd": 2,
        "4th": 3,
    }[match["nth"].lower()]
    return days[place]


def short_weekday(match: re.Match[str], today: Day) -> Day | None:
    """As in "next tue", written short."""
    wanted = next(
        n
        for n, name in enumerate(DAYS)
        if name.startswith((match["weekday"] or match["weekday2"]).lower()[:3])
    )
    which = f"{match['which'] or match['which2'] or ''} {match['after'] or ''}".lower()
    if "next" in which:
        return today - timedelta(days=today.weekday()) + timedelta(days=7 + wanted)
    return coming(match["weekday"] or match["weekday2"], today)
