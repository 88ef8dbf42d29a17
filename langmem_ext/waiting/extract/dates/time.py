"""Times of day: an own grammar of what people write, normalised to `HH:MM`.

An hour from 1 to 11 without anything beside it may be in the morning or in the evening. Words of
the message, of the question or of the parameter decide, and at last the parameter's bounds; where
nothing does, both readings stay.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate, longest, outside
from langmem_ext.waiting.extract.dates.daypart import DayPart, common, day_parts, nearest
from langmem_ext.waiting.extract.dates.mentioned import dates
from langmem_ext.waiting.extract.dates.replacement import wished_first, without_old
from langmem_ext.waiting.extract.dates.spelling import Spelled
from langmem_ext.waiting.extract.dates.time_range import time_range
from langmem_ext.waiting.extract.english.lexicon import word_set
from langmem_ext.waiting.extract.english.roles import TIME_CUES, with_roles
from langmem_ext.waiting.extract.english.tokens import before
from langmem_ext.waiting.extract.names.address import addresses
from langmem_ext.waiting.extract.numbers.numerals import UNITS, WORDS, words_value
from langmem_ext.waiting.extract.reading_cache import remembered
from langmem_ext.waiting.extract.reply import Reply

_HALF_DAY, _DAY = 12 * 60, 24 * 60
_HOUR_WORD = "|".join(
    sorted((word for word, value in UNITS.items() if 1 <= value <= 12), key=len, reverse=True)
)
_HOUR = rf"(?P<hour>\d{{1,2}}(?!\d)|(?:{_HOUR_WORD})\b)"
_MINUTE_WORDS = (
    "five|ten|twenty(?:[- ]five)?|fifteen|thirty|thirty[- ]five|forty(?:[- ]five)?|fifty(?:[-"
    " ]five)?|oh[- ]five"
)
_MERIDIEM = r"(?:(?P<meridiem>[ap])\.?\s?m\b\.?)"
_PART = (
    r"(?:in the|at|this|that|tomorrow|in|during"
    r" the)\s+(?:morning|afternoon|evening|night)|(?:for|at)\s+(?:lunch|dinner|supper|breakfast)"
    r"|tonight|tonite|morning|afternoon|evening"
)
_BEFORE = r"(?:(?:morning|afternoon|evening|night)(?:\s+(?:at|around))?\s+)?"
_CLOCK = r"o\s?[\"'’`]?\s?clock"
_ISH = r"(?:\s?-?ish\b)"
_AFTER = rf"(?:-?ish\b)?(?:{_ISH}?\s*(?:{_MERIDIEM})|\s+(?:{_PART})\b)?"
_OTHER_THINGS = (
    r"(?!\s+(?:people|persons?|members?|others?|pax|of\b|guests?|tickets?|seats?|days?|nights?"
    r"|weeks?|months?|hours?|hrs?|minutes?|mins?|adults?"
    r"|kids?|child(?:ren)?|friends?|dollars?|bucks?|euros?|pounds?|quid|percent|miles?|km|rooms?"
    r"|tables?|years?|stars?|or(?!"
    r" so\b))\b"
    r"|\s*[%$€£])"
)
_PAST = (
    rf"(?P<past>half|quarter|{_MINUTE_WORDS})(?:\s*(?:minutes|mins?))?"
    rf"|(?P<minutes>\d{{1,2}})\s*(?:minutes|mins?)"
)

_GRAMMAR = tuple(
    (re.compile(source, re.I), confidence, reason)
    for source, confidence, reason in (
        (
            rf"\b{_BEFORE}(?:{_PAST})[\s-]+(?P<side>past|after|to|before|till"
            rf"|of)\s+{_HOUR}(?!\s*[:\d]){_OTHER_THINGS}(?:\s*{_CLOCK})?"
            rf"{_AFTER}",
            0.95,
            "time in words",
        ),
        (
            rf"\b{_BEFORE}(?P<minutes>\d{{1,2}})\s+(?P<side>past"
            rf"|after)\s+{_HOUR}(?!\s*[:\d]){_OTHER_THINGS}(?:\s*{_CLOCK})?{_AFTER}",
            0.95,
            "time in words",
        ),
        (
            rf"\b(?P<past>half)[\s-]+{_HOUR}(?![\s-]*(?:[:\d]|dozen|hour"
            rf"|price)){_OTHER_THINGS}{_AFTER}",
            0.9,
            "time in words",
        ),
        (
            rf"\b(?P<amount>\d{{1,2}}|an?|half\s+an|(?:a\s+)?quarter\s+of\s+an|{_MINUTE_WORDS}|two"
            rf"|three)\s+(?P<unit>minutes?|mins?|hours?)\s+"
            rf"(?P<side>before|after|past)\s+(?:(?P<noon>noon|midday|midnight)\b"
            rf"|{_HOUR}(?:\s?[:.]\s?(?P<minute>\d{{2}}))?(?!\d){_OTHER_THINGS}"
            rf"(?:\s*{_CLOCK})?{_AFTER})",
            0.95,
            "time before or after another",
        ),
        (
            rf"(?<![\d:.$€£])\b(?:(?<=from )|(?!(?<=between )|(?:5|10|20|25)\s+to\b))"
            rf"{_HOUR}(?:[:.](?P<minute>\d{{2}}))?(?=\s*(?:[-–—]|\b(?:to|till?|until)\b)"
            rf"\s*(?P<end>\d{{1,2}}|{_HOUR_WORD})(?:[:.]\d{{2}})?\s*"
            rf"{_MERIDIEM})",
            0.95,
            "beginning of a range",
        ),
        (
            rf"(?<![\d:.])\b{_BEFORE}{_HOUR}\s?:\s?(?P<minute>\d{{2}})(?!\d|:\d){_AFTER}",
            0.97,
            "clock time",
        ),
        (
            rf"(?<![\d:.$€£])\b{_BEFORE}{_HOUR}[.](?P<minute>\d{{2}})(?!\d)(?:\s*{_MERIDIEM}"
            rf"|\s+(?:{_PART})\b)",
            0.95,
            "clock time",
        ),
        (
            rf"(?<![\d:.$€£])\b{_BEFORE}(?P<hour>\d{{1,2}})(?P<minute>\d{{2}})\s*{_MERIDIEM}",
            0.9,
            "clock time",
        ),
        (
            (
                r"(?<![\d:.])\b(?P<hours>\d{1,2})\s*(?:h|hr)\s?(?P<minute>\d{2})?(?!\w)(?<!r"
                r" h)|(?<![\d:.])\b(?P<hours2>\d{1,2})\s?hrs?(?!\w)"
            ),
            0.85,
            "clock time",
        ),
        (
            rf"(?<![\d:.])\b{_BEFORE}{_HOUR}(?:[\s-]+(?P<minute_words>{_MINUTE_WORDS}))?"
            rf"(?:\s*{_CLOCK})?{_ISH}?"
            rf"(?:\s*{_MERIDIEM}|\s+(?P<part>{_PART})\b)",
            0.95,
            "hour with its part of the day",
        ),
        (rf"(?<![\d:.])\b{_BEFORE}{_HOUR}\s*{_CLOCK}{_AFTER}", 0.95, "o'clock"),
        (
            rf"\b(?P<part>morning|afternoon|evening|tonight|tonite|lunch|dinner"
            rf"|breakfast)\s+(?!one\b)(?:at\s+|around\s+|about\s+)?{_HOUR}"
            rf"(?:-?ish\b)?(?![:/.]\d|(?:st|nd|rd|th)\b){_OTHER_THINGS}",
            0.9,
            "hour with its part of the day",
        ),
        (
            rf"\b(?<!good )(?P<part>morning|afternoon|evening|tonight|tonite)\s*,\s*"
            rf"(?:(?:at|around|about|say|maybe|perhaps|like|so|ideally)\s+){{0,2}}{_HOUR}"
            rf"(?:-?ish\b)?(?=\s*(?:$|[.,;!?)](?!\d)|(?:say|ideally|if|maybe|perhaps|please|pls"
            r"|or so)\b))",
            0.85,
            "hour with its part of the day",
        ),
        (
            r"\b(?:(?:12|twelve)\s+)?(?P<noon>noon|midday|noontime|midnight)\b",
            0.95,
            "noon or midnight",
        ),
    )
)
_AHEAD = re.compile(
    r"\bin\s+(?:about\s+)?(?P<count>\d{1,3}|an?|half"
    rf" an|{WORDS})\s+(?P<unit>minutes?|mins?|hours?|hrs?)\b(?:\s+time)?",
    re.I,
)
_BARE_WORD = "|".join(
    sorted((word for word, value in UNITS.items() if value), key=len, reverse=True)
)
_BARE = re.compile(
    rf"(?:^\W*(?:(?:no|not|now|then)\W+)?|[,.;!?]\s+|\b(?:better|rather|u+m+|u+h+|do|near|closer"
    rf" to|have|make|preferably|at"
    rf"|around|about|by|approximately|say|maybe"
    rf"|it|for|is|be|before|after|till|until|from|to|past|like|please|roughly|than|yes|ok|okay|sure"
    rf"|only|let'?s|and|then|so|til|tomorrow|today"
    rf"|tonight|(?:morn|even)ing|afternoon|day)[,.]?\s+)"
    rf"(?:(?P<five>5|10|20|25|five|ten|twenty)\s+to\s+{_HOUR}"
    rf"|(?P<clock>\d{{1,2}})(?:[.,](?P<minute>[0-5]\d))?|(?P<military>\d{{3,4}})"
    rf"|(?P<word>{_BARE_WORD})(?:[\s-]+(?P<minute_words>{_MINUTE_WORDS}))?)"
    rf"(?:\s*(?:hours|hrs?)|(?P<ish>-?ish\b)|\s-?ish\b)?(?![\w:/]|[.,]\d|-\w){_OTHER_THINGS}",
    re.I,
)
_AT = re.compile(
    r"\b(?:(?:at|around|about|by|from|before|after|until|till)\s+(?:around\s+|about\s+)?|(?:morning"
    r"|afternoon|evening|tonight)[,\s]\s*)"
    rf"{_HOUR}(?:[.](?P<minute>[0-5]\d))?(?P<ish>-?ish\b)?(?![\w:/%]|[.,]\d|-\w)"
    r"(?=\s*(?P<next>[A-Za-z'’]*))"
)
_ISH_ALONE = re.compile(
    rf"(?<![\w.,:/$€£-]){_HOUR}(?:[.:](?P<minute>[0-5]\d))?\s?-?(?P<ish>ish)\b"
    r"(?=\s*(?:$|[.,;!?)]|(?:please|pls|if|on|in|or so|would|works?|then|today"
    r"|tomorrow|tonight)\b))",
    re.I,
)
_FOLLOWS = word_set(
    "for on with and but please if when under in tomorrow today tonight this next then thanks name"
    " my we i it is will would so because since as instead sharp latest rather too works monday"
    " tuesday wednesday thursday friday saturday sunday mon tue tues wed thu thur thurs fri sat sun"
    " ish or table booking about regarding re concerning"
)
"""Words that may follow an hour that is named by "at 8" alone; a noun would make it a count, a name
an address."""
_TO_DO = re.compile(rf"\s*to\s+(?!\d|(?:{_HOUR_WORD}|noon|midnight|the|half|quarter)\b)", re.I)
"""What follows an hour at which something is done: "at 10 to see the flat"."""
_COUNTED = re.compile(
    r"\b(?:table|party|group|booking|reservation|seats?|places?|room|dinner|lunch|us)\s+(?:for"
    r"|of)\s+(?:the\s+)?$",
    re.I,
)
_TODAY = re.compile(r"to|this", re.I)
_CLOCK_CUE = re.compile(
    r"\b(?:at|around|by|before|after|until|till)\s+(?:about\s+|around\s+)?$", re.I
)
_HOURS = re.compile(r"\s*h(?:ou)?rs?\b", re.I)
_FOR = re.compile(r"\b(?:for|of)\s+(?:the\s+)?$", re.I)


def _hour(text: str) -> int:
    return int(text) if text.isdigit() else UNITS[text.lower()]


def _minutes(text: str) -> int:
    low = text.lower().split()[-1]
    if low in ("half", "quarter"):
        return 30 if low == "half" else 15
    return int(low) if low.isdigit() else words_value(text.lower().replace("oh", "zero")) or 0


def _written(minutes: int) -> str:
    return f"{minutes // 60 % 24:02d}:{minutes % 60:02d}"


def _candidate(
    start: int, end: int, minutes: int, confidence: float, reason: str, *, likely: bool = False
) -> Candidate:
    """A time on a clock of twelve hours in both readings; `likely` prefers the first."""
    early = minutes % _HALF_DAY
    readings = (early, early + _HALF_DAY) if early >= 60 else (early + _HALF_DAY, early)
    undecided = early >= 60 and not likely
    return Candidate(
        start,
        end,
        _written(readings[0]),
        confidence,
        0,
        reason,
        (_written(readings[1]),),
        undecided,
    )


def _shift(groups: dict[str, str]) -> int:
    """By how many minutes a phrase moves the hour that it names: -15 for "quarter to"."""
    if "amount" in groups:
        amount, hours = groups["amount"].lower(), groups["unit"].lower().startswith("h")
        count = (
            0.5
            if "half" in amount
            else 0.25
            if "quarter" in amount
            else 1
            if amount in ("a", "an")
            else _minutes(amount)
        )
        shift = round(count * (60 if hours else 1))
    else:
        shift = _minutes(groups.get("past") or groups.get("minutes") or "0")
    return -shift if groups.get("side", "").lower() in ("to", "before", "till", "of") else shift


def _read(
    match: re.Match[str], start: int, end: int, confidence: float, reason: str
) -> Candidate | None:
    """The time that a match of the grammar names; None where the clock has none such."""
    groups = {name: text for name, text in match.groupdict().items() if text}
    shift = _shift(groups)
    if "noon" in groups:
        noon = 0 if groups["noon"].lower() == "midnight" else _HALF_DAY
        return Candidate(start, end, _written((noon + shift) % _DAY), confidence, 0, reason)
    written = groups.get("hours") or groups.get("hours2") or groups["hour"]
    hour = _hour(written)
    minute = (
        int(groups["minute"])
        if "minute" in groups
        else _minutes(groups["minute_words"])
        if "minute_words" in groups
        else 0
    )
    meridiem = groups.get("meridiem", "").lower()
    if hour > 24 or minute > 59 or abs(shift) > 180 or (meridiem and not 1 <= hour <= 23):
        return None
    if "end" in groups and hour <= 12:
        end_hour = _hour(groups["end"]) % 12 + 12 * (meridiem == "p")
        hour = hour % 12 + 12 * (hour % 12 + 12 < end_hour)
    elif meridiem:
        hour = hour % 12 + 12 * (meridiem == "p") if hour <= 12 else hour
    elif 0 < hour <= 12 and not written.startswith("0") and "hours" not in groups:
        # With its minutes, an hour of two digits is mostly written on a clock of 24.
        return _candidate(
            start,
            end,
            60 * hour + minute + shift,
            confidence,
            reason,
            likely="minute" in groups and hour >= 10,
        )
    return Candidate(
        start, end, _written((60 * hour + minute + shift) % _DAY), confidence, 0, reason
    )


def _decided(candidate: Candidate, part: DayPart | None, *, only: bool) -> Candidate:
    """The candidate with only the reading that lies in a part of the day.

    With `only`, the other reading is dropped.
    """
    if part is None or not candidate.alternatives:
        return candidate
    readings = (candidate.value, *candidate.alternatives)
    inside = [
        value for value in readings if part.holds(60 * int(str(value)[:2]) + int(str(value)[3:]))
    ]
    if len(inside) != 1:
        return candidate
    rest = () if only else tuple(value for value in readings if value != inside[0])
    return replace(candidate, value=inside[0], alternatives=rest, undecided=False)


def _in_part(text: str, candidates: list[Candidate]) -> list[Candidate]:
    """The candidates, decided by the words of the message that speak of a part of the day."""
    parts = day_parts(text) if any(candidate.alternatives for candidate in candidates) else []
    return [
        _decided(candidate, nearest(parts, candidate.start, candidate.end), only=True)
        for candidate in candidates
    ]


def _may_count(match: re.Match[str]) -> bool:
    """Whether an hour may as well be a number of people: "for 2 tonight"."""
    today = "part" in match.re.groupindex and match["part"] and _TODAY.match(match["part"])
    return bool(today) and _FOR.search(before(match.string, match.start("hour"))) is not None


def _is_length(match: re.Match[str]) -> bool:
    """Whether "2h" is a duration: a small hour without minutes and without "at" before it."""
    groups = match.groupdict()
    written = groups.get("hours") or groups.get("hours2")
    if not written or groups.get("minute") or written.startswith("0") or int(written) > 12:
        return False
    return _CLOCK_CUE.search(before(match.string, match.start())) is None


@remembered
def times(text: str) -> list[Candidate]:
    """Every time of day that `text` clearly names, in its order."""
    candidates, spelled = [], Spelled(text)
    text = spelled.text
    for pattern, confidence, reason in _GRAMMAR:
        for match in pattern.finditer(text):
            end = match.start() + len(match.group().rstrip())
            if text[end - 1] == "." and not re.search(r"[ap]\.\s?m\.$", text[:end], re.I):
                end -= 1
            time = (
                None
                if _may_count(match) or _is_length(match)
                else _read(match, match.start(), end, confidence, reason)
            )
            if time:
                candidates.append(time)
    return [
        replace(time, start=spelled.place(time.start), end=spelled.place(time.end))
        for time in _in_part(text, longest(candidates))
    ]


@remembered
def at_hours(text: str) -> list[Candidate]:
    """Hours after "at", "around" and the like that do not count or number what follows."""
    hours = []
    for match in _AT.finditer(text):
        does = match.group().lower().startswith("at") and _TO_DO.match(text, match.end())
        name = "" if does else match["next"].lower()
        if (name and name not in _FOLLOWS) or (match["hour"].lower() == "one" and name):
            continue
        end = max(match.end(group) for group in ("hour", "minute", "ish"))
        hours.append(_alone(match, end, "hour after a preposition"))
    taken = [(hour.start, hour.end) for hour in hours if hour]
    about = [
        _alone(match, match.end("ish"), "about an hour") for match in _ISH_ALONE.finditer(text)
    ]
    hours += outside([hour for hour in about if hour], taken)
    return _in_part(text, [hour for hour in hours if hour])


def _alone(match: re.Match[str], end: int, reason: str) -> Candidate | None:
    """The time of an hour that bears no mark; None where the clock has none such."""
    hour, minute = _hour(match["hour"]), int(match["minute"] or 0)
    if not 1 <= hour <= 23 or minute > 59:
        return None
    start, plain = match.start("hour"), hour <= 12 and not match["hour"].startswith("0")
    return (
        _candidate(start, end, 60 * hour + minute, 0.75, reason)
        if plain
        else Candidate(start, end, _written(60 * hour + minute), 0.75, 0, reason)
    )


_DOTTED = re.compile(
    r"(?<![\w.,:/$€£-])(?P<hour>\d{1,2})[.](?P<minute>[0-5]\d)(?![\w/%$€£]|[.,:-]\d)", re.I
)
_BESIDE_DAY = re.compile(r"[\s,]*(?:(?:at|on|the|from|about|around)\s+)?", re.I)


def _beside_days(text: str, days: Sequence[tuple[int, int]]) -> list[Candidate]:
    """Hours and minutes with a point between, next to a day: "thurs 12 march 9.40"."""
    hours = [
        _alone(match, match.end(), "clock time beside a day")
        for match in _DOTTED.finditer(text)
        if any(
            _BESIDE_DAY.fullmatch(text, end, match.start())
            or _BESIDE_DAY.fullmatch(text, match.end(), start)
            for start, end in days
        )
    ]
    return _in_part(text, [hour for hour in hours if hour])


def _ahead(reply: Reply) -> list[Candidate]:
    candidates = []
    for match in _AHEAD.finditer(reply.text):
        count = match["count"].lower()
        hours = match["unit"].lower().startswith("h")
        amount = (
            0.5
            if count == "half an"
            else (
                1 if count in ("a", "an") else int(count) if count.isdigit() else words_value(count)
            )
        )
        if amount is not None:
            moment = reply.now + timedelta(minutes=amount * (60 if hours else 1))
            candidates.append(
                Candidate(
                    match.start(), match.end(), f"{moment:%H:%M}", 0.8, reason="time from now"
                )
            )
    return candidates


def _bare(text: str) -> list[Candidate]:
    """Hours without any mark ("around 8"), which only a question for a time makes times."""
    candidates = []
    streets = [(street.start, street.end) for street in addresses(text)]
    for match in _BARE.finditer(text):
        name, minutes, certain, likely = _bare_reading(match)
        start = match.start(name)
        if (
            minutes is None
            or (name == "word" and _is_one_thing(text, start))
            or _AGED.search(before(text, start))
            or (match["clock"] and minutes <= _HALF_DAY and _lasts(text, start, match.end("clock")))
            or _COUNTED.search(before(text, start))
        ):
            continue
        end = max(match.end(group) for group in (name, "hour", "minute", "minute_words", "ish"))
        if certain:
            candidates.append(Candidate(start, end, _written(minutes), 0.7, 0, "hour alone"))
        else:
            candidates.append(_candidate(start, end, minutes, 0.7, "hour alone", likely=likely))
    return _in_part(text, outside(candidates, streets))


_AGED = re.compile(
    r"\b(?:he|she|youngest|eldest|oldest|son|daughter|boy|girl|kid|child|brother|sister|niece"
    r"|nephew|grand\w+)(?:['’]?s| is| turns) (?:only |just |nearly |almost |about )?$",
    re.I,
)
"""What stands before how old somebody is: "my youngest is nine"."""

_ONE_THING = re.compile(r"one\s+(?P<next>(?!ish\b|o['’]?clock)[a-z]{4,})", re.I)


def _is_one_thing(text: str, start: int) -> bool:
    """Whether something is counted, which is no hour: "one correction"."""
    thing = _ONE_THING.match(text, start)
    return thing is not None and thing["next"].lower() not in _FOLLOWS


def _lasts(text: str, start: int, end: int) -> bool:
    """Whether a number is followed by "hours" and not led by "at"."""
    return _HOURS.match(text, end) is not None and _CLOCK_CUE.search(before(text, start)) is None


def _bare_reading(match: re.Match[str]) -> tuple[str, int | None, bool, bool]:
    """The reading of a bare hour: its group, its minute of the day, and two flags.

    The flags say whether the reading is certain, and whether the morning is likelier. The minute is
    None for a time that does not exist.
    """
    if match["five"]:
        return "five", 60 * _hour(match["hour"]) - _minutes(match["five"]), False, False
    if match["word"]:
        hour, minute = (
            _hour(match["word"]),
            _minutes(match["minute_words"]) if match["minute_words"] else 0,
        )
        name, written = "word", ""
    else:
        name = "military" if match["military"] else "clock"
        written = match[name]
        hour, minute = (
            (int(written[:-2]), int(written[-2:]))
            if match["military"]
            else (int(written), int(match["minute"] or 0))
        )
    if hour > 24 or minute > 59:
        return name, None, False, False
    certain = hour == 0 or hour > 12 or (name != "word" and written.startswith("0"))
    return (
        name,
        (60 * hour + minute) % _DAY,
        certain,
        hour >= 10 and (name == "military" or bool(match["minute"])),
    )


def _asked_part(param: Param, prompt: str) -> DayPart | None:
    """The part of the day that the question, or else the parameter's own words, speak of."""
    return common(day_parts(prompt)) or common(
        day_parts(f"{param.name.replace('_', ' ')} {param.description}")
    )


