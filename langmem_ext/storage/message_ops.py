"""Operations on items: find the item of each message, store the new ones, read those that a manifest names.

Texts and ids come late. The text of an input given as a tuple or a dict is stored before there is a message, and the message that then
holds it takes its row. A message usually has no id when a node returns it and one in the checkpoint that follows, and either may arrive
first: bytes without an id that equal an unnamed item's *are* that item; bytes with an id that equal it but for the id name it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Final

from langmem_ext.errors import DamagedRow
from langmem_ext.messages.identity import is_text
from langmem_ext.messages.manifest import Runs, numbers_of, ranges_of, runs_of
from langmem_ext.messages.skeleton import split_keys
from langmem_ext.messages.tokens import implied_tokens
from langmem_ext.storage import checks
from langmem_ext.storage import statements as sql
from langmem_ext.storage.compression import shrink, shrink_text
from langmem_ext.storage.dialect import NUMBER
from langmem_ext.storage.effects import PAUSE, PAUSE_EVERY, Batch, Op, Row, fetch, fetch_one
from langmem_ext.storage.header import Header
from langmem_ext.storage.ids import encode_id
from langmem_ext.storage.index import KnownList, ThreadIndex
from langmem_ext.storage.item_rows import damaged_item, decode_item, require_item
from langmem_ext.storage.lookup_ops import read_word
from langmem_ext.storage.thread_ops import ThreadRow
from langmem_ext.types import Codec, ItemRow, Snapshot

CATCH_UP: Final = 1024
"""How many of the newest unseen rows are read before a write: what another process or an earlier run of this one stored lately. A message
that is older than these and in no list that was read is stored again, at worst."""

SPLIT_BYTES: Final = 24
"""Bytes of a message's rest from which on its keys are worth a word."""

MAX_WORDS: Final = 512
"""Words of a thread from which on patterns are no longer interned: some applications have task paths that name data."""

_CHECKED: Final = itemgetter("number", "message_id", "role", "name", "text", "tool_call_id", "seconds", "rest", "shape")
"""The columns of an item that its check covers."""


