"""A user's message as deciding sees it, and the values that can be read from it without having asked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from langchain_core.messages import BaseMessage
from pydantic import JsonValue

from langmem_ext.waiting.extract import find
from langmem_ext.waiting.param import Extraction
from langmem_ext.waiting.playbook import Playbook


@dataclass(frozen=True, slots=True)
class Heard:
    """What the user said.

    Attributes:
        id: Id of the message.
        text: What it says.
        history: The messages before it, oldest first.
        now: When it is worked on.
    """

    id: str
    text: str
    history: Sequence[BaseMessage]
    now: datetime


def candidates(playbook: Playbook, names: Iterable[str], heard: Heard) -> dict[str, Extraction]:
    """The words of the message that may be a value of these parameters, some of them of several."""
    params = [playbook.catalog.params[name] for name in names]
    read = {param.name: find(param, heard.text, now=heard.now, others=params) for param in params}
    return {name: extraction for name, extraction in read.items() if extraction.status == "filled"}


def mentions(playbook: Playbook, names: Iterable[str], heard: Heard) -> dict[str, Extraction]:
    """The values of these parameters that the message clearly marks, whatever it was said for.

    Words that could be the value of two of them are taken as neither.
    """
    found = candidates(playbook, names, heard)
    return {
        name: extraction
        for name, extraction in found.items()
        if not any(overlap(extraction, other) for rival, other in found.items() if rival != name)
    }


def overlap(one: Extraction, other: Extraction) -> bool:
    """Whether two values were read from the same words."""
    return one.span is not None and other.span is not None and one.span[0] < other.span[1] and other.span[0] < one.span[1]


def values(found: Mapping[str, Extraction]) -> dict[str, JsonValue]:
    """The values alone, by parameter."""
    return {name: extraction.value for name, extraction in found.items()}
