"""The beginnings of a conversation, their requests, and what can be counted of them by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langmem_ext.context.budget.counters import CL100K, encoding_named

PER_MESSAGE = 4
"""Tokens that a message costs besides its content and calls."""

Count: TypeAlias = Callable[[BaseMessage], int]

SHORTENED = 60
"""Tokens that a result may be brought down to, with its marker, where a budget forces it."""

LINE = 45
"""Tokens that a line costs which says how many messages are left out."""


def ruled_tokens(messages: Sequence[BaseMessage]) -> int:
    """The tokens by which budgets are judged: cl100k of texts and call JSON, four a message.

    A call's JSON is all of it, as LangChain keeps it or as OpenAI is sent it, whichever costs more.
    """
    return sum(map(ruled_cost, messages))


def ruled_cost(message: BaseMessage) -> int:
    """The same of one message."""
    return (
        _tokens(_text(message)) + max(map(_tokens, _calls_json(message)), default=0) + PER_MESSAGE
    )


def _text(message: BaseMessage) -> str:
    if isinstance(message.content, str):
        return message.content
    parts = (
        part if isinstance(part, str) else str(part.get("text", "")) for part in message.content
    )
    return "".join(parts)


def _calls_json(message: BaseMessage) -> list[str]:
    calls = _calls(message)
    functions = (
        {"name": call["name"], "arguments": json.dumps(call["args"], ensure_ascii=False)}
        for call in calls
    )
    sent = [
        {"id": call["id"], "type": "function", "function": function}
        for call, function in zip(calls, functions, strict=True)
    ]
    return [json.dumps(form, ensure_ascii=False) for form in (calls, sent)] if calls else []


@cache
def _tokens(text: str) -> int:
    return len(encoding_named(CL100K).encode_ordinary(text)) if text else 0


def _calls(message: BaseMessage) -> list[Any]:
    return message.tool_calls if isinstance(message, AIMessage) else []


@dataclass(frozen=True, slots=True)
class Prefix:
    """A conversation as it stood when `messages` were all of it."""

    messages: list[BaseMessage]

    @property
    def calls_model(self) -> bool:
        """Whether a model would be called here: after the user, or after all results of a round."""
        if isinstance(self.messages[-1], HumanMessage):
            return True
        at = self.latest_round
        results = [
            message.tool_call_id
            for message in self.messages[at + 1 :]
            if isinstance(message, ToolMessage)
        ]
        if not results or len(results) < len(self.messages) - at - 1:
            return False
        return sorted(str(call["id"]) for call in _calls(self.messages[at])) == sorted(results)

    @property
    def latest_round(self) -> int:
        """Where the latest message with calls stands; the number of messages if none does."""
        return next(
            (at for at in range(len(self.messages) - 1, -1, -1) if _calls(self.messages[at])),
            len(self.messages),
        )

    @property
    def pins(self) -> dict[str, BaseMessage]:
        """What every request must contain: system prompt, first task, the user's latest message."""
        said = [message for message in self.messages if isinstance(message, HumanMessage)]
        system = next(
            (message for message in self.messages if isinstance(message, SystemMessage)), None
        )
        found = {
            "system": system,
            "task": said[0] if said else None,
            "user": said[-1] if said else None,
        }
        return {name: message for name, message in found.items() if message is not None}

    def wanted(self, count: Count = ruled_cost) -> int:
        """The cost of the pins, of all from the latest round on, and of a line for the rest."""
        messages = [*self.pins.values(), *self.messages[self.latest_round :]]
        left_out = LINE if self.latest_round > len(self.pins) else 0
        return sum(map(count, {id(message): message for message in messages}.values())) + left_out

    def needed(self, count: Count = ruled_cost) -> int:
        """The minimum of a request: the pins, and the latest round with shortened results."""
        pins = {id(message): message for message in self.pins.values()}
        going_on = (
            self.messages[self.latest_round :] if isinstance(self.messages[-1], ToolMessage) else []
        )
        costs = ((message, count(message)) for message in going_on if id(message) not in pins)
        return sum(map(count, pins.values())) + sum(
            min(cost, SHORTENED) if isinstance(message, ToolMessage) else cost
            for message, cost in costs
        )

    def loop(self) -> int:
        """How often the most frequent call with the same arguments and result is in the turn."""
        start = max(
            (at for at, message in enumerate(self.messages) if isinstance(message, HumanMessage)),
            default=-1,
        )
        counts: Counter[tuple[str, str, str]] = Counter()
        called: dict[str | None, tuple[str, str]] = {}
        for message in self.messages[start + 1 :]:
            called |= {
                call["id"]: (call["name"], json.dumps(call["args"], sort_keys=True))
                for call in _calls(message)
            }
            if isinstance(message, ToolMessage) and message.tool_call_id in called:
                counts[*called[message.tool_call_id], str(message.content)] += 1
        return max(counts.values(), default=0)
