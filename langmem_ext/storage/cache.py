"""The cache of threads in a process: an unchanged message costs a comparison, not a row.

It is current as long as the thread's row is the cached one: every write moves the row's `version`.
If the version has moved, what cannot change still holds (rows are immutable, except that an item
may get its id late), and the rest is read again. If the `generation` has moved, rows were replaced
or deleted, and the thread's cache is dropped.

An operation takes a thread's cache out, and gives it back at the end. So nobody else changes it
meanwhile, and an operation that fails does not give it back. The cache holds bytes, never the
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
"""How many messages are cached by their bytes without the id: copies from before they got it may
still come."""

HEADERS: Final = 128
"""How many headers of a thread are cached."""

VALUES: Final = 64
"""How many of the values stored last are cached."""

BODIES_BYTES: Final = 4 * 1024 * 1024
"""How many bytes of a thread's value rows are cached, where reading one costs a round trip."""

LISTS: Final = 64
"""How many lists of messages, and how many large values, of a thread are cached: its channels, and
those of its subgraphs."""

TASKS: Final = 1024
"""How many tasks with pending writes are cached."""

NOTED: Final = 1024
"""How many of the search index's notes on message ids are cached."""

MISSING: Final = 1024
"""How many ids of missing threads are cached."""

THREADS: Final = 1024
"""How many threads are cached."""

ENTRY_BYTES: Final = 200
"""About how much memory an item takes beyond its own bytes."""

TEMPLATE_BYTES: Final = 700
"""About how much memory a message of a list takes, beyond its texts, to be recognised again."""

NUMBER_BYTES: Final = 40
"""About how much memory a number in the runs of a list or a manifest takes."""

EMPTY_BYTES: Final = 3000
"""About how much memory an empty cache of a thread takes."""


@dataclass(slots=True)
class Item:
    """A message or a text known by its bytes: its number, and whether these bytes have an id."""

    number: int
    named: bool


@dataclass(slots=True, eq=False)
class KnownList:
    """A list of messages as it was last stored or read; only its `templates` ever change.

    Attributes:
        packed: The messages' exact bytes.
        runs, nameless: The reference to them (`storage.rows.checkpoint.ValueRef`).
        entry: The same reference in the form of a row.
        whole: The reference, if the entry does not have all of its runs (`storage.rows.manifest`).
        templates: What messages are recognised by and copied from (`log.message_cache`), or None.
        size: About how many bytes it holds.
    """

    packed: Sequence[Snapshot]
    runs: Runs
    nameless: Runs
    entry: Entry
    whole: ValueRef | None = None
    templates: Any = None
    size: int = 0


