"""How far an open value may be read from a reply: not from questions, refusals, other wishes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract.candidate import Candidate
from langmem_ext.waiting.extract.english.attitude import (
    asks_back,
    does_not_care,
    lacks,
    puts_off,
    stalls,
    wants_other,
    wishes_by_asking,
)
from langmem_ext.waiting.extract.english.tokens import before
from langmem_ext.waiting.extract.english.vocabulary import own_stems, stem
from langmem_ext.waiting.extract.reply import Reply

_LAST_NOUN = re.compile(
    r"([A-Za-z]+)(?:'s)?\s*(?:is|are|was|being|:|=|will be|would be|should be|as|to"
    r" be|called|named)?\s*(?:the\s+|called\s+|named\s+)?$",
    re.I,
)


def needed_fit(reply: Reply) -> int:
    """The least fit that a candidate of an open type must have.

    It is 0 in a plain answer, 1 beside a question or refusal, 2 in another wish.
    """
    text = reply.text
    doubtful = (
        asks_back(text)
        or wishes_by_asking(text)
        or lacks(text)
        or does_not_care(text)
        or puts_off(text)
    )
    return 2 if wants_other(text) else 1 if doubtful else 0


def is_no_answer(text: str) -> bool:
    """Whether nothing in the text, taken as a whole, can be an open value."""
    return (
        not re.search(r"\w", text)
        or asks_back(text)
        or lacks(text)
        or does_not_care(text)
        or puts_off(text)
        or wants_other(text)
        or stalls(text)
    )


_INTRODUCES = re.compile(
    r"\W*(?:(?:and|so|oh|yes|ok(?:ay)?|hi|hello)\b\W*)*(?:my|the) name(?:['’]?s| is)\b", re.I
)


_TITLED = re.compile(
    r"\W*(?:(?i:it['’]?s|for|oh|yes)\W+)?(?i:mr|mrs|ms|miss)\b\.?(?:\s+[A-Z][\w'’-]*){1,3}\W*"
)


def introduces(text: str) -> bool:
    """Whether the text says somebody's name, which is no street, place or story."""
    return _INTRODUCES.match(text) is not None or _TITLED.fullmatch(text) is not None


def named_before(param: Param, text: str, start: int) -> bool:
    """Whether the parameter's own noun introduces what begins at `start`: "my destination is …"."""
    match = _LAST_NOUN.search(before(text, start))
    return (
        match is not None
        and stem(match[1]) in own_stems(param)
        and match.group().strip().lower() != match[1].lower()
    )


def keep(reply: Reply, candidates: Iterable[Candidate], *, strict_fit: int) -> list[Candidate]:
    """Those that fit well enough for this reply."""
    least = strict_fit if reply.strict else needed_fit(reply)
    return [candidate for candidate in candidates if candidate.fit >= least or candidate.fit < 0]
