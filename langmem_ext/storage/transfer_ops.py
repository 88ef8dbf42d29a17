"""Operations that store what is moved in: many checkpoints in one transaction, and what of them is there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from langmem_ext.storage import checks, statements
from langmem_ext.storage import transfer_statements as sql
from langmem_ext.storage.checkpoint_ops import damaged_checkpoint, key_of, put_checkpoint
from langmem_ext.storage.clock import is_storable
from langmem_ext.storage.effects import (
    PAUSE,
    Op,
    Operation,
    Rows,
    Statement,
    Together,
    both,
    fetch,
    fetch_one,
    operation,
    side_by_side,
)
from langmem_ext.storage.ids import decode_id
from langmem_ext.storage.index import Indexes
from langmem_ext.storage.lookup_ops import learn_namespaces
from langmem_ext.storage.message_ops import catch_up_words
from langmem_ext.storage.read_ops import Reader, missing_namespace, order_of_write, read_entries
from langmem_ext.storage.thread_ops import find_thread
from langmem_ext.storage.write_ops import WriteEntry, put_writes
from langmem_ext.types import Codec, PackedCheckpoint, PackedWrite, ThreadKey


@dataclass(frozen=True, slots=True)
class TaskWrites:
    """Pending writes of one task that were stored together."""

    task: str
    path: str
    writes: Sequence[PackedWrite]


@dataclass(frozen=True, slots=True)
class Moved:
    """A checkpoint with its pending writes, ready to be stored.

    Attributes:
        namespace, id: What names it within its thread.
        packed: The checkpoint; None where only writes of one that is there already are to be stored.
        writes: Its pending writes.
        now: When it was made, in Unix milliseconds.
        writes_first: Whether its writes may hold messages without the ids that they have in the checkpoint. Stored first, a message is
            named later, and is one row; the other way round it would be two.
    """

    namespace: str
    id: str
    packed: PackedCheckpoint | None
    writes: Sequence[TaskWrites]
    now: int
    writes_first: bool = False


Places: TypeAlias = dict[tuple[str, str], list[tuple[str, WriteEntry]]]
"""Pending writes with their tasks, in LangGraph's order, by the checkpoint's namespace and id."""

PAGE: Final = 256
"""Rows of a thread that are held at once."""

FIRST_CHECKPOINT: Final[dict[str, Any]] = {"namespace": -1, "id": b""}
FIRST_WRITES: Final[dict[str, Any]] = {"namespace": -1, "checkpoint": b"", "task": b""}
"""Stand before the first row of a thread: the columns by which its rows are ordered."""


@operation
def store_moved(key: ThreadKey, batch: Sequence[Moved], *, indexes: Indexes, codec: Codec) -> Op[None]:
    """Store checkpoints of one thread with their writes, all or none.

    Raises:
        ThreadNotFound: The thread belongs to another owner.
    """
    for moved in batch:
        steps = [partial(_store_checkpoint, key, moved), partial(_store_writes, key, moved)]
        for step in reversed(steps) if moved.writes_first else steps:
            yield from step(indexes, codec)


def _store_checkpoint(key: ThreadKey, moved: Moved, indexes: Indexes, codec: Codec) -> Op[None]:
    if moved.packed is not None:
        yield from put_checkpoint(key, moved.namespace, moved.packed, now=moved.now, indexes=indexes, codec=codec)


def _store_writes(key: ThreadKey, moved: Moved, indexes: Indexes, codec: Codec) -> Op[None]:
    where = (key, moved.namespace, moved.id)
    for one in moved.writes:
        yield from put_writes(*where, one.task, one.path, one.writes, now=moved.now, indexes=indexes, codec=codec, asks=True)


@operation
def store_puts(key: ThreadKey | None, puts: Sequence[Operation[None]]) -> Op[None]:
    """Carry out what stores checkpoints and pending writes, one after the other, all or none.

    Args:
        key: Their thread; None where they are of several.
        puts: Each an operation of its own, those of a thread in their order.
    """
    for put in puts:
        yield from put
        yield PAUSE


@operation
def stored(keys: Sequence[ThreadKey], *, indexes: Indexes, codec: Codec) -> Op[list[Places]]:
    """The checkpoints of threads that are there, each with its pending writes; without a value of any.

    Raises:
        DamagedRow: A row is not as it was written, or a namespace is missing.
    """
    return (yield from side_by_side([_stored(key, indexes, codec) for key in keys]))


def _stored(key: ThreadKey, indexes: Indexes, codec: Codec) -> Op[Places]:
    thread = yield from find_thread(key, indexes)
    if thread is None:
        return {}
    reader = Reader(key.id, indexes.of(key.id, thread.row(), codec), codec)
    learn_namespaces(reader.index, (yield from fetch(statements.SELECT_NAMESPACES, thread=thread.number)))
    yield from catch_up_words(reader.index, thread.number, thread.next_word)
    checkpoints, writes = yield from both(_checkpoints(reader), _writes(reader))
    names = {number: name for name, number in reader.index.namespaces.items()}
    if missing := {space for space, _ in checkpoints} - names.keys():
        raise missing_namespace(reader, missing.pop())
    places: Places = {(names[space], decode_id(checkpoint)): [] for space, checkpoint in checkpoints}
    for (space, checkpoint), pairs in writes:
        if space in names and (place := (names[space], decode_id(checkpoint))) in places:
            places[place] += pairs
    for pairs in places.values():
        pairs.sort(key=order_of_write)
    indexes.keep(reader.index)
    return places


def _checkpoints(reader: Reader) -> Op[list[tuple[int, bytes]]]:
    """Namespace and id of each checkpoint of a thread."""
    thread = reader.index.number
    found: list[tuple[int, bytes]] = []
    after: Mapping[str, Any] = FIRST_CHECKPOINT
    while True:
        rows = yield from fetch(sql.STORED_CHECKPOINTS, thread=thread, **after, limit=PAGE)
        for space, *row in rows:
            if row[-1] != checks.checkpoint_check(thread, (space, *row[:-1])):
                raise damaged_checkpoint(thread, row[0], checks.CHANGED)
            found.append((space, row[0]))
        if len(rows) < PAGE:
            return found
        after = {"namespace": rows[-1][0], "id": key_of(rows[-1][1:])}
        yield PAUSE


def _writes(reader: Reader) -> Op[list[tuple[tuple[int, bytes], list[tuple[str, WriteEntry]]]]]:
    """The pending writes of each task of a thread, with their checkpoint's namespace and id."""
    found: list[tuple[tuple[int, bytes], list[tuple[str, WriteEntry]]]] = []
    after: Mapping[str, Any] = FIRST_WRITES
    while True:
        rows = yield from fetch(sql.STORED_WRITES, thread=reader.index.number, **after, limit=PAGE)
        for row in rows:
            found.append((row[:2], (yield from read_entries(reader, [row]))))
        if len(rows) < PAGE:
            return found
        after = dict(zip(FIRST_WRITES, rows[-1], strict=False))
        yield PAUSE


@operation
def read_times(keys: Sequence[ThreadKey]) -> Op[dict[str, tuple[int, int]]]:
    """When threads were first and last written, in Unix milliseconds; without those that are not there, or whose row does not say."""
    found: list[Rows] = yield Together([Statement(sql.SELECT_TIMES, {"id": key.id, "owner": key.owner}) for key in keys])
    return {key.id: (rows[0][0], rows[0][1]) for key, rows in zip(keys, found, strict=True) if rows and all(map(is_storable, rows[0]))}


@operation
def size() -> Op[int]:
    """Bytes of the whole database."""
    row = yield from fetch_one(sql.SIZE)
    return int(row[0]) if row is not None else 0
