"""Other values that nothing in a message marks as such: "4.30 then". English; pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

from pydantic import JsonValue

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.extract.validity import NUMERIC
from langmem_ext.waiting.understand.acts.statements import names
from langmem_ext.waiting.understand.clauses import words_without_values
from langmem_ext.waiting.understand.corrections.cues import BEFORE_NEW, says_more
from langmem_ext.waiting.understand.corrections.said import (
    FEW_WORDS,
    Said,
    as_answer,
    near_known,
    overlap,
)
from langmem_ext.waiting.understand.likely_time import minutes_of
from langmem_ext.waiting.understand.values import (
    spans_of,
)

PLAIN_TYPES: Final = frozenset(
    {
        ParamType.DATE,
        ParamType.TIME,
        ParamType.INTEGER,
        ParamType.NUMBER,
        ParamType.MONEY,
        ParamType.ENUM,
        ParamType.EMAIL,
        ParamType.PHONE,
        ParamType.URL,
        ParamType.DATETIME,
        ParamType.DURATION,
    }
)
"""Types of which nobody speaks by the way, as of somebody else's order or name."""
COUNTED: Final = PLAIN_TYPES - {
    ParamType.EMAIL,
    ParamType.PHONE,
    ParamType.URL,
    ParamType.ENUM,
}
"""Types of which a few words alone may be a value."""
PART: Final = re.compile(r"(?:[^,;!?\n.]|[,.](?=\d)){1,60}")
_VALUE: Final = re.compile(r"\d|\w{3}")
_SO: Final = re.compile(r"\bso\b", re.IGNORECASE)
"""What follows is a part of its own: "two have dropped out so 4"."""
SO_NOW: Final = re.compile(
    r"\bso\s+(?:(?:it|that)['’]?(?:s|ll be)\s+|make it\s+|we(?: a|['’]?)re\s+)?\S+(?:\s+\S+)?\W*$",
    re.IGNORECASE,
)
"""How a message ends that says what follows for a value."""
_TIMED: Final = frozenset({ParamType.TIME, ParamType.DATETIME})
_PARTS: Final = 6
"""Parts of a message that are looked at, at most."""


def unmarked_values(
    params: Sequence[Param],
    text: str,
    marked: Mapping[str, Extraction],
    cue: re.Match[str] | None,
    said: Said,
) -> tuple[dict[str, Extraction], bool]:
    """What parts of a message are that nothing marks, each for the one parameter that may have it.

    It is read as an answer is. Behind words of a correction a value may have any form, and a text
    where the message names it.

    Returns:
        The values, and whether a part may be another value of one of several.
    """
    known = [param for param in params if param.name in said.known and param.name not in marked]
    named = [param for param in known if names(text, param)]
    led = named or [param for param in known if param.type is not ParamType.TEXT]
    plain = [param for param in known if param.type in COUNTED]
    parts = [(*match.span(), plain) for match in islice(PART.finditer(_SO.sub(" ;", text)), _PARTS)]
    if cue:
        start, end = cue.span("value")
        parts.insert(0, (start, end, led))
        first, timed = PART.match(text, start, end), any(param.type in _TIMED for param in known)
        if first and first.end() < end and not timed:
            parts.insert(0, (*first.span(), plain))
    found: dict[str, Extraction] = {}
    given = [extraction.value for extraction in marked.values()]
    fixed: set[str] = set()  # behind the cue: "make it 3, I always snap one"
    unsure = False
    for at, (start, end, among) in enumerate(parts):
        if overlap((start, end), spans_of({**marked, **found})):
            continue
        if lead := BEFORE_NEW.match(text[start:end]):
            start += lead.end()
        long = among is plain and len(text[start:end].split()) > FEW_WORDS
        if long and (wanted := WANTED.match(text[start:end])):
            start, long = start + wanted.end(), False
        part = text[start:end]
        if long or not _VALUE.search(part) or (among is not named and _answers(part, said)):
            continue
        read = _read_bare(among, part, said)
        new = {
            name: replace(extraction, span=(start + extraction.span[0], start + extraction.span[1]))
            for name, extraction in read.items()
            if extraction.span and extraction.value not in (None, said.known[name], *given)
        }
        meant = _of_its_size(new, said.known) if len(read) > 1 else new
        found |= {name: value for name, value in meant.items() if name not in fixed}
        fixed |= meant.keys() if cue and at == 0 else set()
        unsure = unsure or (len(read) > 1 and not meant) or bool(new)
    return found, unsure


