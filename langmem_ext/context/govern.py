"""`govern`: what a model is sent of a conversation, without a model's help. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from langchain_core.messages import BaseMessage, SystemMessage

from langmem_ext._internal.stepping import perform
from langmem_ext.context.budget.budget import Budget, request_tokens
from langmem_ext.context.budget.counters import counter_for
from langmem_ext.context.cut.planning import Governed, planning
from langmem_ext.context.cut.stand_in import LeftOut, Replacement, marker
from langmem_ext.context.cut.view import ThreadView
from langmem_ext.context.decisions import ContextEvent
from langmem_ext.context.policy import ContextPolicy
from langmem_ext.context.repair.provider import rules_for
from langmem_ext.context.summary.extract import extract
from langmem_ext.messages.token_costs.memo import Memo
from langmem_ext.messages.token_costs.tokens import TokenCounter


def govern(
    messages: Sequence[BaseMessage],
    *,
    budget: int | Budget,
    counter: TokenCounter | None = None,
    events: Sequence[ContextEvent] = (),
    policy: ContextPolicy | None = None,
    system: str | SystemMessage | None = None,
    tools: Sequence[Any] = (),
    pins: Collection[str] = (),
    params: Mapping[str, Any] | None = None,
    provider: str | None = None,
) -> Governed:
    """Select what a model is sent: valid for its provider, within the budget, with a stable prefix.

    No model is called: an extract replaces what is left out, or a line that says how much it is.
    The list and its messages stay as they are.

    Args:
        messages: All of the conversation, oldest first.
        budget: What the whole request may cost, in tokens: system prompt, tools' schemas and
            messages.
        counter: Counts tokens; one that fits no particular model, if none is given.
        events: What was decided for earlier requests of this conversation: the `events` of what was
            returned then.
        policy: How messages are selected.
        system: The system prompt, if it is not among the messages; it is counted, not returned.
        tools: The tools that are bound to the model; counted as the schemas that are sent.
        pins: Ids of messages that are shown whatever else is not, like a question that waits for
            its answer.
        params: Known values of the user's request, by name; repeated when messages are left out.
        provider: Whose rules the request follows: `openai`, `anthropic`, …; with none, rules that
            both of these accept.

    Raises:
        ContextOverflow: What must be sent exceeds the budget; it names the three largest parts.
        InvalidInput: Messages, events or the budget are invalid.
    """
    if not isinstance(counter, Memo):  # a plan looks at a message many times
        counter = Memo(counter or counter_for())
    thread = ThreadView(
        messages, counter, ContextPolicy.of(policy), rules_for(provider), frozenset(pins)
    )
    fixed = fixed_costs(system, tools, counter)
    limit = request_tokens(budget) - sum(fixed.values())
    governing = planning(thread, limit, events, params=params, fixed=fixed)
    return perform(governing, lambda left: written(left, thread))


def fixed_costs(
    system: str | SystemMessage | None, tools: Sequence[Any], counter: TokenCounter
) -> dict[str, int]:
    """What a request costs besides its messages, by name."""
    message = SystemMessage(system) if isinstance(system, str) else system
    return {
        "the system prompt": counter.count(message) if message is not None else 0,
        "the schemas of the tools": counter.count_tools(tools) if tools else 0,
    }


def written(left: LeftOut, thread: ThreadView) -> Replacement:
    """What replaces messages where no model is asked."""
    if thread.policy.strategy in ("summary", "hybrid"):
        text = extract(
            left.messages, previous=left.previous, max_tokens=left.tokens, counter=thread.counter
        )
        if "\n" in text:  # more than its label
            return Replacement(text, "extract")
    return marker(left.count)
