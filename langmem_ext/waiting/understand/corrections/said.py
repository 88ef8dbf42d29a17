"""A message that meets known values, and what its words are as an answer for one of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from pydantic import JsonValue

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.understand.likely_time import nearest


@dataclass(frozen=True, slots=True)
class Said:
    """A message, and what it meets.

    Attributes:
        text: What it says.
        known: Values known already, by parameter.
        now: When it was written.
        asked: The parameter that is being asked for.
        shown: The words of a confirmation that shows the known values; None where none does.
        unwanted: Whether the user has said no to these.
        taken: Where it gives values of other parameters.
        answered: Whether it says something to what is asked.
        about: What the request says of itself.
    """

    text: str
    known: Mapping[str, JsonValue]
    now: datetime
    asked: Param | None = None
    shown: str | None = None
    unwanted: bool = False
    taken: Sequence[tuple[int, int]] = ()
    answered: bool = False
    about: str = ""


@dataclass(frozen=True, slots=True)
class Anew:
    """The other values that a message gives.

    Attributes:
        values: By parameter.
        certain: Whether the message says so, and asks for nothing else; if not, another request
            that it makes wins.
        unsure: Whether it may give another value, though it cannot be told of which parameter.
    """

    values: Mapping[str, JsonValue]
    certain: bool = False
    unsure: bool = False


def as_answer(param: Param, words: str, said: Said) -> Extraction:
    """What a few words are as the answer to the question for a known value."""
    keeps = param.type in (ParamType.DATETIME, ParamType.DURATION)  # its other half, its unit
    filled = said.known if keeps else {}
    reply = Reply(words, prompt=param.prompt or "?", filled=filled, now=said.now)
    return extract(param, reply)


def near_known(param: Param, extraction: Extraction, said: Said) -> Extraction:
    """What was read; of two readings the one that is nearest to the known value."""
    if not extraction.choices:
        return extraction
    value = nearest(extraction.choices, said.known[param.name])
    return replace(extraction, status="filled", value=value, choices=())


FEW_WORDS = 5
"""Words of a message that may be a value as a whole, at most."""


def overlap(span: tuple[int, int], others: Sequence[tuple[int, int]]) -> bool:
    """Whether words share a part with others, by their `[start, end)` offsets."""
    return any(start < span[1] and span[0] < end for start, end in others)
