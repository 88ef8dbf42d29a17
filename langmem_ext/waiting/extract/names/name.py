"""Names of things: a restaurant, a film, an event, a song."""

from __future__ import annotations

import re
from collections.abc import Sequence

from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.closed_spans import closed_spans
from langmem_ext.waiting.extract.english.leadin import answer_span
from langmem_ext.waiting.extract.english.lexicon import (
    ANIMAL,
    AUXILIARIES,
    GENERIC_NOUNS,
    POLITENESS,
    PRONOUNS,
    VERBS,
    word_set,
)
from langmem_ext.waiting.extract.english.tokens import Token, before, runs, tokens
from langmem_ext.waiting.extract.english.vocabulary import own_stems, stem
from langmem_ext.waiting.extract.names import person
from langmem_ext.waiting.extract.names.openness import is_no_answer, keep, named_before
from langmem_ext.waiting.extract.numbers.numerals import WORDS
from langmem_ext.waiting.extract.reply import Reply

_QUOTED = re.compile(r"[\"“]([^\"”\n]{2,80})[\"”]|(?<!\w)['‘]([^'’\n]{3,80})['’](?!\w)")
_CALLED = re.compile(
    r"\b(?:at|called|named|name is|is|for|to|of|try|try out|visit|watch|see|hear|listen"
    r" to|play|like|love|prefer|about|with|buy|attend"
    r"|event|movie|film|song|restaurant|place|titled|title|it)\s*(?:the\s+)?[:,]?\s*$",
    re.I,
)
_SURE = re.compile(r"\b(?:called|named|name is|titled|title is)\s*:?\s*$", re.I)
PETS = frozenset(stem(word) for word in ("pet", "animal", "dog", "cat"))
_PET = re.compile(
    rf"\b{ANIMAL}(?:['’]s"
    r" name is)?,?\s+$",
    re.I,
)
_WHERE = re.compile(r"\b(?:in|near|around|from|located in|based in)\s+(?:the\s+)?$", re.I)


def _judge(param: Param, text: str, start: int, *, alone: bool) -> int:
    lead = before(text, start)
    if own_stems(param) & PETS and _PET.search(lead):
        return 2
    if _SURE.search(lead) or named_before(param, text, start):
        return 2
    if _WHERE.search(lead):
        return 0 if alone else -1
    return 1 if _CALLED.search(lead) else 0


def _capitals(param: Param, reply: Reply, masked: Sequence[tuple[int, int]]) -> list[Candidate]:
    text = reply.text
    words = tokens(text)
    named = [
        run
        for run in runs(text, words, masked)
        if not (run.last - run.first == 1 and words[run.first].low in GENERIC_NOUNS)
    ]
    candidates, pets = [], own_stems(param) & PETS
    for run in named:
        fit = _judge(param, text, run.start, alone=len(named) == 1)
        lone = not any(
            other is not run and text[other.start : other.end].isalpha() for other in named
        )
        if fit in (0, 1) and reply.strict and len(named) == 1 and run.first and pets:
            fit = 2  # who writes of an animal, and capitalises one word, names it
        if (
            fit in (0, 1)
            and reply.strict
            and run.last - run.first > 1
            and lone
            and _ordered(words, run.first)
        ):
            fit = 2
        candidates.append(
            Candidate(
                run.start,
                run.end,
                text[run.start : run.end],
                0.75 if fit > 0 else 0.55,
                fit,
                "capitalised name",
            )
        )
    return candidates


def _ordered(words: Sequence[Token], first: int) -> bool:
    """Whether a verb comes right before a name: "reserve Lonely Planet Portugal"."""
    return first > 0 and words[first - 1].low in VERBS and words[first - 1].low not in _PERSONAL


_PERSONAL = word_set("meet call called named visit visiting help tell ask")
"""Verbs of what is done with people and places."""


def _whole(reply: Reply, masked: Sequence[tuple[int, int]]) -> list[Candidate]:
    """The whole answer in small letters, up to six words, nothing of it of another kind."""
    if is_no_answer(reply.text):
        return []
    start, end = answer_span(reply.text)
    width = len(reply.text[start:end].split())
    inside = any(start < stop and begin < end for begin, stop in masked)
    counted = any(other.type is ParamType.INTEGER for other in reply.others)
    if (
        not 1 <= width <= 6
        or inside
        or (counted and _SO_MANY.fullmatch(reply.text[start:end]))
        or not re.search(r"[^\W\d_]{2}", reply.text[start:end])
        or "?" in reply.text[start:end]
    ):
        return []
    named = width > 1 and _NO_TITLE.isdisjoint(
        re.findall(r"[^\W_]+(?:['’]\w+)?", reply.text[start:end].lower())
    )
    return [
        Candidate(start, end, reply.text[start:end], 0.5 if named else 0.4, 0, "the whole answer")
    ]


_SO_MANY = re.compile(
    rf"(?:(?:just|only|about|the)\s+)*(?:\d{{1,3}}|{WORDS}|a couple(?: of)?)\s+[a-z]+"
    r"(?:\s+(?:please|pls|then|thanks))*",
    re.I,
)
"""So many of something, where their number is asked for: "two bottles"."""
_NO_TITLE = PRONOUNS | AUXILIARIES | POLITENESS
"""Words of a sentence, which leave open whether it is the name of a thing."""


def read(param: Param, reply: Reply) -> list[Candidate]:
    """The names a reply may mean: quoted, then capitalised, then the whole answer."""
    if person.is_of_person(param):
        return person.read(param, reply)
    text = reply.text
    quoted = [match.span(1) if match[1] else match.span(2) for match in _QUOTED.finditer(text)]
    candidates = [
        Candidate(start, end, text[start:end], 0.8, 2, "quoted name") for start, end in quoted
    ]
    if not candidates:
        masked = closed_spans(param, reply)
        candidates = _capitals(param, reply, masked)
        if not candidates and not reply.strict:
            candidates = _whole(reply, masked)
    return keep(reply, candidates, strict_fit=2)
