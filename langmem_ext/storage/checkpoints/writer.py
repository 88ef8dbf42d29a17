"""What one operation changes in a thread, written together."""

from __future__ import annotations

from hashlib import blake2b
from typing import Final
from zlib import crc32

from langmem_ext.messages.packed import is_text, pack
from langmem_ext.messages.token_costs.stored_tokens import implied_tokens
from langmem_ext.storage.cache import Item, ThreadCache, ThreadCaches
from langmem_ext.storage.checkpoints import sql
from langmem_ext.storage.checkpoints.thread_row import ThreadRow
from langmem_ext.storage.operation import ANY, ONE, Change, Op, Row, Stale, fetch_one
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.rows.checkpoint import PATTERN_BYTES, Header
from langmem_ext.storage.rows.compression import shrink, shrink_text
from langmem_ext.storage.rows.ids import encode_id
from langmem_ext.storage.rows.message import require_item
from langmem_ext.storage.rows.skeleton import is_in_keeping, split_keys
from langmem_ext.types import Codec, ItemRow, Snapshot

SPLIT_BYTES: Final = 24
"""From so many bytes of a message's rest on, its keys are worth a word."""

MAX_WORDS: Final = 512
"""From so many words of a thread on, patterns are no longer interned: some applications have task
paths that name data."""


