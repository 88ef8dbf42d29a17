"""A message's exact snapshot: bytes that identify it, and from which a copy is built.

A snapshot is the msgpack of the message's `__dict__`. It is taken in one C call, so a message that
another thread is changing (LangGraph sets ids while writes are being saved) is caught in one state,
never between two. It is exact where `==` is not: `True`, `1` and `1.0` differ. It is also the copy:
unpacking it gives a `__dict__` that shares nothing with the original, with the types that every
cold read gives (a tuple comes back as a list).

Three forms: a map, for LangChain's own classes, whose `type` field names the class; `[module,
class, fields]` for every other class; and a string, for a long text that came in before the message
that will hold it.

Nothing validates a field that is set in place (`message.id = 5`). Whatever is then in place of a
text is in the snapshot as it is, and in no column; such a message is validated when it is read, as
LangGraph does with all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import ormsgpack
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    ChatMessageChunk,
    FunctionMessage,
    FunctionMessageChunk,
    HumanMessage,
    HumanMessageChunk,
    SystemMessage,
    SystemMessageChunk,
    ToolMessage,
    ToolMessageChunk,
)

from langmem_ext.messages.packed import (
    PACK_OPTIONS,
    WRITTEN,
    Default,
    ExtHook,
    Snapshot,
    as_written,
    has_texts,
    unpack,
)

CLASSES: Final[tuple[type[BaseMessage], ...]] = (
    HumanMessage,
    AIMessage,
    SystemMessage,
    ToolMessage,
    FunctionMessage,
    ChatMessage,
    HumanMessageChunk,
    AIMessageChunk,
    SystemMessageChunk,
    ToolMessageChunk,
    FunctionMessageChunk,
    ChatMessageChunk,
)
"""LangChain's message classes. A class's position is its code in the database: append only."""

CODE_OF_TYPE: Final = {
    str(cls.model_fields["type"].default): code for code, cls in enumerate(CLASSES)
}
"""The class code by the `type` field, which names each of these classes uniquely."""

DEFAULTS: Final = tuple(
    {
        name: field.get_default(call_default_factory=True)
        for name, field in cls.model_fields.items()
        if not field.is_required()
    }
    for cls in CLASSES
)
"""The default of every optional field, by class code."""

FIELD_CODES: Final = {
    name: code
    for code, name in enumerate(
        (
            "content",
            "additional_kwargs",
            "response_metadata",
            "type",
            "name",
            "id",
            "tool_calls",
            "invalid_tool_calls",
            "usage_metadata",
            "tool_call_id",
            "artifact",
            "status",
            "role",
            "tool_call_chunks",
            "chunk_position",
        )
    )
}
"""The code of a field in the database, whatever release of langchain-core is installed: append
only. Other fields go by their names."""

FIELDS: Final = tuple(tuple(cls.model_fields) for cls in CLASSES)
"""Field names in class order, by class code."""

_FORM: Final = {cls: (len(cls.model_fields), cls.model_fields["type"].default) for cls in CLASSES}
CLASS_OF_TYPE: Final = {kind: CLASSES[code] for kind, code in CODE_OF_TYPE.items()}
_FIELD_SET: Final = {cls: frozenset(cls.model_fields) for cls in CLASSES}

_packb = ormsgpack.packb
_new = object.__new__
_set = object.__setattr__


def snapshot(message: BaseMessage, default: Default) -> Snapshot:
    """The message's exact bytes, as of now.

    Args:
        message: Any LangChain message.
        default: Turns a value that msgpack does not know into one that it does; raises `TypeError`
            for the rest.

    Raises:
        ormsgpack.MsgpackEncodeError: A field holds a value that cannot be stored.
    """
    fields = message.__dict__
    cls = type(message)
    if _FORM.get(cls) == (len(fields), fields.get("type")) and not message.__pydantic_extra__:
        try:
            return _packb(fields, None, PACK_OPTIONS)
        except ormsgpack.MsgpackEncodeError:
            # A value beyond plain data (a date, a model in `artifact`): stored as pydantic dumps
            # it, like every LangGraph saver does.
            return _packb(message.model_dump(warnings=False), default, PACK_OPTIONS)
    return _packb([cls.__module__, cls.__name__, message.model_dump()], default, PACK_OPTIONS)


def snapshots(messages: Sequence[BaseMessage], default: Default) -> list[Snapshot]:
    """`snapshot` of each message, in order."""
    packb, form, options = _packb, _FORM, PACK_OPTIONS
    packed: list[Snapshot] = []
    for message in messages:
        fields = message.__dict__
        if (
            form.get(type(message)) == (len(fields), fields.get("type"))
            and not message.__pydantic_extra__
        ):
            try:
                packed.append(packb(fields, None, options))
                continue
            except ormsgpack.MsgpackEncodeError:
                pass
        packed.append(snapshot(message, default))
    return packed


def message_of(
    packed: Snapshot, ext_hook: ExtHook, rebuild: Callable[[str, str, dict[str, Any]], Any]
) -> Any:
    """A fresh message, sharing nothing with any other.

    No validation runs, as a rule: the bytes were taken from a message that had passed it.

    Args:
        packed: The snapshot.
        ext_hook: Restores the values that `default` packed.
        rebuild: Builds, from its module, name and fields, an instance of a class that is not
            LangChain's, or one that must be validated.
    """
    fields = unpack(packed, ext_hook)
    if type(fields) is not dict:
        return rebuild(*fields) if type(fields) is list else fields
    if WRITTEN in fields:
        return as_written(fields)
    cls = CLASS_OF_TYPE[fields["type"]]
    if not has_texts(fields):
        return rebuild(cls.__module__, cls.__name__, fields)
    message = _new(cls)
    _set(message, "__dict__", fields)
    _set(message, "__pydantic_fields_set__", set(_FIELD_SET[cls]))
    _set(message, "__pydantic_extra__", {})
    _set(message, "__pydantic_private__", None)
    return message
