"""The context of an answer: the message, the question before it, and what else is known."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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
"""Words of a message that may be values, at most: what comes after them is not read."""

_VALUE_LIKE: Final = re.compile(
    r"\d[\d.,:/]*|\w@\w|\b(?-i:[A-Z])\w*"
    r"|\b(?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?\b"
    r"|\b(?:jan|feb|mar|apr|may|june?|july?|aug|sept?|oct|nov|dec)\w*"
    r"|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|\w+ty|hundred)\b"
    r"|\b(?:half|quarter|noon|midnight|today|tonight|tomorrow|my|me)\b",
    re.IGNORECASE,
)


def read_part(text: str) -> str:
    """The part of a message that is read: its beginning, which holds few enough values."""
    text = text[:LONGEST]
    more = next(islice(_VALUE_LIKE.finditer(text), MOST_VALUES, None), None)
    return text[: more.start()] if more else text


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
        suggested: A value the agent proposed: "yes" accepts it, "no" declines it.
        now: When the message was written, naive local or aware: what "tomorrow" counts from.
    """

    text: str
    _: KW_ONLY
    prompt: str = ""
    others: Sequence[Param] = ()
    filled: Mapping[str, JsonValue] = field(default_factory=dict)
    suggested: JsonValue = None
    now: datetime

    @property
    def strict(self) -> bool:
        """Whether the message answers no question, so that only clearly marked values count."""
        return not self.prompt.strip()