WANTED: Final = re.compile(
    r".*\b(?:(?:i|we)(?:['’]?(?:ll|d)| will| can| could| would| need| want)|(?:can|could|may|might)"
    r" (?:i|we)|(?:can|could) you (?:do|make it|manage))\b[^,.;!?]*?"
    r"(?:\b(?:to|be|for|at|only|just|with)\s+)?(?=(?:\S+\s+){0,2}\S+\s*$)",
    re.IGNORECASE,
)
"""What stands before the new value at the end of a wish: "done the sums, I can stretch to 1000"."""
_TIMES: Final = 3.0
"""How many times as far as another a number must be from what is known to be no other value of
it."""


def _of_its_size(
    new: Mapping[str, Extraction], known: Mapping[str, JsonValue]
) -> dict[str, Extraction]:
    """The one of several numbers known that a number is much nearer to than to the others.

    "make it 650" is a bid of 600 and not lot 87.
    """
    apart = {
        name: max(value, old) / min(value, old)
        for name, extraction in new.items()
        if isinstance(value := extraction.value, int | float)
        and isinstance(old := known[name], int | float)
        and min(value, old) > 0
    }
    first, *rest = sorted(apart, key=lambda name: apart[name]) or [""]
    if len(apart) < len(new) or not rest or apart[rest[0]] < _TIMES * apart[first]:
        return {}
    return {first: new[first]}


def _read_bare(params: Sequence[Param], part: str, said: Said) -> dict[str, Extraction]:
    """What a part of a message may be, by parameter."""
    read = {
        param.name: extraction
        for param in params
        if (extraction := as_answer(param, part, said)).status == "filled" or extraction.choices
    }
    own = [param for param in params if param.name in read]
    if any(param.type in NUMERIC for param in own):  # a bare number is first of all a number
        own = [param for param in own if param.type is not ParamType.DURATION]
        read = {param.name: read[param.name] for param in own}
        own = _count_or_hour(own, read, part, said)
        read = {param.name: read[param.name] for param in own}
    if len(own) != 1 or says_more(words_without_values(part, spans_of(read)), own):
        return read  # an hour with two readings may be a number as well
    return {param.name: near_known(param, read[param.name], said) for param in own}


_BARE_NUMBER: Final = re.compile(r"\W*(?:\w+\W+)?\d{1,2}\W*", re.IGNORECASE)
_COMPANY: Final = re.compile(
    r"\b(?:friends?|mates?|family|kids|guests|others|people|of us)\b[^.;!?]*\b(?:coming|come|comes"
    r"|joining|join)\b",
    re.IGNORECASE,
)
"""People who come too: "two friends are coming"."""
_AN_HOUR: Final = 60
"""Minutes by which a time is moved that a number alone gives, at most."""


def _count_or_hour(
    own: list[Param], read: Mapping[str, Extraction], part: str, said: Said
) -> list[Param]:
    """The parameters without the hours, where a number alone is far from the known time.

    "So 3" makes two people three, and moves no table from half past seven.
    """
    times = [param for param in own if param.type is ParamType.TIME]
    counts = [param for param in own if param.type is ParamType.INTEGER]
    if len(times) != 1 or not counts:
        return own
    if _COMPANY.search(said.text):  # "make it two, some friends are coming along"
        return [param for param in own if param not in times]
    if not _BARE_NUMBER.fullmatch(part):
        return own
    apart = abs(
        minutes_of(near_known(times[0], read[times[0].name], said).value)
        - minutes_of(said.known[times[0].name])
    )
    return own if apart <= _AN_HOUR else [param for param in own if param not in times]


def _answers(part: str, said: Said) -> bool:
    """Whether a part of the message may answer the question that waits."""
    if said.asked is None:
        return False
    reply = Reply(part, prompt=said.asked.prompt or "?", now=said.now)
    return extract(said.asked, reply).status != "abstained"
