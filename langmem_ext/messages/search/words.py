r"""What a search compares: the words of a text, without case and diacritics, and where they are.

A word is letters, digits and the marks on them. Scripts that put no spaces between words (Chinese,
Japanese, Korean, Thai, Khmer, …) are taken by pairs of neighbouring characters, and the last
character by itself: so any part of a sentence is a sequence of words that is in it, and two
characters, the length of most Chinese words, are enough to be found.

>>> list_words("Où est l'ordre n° 17?")
' ou est l ordre n 17 '
>>> list_words("订单状态")
' 订单 单状 状态 态 '
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import accumulate
from typing import Final, NamedTuple
from unicodedata import combining, is_normalized, normalize

LONGEST: Final = 64
"""Characters of a word that count."""

# Signs on letters, and what joins letters or hides between them: no word ends at one. Regular
# expressions take none of them for letters.
_MARKS: Final = (
    "\u00ad\u0300-\u036f\u0483-\u0489\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc"
    "\u06df-\u06e4\u06e7\u06e8\u06ea-\u06ed\u0711\u0730-\u074a\u07a6-\u07b0\u0900-\u0963\u0971-\u09fb\u0a00-\u0df3\u0e31\u0e34-\u0e3a"
    "\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u0f18\u0f19\u0f35\u0f37\u0f39\u0f71-\u0f84\u0f86\u0f87\u0f90-\u0fbc\u102b-\u103e"
    "\u1056-\u1059\u17b4-\u17d3\u1ab0-\u1aff\u1dc0-\u1dff\u200c\u200d\u20d0-\u20f0\u3099\u309a\ufe20-\ufe2f"
)
# Thai, Lao, Tibetan, Burmese, Khmer; Chinese, Japanese, Korean.
_DENSE: Final = (
    "\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\u3400-\u9fff"
    "\uac00-\ud7a3\uf900-\ufaff\U00020000-\U0003ffff"
)
_WORD: Final = re.compile(rf"(?:[^\W_]|[{_MARKS}])+")
_ASCII_WORD: Final = re.compile(r"[a-z0-9]+")
_PIECE: Final = re.compile(rf"[{_DENSE}]+|[^{_DENSE}]+")
_DENSE_LETTER: Final = re.compile(f"[{_DENSE}]")
_HIDDEN: Final = re.compile("[\u00ad\u200c\u200d]")
_CHUNK: Final = re.compile(r"\S+")
_VOICED: Final = "\u3099\u309a"
"""They make another letter of a Japanese one, which no reader takes for the same."""


class Word(NamedTuple):
    """A word as it is compared, and where it is in the text."""

    word: str
    start: int
    end: int


class Run(NamedTuple):
    """Letters of a word of one kind: of a script without spaces (`dense`), or not.

    `start` and `end` are positions in the text.
    """

    letters: str
    dense: bool
    start: int
    end: int


def list_words(text: str) -> str:
    """All words of a text in their order, a space around each; empty for a text without any."""
    if text.isascii():
        raw_words = _ASCII_WORD.findall(text.lower())
        words = (
            [word[:LONGEST] for word in raw_words]
            if max(map(len, raw_words), default=0) > LONGEST
            else raw_words
        )
    else:
        words = [word for run in runs_of_letters(compose(text)) for word in words_of_run(run)]
    return f" {' '.join(words)} " if words else ""


def place_words(text: str) -> Iterator[Word]:
    """The words that `list_words` gives, with where they are; read as far as they are asked for."""
    if text.isascii():
        for match in _ASCII_WORD.finditer(text.lower()):
            yield Word(match.group()[:LONGEST], match.start(), match.end())
    elif is_normalized("NFC", text):
        yield from _place(text)
    else:
        # No letter is composed over a space.
        for chunk in _CHUNK.finditer(text):
            origins = [chunk.start() + at for at in _origins(chunk.group())]
            for word, start, end in _place(compose(chunk.group())):
                yield Word(word, origins[start], max(origins[end], origins[start] + 1))


def compose(text: str) -> str:
    """A text as `runs_of_letters` takes it: a letter and its signs are one character."""
    return normalize("NFC", text)


def runs_of_letters(text: str) -> Iterator[Run]:
    """The folded letters of a composed text in runs of one kind; any other character ends one."""
    for match in _WORD.finditer(text):
        word, start = match.group(), match.start()
        if word.isascii():
            yield Run(word.lower(), False, start, match.end())
            continue
        for piece in _PIECE.finditer(word):
            for letters in _WORD.findall(_fold(piece.group())):
                for part in _PIECE.findall(letters):
                    yield Run(part, _is_dense(part), start + piece.start(), start + piece.end())


def words_of_run(run: Run) -> list[str]:
    """The words that a run is indexed as."""
    letters = run.letters
    if not run.dense:
        return [letters[:LONGEST]]
    return [*map("".join, zip(letters, letters[1:], strict=False)), letters[-1]]


def _place(composed: str) -> Iterator[Word]:
    for run in runs_of_letters(composed):
        # Letter by letter where folding has kept their number; else a word is where its run does.
        each = run.dense and len(run.letters) == run.end - run.start
        for at, word in enumerate(words_of_run(run)):
            yield (
                Word(word, run.start + at, run.start + at + len(word))
                if each
                else Word(word, run.start, run.end)
            )


def _origins(text: str) -> list[int]:
    """Where each character of the composed text begins in the original, and where the last ends."""
    written = [at for at, letter in enumerate(text) for _ in normalize("NFD", letter)]
    lengths = [len(normalize("NFD", letter)) for letter in compose(text)]
    return [written[at] for at in accumulate(lengths[:-1], initial=0)] + [len(text)]


def _is_dense(letters: str) -> bool:
    return _DENSE_LETTER.match(letters) is not None


def _fold(word: str) -> str:
    """A word without case, diacritics and other ways of writing the same letters."""
    if word.isascii():
        return word.lower()
    spread = normalize("NFKD", _HIDDEN.sub("", word).casefold())
    bare = "".join(letter for letter in spread if not combining(letter) or letter in _VOICED)
    return normalize("NFC", bare.casefold())
