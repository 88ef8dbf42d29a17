"""A value for the known one that a message denies: "21 Mill Lane, not 12". English; pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from pydantic import JsonValue

from langmem_ext.waiting.catalog.param import Extraction, Param, ParamType
from langmem_ext.waiting.extract import Reply, extract, find
from langmem_ext.waiting.extract.english.tokens import blanked
from langmem_ext.waiting.understand.corrections.cues import BEFORE_NEW, takes_something_back
from langmem_ext.waiting.understand.corrections.said import FEW_WORDS, Said, as_answer, near_known

_EXCHANGED = re.compile(
    r"\b(?:not|is\s?n['’]?t|instead of|rather than) (?:(?:the|at|on|in|for|to|an?) )*"
    r"(?P<old>[^,.;!?\s](?:[^,.;!?\s]|\.(?=\d)| (?!but\b)){0,40})",
    re.IGNORECASE,
)
"""A value that is not meant: the known one, where another stands beside it."""
_DENIALS = 3
"""Values of one message that are not meant, at most."""
_OF_DAYS = frozenset({ParamType.DATE, ParamType.TIME})


def exchanged_values(
    params: Sequence[Param], text: str, said: Said
) -> tuple[dict[str, Extraction], str]:
    """A new value for the only known one that the message names too, and what else it says."""
    new: dict[str, Extraction] = {}
    left = text
    for param, span in _named_again(params, text, said):
        rest, known = blanked(text, span), said.known[param.name]
        extraction = _instead(param, rest, said)
        if extraction.value not in (None, known):
            new[param.name] = extraction
            left = blanked(rest, extraction.span) if extraction.span else ""
    return (new, left) if len(new) == 1 else ({}, text)


def _named_again(
    params: Sequence[Param], text: str, said: Said
) -> Iterator[tuple[Param, tuple[int, int]]]:
    """Where the message denies a known value, or names a known day beside another."""
    known = [param for param in params if param.name in said.known]
    for match in islice(_EXCHANGED.finditer(text), _DENIALS):
        for param in known:
            denied = Reply(
                match["old"], prompt=param.prompt or "?", filled=said.known, now=said.now
            )
            old = extract(param, denied)
            if said.known[param.name] in (old.value, *old.choices) or _is_number_of(
                param, said.known[param.name], match["old"]
            ):
                yield param, match.span()
    for param in known if takes_something_back(text) else ():
        if param.type in _OF_DAYS:
            new = find(param, text, now=said.now, filled=said.known)
            rest = blanked(text, new.span) if new.span else text
            old = find(param, rest, now=said.now)
            if old.span and old.value == said.known[param.name] != new.value:
                yield param, old.span


def _is_number_of(param: Param, known: JsonValue, denied: str) -> bool:
    """Whether words deny the number of a known address: "21 Mill Lane, not 12"."""
    number = re.match(r"(?:(?:number|no\.?)\s+)?(\d+[a-z]?)\b", denied, re.IGNORECASE)
    return (
        param.type is ParamType.ADDRESS
        and number is not None
        and re.search(rf"\b{number[1]}\b", str(known), re.IGNORECASE) is not None
    )


def _instead(param: Param, rest: str, said: Said) -> Extraction:
    """The value of a message that denies the known one; without a span where it is all there is."""
    extraction = find(param, rest, now=said.now, filled=said.known)
    if extraction.status == "filled" or len(rest.split()) > FEW_WORDS:
        return near_known(param, extraction, said)
    alone = as_answer(param, BEFORE_NEW.sub("", rest, count=1).strip(), said)
    return replace(near_known(param, alone, said), span=None)