def _marked(param: Param, reply: Reply) -> list[Candidate]:
    days = [(day.start, day.end) for day in dates(reply.text, reply.now.date())]
    marked = [
        c
        for c in times(reply.text)
        if not any(start <= c.start and c.end <= end for start, end in days)
    ]
    if reply.strict and not marked:
        marked = outside([*at_hours(reply.text), *_beside_days(reply.text, days)], days)
        marked = marked or (outside(_clock_alone(reply.text), days) if days else [])
    paired = any(other.type == param.type for other in reply.others)
    ranged = paired or (param.role == "from" and _FROM_UNTIL.search(reply.text) is not None)
    if ranged and (end := _end_of_range(param, reply.text, days)):
        return [end]
    if not paired and not reply.strict and (between := _between(reply.text, days)):
        return outside(marked, [(between.start, between.end)]) or [between]
    in_role = with_roles(param, reply, marked, TIME_CUES) if paired else marked
    if reply.strict or not all(_LIMIT.search(before(reply.text, time.start)) for time in in_role):
        return in_role
    spans = [*days, *((time.start, time.end) for time in in_role)]
    bare = outside(_ahead(reply), spans) or outside(_bare(reply.text), spans)
    proposed = _within_limits(reply.text, [*in_role, *bare]) if in_role else bare
    return [time for time in proposed if time in in_role] or proposed


