"""Where values are in a text, however they are spaced, written large or small, or accented.

>>> find_spans("My card is 4111-1111 1111 1111.", "4111111111111111")
[(11, 30)]
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import TypeAlias
from unicodedata import normalize

Span: TypeAlias = tuple[int, int]


def squeezed(text: str) -> str:
    """The letters and digits of a text, as they are compared."""
    return "".join(map(_letters, text))


@lru_cache(maxsize=4096)
def _letters(char: str) -> str:
    return "".join(
        letter
        for letter in normalize("NFKD", normalize("NFKD", char).casefold())
        if letter.isalnum()
    )


def find_spans(text: str, value: str) -> list[Span]:
    """All places where `value` occurs in `text`, widened to whole words; none if it is empty.

    Only letters and digits are compared.
    """
    word = squeezed(value)
    if not word:
        return []
    line, places = _line(text)
    spans, start = list[Span](), line.find(word)
    while start >= 0:
        add_widened(spans, text, places[start], places[start + len(word) - 1] + 1)
        start = line.find(word, start + 1)
    return joined(text, spans)


def windows(text: str, lengths: Collection[int]) -> Iterator[tuple[str, Span]]:
    """The whole words and runs of words that have so many letters and digits.

    Each as it is compared, with its place. A number that touches letters, and a capital after a
    small letter, begin a word; in scripts without spaces every character does.
    """
    if not lengths:
        return
    line, places = _line(text)
    edges = {0, len(line)} | {
        place for place in range(1, len(line)) if _parts(text, places[place - 1], places[place])
    }
    for start in sorted(edges):
        for length in lengths:
            end = start + length
            if end in edges:
                yield line[start:end], (places[start], places[end - 1] + 1)


def _line(text: str) -> tuple[str, list[int]]:
    """A text's letters and digits, as they are compared, and the place of each."""
    places = [(letter, at) for at, char in enumerate(text) for letter in _letters(char)]
    return "".join(letter for letter, _ in places), [at for _, at in places]


_DENSE = "\u0e00"
"""From here on scripts may have no spaces."""


def _parts(text: str, before: int, after: int) -> bool:
    """Whether a word may end between two letters that follow each other."""
    one, other = text[before], text[after]
    return (
        after > before + 1
        or one.isdigit() != other.isdigit()
        or (one.islower() and other.isupper())
        or (after > before and max(one, other) >= _DENSE)
    )


def add_widened(spans: list[Span], text: str, start: int, end: int) -> None:
    """Add a span, widened to whole words, unless the last one covers it: a run is walked once."""
    if not (spans and spans[-1][0] <= start and end <= spans[-1][1]):
        spans.append(_widened(text, start, end))


def _widened(text: str, start: int, end: int) -> Span:
    """To the blanks around it: what is written in one with a value tells of it."""
    while (
        start > 0
        and not text[start - 1].isspace()
        and (text[start - 1].isalnum() or _glues(text, start - 1))
    ):
        start -= 1
    while end < len(text) and (text[end].isalnum() or _glues(text, end)):
        end += 1
    return start, end


def _glues(text: str, at: int) -> bool:
    """Whether a sign is between letters or digits, or is a mark on one."""
    inside = 0 < at < len(text) - 1 and not text[at - 1].isspace() and not text[at + 1].isspace()
    return (
        not text[at].isspace() and inside and (text[at + 1].isalnum() or not _letters(text[at + 1]))
    )


def joined(text: str, spans: Iterable[Span]) -> list[Span]:
    """The spans in order, those that touch or that only signs and blanks part as one."""
    together: list[Span] = []
    for start, end in sorted(spans):
        if together and (
            start <= together[-1][1] or not re.search(r"\w", text[together[-1][1] : start])
        ):
            together[-1] = together[-1][0], max(together[-1][1], end)
        else:
            together.append((start, end))
    return together
