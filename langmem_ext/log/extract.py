"""Messages and long texts of inputs are lifted out of their holders, so each is stored once."""

from __future__ import annotations

import dataclasses
from collections import deque
from typing import Any, Final

import ormsgpack
from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_DELTA_SNAPSHOT,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Send
from pydantic import BaseModel

from langmem_ext.log.unbuilt import Unbuilt
from langmem_ext.messages.packed import PACK_OPTIONS, pack
from langmem_ext.messages.size_limits import DEEPEST, LOOKED_AT, require_shallow
from langmem_ext.messages.snapshot import CLASSES, snapshot
from langmem_ext.types import Snapshot

EXT_MESSAGE: Final = 64
"""A message lifted out of a value: its position among the value's messages."""

EXT_TEXT: Final = 66
"""A long text lifted out of an input: the position, among the value's messages, of the text or of
the message that it became."""

LONG_TEXT: Final = 64
"""Characters from which a text of an input is worth lifting out: it will be in a message."""

_NO_TEXTS: Final = frozenset([int, float, bool, type(None), bytes])
"""Types of what no text is in: a long list of these alone is not gone through in Python."""

_CLASSES: Final = frozenset(CLASSES)
_plain = JsonPlusSerializer()


def is_message_list(value: Any) -> bool:
    """Whether a value is a list of messages and nothing else, and not empty."""
    # By class first: a list is looked at whole at every step of a graph.
    return (
        type(value) is list
        and bool(value)
        and (set(map(type, value)) <= _CLASSES or all(map(_is_message, value)))
    )


def _is_message(value: Any) -> bool:
    return isinstance(value, BaseMessage) and not isinstance(value, RemoveMessage)


def default_of(value: Any) -> Any:
    """What msgpack does not know, as LangGraph's serializer packs it."""
    if type(value) is Unbuilt:
        return value.packed(default_of)
    packed = _plain.dumps_typed(value)[1]
    if len(packed) > DEEPEST:  # with fewer bytes nothing is nested too deeply
        require_shallow(packed)
    return ormsgpack.Fragment(packed)


class _Text:
    """A text that is to be lifted out."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def mark_texts(value: Any) -> Any:
    """The value with every long text in its dicts, lists and tuples marked.

    A text with a zero character stays: no column holds it.
    """
    if type(value) is str:
        return _Text(value) if len(value) >= LONG_TEXT and "\0" not in value else value
    if type(value) is dict:
        return dict(zip(value, map(mark_texts, value.values()), strict=True))
    if type(value) is list or type(value) is tuple:
        return (
            value
            if type(value) is list and _NO_TEXTS.issuperset(map(type, value))
            else list(map(mark_texts, value))
        )
    return value


def mark_messages(value: Any, *, bare: bool) -> Any:
    """The value, with the long texts marked in whatever `add_messages` takes for a message.

    That is `(role, text)`, `{"content": …}`, and a text by itself if `bare`.
    """
    if type(value) is str:
        return mark_texts(value) if bare else value
    if type(value) is tuple and len(value) == 2 and type(value[0]) is str:
        return [value[0], mark_texts(value[1])]
    if type(value) is list:
        return (
            value
            if _NO_TEXTS.issuperset(map(type, value))
            else [mark_messages(item, bare=bare) for item in value]
        )
    if type(value) is dict and type(value.get("content")) in (str, list):
        return {**value, "content": mark_texts(value["content"])}
    return value


class Lifting:
    """Like `default_of`, but messages go to `messages`, and their position takes their place.

    So do messages inside whatever may hold them.

    An object, for a function that names itself would be garbage that only a collection finds, once
    for every value.

    Args:
        messages: Where they go.
        texts: Whether the long texts inside what may hold messages go there too.

    Attributes:
        deep: Whether extension types are so often inside each other that whoever reads them looks
            at them first.
    """

    __slots__ = ("_level", "_messages", "_texts", "deep")

    def __init__(self, messages: list[Snapshot], *, texts: bool) -> None:
        self._messages = messages
        self._texts = texts
        self._level = 0
        self.deep = False

    def __call__(self, value: Any) -> Any:
        """A value that msgpack does not know, as one that it knows."""
        if type(value) is _Text:
            return self._lifted(EXT_TEXT, pack(value.text))
        if _is_message(value):
            return self._lifted(EXT_MESSAGE, snapshot(value, default_of))
        if type(value) is Unbuilt:
            return value.packed(self, mark_texts if self._texts else None)
        if isinstance(value, _DeltaSnapshot):
            return ormsgpack.Ext(EXT_DELTA_SNAPSHOT, self._inside(value.value))
        holder = _holder(value)
        if holder is not None:
            code, payload = holder
            cls = type(value)
            return ormsgpack.Ext(
                code, self._inside((cls.__module__, cls.__name__, self._marked(payload)))
            )
        if isinstance(value, BaseModel):
            cls = type(value)
            fields = self._marked(_fields_with_messages(value))
            return ormsgpack.Ext(
                EXT_PYDANTIC_V2,
                self._inside((cls.__module__, cls.__name__, fields, "model_validate_json")),
            )
        return default_of(value)

    def _inside(self, value: Any) -> bytes:
        """What an extension type holds."""
        self._level += 1
        self.deep |= self._level > LOOKED_AT
        packed = ormsgpack.packb(
            value, self, PACK_OPTIONS
        )  # not by `pack`: that takes one more of the stack's levels
        self._level -= 1
        return packed

    def _lifted(self, code: int, packed: Snapshot) -> ormsgpack.Ext:
        self._messages.append(packed)
        return ormsgpack.Ext(code, pack(len(self._messages) - 1))

    def _marked(self, value: Any) -> Any:
        return mark_texts(value) if self._texts else value


def _fields_with_messages(value: BaseModel) -> dict[str, Any]:
    """A model's fields as pydantic dumps them, but with messages as messages."""
    fields = value.model_dump()
    for name in type(value).model_fields:
        held = getattr(value, name, None)
        if name in fields and (_is_message(held) or is_message_list(held)):
            fields[name] = held
    return fields


def _holder(value: Any) -> tuple[int, Any] | None:
    """Extension code and payload of a value that may hold messages; None for every other.

    Both are as LangGraph's serializer has them.
    """
    if any(
        callable(getattr(value, name, None)) for name in ("model_dump", "get_secret_value", "dict")
    ):
        return None
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return EXT_CONSTRUCTOR_KW_ARGS, value._asdict()
    if isinstance(value, deque):
        return EXT_CONSTRUCTOR_SINGLE_ARG, tuple(value)
    if isinstance(value, Send):
        timeout = getattr(value, "timeout", None)
        return EXT_CONSTRUCTOR_POS_ARGS, (
            (value.node, value.arg)
            if timeout is None
            else (
                value.node,
                value.arg,
                timeout,
            )
        )
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return EXT_CONSTRUCTOR_KW_ARGS, {
            field.name: getattr(value, field.name) for field in dataclasses.fields(value)
        }
    return None