def _end_of_range(param: Param, text: str, days: Sequence[tuple[int, int]]) -> Candidate | None:
    """The end of a range of hours that a parameter is: "9 to 10" for when something begins."""
    ranges = time_range(text) if param.role else None
    if ranges is None:
        return None
    start, end, readings = ranges.begins if param.role == "from" else ranges.ends
    if any(first <= start < last for first, last in days):
        return None
    value, *rest = map(_written, readings)
    end_of_range = Candidate(
        start, end, value, 0.9, 2, "one end of a range", tuple(rest), undecided=bool(rest)
    )
    return _in_part(text, [end_of_range])[0]


_BY_CLOCK = re.compile(
    r"\bthe\s+(?P<hour>1?\d|2[0-3])[.:](?P<minute>[0-5]\d)(?=\s+(?:boat|ferry|bus|coach|train|flight|one"
    r"|slot|session|class|show|sailing|crossing|performance|screening|service)\b)",
    re.I,
)
"""What is called by its hour: "the 10.30 boat"."""
_CLOCK_ALONE = re.compile(
    r"(?:^|[,.]\s+)(?P<hour>1?\d|2[0-3])\.(?P<minute>[0-5][05])(?=\s*(?:$|[,;]|\.\s))"
)


def _clock_alone(text: str) -> list[Candidate]:
    """The one time with a point that stands by itself beside a day: "saturday please, 9.20"."""
    found = list(_BY_CLOCK.finditer(text)) or list(_CLOCK_ALONE.finditer(text))
    if len(found) != 1:
        return []
    start, end = found[0].start("hour"), found[0].end("minute")
    minutes = 60 * int(found[0]["hour"]) + int(found[0]["minute"])
    others = (_written(minutes + 12 * 60),) if minutes < 12 * 60 else ()
    value = _written(minutes)
    return [Candidate(start, end, value, 0.75, 0, "hour alone", others, undecided=bool(others))]


