"""The SQL of whole threads, by table: exported, imported, and copied inside a database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from langmem_ext.storage.checkpoints.sql import ITEM_COLUMNS, OWNED
from langmem_ext.storage.schema.dialect import (
    BEHIND,
    COPIED_PLACE,
    INSTR,
    KEY,
    NEW_THREAD,
    NEW_THREAD_VALUES,
    OF_ID,
    OF_THREAD,
    OWNER_VALUE,
    PLACE,
    PLACE_VALUES,
    ROW_PLACE,
)

MOVED_CRC: Final = "((2147483648 + crc + :apart) & 4294967295) - 2147483648"
"""The check of a row under another thread's number (`storage.rows.checksum.moved`)."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a thread's rows.

    Attributes:
        name: Its name.
        columns: All of its columns, the thread's number and the rest of the key first.
        keys: How many of them, after the thread's number, are the rest of the key.
        placed: Whether thread and number may be one column (`storage.schema.dialect.KEY`).
    """

    name: str
    columns: tuple[str, ...]
    keys: int = 1
    placed: bool = False

    def insert(self) -> str:
        """The statement that adds a row."""
        first, second, *others = self.columns
        place, values = (
            (PLACE, PLACE_VALUES) if self.placed else (f"{first}, {second}", f":{first}, :{second}")
        )
        return (
            f"INSERT INTO {self.name} ({place}, {', '.join(others)}) VALUES ({values},"
            f" :{', :'.join(others)})"
        )

    def page(self) -> str:
        """The statement that reads the rows after a row, in the order of their keys."""
        if self.placed:
            return (
                f"SELECT {ROW_PLACE}, {', '.join(self.columns[2:])} FROM {self.name} WHERE {BEHIND}"
                f" ORDER BY {KEY} LIMIT :limit"
            )
        key = self.columns[1 : 1 + self.keys]
        where = f"({', '.join(key)}) > ({', '.join(f':{name}' for name in key)})"
        return (
            f"SELECT {', '.join(self.columns)} FROM {self.name} WHERE thread = :thread AND {where}"
            f" ORDER BY {', '.join(key)} LIMIT :limit"
        )

    def copy(self) -> str:
        """The statement that copies a thread's rows to another thread, under the same numbers."""
        first, second, *others = self.columns
        place, copied = (
            (PLACE, COPIED_PLACE) if self.placed else (f"{first}, {second}", f":target, {second}")
        )
        where = OF_THREAD if self.placed else "thread = :thread"
        return (
            f"INSERT INTO {self.name} ({place}, {', '.join(others)}) SELECT {copied},"
            f" {', '.join(MOVED_CRC if name == 'crc' else name for name in others)}"
            f" FROM {self.name} WHERE {where}"
        )

    def position(self, thread: int, after: tuple[Any, ...] | None) -> dict[str, Any]:
        """The parameters of `page`.

        Args:
            thread: The thread's number.
            after: The row after which to go on; None to begin with the first.
        """
        key = (-1, b"", b"")[: self.keys] if after is None else after[1 : 1 + self.keys]
        return {"thread": thread} | dict(
            zip(("after",) if self.placed else self.columns[1:], key, strict=False)
        )


ITEM: Final = Table(
    "item", ("thread", "number", *ITEM_COLUMNS.split(", ")[1:], "tokens"), placed=True
)
VALUE: Final = Table("value", ("thread", "number", "body", "crc"), placed=True)
NAMESPACE: Final = Table("namespace", ("thread", "number", "name", "crc"))
WORD: Final = Table("word", ("thread", "number", "body", "crc"))
CHECKPOINT: Final = Table(
    "checkpoint",
    ("thread", "namespace", "id", "parent", "step", "label", "shape", "body", "given_id", "crc"),
    2,
)
WRITE: Final = Table(
    "pending_write", ("thread", "namespace", "checkpoint", "task", "shape", "body", "crc"), 3
)

TABLES: Final = (NAMESPACE, WORD, ITEM, VALUE, CHECKPOINT, WRITE)
"""The tables, each before those that refer to it."""

THREAD_COLUMNS: Final = (
    "id",
    "owner",
    "title",
    "titled_by",
    "status",
    "created_at",
    "epoch",
    "updated_at",
    "active_at",
    "items",
    "tokens",
    "head_messages",
    "forked_from",
    "waiting_for",
    "tool",
    "tags",
    "metadata",
    "next_item",
    "next_value",
    "next_word",
    "next_namespace",
)
"""A thread's own columns, except its number and those that matter in one database alone."""

SELECT_THREAD = f"SELECT number, {', '.join(THREAD_COLUMNS)} FROM thread WHERE {OF_ID} AND {OWNED}"
SELECT_OWNER = f"SELECT owner FROM thread WHERE {OF_ID}"
INSERT_THREAD = (
    f"INSERT INTO thread ({NEW_THREAD}, {', '.join(THREAD_COLUMNS[1:])}, born) VALUES"
    f" ({NEW_THREAD_VALUES}, {OWNER_VALUE}, :{', :'.join(THREAD_COLUMNS[2:])}, :born) ON CONFLICT"
    " DO NOTHING RETURNING number"
)
INSERT_COPY = (
    f"INSERT INTO thread (number, {', '.join(THREAD_COLUMNS)}) VALUES (:number,"
    f" :{', :'.join(THREAD_COLUMNS)})"
)
SELECT_IDS = "SELECT number, id FROM thread{where} ORDER BY number LIMIT :limit"
AFTER: Final = "number > :after"

# -- copies inside a database ----------------------------------------------------------------------

HAS_ROWS = (
    "SELECT EXISTS (SELECT 1 FROM checkpoint WHERE thread = :thread) OR EXISTS (SELECT 1 FROM"
    f" pending_write WHERE thread = :thread) OR EXISTS (SELECT 1 FROM item WHERE {OF_THREAD})"
)
_OWN: Final = ("id", "owner", "status", "created_at", "updated_at", "active_at", "forked_from")
"""What a copy's row does not take from its source."""

_TAKEN: Final = ", ".join(
    f"{name} = source.{name}" for name in (*THREAD_COLUMNS, "key_id") if name not in _OWN
)
COPY_THREAD_ROW = (
    f"UPDATE thread SET version = thread.version + 1, {_TAKEN}, forked_from = source.id,"
    " generation = :generation, updated_at = :now, active_at = :minute FROM (SELECT * FROM thread"
    " WHERE number = :source) AS source WHERE thread.number = :target"
)
HAS_COPY = (
    f"SELECT 1 FROM thread WHERE {OF_ID} AND forked_from = :source AND generation >= :low AND"
    " generation < :high"
)
COPY_ROWS: Final = tuple(table.copy() for table in TABLES)
SELECT_LABELS = (
    "SELECT number, body, crc FROM word WHERE thread = :thread AND number IN (SELECT label FROM"
    f" checkpoint WHERE thread = :thread) AND {INSTR}(body, :part) > 0"
)
RENAME_LABEL = (
    "UPDATE word SET body = :body, crc = :crc WHERE thread = :thread AND number = :number"
)