@dataclass(slots=True)
class Writer:
    """The rows that one operation adds to a thread; written together by `flush`.

    Attributes:
        late: Numbers of the step's messages, by their bytes without an id (`ThreadIndex.late`): the step that the write follows, and for a
            checkpoint, the one that follows it. An input's messages stand in both: in the checkpoint, and in what its task writes.
        compress: Whether texts, rests and values are compressed where that saves enough.
        tool: The tool that a new message says its turn is for.
        title, titled_by: What the thread is to be called, if it has no title, and the item that says so.
        settled: Whether the new messages stand as they are: a program has set them, and no node of a graph has yet to look at them.
        final: The root's newest checkpoint, if it was stored with this and leaves its graph nothing to do (`rest`).
        began: The first number of a new item.
        named, completed: Items from earlier operations that have got an id, or have become a message.
    """

    thread: ThreadRow
    index: ThreadIndex
    codec: Codec
    now: int
    late: tuple[dict[Snapshot, int], ...]
    compress: bool = False
    items: list[dict[str, Any]] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)
    words: list[dict[str, Any]] = field(default_factory=list)
    added_items: int = 0
    added_tokens: int = 0
    tool: str | None = None
    title: str | None = None
    titled_by: int | None = None
    settled: bool = False
    final: Header | None = None
    named: list[int] = field(default_factory=list)
    completed: list[int] = field(default_factory=list)
    began: int = field(init=False)

    def __post_init__(self) -> None:
        """Note where new items begin."""
        self.began = self.thread.next_item

    def add_item(self, packed: Snapshot) -> int:
        """Queue a new item; its number."""
        number = self.thread.next_item
        self.thread.next_item = self.index.items_end = number + 1
        columns = self._columns(number, packed)
        self.items.append(_sealed(self._stored(columns) | {"seconds": self.now // 1000 - self.thread.epoch}))
        self._learn(number, packed, columns["tokens"])
        return number

    def complete_item(self, number: int, packed: Snapshot) -> Op[bool]:
        """Let a bare text become the message that holds it; False if it has become another's meanwhile."""
        columns = self._columns(number, packed)
        del columns["text"]
        row = yield from self._item(number)
        if row is None or row[2] is not None or row[7] is not None:
            return False
        sealed = _sealed(self._stored(columns) | {"text": row[4], "seconds": row[6]})
        if not (yield from fetch(sql.COMPLETE_ITEM, **sealed)):
            return False
        self._learn(number, packed, columns["tokens"])
        self.completed.append(number)
        return True

    def name_item(self, number: int, packed: Snapshot, message_id: str) -> Op[bool]:
        """Let an item without an id have one, with which it is `packed`; False if it has got one meanwhile."""
        encoded = encode_id(message_id)
        row = yield from self._item(number)
        if row is None or row[1] is not None:
            return False
        check = checks.item_check(self.thread.number, (number, encoded, *row[2:]))
        if not (yield from fetch(sql.NAME_ITEM, thread=self.thread.number, number=number, message_id=encoded, crc=check)):
            return False
        self.index.learn_item(number, packed, message_id)
        self.named.append(number)
        return True

    def description(self) -> dict[str, Any]:
        """What the thread's row is to say of what was written, beside its counters."""
        return {"tool": self.tool, "title": self.title, "titled_by": self.titled_by}

    def _item(self, number: int) -> Op[Row | None]:
        """An item's row, which is about to be changed: what is damaged must not get a check that says otherwise."""
        yield from self.flush()
        row = yield from fetch_one(sql.SELECT_ITEM, thread=self.thread.number, number=number)
        if row is not None:
            require_item(self.thread.number, row)
        return row

    def _learn(self, number: int, packed: Snapshot, tokens: int) -> None:
        """From here on the index knows an item as its row is, and the thread counts it if it is a message."""
        if not is_text(packed):
            self.added_items += 1
            self.added_tokens += tokens
        self.index.learn_item(number, packed, self.codec.id_of(packed))

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
            "tokens": self.codec.tokens_of(packed),
            "rest": rest,
            "shape": shape,
        }

    def _stored(self, columns: dict[str, Any]) -> dict[str, Any]:
        """Columns of an item as its row holds them."""
        if self.compress:
            columns |= {"rest": columns["rest"] and shrink(columns["rest"])}
            if columns.get("text"):
                columns |= {"text": shrink_text(columns["text"])}
        return columns

    def _split(self, row: ItemRow) -> tuple[bytes | None, int | None]:
        """A message's rest as it is stored, and the word that holds its keys, if they have one."""
        if row.role is None or row.rest is None or len(row.rest) < SPLIT_BYTES:
            return row.rest, None
        keys, values = split_keys(row.rest)
        shape = self.intern_pattern(keys)
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
        """`intern` for what repeats in most threads; None, where this thread has so many words that one more is not worth it."""
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


def catch_up(index: ThreadIndex, thread: ThreadRow, codec: Codec) -> Op[None]:
    """Read the newest rows that this process has not seen. A damaged one is passed over, and named where it is needed."""
    if index.items_end < thread.next_item:
        first = max(index.items_end, thread.next_item - CATCH_UP)
        yield from load_items(index, codec, first, thread.next_item, damaged=True)
        index.items_end = thread.next_item
    if index.words_end < thread.next_word:
        first = max(index.words_end, thread.next_word - CATCH_UP)
        for number, body, check in (yield from fetch(sql.SELECT_WORDS_FROM, thread=thread.number, first=first)):
            if isinstance(body, bytes) and check == checks.check_of(thread.number, number, body):
                index.learn_word(number, body)
        index.words_end = thread.next_word


def load_items(index: ThreadIndex, codec: Codec, first: int, end: int, *, damaged: bool = False) -> Op[None]:
    """Read a range of items into the index.

    Args:
        index: The thread's.
        codec: Makes messages of rows.
        first: Its first number.
        end: The number behind its last.
        damaged: Whether to pass over damaged rows.

    Raises:
        DamagedRow: A row is damaged, and must not be.
    """
    thread = index.number
    rows = yield from fetch(sql.SELECT_ITEMS, thread=thread, low=first, high=end)
    words = index.bodies
    changed = checks.changed_items(rows, thread)
    for count, row in enumerate(rows, start=1):
        shape = row[8]
        try:
            if row[0] in changed:
                raise damaged_item(thread, row, checks.CHANGED)
            keys = None if shape is None else words.get(shape) or (yield from read_word(index, shape))
            packed, message_id = decode_item(thread, row, keys, codec)
        except DamagedRow:
            if not damaged:
                raise
            continue
        index.learn_item(row[0] & NUMBER, packed, message_id)
        if count % PAUSE_EVERY == 0:
            yield PAUSE


def resolve(writer: Writer, packed: Sequence[Snapshot], known: KnownList | None = None) -> Op[tuple[Runs, tuple[int, ...]]]:
    """The item of each message, stored where there is none yet.

    Args:
        writer: Where new items go.
        packed: The messages' exact bytes.
        known: The list as it last stood, if it is one: what it begins with needs no look.

    Returns:
        The runs of items, and the positions of messages that have no id.
    """
    runs: Runs = ()
    nameless: tuple[int, ...] = ()
    start = 0
    if known is not None and len(known.packed) <= len(packed) and packed[: len(known.packed)] == known.packed:
        runs, nameless, start = known.runs, known.nameless, len(known.packed)
    numbers = []
    bare = list(nameless)
    by_content = writer.index.by_content
    for position in range(start, len(packed)):
        number = by_content.get(packed[position])
        if number is None:
            number = yield from _admit(writer, packed[position])
        if number < 0:
            number = ~number
            bare.append(position)
        numbers.append(number)
    return runs_of(numbers, runs), tuple(bare)


def _admit(writer: Writer, packed: Snapshot) -> Op[int]:
    """The item of a message that is not known to the byte: an unnamed one that gets its id, a named one met without it, or a new one.

    Returns `~number` for a message without an id.
    """
    index, codec = writer.index, writer.codec
    message_id = codec.id_of(packed)
    for step in writer.late:
        if packed in step:
            return ~step[packed]
    completed = (yield from _complete(writer, packed)) if index.texts and not is_text(packed) else None
    if completed is not None:
        return completed if message_id is not None else ~completed
    if message_id is None:
        return ~writer.add_item(packed)
    bare = codec.renamed(packed, None)
    tried = None
    while (unnamed := index.by_content.get(bare)) not in (None, tried) and ~unnamed in index.unnamed:
        if (yield from writer.name_item(~unnamed, packed, message_id)):
            writer.caught(bare, ~unnamed)
            return ~unnamed
        # Another process gave it an id meanwhile: this one, or another; then the next that is equal may be it.
        yield from load_items(index, codec, ~unnamed, ~unnamed + 1)
        if packed in index.by_content:
            return index.by_content[packed]
        tried = unnamed
    number = writer.add_item(packed)
    writer.caught(bare, number)
    return number


def _complete(writer: Writer, packed: Snapshot) -> Op[int | None]:
    """The bare text that becomes this message, if there is one."""
    index = writer.index
    text = writer.codec.text_key(packed)
    tried = None
    while text is not None and (known := index.by_content.get(text)) not in (None, tried) and ~known in index.texts:
        number = ~known
        if (yield from writer.complete_item(number, packed)):
            writer.caught(text, number)
            if number not in index.unnamed:
                writer.caught(writer.codec.renamed(packed, None), number)
            return number
        # Another process let it become a message meanwhile: this one, or another; then the next that is equal may be it.
        yield from load_items(index, writer.codec, number, number + 1)
        if packed in index.by_content:
            found = index.by_content[packed]
            return found if found >= 0 else ~found
        tried = known
    return None


def read_messages(index: ThreadIndex, codec: Codec, runs: Runs, nameless: tuple[int, ...]) -> Op[list[Snapshot]]:
    """The exact bytes of the messages that a manifest names, in its order.

    Raises:
        DamagedRow: An item is missing or does not decode.
    """
    content = index.content
    for first, end in ranges_of(runs):
        if end - first > CATCH_UP and end - 1 not in content:
            # Before its numbers are written out: a forged run may name more than memory holds.
            yield from load_items(index, codec, end - 1, end)
            if end - 1 not in content:
                raise _missing(index, end - 1)
        missing = [number for number in range(first, end) if number not in content]
        if missing:
            yield from load_items(index, codec, missing[0], missing[-1] + 1)
    numbers = numbers_of(runs)
    if not index.unnamed.isdisjoint(numbers):
        yield from _reload_named(index, codec, numbers, set(nameless))
    try:
        packed = [content[number] for number in numbers]
    except KeyError as error:
        raise _missing(index, error.args[0]) from None
    for position in nameless:
        if numbers[position] not in index.unnamed:
            packed[position] = codec.renamed(packed[position], None)
    return packed


def _missing(index: ThreadIndex, number: int) -> DamagedRow:
    return DamagedRow(f"message {number} of thread number {index.number} is missing: restore the thread from a copy, or delete it")


def _reload_named(index: ThreadIndex, codec: Codec, numbers: list[int], nameless: set[int]) -> Op[None]:
    """Read again what another process may have changed.

    That is what has no id here although the reference was made to a message that has one, and what is a bare text here.
    """
    for position, number in enumerate(numbers):
        if number in index.unnamed and (position not in nameless or number in index.texts):
            yield from load_items(index, codec, number, number + 1)
