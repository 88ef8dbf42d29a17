"""A provider's error for a too long request is recognised, and no other.

The errors are those of the providers' clients.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import anthropic
import httpx
import langchain_anthropic.chat_models as anthropic_chat
import langchain_openai.chat_models.base as openai_chat
import openai
import pytest

from langmem_ext.context.budget.refusal import STEPS, Shrinking, is_overflow, share_taken

pytestmark = pytest.mark.interop

REQUEST = httpx.Request("POST", "http://localhost/v1")

OPENAI_LONG = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 10240"
    " tokens."
)
ANTHROPIC_LONG = "prompt is too long: 208310 tokens > 200000 maximum"


def openai_error(kind: Callable[..., Any], status: int, said: str, code: str | None = None) -> Any:
    body = {"message": said, "type": "invalid_request_error", "param": "messages", "code": code}
    return kind(
        f"Error code: {status} - {{'error': {body}}}",
        response=httpx.Response(status, request=REQUEST),
        body=body,
    )


def anthropic_error(
    kind: Callable[..., Any], status: int, said: str, name: str = "invalid_request_error"
) -> Any:
    body = {"type": "error", "error": {"type": name, "message": said}}
    return kind(
        f"Error code: {status} - {body}",
        response=httpx.Response(status, request=REQUEST),
        body=body,
    )


def passed_on(handler: str, error: Any) -> Any:
    """What langchain-openai makes of the client's error."""
    with pytest.raises(Exception) as raised:  # noqa: PT011 - whatever it is
        getattr(openai_chat, handler)(error)
    return raised.value


TOO_LONG: dict[str, Callable[[], Exception]] = {
    "OpenAI": lambda: openai_error(
        openai.BadRequestError, 400, OPENAI_LONG, "context_length_exceeded"
    ),
    "OpenAI, in a stream": lambda: openai.APIError(
        "Your input exceeds the context window of this model.",
        REQUEST,
        body={"code": "context_length_exceeded"},
    ),
    "langchain-openai": lambda: passed_on(
        "_handle_openai_bad_request",
        openai_error(openai.BadRequestError, 400, OPENAI_LONG, "context_length_exceeded"),
    ),
    "langchain-openai, in a stream": lambda: passed_on(
        "_handle_openai_api_error",
        openai.APIError("Your input exceeds the context window of this model.", REQUEST, body=None),
    ),
    "vLLM": lambda: openai_error(
        openai.BadRequestError,
        400,
        "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens in"
        " the messages.",
    ),
    "llama.cpp": lambda: openai_error(
        openai.BadRequestError,
        400,
        "request (4321 tokens) exceeds the available context size (2048 tokens), try increasing it",
    ),
    "Anthropic": lambda: anthropic_error(anthropic.BadRequestError, 400, ANTHROPIC_LONG),
    "langchain-anthropic": lambda: anthropic_error(
        anthropic_chat.AnthropicContextOverflowError, 400, ANTHROPIC_LONG
    ),
    "Anthropic, by bytes": lambda: anthropic_error(
        anthropic.APIStatusError, 413, "Request exceeds the maximum size", "request_too_large"
    ),
    "Gemini": lambda: ValueError(
        "The input token count (1,048,577) exceeds the maximum number of tokens allowed"
        " (1,000,000)."
    ),
    "Bedrock": lambda: ValueError("ValidationException: Input is too long for requested model."),
}

SOMETHING_ELSE: dict[str, Callable[[], Exception]] = {
    "too many tokens a minute": lambda: openai_error(
        openai.RateLimitError,
        429,
        "Request too large on tokens per min (TPM): Limit 10000, Requested 12000",
        "rate_limit_exceeded",
    ),
    "too many requests that name the window": lambda: openai_error(
        openai.RateLimitError, 429, "slow down: context window of 1M is busy"
    ),
    "a wrong key": lambda: openai_error(
        openai.AuthenticationError, 401, "Incorrect API key", "invalid_api_key"
    ),
    "a wrong request": lambda: openai_error(
        openai.BadRequestError, 400, "Invalid parameter: messages with role 'tool' must …"
    ),
    "no connection": lambda: openai.APIConnectionError(request=REQUEST),
    "no answer in time": lambda: openai.APITimeoutError(REQUEST),
    "Anthropic overloaded": lambda: anthropic_error(
        anthropic.APIStatusError, 529, "Overloaded", "overloaded_error"
    ),
    "a wrong request to Anthropic": lambda: anthropic_error(
        anthropic.BadRequestError, 400, "messages: roles must alternate"
    ),
    "an application's own": lambda: KeyError("context"),
}


@pytest.mark.parametrize("error", TOO_LONG.values(), ids=TOO_LONG)
def test_that_a_request_is_too_long_is_understood(error: Callable[[], Exception]) -> None:
    assert is_overflow(error())


@pytest.mark.parametrize("error", SOMETHING_ELSE.values(), ids=SOMETHING_ELSE)
def test_nothing_else_is_taken_for_it(error: Callable[[], Exception]) -> None:
    assert not is_overflow(error())


@pytest.mark.parametrize(
    ("name", "share"),
    [
        ("OpenAI", 8192 / 10240),
        ("langchain-openai", 8192 / 10240),
        ("vLLM", 4096 / 5000),
        ("llama.cpp", 2048 / 4321),
        ("Anthropic", 200_000 / 208_310),
        ("Gemini", 1_000_000 / 1_048_577),
        ("Bedrock", None),
        ("Anthropic, by bytes", None),
        ("OpenAI, in a stream", None),
    ],
)
def test_how_much_of_it_would_have_been_taken_is_what_the_provider_says(
    name: str, share: float | None
) -> None:
    assert share_taken(TOO_LONG[name]()) == share


def test_of_the_messages_and_the_answer_both_are_counted() -> None:
    said = (
        "This model's maximum context length is 2048 tokens. However, you requested 4096 tokens"
        " (3072 in the messages, 1024 in the completion). Please reduce the length."
    )
    assert share_taken(openai_error(openai.BadRequestError, 400, said)) == 0.5


def test_each_request_is_smaller_than_the_one_before_until_the_error_is_raised() -> None:
    size, error = Shrinking(10_000), TOO_LONG["Bedrock"]()
    for step in STEPS:
        size.after(error, 8_000)
        assert size.limit == 8_000 * step
        assert size.refused is error
    with pytest.raises(ValueError, match="too long"):
        size.after(error, 8_000)


def test_what_the_provider_says_counts_where_it_is_less() -> None:
    size = Shrinking(128_000)
    size.after(TOO_LONG["llama.cpp"](), 5_000)
    assert size.limit == int(5_000 * 2048 / 4321 * 0.95)


def test_another_error_is_raised_at_once() -> None:
    size = Shrinking(10_000)
    with pytest.raises(KeyError):
        size.after(SOMETHING_ELSE["an application's own"](), 8_000)
    assert (size.limit, size.refused) == (10_000, None)