def _between(text: str, days: Sequence[tuple[int, int]]) -> Candidate | None:
    """Either end of a range in which one time may lie: "somewhere between 1 and 2"."""
    ranges = time_range(text)
    lead = _BETWEEN.search(text, 0, ranges.begins[0]) if ranges else None
    if (
        ranges is None
        or lead is None
        or any(start <= ranges.begins[0] < end for start, end in days)
    ):
        return None
    ends = [
        _in_part(text, [Candidate(start, end, value, 0.9, 2, "", tuple(rest), bool(rest))])[0]
        for start, end, (value, *rest) in (
            (start, end, map(_written, readings))
            for start, end, readings in (ranges.begins, ranges.ends)
        )
    ]
    value, *others = dict.fromkeys(
        clock for end in ends for clock in (end.value, *(end.alternatives if end.undecided else ()))
    )
    return Candidate(
        lead.start(), ends[1].end, value, 0.9, 2, "between two times", tuple(others), undecided=True
    )


_BETWEEN = re.compile(r"\bbetwee?n\s+$", re.I)
_FROM_UNTIL = re.compile(r"\d\s*(?:[-–—]|\b(?:till?|until)\b)\s*(?:half\s+)?\d", re.I)
"""A range of hours: "2 till 5", not "ten to eight"."""
_MINUTES_ALONE = re.compile(
    rf"\b(?:(?P<half>half)|quarter)\s+(?P<side>past|to)\b"
    rf"(?!\s+(?:\d|noon|midnight|the\b|{_HOUR_WORD}))",
    re.I,
)


