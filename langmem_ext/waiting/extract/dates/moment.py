"""A day with a time of day, normalised to the local `YYYY-MM-DDTHH:MM`: "tomorrow at 5pm".

Days and times are read by the grammars of `date` and `time`; here each time finds its day. Where a
moment is known already, a day or a time alone changes that part of it; where its day is, a time
alone is on that day. Else a time alone is today's, or tomorrow's where it has passed, and is not
sure.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from langmem_ext.waiting.catalog.param import Extraction, Param
from langmem_ext.waiting.extract.candidate import Candidate, outside
from langmem_ext.waiting.extract.dates import date, time
from langmem_ext.waiting.extract.dates.replacement import wished_first
from langmem_ext.waiting.extract.english.tokens import before
from langmem_ext.waiting.extract.english.told import is_told_as_past
from langmem_ext.waiting.extract.numbers.duration import lengths
from langmem_ext.waiting.extract.reply import Reply

_ISO: Final = re.compile(r"(?<![\w-])\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?!\d)")
_NOW: Final = re.compile(
    r"\b(?:right now|immediately|straight away|asap|as soon as possible"
    r"|now(?!\s+(?:he|she|they|tells?|says?|wants?|thinks?|he['’]?s|she['’]?s)\b))\b",
    re.IGNORECASE,
)
_IN: Final = re.compile(r"\bin\s+(?:about\s+|around\s+|just\s+)?$", re.IGNORECASE)
_FROM_NOW: Final = re.compile(r"\s+from\s+now\b", re.IGNORECASE)
_NEAR: Final = 40
"""Characters between a day and its time, at most."""
_ALONE: Final = 0.5
"""Confidence in a time of which nothing says the day."""


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The moments of a reply; a time alone only as the answer to a question."""
    written = [*_written(reply), *_ahead(reply)]
    spans = [(moment.start, moment.end) for moment in written]
    days = outside(date.read(param, reply), spans)
    times = outside(time.read(param, reply), spans)
    moments = wished_first(param, reply, [*written, *_joined(param, reply, days, times)])
    said = str(reply.filled.get(param.name))
    if not moments and (known := _known(said)):
        moments = _changed(known, days, times)
    if not moments and not days and _DAY.fullmatch(said):
        moments = [_on_day(said, hour) for hour in times]
    if moments or reply.strict:
        return moments
    if times:
        return [_today(reply, hour) for hour in times]
    return [
        _at(match.start(), match.end(), reply.now, 0.6, "now")
        for match in _NOW.finditer(reply.text)
    ]


def _at(start: int, end: int, moment: datetime, confidence: float, reason: str) -> Candidate:
    return Candidate(start, end, f"{moment:%Y-%m-%dT%H:%M}", confidence, reason=reason)


def _written(reply: Reply) -> list[Candidate]:
    """Moments in the form of ISO 8601."""
    moments = []
    for match in _ISO.finditer(reply.text):
        try:
            moment = datetime.fromisoformat(match.group())
        except ValueError:
            continue
        moments.append(_at(match.start(), match.end(), moment, 0.98, "date and time"))
    return moments


def _ahead(reply: Reply) -> list[Candidate]:
    """Moments counted from now in hours and minutes: "in an hour and a half"."""
    moments = []
    for start, end, seconds, months in lengths(reply.text):
        lead = _IN.search(before(reply.text, start))
        after = _FROM_NOW.match(reply.text, end)
        if months or seconds % 86_400 == 0 or not (lead or after) or seconds > 10**9:
            continue  # days ahead are days without a time
        begin = start if lead is None else start - len(lead.group())
        moment = reply.now + timedelta(seconds=seconds)
        moments.append(_at(begin, after.end() if after else end, moment, 0.9, "time from now"))
    return moments


