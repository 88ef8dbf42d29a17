"""Numbers in a text, in digits and in words, with their places."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from langmem_ext.waiting.extract.reading_cache import remembered

UNITS = {
    word: value
    for value, word in enumerate(
        (
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
        )
    )
}
TENS = {
    word: 10 * value
    for value, word in enumerate(
        ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"), start=2
    )
} | {"fourty": 40}
SCALES = {"hundred": 100, "thousand": 1_000, "grand": 1_000, "million": 1_000_000, "k": 1_000}
_WORD = "|".join(sorted((*UNITS, *TENS, "hundred", "thousand", "million"), key=len, reverse=True))
WORDS = (
    rf"(?<!\bfew\s)(?<!\bseveral\s)(?:an?\s+(?=(?:hundred|thousand|million)\b))?(?:{_WORD})(?:(?:\s*-\s*|\s+"
    rf"|\s+and\s+)(?:{_WORD})){{0,11}}"
)
"""A number in words, as the source of a regular expression."""

DIGITS = r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?"
"""A number in digits, as the source of a regular expression."""

_SHARE = r"(?:half|quarter|three\s+quarters)"
_SCALE = r"(?:hundred|thousand|million|grand(?!\s+[a-z]+s\b)|k|dozen)\b"
SCALED = (
    rf"(?:(?:half(?:\s+an?)?|(?:an?|one|three)\s+quarters?\s+of\s+an?|an?\s+couple(?:\s+of)?"
    rf"|\d*[½¼¾])\s*(?!dozen){_SCALE}"
    rf"|(?:{DIGITS}|(?:{WORDS})\b)\s+and\s+(?:an?\s+)?{_SHARE}\b(?!\s+(?:past|to)\b)(?:\s+{_SCALE})?"
    rf"|(?:an?|{WORDS})\s+(?:grand|k)\b(?:\s+and\s+a\s+half\b)?"
    r"|an?\s+(?:thousand|million)\s+and\s+a\s+half\b|\d+[½¼¾])"
)
"""Halves, quarters and multiples in words, as the source of a regular expression."""
_SCALED = re.compile(
    rf"(?P<count>.*?)(?:\s+and\s+(?:an?\s+)?(?P<share>{_SHARE}))?(?:\s*\b(?P<scale>{_SCALE}))?"
    r"(?P<more>\s+and\s+a\s+half)?",
    re.I | re.S,
)
_SHARES = {"half": 0.5, "quarter": 0.25, "three quarters": 0.75, "½": 0.5, "¼": 0.25, "¾": 0.75}

_NUMERAL = re.compile(
    rf"(?<![\w#/:.,-])(?P<scaled>{SCALED})"
    r"|(?<![\w#/:.,-])(?P<dozens>\d{1,3}|an?\s+couple(?:\s+of)?|two|three|four|five|six|ten)\s+dozen\b"
    rf"|(?:(?<=\bx)|(?<![\w#/:.,-])-?)(?P<digits>{DIGITS})"
    rf"(?:\s*(?P<scale>hundred|thousand|million|grand(?!\s+[a-z]+s\b)|k)\b|-?ish\b|x\b"
    rf"|(?![\w/:]|[-–]\d|\.\d|,\d))"
    rf"|\b(?P<words>{WORDS})\b"
    r"|\b(?P<named>an?\s+couple(?:\s+of)?|(?:half\s+a|a\s+half|half)\s+dozen|an?\s+dozen"
    r"|an?\s+pair)\b",
    re.I,
)


_NO_COUNT = re.compile(
    r"\b(?:same|which|other|another|no|any|every|each|the (?:new|old|big|small|last|first"
    r"|next|cheap|other|right|wrong|middle))\s+$",
    re.I,
)
"""What comes before a "one" that counts nothing: "the same one"."""


@dataclass(frozen=True, slots=True)
class Numeral:
    """A number, its span, and whether it was written in digits."""

    start: int
    end: int
    value: int | float
    digits: bool


MOST: Final = 60
"""Numbers of a message that are looked at."""


def words_value(words: str) -> int | None:
    """The number that `words` spell; None when they spell none ("two three")."""
    total = current = 0
    last = (
        0  # size of the smallest group that may still follow; a unit after a unit is another number
    )
    for word in re.findall(r"[a-z]+", words.lower()):
        if word in UNITS:
            if last and (last < 10 or (last < 100 and UNITS[word] > 9)):
                return None
            current += UNITS[word]
            last = 1
        elif word in TENS:
            if last and last < 100:
                return None
            current += TENS[word]
            last = 10
        elif word == "hundred":
            current = max(current, 1) * 100
            last = 100
        elif word in SCALES:
            total += max(current, 1) * SCALES[word]
            current = 0
            last = 1_000
    return total + current


def scaled_value(written: str) -> int | float | None:
    """The number that words with a half, a quarter or a multiple say: "two and a half thousand"."""
    parts = _SCALED.fullmatch(re.sub(r"\s+", " ", written.lower()))
    if parts is None:
        return None
    scale = {**SCALES, "dozen": 12}.get(parts["scale"] or "", 1)
    count = _counted(parts["count"].strip())
    if count is None:
        return None
    value = (count + _SHARES.get(parts["share"] or "", 0) + (0.5 if parts["more"] else 0)) * scale
    return int(value) if float(value).is_integer() else value


def _counted(written: str) -> int | float | None:
    """What multiplies: "a couple of", "half a", "2½", "two"."""
    if written[-1:] in _SHARES:
        return (int(written[:-1]) if written[:-1] else 0) + _SHARES[written[-1]]
    if written[:1].isdigit():
        return digits_value(written)
    if "couple" in written:
        return 2
    share = re.search(_SHARE, written)
    if share:
        return 0.75 if written.startswith("three") else _SHARES[share.group()]
    return 1 if written in ("a", "an") else words_value(written)


def digits_value(digits: str, scale: str = "") -> int | float:
    """The number that `digits` write; an int when it is whole."""
    number = float(digits.replace(",", "")) * SCALES.get(scale.lower(), 1)
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


@remembered
def numerals(text: str) -> list[Numeral]:
    """The numbers of `text` in order, at most `MOST`.

    Parts of dates, times, ids and ranges in digits are left out.
    """
    numbers: list[Numeral] = []
    for _, match in zip(range(MOST), _NUMERAL.finditer(text), strict=False):
        value: int | float | None
        if match["scaled"]:
            value = scaled_value(match["scaled"])
        elif match["dozens"]:
            count = match["dozens"].lower()
            value = 12 * (int(count) if count.isdigit() else UNITS.get(count, 2))
        elif match["digits"]:
            value = digits_value(match["digits"], match["scale"] or "")
            value = -value if match.group().startswith("-") else value
        elif match["words"]:
            value = words_value(match["words"])
        else:
            named = match["named"].lower()
            value = (6 if "half" in named else 12) if "dozen" in named else 2
        pronoun = value == 1 and match["words"] and _NO_COUNT.search(text, 0, match.start())
        if value is not None and abs(value) < 1e15 and not pronoun:
            in_digits = match.group().lstrip("-")[:1].isdigit() and match["dozens"] is None
            numbers.append(Numeral(match.start(), match.end(), value, in_digits))
    return numbers
