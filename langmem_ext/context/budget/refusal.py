"""How providers say that a request is too long, and how much smaller the next one is made."""

from __future__ import annotations

import re
from typing import Final

from langchain_core import exceptions

_OWN: Final[type[BaseException] | None] = getattr(
    exceptions, "ContextOverflowError", None
)  # older releases of langchain-core have none

_SAID: Final = (
    "context_length_exceeded",  # OpenAI's code, and that of servers that speak its protocol
    "maximum context length",  # vLLM, llama.cpp's and older OpenAI models' messages
    "prompt is too long",  # Anthropic
    "input is too long",  # Bedrock
    "exceeds the available context size",  # llama.cpp
    "exceeds the maximum number of tokens",  # Gemini
    "context window",
)
"""What is in their errors, in lower case."""


def is_overflow(error: BaseException) -> bool:
    """Whether a provider's error says that the request was longer than the model takes."""
    if _OWN is not None and isinstance(error, _OWN):
        return True
    if getattr(error, "code", None) == "context_length_exceeded":
        return True
    status = getattr(error, "status_code", 400)
    if status == 413:  # too large by bytes
        return True
    text = str(error).lower()
    return status in (400, 422, None) and any(words in text for words in _SAID)


# -- the next one ----------------------------------------------------------------------------------

STEPS: Final = (0.75, 0.5, 0.25)
"""What the next request may cost, of the first that was refused, each time that one is."""

SPARE: Final = 0.95
"""Of what a provider says that it takes, what is made use of: its count and ours do not grow
alike."""

_OF_AT_MOST: Final = (
    re.compile(r"(?i)(?P<took>\d+) tokens? > (?P<takes>\d+) max"),  # Anthropic
    re.compile(
        r"(?is)(?:maximum context length|context window|context size)\D{1,40}(?P<takes>\d+)"
        r" .{1,60}?(?P<took>\d+) "
    ),
    re.compile(r"(?i)token count \(?(?P<took>\d+)\)? exceeds .{1,60}?(?P<takes>\d+)"),  # Gemini
    re.compile(
        r"(?i)\((?P<took>\d+) tokens\) exceeds .{1,60}?\((?P<takes>\d+) tokens\)"
    ),  # llama.cpp
)
"""How they say how long the request was, and how long it might have been."""


def share_taken(error: BaseException) -> float | None:
    """The share of the refused request that its provider would accept; None if it does not say."""
    text = str(error).replace(",", "")
    for pattern in _OF_AT_MOST:
        if (match := pattern.search(text)) and 0 < (takes := int(match["takes"])) < (
            took := int(match["took"])
        ):
            return takes / took
    return None


class Shrinking:
    """The token limit of a request, made smaller after each refusal.

    Attributes:
        limit: What the next one may cost.
        refused: Why the one before was refused; None if none was.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.refused: Exception | None = None
        self._first = limit
        self._steps = iter(STEPS)

    def after(self, error: Exception, tokens: int) -> None:
        """Make the next one smaller.

        Args:
            error: Why it was refused.
            tokens: What it cost.

        Raises:
            Exception: The error itself: it says something else, or the request was made smaller
                often enough.
        """
        step = next(self._steps, None) if is_overflow(error) else None
        if step is None:
            raise error
        if self.refused is None:
            self._first = min(self.limit, tokens)
        share = share_taken(error)
        self.limit = min(
            int(self._first * step), int(tokens * share * SPARE) if share else self.limit
        )
        self.refused = error
