"""Words with their places, sentences, and runs of capitalised words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langmem_ext.waiting.extract.english.lexicon import FUNCTION_WORDS, NEVER_NAMES, word_set
from langmem_ext.waiting.extract.reading_cache import remembered

_TOKEN = re.compile(r"[^\W_](?:[\w]|['’&/-](?=\w)|\.(?=[a-z\d])|(?<=\b[A-Z])\.)*['’]?|#\d+|&")
_SENTENCE = re.compile(r"[.!?;\n]+(?=\s|$)|[.!?](?=[A-Z])")
_ABBREVIATION = re.compile(r"\b(?:[A-Za-z]|st|mr|mrs|ms|dr|ave|mt|ft|no|vs|a\.m|p\.m)$", re.I)
_ABBREVIATED = 8
"""Characters before a point in which an abbreviation is looked for."""
_JOINERS = frozenset(
    (
        "of",
        "the",
        "de",
        "la",
        "le",
        "du",
        "del",
        "da",
        "di",
        "van",
        "von",
        "der",
        "den",
        "y",
        "&",
        "'n'",
        "n",
        "a",
        "an",
        "in",
        "on",
    )
)
_CUE_REACH = 100
"""Characters before a value in which its cues are looked for."""
_TITLES = frozenset(("dr", "mr", "mrs", "ms", "st", "mt", "ft", "prof"))


@dataclass(frozen=True, slots=True)
class Token:
    """One word and its place in the text."""

    text: str
    start: int
    end: int

    @property
    def low(self) -> str:
        """Its lower-case form with plain apostrophes."""
        return self.text.lower().replace("’", "'")

    @property
    def capitalised(self) -> bool:
        """Whether it is written like a name: a capital first, or inside (`iPhone`)."""
        return any(letter.isupper() for letter in self.text[:2])


@remembered
def tokens(text: str) -> list[Token]:
    """The words of `text`, in order; punctuation is left out."""
    return [Token(match.group(), match.start(), match.end()) for match in _TOKEN.finditer(text)]


def sentences(text: str) -> list[tuple[int, int]]:
    """The non-empty sentences of `text` as `[start, end)`, without closing punctuation."""
    bounds: list[tuple[int, int]] = []
    start = 0
    for match in _SENTENCE.finditer(text):
        near = max(start, match.start() - _ABBREVIATED)
        if match.group() == "." and _ABBREVIATION.search(text[near : match.start()]):
            continue
        bounds.append((start, match.start()))
        start = match.end()
    bounds.append((start, len(text)))
    return [(begin, end) for begin, end in bounds if text[begin:end].strip()]


def trim(text: str, start: int, end: int, extra: str = "") -> tuple[int, int]:
    """`[start, end)` without the white space, quotes and loose punctuation at its ends."""
    loose = ' \t\r\n.,;:!?"“”‘()[]*' + extra
    while start < end and text[start] in loose:
        start += 1
    while start < end and text[end - 1] in loose:
        end -= 1
    return start, end


def blanked(text: str, span: tuple[int, int]) -> str:
    """The text with a part blanked; the rest keeps its place."""
    start, end = span
    return text[:start] + " " * len(text[start:end]) + text[end:]


def blanked_where(text: str, pattern: re.Pattern[str]) -> str:
    """The text with what matches a pattern blanked; the rest keeps its place."""
    return pattern.sub(lambda match: " " * len(match.group()), text)


def before(text: str, start: int) -> str:
    """The words before `start`, as far back as a cue may be.

    The length is bounded, so that the cost of a message is linear in its length.
    """
    return text[max(0, start - _CUE_REACH) : start]


@dataclass(frozen=True, slots=True)
class Run:
    """Neighbouring words that look like one name: `words[first:last]` of the text's tokens."""

    first: int
    last: int
    start: int
    end: int


def runs(text: str, words: Sequence[Token], masked: Sequence[tuple[int, int]] = ()) -> list[Run]:
    """Runs of capitalised words outside `masked`.

    They are joined over "of", "&" and the like, with a number at their end ("NewPark 12").
    """
    capitalised: list[Run] = []
    index = 0
    while index < len(words):
        if not _opens(words, index, masked):
            index += 1
            continue
        last = _extent(text, words, index, masked)
        capitalised.append(Run(index, last, words[index].start, words[last - 1].end))
        index = last
    return capitalised


def _free(word: Token, masked: Sequence[tuple[int, int]]) -> bool:
    return not any(word.start < end and start < word.end for start, end in masked)


def _opens(words: Sequence[Token], index: int, masked: Sequence[tuple[int, int]]) -> bool:
    word = words[index]
    if not word.capitalised or not _free(word, masked) or _is_stressed(words, index):
        return False
    if word.low not in NEVER_NAMES:
        return True
    # "The Grotto", "All Saints": a function word may open a name when the next word goes on with
    # it, unless it is just a sentence's first.
    follows = (
        index + 1 < len(words)
        and words[index + 1].capitalised
        and words[index + 1].low not in NEVER_NAMES
    )
    return (
        word.low in ("the", "la", "le", "el", "los", "las", "all", "over", "down", "up", "le")
        and follows
    )


def _is_stressed(words: Sequence[Token], index: int) -> bool:
    """Whether a word is in capitals for its weight: "she HATES it", "they're a STATE"."""
    word = words[index]
    loud = word.text.isupper() and len(word.text) >= _LOUD
    return loud and index > 0 and words[index - 1].low in _BEFORE_STRESSED


_LOUD = 4
"""Letters of a word in capitals that may be no abbreviation, at least."""
_BEFORE_STRESSED = word_set("i you he she it we they a an so very really too not never")


def _extent(
    text: str, words: Sequence[Token], first: int, masked: Sequence[tuple[int, int]]
) -> int:
    last = first + 1
    while last < len(words):
        step = _step(text, words, last, masked)
        if not step:
            break
        last += step
    while (
        last > first + 1
        and words[last - 1].low in NEVER_NAMES
        and words[last - 1].low not in ("out", "up", "now")
        and not words[last - 2].low.endswith("'s")  # "the Saracen's Head"
    ):
        last -= 1
    return last


def _step(text: str, words: Sequence[Token], at: int, masked: Sequence[tuple[int, int]]) -> int:
    """How many words the name goes on with at `at`; 0 when it ends."""
    word = words[at]
    gap = text[words[at - 1].end : word.start].strip(" -")
    if (gap and not (gap == "." and words[at - 1].low in _TITLES)) or not _free(word, masked):
        return 0
    if word.capitalised:
        return 1 if word.low not in ("i", "i'm", "i'd", "i'll", "please", "thanks") else 0
    if word.text[0] == "#" or (word.text.isdigit() and _closes(text, words, at)):
        return 1
    for width in (1, 2):  # "of", "of the"
        after = at + width
        if (
            after < len(words)
            and all(words[k].low in _JOINERS for k in range(at, after))
            and words[after].capitalised
        ):
            gap = text[words[after - 1].end : words[after].start].strip()
            joined = word.low not in ("a", "an", "in", "on") and words[after].low not in NEVER_NAMES
            return width + 1 if joined and not gap and _free(words[after], masked) else 0
    return 0


def _closes(text: str, words: Sequence[Token], at: int) -> bool:
    """Whether the number at `at` ends its clause, and so belongs to the name before it."""
    return (
        at + 1 == len(words)
        or words[at + 1].low in FUNCTION_WORDS
        or bool(text[words[at].end : words[at + 1].start].strip())
    )
