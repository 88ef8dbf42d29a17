"""Times of day: an own grammar of what people write, normalised to `HH:MM`."""

from __future__ import annotations

import re
from datetime import timedelta

from langmem_ext.waiting.extract.candidate import Candidate, longest, outside
from langmem_ext.waiting.extract.date import dates
from langmem_ext.waiting.extract.numerals import UNITS, WORDS, words_value
from langmem_ext.waiting.extract.reply import Reply
from langmem_ext.waiting.extract.roles import TIME_CUES, with_roles
from langmem_ext.waiting.param import Param

_HOUR_WORD = "|".join(sorted((word for word, value in UNITS.items() if 1 <= value <= 12), key=len, reverse=True))
_HOUR = rf"(?P<hour>\d{{1,2}}|{_HOUR_WORD})"
_MINUTE_WORDS = "five|ten|twenty(?:[- ]five)?|fifteen|thirty|thirty[- ]five|forty(?:[- ]five)?|fifty(?:[- ]five)?|oh[- ]five"
_MERIDIEM = r"(?:(?P<meridiem>[ap])\.?\s?m\b\.?)"
_PART = (
    r"(?:in the|at|this|tomorrow|in|during the)\s+(?P<part>morning|afternoon|evening|night)|(?P<part2>tonight|morning|afternoon|evening)"
)
_AFTER = rf"(?:\s*(?:{_MERIDIEM})|\s+(?:{_PART})\b)?"
_BEFORE = r"(?:(?P<before>morning|afternoon|evening|night)(?:\s+(?:at|around))?\s+)?"
_CLOCK = r"o\s?[\"'’`]?\s?clock"

_GRAMMAR = tuple(
    (re.compile(source, re.I), confidence, reason)
    for source, confidence, reason in (
        (
            rf"\b{_BEFORE}(?P<past>half|quarter|{_MINUTE_WORDS}|\d{{1,2}})(?:\s*(?:minutes|mins?))?\s+(?P<side>past|after|to|before"
            rf"|till)\s+{_HOUR}\b(?!\s*(?:people|persons|of\b|days|:|\d))(?:\s*{_CLOCK})?{_AFTER}",
            0.95,
            "time in words",
        ),
        (rf"(?<![\d:.])\b{_BEFORE}{_HOUR}\s?:\s?(?P<minute>\d{{2}})(?!\d|:\d)(?:\s?-?ish\b)?{_AFTER}", 0.97, "clock time"),
        (rf"(?<![\d:.$€£])\b{_BEFORE}{_HOUR}[.](?P<minute>\d{{2}})(?!\d)\s*{_MERIDIEM}", 0.95, "clock time"),
        (rf"(?<![\d:.$€£])\b{_BEFORE}(?P<hour>\d{{1,2}})(?P<minute>\d{{2}})\s*{_MERIDIEM}", 0.9, "clock time"),
        (rf"(?<![\d:.])\b{_HOUR}\s*h(?:rs?|ours?)?\s?(?P<minute>\d{{2}})?(?!\w)(?<!hour)(?<!hours)(?<!r h)", 0.85, "clock time"),
        (
            rf"(?<![\d:.])\b{_BEFORE}{_HOUR}(?:[\s-]+(?P<minute_words>{_MINUTE_WORDS}))?(?:\s*{_CLOCK})?(?:\s*{_MERIDIEM}"
            rf"|\s+(?:{_PART})\b)",
            0.95,
            "hour with its part of the day",
        ),
        (rf"(?<![\d:.])\b{_BEFORE}{_HOUR}\s*{_CLOCK}{_AFTER}", 0.95, "o'clock"),
        (
            rf"\b(?P<before>morning|afternoon|evening)\s+(?:at\s+)?{_HOUR}\b(?!\s*(?:people|persons|of\b|tickets|[:/.]\d|st\b|nd\b|rd\b"
            rf"|th\b))",
            0.9,
            "hour with its part of the day",
        ),
        (r"\b(?:(?:12|twelve)\s+)?(?P<noon>noon|midday|noontime|midnight)\b", 0.95, "noon or midnight"),
    )
)
_AHEAD = re.compile(
    rf"\bin\s+(?:about\s+)?(?P<count>\d{{1,3}}|an?|half an|{WORDS})\s+(?P<unit>minutes?|mins?|hours?|hrs?)\b(?:\s+time)?", re.I
)
_BARE_WORD = "|".join(sorted((word for word, value in UNITS.items() if value), key=len, reverse=True))
_BARE = re.compile(
    rf"(?:^\W*|\b(?:u+m+|u+h+|do|near|closer to|have|make|preferably|at|around|about|by|approximately|say|maybe|it|for|is|be|before"
    rf"|after|till|until|from|to|past|like|please|roughly|than|yes|ok|okay|sure|no)[,.]?\s+)"
    rf"(?:(?P<hour>\d{{1,2}})(?:[.](?P<minute>[0-5]\d))?|(?P<military>\d{{4}})"
    rf"|(?P<word>{_BARE_WORD})(?:[\s-]+(?P<minute_words>{_MINUTE_WORDS}))?)"
    r"(?:\s*(?:hours|hrs?)|(?P<ish>\s?-?ish))?(?![\w:/]|[.,]\d|-\w)(?!\s+(?:people|persons?|members?|others?|pax|of\s+us|guests|tickets?"
    r"|seats?|days?|nights?|weeks?|pax|adults?|kids|children|friends|[%$€£]|dollars|bucks))",
    re.I,
)


