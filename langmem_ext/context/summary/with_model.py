"""Planning with a model behind it: who calls the model, and what is used when it fails.

The steps are one generator that yields what the model is to be asked and is sent its text, or has
its failure thrown in (`stepping.perform`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias, TypeVar

from langchain_core.messages import BaseMessage, SystemMessage

from langmem_ext._internal.interruption import pass_on
from langmem_ext.context.budget.budget import Budget, request_tokens
from langmem_ext.context.budget.refusal import is_overflow
from langmem_ext.context.cut.planning import Governed, planning
from langmem_ext.context.cut.request_cache import RequestMemory
from langmem_ext.context.cut.stand_in import LeftOut, Replacement, marker
from langmem_ext.context.cut.view import ThreadView
from langmem_ext.context.decisions import ContextEvent
from langmem_ext.context.govern import fixed_costs, written
from langmem_ext.context.policy import ContextPolicy
from langmem_ext.context.repair.provider import rules_for
from langmem_ext.context.summary.extract import extract
from langmem_ext.context.summary.prompts import SUMMARY_PROMPT
from langmem_ext.context.summary.summary import LEAST_TARGET, ModelRequest, summarise
from langmem_ext.errors import SummaryFailed
from langmem_ext.messages.token_costs.tokens import TokenCounter

logger = logging.getLogger(__name__)

T = TypeVar("T")

Asking: TypeAlias = Generator[ModelRequest, str, T]
"""Steps that yield what a model is to be asked, are sent its text, and return what comes of it."""

SMALLEST_PART = 16
"""What is too long for a summarising model is given to it in smaller parts, down to a sixteenth of
the size that was thought right."""

LARGE = 200
"""Messages: a longer conversation is planned beside the event loop, not on it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sending:
    """A request, besides its messages.

    Attributes:
        budget: What all of it may cost, in tokens.
        counter: Counts them.
        policy: How messages are selected.
        system: The system prompt, if it is not among the messages.
        tools: The tools that are bound to the model.
        provider: Whose rules it follows.
        pins: Ids of messages that are always sent.
        params: What is known of the user's request.
        forced: Whether to leave out what can be left out, even if nothing requires it.
        prompt: What a summarising model is asked for; None for the built-in prompt.
        has_model: Whether there is one.
        memory: Earlier requests, to be carried on.
    """

    budget: int | Budget
    counter: TokenCounter
    policy: ContextPolicy
    system: str | SystemMessage | None = None
    tools: Sequence[Any] = ()
    provider: str | None = None
    pins: Collection[str] = ()
    params: Mapping[str, Any] = field(default_factory=dict)
    forced: bool = False
    prompt: str | None = None
    has_model: bool = False
    memory: RequestMemory | None = None


def asking(
    messages: Sequence[BaseMessage], events: Sequence[ContextEvent], sending: Sending
) -> Asking[Governed]:
    """The steps of a request whose summaries a model writes, if there is one."""
    thread = ThreadView(
        messages,
        sending.counter,
        sending.policy,
        rules_for(sending.provider),
        frozenset(sending.pins),
        sending.memory,
    )
    fixed = fixed_costs(sending.system, sending.tools, sending.counter)
    whole = request_tokens(sending.budget)
    limit = whole - sum(fixed.values())
    governing = planning(
        thread, limit, events, params=sending.params, fixed=fixed, forced=sending.forced
    )
    try:
        left = next(governing)
        while True:
            left = governing.send((yield from _replacement(left, thread, whole // 2, sending)))
    except StopIteration as done:
        governed: Governed = done.value
        return governed


def _replacement(
    left: LeftOut, thread: ThreadView, chunk_tokens: int, sending: Sending
) -> Asking[Replacement]:
    policy = sending.policy
    if not sending.has_model or policy.strategy == "window":
        return written(left, thread)
    if not left.may_ask or left.tokens < LEAST_TARGET:
        return Replacement("", "keep") if policy.on_failure == "keep" else marker(left.count)
    try:
        text = yield from _summarised(
            left, thread.counter, max(chunk_tokens, 2 * left.tokens), sending
        )
    except Exception as error:
        pass_on(error)
        if policy.on_failure == "raise":
            raise
        # What others raise may quote what was said.
        why = (
            f"the model's answer {error.reason}"
            if isinstance(error, SummaryFailed)
            else type(error).__name__
        )
        logger.warning(
            "no summary was written: %s; the messages are %s", why, _INSTEAD[policy.on_failure]
        )
        return (
            Replacement("", "keep", failed=True)
            if policy.on_failure == "keep"
            else replace(marker(left.count), failed=True)
        )
    return Replacement(text, "model")


def _summarised(
    left: LeftOut, counter: TokenCounter, chunk_tokens: int, sending: Sending
) -> Asking[str]:
    """A summary; of smaller parts if the model that writes it refuses one as too long.

    Its window may be narrower than the agent's.
    """
    least = max(chunk_tokens // SMALLEST_PART, 2 * LEAST_TARGET)
    while True:
        try:
            text: str = yield from summarise(
                left.messages,
                previous=left.previous,
                counter=counter,
                chunk_tokens=chunk_tokens,
                target_tokens=min(left.tokens, chunk_tokens // 2),
                prompt=sending.prompt or SUMMARY_PROMPT,
                verify=sending.policy.verify,
            )
        except Exception as error:
            chunk_tokens //= 2
            if chunk_tokens < least or not is_overflow(error):
                raise
        else:
            return text


_INSTEAD = {"marker": "left out without one", "keep": "kept as far as they fit"}


def summing_up(
    messages: Sequence[BaseMessage], previous: str, max_tokens: int, sending: Sending
) -> Asking[str]:
    """Summarise these messages and the previous summary in steps; an extract without a model."""
    left = LeftOut(tuple(messages), previous, len(messages), max_tokens)
    thread = ThreadView(messages, sending.counter, sending.policy, rules_for(sending.provider))
    replacement = yield from _replacement(left, thread, 4 * max_tokens, sending)
    return (
        replacement.text
        if replacement.by == "model"
        else extract(messages, previous, max_tokens, sending.counter)
    )


async def aanswered(
    steps: Asking[T], ask: Callable[[ModelRequest], Awaitable[str]], *, large: bool
) -> T:
    """Async twin of `stepping.perform`, for steps that may take their time.

    Args:
        steps: The steps.
        ask: Asks the model.
        large: Whether planning takes so long that it must not be done on the event loop.
    """
    try:
        step, result = await _advanced(steps.send, None, large)
        while step is not None:
            try:
                text = await ask(step)
            except Exception as error:
                step, result = await _advanced(steps.throw, error, large)
            else:
                step, result = await _advanced(steps.send, text, large)
        done: T = result
        return done
    finally:
        # A cancelled step continues in its thread, where it cannot be closed. No caller waits for
        # it any more.
        with suppress(ValueError):
            steps.close()


async def _advanced(
    step: Callable[[Any], ModelRequest], value: Any, large: bool
) -> tuple[ModelRequest | None, Any]:
    return await asyncio.to_thread(_advance, step, value) if large else _advance(step, value)


def _advance(step: Callable[[Any], ModelRequest], value: Any) -> tuple[ModelRequest | None, Any]:
    try:
        return step(value), None
    except StopIteration as done:
        return None, done.value
