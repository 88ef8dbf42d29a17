"""The allowed value whose hours a time lies in: "after 5" for "evening (5 to 8)"."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.dates import time
from langmem_ext.waiting.extract.english.tokens import before
from langmem_ext.waiting.extract.reply import Reply

_TIME: Final = Param(name="time", type=ParamType.TIME, prompt="What time?")
_USUAL: Final = {"morning": (6, 12), "afternoon": (12, 17), "evening": (17, 23)}
"""The hours of the parts of the day, where nothing says them."""
_HOURS: Final = r"\W{1,3}(\d{1,2})(?::00)?(?:\s?[ap]m)?\s?(?:to|till|until|-|–)\s?(\d{1,2})(?!\d)"
_UP_TO: Final = re.compile(r"\b(?:before|by|until|till|up to)\s+$", re.IGNORECASE)


def by_hour(param: Param, reply: Reply) -> list[Candidate]:
    """The one allowed value in whose hours the one time of an answer lies."""
    said = time.read(_TIME, replace(reply, prompt=_TIME.prompt, others=()))
    hours = {value: span for value in param.enum if (span := _hours(param, value, reply.prompt))}
    if len(said) != 1 or len(hours) < 2:
        return []
    [found] = said
    ends = _UP_TO.search(before(reply.text, found.start)) is not None
    fitting = {
        value
        for value, span in hours.items()
        for reading in (found.value, *found.alternatives)
        if _lies_in(str(reading), span, ends=ends)
    }
    if len(fitting) != 1:
        return []
    return [Candidate(found.start, found.end, fitting.pop(), 0.7, 1, "the hours of a value")]


def _hours(param: Param, value: str, prompt: str) -> tuple[int, int] | None:
    """From when to when a value is: as the question or its synonyms say, or as is usual."""
    written = "; ".join([prompt, param.description, *param.enum[value]])
    said = re.search(rf"\b{re.escape(value)}\b{_HOURS}", written, re.IGNORECASE)
    usual = _USUAL.get(value.lower())
    if said is None:
        return usual
    start, end = int(said[1]), int(said[2])
    start += 12 if start < 12 and usual and usual[0] >= 12 else 0
    return start, end + 12 if end <= start else end


def _lies_in(reading: str, span: tuple[int, int], *, ends: bool) -> bool:
    """Whether a time of day is within these hours; one that ends something, also at their end."""
    hour, minute = map(int, reading.split(":")[:2])
    at = hour + minute / 60
    return span[0] < at <= span[1] if ends else span[0] <= at < span[1]
