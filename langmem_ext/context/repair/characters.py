"""Texts and numbers that a request can carry: whole characters, and numbers that JSON has.

A stream that breaks within an emoji leaves half of a character, which is no UTF-8; a model may
write `NaN` into a tool's arguments, which is no JSON. Clients fail with both before they send
anything, at every later turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langmem_ext._internal.json import whole_characters


def carried(messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
    """The messages as they can be sent; the same object if all can."""
    if all(map(_is_carried, messages)):
        return messages
    return [message if _is_carried(message) else _carried(message) for message in messages]


def in_json(value: Any) -> Any:
    """A value with a question mark for half a character, and None for NaN and infinity."""
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, list | tuple):
        return [in_json(item) for item in value]
    if isinstance(value, dict):
        return {whole_characters(name): in_json(item) for name, item in value.items()}
    return whole_characters(value) if isinstance(value, str) else value


def _is_carried(message: BaseMessage) -> bool:
    content = message.content
    if not (isinstance(content, str) and content.isascii()) and not _is_in_json(content):
        return False
    if message.name is not None and not _is_in_json(message.name):
        return False
    if not isinstance(message, AIMessage):
        return True
    return _is_in_json(message.tool_calls) and _is_in_json(message.invalid_tool_calls)


def _is_in_json(value: Any) -> bool:
    if isinstance(value, str):
        return value.isascii() or _is_whole(value)
    if isinstance(value, float):
        return isfinite(value)
    if isinstance(value, list | tuple):
        return all(map(_is_in_json, value))
    if isinstance(value, dict):
        return all(map(_is_in_json, value)) and all(map(_is_in_json, value.values()))
    return True


def _is_whole(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _carried(message: BaseMessage) -> BaseMessage:
    names = ("content", "name", "tool_calls", "invalid_tool_calls")
    changes = {name: in_json(getattr(message, name)) for name in names if hasattr(message, name)}
    return message.model_copy(update=changes)
