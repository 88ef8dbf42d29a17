"""The context of an answer: the message, the question before it, and what else is known."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from itertools import islice
from typing import Final

from pydantic import JsonValue

from langmem_ext.waiting.catalog.param import Param

LONGEST: Final = 1_000
"""Characters of a message that are read: what it asks for, and its values, are there. Only a free
text may be longer."""

MOST_VALUES: Final = 16
MOST_NUMBERS: Final = 10
"""Words of a message that may be values, and numbers, days and months among them, at most: what
comes after them is not read. Of 11,000 messages of invented conversations one has 17 such words,
and none more than nine numbers.
"""

_NUMBER_LIKE: Final = re.compile(
    r"\d[\d.,:/]*"
    r"|\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b"
    r"|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)\w*"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty|hundred)\b"
    r"|\b(?:half|quarter|noon|midnight|today|tonight|tomorrow)\b",
    re.IGNORECASE,
)
_VALUE_LIKE: Final = re.compile(
    rf"{_NUMBER_LIKE.pattern}|\w@\w|\b(?-i:[A-Z])\w*|\b(?:my|me)\b", re.IGNORECASE
)


_WIDE_GAP: Final = re.compile(r"(?P<kept>\s{20})\s+")
"""Blanks that nobody types between two words: a pattern may go back and forth over them."""


def without_wide_gaps(text: str) -> tuple[str, Callable[[int], int]]:
    """The text with no more than a few blanks in a row, and where a place in it was before."""
    gaps = list(_WIDE_GAP.finditer(text))
    lost = [gap.end() - gap.end("kept") for gap in gaps]
    ends = [gap.end("kept") - sum(lost[:place]) for place, gap in enumerate(gaps)]

    def place_before(place: int) -> int:
        return place + sum(count for end, count in zip(ends, lost, strict=True) if end <= place)

    return _WIDE_GAP.sub(r"\g<kept>", text) if gaps else text, place_before


def read_part(text: str) -> str:
    """The part of a message that is read: its beginning, which holds few enough values."""
    text = text[:LONGEST]
    for pattern, most in ((_NUMBER_LIKE, MOST_NUMBERS), (_VALUE_LIKE, MOST_VALUES)):
        more = next(islice(pattern.finditer(text), most, None), None)
        text = text[: more.start()] if more else text
    return text


@dataclass(frozen=True, slots=True)
class Reply:
    """A user's message, for an extractor.

    Attributes:
        text: The message.
        prompt: The agent's question it answers; empty when the value may be in any message,
            which makes every extractor strict: it takes only what the message clearly marks.
        others: Parameters asked for in the same question, or that the plan still lacks: their
            values are not this one's.
        filled: Values known already, by parameter name.
        now: When the message was written, naive local or aware: what "tomorrow" counts from.
    """

    text: str
    _: KW_ONLY
    prompt: str = ""
    others: Sequence[Param] = ()
    filled: Mapping[str, JsonValue] = field(default_factory=dict)
    now: datetime

    @property
    def strict(self) -> bool:
        """Whether the message answers no question, so that only clearly marked values count."""
        return not self.prompt.strip()
