"""A message's exact snapshot: the bytes by which an unchanged message is recognised and from which a fresh copy is built.

A snapshot is the msgpack of the message's `__dict__`. It is taken in one C call, so a message that another thread is changing (LangGraph
sets ids while writes are being saved) is caught in one state, never between two. It is exact where `==` is not: `True`, `1` and `1.0`
differ. It is also the copy: unpacking it gives a `__dict__` that shares nothing with the original, with the types that every cold read
gives (a tuple comes back as a list).

Three forms: a map, for LangChain's own classes, whose `type` field names the class; `[module, class, fields]` for every other class; and a
string, for a long text that came in before the message that will hold it.

Nothing validates a field that is set in place (`message.id = 5`). What then stands where a text should is in the snapshot as it is, and in
no column; such a message is validated when it is read, as LangGraph does with all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

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

from langmem_ext.messages.text import WHOLE, split_content, text_of

Snapshot: TypeAlias = bytes
Default: TypeAlias = Callable[[Any], Any]
ExtHook: TypeAlias = Callable[[int, bytes], Any]

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

CODE_OF_TYPE: Final = {str(cls.model_fields["type"].default): code for code, cls in enumerate(CLASSES)}
"""The class code by the `type` field, which names each of these classes uniquely."""

DEFAULTS: Final = tuple(
    {name: field.get_default(call_default_factory=True) for name, field in cls.model_fields.items() if not field.is_required()}
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
"""The code of a field in the database, whatever release of langchain-core is installed: append only. Other fields go by their names."""

FIELDS: Final = tuple(tuple(cls.model_fields) for cls in CLASSES)
"""Field names in class order, by class code."""

_FORM: Final = {cls: (len(cls.model_fields), cls.model_fields["type"].default) for cls in CLASSES}
CLASS_OF_TYPE: Final = {kind: CLASSES[code] for kind, code in CODE_OF_TYPE.items()}
_FIELD_SET: Final = {cls: frozenset(cls.model_fields) for cls in CLASSES}
_TEXTS: Final = frozenset({str, type(None)})

# What langgraph's own serializer passes, so that equal values give equal bytes here and there. The name is not exported by it.
PACK_OPTIONS: Final = (
    ormsgpack.OPT_NON_STR_KEYS
    | ormsgpack.OPT_PASSTHROUGH_DATACLASS
    | ormsgpack.OPT_PASSTHROUGH_DATETIME
    | ormsgpack.OPT_PASSTHROUGH_ENUM
    | ormsgpack.OPT_PASSTHROUGH_UUID
    | ormsgpack.OPT_REPLACE_SURROGATES
)
UNPACK_OPTIONS: Final = ormsgpack.OPT_NON_STR_KEYS

_packb = ormsgpack.packb
_unpackb = ormsgpack.unpackb
_new = object.__new__
_set = object.__setattr__


def snapshot(message: BaseMessage, default: Default) -> Snapshot:
    """The message's exact bytes, as of now.

    Args:
        message: Any LangChain message.
        default: Turns a value that msgpack does not know into one that it does; raises `TypeError` for the rest.

    Raises:
        ormsgpack.MsgpackEncodeError: A field holds a value that cannot be stored.
    """
    fields = message.__dict__
    cls = type(message)
    if _FORM.get(cls) == (len(fields), fields.get("type")) and not message.__pydantic_extra__:
        try:
            return _packb(fields, None, PACK_OPTIONS)
        except ormsgpack.MsgpackEncodeError:
            # A value beyond plain data (a date, a model in `artifact`): stored as pydantic dumps it, like every LangGraph saver does.
            return _packb(message.model_dump(warnings=False), default, PACK_OPTIONS)
    return _packb([cls.__module__, cls.__name__, message.model_dump()], default, PACK_OPTIONS)


def snapshots(messages: Sequence[BaseMessage], default: Default) -> list[Snapshot]:
    """`snapshot` of each message, in order."""
    packb, form, options = _packb, _FORM, PACK_OPTIONS
    packed: list[Snapshot] = []
    for message in messages:
        fields = message.__dict__
        if form.get(type(message)) == (len(fields), fields.get("type")) and not message.__pydantic_extra__:
            try:
                packed.append(packb(fields, None, options))
                continue
            except ormsgpack.MsgpackEncodeError:
                pass
        packed.append(snapshot(message, default))
    return packed


def is_standard(packed: Snapshot) -> bool:
    """Whether a snapshot is of one of `CLASSES` (a msgpack map) rather than of a class named inside it (an array)."""
    first = packed[0]
    return 0x80 <= first <= 0x8F or first in (0xDE, 0xDF)


def is_text(packed: Snapshot) -> bool:
    """Whether a snapshot is a bare text (a msgpack string)."""
    first = packed[0]
    return 0xA0 <= first <= 0xBF or 0xD9 <= first <= 0xDB


def opaque(code: int, data: bytes) -> Any:
    """Leaves a value that is not plain data as the bytes that it is: who only stores it need not be allowed to build it."""
    return ormsgpack.Ext(code, data)


def fields_of(packed: Snapshot) -> dict[str, Any]:
    """The fields that a snapshot holds, as fresh values, what is not plain data opaque; a bare text is a `content` and nothing else."""
    content = unpack(packed, opaque)
    if isinstance(content, str):
        return {"content": content}
    fields: dict[str, Any] = content if is_standard(packed) else content[2]
    return fields


def has_texts(fields: dict[str, Any]) -> bool:
    """Whether texts stand in a message's unpacked fields wherever a column waits for one."""
    return (
        type(fields["id"]) in _TEXTS
        and type(fields["name"]) in _TEXTS
        and type(fields["content"]) in (str, list)
        and type(fields.get("tool_call_id", "")) is str
        and type(fields.get("role", "")) is str
    )


