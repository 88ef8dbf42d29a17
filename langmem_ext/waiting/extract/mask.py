"""Spans of a reply that are values of a closed kind, or of another parameter, so that no open value may take them."""

from __future__ import annotations

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.choices.enum import exact
from langmem_ext.waiting.extract.codes.email import emails
from langmem_ext.waiting.extract.dates.date import dates
from langmem_ext.waiting.extract.dates.time import times
from langmem_ext.waiting.extract.numbers.money import money
from langmem_ext.waiting.extract.reply import Reply


def closed_spans(param: Param, reply: Reply) -> list[tuple[int, int]]:
    """Where dates, times, sums, e-mail addresses and the allowed values of other parameters stand in a reply."""
    text = reply.text
    found = [*dates(text, reply.now.date()), *times(text), *money(text)]
    if "@" in text:
        found += emails(text)
    for other in reply.others:
        if other.type == ParamType.ENUM and other.name != param.name:
            found += exact(other, text)
    return [(candidate.start, candidate.end) for candidate in found]
