"""Another or a fuller name of somebody who is known: "Beatrix Holloway", where Beatrix is. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from langmem_ext.waiting.catalog.param import Extraction, Param
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.extract.english.tokens import tokens
from langmem_ext.waiting.extract.names.person import is_person
from langmem_ext.waiting.extract.names.written_small import is_full_name
from langmem_ext.waiting.understand.corrections.said import Said


def completed_names(params: Sequence[Param], text: str, said: Said) -> dict[str, Extraction]:
    """Known people of whom the message says more: "Beatrix Holloway", where Beatrix is known."""
    completed = {}
    for param in params:
        known = str(said.known.get(param.name, ""))
        if not is_person(param) or not known:
            continue
        whole = rf"\b(?i:{re.escape(known)})(?:\s+[A-Z][\w'’-]+){{1,3}}"
        if match := re.search(whole, text):
            reply = Reply(match.group(), prompt=param.prompt or "?", now=said.now)
            read = extract(param, reply)
            if read.status == "filled" and read.value != known:
                completed[param.name] = replace(read, span=match.span())
    return completed


def names_alone(params: Sequence[Param], text: str, said: Said) -> dict[str, Extraction]:
    """Another person for the one that is shown, where a sentence is a name and nothing else."""
    people = [param for param in params if is_person(param) and param.name in said.known]
    if said.shown is None or len(people) != 1:
        return {}
    [person] = people
    for match in _SENTENCE.finditer(text):
        if is_full_name(tokens(match["name"])) and match["name"] != said.known[person.name]:
            read = extract(person, Reply(match["name"], prompt=person.prompt or "?", now=said.now))
            if read.status == "filled":
                return {person.name: replace(read, span=match.span("name"))}
    return {}


_SENTENCE: Final = re.compile(
    r"(?:^|(?<=[.!?\n]))\s*(?:(?:no|sorry|it['’]?s|oh|actually)[\s,]+)*(?P<name>[^.,;:!?\n\d]{3,60}?)"
    r"\s*(?=[.!\n]|$)"
)
