"""How providers say that a request is too long."""

from __future__ import annotations

from typing import Final

from langchain_core import exceptions

_OWN: Final[type[BaseException] | None] = getattr(exceptions, "ContextOverflowError", None)  # older releases of langchain-core have none

_SAID: Final = (
    "context_length_exceeded",  # OpenAI's code, and that of servers that speak its protocol
    "maximum context length",  # vLLM, llama.cpp's and older OpenAI models' messages
    "prompt is too long",  # Anthropic
    "input is too long",  # Bedrock
    "exceeds the available context size",  # llama.cpp
    "exceeds the maximum number of tokens",  # Gemini
    "context window",
)
"""What stands in their errors, in lower case."""


def is_overflow(error: BaseException) -> bool:
    """Whether a provider's error says that the request was longer than the model takes."""
    if _OWN is not None and isinstance(error, _OWN):
        return True
    if getattr(error, "code", None) == "context_length_exceeded":
        return True
    said = str(error).lower()
    status = getattr(error, "status_code", 400)
    return status in (400, 413, 422, None) and any(words in said for words in _SAID)
