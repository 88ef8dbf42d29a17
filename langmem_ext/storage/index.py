"""What this process knows of a thread's rows, so that an unchanged message costs a comparison and not a row.

Rows are immutable (but for an item that gets its id late), so what is known never becomes wrong: it can only be incomplete. An index is
changed inside operations only; when one fails, every index is forgotten before anything else runs. It holds bytes, never the caller's
objects.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from langmem_ext.messages.manifest import Runs, begins_with, below, length_of, numbers_of
from langmem_ext.messages.packed import is_text
from langmem_ext.storage.claims import Claims
from langmem_ext.storage.compounds import Compound
from langmem_ext.storage.effects import Row
from langmem_ext.storage.expectations import Expectations, MissingThreads
from langmem_ext.storage.header import Header, size_of
from langmem_ext.storage.late_writes import LateWrites
from langmem_ext.types import Codec, Snapshot

T = TypeVar("T")

STEPS: Final = 8
"""For how many of the newest steps a copy without an id is still recognised that was taken before its message got one, and came late."""

HEADERS: Final = 128
"""How many headers of a thread are remembered."""

VALUES: Final = 64
"""How many of the values stored last are remembered."""

BODIES_BYTES: Final = 4 * 1024 * 1024
"""Bytes of value rows that are remembered of a thread, where reading one costs a trip."""

LISTS: Final = 64
"""How many lists of messages, and how many large values, of a thread are remembered: its channels, and those of its subgraphs."""

THREADS: Final = 1024
"""How many threads are remembered."""

ENTRY_BYTES: Final = 200
"""What an item costs in memory beyond its own bytes, about."""

NUMBER_BYTES: Final = 40
"""What a number costs in the runs of a list or of a manifest, about."""

POINTER_BYTES: Final = 8
"""What a message costs in a list, and in the runs of a header a number, which those of a list or of another header hold too."""

INDEX_BYTES: Final = 3000
"""What an index costs that holds nothing, about."""


@dataclass(slots=True)
class KnownList:
    """A list of messages as it stood when it was last stored or read: how an appended list is recognised in one comparison."""

    packed: list[Snapshot]
    runs: Runs
    nameless: Runs
    size: int


@dataclass(slots=True)
class ThreadIndex:
    """What is known of one thread.

    Attributes:
        number: The thread's number.
        generation: The thread's generation when it was first looked at.
        items_end, words_end: Rows below these numbers have been seen or given up; `0` at first.
        content: An item's exact bytes, by its number.
        by_content: An item's number, by its bytes; `~number` for bytes that have no id.
        doubles: Items whose bytes `by_content` gives for an earlier item, by these bytes: there may be several without an id.
        unnamed: Items that have no id yet.
        texts: Items that are bare texts: the message that holds the text may still come.
        late: For each of the newest steps, by the checkpoint that it followed: its messages' numbers, by their bytes without an id. A
            write for that checkpoint whose bytes are among them is the same message, caught earlier and stored later. An equal text in
            another step is another message: people say "yes" more than once.
        values: Rows of the values stored last, by a digest of their bodies: a node's result is a pending write first and a channel's
            value then, and both refer to one row.
        words: Number of a word by its body; `bodies` the other way.
        namespaces: Number by name.
        headers: Lately used headers, by namespace and checkpoint id.
        lists: Lists of messages lately stored or read, by namespace and channel; their bytes are those of `content`.
        compounds: Large dicts and lists lately stored or read, by namespace and channel.
        manifests: Beginnings of fragmented lists lately stored or read, by namespace and channel: row and runs.
        passed: The item that gave the thread its title, and those that were looked at lately for one that has taken its place; none has.
        size: Bytes held, about; `accounted` is the part that the bound knows of.
        forgotten: Whether whoever still works with the index is the last to do so.
        expected: What is expected of those of its rows that change; None where nobody asks for it.
        held: Bodies of value rows lately stored or read, where there are expectations; `held_bytes` is what they hold.
    """

    number: int
    generation: int = 0
    items_end: int = 0
    words_end: int = 0
    content: dict[int, Snapshot] = field(default_factory=dict)
    by_content: dict[Snapshot, int] = field(default_factory=dict)
    doubles: dict[Snapshot, list[int]] = field(default_factory=dict)
    unnamed: set[int] = field(default_factory=set)
    texts: set[int] = field(default_factory=set)
    late: OrderedDict[bytes, dict[Snapshot, int]] = field(default_factory=OrderedDict)
    values: OrderedDict[bytes, int] = field(default_factory=OrderedDict)
    words: dict[bytes, int] = field(default_factory=dict)
    bodies: dict[int, bytes] = field(default_factory=dict)
    namespaces: dict[str, int] = field(default_factory=lambda: {"": 0})
    headers: OrderedDict[tuple[int, bytes], Header] = field(default_factory=OrderedDict)
    lists: OrderedDict[tuple[int, str], KnownList] = field(default_factory=OrderedDict)
    compounds: OrderedDict[tuple[int, str], Compound] = field(default_factory=OrderedDict)
    manifests: OrderedDict[tuple[int, str], tuple[int, Runs]] = field(default_factory=OrderedDict)
    passed: tuple[int, ...] = ()
    size: int = INDEX_BYTES
    accounted: int = 0
    forgotten: bool = False
    expected: Expectations | None = None
    held: OrderedDict[int, bytes] = field(default_factory=OrderedDict)
    held_bytes: int = 0

    def learn_item(self, number: int, packed: Snapshot, *, named: bool) -> None:
        """Remember an item as its row holds it; `named`: with an id."""
        known = self.content.get(number)
        if known is None:
            self.size += len(packed) + ENTRY_BYTES
        elif known != packed and self.by_content.get(known) in (number, ~number):
            self._give_way(known)
        self.content[number] = packed
        if is_text(packed):
            self.texts.add(number)
        else:
            self.texts.discard(number)
        if named:
            self.unnamed.discard(number)
            found = self.by_content.setdefault(packed, number)
        else:
            self.unnamed.add(number)
            found = self.by_content.setdefault(packed, ~number)
        if found not in (number, ~number):
            self.doubles.setdefault(packed, []).append(number)
            self.size += ENTRY_BYTES

    def _give_way(self, bytes_before: Snapshot) -> None:
        """The item that these bytes give is another now: from here on they give the next one that has them, if there is one."""
        del self.by_content[bytes_before]
        for number in self.doubles.pop(bytes_before, ()):
            if self.content[number] == bytes_before:
                found = self.by_content.setdefault(bytes_before, ~number if number in self.unnamed else number)
                if found not in (number, ~number):
                    self.doubles.setdefault(bytes_before, []).append(number)

    def late_of(self, checkpoint: bytes) -> dict[Snapshot, int]:
        """The messages of the step that followed a checkpoint, by their bytes without an id; to look in and to add to."""
        late = self.late.setdefault(checkpoint, {})
        self.late.move_to_end(checkpoint)
        if len(self.late) > STEPS:
            dropped = self.late.popitem(last=False)[1]
            self.size -= sum(map(len, dropped)) + ENTRY_BYTES * len(dropped)
        return late

    def learn_late(self, late: dict[Snapshot, int], bare: Snapshot, number: int) -> None:
        """Remember, in what `late_of` gave, a message by its bytes without an id."""
        if bare not in late:
            self.size += len(bare) + ENTRY_BYTES
        late[bare] = number

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
        if self.expected is None or len(body) > BODIES_BYTES:
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
        before = self.headers.get((namespace, checkpoint))
        self.size += size_of(header) - (size_of(before) if before is not None else 0)
        self.headers[namespace, checkpoint] = header
        self.headers.move_to_end((namespace, checkpoint))
        if len(self.headers) > HEADERS:
            self.size -= size_of(self.headers.popitem(last=False)[1])

    def learn_list(self, place: tuple[int, str], packed: Sequence[Snapshot], runs: Runs, nameless: Runs) -> list[Snapshot]:
        """Remember a list of messages; its bytes, held once with the items'."""
        before = self.lists.get(place)
        kept = before.packed if before is not None and before.packed == packed[: len(before.packed)] else []
        numbers = numbers_of(runs)
        own = kept + [self.content.get(number, message) for number, message in zip(numbers[len(kept) :], packed[len(kept) :], strict=True)]
        bare = numbers_of(nameless)
        for position in bare:
            own[position] = packed[position]
        # The bytes are the items', but for those of messages that had no id yet.
        size = POINTER_BYTES * len(own) + NUMBER_BYTES * (len(runs) + 2 * len(bare)) + sum([len(packed[at]) for at in bare])
        self.size += size - (before.size if before is not None else 0)
        self.lists[place] = KnownList(own, runs, nameless, size)
        self.lists.move_to_end(place)
        if len(self.lists) > LISTS:
            self.size -= self.lists.popitem(last=False)[1].size
        return own

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

    def find_list(self, place: tuple[int, str], runs: Runs, nameless: Runs) -> list[Snapshot] | None:
        """The bytes of a list that is remembered, or of one that a remembered one begins with, as an earlier checkpoint's does."""
        known = self.lists.get(place)
        if known is None:
            return None
        if known.runs == runs and known.nameless == nameless:
            return known.packed
        length = length_of(runs)
        return known.packed[:length] if below(known.nameless, length) == nameless and begins_with(known.runs, runs) else None

    def learn_namespace(self, name: str, number: int) -> None:
        """Remember a namespace."""
        self.namespaces[name] = number
        self.size += len(name) + ENTRY_BYTES


