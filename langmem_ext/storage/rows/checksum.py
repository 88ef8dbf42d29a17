"""A row's check: the number that shows a reader whether the row has changed since it was written.

SQLite has no checksums: a flipped bit in a text is another letter, and one in a reference is
another message. So every row of a thread holds a CRC-32, and every reader that uses the row
compares it.

Invariants:
- It covers the row's key within its thread, and its columns as they are stored, compressed or not,
  with their types.
- The thread's number is added to it, modulo 2**32. So a row that gets into another thread does not
  match there, and a copy's check is its original's plus the difference of their threads (`moved`).
- A checkpoint's parent is covered by its id, even if the row only implies it: writing it out does
  not change the check, and a missing row is noticed by the row that followed it.
- It does not cover what is derived from other columns and not needed to restore a message: an
  item's tokens. The doctor compares those.

It detects damage, not forgery: anyone who can write a row can write its check.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from zlib import crc32

from langmem_ext.messages.packed import pack
from langmem_ext.storage.operation import Row

CHANGED: Final = "its checksum does not match"
"""The description of a row whose check does not match."""

HALF: Final = 1 << 31
"""Taken off, so that half of all checks are negative and none needs more than the four bytes that
it is."""

ALL: Final = (1 << 32) - 1
"""Takes a number modulo 2**32."""


def check_of(thread: int, *columns: Any) -> int:
    """The check of a row.

    Args:
        thread: The thread's number.
        columns: The row's key within its table and thread, and its columns, in the order of
            `storage.schema.migrations`.
    """
    return (crc32(pack(columns)) + thread & ALL) - HALF


def item_check(thread: int, row: Row) -> int:
    """The checksum of an item, from its number or key and its columns.

    The columns are `sql.ITEM_COLUMNS`, up to its shape.
    """
    return (crc32(pack(row[1:9]), row[0] & ALL) + thread & ALL) - HALF


def checkpoint_check(thread: int, row: Row) -> int:
    """The checksum of a checkpoint, from its namespace and its columns.

    The columns are `sql.CHECKPOINT_COLUMNS`, up to its key.
    """
    return check_of(thread, *(row[:-1] if row[-1] is None else row))


def moved(check: int, apart: int) -> int:
    """The check of a row that is copied to a thread whose number is another by so much."""
    return (check + HALF + apart & ALL) - HALF


def changed_items(rows: Sequence[Row], thread: int) -> set[int]:
    """The first columns of a thread's items that do not match their checksums.

    It is a loop without calls, because lists are long.
    """
    check, mask, half, pack_columns = crc32, ALL, HALF, pack
    return {
        row[0]
        for row in rows
        if row[9] != (check(pack_columns(row[1:9]), row[0] & mask) + thread & mask) - half
    }


def holds(check: object, thread: object, *columns: Any) -> bool:
    """Whether a row matches its check, even if its columns have invalid types."""
    return isinstance(thread, int) and check == check_of(thread, *columns)


def verify(check: object, thread: int, *columns: Any) -> None:
    """Require that a row matches its check.

    Raises:
        ValueError: It does not.
    """
    if check != check_of(thread, *columns):
        raise ValueError(CHANGED)
