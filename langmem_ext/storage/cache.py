"""The cache of threads in a process: an unchanged message costs a comparison and not a row.

It is current as long as the thread's row is the one that is remembered: every write moves the row's
`version`. Where it has moved, what cannot change is still so (rows are immutable, but for an item
that gets its id late), and the rest is asked for again; where the `generation` has moved, rows were
replaced or deleted, and nothing is remembered.

Whoever works with what is remembered of a thread takes it out, and gives it back at the end: so
nobody else changes it meanwhile, and what has failed is not given back. It holds bytes, never the
caller's objects.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from langmem_ext.messages.manifest import Runs, begins_with, below, length_of
from langmem_ext.messages.packed import is_text
from langmem_ext.storage.checkpoints.late_writes import LateWrites
from langmem_ext.storage.operation import Row
from langmem_ext.storage.rows.checkpoint import HEADER_BYTES, Entry, Header, ValueRef
from langmem_ext.storage.rows.delta import Compound
from langmem_ext.types import Codec, Snapshot

BARE: Final = 256
"""Of how many messages it is remembered what they were without their id: copies from before they
got it may still come."""

HEADERS: Final = 128
"""How many headers of a thread are remembered."""

VALUES: Final = 64
"""How many of the values stored last are remembered."""

BODIES_BYTES: Final = 4 * 1024 * 1024
"""Bytes of value rows that are remembered of a thread, where reading one costs a trip."""

LISTS: Final = 64
"""How many lists of messages, and how many large values, of a thread are remembered: its channels,
and those of its subgraphs."""

TASKS: Final = 1024
"""Of how many tasks it is remembered that they have pending writes."""

NOTED: Final = 1024
"""Of how many message ids it is remembered what the search index has noted of them."""

MISSING: Final = 1024
"""How many threads are remembered that were not found."""

THREADS: Final = 1024
"""How many threads are remembered."""

ENTRY_BYTES: Final = 200
"""What an item costs in memory beyond its own bytes, about."""

TEMPLATE_BYTES: Final = 700
"""What a message of a list costs in memory beyond its texts, about, by which it is recognised."""

NUMBER_BYTES: Final = 40
"""What a number costs in the runs of a list or of a manifest, about."""

INDEX_BYTES: Final = 3000
"""What an index costs that holds nothing, about."""


@dataclass(slots=True)
class Item:
    """A message or a text known by its bytes: its number, and whether these bytes have an id."""

    number: int
    named: bool


@dataclass(slots=True, eq=False)
class KnownList:
    """A list of messages as it was last stored or read; only its `templates` ever change.

    Attributes:
        packed: Their exact bytes.
        runs, nameless: Where they stand (`storage.rows.checkpoint.ValueRef`).
        entry: The same as a row has it.
        whole: The reference, if the entry has not all of its runs (`storage.rows.manifest`).
        templates: What its messages are recognised by and copied from (`templates`), or None.
        size: Bytes held, about.
    """

    packed: Sequence[Snapshot]
    runs: Runs
    nameless: Runs
    entry: Entry
    whole: ValueRef | None = None
    templates: Any = None
    size: int = 0


class ThreadIndex:
    """What is known of one thread.

    Attributes:
        number: The thread's number.
        generation: The thread's generation when it was first looked at.
        key: The thread's id and the codec's key; None for an index of one operation alone.
        row: The thread's row (`sql.SELECT_THREAD`) as it was last read or written; None
            where that is not known.
        thread: The same as a writer works with it (`thread_row.ThreadRow`), if one has written it.
        met: Whether the process knows of the thread's life (`late_writes.LateWrites.met`).
        asked: Whether it knows since when its runs have asked for it.
        items_end, words_end: Rows below these numbers have been seen or given up; `0` at first.
        content: An item's exact bytes, by its number.
        by_content: An item, by its bytes.
        bare: An item, by the bytes that it had without its id; of those named last.
        read: Items lately read with their ids, of which it is not known yet what they were without
            (`storage.checkpoints.messages`).
        unnamed: Items that have no id yet.
        texts: Items that are bare texts: the message that holds the text may still come.
        rows: Columns (`sql.ITEM_BODY`) of items that may still change, of those that were
            stored here.
        values: Rows of the values stored last, by a digest of their bodies: a node's result is a
            pending write first and a channel's value then, and both refer to one row.
        words: Number of a word by its body; `bodies` the other way.
        namespaces: Number by name.
        headers: Lately used headers, by namespace and checkpoint id.
        lists: Lists of messages lately stored or read, by namespace and channel; their bytes are
            those of `content`.
        compounds: Large dicts and lists lately stored or read, by namespace and channel.
        manifests: Beginnings of fragmented lists lately stored or read, by namespace and channel:
            row and runs.
        passed: The item that gave the thread its title, and those that were looked at lately for
            one that has taken its place; none has.
        newest: Id and key of a namespace's newest checkpoint, None for one that has none; as long
            as `row` is current.
        tasks: Namespace, checkpoint and id of tasks that have pending writes; all of them as long
            as `knows_tasks`.
        noted: What the search index has noted of message ids (`storage.search.indexer`), as long as
            `row` is current; of all, if `knows_notes`.
        size: Bytes held, about; `accounted` is the part that the bound knows of.
        held: Bodies of value rows lately stored or read, where reading one costs a trip;
            `held_bytes` is what they hold.
    """

    __slots__ = (
        "accounted",
        "asked",
        "bare",
        "bodies",
        "by_content",
        "compounds",
        "content",
        "generation",
        "headers",
        "held",
        "held_bytes",
        "holds",
        "items_end",
        "key",
        "knows_notes",
        "knows_tasks",
        "lists",
        "manifests",
        "met",
        "namespaces",
        "newest",
        "noted",
        "number",
        "passed",
        "read",
        "row",
        "rows",
        "size",
        "tasks",
        "texts",
        "thread",
        "unnamed",
        "values",
        "words",
        "words_end",
    )

    def __init__(
        self,
        number: int,
        generation: int = 0,
        key: tuple[str, str] | None = None,
        *,
        holds: bool = False,
    ) -> None:
        self.number, self.generation, self.key, self.holds = number, generation, key, holds
        self.row: Row | None = None
        self.thread: Any = None
        self.met = self.asked = False
        self.items_end = self.words_end = 0
        self.content: dict[int, Snapshot] = {}
        self.by_content: dict[Snapshot, Item] = {}
        self.bare: OrderedDict[Snapshot, Item] = OrderedDict()
        self.read: deque[int] = deque(maxlen=BARE)
        self.unnamed: set[int] = set()
        self.texts: set[int] = set()
        self.rows: dict[int, Row] = {}
        self.values: OrderedDict[bytes, int] = OrderedDict()
        self.words: dict[bytes, int] = {}
        self.bodies: dict[int, bytes] = {}
        self.namespaces: dict[str, int] = {"": 0}
        self.headers: OrderedDict[tuple[int, bytes], Header] = OrderedDict()
        self.lists: OrderedDict[tuple[int, str], KnownList] = OrderedDict()
        self.compounds: OrderedDict[tuple[int, str], Compound] = OrderedDict()
        self.manifests: OrderedDict[tuple[int, str], tuple[int, Runs]] = OrderedDict()
        self.passed: tuple[int, ...] = ()
        self.newest: dict[int, tuple[bytes, bytes] | None] = {}
        self.tasks: dict[tuple[int, bytes, bytes], None] = {}
        self.knows_tasks = self.knows_notes = False
        self.noted: OrderedDict[bytes, Row] = OrderedDict()
        self.size = INDEX_BYTES
        self.accounted = 0
        self.held: OrderedDict[int, bytes] = OrderedDict()
        self.held_bytes = 0

    def learn_item(self, number: int, packed: Snapshot, *, named: bool) -> Item:
        """Remember an item as its row holds it; `named`: with an id."""
        before = self.content.get(number)
        if before is None:
            self.size += 2 * len(packed) + ENTRY_BYTES
        elif before != packed:
            self._name(number, before)
        self.content[number] = packed
        if named:
            self.unnamed.discard(number)
        else:
            self.unnamed.add(number)
            if is_text(packed):
                self.texts.add(number)
        item = self.by_content.get(packed)
        if item is None:
            item = self.by_content[packed] = Item(number, named)
        return item

    def _name(self, number: int, before: Snapshot) -> None:
        """An item's bytes have changed, because it got its id or became a message."""
        self.texts.discard(number)
        self.rows.pop(number, None)
        item = self.by_content.get(before)
        if item is not None and item.number == number:
            del self.by_content[before]
            self.learn_bare(before, item)

    def learn_bare(self, bare: Snapshot, item: Item) -> None:
        """Remember an item by the bytes that it had, or would have had, without its id."""
        if bare not in self.bare:
            self.size += len(bare) + ENTRY_BYTES
        self.bare[bare] = Item(item.number, named=False)
        if len(self.bare) > BARE:
            self.size -= len(self.bare.popitem(last=False)[0]) + ENTRY_BYTES

    def learn_value(self, digest: bytes, number: int) -> None:
        """Remember where a value stands; the one remembered longest goes."""
        if digest not in self.values:
            self.size += ENTRY_BYTES
        self.values[digest] = number
        if len(self.values) > VALUES:
            self.values.popitem(last=False)
            self.size -= ENTRY_BYTES

    def learn_body(self, number: int, body: bytes) -> None:
        """Remember the body of a value row; the ones not used longest go."""
        if not self.holds or len(body) > BODIES_BYTES:
            return
        before = self.held.pop(number, None)
        self.held[number] = body
        added = len(body) + ENTRY_BYTES - (len(before) + ENTRY_BYTES if before is not None else 0)
        while self.held_bytes + added > BODIES_BYTES + ENTRY_BYTES:
            added -= len(self.held.popitem(last=False)[1]) + ENTRY_BYTES
        self.held_bytes += added
        self.size += added

    def learn_word(self, number: int, body: bytes) -> None:
        """Remember a word."""
        if number not in self.bodies:
            self.size += len(body) + ENTRY_BYTES
        self.words.setdefault(body, number)
        self.bodies[number] = body

    def learn_header(self, namespace: int, checkpoint: bytes, header: Header) -> None:
        """Remember a header; the least lately used one goes."""
        before = self.headers.pop((namespace, checkpoint), None)
        if before is not None:
            self.size -= before.size
        header.size = HEADER_BYTES + 8 * sum(map(len, header.entries.values()))
        self.size += header.size
        self.headers[namespace, checkpoint] = header
        if len(self.headers) > HEADERS:
            self.size -= self.headers.popitem(last=False)[1].size

    def learn_list(self, place: tuple[int, str], known: KnownList) -> None:
        """Remember a list of messages."""
        before = self.lists.pop(place, None)
        known.size = TEMPLATE_BYTES * len(known.packed) + NUMBER_BYTES * (
            len(known.runs) + len(known.nameless)
        )
        self.size += known.size - (before.size if before is not None else 0)
        self.lists[place] = known
        if len(self.lists) > LISTS:
            self.size -= self.lists.popitem(last=False)[1].size

    def learn_compound(self, place: tuple[int, str], compound: Compound) -> None:
        """Remember a compound; the one not used longest goes."""
        before = self.compounds.pop(place, None)
        self.size += compound.size() - (before.size() if before is not None else 0)
        self.compounds[place] = compound
        if len(self.compounds) > LISTS:
            self.size -= self.compounds.popitem(last=False)[1].size()

    def learn_manifest(self, place: tuple[int, str], row: int, runs: Runs) -> None:
        """Remember the row that holds the beginning of a fragmented list."""
        self.size += NUMBER_BYTES * (len(runs) - len(self.manifests.get(place, (0, ()))[1]))
        self.manifests[place] = row, runs
        self.manifests.move_to_end(place)
        if len(self.manifests) > LISTS:
            self.size -= NUMBER_BYTES * len(self.manifests.popitem(last=False)[1][1])

    def find_list(
        self, place: tuple[int, str], runs: Runs, nameless: Runs
    ) -> tuple[Sequence[Snapshot], KnownList] | None:
        """The bytes of a remembered list, or of one that a remembered list begins with.

        The list of an earlier checkpoint is usually the beginning of the remembered one.
        """
        known = self.lists.get(place)
        if known is None:
            return None
        if known.runs == runs and known.nameless == nameless:
            return known.packed, known
        length = length_of(runs)
        if below(known.nameless, length) == nameless and begins_with(known.runs, runs):
            return known.packed[:length], known
        return None

    def learn_task(self, space: int, checkpoint: bytes, task: bytes) -> None:
        """Remember that a task has pending writes."""
        self.tasks[space, checkpoint, task] = None
        if len(self.tasks) > TASKS:
            del self.tasks[next(iter(self.tasks))]
            self.knows_tasks = False

    def note(self, message_id: bytes, row: Row) -> None:
        """Remember what is noted of a message id."""
        if message_id not in self.noted:
            self.size += len(message_id) + ENTRY_BYTES
        self.noted[message_id] = row
        self.noted.move_to_end(message_id)
        if len(self.noted) > NOTED:
            self.size -= len(self.noted.popitem(last=False)[0]) + ENTRY_BYTES
            self.knows_notes = False

    def learn_namespace(self, name: str, number: int) -> None:
        """Remember a namespace."""
        self.namespaces[name] = number
        self.size += len(name) + ENTRY_BYTES