class ThreadCache:
    """The cache of one thread.

    Attributes:
        number: The thread's number.
        generation: The thread's generation when it was first read.
        key: The thread's id and the codec's key; None for a cache of one operation alone.
        row: The thread's row (`sql.SELECT_THREAD`) as it was last read or written; None if that is
            not known.
        thread: The same as a writer's `thread_row.ThreadRow`, if a writer has written it.
        met: Whether the process knows of the thread's life (`late_writes.LateWrites.met`).
        asked: Whether it knows since when its runs have asked for it.
        items_end, words_end: Rows below these numbers have been seen or given up; `0` at first.
        content: An item's exact bytes, by its number.
        by_content: An item, by its bytes.
        bare: An item, by its bytes without its id; only the last ones that got an id.
        read: Items that were lately read with their ids, and whose bytes without it are not known
            yet (`storage.checkpoints.messages`).
        unnamed: Items that have no id yet.
        texts: Items that are bare texts: the message that holds the text may still come.
        rows: Columns (`sql.ITEM_BODY`) of items that were stored here and may still change.
        values: Rows of the values stored last, by a digest of their bodies: a node's result is
            first a pending write and then a channel's value, and both refer to one row.
        words: Number of a word by its body; `bodies` the other way.
        namespaces: Number by name.
        headers: Lately used headers, by namespace and checkpoint id.
        lists: Lists of messages lately stored or read, by namespace and channel; their bytes are
            those of `content`.
        compounds: Large dicts and lists lately stored or read, by namespace and channel.
        manifests: Beginnings of fragmented lists lately stored or read, by namespace and channel:
            row and runs.
        passed: The item that gave the thread its title, and items that were lately found not to
            replace it.
        newest: Id and key of a namespace's newest checkpoint, None if it has none; valid as long as
            `row` is current.
        tasks: Namespace, checkpoint and id of tasks with pending writes; all of them if
            `knows_tasks`.
        noted: The search index's notes on message ids (`storage.search.indexer`), valid as long as
            `row` is current; all of them if `knows_notes`.
        size: About how many bytes it holds; `accounted` is the part that is in
            `ThreadCaches.size`.
        held: Bodies of value rows lately stored or read, where reading one costs a round trip;
            `held_bytes` is their size.
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
        self.size = EMPTY_BYTES
        self.accounted = 0
        self.held: OrderedDict[int, bytes] = OrderedDict()
        self.held_bytes = 0

    def learn_item(self, number: int, packed: Snapshot, *, named: bool) -> Item:
        """Cache an item as its row holds it; `named`: with an id."""
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
        """Update an item whose bytes changed because it got its id or became a message."""
        self.texts.discard(number)
        self.rows.pop(number, None)
        item = self.by_content.get(before)
        if item is not None and item.number == number:
            del self.by_content[before]
            self.learn_bare(before, item)

    def learn_bare(self, bare: Snapshot, item: Item) -> None:
        """Cache an item by the bytes that it had, or would have had, without its id."""
        if bare not in self.bare:
            self.size += len(bare) + ENTRY_BYTES
        self.bare[bare] = Item(item.number, named=False)
        if len(self.bare) > BARE:
            self.size -= len(self.bare.popitem(last=False)[0]) + ENTRY_BYTES

    def learn_value(self, digest: bytes, number: int) -> None:
        """Cache a value's row; the oldest one is dropped."""
        if digest not in self.values:
            self.size += ENTRY_BYTES
        self.values[digest] = number
        if len(self.values) > VALUES:
            self.values.popitem(last=False)
            self.size -= ENTRY_BYTES

    def learn_body(self, number: int, body: bytes) -> None:
        """Cache the body of a value row; the least recently used ones are dropped."""
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
        """Cache a word."""
        if number not in self.bodies:
            self.size += len(body) + ENTRY_BYTES
        self.words.setdefault(body, number)
        self.bodies[number] = body

    def learn_header(self, namespace: int, checkpoint: bytes, header: Header) -> None:
        """Cache a header; the least recently used one is dropped."""
        before = self.headers.pop((namespace, checkpoint), None)
        if before is not None:
            self.size -= before.size
        header.size = HEADER_BYTES + 8 * sum(map(len, header.entries.values()))
        self.size += header.size
        self.headers[namespace, checkpoint] = header
        if len(self.headers) > HEADERS:
            self.size -= self.headers.popitem(last=False)[1].size

    def learn_list(self, place: tuple[int, str], known: KnownList) -> None:
        """Cache a list of messages."""
        before = self.lists.pop(place, None)
        known.size = TEMPLATE_BYTES * len(known.packed) + NUMBER_BYTES * (
            len(known.runs) + len(known.nameless)
        )
        self.size += known.size - (before.size if before is not None else 0)
        self.lists[place] = known
        if len(self.lists) > LISTS:
            self.size -= self.lists.popitem(last=False)[1].size

    def learn_compound(self, place: tuple[int, str], compound: Compound) -> None:
        """Cache a compound; the least recently used one is dropped."""
        before = self.compounds.pop(place, None)
        self.size += compound.size() - (before.size() if before is not None else 0)
        self.compounds[place] = compound
        if len(self.compounds) > LISTS:
            self.size -= self.compounds.popitem(last=False)[1].size()

    def learn_manifest(self, place: tuple[int, str], row: int, runs: Runs) -> None:
        """Cache the row that holds the beginning of a fragmented list."""
        self.size += NUMBER_BYTES * (len(runs) - len(self.manifests.get(place, (0, ()))[1]))
        self.manifests[place] = row, runs
        self.manifests.move_to_end(place)
        if len(self.manifests) > LISTS:
            self.size -= NUMBER_BYTES * len(self.manifests.popitem(last=False)[1][1])

    def find_list(
        self, place: tuple[int, str], runs: Runs, nameless: Runs
    ) -> tuple[Sequence[Snapshot], KnownList] | None:
        """The bytes of a cached list, or of one that a cached list begins with.

        The list of an earlier checkpoint is usually the beginning of the cached one.
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
        """Note that a task has pending writes."""
        self.tasks[space, checkpoint, task] = None
        if len(self.tasks) > TASKS:
            del self.tasks[next(iter(self.tasks))]
            self.knows_tasks = False

    def note(self, message_id: bytes, row: Row) -> None:
        """Cache the note on a message id."""
        if message_id not in self.noted:
            self.size += len(message_id) + ENTRY_BYTES
        self.noted[message_id] = row
        self.noted.move_to_end(message_id)
        if len(self.noted) > NOTED:
            self.size -= len(self.noted.popitem(last=False)[0]) + ENTRY_BYTES
            self.knows_notes = False

    def learn_namespace(self, name: str, number: int) -> None:
        """Cache a namespace."""
        self.namespaces[name] = number
        self.size += len(name) + ENTRY_BYTES


class ThreadCaches:
    """The caches of recently used threads; bounded: the least recently used one is dropped first.

    Args:
        max_bytes: About how many bytes all of them may hold.
        compress, compress_texts: Whether writers compress bytes, and texts.
        remote: Whether reading a row costs a round trip; then a thread's number follows from its
            id.
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

        Called in a forked child: another thread may have been changing the caches.
        """
        self._lock = threading.Lock()
        self._caches: OrderedDict[tuple[str, str], ThreadCache] = OrderedDict()
        self.missing: OrderedDict[str, None] = OrderedDict()
        self.size = 0
        self.late_writes = LateWrites()

    def list_at(self, thread_id: str, codec: str, namespace: str, channel: str) -> KnownList | None:
        """The cached list of a channel in a namespace; `codec` is the codec's key."""
        cache = self._caches.get((thread_id, codec))
        return (
            None
            if cache is None
            else cache.lists.get((cache.namespaces.get(namespace, -1), channel))
        )

    def take(self, thread_id: str, codec: Codec) -> ThreadCache | None:
        """Take a thread's cache; None if there is none, or another operation has taken it.

        It is the caller's until `keep`.
        """
        with self._lock:
            cache = self._caches.pop((thread_id, codec.key), None)
            if cache is not None:
                self.size -= cache.accounted
                cache.accounted = 0
        return cache

    def of(self, thread_id: str, row: Row, codec: Codec) -> ThreadCache:
        """A thread's cache with what still holds; it is the caller's until `keep`.

        Args:
            thread_id: The thread's id.
            row: Its row, as it was just read (`sql.SELECT_THREAD`).
            codec: Reads and writes its items.
        """
        cache = self.take(thread_id, codec)
        if cache is not None and cache.row == row:
            return cache
        if cache is None or cache.number != row[0] or cache.generation != row[3] or cache.unnamed:
            cache = ThreadCache(row[0], row[3], (thread_id, codec.key), holds=self.remote)
        cache.newest.clear()
        cache.size -= sum([len(message_id) + ENTRY_BYTES for message_id in cache.noted])
        cache.noted.clear()
        cache.knows_tasks = cache.knows_notes = False
        cache.row, cache.thread = row, None
        return cache

    def borrow(self, thread_id: str, row: tuple[int, int, int], codec: Codec) -> ThreadCache:
        """A thread's cache of immutable rows, if only part of its own row was read.

        Args:
            thread_id: The thread's id.
            row: Its number, generation and version.
            codec: Reads its items.
        """
        number, generation, version = row
        cache = self.take(thread_id, codec)
        if cache is not None and cache.number == number and cache.generation == generation:
            current = cache.row is not None and cache.row[4] == version
            if current or not cache.unnamed:
                return cache
        return ThreadCache(number, generation, (thread_id, codec.key), holds=self.remote)

    def keep(self, cache: ThreadCache, *, written: bool = False) -> None:
        """Give a cache back; after a write it replaces one that was given back meanwhile."""
        key = cache.key
        if key is None:
            return
        caches = self._caches
        with self._lock:
            known = caches.pop(key, None)
            if known is not None:
                if known is not cache and not written:
                    cache = known
                self.size -= known.accounted
            caches[key] = cache
            cache.accounted = cache.size
            self.size += cache.size
            while (self.size > self._max_bytes or len(caches) > THREADS) and caches:
                self.size -= caches.popitem(last=False)[1].accounted

    def forget(self) -> None:
        """Forget everything."""
        with self._lock:
            self._caches.clear()
            self.missing.clear()
            self.size = 0

    def forget_thread(self, thread_id: str | None) -> None:
        """Forget one thread; or all, if it is not known which."""
        if thread_id is None:
            self.forget()
            return
        with self._lock:
            self.missing.pop(thread_id, None)
            for key in [key for key in self._caches if key[0] == thread_id]:
                self.size -= self._caches.pop(key).accounted

    def forget_number(self, number: int) -> None:
        """Forget the thread of a number."""
        for thread_id in [
            key[0] for key, cache in list(self._caches.items()) if cache.number == number
        ]:
            self.forget_thread(thread_id)

    def note_missing(self, thread_id: str) -> None:
        """Note that there is no such thread: making it needs no query then."""
        self.missing[thread_id] = None
        if len(self.missing) > MISSING:
            self.missing.popitem(last=False)
