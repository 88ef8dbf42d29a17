"""A provider's error for a too long request is recognised, and no other: the model is asked again
with less.

The errors are those of the providers' clients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import anthropic
import httpx
import langchain_anthropic.chat_models as anthropic_chat
import langchain_openai.chat_models.base as openai_chat
import openai
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from scripted_model import scripted

from langmem_ext import ApproximateCounter, ContextMiddleware, ContextPolicy

pytestmark = pytest.mark.interop

REQUEST = httpx.Request("POST", "http://localhost/v1")
COUNTER = ApproximateCounter()

OPENAI_LONG = (
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 10240"
    " tokens."
)
COMPLETION = (
    "This model's maximum context length is 2048 tokens. However, you requested 4096 tokens (3072"
    " in the messages, 1024 in the completion). Please reduce the length."
)
VLLM = "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens."
LLAMA = "request (4321 tokens) exceeds the available context size (2048 tokens), try increasing it"
STREAMED = "Your input exceeds the context window of this model."
ANTHROPIC_LONG = "prompt is too long: 208310 tokens > 200000 maximum"
GEMINI = (
    "The input token count (1,048,577) exceeds the maximum number of tokens allowed (1,000,000)."
)


def openai_error(kind: Callable[..., Any], status: int, said: str, code: str | None = None) -> Any:
    body = {"message": said, "type": "invalid_request_error", "param": "messages", "code": code}
    return kind(
        f"Error code: {status} - {{'error': {body}}}",
        response=httpx.Response(status, request=REQUEST),
        body=body,
    )


def bad(said: str, code: str | None = None) -> Any:
    return openai_error(openai.BadRequestError, 400, said, code)


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


CODE = "context_length_exceeded"
TOO_LONG: dict[str, tuple[Callable[[], Exception], float | None]] = {
    "OpenAI": (lambda: bad(OPENAI_LONG, CODE), 8192 / 10240),
    "OpenAI, in a stream": (lambda: openai.APIError(STREAMED, REQUEST, body={"code": CODE}), None),
    "OpenAI, with the answer": (lambda: bad(COMPLETION), 0.5),
    "langchain-openai": (
        lambda: passed_on("_handle_openai_bad_request", bad(OPENAI_LONG, CODE)),
        8192 / 10240,
    ),
    "langchain-openai, in a stream": (
        lambda: passed_on(
            "_handle_openai_api_error", openai.APIError(STREAMED, REQUEST, body=None)
        ),
        None,
    ),
    "vLLM": (lambda: bad(VLLM), 4096 / 5000),
    "llama.cpp": (lambda: bad(LLAMA), 2048 / 4321),
    "Anthropic": (
        lambda: anthropic_error(anthropic.BadRequestError, 400, ANTHROPIC_LONG),
        200_000 / 208_310,
    ),
    "langchain-anthropic": (
        lambda: anthropic_error(anthropic_chat.AnthropicContextOverflowError, 400, ANTHROPIC_LONG),
        200_000 / 208_310,
    ),
    "Anthropic, by bytes": (
        lambda: anthropic_error(
            anthropic.APIStatusError, 413, "Request exceeds the maximum size", "request_too_large"
        ),
        None,
    ),
    "Gemini": (lambda: ValueError(GEMINI), 1_000_000 / 1_048_577),
    "Bedrock": (
        lambda: ValueError("ValidationException: Input is too long for requested model."),
        None,
    ),
}

PER_MINUTE = "Request too large on tokens per min (TPM): Limit 10000, Requested 12000"
SOMETHING_ELSE: dict[str, Callable[[], Exception]] = {
    "too many tokens a minute": lambda: openai_error(
        openai.RateLimitError, 429, PER_MINUTE, "rate_limit_exceeded"
    ),
    "too many requests that name the window": lambda: openai_error(
        openai.RateLimitError, 429, "slow down: context window of 1M is busy"
    ),
    "a wrong key": lambda: openai_error(
        openai.AuthenticationError, 401, "Incorrect API key", "invalid_api_key"
    ),
    "a wrong request": lambda: bad("Invalid parameter: messages with role 'tool' must …"),
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


def sizes_sent(errors: list[Exception]) -> list[int]:
    """How large the requests were of an agent whose model fails with these errors first."""
    sizes, left = list[int](), iter(errors)

    def answer(messages: Sequence[BaseMessage]) -> str:
        sizes.append(sum(map(COUNTER.count, messages)))
        if (error := next(left, None)) is not None:
            raise error
        return "so it is"

    said = [
        message
        for turn in range(40)
        for message in (HumanMessage(f"question {turn} " + "word " * 60), AIMessage("yes " * 60))
    ]
    policy = ContextPolicy(strategy="window")
    one = ContextMiddleware(budget=100_000, counter=COUNTER, policy=policy)
    agent = create_agent(scripted(answer), [], middleware=[one])
    agent.invoke({"messages": [*said, HumanMessage("and now?")]})
    return sizes


@pytest.mark.parametrize("name", TOO_LONG)
def test_a_request_that_is_too_long_is_sent_again_with_less(name: str) -> None:
    error, share = TOO_LONG[name]
    first, second = sizes_sent([error()])
    assert second < first
    if share is not None:  # what the provider says it would have taken, where it says so
        assert second <= share * first


@pytest.mark.parametrize("name", SOMETHING_ELSE)
def test_nothing_else_is_taken_for_it(name: str) -> None:
    error = SOMETHING_ELSE[name]()
    with pytest.raises(type(error)):
        sizes_sent([error])


def test_no_request_is_larger_than_the_one_before_until_the_error_is_raised() -> None:
    error, _ = TOO_LONG["Bedrock"]
    sizes = sizes_sent([error(), error()])
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[-1] < sizes[0]
    with pytest.raises(ValueError, match="too long"):
        sizes_sent([error() for _ in range(9)])
