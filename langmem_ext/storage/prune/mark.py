"""What a thread's remaining checkpoints need: other checkpoints, and rows.

A checkpoint needs the rows that its values and its pending writes refer to. If a channel is not
stored in it but rebuilt from what ancestors wrote, it needs those, too, back to the nearest one
that holds the channel's value. They stay whole: each is kept with all that it needs itself, so that
what is left reads as before.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from langmem_ext._internal.interruption import pass_on
from langmem_ext.errors import DamagedRow, cause, safe_text
from langmem_ext.messages.manifest import Ranges, merged, numbers_of, ranges_of
from langmem_ext.storage.cache import ThreadCache
from langmem_ext.storage.checkpoints.lookup import header_of, read_value
from langmem_ext.storage.checkpoints.put import PRECEDING
from langmem_ext.storage.checkpoints.sql import SELECT_CHECKPOINT
from langmem_ext.storage.checkpoints.writes import WriteEntry, read_writes
from langmem_ext.storage.operation import PAUSE, PAUSE_EVERY, Op, Row, fetch, fetch_one
from langmem_ext.storage.prune import sql
from langmem_ext.storage.rows.checkpoint import Header, ValueRef
from langmem_ext.storage.rows.ids import decode_id, readable
from langmem_ext.types import Codec

Place: TypeAlias = tuple[int, bytes]
"""A checkpoint: its namespace's number and its id."""

"""Half-open ranges of numbers, in order, apart from each other."""


class FrameworkFacts(Protocol):
    """What pruning must know of the framework that wrote the checkpoints."""

    waiting_channel: str
    """The channel whose value, a name, the thread's row shows."""

    interrupt_channel: str
    """The channel of the pending writes that mark a task as waiting."""

    @property
    def codec(self) -> Codec:
        """Reads items."""

    def rebuilt(self, details: bytes | None) -> Collection[str]:
        """The channels that may have to be rebuilt from ancestors' writes.

        `details` is a checkpoint's `Header.details`.
        """

    def name_in(self, body: bytes) -> str | None:
        """The text that a value is; None for any other value."""


@dataclass(frozen=True, slots=True)
class CheckpointRow:
    """What a checkpoint's row says without being decoded.

    Attributes:
        key: The key that orders the thread's checkpoints; mostly the id (`ids.key_behind`).
        parent: Id of the parent; `implied` if the row leaves it out because it is the row before.
        words: Numbers of the words that it names.
        size: About how many bytes it takes.
    """

    key: bytes
    parent: bytes | None
    implied: bool
    words: tuple[int, ...]
    size: int


@dataclass(frozen=True, slots=True)
class WriteRow:
    """One task's pending writes, the whole row (`sql.WRITE_COLUMNS`), and its size."""

    place: Place
    task: bytes
    shape: int | None
    body: bytes
    row: Row
    size: int


