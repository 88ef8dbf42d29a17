"""How many tokens a message costs: counters, and the approximation stored beside messages.

A counter counts all of a message that a model is sent: its content, block by block
(`messages.token_costs.blocks`), its tool calls as JSON, its name, and what a message costs by
itself; and tool schemas beside. What is in the database is langchain-core's approximation
(`messages.token_costs.stored_tokens`), which needs no look at the text: totals of threads are made
of it. Who cuts a window counts the messages that it reads.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately

from langmem_ext._internal.interruption import pass_on
from langmem_ext.messages.text import text_of
from langmem_ext.messages.token_costs.blocks import CountText, tokens_of_content
from langmem_ext.messages.token_costs.scripts import tokens_in

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool

Tool: TypeAlias = "BaseTool | Mapping[str, Any] | type | Callable[..., Any]"
"""What LangChain's `bind_tools` takes."""

PER_MESSAGE: Final = 4
"""Tokens of a message beyond what it says: its role, and where it begins and ends."""

PER_TOOL: Final = 8
"""Tokens of a tool beyond its schema."""


@runtime_checkable
class TokenCounter(Protocol):
    """Counts what a model is sent, in tokens."""

    @property
    def name(self) -> str:
        """What it counts by, for those who read a count."""

    def count(self, message: BaseMessage) -> int:
        """Tokens of a message: its content, its tool calls, and what a message costs by itself."""

    def count_text(self, text: str) -> int:
        """Tokens of a bare text."""

    def count_tools(self, tools: Sequence[Tool]) -> int:
        """Tokens of the schemas of tools, as a request holds them."""


class ApproximateCounter:
    """Counts by the scripts of a text: no vocabulary, nothing to load, 10 µs a message."""

    @property
    def name(self) -> str:
        """`approximate`."""
        return "approximate"

    def count(self, message: BaseMessage) -> int:
        """Approximate tokens of a message."""
        return tokens_of_message(message, tokens_in)

    def count_text(self, text: str) -> int:
        """Approximate tokens of a text."""
        return tokens_in(text)

    def count_tools(self, tools: Sequence[Tool]) -> int:
        """Approximate tokens of the schemas of tools."""
        return tokens_of_tools(tools, tokens_in)


def tokens_of_message(message: BaseMessage, count: CountText) -> int:
    """Tokens of a message with a text counter: `PER_MESSAGE`, content, calls as JSON, and name.

    What no provider is sent (a tool's artifact, usage, metadata) costs nothing.
    """
    fields = vars(message)
    content, name = fields.get("content"), fields.get("name")
    calls, unread = fields.get("tool_calls"), fields.get("invalid_tool_calls")
    tokens = PER_MESSAGE
    if isinstance(content, str):
        tokens += count(content)
    else:
        call_ids = {call.get("id") for call in (*(calls or ()), *(unread or ()))}
        tokens += tokens_of_content(content, count, call_ids - {None})
    if calls:
        tokens += count(_json([_wire_form(call) for call in calls]))
    if unread:
        tokens += count(_json(unread))
    if name:
        tokens += count(str(name)) + 1
    if kwargs := fields.get("additional_kwargs"):
        tokens += _beside(kwargs, count, called=bool(calls or unread))
    return tokens


def _wire_form(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call in OpenAI's form: its arguments are JSON inside JSON, which costs more."""
    return {
        "type": "function",
        "id": call.get("id"),
        "function": {"name": call.get("name"), "arguments": _json(call.get("args"))},
    }


def _beside(kwargs: Mapping[str, Any], count: CountText, *, called: bool) -> int:
    """Tokens of what integrations keep beside the content: reasoning, and calls in own forms."""
    reasoning = kwargs.get("reasoning_content")
    tokens = count(reasoning) if isinstance(reasoning, str) else 0
    own = [
        kwargs[name] for name in ("tool_calls", "function_call") if kwargs.get(name) and not called
    ]
    return tokens + sum(count(_json(calls)) for calls in own)


def tokens_of_tools(tools: Sequence[Tool], count: CountText) -> int:
    """Tokens of tools' schemas as OpenAI has them, with a way to count texts."""
    return sum(PER_TOOL + count(schema_of(tool)) for tool in tools)


def schema_of(tool: Tool) -> str:
    """A tool's schema as JSON; a provider's own tool as it is."""
    from langchain_core.utils.function_calling import (  # noqa: PLC0415
        convert_to_openai_tool,
    )

    try:
        return _json(convert_to_openai_tool(tool))
    except Exception as error:
        pass_on(error)
        return _json(tool)


def _json(value: object) -> str:
    """A value as JSON; what cannot be any, as Python shows it."""
    try:
        return json.dumps(value, default=str)
    except (TypeError, ValueError):
        return str(value)


def approximate_tokens(message: BaseMessage) -> int:
    """About how many tokens a message costs a model, by langchain-core's own approximation."""
    try:
        return int(count_tokens_approximately([message]))
    except Exception as error:
        pass_on(error)
        # Something else was set in place of a text (`message.name = 5`): what there is of text
        # counts.
        return int(count_tokens_approximately([HumanMessage(text_of(message.content))]))
