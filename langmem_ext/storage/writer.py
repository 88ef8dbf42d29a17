"""What one operation adds to a thread: rows of items, values and words, numbered as they come, and written together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final

from langmem_ext.messages.packed import is_text
from langmem_ext.messages.skeleton import is_in_keeping, split_keys
from langmem_ext.messages.stored_tokens import implied_tokens
from langmem_ext.storage import checks
from langmem_ext.storage import statements as sql
from langmem_ext.storage.compression import shrink, shrink_text
from langmem_ext.storage.effects import Batch, Op, Row, fetch, fetch_one
from langmem_ext.storage.expectations import STORED
from langmem_ext.storage.header import PATTERN_BYTES, Header
from langmem_ext.storage.ids import encode_id
from langmem_ext.storage.index import Indexes, ThreadIndex
from langmem_ext.storage.item_rows import require_item
from langmem_ext.storage.thread_ops import ThreadRow
from langmem_ext.types import Codec, ItemRow, Snapshot

SPLIT_BYTES: Final = 24
"""Bytes of a message's rest from which on its keys are worth a word."""

MAX_WORDS: Final = 512
"""Words of a thread from which on patterns are no longer interned: some applications have task paths that name data."""

_BODY: Final = itemgetter("message_id", "role", "name", "text", "tool_call_id", "seconds", "rest", "shape", "crc")
"""The columns of an item beside its key (`statements.ITEM_BODY`)."""

_CHECKED: Final = itemgetter("number", "message_id", "role", "name", "text", "tool_call_id", "seconds", "rest", "shape")
"""The columns of an item that its check covers."""


