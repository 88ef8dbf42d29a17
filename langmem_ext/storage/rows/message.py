"""A row of `item`, read: its text and rest made whole, and the message's exact bytes."""

from __future__ import annotations

from typing import Any, Final

from langmem_ext._internal.interruption import pass_on
from langmem_ext.errors import DamagedRow, LangmemExtError, cause, safe_text
from langmem_ext.messages.packed import is_foreign, opaque, unpack
from langmem_ext.storage.operation import Row
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.rows.compression import MARK, expand, expand_text
from langmem_ext.storage.rows.ids import decode_id
from langmem_ext.storage.rows.skeleton import is_in_keeping, join_keys
from langmem_ext.storage.schema.dialect import NUMBER
from langmem_ext.types import Codec, ItemRow, Snapshot

HUMAN_CODES: Final = (0, 6)
AI_CODES: Final = (1, 7)
SYSTEM_CODES: Final = (2, 8)
TOOL_CODES: Final = (3, 9)
"""The codes of a role's classes, the message and its chunk; as text, each is a list in SQL. They
are the classes' positions in `messages.snapshot.CLASSES`, which cannot be asked here: it needs
LangChain."""

_TEXTS: Final = frozenset({str, type(None)})


def require_item(thread: int, row: Row) -> None:
    """Require that an item's row has not changed since it was written.

    Raises:
        DamagedRow: It has.
    """
    if row[9] != checks.item_check(thread, row):
        raise damaged_item(thread, row, checks.CHANGED)


def decode_item(
    thread: int, row: Row, keys: bytes | None, codec: Codec
) -> tuple[Snapshot, str | None]:
    """The exact bytes and the id of an item, from its row, which matches its check.

    Args:
        thread: Its thread's number.
        row: Its row (`sql.ITEM_COLUMNS`).
        keys: The word that its shape names.
        codec: Makes the bytes.

    Raises:
        DamagedRow: The row does not decode.
    """
    try:
        raw_id, role, name, text, tool_call_id, rest = whole_item(row, keys)
        message_id = None if raw_id is None else decode_id(raw_id)
        if not _TEXTS.issuperset((type(name), type(text), type(tool_call_id))):
            raise ValueError("a text of it is invalid")
        return (
            codec.snapshot_of(ItemRow(message_id, role, name, text, tool_call_id, rest)),
            message_id,
        )
    except LangmemExtError:
        raise
    except Exception as error:
        pass_on(error)
        raise (_unreadable_item(thread, row) or damaged_item(thread, row, error)) from cause(error)


def rest_of_item(thread: int, row: Row, keys: bytes | None) -> dict[Any, Any]:
    """What an item's row holds besides its columns, by the codes of its fields.

    Args:
        thread: Its thread's number.
        row: Its row, which has a role and a rest.
        keys: The word that its shape names.

    Raises:
        DamagedRow: The row does not decode.
    """
    try:
        rest: dict[Any, Any] = unpack(whole_item(row, keys)[-1], opaque)
        return rest
    except LangmemExtError:
        raise
    except Exception as error:
        pass_on(error)
        raise damaged_item(thread, row, error) from cause(error)


def damaged_item(thread: int, row: Row, why: object) -> DamagedRow:
    """The error that names an item."""
    return DamagedRow(
        f"message {row[0] & NUMBER} of thread number {thread} is damaged ({safe_text(why)}): other"
        " threads stay readable; restore this one from a copy, or delete it"
    )


def _unreadable_item(thread: int, row: Row) -> DamagedRow | None:
    """The error of an intact item that another serializer wrote; None if that is not known."""
    rest = row[7]
    try:
        if (
            row[2] is not None
            or type(rest) is not bytes
            or not is_foreign(expand(rest) if MARK in rest[:2] else rest)
        ):
            return None
    except Exception as error:
        pass_on(error)
        return None
    return DamagedRow(
        f"message {row[0] & NUMBER} of thread number {thread} was written by a custom serializer:"
        " open the database with that serializer (serde=…) and its key"
    )


def whole_item(row: Row, keys: bytes | None) -> Row:
    """Id, role, name, text, tool call's id and rest of an item, whole and uncompressed.

    Raises:
        ValueError: The word with its keys does not match; a compressed column is damaged (also
            zstd's own errors).
        MissingExtra: A column is compressed, and there is no zstd.
    """
    _, message_id, role, name, text, tool_call_id, _, rest, shape, _ = row
    if type(text) is bytes:
        text = expand_text(text)
    if type(rest) is bytes and MARK in rest[:2]:
        rest = expand(rest)
    if shape is not None:
        if keys is None:
            raise ValueError(f"word {shape} is missing")
        if not is_in_keeping(keys, rest):
            raise ValueError(f"word {shape} holds more keys than it has values")
        rest = join_keys(keys, rest)
    return message_id, role, name, text, tool_call_id, rest
