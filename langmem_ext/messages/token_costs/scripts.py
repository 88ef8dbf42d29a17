"""The approximate number of tokens of a text, judged by its scripts, without a tokenizer.

Tokenizers cut a text where its kind of character changes, and merge what is common. So what costs
is counted: words, digits and runs of them, punctuation, line breaks, changes of case inside a word,
knots of consonants (as in ids); and for other scripts their characters, block by block. All of it
is done by bytes-wide operations, a few nanoseconds a character: a message of 200 characters takes 5
µs.

The weights are fitted to `cl100k_base` by quantile regression, and lean to the dear side: a budget
that is understated overflows. What they were fitted to, and how far off they are, is in
docs/guide/tokens.md; newer tokenizers need fewer tokens for most scripts.
"""

from __future__ import annotations

from math import ceil
from operator import mul
from typing import Final

_ASCII: Final = [chr(code) if code < 128 else "." for code in range(256)]


def _table(other: str = ".", **kinds: str) -> bytes:
    """A translation of bytes to kinds of character: the first kind that holds it, else `other`."""
    return bytes(
        ord(next((kind for kind, chars in kinds.items() if char in chars), other))
        for char in _ASCII
    )


_LOWER: Final = "abcdefghijklmnopqrstuvwxyz"
_DIGITS: Final = "0123456789"
_VOWELS: Final = "aeiouyAEIOUY"

_KINDS: Final = _table(a=_LOWER, A=_LOWER.upper(), **{"0": _DIGITS, " ": " \t", "\n": "\r\n"})
_WORDS: Final = _table(a=_LOWER + _LOWER.upper())
_NUMBERS: Final = _table(" ", a=_DIGITS)
_MARKS: Final = _table(
    " ", a="".join(chr(code) for code in range(33, 127) if not chr(code).isalnum())
)
_SOUNDS: Final = _table(v=_VOWELS, c=_LOWER + _LOWER.upper())

_ENGLISH: Final = (b"th", b" to ", b"ing ", b" you")
"""What hardly four words of English prose in a row are without; prose of most other languages
is."""

_RARE: Final = 12
"""Of how many characters one must be of a kind for its runs to be found faster by counting than by
splitting."""

_DEAREST: Final = 3.0
"""Tokens of a character that is not merged with any other: its bytes."""


def _weights() -> dict[int, float]:
    """Tokens of a character by the high byte of its UTF-16 units.

    What is missing costs its bytes.
    """
    weights = {
        0x00: 1.1,
        0x01: 1.6,
        0x02: 1.6,
        0x1D: 2.0,
        0x1E: 1.6,
    }  # Latin letters with accents: each breaks a word
    weights |= {
        0x03: 1.1,
        0x04: 0.65,
        0x05: 1.2,
        0x06: 0.9,
        0x07: 1.5,
    }  # Greek, Cyrillic, Hebrew, Arabic, Syriac
    weights |= {
        0x09: 1.4,
        0x0E: 0.95,
        0x30: 1.05,
        0xFE: 1.5,
        0xFF: 1.5,
    }  # Devanagari and Bengali, Thai, kana, forms of others
    weights |= dict.fromkeys(range(0x0A, 0x0E), 1.9) | dict.fromkeys(
        range(0x20, 0x30), 1.5
    )  # other scripts of India; signs
    weights |= dict.fromkeys(range(0x4E, 0xA0), 1.45) | dict.fromkeys(
        range(0xAC, 0xD8), 1.2
    )  # Han, Hangul
    return weights | dict.fromkeys(range(0xD8, 0xE0), 1.6)  # half of an emoji


_SCRIPTS: Final = _weights()
_STEPS: Final = 20
_SCALED: Final = bytes(
    0 if high == 0 else round(_SCRIPTS.get(high, _DEAREST) * _STEPS) for high in range(256)
)

_WEIGHTS: Final = (0.061, 0.105, 0.265, 0.575, 0.75, 0.75, 0.96, 0.2, 0.49, 0.555, 3.1, 0.29)
"""Tokens of each thing that `_features` counts, in its order."""


def tokens_in(text: str) -> int:
    """About how many tokens a text is; 0 for an empty one alone."""
    if not text:
        return 0
    tokens: float = sum(map(mul, _WEIGHTS, _features(text)))
    return max(1, ceil(tokens if text.isascii() else tokens + _of_other_scripts(text)))


def _features(text: str) -> tuple[float, ...]:
    """What is counted in what a text has of ASCII.

    Small and capital letters, digits, marks, line ends; words, numbers, runs of marks; capitals
    after small letters and before them, knots of consonants; letters of prose that is not English.
    """
    plain = b" " + text.encode("ascii", "ignore")
    kinds = plain.translate(_KINDS)
    small, digits, marks, spoken = (
        kinds.count(b"a"),
        kinds.count(b"0"),
        kinds.count(b"."),
        kinds.count(b"a a"),
    )
    words = plain.translate(_WORDS).count(b".a")
    foreign = spoken - 4.5 * sum(map(plain.count, _ENGLISH)) if spoken else 0
    return (
        small,
        kinds.count(b"A"),
        digits,
        marks,
        kinds.count(b"\n"),
        words,
        _runs(plain, _NUMBERS, digits) if digits else 0,
        _runs(plain, _MARKS, marks) if marks else 0,
        kinds.count(b"aA"),
        kinds.count(b"Aa"),
        plain.translate(_SOUNDS).count(b"cccc"),
        foreign * small / words if foreign > 0 else 0,
    )


def _runs(plain: bytes, table: bytes, count: int) -> int:
    """How many runs the characters of a kind are in, of which there are so many."""
    chars = plain.translate(table)
    return len(chars.split()) if count * _RARE < len(chars) else chars.count(b" a")


def _of_other_scripts(text: str) -> float:
    highs = text.encode("utf-16-be", "surrogatepass")[::2]
    accents = highs.count(0) - len(text.encode("ascii", "ignore"))
    tokens = sum(highs.translate(_SCALED)) / _STEPS + accents * _SCRIPTS[0]
    if 5 in highs:  # Armenian shares the block with Hebrew, and costs twice as much
        lead = text.encode("utf-8", "surrogatepass")
        tokens += lead.count(b"\xd4") + lead.count(b"\xd5")
    return tokens