@dataclass(slots=True)
class Reach:
    """One thread's checkpoints, and what those that stay need.

    Attributes:
        number: The thread.
        facts: What the checkpoints mean to their framework.
        rows: All of its checkpoints, by namespace and id, in the order of their namespaces and
            keys.
        writes: All of its pending writes.
        kept: The checkpoints that stay.
        runs: The ranges of items that they need; `values`, `words` and `namespaces` likewise.
        named: The ranges of items that they need with ids.
        unnamed: The values that need some items without ids.
        cache: Reads headers and words; used for this work alone.
    """

    number: int
    facts: FrameworkFacts
    rows: dict[Place, CheckpointRow] = field(default_factory=dict)
    writes: list[WriteRow] = field(default_factory=list)
    kept: set[Place] = field(default_factory=set)
    runs: set[tuple[int, int]] = field(default_factory=set)
    named: set[tuple[int, int]] = field(default_factory=set)
    unnamed: list[ValueRef] = field(default_factory=list)
    values: set[int] = field(default_factory=set)
    words: set[int] = field(default_factory=set)
    namespaces: set[int] = field(default_factory=lambda: {0})
    cache: ThreadCache = field(init=False)
    _holding: dict[Place, frozenset[str]] = field(default_factory=dict)
    _walked: set[tuple[Place, str]] = field(default_factory=set)

    def __post_init__(self) -> None:
        # A cache of its own: what is about to be deleted must not displace what writers need.
        self.cache = ThreadCache(self.number)

    def read(self) -> Op[None]:
        """Read which checkpoints and pending writes there are."""
        before: Place | None = None
        for space, key, given_id, parent, label, shape, size in (
            yield from fetch(sql.SELECT_CHECKPOINTS, thread=self.number)
        ):
            implied = parent == PRECEDING
            if implied:
                parent = before[1] if before is not None and before[0] == space else None
            words = (label,) if shape is None else (label, shape)
            before = (space, bytes(key if given_id is None else given_id))
            self.rows[before] = CheckpointRow(bytes(key), parent, implied, words, size)
        for *row, size in (yield from fetch(sql.SELECT_WRITES, thread=self.number)):
            space, checkpoint, task, shape, body, _ = row
            self.writes.append(
                WriteRow(
                    (space, bytes(checkpoint)), bytes(task), shape, bytes(body), tuple(row), size
                )
            )

    def key_of(self, place: Place) -> bytes:
        """A checkpoint's key; if it is not stored, its id."""
        row = self.rows.get(place)
        return place[1] if row is None else row.key

    def header(self, place: Place) -> Op[Header]:
        """A checkpoint's header."""
        row = yield from fetch_one(
            SELECT_CHECKPOINT, thread=self.number, namespace=place[0], id=place[1]
        )
        if row is None:
            raise DamagedRow(
                f"checkpoint {decode_id(place[1])} of thread number {self.number} cannot be found:"
                " rebuild the file's indexes"
            )
        return (yield from header_of(self.cache, place[0], row))

    def keep(self, places: Iterable[Place]) -> Op[None]:
        """Mark checkpoints that stay, and all that they need."""
        waiting = [place for place in places if place not in self.kept]
        self.kept.update(waiting)
        count = 0
        while waiting:
            place = waiting.pop()
            header = yield from self.header(place)
            self._need_row(place, header)
            for needed in self._ancestors(place, header):
                if needed not in self.kept:
                    self.kept.add(needed)
                    waiting.append(needed)
                if needed not in self._holding:
                    self._holding[needed] = frozenset((yield from self.header(needed)).values)
            count += 1
            if count % PAUSE_EVERY == 0:
                yield PAUSE

    def _ancestors(self, place: Place, header: Header) -> Iterator[Place]:
        """The checkpoints that missing channels are rebuilt from.

        The caller reads each before it asks for the next.
        """
        self._holding[place] = frozenset(header.values)
        try:
            channels = self.facts.rebuilt(header.details)
        except Exception as error:
            pass_on(error)
            raise DamagedRow(
                f"the metadata of checkpoint {decode_id(place[1])} of thread number {self.number}"
                f" does not decode ({safe_text(error)}): open it with the serializer that wrote it,"
                " or delete the thread"
            ) from cause(error)
        for channel in channels:
            if channel not in header.versions or channel in header.values:
                continue
            at = self.parent_of(place)
            while at is not None and (at, channel) not in self._walked:
                self._walked.add((at, channel))
                yield at
                if channel in self._holding[at]:
                    break
                at = self.parent_of(at)

    def parent_of(self, place: Place) -> Place | None:
        """The checkpoint that one follows; None if it is not stored."""
        parent = self.rows[place].parent
        at = None if parent is None else (place[0], parent)
        return at if at in self.rows else None

    def _need_row(self, place: Place, header: Header) -> None:
        self.namespaces.add(place[0])
        self.words.update(self.rows[place].words)
        for ref in header.values.values():
            self._need(ref)

    def _need(self, ref: ValueRef) -> None:
        ranges = list(ranges_of(ref.runs))
        self.runs.update(ranges)
        self.values.update(ref.rows())
        if ref.nameless:
            numbers = numbers_of(ref.runs)
            bare = set(numbers_of(ref.nameless))
            self.unnamed.append(ref)
            ranges = [
                (number, number + 1)
                for position, number in enumerate(numbers)
                if position not in bare
            ]
        self.named.update(ranges)

    def without_id(self) -> Op[tuple[list[int], list[int]]]:
        """Items needed only without ids: those needed as messages, and those only as texts."""
        messages: set[int] = set()
        texts: set[int] = set()
        named = merged(self.named)
        for ref in self.unnamed:
            numbers = numbers_of(ref.runs)
            positions = numbers_of(ref.nameless)
            bare = {
                at: numbers[at]
                for at in positions
                if not any(start <= numbers[at] < end for start, end in named)
            }
            written = (yield from self._texts_in(ref)) if bare else ()
            for at, number in bare.items():
                (texts if at in written else messages).add(number)
        return sorted(messages), sorted(texts - messages)

    def _texts_in(self, ref: ValueRef) -> Op[Collection[int]]:
        """Which of a value's messages are texts in it; none if the value is damaged."""
        try:
            body = yield from read_value(self.cache, ref)
        except DamagedRow:
            return ()
        try:
            return () if body is None else self.facts.codec.texts_in(body)
        except (ValueError, TypeError):
            return ()

    def keep_writes(self, writes: Iterable[WriteRow]) -> Op[None]:
        """Mark pending writes that stay, and all that they need."""
        for count, write in enumerate(writes, start=1):
            self.namespaces.add(write.place[0])
            if write.shape is not None:
                self.words.add(write.shape)
            for entry in (yield from entries_of(self.cache, write.row)):
                self._need(entry.value)
            if count % PAUSE_EVERY == 0:
                yield PAUSE


def entries_of(cache: ThreadCache, row: Row) -> Op[list[WriteEntry]]:
    """The entries of a task's pending writes, from their row (`sql.WRITE_COLUMNS`).

    Raises:
        DamagedRow: They are not as they were written, or do not decode.
    """
    try:
        return (yield from read_writes(cache, row))
    except Exception as error:
        pass_on(error)
        raise DamagedRow(
            f"the pending writes of task {readable(row[2])} of thread number {cache.number} are"
            f" damaged ({safe_text(error)}): restore the thread from a copy, or delete it"
        ) from cause(error)


def newest_of(rows: Iterable[Place], last: int) -> Iterator[Place]:
    """The newest checkpoints of each namespace, up to `last` of each."""
    left: dict[int, int] = {}
    for place in reversed([*rows]):
        left.setdefault(place[0], last)
        if left[place[0]] > 0:
            left[place[0]] -= 1
            yield place


def gaps(ranges: Iterable[tuple[int, int]], end: int) -> Ranges:
    """The ranges of numbers from zero to `end` that `ranges`, which are merged, leave out.

    >>> gaps([(0, 3), (4, 9)], 12)
    [(3, 4), (9, 12)]
    """
    left: Ranges = []
    at = 0
    for start, stop in ranges:
        if at < start:
            left.append((at, start))
        at = stop
    if at < end:
        left.append((at, end))
    return left
