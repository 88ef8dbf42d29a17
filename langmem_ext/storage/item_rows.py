"""A row of `item`, read: its text and rest made whole, and the message's exact bytes."""

from __future__ import annotations

from typing import Final

from langmem_ext.errors import DamagedRow, LangmemExtError
from langmem_ext.messages.skeleton import join_keys
from langmem_ext.storage import statements as sql
from langmem_ext.storage.compression import MARK, expand, expand_text
from langmem_ext.storage.effects import Row
from langmem_ext.storage.ids import decode_id
from langmem_ext.types import Codec, ItemRow, Snapshot

_TEXTS: Final = frozenset({str, type(None)})


def decode_item(row: Row, codec: Codec) -> tuple[Snapshot, str | None]:
    """The exact bytes and the id of an item, from its row.

    Raises:
        DamagedRow: The row does not decode.
    """
    try:
        _, raw_id, role, name, text, tool_call_id, rest = whole_item(row)
        message_id = None if raw_id is None else decode_id(raw_id)
        if not _TEXTS.issuperset((type(name), type(text), type(tool_call_id))):
            raise ValueError("a text of it is none")
        return codec.snapshot_of(ItemRow(message_id, role, name, text, tool_call_id, rest)), message_id
    except LangmemExtError:
        raise
    except Exception as error:
        number = row[0] & (1 << sql.KEY_BITS) - 1
        raise DamagedRow(
            f"message {number} of thread number {row[0] >> sql.KEY_BITS} is damaged ({error}): other threads stay readable;"
            " restore this one from a copy, or delete it"
        ) from error


def whole_item(row: Row) -> Row:
    """An item's row (`statements.ITEM_COLUMNS`) with its rest in one piece, and nothing of it compressed.

    Raises:
        ValueError: The word with its keys is missing, or does not belong to it; what is compressed is damaged (also zstd's own errors).
        MissingExtra: Something of it is compressed, and there is no zstd.
    """
    *columns, text, tool_call_id, rest, shape, keys = row
    if type(text) is bytes:
        text = expand_text(text)
    if type(rest) is bytes and MARK in rest[:2]:
        rest = expand(rest)
    if shape is not None:
        if keys is None:
            raise ValueError(f"word {shape} is missing")
        rest = join_keys(keys, rest)
    return (*columns, text, tool_call_id, rest)