def _clock(hour: int, minute: int, meridiem: str, part: str) -> str | None:
    if hour > 24 or minute > 59 or (meridiem and not 1 <= hour <= 23):
        return None
    evening = part in ("afternoon", "evening", "tonight") or (part == "night" and hour >= 5)
    if meridiem == "p" or (not meridiem and evening):
        hour = hour + 12 if hour < 12 else hour
        if part == "night" and hour == 12:
            hour = 0
    elif (meridiem == "a" or part in ("morning", "night")) and hour == 12:
        hour = 0 if meridiem == "a" or part == "night" else 12
    return f"{hour % 24:02d}:{minute:02d}"


def _hour(text: str) -> int:
    return int(text) if text.isdigit() else UNITS[text.lower()]


def _minutes(text: str) -> int:
    low = text.lower()
    if low in ("half", "quarter"):
        return 30 if low == "half" else 15
    return int(low) if low.isdigit() else words_value(low.replace("oh", "zero")) or 0


def _value(match: re.Match[str]) -> str | None:
    groups = {name: text for name, text in match.groupdict().items() if text}
    if "noon" in groups:
        return "00:00" if groups["noon"].lower() == "midnight" else "12:00"
    part = (groups.get("part") or groups.get("part2") or groups.get("before") or "").lower()
    hour = _hour(groups["hour"])
    minute = int(groups["minute"]) if "minute" in groups else _minutes(groups["minute_words"]) if "minute_words" in groups else 0
    if "past" in groups:
        minute = _minutes(groups["past"])
        if groups["side"].lower() in ("to", "before", "till"):
            hour, minute = (hour - 1) % 12 or 12, 60 - minute
    return _clock(hour, minute, groups.get("meridiem", "").lower(), part)


def times(text: str) -> list[Candidate]:
    """Every time of day that `text` clearly names, in its order."""
    found = []
    for pattern, confidence, reason in _GRAMMAR:
        for match in pattern.finditer(text):
            value = _value(match)
            if value:
                end = match.start() + len(match.group().rstrip())
                if text[end - 1] == "." and not re.search(r"[ap]\.\s?m\.$", text[:end], re.I):
                    end -= 1
                found.append(Candidate(match.start(), end, value, confidence, reason=reason))
    return longest(found)


def _ahead(reply: Reply) -> list[Candidate]:
    found = []
    for match in _AHEAD.finditer(reply.text):
        count = match["count"].lower()
        hours = match["unit"].lower().startswith("h")
        amount = 0.5 if count == "half an" else 1 if count in ("a", "an") else int(count) if count.isdigit() else words_value(count)
        if amount is not None:
            moment = reply.now + timedelta(minutes=amount * (60 if hours else 1))
            found.append(Candidate(match.start(), match.end(), f"{moment:%H:%M}", 0.8, reason="time from now"))
    return found


def _bare(text: str) -> list[Candidate]:
    """Hours without any mark ("around 8"), which only a question for a time makes times."""
    found = []
    for match in _BARE.finditer(text):
        if match["military"]:
            name, hour, minute = "military", int(match["military"][:2]), int(match["military"][2:])
        elif match["word"]:
            name, hour, minute = "word", _hour(match["word"]), _minutes(match["minute_words"]) if match["minute_words"] else 0
        else:
            name, hour, minute = "hour", int(match["hour"]), int(match["minute"] or 0)
        value = _clock(hour, minute, "", "")
        if value:
            end = max(match.end(name), match.end("minute"), match.end("minute_words"), match.end("ish"))
            found.append(Candidate(match.start(name), end, value, 0.7, reason="hour alone"))
    return found


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The times of a reply; bare hours only when a question was asked and nothing clearer stands there."""
    days = [(day.start, day.end) for day in dates(reply.text, reply.now.date())]
    marked = [c for c in times(reply.text) if not any(start <= c.start and c.end <= end for start, end in days)]
    paired = any(other.type == param.type for other in reply.others)
    found = with_roles(param, reply, marked, TIME_CUES) if paired else marked
    if found or reply.strict:
        return found
    return outside(_ahead(reply), days) or outside(_bare(reply.text), days)
