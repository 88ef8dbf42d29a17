"""Spans of a reply that no open value may take: values of closed kinds, or other parameters'."""

from __future__ import annotations

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.choices.enum import exact
from langmem_ext.waiting.extract.codes.email import emails
from langmem_ext.waiting.extract.dates.mentioned import dates
from langmem_ext.waiting.extract.dates.time import times
from langmem_ext.waiting.extract.numbers.money import money
from langmem_ext.waiting.extract.reply import Reply


def closed_spans(param: Param, reply: Reply) -> list[tuple[int, int]]:
    """Spans of dates, times, sums, e-mail addresses and other parameters' allowed values."""
    text = reply.text
    closed = [*dates(text, reply.now.date()), *times(text), *money(text)]
    if "@" in text:
        closed += emails(text)
    for other in reply.others:
        if other.type == ParamType.ENUM and other.name != param.name:
            closed += exact(other, text)
    return [(candidate.start, candidate.end) for candidate in closed]
