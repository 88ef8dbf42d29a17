"""A message's snapshot as bytes: what can be read of it, and made of it, without its class.

Storage and listings handle messages by these bytes alone, so they need no message class of
LangChain's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, TypeAlias

import ormsgpack

from langmem_ext.messages.text import WHOLE, split_content, text_of

Snapshot: TypeAlias = bytes
Default: TypeAlias = Callable[[Any], Any]
ExtHook: TypeAlias = Callable[[int, bytes], Any]

WRITTEN: Final = "__written__"
"""Key, among a message's fields, of its written form, in which its content is left out."""

_TEXTS: Final = frozenset({str, type(None)})

# What langgraph's own serializer passes, so that equal values give equal bytes here and there. The
# name is not exported by it.
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

pack: Final[Callable[..., bytes]] = partial(ormsgpack.packb, option=PACK_OPTIONS)
"""Any plain value as msgpack, with the options that snapshots use; behind it, what turns other
values into plain ones (`Default`)."""

_unpackb = ormsgpack.unpackb


def is_standard(packed: Snapshot) -> bool:
    """Whether a snapshot is of one of `CLASSES` (a map), not of a class it names (an array)."""
    first = packed[0]
    return 0x80 <= first <= 0x8F or first in (0xDE, 0xDF)


def is_text(packed: Snapshot) -> bool:
    """Whether a snapshot is a bare text (a msgpack string)."""
    first = packed[0]
    return 0xA0 <= first <= 0xBF or 0xD9 <= first <= 0xDB


def opaque(code: int, data: bytes) -> Any:
    """Keep a value that is not plain data as its bytes: storing it does not require building it."""
    return ormsgpack.Ext(code, data)


def fields_of(packed: Snapshot) -> dict[str, Any]:
    """The fields of a snapshot as fresh values; what is not plain data is opaque.

    A bare text is a `content` and nothing else.
    """
    content = unpack(packed, opaque)
    if isinstance(content, str):
        return {"content": content}
    fields: dict[str, Any] = content if is_standard(packed) else content[2]
    return fields


def as_written(fields: Mapping[str, Any]) -> Any:
    """A message as it was written, from the fields of its snapshot."""
    form, content = fields[WRITTEN], fields["content"]
    if isinstance(form, dict):
        return {**form, "content": content}
    if isinstance(form, list) and form:
        return form[0] if len(form) == 1 else [form[0], content]
    return content


def has_texts(fields: dict[str, Any]) -> bool:
    """Whether texts are in a message's unpacked fields wherever a column waits for one."""
    return (
        type(fields["id"]) in _TEXTS
        and type(fields["name"]) in _TEXTS
        and type(fields["content"]) in (str, list)
        and type(fields.get("tool_call_id", "")) is str
        and type(fields.get("role", "")) is str
    )


def id_of(packed: Snapshot) -> str | None:
    """The message's id; None if it has none yet, or one that no column can hold."""
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
    """The snapshot of the message's bare text; None if its row does not show its text alone."""
    content = fields_of(packed).get("content")
    text = text_of(content)
    return (
        _packb(text, None, PACK_OPTIONS)
        if text and WHOLE not in split_content(content, text)
        else None
    )


def unpack(packed: bytes, ext_hook: ExtHook | None = None) -> Any:
    """The value that `pack` was given. All that is read from rows and files comes through here.

    Raises:
        ValueError: The bytes do not decode.
    """
    try:
        return _unpackb(packed, ext_hook=ext_hook, option=UNPACK_OPTIONS)
    except BaseException as error:
        # A panic in Rust derives from BaseException: no caller would catch it. Its class cannot be
        # imported.
        if type(error).__name__ == "PanicException":
            raise ValueError("the decoder gave up") from None
        raise


def array_head(count: int) -> bytes:
    """What is before the elements of a packed list."""
    return (
        bytes([0x90 | count])
        if count < 16
        else b"\xdc" + count.to_bytes(2)
        if count < 1 << 16
        else b"\xdd" + count.to_bytes(4)
    )


def array_count(packed: bytes) -> int:
    """How many elements a packed list has."""
    first = packed[0]
    return (
        first & 0x0F
        if first < 0xA0
        else int.from_bytes(packed[1:3] if first == 0xDC else packed[1:5])
    )


def map_head(count: int) -> bytes:
    """What is before the keys and values of a packed dict."""
    return (
        bytes([0x80 | count])
        if count < 16
        else b"\xde" + count.to_bytes(2)
        if count < 1 << 16
        else b"\xdf" + count.to_bytes(4)
    )


def is_foreign(packed: bytes) -> bool:
    """Whether bytes are what a custom serializer makes of a value: its kind, and its bytes."""
    if packed[:1] != b"\x92":
        return False
    value = unpack(packed, opaque)
    return isinstance(value, list) and [type(part) for part in value] == [str, bytes]
