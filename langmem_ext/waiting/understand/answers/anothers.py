"""Values that are said to the question for another parameter: "eleven" to "What is your name?"."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from langmem_ext.waiting.catalog.param import Extraction, ParamType
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS
from langmem_ext.waiting.extract.english.tokens import tokens
from langmem_ext.waiting.extract.names.bystanders import is_firm
from langmem_ext.waiting.extract.names.person import is_person
from langmem_ext.waiting.extract.names.telling import DOUBTED, is_written
from langmem_ext.waiting.extract.names.texts.asks import is_narrative, is_thing, is_title
from langmem_ext.waiting.extract.names.written_small import could_be_person, is_full_name
from langmem_ext.waiting.extract.numbers.numerals import numerals
from langmem_ext.waiting.extract.validity import NUMERIC
from langmem_ext.waiting.understand.message import Heard
from langmem_ext.waiting.understand.requests import OPEN_TYPES
from langmem_ext.waiting.understand.values import SURE

_FAR: Final = 10
"""How many times as much as is allowed an amount must be to mean something else."""


def far_out(
    playbook: Playbook, open_names: Sequence[str], name: str, heard: Heard, answer: Extraction
) -> dict[str, Extraction]:
    """An amount far out of the bounds of what is asked, for the one open number that may be it.

    "1100 a month" is no number of bedrooms.
    """
    bounds, numbers = playbook.param(name).bounds, numerals(answer.raw)
    most = bounds[1] if bounds else None
    if answer.span is None or not isinstance(most, int | float) or len(numbers) != 1:
        return {}
    read = {}
    for other in open_names:
        param = playbook.param(other)
        if other != name and param.type in NUMERIC:
            reply = Reply(answer.raw, prompt=param.prompt or "?", now=heard.now)
            claim = extract(param, reply)
            if claim.status == "filled":
                read[other] = replace(claim, span=answer.span)
    return read if len(read) == 1 and numbers[0].value > _FAR * most else {}


def whole_of_another(
    playbook: Playbook, open_names: Sequence[str], name: str, heard: Heard
) -> dict[str, Extraction]:
    """What a whole message is that is no value of what is asked: "34", "eleven", "Gavin Stroud".

    It is the one open parameter's that can have it; a name only where something closed is asked.
    """
    asked = playbook.param(name)
    read: dict[str, Extraction] = {}
    for other in open_names:
        param = playbook.param(other)
        person = is_person(param)
        if other == name or param.type is asked.type or param.type is ParamType.BOOLEAN:
            continue
        if (param.type in OPEN_TYPES and not person) or (person and asked.type in OPEN_TYPES):
            continue
        extraction = extract(param, Reply(heard.text, prompt=param.prompt or "?", now=heard.now))
        words = re.findall(r"[^\W_]+", heard.text.lower())
        raw = re.findall(r"[^\W_]+", extraction.raw.lower())
        rest = [word for word in words if word not in raw]
        whole = _is_name(extraction.raw, words) if person else FUNCTION_WORDS.issuperset(rest)
        many = not person or len(raw) > 1
        if (
            extraction.raw
            and whole
            and many
            and (extraction.choices or extraction.confidence > SURE)
        ):
            read[other] = extraction
    filled = {other: value for other, value in read.items() if value.status == "filled"}
    return filled if len(read) == 1 else {}


def _is_name(raw: str, words: Sequence[str]) -> bool:
    """Whether a message is a name alone; small letters must be no words: "gavin stroud"."""
    name = tokens(raw)
    capitals = all(word.capitalised for word in name) and not is_firm(name)
    written = capitals or could_be_person(name)
    return written and [word.low for word in name] == list(words)


def with_somebody(
    playbook: Playbook,
    open_names: Sequence[str],
    name: str,
    heard: Heard,
    values: Mapping[str, Extraction],
    *,
    doubted: bool,
) -> dict[str, Extraction]:
    """The values; a name that tells nothing is the one open person's: "Farouk Benali".

    A thing may be written like that as well, unless one has been named and is `doubted`. Either is
    confirmed.
    """
    asked, people = playbook.param(name), [playbook.param(other) for other in open_names]
    people = [param for param in people if is_person(param)]
    said = re.split(r"[.!?\n]\s", heard.text, maxsplit=1)[0] if doubted else heard.text
    if (
        asked.type is not ParamType.TEXT
        or len(people) != 1
        or not is_full_name(tokens(said))
        or people[0].name in values
    ):
        return {**values}
    if (
        is_thing(asked)
        and not doubted
        and not _FAULT.search(f"{asked.description} {asked.prompt}")
        and not _TITLES.search(f"{asked.description} {asked.prompt}")
    ):
        claim = values.get(name)
        unsure = claim and replace(claim, confidence=min(claim.confidence, DOUBTED))
        return {**values, name: unsure} if unsure else {**values}
    claim = extract(people[0], Reply(said, prompt="?", now=heard.now))
    story = is_narrative(asked) or _FAULT.search(f"{asked.description} {asked.prompt}")
    told = (doubted or story) and not is_title(asked) and not is_written(asked)
    if claim.status != "filled" or not told:
        return {**values}
    rest = {other: value for other, value in values.items() if other != name}
    return {**rest, people[0].name: replace(claim, confidence=_SAID_ALONE)}


_FAULT: Final = re.compile(r"\b(?:wrong|happened|problem|matter|why|reason)\b", re.IGNORECASE)
"""Words that ask what nobody is called: "What is wrong with it?"."""
_SAID_ALONE: Final = 0.55
"""Confidence in a name that answers another question."""
_TITLES: Final = re.compile(r"\b(?:title|songs?|make|model|brand|show|events?)\b", re.IGNORECASE)
"""Words for things that have names of their own."""