class Writer:
    """The rows that one operation adds to a thread; written together by `flush`.

    Attributes:
        thread_id: The thread's id.
        indexes: What this process knows, of this thread and others.
        now, updated: When what is new was made, and when the thread is to have been written last, in Unix milliseconds.
        late: Numbers of the step's messages, by their bytes without an id (`ThreadIndex.late`): the step that the write follows, and for a
            checkpoint, the one that follows it. An input's messages stand in both: in the checkpoint, and in what its task writes.
        compress: Whether rests and values are compressed where that saves enough; texts as the indexes say.
        tool: The tool that a new message says its turn is for.
        title, titled_by: What the thread is to be called, if it has no title, and the item that says so.
        settled: Whether the new messages stand as they are: a program has set them, and no node of a graph has yet to look at them.
        final: The root's newest checkpoint, if it was stored with this and leaves its graph nothing to do (`rest`).
        by_task: Whether it is what a task has written: the checkpoint that it has read may be stored after it.
        began: The first number of a new item.
        named, completed: Items from earlier operations that have got an id, or have become a message.
    """

    tool: str | None = None
    title: str | None = None
    titled_by: int | None = None
    settled: bool = False
    final: Header | None = None
    by_task: bool = False
    added_items: int = 0
    added_tokens: int = 0

    def __init__(
        self,
        thread: ThreadRow,
        thread_id: str,
        index: ThreadIndex,
        indexes: Indexes,
        codec: Codec,
        *,
        now: int,
        late: Sequence[dict[Snapshot, int]],
        updated: int | None = None,
    ) -> None:
        self.thread = thread
        self.thread_id = thread_id
        self.index = index
        self.indexes = indexes
        self.codec = codec
        self.now = now
        self.updated = now if updated is None else updated
        self.late = late
        self.compress = indexes.compress
        self.items: list[dict[str, Any]] = []
        self.values: list[dict[str, Any]] = []
        self.words: list[dict[str, Any]] = []
        self.named: list[int] = []
        self.completed: list[int] = []
        self.began = thread.next_item

    def add_item(self, packed: Snapshot) -> int:
        """Queue a new item; its number."""
        number = self.thread.next_item
        self.thread.next_item = self.index.items_end = number + 1
        columns = self._columns(number, packed)
        sealed = _sealed(self._stored(columns) | {"seconds": self.now // 1000 - self.thread.epoch})
        self.items.append(sealed)
        self._learn(number, packed, columns["tokens"], sealed)
        return number

    def complete_item(self, number: int, packed: Snapshot) -> Op[bool]:
        """Let a bare text become the message that holds it; False if it has become another's meanwhile."""
        columns = self._columns(number, packed)
        del columns["text"]
        row = yield from self._item(number)
        if row is None or row[2] is not None or row[7] is not None:
            return False
        sealed = _sealed(self._stored(columns) | {"text": row[4], "seconds": row[6]})
        if not (yield from fetch(sql.COMPLETE_ITEM, STORED, **sealed)):
            return False
        self._learn(number, packed, columns["tokens"], sealed)
        self.completed.append(number)
        return True

    def name_item(self, number: int, packed: Snapshot, message_id: str) -> Op[bool]:
        """Let an item without an id have one, with which it is `packed`; False if it has got one meanwhile."""
        encoded = encode_id(message_id)
        row = yield from self._item(number)
        if row is None or row[1] is not None:
            return False
        check = checks.item_check(self.thread.number, (number, encoded, *row[2:]))
        if not (yield from fetch(sql.NAME_ITEM, STORED, thread=self.thread.number, number=number, message_id=encoded, crc=check)):
            return False
        self.index.learn_item(number, packed, named=True)
        if self.index.expected is not None:
            self.index.expected.learn_item(number, None)
        self.named.append(number)
        return True

    def description(self) -> dict[str, Any]:
        """What the thread's row is to say of what was written, beside its counters."""
        return {"tool": self.tool, "title": self.title, "titled_by": self.titled_by}

    def _item(self, number: int) -> Op[Row | None]:
        """An item's row, which is about to be changed: what is damaged must not get a check that says otherwise."""
        yield from self.flush()
        thread, expected = self.thread.number, self.index.expected
        body = yield from fetch_one(sql.SELECT_ITEM_BODY, expected and expected.item(number), thread=thread, number=number)
        if body is None:
            return None
        row = (number, *body)
        require_item(thread, row)
        return row

    def _learn(self, number: int, packed: Snapshot, tokens: int, sealed: Mapping[str, Any]) -> None:
        """From here on the index knows an item as its row is, and the thread counts it if it is a message."""
        if not is_text(packed):
            self.added_items += 1
            self.added_tokens += tokens
        self.index.learn_item(number, packed, named=sealed["message_id"] is not None)
        if self.index.expected is not None:
            self.index.expected.learn_item(number, _BODY(sealed) if number in self.index.unnamed else None)

    def _columns(self, number: int, packed: Snapshot) -> dict[str, Any]:
        row = self.codec.item_row(packed)
        rest, shape = self._split(row)
        self.tool = row.tool or self.tool
        return {
            "thread": self.thread.number,
            "number": number,
            "message_id": None if row.message_id is None else encode_id(row.message_id),
            "role": row.role,
            "name": row.name,
            "text": row.text,
            "tool_call_id": row.tool_call_id,
            "tokens": self._tokens_of(row, packed),
            "rest": rest,
            "shape": shape,
        }

    def _tokens_of(self, row: ItemRow, packed: Snapshot) -> int:
        # Where the row's text is all that there is, nobody need build the message for it.
        implied = implied_tokens(row.role, row.text) if row.rest is None and row.name is None else None
        return self.codec.tokens_of(packed) if implied is None else implied

    def _stored(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Columns of an item as its row holds them."""
        if self.compress:
            columns |= {"rest": columns["rest"] and shrink(columns["rest"])}
            if self.indexes.compress_texts and columns.get("text"):
                columns |= {"text": shrink_text(columns["text"])}
        return columns

    def _split(self, row: ItemRow) -> tuple[bytes | None, int | None]:
        """A message's rest as it is stored, and the word that holds its keys, if they have one."""
        if row.role is None or row.rest is None or len(row.rest) < SPLIT_BYTES:
            return row.rest, None
        keys, values = split_keys(row.rest)
        shape = self.intern_pattern(keys) if is_in_keeping(keys, values) else None
        return (row.rest, None) if shape is None else (values, shape)

    def add_value(self, body: bytes) -> int:
        """The number of a value's row, queued unless the same value was stored lately."""
        digest = blake2b(body, digest_size=16).digest()
        if digest in self.index.values:
            return self.index.values[digest]
        number = self.add_row(body)
        self.index.learn_value(digest, number)
        return number

    def add_row(self, body: bytes) -> int:
        """Queue a new value row; its number."""
        number = self.thread.next_value
        self.thread.next_value = number + 1
        stored = shrink(body) if self.compress else body
        check = checks.check_of(self.thread.number, number, stored)
        self.values.append({"thread": self.thread.number, "number": number, "body": stored, "crc": check})
        self.index.learn_body(number, body)
        return number

    def caught(self, bare: Snapshot, number: int) -> None:
        """Note the item of a message whose copies without an id may still come."""
        for step in self.late:
            self.index.learn_late(step, bare, number)

    def intern(self, body: bytes) -> int:
        """The number of a word, queued if it is new."""
        number = self.index.words.get(body)
        if number is None:
            number = self.thread.next_word
            self.thread.next_word = self.index.words_end = number + 1
            check = checks.check_of(self.thread.number, number, body)
            self.words.append({"thread": self.thread.number, "number": number, "body": body, "crc": check})
            self.index.learn_word(number, body)
        return number

    def intern_pattern(self, body: bytes) -> int | None:
        """`intern` for what repeats in most threads; None, where this thread has so many words that one more is not worth it.

        Nor is a large one: a row of a few bytes would stand for all of it (`messages.proportion`).
        """
        if len(body) > PATTERN_BYTES:
            return None
        return self.intern(body) if len(self.index.words) < MAX_WORDS or body in self.index.words else None

    def flush(self) -> Op[None]:
        """Write what is queued."""
        for statement, queue in ((sql.INSERT_ITEM, self.items), (sql.INSERT_VALUE, self.values), (sql.INSERT_WORD, self.words)):
            if queue:
                yield Batch(statement, tuple(queue))
                queue.clear()


def _sealed(columns: dict[str, Any]) -> dict[str, Any]:
    """An item's columns with their check, and without what they imply."""
    if columns["tokens"] == implied_tokens(columns["role"], columns["text"]):
        columns["tokens"] = None
    columns["crc"] = checks.item_check(columns["thread"], _CHECKED(columns))
    return columns
