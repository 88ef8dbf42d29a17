"""Durations: "an hour and a half" is 1.5 hours, 90 minutes or `PT1H30M`.

A parameter of type `duration` with `units` has a number of them; one without has the ISO 8601 form,
which is what `timedelta` arguments of tools take. Months and years are not so many days: they are
durations of their own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from langmem_ext.waiting.catalog.param import ISO_DURATION, Param
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.dates.time_range import time_range
from langmem_ext.waiting.extract.english.tokens import before
from langmem_ext.waiting.extract.english.told import done_by_others
from langmem_ext.waiting.extract.english.vocabulary import split_name
from langmem_ext.waiting.extract.numbers.numerals import WORDS, numerals, words_value
from langmem_ext.waiting.extract.reply import Reply

_NUMBER = (
    r"(?:\d{1,4}(?:[.,]\d{1,2})?|(?:an?\s+)?couple\s+of|a\s+few"
    rf"|another(?=\s+(?:hour|week|month|year|fortnight)\b)|an?|{WORDS})"
)
UNITS: Final[Mapping[str, int]] = {
    "seconds": 1,
    "minutes": 60,
    "hours": 3_600,
    "days": 86_400,
    "weeks": 604_800,
    "months": -1,
    "years": -12,
}
"""The units of durations: their seconds; of months and years, below 0, their months."""

_UNITS = {"hour": 60, "hours": 60, "hrs": 60, "minute": 1, "minutes": 1, "mins": 1}


def unit_of(param: Param, prompt: str = "") -> int | None:
    """The minutes in the parameter's unit; None when it counts neither hours nor minutes."""
    if param.units in UNITS and UNITS[param.units] % 60 == 0 and UNITS[param.units] <= 3_600:
        return UNITS[param.units] // 60
    for words in (
        split_name(param.name),
        re.findall(r"[a-z]+", param.description.lower()),
        re.findall(r"[a-z]+", prompt.lower()),
    ):
        units = {_UNITS[word] for word in words if word in _UNITS}
        if units:
            return units.pop() if len(units) == 1 else None
    return None


def _number(written: str | None) -> float | None:
    if written is None:
        return 0.0
    low = written.lower().replace(",", ".")
    if low[0].isdigit():
        return float(low)
    if low in ("a", "an", "another"):
        return 1.0
    return 2.0 if "couple" in low else None if "few" in low else words_value(low)


def _share(written: str | None) -> float:
    low = (written or "").lower()
    return 0.0 if not low else 0.75 if "three" in low else 0.5 if low == "half" else 0.25


def durations(param: Param, text: str, prompt: str = "") -> list[Candidate]:
    """The lengths of time in `text`, in the parameter's unit; none if it counts something else."""
    unit = unit_of(param, prompt)
    if unit is None:
        return []
    candidates = []
    for start, end, seconds, months in lengths(text):
        value = round(seconds / 60 / unit, 4)
        if not months and seconds % UNITS["days"]:
            number = int(value) if value.is_integer() else value
            candidates.append(Candidate(start, end, number, 0.95, 3, "length of time in its unit"))
    return candidates


# -- of the type duration

