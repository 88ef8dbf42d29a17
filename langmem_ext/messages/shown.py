"""What people are shown of a message."""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from langmem_ext.messages.annotations import HIDDEN, NAMESPACE, is_marked, marked_for, shown_text


def shown(message: BaseMessage) -> BaseMessage:
    """A message as people are shown it: of one with sensitive values, the rest of its text."""
    if not is_marked(vars(message)):
        return message
    notes = {NAMESPACE: {"sensitive": sorted(marked_for(vars(message)))}}
    hidden: dict[str, Any] = {
        "content": shown_text(vars(message)),
        "additional_kwargs": notes,
        "response_metadata": {},
    }
    if isinstance(message, AIMessage):
        calls = [
            {**call, "args": dict.fromkeys(call["args"], HIDDEN)} for call in message.tool_calls
        ]
        hidden |= {"tool_calls": calls, "invalid_tool_calls": []}
    if isinstance(message, ToolMessage):
        hidden["artifact"] = None
    else:
        hidden["name"] = None
    return message.model_copy(update=hidden)