class Indexes:
    """What is remembered of recently used threads; bounded, and the least recently used goes first.

    Args:
        max_bytes: What all of them may hold, about.
        compress, compress_texts: Whether those who write with them compress bytes, and texts.
        remote: Whether reading a row costs a trip; and a thread's number follows from its id.
    """

    def __init__(
        self,
        max_bytes: int,
        *,
        compress: bool = False,
        compress_texts: bool = False,
        remote: bool = False,
    ) -> None:
        self._max_bytes = max_bytes
        self.compress, self.compress_texts, self.remote = compress, compress_texts, remote
        self.start_anew()

    def start_anew(self) -> None:
        """Forget everything.

        Called in a forked child: another thread may have been changing what is remembered.
        """
        self._lock = threading.Lock()
        self._indexes: OrderedDict[tuple[str, str], ThreadIndex] = OrderedDict()
        self.missing: OrderedDict[str, None] = OrderedDict()
        self.size = 0
        self.late_writes = LateWrites()

    def list_at(self, thread_id: str, codec: str, namespace: str, channel: str) -> KnownList | None:
        """The remembered list of a channel in a namespace; `codec` is the codec's key."""
        index = self._indexes.get((thread_id, codec))
        return (
            None
            if index is None
            else index.lists.get((index.namespaces.get(namespace, -1), channel))
        )

    def take(self, thread_id: str, codec: Codec) -> ThreadIndex | None:
        """Take what is remembered of a thread; None if there is nothing, or another has taken it.

        It is the caller's until `keep`.
        """
        with self._lock:
            index = self._indexes.pop((thread_id, codec.key), None)
            if index is not None:
                self.size -= index.accounted
                index.accounted = 0
        return index

    def of(self, thread_id: str, row: Row, codec: Codec) -> ThreadIndex:
        """What is remembered of a thread and still true; it is the caller's until `keep`.

        Args:
            thread_id: The thread's id.
            row: Its row, as it was just read (`sql.SELECT_THREAD`).
            codec: Reads and writes its items.
        """
        index = self.take(thread_id, codec)
        if index is not None and index.row == row:
            return index
        if index is None or index.number != row[0] or index.generation != row[3] or index.unnamed:
            index = ThreadIndex(row[0], row[3], (thread_id, codec.key), holds=self.remote)
        index.newest.clear()
        index.size -= sum([len(message_id) + ENTRY_BYTES for message_id in index.noted])
        index.noted.clear()
        index.knows_tasks = index.knows_notes = False
        index.row, index.thread = row, None
        return index

    def borrow(self, thread_id: str, row: tuple[int, int, int], codec: Codec) -> ThreadIndex:
        """What is remembered of a thread's immutable rows, if only part of its own row was read.

        Args:
            thread_id: The thread's id.
            row: Its number, generation and version.
            codec: Reads its items.
        """
        number, generation, version = row
        index = self.take(thread_id, codec)
        if index is not None and index.number == number and index.generation == generation:
            current = index.row is not None and index.row[4] == version
            if current or not index.unnamed:
                return index
        return ThreadIndex(number, generation, (thread_id, codec.key), holds=self.remote)

    def keep(self, index: ThreadIndex, *, written: bool = False) -> None:
        """Give back what was taken; after a write it replaces what was given back meanwhile."""
        key = index.key
        if key is None:
            return
        indexes = self._indexes
        with self._lock:
            known = indexes.pop(key, None)
            if known is not None:
                if known is not index and not written:
                    index = known
                self.size -= known.accounted
            indexes[key] = index
            index.accounted = index.size
            self.size += index.size
            while (self.size > self._max_bytes or len(indexes) > THREADS) and indexes:
                self.size -= indexes.popitem(last=False)[1].accounted

    def forget(self) -> None:
        """Forget everything."""
        with self._lock:
            self._indexes.clear()
            self.missing.clear()
            self.size = 0

    def forget_thread(self, thread_id: str | None) -> None:
        """Forget one thread; or all, if it is not known which."""
        if thread_id is None:
            self.forget()
            return
        with self._lock:
            self.missing.pop(thread_id, None)
            for key in [key for key in self._indexes if key[0] == thread_id]:
                self.size -= self._indexes.pop(key).accounted

    def forget_number(self, number: int) -> None:
        """Forget the thread of a number."""
        for thread_id in [
            key[0] for key, index in list(self._indexes.items()) if index.number == number
        ]:
            self.forget_thread(thread_id)

    def note_missing(self, thread_id: str) -> None:
        """Remember that there is no such thread: who makes it need not ask."""
        self.missing[thread_id] = None
        if len(self.missing) > MISSING:
            self.missing.popitem(last=False)