class Writer:
    """What one operation changes in a thread; written together (`put.close_writer`).

    Attributes:
        thread: The thread's row as it will be written.
        cache: The thread's cache.
        caches: The caches of this process.
        codec: Reads and writes items.
        now, updated: When the new rows were made, and when the thread was last written, in Unix
        milliseconds.
        warm: Whether all that is known of the thread is from the cache, and nothing was read.
        tool: The tool that a new message says its turn is for.
        title, titled_by: The thread's title, if it has none yet, and the item that it comes from.
        settled: Whether the new messages are final: a program has set them, and no node of a graph
            will look at them.
        final: The root's newest checkpoint, if this operation stores it and it leaves its graph no
            work (`pending_work`).
        by_task: Whether these are a task's writes: the checkpoint that the task has read may be
            stored after them.
        began: The first number of a new item.
        named, completed: Items from earlier operations that have got an id, or have become a
        message.
        changes: What is to be written, in order.
    """

    tool: str | None = None
    title: str | None = None
    titled_by: int | None = None
    settled: bool = False
    final: Header | None = None
    by_task: bool = False
    added_items: int = 0
    added_tokens: int = 0
    named: tuple[int, ...] = ()
    completed: tuple[int, ...] = ()

    def __init__(
        self,
        thread: ThreadRow,
        cache: ThreadCache,
        caches: ThreadCaches,
        codec: Codec,
        now: int,
        updated: int,
        warm: bool,
    ) -> None:
        self.thread, self.cache, self.caches, self.codec = thread, cache, caches, codec
        self.now, self.updated, self.warm = now, updated, warm
        self.began = thread.next_item
        self.changes: list[Change] = []

    # -- items -------------------------------------------------------------------------------------

    def add_item(self, packed: Snapshot, row: ItemRow) -> Item:
        """Queue a new item."""
        number = self.thread.next_item
        self.thread.next_item = number + 1
        columns, tokens, check, item = self._fill(number, packed, row)
        values = (self.thread.number, number, *columns, tokens, check)
        self.changes.append((sql.INSERT_ITEM, values, ANY))
        return item

    def complete_item(self, number: int, packed: Snapshot, row: ItemRow) -> Op[None]:
        """Turn a bare text into the message that holds it."""
        before = yield from self._item(number)
        if before[1] is not None or before[6] is not None:
            raise Stale
        columns, tokens, check, _ = self._fill(number, packed, row, before)
        id_to_call = (columns[0], columns[1], columns[2], columns[4])
        values = (self.thread.number, number, *id_to_call, *columns[6:], tokens, check)
        self.changes.append((sql.COMPLETE_ITEM, values, ONE))
        self.completed += (number,)

    def name_item(self, number: int, packed: Snapshot, message_id: str) -> Op[None]:
        """Give an item its id; `packed` is the item with the id."""
        before = yield from self._item(number)
        if before[0] is not None:
            raise Stale
        encoded = encode_id(message_id)
        check = checks.item_check(self.thread.number, (number, encoded, *before[1:8]))
        self.changes.append((sql.NAME_ITEM, (self.thread.number, number, encoded, check), ONE))
        self.cache.learn_item(number, packed, named=True)
        self.named += (number,)

    def _item(self, number: int) -> Op[Row]:
        """The columns of an item that is to change.

        A damaged one is refused: it would get a checksum that matches.
        """
        row = self.cache.rows.get(number)
        if row is None:
            row = yield from fetch_one(
                sql.SELECT_ITEM_BODY, thread=self.thread.number, number=number
            )
            if row is None:
                raise Stale
            require_item(self.thread.number, (number, *row))
        return row

    def _fill(
        self, number: int, packed: Snapshot, row: ItemRow, before: Row | None = None
    ) -> tuple[Row, int | None, int, Item]:
        """An item's columns from id to shape, its tokens unless implied, its checksum, its `Item`.

        From here on the cache knows the item, and the thread counts it if it is a message.

        Args:
            number: The item.
            packed: Its exact bytes.
            row: What it is to hold.
            before: Its columns, if it has a row already: its text and its time stay.
        """
        rest, shape = row.rest, None
        text: str | bytes | None = row.text
        if rest is not None and row.role is not None and len(rest) >= SPLIT_BYTES:
            keys, values = split_keys(rest)
            shape = self.intern(keys, pattern=True) if is_in_keeping(keys, values) else None
            rest = rest if shape is None else values
        self.tool = row.tool or self.tool
        if self.caches.compress:
            rest = rest and shrink(rest)
            text = shrink_text(row.text) if row.text and self.caches.compress_texts else text
        implied = implied_tokens(row.role, row.text)
        tokens = implied if row.tokens is None else row.tokens
        raw = None if row.message_id is None else encode_id(row.message_id)
        seconds = self.now // 1000 - self.thread.epoch
        if before is not None:
            text, seconds = before[3], before[5]
        columns = (raw, row.role, row.name, text, row.tool_call_id, seconds, rest, shape)
        item = self.cache.learn_item(number, packed, named=raw is not None)
        if raw is None:
            self.cache.rows[number] = columns
        else:
            self.cache.learn_bare(row.bare, item)
        if row.role is not None or not is_text(packed):
            self.added_items += 1
            self.added_tokens += tokens or 0
        # `checks.item_check` of a row that is not stored yet.
        check = (crc32(pack(columns), number) + self.thread.number & checks.ALL) - checks.HALF
        return (
            columns,
            None if tokens == implied and type(text) is not bytes else tokens,
            check,
            item,
        )

    # -- values and words --------------------------------------------------------------------------

    def add_value(self, body: bytes) -> int:
        """The number of a value's row, queued unless the same value was stored lately."""
        digest = blake2b(body, digest_size=16).digest()
        if digest in self.cache.values:
            return self.cache.values[digest]
        number = self.add_row(body)
        self.cache.learn_value(digest, number)
        return number

    def add_row(self, body: bytes) -> int:
        """Queue a new value row; its number."""
        number = self.thread.next_value
        self.thread.next_value = number + 1
        stored = shrink(body) if self.caches.compress else body
        check = checks.check_of(self.thread.number, number, stored)
        self.changes.append((sql.INSERT_VALUE, (self.thread.number, number, stored, check), ANY))
        self.cache.learn_body(number, body)
        return number

    def intern(self, body: bytes, *, pattern: bool = False) -> int | None:
        """The number of a word, queued if it is new.

        Args:
            body: The word.
            pattern: Whether it can be stored in its row instead. Then the result is None if the
                thread has too many words already, or if the word is large: a row of a few bytes
                would stand for all of it (`messages.size_limits`).
        """
        cache = self.cache
        number = cache.words.get(body)
        if number is not None:
            return number
        if pattern and (len(body) > PATTERN_BYTES or len(cache.words) >= MAX_WORDS):
            return None
        number = self.thread.next_word
        self.thread.next_word = number + 1
        check = checks.check_of(self.thread.number, number, body)
        self.changes.append((sql.INSERT_WORD, (self.thread.number, number, body, check), ANY))
        cache.learn_word(number, body)
        return number

    def flush(self) -> Op[None]:
        """Write what is queued, before the guard, so that it can be read again."""
        changes, self.changes = self.changes, []
        yield changes