_NAMES: Final = (
    ("seconds", r"seconds?|secs?|s"),
    ("minutes", r"minutes?|mins?|m"),
    ("hours", r"hours?|hrs?|h"),
    ("days", r"days?|nights?|d"),
    ("weeks", r"weeks?|wks?|w"),
    ("fortnights", r"fortnights?"),
    ("months", r"months?"),
    ("years", r"years?|yrs?"),
)
_UNIT = "|".join(rf"(?P<{unit}>{written})" for unit, written in _NAMES)
_HALF = r"(?:half|(?:a\s+)?quarter|three[\s-]+quarters)"
_AND_HALF = (
    r"(?:\s*(?:\b(?:and?|n)\b|&|['’]n['’]?)\s*(?:\ban?\s+)?(?P<{}>half|quarter)\b"
    r"(?!\s+(?:past|price|term|day|board)\b))"
)
"""A half more: "an hour and a half", "an hour n half"."""
_PIECE = re.compile(
    rf"(?<![\w.,:$€£])(?:(?P<part>{_HALF})(?:\s+of)?\s+an?\s+"
    rf"|(?P<count>{_NUMBER}){_AND_HALF.format('more')}?[\s-]*(?:(?:full|whole|good|solid|more|extra|further)\s+)?"
    rf"|(?=hour{_AND_HALF.format('bare')}))"
    rf"(?:{_UNIT})(?![^\W\d_]){_AND_HALF.format('half')}?",
    re.IGNORECASE,
)
_MINUTES = re.compile(
    r"\s+(?P<minutes>[1-5]\d|ten|fifteen|twenty(?:[\s-]five)?|thirty|forty(?:[\s-]five)?)"
    r"(?=\s*(?:$|[.,;!?)](?!\d)|(?:please|pls|or so|max|then|thanks)\b))",
    re.IGNORECASE,
)
"""Minutes without their unit behind hours: "an hour twenty"."""
_HOURS_AND = re.compile(
    r"(?<![\w.,:])(?P<hours>\d{1,3})\s?h\s?(?P<minutes>[0-5]?\d)(?:\s?m(?:in)?)?(?!\w)",
    re.IGNORECASE,
)
_ISO = re.compile(rf"(?<!\w){ISO_DURATION.pattern}(?!\w)")
_BETWEEN = re.compile(r"\s*(?:,\s*and|,|and?\b|n\b|&)?\s*", re.IGNORECASE)
_RANGE = re.compile(rf"(?:\d|\b(?:{WORDS}))\s*(?:-|–|to|or)\s*$", re.IGNORECASE)
_OF_RATE = re.compile(
    rf"(?:\d[k%]?|[$€£]|\b(?:{WORDS}|hundred|thousand|grand|k|once|twice|times|max(?:imum)?|tops|most"
    r"|minimum|dollars?|bucks?|euros?|pounds?|quid|pence|cents?|pcm|hours?|hrs?|minutes?|mins?|days?"
    r"|nights?|mornings?|afternoons?|evenings?|visits?|sessions?|lessons?|much|many))\s*$",
    re.IGNORECASE,
)
"""Words of how much or how often something is, in the unit of time behind them."""


def is_rate(text: str, start: int) -> bool:
    """Whether "a month" says of what comes before it how much it is in one: "950 a month"."""
    return _OF_RATE.search(before(text, start)) is not None


_MOMENT = re.compile(r"\b(?:in|within|after)\s+(?:about\s+|just\s+)?$", re.IGNORECASE)
_COUNTED = re.compile(
    r"\s+(?:ago|before|after|later|from(?!\s+(?:the\s+|[a-z]{3,6}day\s+)?\d|\s+[a-z]{3,9}\s+\d)|earlier|old)\b",
    re.IGNORECASE,
)
_LASTS = re.compile(r"\bfor\s+(?:about\s+|just\s+)?$", re.IGNORECASE)
_FROM = re.compile(r"\s+from\b(?!\s+(?:now|today)\b)", re.IGNORECASE)
"""Around a length that begins on a day: "for 3 nights from friday"."""


def lengths(text: str) -> list[tuple[int, int, float, float]]:
    """Every length of time of `text`: its span, its seconds, and its months."""
    pieces = sorted(_pieces(text), key=lambda piece: (piece[0], -piece[1]))
    joined: list[tuple[int, int, float, float]] = []
    for start, end, seconds, months in pieces:
        if joined and start < joined[-1][1]:
            continue
        if (
            joined
            and _BETWEEN.fullmatch(text, joined[-1][1], start)
            and _smaller((seconds, months), joined[-1])
        ):
            first = joined.pop()
            joined.append((first[0], end, first[2] + seconds, first[3] + months))
        else:
            joined.append((start, end, seconds, months))
    return joined


