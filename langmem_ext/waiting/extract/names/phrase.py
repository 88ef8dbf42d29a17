"""Phrases that name a thing or a place, told apart from sentences about something else.

"a fridge, two chairs" names things; "not sure, have to ask my wife" and "can it be the 5th" do not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langmem_ext.waiting.extract.english.leadin import answer_span
from langmem_ext.waiting.extract.english.lexicon import (
    AUXILIARIES,
    DETERMINERS,
    FUNCTION_WORDS,
    PREPOSITIONS,
    PRONOUNS,
    VERBS,
    word_set,
)
from langmem_ext.waiting.extract.english.tokens import Token, tokens

_CUT = re.compile(
    r"[.,;:!?\n…]+(?=\s|$)|\s{3,}|\s[–—-]\s|\s(?=(?:but|because|cos|cause|though|if)\b)", re.I
)
"""Where a part of a message ends. Blanks stand for what is read already."""
_DETERMINED = r"(?:an?|the|my|our|your|his|her|their|this|some|one|two|three|four|\d+)\b"
_LEAD = re.compile(
    r"(?:(?:it|that|this|there|they|these|those)(?:['’]?(?:s|re)|\s+(?:is|are))\s+(?!\w+(?:ing|ed)\b)"
    r"|(?:it|that|this|there|he|she)(?:['’]?s|\s+(?:is|was))\s+(?:just\s+)?"
    rf"(?={_DETERMINED}|(?:in|on|at|by|near|behind|under|outside)\b)"
    r"|(?:(?:i|we)(?:['’]?(?:ve|d))?\s+)?(?:got|have|need|want|lost|left|would like|like)\s+"
    rf"(?:just\s+)?(?={_DETERMINED}))",
    re.I,
)
"""Words that only lead to what they name: "it's a dachshund"."""
_SUBJECTS = word_set(
    "i we he she they it you there someone somebody everybody nobody hes shes theyre youre theyll"
    " itll theres who what when where why how which"
)
_RELATIVES = word_set("that which who i we you he she they")
"""Words that go on with a thing that an article began: "the bag that I had", "the one we use"."""
_WHERE = re.compile(
    r"\b(?:in|on|at|by|near|behind|under|outside|inside|opposite|between|beside|below|above|along"
    r"|next to|in front of|close to|round|around|off)"
    r"\s+(?!\d{1,2}(?::|\s?[ap]m)|(?:it|me|you|in|on|at|to|by|about|all)\b)\w",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Phrase:
    """What a message names.

    Attributes:
        start: Offset of its first character.
        end: Offset after its last character.
        alone: Whether the message says nothing else.
    """

    start: int
    end: int
    alone: bool


@dataclass(frozen=True, slots=True)
class _Part:
    start: int
    end: int
    names: bool
    led: bool


def named_in(text: str) -> Phrase | None:
    """The phrase that names something; None where there are only sentences."""
    parts = [part for start, end in _bounds(text) if (part := _part(text, start, end)) is not None]
    naming = [part for part in parts if part.names]
    if not naming:
        return None
    told = re.search(r"[.!?\n]\s", text[naming[0].end : naming[-1].start + 1])
    if len(naming) == len(parts) and not told:
        return Phrase(naming[0].start, naming[-1].end, True)
    chosen = next((part for part in naming if part.led), naming[0])
    return Phrase(chosen.start, chosen.end, False)


def place_in(text: str) -> Phrase | None:
    """The words that say where, within a sentence: "you find it behind the church"."""
    for start, end in _bounds(text):
        match = _WHERE.search(text, start, end)
        begin, stop = answer_span(text, match.start(), end, framed=False) if match else (0, 0)
        if any(_tells(word) for word in tokens(text[begin:stop])):
            return Phrase(begin, stop, False)
    return None


def _bounds(text: str) -> list[tuple[int, int]]:
    cuts = [(0, 0), *(match.span() for match in _CUT.finditer(text)), (len(text), len(text))]
    return [
        (end, start) for (_, end), (start, _) in zip(cuts, cuts[1:], strict=False) if end < start
    ]


def _part(text: str, start: int, end: int) -> _Part | None:
    """A part of a message; None where it says nothing."""
    start, end = answer_span(text, start, end, framed=False)
    lead = _LEAD.match(text, start, end)
    begin = lead.end() if lead else start
    words = tokens(text[begin:end])
    if not any(_tells(word) for word in words):
        return None if not re.search(r"\w{2}", text[start:end]) else _Part(start, end, False, False)
    idle = lead is None and all(word.low in FUNCTION_WORDS | VERBS for word in words)
    if _BESIDE.match(text, start) or (idle and len(words) > 1 and words[0].low in FUNCTION_WORDS):
        return _Part(start, end, False, False)
    led = (
        lead is not None
        or words[0].low in DETERMINERS
        or (words[0].text.isdigit() and len(words) > 1)
    )
    return _Part(begin, end, not _is_sentence(words, led=led), led)


_BESIDE = re.compile(r"(?:but|because|cos|cause|though|if)\b", re.I)
"""Words that begin a condition or a reason."""


def _tells(word: Token) -> bool:
    return re.search(r"[^\W\d_]", word.text) is not None and word.low not in FUNCTION_WORDS


def _is_sentence(words: Sequence[Token], *, led: bool) -> bool:
    """Whether somebody does or is something in these words, or is told to do it."""
    for at, word in enumerate(words):
        if led and at and word.low in _RELATIVES:
            return False
        if led and at and words[at - 1].low in PREPOSITIONS:
            continue  # "with stars on it"
        if word.low in _SUBJECTS | AUXILIARIES:
            return True
    if led or len(words) < 2:
        return False
    second = words[1].low
    third = words[2].low if len(words) > 2 else "the"
    return (
        second in _OBJECT_FIRST
        or (second in _PARTICLES and third in FUNCTION_WORDS)
        or (words[0].low in VERBS and second in DETERMINERS | PRONOUNS | PREPOSITIONS)
    )


_OBJECT_FIRST = word_set("the a an my our your his her their it him them me us")
_PARTICLES = word_set("up back out down off away over along")
"""What only a verb has behind it: "forget the bike", "went up to the loft"."""


_UNIT_OF = re.compile(
    r"(?:\d+|[a-z]+)\s*(?:x\s+)?(?:(?:big|small|large|full|whole|more)\s+)?"
    r"(?P<unit>(?:tub|tube|box|pack|packet|bottle|bag|case|carton|roll|jar|tin|can|crate|sheet"
    r"|piece|pair|set|unit|item|bunch|tray|pot|barrel|bucket|sack|pallet|bale|punnet|loaf|slice"
    r"|load)(?:s|es)?|cop(?:y|ies)|loaves)\b(?P<of>\s+of\s+(?:the\s+|your\s+|those\s+)?)?",
    re.I,
)
_THING_ENDS = re.compile(
    r"[,;:!?\n]|\.(?:\s|$)|\s{2}|\s(?:to|in|on|at|by|from|for|with|please|pls|and|that|which|this"
    r"|next|asap|today|tomorrow|instead)\b",
    re.I,
)


_GOES_ON = re.compile(r"(?:,|\s*and\b)\s*(?:an?|some|the|one|two|three|four|five|six|\d+)\s", re.I)


@dataclass(frozen=True, slots=True)
class Counted:
    """How many there are of a thing, by a unit: "3 boxes of gloves".

    Attributes:
        count: The span of the number and the unit.
        thing: The span of what is counted; None where it is not said behind "of".
    """

    count: tuple[int, int]
    thing: tuple[int, int] | None


def counted_in(text: str, start: int) -> Counted | None:
    """What the number at `start` counts by a unit; None for several things, or no unit."""
    match = _UNIT_OF.match(text, start)
    if match is None:
        return None
    count = (start, match.end("unit"))
    if not match["of"]:
        return Counted(count, None)
    stop = _THING_ENDS.search(text, match.end())
    end = stop.start() if stop else len(text)
    begin, end = answer_span(text, match.end(), end)
    if _GOES_ON.match(text, end) or not any(_tells(word) for word in tokens(text[begin:end])):
        return None
    return Counted(count, (begin, end))