def _of_known_hour(param: Param, reply: Reply) -> list[Candidate]:
    """Minutes that move a known time: "half past would be better" for ten o'clock."""
    known, match = reply.filled.get(param.name), _MINUTES_ALONE.search(reply.text)
    if match is None or not isinstance(known, str) or not re.fullmatch(r"\d\d:\d\d", known):
        return []
    minutes = (30 if match["half"] else 15) * (1 if match["side"].lower() == "past" else -1)
    value = _written((60 * int(known[:2]) + minutes) % _DAY)
    return [Candidate(match.start(), match.end(), value, 0.75, 0, "minutes of the known hour")]


_LIMIT = re.compile(r"\b(?:after|before|until|till?|from|by)\s+(?:about\s+|around\s+)?$", re.I)
_PROPOSED = re.compile(r"\b(?:say|maybe|perhaps|ideally)\s+(?:at\s+|around\s+|about\s+)?$", re.I)
_PROPOSED_BEHIND = re.compile(r"\s*,?\s*(?:maybe|perhaps|say|ideally|or so|would be)\b", re.I)


def _within_limits(text: str, candidates: Sequence[Candidate]) -> list[Candidate]:
    """The times without the limits of one that is proposed: "after four, 4.30 perhaps"."""
    limits = [time for time in candidates if _LIMIT.search(before(text, time.start))]
    proposed = [
        time
        for time in candidates
        if time not in limits
        and (_PROPOSED.search(before(text, time.start)) or _PROPOSED_BEHIND.match(text, time.end))
    ]
    return proposed if limits and proposed else list(candidates)


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The times of a reply; bare hours only in an answer without a clearer time."""
    part = _asked_part(param, reply.prompt)
    times = _within_limits(reply.text, without_old(param, reply.text, _marked(param, reply)))
    times = wished_first(param, reply, _of_said_hour(reply.text, times))
    return [
        _decided(candidate, part, only=False) if candidate.undecided else candidate
        for candidate in times
    ] or _of_known_hour(param, reply)


def _of_said_hour(text: str, times: list[Candidate]) -> list[Candidate]:
    """The times, the last moved by minutes alone behind it: "we land at 1 so say half past"."""
    match = _MINUTES_ALONE.search(text)
    last = max(times, key=lambda time: time.end, default=None)
    if match is None or last is None or match["side"].lower() == "to" or match.start() < last.end:
        return times
    if re.search(r"\bor\b", text[last.end : match.start()], re.I):
        return []
    minutes = "30" if match["half"] else "15"
    if not all(str(value).endswith(":00") for value in (last.value, *last.alternatives)):
        return times
    moved = [f"{str(value)[:3]}{minutes}" for value in (last.value, *last.alternatives)]
    return [
        replace(
            last, start=match.start(), end=match.end(), value=moved[0], alternatives=(*moved[1:],)
        )
    ]