class Indexes:
    """The indexes of the threads lately used, bounded in number and in bytes; the least lately used goes first.

    A runner that has several operations on their way gives each a token (`claimed`): what one works with is no other's until it has ended.

    Args:
        max_bytes: What all of them may hold, about.
        compress, compress_texts: Whether those who write with them compress bytes, and texts.
        speculates: Whether it is worth remembering what is expected of rows (`Statement.expected`).
    """

    def __init__(self, max_bytes: int, *, compress: bool = False, compress_texts: bool = False, speculates: bool = False) -> None:
        self._max_bytes = max_bytes
        self.compress, self.compress_texts, self.speculates = compress, compress_texts, speculates
        self._on_drop: list[Callable[[str], None]] = []
        self.start_anew()

    def start_anew(self) -> None:
        """Know nothing. In a forked child: what was being learnt was learnt by half, and is claimed by who is not there."""
        self._indexes: OrderedDict[tuple[int, str], ThreadIndex] = OrderedDict()
        self._expected: OrderedDict[int, Expectations] = OrderedDict()
        self._numbers: dict[str, int] = {}
        self.missing = MissingThreads()  # what is expected of those that there are not yet
        self.size = 0
        self._claims = Claims()
        self.late_writes = LateWrites()

    def on_drop(self, forget: Callable[[str], None]) -> None:
        """Have `forget` called with the id of every thread that is deleted."""
        self._on_drop.append(forget)

    def drop_thread(self, thread: int, thread_id: str) -> None:
        """Forget a deleted thread, here and wherever else something of it is remembered."""
        self.forget_thread(thread)
        for forget in self._on_drop:
            forget(thread_id)

    def of(self, thread: int, generation: int, codec: Codec) -> ThreadIndex:
        """The index of a thread, empty at first, and again when rows that it may know were replaced or deleted.

        While another operation works with it, an empty one is given that is kept nowhere.
        """
        if not self._claims.claim(thread):
            return ThreadIndex(thread, generation, forgotten=True)
        key = (thread, codec.key)
        index = self._indexes.get(key)
        if index is None or index.generation != generation:
            self._drop(key)
            index = self._indexes[key] = ThreadIndex(thread, generation)
        self._indexes.move_to_end(key)
        if self.speculates:
            index.expected = self._expected.get(thread)
            if index.expected is not None and index.expected.generation != generation:
                index.expected.reset(generation)
        return index

    def account(self, index: ThreadIndex) -> None:
        """Note what an operation has added to an index, and forget what is over the bounds."""
        if index.forgotten:
            return  # while the operation was at work with it
        self.size += index.size - index.accounted
        index.accounted = index.size
        if (expected := index.expected) is not None and not expected.forgotten:
            self.size += expected.size - expected.accounted
            expected.accounted = expected.size
        while self._indexes and (self.size > self._max_bytes or len(self._indexes) > THREADS):
            self._drop(key := next(iter(self._indexes)))
            self._forget_expected(key[0])

    def forget(self) -> None:
        """Forget everything."""
        with self._claims.lock:
            for key in list(self._indexes):
                self._drop(key)
            self.forget_expected()

    def forget_thread(self, thread: int) -> None:
        """Forget one thread."""
        for key in [key for key in self._indexes if key[0] == thread]:
            self._drop(key)
        self._forget_expected(thread)

    def _drop(self, key: tuple[int, str]) -> None:
        index = self._indexes.pop(key, None)
        if index is not None:
            self.size -= index.accounted
            index.forgotten = True

    # -- expectations --------------------------------------------------------------------------------------------------------------------

    def row_of(self, thread_id: str) -> Row | None:
        """A thread's own row as it was last read or written here (`statements.SELECT_THREAD`); None where that is not known."""
        thread = self._numbers.get(thread_id)
        return self._expected[thread].row if thread is not None and self._claims.claim(thread) else None

    def keep_row(self, thread_id: str, row: Row, *, new: bool = False) -> None:
        """Remember a thread's own row as it is now; `new`: it has just been made, and has no checkpoint."""
        self.missing.discard(thread_id)
        if not self.speculates or not self._claims.claim(row[0]):
            return
        number, _, _, generation, *_ = row
        expected = self._expected.get(number)
        if expected is None:
            expected = self._expected[number] = Expectations(thread_id, number, generation, row)
            self._numbers[thread_id] = number
            if len(self._expected) > THREADS:
                self._forget_expected(next(iter(self._expected)))
        expected.row = row
        self._expected.move_to_end(number)
        if new:
            expected.learn_newest(0, None)

    def forget_expected(self, thread_id: str | None = None) -> None:
        """Expect nothing of a thread any more, or of any: an operation that keeps no expectations has changed its rows."""
        with self._claims.lock:
            for name in list(self._numbers) if thread_id is None else [thread_id]:
                self._forget_expected(self._numbers.get(name))

    def _forget_expected(self, thread: int | None) -> None:
        if thread is not None and (expected := self._expected.pop(thread, None)) is not None:
            del self._numbers[expected.id]
            self.size -= expected.accounted
            expected.forgotten = True

    # -- claims --------------------------------------------------------------------------------------------------------------------------

    def claiming(self, token: object, step: Callable[..., T], *args: Any) -> T:
        """Take a step of an operation: what it asks for is that of this token. Nobody else gets in meanwhile."""
        return self._claims.claiming(token, step, *args)

    def release(self, token: object) -> None:
        """Let others have what an operation has worked with: it has ended, and what it did stands."""
        with self._claims.lock:
            for thread in self._claims.release(token):
                self._forget_expected(thread)  # others have worked on it without what is known here, and may have written

    def forget_claimed(self, token: object) -> None:
        """Forget all that an operation has worked with, and keep it claimed: what the operation did has come to nothing."""
        with self._claims.lock:
            for thread in self._claims.of(token):
                self.forget_thread(thread)
