"""A model's request is shown beside the stored conversation.

The governor's decisions of that state are applied again. Where there are none and nobody asks what
a budget would leave out, all of it is sent, and the end of it is all that is read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from langchain_core.messages import BaseMessage

from langmem_ext.context.budget.counters import counter_for
from langmem_ext.context.govern import govern
from langmem_ext.inspector.sources.costs import MessageCost
from langmem_ext.inspector.sources.source import Conversation
from langmem_ext.inspector.views.conversation import who_of
from langmem_ext.inspector.views.masks import Masks
from langmem_ext.inspector.views.values import short
from langmem_ext.messages.annotations import is_inserted
from langmem_ext.messages.token_costs.memo import Memo

NO_LIMIT: Final = 1_000_000_000
"""Tokens that no conversation has: nothing more is left out than was decided."""

EVENTS: Final = "context_events"
"""The channel in which a graph with a governor keeps what was decided."""

Fate: TypeAlias = Literal["kept", "changed", "left out", "added"]

MOST: Final = 50
"""Messages that are shown on a side: the last ones."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A message of a conversation or request: its role, beginning, tokens and fate."""

    who: str
    role: str
    text: str
    tokens: int
    fate: Fate


@dataclass(frozen=True, slots=True)
class Request:
    """A request beside the conversation that it is of.

    Attributes:
        governed: Whether the state holds decisions of a governor.
        counter: What its tokens are counted by; empty: they are those that are stored with the
            messages.
        budget: What the request may cost, if somebody asks what would be left out; None: as it was
            decided.
        stored, sent: The messages of both.
        stored_tokens, sent_tokens: About how many tokens they cost.
        plan: What was done, each with how much of it.
        left_out: How many messages before those that are shown stand on the left.
    """

    governed: bool
    counter: str
    budget: int | None
    stored: Sequence[Entry]
    sent: Sequence[Entry]
    stored_tokens: int
    sent_tokens: int
    plan: Sequence[tuple[str, str]]
    left_out: int


def request_of(
    messages: Sequence[BaseMessage],
    values: Mapping[str, Any],
    masks: Masks,
    budget: int | None = None,
) -> Request:
    """What a model is sent of these messages, by what a state says was decided.

    Args:
        messages: The conversation.
        values: What the state holds besides.
        masks: What of it is hidden.
        budget: Tokens that a request may cost; None: nothing more is left out than was decided.

    Raises:
        ContextOverflow: What must be sent exceeds the budget.
        InvalidInput: What was decided cannot be read.
    """
    events = values.get(EVENTS)
    decided = list(events) if isinstance(events, list) else []
    counter = Memo(counter_for())  # the governor and both sides count by one rule, and once
    governed = govern(messages, budget=budget or NO_LIMIT, events=decided, counter=counter)
    sent_objects = {id(message) for message in governed.messages}
    stored_objects = {id(message) for message in messages}
    new = [message for message in governed.messages if id(message) not in stored_objects]
    changed_ids = {message.id for message in new if message.id and not is_inserted(vars(message))}

    def fate_of_stored(message: BaseMessage) -> Fate:
        if id(message) in sent_objects:
            return "kept"
        return "changed" if message.id in changed_ids else "left out"

    def fate_of_sent(message: BaseMessage) -> Fate:
        if id(message) in stored_objects:
            return "kept"
        return "added" if is_inserted(vars(message)) else "changed"

    stored = [
        _entry(message, masks, counter.count(message), fate_of_stored(message))
        for message in messages[-MOST:]
    ]
    sent = [
        _entry(message, masks, counter.count(message), fate_of_sent(message))
        for message in governed.messages[-MOST:]
    ]
    rows = (
        governed.plan.rows
        if budget
        else [row for row in governed.plan.rows if not row[0].startswith("tokens,")]
    )
    return Request(
        governed=EVENTS in values,
        counter=counter.name,
        budget=budget,
        stored=stored,
        sent=sent,
        stored_tokens=counter.total(messages),
        sent_tokens=governed.plan.after,
        plan=list(rows),
        left_out=max(len(messages) - MOST, 0),
    )


def whole_request(part: Conversation, costs: Sequence[MessageCost], masks: Masks) -> Request:
    """The request of a conversation of which nothing is left out.

    Args:
        part: Its last messages.
        costs: What each of all its messages costs.
        masks: What of it is hidden.
    """
    tokens = sum(cost.tokens for cost in costs)
    shown = [
        _entry(message, masks, cost.tokens, "kept")
        for message, cost in zip(part.messages, costs[part.first :], strict=True)
    ]
    return Request(
        governed=False,
        counter="",
        budget=None,
        stored=shown,
        sent=shown,
        stored_tokens=tokens,
        sent_tokens=tokens,
        plan=[("messages of the conversation", f"{part.total:,}")],
        left_out=part.first,
    )


def _entry(message: BaseMessage, masks: Masks, tokens: int, fate: Fate) -> Entry:
    shown = masks.shown(message)
    role, who = who_of(shown)
    calls = ", ".join(f"{call['name']}()" for call in getattr(shown, "tool_calls", ()))
    text = " ".join(masks.message_text(message).split()) or calls
    return Entry(who, role, short(text, 280), tokens, fate)