def message_of(packed: Snapshot, ext_hook: ExtHook, rebuild: Callable[[str, str, dict[str, Any]], Any]) -> Any:
    """A fresh message, sharing nothing with any other.

    No validation runs, as a rule: the bytes were taken from a message that had passed it.

    Args:
        packed: The snapshot.
        ext_hook: Restores the values that `default` packed.
        rebuild: Builds, from its module, name and fields, an instance of a class that is not LangChain's, or one that must be validated.
    """
    fields = unpack(packed, ext_hook)
    if type(fields) is not dict:
        return rebuild(*fields) if type(fields) is list else fields
    cls = CLASS_OF_TYPE[fields["type"]]
    if not has_texts(fields):
        return rebuild(cls.__module__, cls.__name__, fields)
    message = _new(cls)
    _set(message, "__dict__", fields)
    _set(message, "__pydantic_fields_set__", set(_FIELD_SET[cls]))
    _set(message, "__pydantic_extra__", {})
    _set(message, "__pydantic_private__", None)
    return message


def id_of(packed: Snapshot) -> str | None:
    """The message's id; None where it has none yet, or one that no column can hold."""
    return column_id(fields_of(packed))


def column_id(fields: dict[str, Any]) -> str | None:
    """`id_of` of a message with these fields."""
    message_id = fields.get("id")
    return message_id if type(message_id) is str and "\0" not in message_id else None


def renamed(packed: Snapshot, message_id: str | None) -> Snapshot:
    """The same message with another id, or with none."""
    content = unpack(packed, opaque)
    if isinstance(content, str):
        return packed
    fields = content if is_standard(packed) else content[2]
    fields["id"] = message_id
    return _packb(content, None, PACK_OPTIONS)


def text_key(packed: Snapshot) -> Snapshot | None:
    """The snapshot that the message's text had before there was the message; None where its row does not show its text alone."""
    content = fields_of(packed).get("content")
    text = text_of(content)
    return _packb(text, None, PACK_OPTIONS) if text and WHOLE not in split_content(content, text) else None


def pack(value: Any, default: Default | None = None) -> bytes:
    """Any plain value as msgpack, with the options that snapshots use."""
    return _packb(value, default, PACK_OPTIONS)


def unpack(packed: bytes, ext_hook: ExtHook | None = None) -> Any:
    """The value that `pack` was given. All that is read from rows and files comes through here.

    Raises:
        ValueError: The bytes do not decode.
    """
    try:
        return _unpackb(packed, ext_hook=ext_hook, option=UNPACK_OPTIONS)
    except BaseException as error:
        # A panic in Rust derives from BaseException: no caller would catch it. Its class cannot be imported.
        if type(error).__name__ == "PanicException":
            raise ValueError("the decoder gave up") from None
        raise


def array_head(count: int) -> bytes:
    """What stands before the elements of a packed list."""
    return bytes([0x90 | count]) if count < 16 else b"\xdc" + count.to_bytes(2) if count < 1 << 16 else b"\xdd" + count.to_bytes(4)


def array_count(packed: bytes) -> int:
    """How many elements a packed list has."""
    first = packed[0]
    return first & 0x0F if first < 0xA0 else int.from_bytes(packed[1:3] if first == 0xDC else packed[1:5])


def map_head(count: int) -> bytes:
    """What stands before the keys and values of a packed dict."""
    return bytes([0x80 | count]) if count < 16 else b"\xde" + count.to_bytes(2) if count < 1 << 16 else b"\xdf" + count.to_bytes(4)


def is_foreign(packed: bytes) -> bool:
    """Whether bytes are what a serializer of the application's own makes of a value: its kind, and its bytes."""
    if packed[:1] != b"\x92":
        return False
    value = unpack(packed, opaque)
    return isinstance(value, list) and [type(part) for part in value] == [str, bytes]