def _smaller(piece: tuple[float, float], whole: tuple[int, int, float, float]) -> bool:
    """Whether a length is less than one unit of another: half an hour, of "two hours"."""
    seconds, months = whole[2:]
    unit = next((size for size in _SIZES if seconds and seconds % size == 0), 0)
    return piece[1] < months or (piece[1] == months and piece[0] < (unit or seconds))


_SIZES = (604_800, 86_400, 3_600, 60)
"""Weeks, days, hours and minutes, in seconds."""


def _pieces(text: str) -> list[tuple[int, int, float, float]]:
    pieces = [
        (
            match.start(),
            match.end(),
            3_600.0 * int(match["hours"]) + 60 * int(match["minutes"]),
            0.0,
        )
        for match in _HOURS_AND.finditer(text)
    ]
    for match in _ISO.finditer(text):
        counts = {unit: int(count) for unit, count in match.groupdict().items() if count}
        seconds = sum(
            float(count * UNITS[unit]) for unit, count in counts.items() if UNITS[unit] > 0
        )
        months = sum(
            float(-count * UNITS[unit]) for unit, count in counts.items() if UNITS[unit] < 0
        )
        pieces.append((match.start(), match.end(), seconds, months))
    for match in _PIECE.finditer(text):
        count = _share(match["part"]) if match["part"] else _number(match["count"] or "a")
        unit = next(unit for unit, _ in _NAMES if match[unit])
        if len(match[unit]) == 1 and not re.match(r"\d", match["count"] or ""):
            continue  # "a m" is no minute
        if count is None or _RANGE.search(before(text, match.start())):
            continue
        if re.fullmatch("an?", match["count"] or "", re.I) and is_rate(text, match.start()):
            continue
        count += _share(match["more"]) + _share(match["half"])
        size = 14 * UNITS["days"] if unit == "fortnights" else UNITS[unit]
        end = match.end()
        seconds = float(count * size) if size > 0 else 0.0
        if unit == "hours" and (more := _MINUTES.match(text, end)):
            end = more.end()
            seconds += 60 * (_number(more["minutes"]) or 0)
        pieces.append((match.start(), end, seconds, -count * size if size < 0 else 0.0))
    return pieces


def value_of(param: Param, seconds: float, months: float) -> int | float | str | None:
    """A length of time as the parameter has it; None where its units cannot say it."""
    if not param.units:
        return _iso(seconds, months)
    size = UNITS.get(param.units, 1)
    if (size < 0 and seconds) or (size > 0 and months):
        return None
    count = round((seconds or months) / abs(size), 4)
    return int(count) if count.is_integer() else count


def _iso(seconds: float, months: float) -> str | None:
    """The shortest ISO form; None where it is not whole."""
    left, day = round(seconds), ""
    if left != round(seconds, 6) or months != int(months):
        return None
    years, rest = divmod(int(months), 12)
    days, left = divmod(left, 86_400)
    day = (
        (f"{years}Y" if years else "") + (f"{rest}M" if rest else "") + (f"{days}D" if days else "")
    )
    hours, left = divmod(left, 3_600)
    time = (
        (f"{hours}H" if hours else "")
        + (f"{left // 60}M" if left >= 60 else "")
        + (f"{left % 60}S" if left % 60 else "")
    )
    if not day and not time:
        return "PT0S"
    return f"P{day}" + (f"T{time}" if time else "")


def _asked_unit(param: Param, prompt: str) -> str | None:
    """The unit of a number without one: the parameter's, or what the question names."""
    if param.units:
        return param.units
    for words in (
        split_name(param.name),
        re.findall(r"[a-z]+", f"{param.description} {prompt}".lower()),
    ):
        named = {unit for unit in UNITS for word in words if word in (unit, unit.rstrip("s"))}
        if len(named) == 1:
            return named.pop()
    return None


def _known_unit(known: object) -> str | None:
    """The unit of a known length of time that has one: hours of `PT3H`."""
    match = _ONE_UNIT.fullmatch(str(known))
    return _BY_LETTER[match[1] or match[2]] if match else None


