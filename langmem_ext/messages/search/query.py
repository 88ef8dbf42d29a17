r"""What a user searches for, and where it is in a text.

The user's text is data: nothing in it is a command to a database.

>>> [term.words for term in plan_query('order "not yet" SHIP')]
['order', 'not yet', 'ship']
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from langmem_ext.messages.search.words import (
    compose,
    list_words,
    place_words,
    runs_of_letters,
    words_of_run,
)

MOST_WORDS: Final = 64
"""Words of a query that count; of a longer text, the first ones."""

MOST_CHARACTERS: Final = 10_000
"""How many characters of a query are read: a query may be a whole document."""

SNIPPET: Final = 200
"""Characters of a snippet, at most, but for what is one word."""

_BEFORE: Final = 40
"""Characters of a snippet that are before the first place found, if there are so many."""

_PLACES: Final = 200
"""Places of a text that are looked at for its snippet."""

_QUOTES: Final = re.compile('["“”„«»]')

# Okapi BM25, with the usual constants.
_SATURATION: Final = 1.2
_LENGTH: Final = 0.75

Span = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Term:
    """Words that must be next to each other.

    Attributes:
        words: The words, with spaces between.
        prefix: Whether the last of them may continue.
    """

    words: str
    prefix: bool = False

    @property
    def pattern(self) -> str:
        """What is in `words.list_words` of every text that has it."""
        return f" {self.words}" if self.prefix else f" {self.words} "


def plan_query(text: str) -> tuple[Term, ...]:
    """The terms of a query, all of which must occur: words, phrases, a last word's prefix."""
    parts = _QUOTES.split(compose(text[:MOST_CHARACTERS]))
    if len(parts) % 2 == 0:
        parts[-2:] = [" ".join(parts[-2:])]  # a quote that nothing closes
    terms: list[Term] = []
    for position, part in enumerate(parts):
        words = (
            [_words(part, last=True)]
            if position % 2
            else [_words(word, last=True) for word in _single(part)]
        )
        terms += [
            Term(" ".join(part_words[0]), part_words[1]) for part_words in words if part_words[0]
        ]
    if terms and any(runs_of_letters(parts[-1])):
        terms[-1] = Term(terms[-1].words, prefix=True)
    return tuple(dict.fromkeys(_bounded(terms)))


def _single(part: str) -> Iterator[str]:
    """The words of a part one by one; letters of several scripts that are together stay so."""
    runs = list(runs_of_letters(part))
    start = 0
    for at, run in enumerate(runs):
        if at + 1 == len(runs) or runs[at + 1].start > run.end:
            yield part[runs[start].start : run.end]
            start = at + 1


def _words(part: str, *, last: bool) -> tuple[list[str], bool]:
    """The words of a part in a row, and whether the last of them may continue.

    In a text, the last character of a run is by itself as well; here it does only where the run
    ends for certain, before other letters.
    """
    runs = list(runs_of_letters(part))
    words: list[str] = []
    for at, run in enumerate(runs):
        ends = at + 1 < len(runs) or not last
        run_words = words_of_run(run)
        if run.dense and not ends:
            if len(run_words) == 1:
                return [*words, *run_words], True
            run_words = run_words[:-1]
        words += run_words
    return words, False


def _bounded(terms: Sequence[Term]) -> Iterator[Term]:
    left = MOST_WORDS
    for term in terms:
        words = term.words.split(" ")
        yield term if len(words) <= left else Term(" ".join(words[:left]), prefix=False)
        left -= len(words)
        if left <= 0:
            return


# -- in a text -------------------------------------------------------------------------------------


def has_all(words: str, terms: Sequence[Term]) -> bool:
    """Whether a text with these words (`list_words`) has all terms."""
    return all(term.pattern in words for term in terms)


def weigh(counts: Sequence[int], total: int) -> list[float]:
    """What each term is worth, from how many texts of how many have it: what is rare tells more."""
    return [
        math.log(1 + (total - count + 0.5) / (count + 0.5))
        for count in (min(count, total) for count in counts)
    ]


def rank(texts: Sequence[str], terms: Sequence[Term], weights: Sequence[float]) -> list[float]:
    """How well texts with these words answer, compared with each other: the higher the better."""
    lengths = [words.count(" ") - 1 for words in texts]
    mean = sum(lengths) / max(len(lengths), 1) or 1.0
    ranks = []
    for words, length in zip(texts, lengths, strict=True):
        damping = _SATURATION * (1 - _LENGTH + _LENGTH * length / mean)
        # Two of the same next to each other share a space and count once: that is near enough.
        counts = [words.count(term.pattern) for term in terms]
        ranks.append(
            sum(
                w * times * (_SATURATION + 1) / (times + damping)
                for w, times in zip(weights, counts, strict=True)
            )
        )
    return ranks


def find_places(text: str, terms: Sequence[Term]) -> list[Span]:
    """Where the terms are in a text, in order and apart from each other."""
    plain = list_words(text).split()
    matches: list[tuple[int, list[str]]] = []
    for term in terms:
        wanted = term.words.split(" ")
        matches += (
            (at, wanted) for at in islice(_places_of(plain, wanted, prefix=term.prefix), _PLACES)
        )
    # Of a long text where words are common, only the beginning is walked through.
    needed = {number for at, wanted in matches for number in (at, at + len(wanted) - 1)}
    walked = islice(enumerate(place_words(text)), max(needed, default=-1) + 1)
    words = {number: word for number, word in walked if number in needed}
    places: list[Span] = []
    for at, wanted in matches:
        last = words[at + len(wanted) - 1]
        # Of a pair of characters only the first was asked for, where the second is what the
        # beginning continues.
        cut = (
            last.end - last.start == len(last.word) == 2
            and len(wanted[-1]) == 1
            and not last.word.isascii()
        )
        places.append((words[at].start, last.start + 1 if cut else last.end))
    merged: list[Span] = []
    for start, end in sorted(places):
        if merged and start < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _places_of(words: Sequence[str], wanted: Sequence[str], *, prefix: bool) -> Iterator[int]:
    firm, last, length = list(wanted if not prefix else wanted[:-1]), wanted[-1], len(wanted)
    for at in range(len(words) - length + 1):
        if words[at : at + len(firm)] == firm and (
            not prefix or words[at + length - 1].startswith(last)
        ):
            yield at


def cut_snippet(text: str, terms: Sequence[Term]) -> tuple[str, tuple[Span, ...]]:
    """An excerpt of a text in one line with as many matches as fit, and their spans in it."""
    places = find_places(text, terms)[:_PLACES]
    start = 0
    if len(text) > SNIPPET and places:
        begin = max(
            places,
            key=lambda place: (
                sum(place[0] <= at < place[0] + SNIPPET - _BEFORE for at, _ in places),
                -place[0],
            ),
        )[0]
        start = max(0, min(begin - _BEFORE, len(text) - SNIPPET))
        gap = re.search(r"\s", text[start:begin]) if start else None
        start += gap.end() if gap is not None else 0
    end = min(len(text), start + SNIPPET)
    gap = re.search(r"\s\S*$", text[start:end]) if end < len(text) else None
    covered = max((min(last, len(text)) for first, last in places if first < end), default=end)
    end = max(start + gap.start() if gap is not None else end, min(covered, end))
    head, tail = "…" if start else "", "…" if end < len(text) else ""
    shift = len(head) - start
    shown = tuple(
        (max(first, start) + shift, min(last, end) + shift)
        for first, last in places
        if first < end and last > start
    )
    return head + re.sub(r"[\s\0]", " ", text[start:end]) + tail, shown
