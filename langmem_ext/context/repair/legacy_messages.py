"""Older forms of roles and tool calls that LangChain keeps, converted to those that are sent.

| found | becomes |
|---|---|
| `ChatMessage` | the message of its role; of a role that no provider has, the user's |
| blocks of a content that call and are no `tool_calls` | tool calls |
| `tool_result` blocks in a user's message or a result (Anthropic) | results, a user's message |
| `FunctionMessage` | nothing: it is a result of a call in a form that no provider has any more |
| `RemoveMessage` | nothing: it is an instruction to the reducer, not a message |
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolCall,
    ToolMessage,
)

from langmem_ext.messages.blocks import blocks_of, read_block

_ROLES: Final[Mapping[str, type[BaseMessage]]] = {
    "assistant": AIMessage,
    "ai": AIMessage,
    "model": AIMessage,
    "system": SystemMessage,
    "developer": SystemMessage,
}

_LEFT_OUT: Final = (FunctionMessage, RemoveMessage)


def in_sent_forms(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """The messages, each as a user's, a model's, a system message or a result.

    Those that already are stay the same objects.
    """
    sent: list[BaseMessage] = []
    for message in messages:
        if isinstance(message, ChatMessage):
            sent.append(_of_role(message))
        elif isinstance(message, AIMessage):
            sent.append(_with_calls(message))
        elif isinstance(message, HumanMessage | ToolMessage) and _results_in(message):
            sent += _unpacked(message)
        elif not isinstance(message, _LEFT_OUT):
            sent.append(message)
    return sent


def is_sent_form(message: BaseMessage) -> bool:
    """Whether `in_sent_forms` would leave the message as it is."""
    if isinstance(message, AIMessage):
        return _with_calls(message) is message
    if isinstance(message, HumanMessage | ToolMessage):
        return not _results_in(message)
    return not isinstance(message, (ChatMessage, *_LEFT_OUT))


def _of_role(message: ChatMessage) -> BaseMessage:
    kind = _ROLES.get(message.role.lower(), HumanMessage)
    return kind(
        content=message.content,
        id=message.id,
        name=message.name,
        additional_kwargs=message.additional_kwargs,
    )


# -- calls that are elsewhere ----------------------------------------------------------------------


def _with_calls(message: AIMessage) -> AIMessage:
    """An answer with all of its calls among its `tool_calls`."""
    known = {call.get("id") for call in (*message.tool_calls, *message.invalid_tool_calls)}
    calls = [call for call in _calls_in(message.content) if call["id"] not in known]
    if not calls:
        return message
    return message.model_copy(update={"tool_calls": [*message.tool_calls, *calls]})


def _calls_in(content: Any) -> Iterator[ToolCall]:
    for block in blocks_of(content):
        kind, fields = read_block(block) if isinstance(block, dict) else (None, {})
        if kind is not None and kind.what == "call":
            given = (fields.get(name) for name in ("input", "args", "partial_json", "arguments"))
            arguments = next(filter(None, given), None)
            name = str(fields.get("name") or "")
            yield ToolCall(name=name, args=_arguments(arguments), id=fields.get(kind.id))


def _arguments(value: object) -> dict[str, Any]:
    """Arguments as a dict, whatever they came as; none if they are no JSON object."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            value = None
    return value if isinstance(value, dict) else {}


# -- results that are elsewhere --------------------------------------------------------------------


def _is_result(block: object) -> bool:
    return isinstance(block, dict) and block.get("type") == "tool_result"


def _results_in(message: HumanMessage | ToolMessage) -> bool:
    """Whether a user's message has result blocks, or a result consists only of them."""
    content = message.content
    if content.__class__ is str or not content:
        return False
    check: Callable[[Iterator[bool]], bool] = all if isinstance(message, ToolMessage) else any
    return check(_is_result(block) for block in content)


def _unpacked(message: HumanMessage | ToolMessage) -> Iterator[BaseMessage]:
    rest = []
    for number, block in enumerate(message.content):
        if isinstance(block, dict) and _is_result(block):
            part = f"{message.id}-{number}" if message.id else None
            call = str(block.get("tool_use_id") or getattr(message, "tool_call_id", ""))
            status = "error" if block.get("is_error") else "success"
            yield ToolMessage(
                content=block.get("content") or "",
                tool_call_id=call,
                id=part,
                name=message.name,
                status=status,
            )
        else:
            rest.append(block)
    if rest:
        yield message.model_copy(update={"content": rest})
