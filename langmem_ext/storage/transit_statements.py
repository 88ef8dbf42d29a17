"""The SQL of threads on their way out of a database and into one: whole rows, by table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from langmem_ext.storage.statements import ITEM_COLUMNS, row_key


@dataclass(frozen=True, slots=True)
class Table:
    """A table of a thread's rows.

    Attributes:
        name: Its name.
        columns: All of its columns, the key's first.
        keys: How many of them, behind the thread's number, are its key; 0: thread and number are one column.
    """

    name: str
    columns: tuple[str, ...]
    keys: int

    def insert(self) -> str:
        """The statement that adds a row."""
        return f"INSERT INTO {self.name} ({', '.join(self.columns)}) VALUES (:{', :'.join(self.columns)})"

    def page(self) -> str:
        """The statement that reads the rows behind one, in the order of their keys."""
        key = self.columns[1 : 1 + self.keys] if self.keys else ("key",)
        where = f"({', '.join(key)}) > ({', '.join(f':{name}' for name in key)})"
        of_thread = "thread = :thread" if self.keys else "key < :high"
        return f"SELECT {', '.join(self.columns)} FROM {self.name} WHERE {of_thread} AND {where} ORDER BY {', '.join(key)} LIMIT :limit"

    def place(self, thread: int, after: tuple[Any, ...] | None) -> dict[str, Any]:
        """The parameters of `page`.

        Args:
            thread: The thread's number.
            after: The row to go on behind; None: from the first one on.
        """
        if not self.keys:
            return {"key": row_key(thread, 0) - 1 if after is None else after[0], "high": row_key(thread + 1, 0)}
        key = (-1, b"", b"")[: self.keys] if after is None else after[1 : 1 + self.keys]
        return {"thread": thread} | dict(zip(self.columns[1:], key, strict=False))


ITEM: Final = Table("item", (*ITEM_COLUMNS.split(", "), "tokens"), 0)
VALUE: Final = Table("value", ("key", "body", "crc"), 0)
NAMESPACE: Final = Table("namespace", ("thread", "number", "name", "crc"), 1)
WORD: Final = Table("word", ("thread", "number", "body", "crc"), 1)
CHECKPOINT: Final = Table("checkpoint", ("thread", "namespace", "id", "parent", "step", "label", "shape", "pattern", "body", "crc"), 2)
WRITE: Final = Table("pending_write", ("thread", "namespace", "checkpoint", "task", "shape", "body", "crc"), 3)

TABLES: Final = (NAMESPACE, WORD, ITEM, VALUE, CHECKPOINT, WRITE)
"""What is referred to stands before what refers to it."""

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
"""What a thread's own row says, but for its number, and for what counts in one database alone."""

SELECT_THREAD = f"SELECT number, {', '.join(THREAD_COLUMNS)} FROM thread WHERE id = :id AND owner IS coalesce(:owner, owner)"
SELECT_OWNER = "SELECT owner FROM thread WHERE id = :id"
INSERT_THREAD = f"INSERT INTO thread ({', '.join(THREAD_COLUMNS)}) VALUES (:{', :'.join(THREAD_COLUMNS)}) RETURNING number"
INSERT_COPY = f"INSERT INTO thread (number, {', '.join(THREAD_COLUMNS)}) VALUES (:number, :{', :'.join(THREAD_COLUMNS)})"
SELECT_IDS = "SELECT number, id FROM thread{where} ORDER BY number LIMIT :limit"
BEHIND: Final = "number > :after"