def _joined(
    param: Param, reply: Reply, days: list[Candidate], times: list[Candidate]
) -> list[Candidate]:
    """Each day with the time next to it, or an answer's only day with its only time."""
    moments = []
    only = (
        not reply.strict
        and len(days) == len(times) == 1
        and not is_told_as_past(before(reply.text, days[0].start))
    )
    for day in days:
        near = [
            hour
            for hour in times
            if only or (_gap(day, hour) <= _NEAR and not _apart(reply.text, day, hour, days))
        ]
        if not near:
            continue
        hour = min(near, key=lambda hour: (_gap(day, hour), -hour.confidence))
        start, end = min(day.start, hour.start), max(day.end, hour.end)
        readings = [
            f"{value}T{clock}"
            for value in _meant_days(param, reply, day, hour)
            for clock in (hour.value, *hour.alternatives)
        ]
        confidence = min(day.confidence, hour.confidence)
        moments.append(
            Candidate(
                start,
                end,
                readings[0],
                confidence,
                day.fit,
                "day and time",
                tuple(readings[1:]),
                hour.undecided,
            )
        )
    return moments


def _meant_days(param: Param, reply: Reply, day: Candidate, hour: Candidate) -> list[str]:
    """The days that may be meant; one where only the half of the day has to be asked for."""
    days = [str(value) for value in (day.value, *day.alternatives)]
    if day.undecided or not hour.undecided:
        return days
    ahead = [value for value in days if value >= f"{reply.now:%Y-%m-%d}"]
    return ahead[:1] if param.future and ahead else days[:1]


_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")


def _known(said: str) -> datetime | None:
    """The moment that is known already; None for a day without a time."""
    try:
        return None if _DAY.fullmatch(said) else datetime.fromisoformat(said)
    except ValueError:
        return None


def _on_day(day: str, hour: Candidate) -> Candidate:
    """A time on the day that was said before it."""
    value, *others = (f"{day}T{clock}" for clock in (hour.value, *hour.alternatives))
    return replace(hour, value=value, alternatives=tuple(others), reason="time of a known day")


def _changed(known: datetime, days: list[Candidate], times: list[Candidate]) -> list[Candidate]:
    """The known moment on another day, or at another time.

    Where the time leaves its half of the day open, the reading nearest to the known hour is taken.
    """
    moments = [
        replace(day, value=f"{day.value}T{known:%H:%M}", alternatives=(), reason="another day")
        for day in days
    ]
    for hour in times:
        clocks = sorted(
            map(str, (hour.value, *hour.alternatives)),
            key=lambda clock: abs(int(clock[:2]) - known.hour),
        )
        clock = clocks[0] if hour.undecided else hour.value
        value = f"{known:%Y-%m-%d}T{clock}"
        moments.append(
            replace(hour, value=value, alternatives=(), undecided=False, reason="another time")
        )
    return moments


def _gap(day: Candidate, hour: Candidate) -> int:
    return max(hour.start - day.end, day.start - hour.end, 0)


def _apart(text: str, day: Candidate, hour: Candidate, days: list[Candidate]) -> bool:
    """Whether another day, or the end of a sentence, is between a day and a time."""
    start, end = min(day.end, hour.end), max(day.start, hour.start)
    between = text[start:end] if start < end else ""
    other = any(start <= third.start and third.end <= end for third in days if third is not day)
    return other or re.search(r"[!?;\n]|\.\s", between) is not None


def _today(reply: Reply, hour: Candidate) -> Candidate:
    """A time alone, on the first day on which it lies ahead."""

    def ahead(clock: object) -> str:
        moment = datetime.combine(reply.now.date(), datetime.strptime(str(clock), "%H:%M").time())
        late = moment <= reply.now.replace(tzinfo=None)
        return f"{moment + timedelta(days=late):%Y-%m-%dT%H:%M}"

    return replace(
        hour,
        value=ahead(hour.value),
        alternatives=tuple(map(ahead, hour.alternatives)),
        confidence=min(hour.confidence, _ALONE),
        reason="time without a day",
    )


def half_said(param: Param, reply: Reply) -> Extraction | None:
    """What a reply lacks that names a day without a time; None for any other.

    Where nothing was asked it is the only day of the message, and none that is past.
    """
    days = date.read(param, reply)
    past = param.future and bool(days) and str(days[0].value) < f"{reply.now:%Y-%m-%d}"
    if not days or (reply.strict and (len(days) > 1 or past)):
        return None
    start, end = days[0].start, days[0].end
    return Extraction(
        "abstained",
        None,
        reply.text[start:end],
        (start, end),
        days[0].confidence,
        "no time of day",
        problem="it must have a time of day, too",
        half=str(days[0].value),
    )
