"""One message as it is shown at a terminal or in a pipe.

A listing needs no more than this: neither a graph nor a line editor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import JsonValue

from langmem_ext.messages.annotations import HIDDEN, marked_for, shown_text
from langmem_ext.messages.text import words_of

_ROLES: Final[Mapping[str, type[BaseMessage]]] = {
    "human": HumanMessage,
    "ai": AIMessage,
    "system": SystemMessage,
    "tool": ToolMessage,
}

COLOURS: Final = {"you": "bold cyan", "agent": "bold green"}
"""Styles of the speakers."""


@dataclass(frozen=True, slots=True)
class Line:
    """One message as it is shown, with what is sensitive hidden.

    Attributes:
        role: Who said it, as a person reads it.
        text: What was said; of an assistant that only calls tools, which.
        message: The message.
    """

    role: str
    text: str
    message: BaseMessage

    def data(self) -> dict[str, JsonValue]:
        """The message as JSON says it, in the words of the search and of the export."""
        message = self.message
        role = next(
            (name for name, kind in _ROLES.items() if isinstance(message, kind)), message.type
        )
        data: dict[str, JsonValue] = {"id": message.id, "role": role, "text": self.text}
        if isinstance(message, AIMessage) and message.tool_calls:
            data["text"] = self.text if words_of(vars(message)) else ""
            data["calls"] = [call["name"] for call in message.tool_calls]
        if isinstance(message, ToolMessage):
            data["name"], data["tool_call_id"] = message.name, message.tool_call_id
        return data


def line_of(message: BaseMessage) -> Line:
    """A message as it is shown."""
    role, text = message.type, words_of(vars(message))
    if isinstance(message, ToolMessage):
        role = f"tool {message.name or ''}".strip()
    elif isinstance(message, AIMessage):
        role, text = (
            "agent",
            text or ", ".join(f"calls {call['name']}" for call in message.tool_calls),
        )
    elif isinstance(message, HumanMessage):
        role = "you"
    if hidden := marked_for(vars(message)):
        text = f"{shown_text(vars(message)) or HIDDEN} (holds {', '.join(sorted(hidden))})"
    return Line(role, text, message)