_CHANGES: Final = re.compile(
    r"\W*(?:(?:o+h|ah|um|no|sorry|wait|actually|rather|can|could|may|let['’]?s|i|we|you|it|that|make|change|say|to|for"
    r"|just|only|please|pls|instead|then|ok(?:ay)?|start|with|better|do|have|want|need|['’]d|like)\W+)*"
    r"(?:\d+(?:\.\d+)?|[a-z]+)"
    r"(?:\W+(?:instead|please|pls|then|rather|now|thanks|would|be|better))*\W*",
    re.IGNORECASE,
)
"""A message that only puts a number in the place of another: "could we make it 5 instead"."""
_ONE_UNIT: Final = re.compile(r"PT\d+([HM])|P\d+(D)")
_BY_LETTER: Final = {"H": "hours", "M": "minutes", "D": "days"}


_AVAILABLE: Final = re.compile(
    r"\b(?:any\s?time|free|available|in|home|around|here|open|between|ring|call|phone|deliver\w*"
    r"|collect\w*|come|someone|somebody)\b[^.;!?]*$",
    re.IGNORECASE,
)
"""Words before hours within which something may happen, and does not last so long."""


def _from_until(param: Param, reply: Reply) -> list[Candidate]:
    """How long a range of hours is, "from 4pm till 6pm"; its span is the second hour's."""
    hours, text = time_range(reply.text), reply.text
    if hours is None or (reply.strict and _AVAILABLE.search(text, 0, hours.begins[0])):
        return []
    start, end, readings = hours.ends
    if not _OF_CLOCK.search(text, max(0, hours.begins[0] - len("from ")), end + 4):
        return []  # "4 to 6" may be so many hours
    lasts = {
        last - first
        for first in hours.begins[2]
        for last in readings
        if 0 < last - first <= _LONGEST
    }
    value = value_of(param, 60.0 * lasts.pop(), 0.0) if len(lasts) == 1 else None
    return [] if value is None else [Candidate(start, end, value, 0.85, reason="from until when")]


_OF_CLOCK: Final = re.compile(r"\b(?:from|till?|until|half|quarter)\b|:|[ap]\.?m\b", re.I)
_UNTIL: Final = re.compile(r"\b(?:till?|until|by|from)\s+$", re.IGNORECASE)
_LONGEST: Final = 12 * 60
"""Minutes of a range of hours, at most."""


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The durations of a reply; a bare number only as the answer to a question with a unit."""
    candidates = []
    for start, end, seconds, months in lengths(reply.text):
        value = value_of(param, seconds, months)
        lead = before(reply.text, start)
        lasts = _LASTS.search(lead) and _FROM.match(reply.text, end)
        when = not lasts and (_MOMENT.search(lead) or _COUNTED.match(reply.text, end))
        past = reply.strict and done_by_others(lead)
        if value is not None and not (when and reply.strict) and not past:
            candidates.append(
                Candidate(start, end, value, 0.95 if not when else 0.6, reason="length of time")
            )
    unit = _asked_unit(param, reply.prompt) or (
        _known_unit(reply.filled.get(param.name)) if _CHANGES.fullmatch(reply.text) else None
    )
    if unit in (None, "hours", "minutes"):
        candidates = candidates or _from_until(param, reply)
    numbers = numerals(reply.text)
    if candidates or reply.strict or unit is None or len(numbers) != 1 or _PIECE.search(reply.text):
        return candidates
    for number in numbers:
        size = UNITS.get(unit, 1)
        amount = float(number.value) * abs(size)
        value = value_of(param, amount if size > 0 else 0.0, amount if size < 0 else 0.0)
        until = _UNTIL.search(before(reply.text, number.start))
        if number.value > 0 and value is not None and not until:
            candidates.append(
                Candidate(number.start, number.end, value, 0.75, reason="number of its units")
            )
    return candidates
