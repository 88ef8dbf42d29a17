"""Operations of an import: what is stored already, and many checkpoints in one transaction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, TypeAlias

from langmem_ext.storage.cache import ThreadCaches
from langmem_ext.storage.checkpoints.get import Reader, read_entries
from langmem_ext.storage.checkpoints.lookup import (
    damaged_checkpoint,
    key_of,
    learn_all_namespaces,
    missing_namespace,
)
from langmem_ext.storage.checkpoints.messages import catch_up_words
from langmem_ext.storage.checkpoints.put import put_checkpoint
from langmem_ext.storage.checkpoints.sql import CHECKPOINT_COLUMNS, OWNED, WRITE_COLUMNS
from langmem_ext.storage.checkpoints.thread_row import find_thread
from langmem_ext.storage.checkpoints.writes import WriteEntry, order_of_write, put_writes
from langmem_ext.storage.operation import (
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
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.rows.checkpoint import PackedCheckpoint
from langmem_ext.storage.rows.clock import is_storable
from langmem_ext.storage.rows.ids import decode_id
from langmem_ext.storage.schema import dialect
from langmem_ext.types import Codec, PackedWrite, ThreadKey

STORED_CHECKPOINTS = (
    f"SELECT namespace, {CHECKPOINT_COLUMNS} FROM checkpoint WHERE thread = :thread AND (namespace,"
    " id) > (:namespace, :id) ORDER BY namespace, id LIMIT :limit"
)
STORED_WRITES = (
    f"SELECT {WRITE_COLUMNS} FROM pending_write"
    " WHERE thread = :thread AND (namespace, checkpoint, task) > (:namespace, :checkpoint, :task)"
    " ORDER BY namespace, checkpoint, task LIMIT :limit"
)
SELECT_TIMES = f"SELECT created_at, updated_at FROM thread WHERE {dialect.OF_ID} AND {OWNED}"


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
        namespace, id: The checkpoint's namespace, and its id.
        packed: The checkpoint; None if it is stored already and only its writes are new.
        writes: Its pending writes.
        now: When it was made, in Unix milliseconds.
        writes_first: Whether its writes may hold messages without the ids that they have in the
            checkpoint. If the writes are stored first, such a message is one row, which gets its
            id later; the other way round it would be two rows.
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
"""Rows of a thread that are read at once."""

FIRST_CHECKPOINT: Final[dict[str, Any]] = {"namespace": -1, "id": b""}
FIRST_WRITES: Final[dict[str, Any]] = {"namespace": -1, "checkpoint": b"", "task": b""}
"""Values before those of any row of a thread, in the columns that order its rows."""


@operation
def store_moved(
    key: ThreadKey, batch: Sequence[Moved], *, caches: ThreadCaches, codec: Codec
) -> Op[None]:
    """Store checkpoints of one thread with their writes, all or none.

    Raises:
        ThreadNotFound: The thread belongs to another owner.
    """
    for moved in batch:
        steps = [partial(_store_checkpoint, key, moved), partial(_store_writes, key, moved)]
        for step in reversed(steps) if moved.writes_first else steps:
            yield from step(caches, codec)


def _store_checkpoint(key: ThreadKey, moved: Moved, caches: ThreadCaches, codec: Codec) -> Op[None]:
    if moved.packed is not None:
        yield from put_checkpoint(
            key, moved.namespace, moved.packed, now=moved.now, caches=caches, codec=codec
        )


def _store_writes(key: ThreadKey, moved: Moved, caches: ThreadCaches, codec: Codec) -> Op[None]:
    where = (key, moved.namespace, moved.id)
    for task_writes in moved.writes:
        yield from put_writes(
            *where,
            task_writes.task,
            task_writes.path,
            task_writes.writes,
            now=moved.now,
            caches=caches,
            codec=codec,
            asks=True,
        )


@operation
def store_puts(key: ThreadKey | None, puts: Sequence[Operation[None]]) -> Op[None]:
    """Run operations that store checkpoints and pending writes: all take effect or none.

    Args:
        key: Their thread; None if they belong to several.
        puts: The operations. Those of one thread run in this order.
    """
    threads: dict[str | None, list[Operation[None]]] = {}
    for put in puts:
        threads.setdefault(put.thread, []).append(put)
    yield from side_by_side([_in_turn(of_thread) for of_thread in threads.values()])


def _in_turn(puts: Sequence[Operation[None]]) -> Op[None]:
    for put in puts:
        yield from put
        yield PAUSE


@operation
def stored(keys: Sequence[ThreadKey], *, caches: ThreadCaches, codec: Codec) -> Op[list[Places]]:
    """The stored checkpoints of threads, each with its pending writes; no values are read.

    Raises:
        DamagedRow: A row has changed since it was written, or a namespace is missing.
    """
    return (yield from side_by_side([_stored(key, caches, codec) for key in keys]))


def _stored(key: ThreadKey, caches: ThreadCaches, codec: Codec) -> Op[Places]:
    thread = yield from find_thread(key, caches)
    if thread is None:
        return {}
    reader = Reader(key.id, caches.of(key.id, thread.row(), codec), codec)
    yield from both(
        learn_all_namespaces(reader.cache),
        catch_up_words(reader.cache, thread.number, thread.next_word),
    )
    checkpoints, writes = yield from both(_checkpoints(reader), _writes(reader))
    names = {number: name for name, number in reader.cache.namespaces.items()}
    if missing := {space for space, _ in checkpoints} - names.keys():
        raise missing_namespace(reader.thread_id, missing.pop())
    places: Places = {
        (names[space], decode_id(checkpoint)): [] for space, checkpoint in checkpoints
    }
    for (space, checkpoint), pairs in writes:
        if space in names and (place := (names[space], decode_id(checkpoint))) in places:
            places[place] += pairs
    for pairs in places.values():
        pairs.sort(key=order_of_write)
    caches.keep(reader.cache)
    return places


def _checkpoints(reader: Reader) -> Op[list[tuple[int, bytes]]]:
    """Namespace and id of each checkpoint of a thread."""
    thread = reader.cache.number
    checkpoints: list[tuple[int, bytes]] = []
    after: Mapping[str, Any] = FIRST_CHECKPOINT
    while True:
        rows = yield from fetch(STORED_CHECKPOINTS, thread=thread, **after, limit=PAGE)
        for space, *row in rows:
            if row[-1] != checks.checkpoint_check(thread, (space, *row[:-1])):
                raise damaged_checkpoint(thread, row[0], checks.CHANGED)
            checkpoints.append((space, row[0]))
        if len(rows) < PAGE:
            return checkpoints
        after = {"namespace": rows[-1][0], "id": key_of(rows[-1][1:])}
        yield PAUSE


def _writes(reader: Reader) -> Op[list[tuple[tuple[int, bytes], list[tuple[str, WriteEntry]]]]]:
    """The pending writes of each task of a thread, with their checkpoint's namespace and id."""
    writes: list[tuple[tuple[int, bytes], list[tuple[str, WriteEntry]]]] = []
    after: Mapping[str, Any] = FIRST_WRITES
    while True:
        rows = yield from fetch(STORED_WRITES, thread=reader.cache.number, **after, limit=PAGE)
        for row in rows:
            writes.append((row[:2], (yield from read_entries(reader, [row]))))
        if len(rows) < PAGE:
            return writes
        after = dict(zip(FIRST_WRITES, rows[-1], strict=False))
        yield PAUSE


@operation
def read_times(keys: Sequence[ThreadKey]) -> Op[dict[str, tuple[int, int]]]:
    """When threads were first and last written, in Unix milliseconds.

    Threads that are not stored, or whose times are invalid, are left out.
    """
    answers: list[Rows] = yield Together(
        [Statement(SELECT_TIMES, {"id": key.id, "owner": key.owner}) for key in keys]
    )
    return {
        key.id: (rows[0][0], rows[0][1])
        for key, rows in zip(keys, answers, strict=True)
        if rows and all(map(is_storable, rows[0]))
    }


@operation
def size() -> Op[int]:
    """Bytes of the whole database."""
    row = yield from fetch_one(dialect.SIZE)
    return int(row[0]) if row is not None else 0
