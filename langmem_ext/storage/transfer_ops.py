"""Operations that store what is moved in: many checkpoints in one transaction, and what of them is there already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from langmem_ext.storage import statements
from langmem_ext.storage import transfer_statements as sql
from langmem_ext.storage.checkpoint_ops import put_checkpoint
from langmem_ext.storage.effects import PAUSE, PAUSE_EVERY, Op, Operation, fetch, fetch_one, operation
from langmem_ext.storage.ids import decode_id
from langmem_ext.storage.index import Indexes
from langmem_ext.storage.lookup_ops import learn_namespaces
from langmem_ext.storage.thread_ops import find_thread, learn_missing
from langmem_ext.storage.write_ops import put_writes, read_writes
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


Places: TypeAlias = dict[tuple[str, str], set[tuple[str, int]]]
"""Task and index of each pending write, by the checkpoint's namespace and id."""


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
        yield from put_writes(*where, one.task, one.path, one.writes, now=moved.now, indexes=indexes, codec=codec)


@operation
def store_puts(key: ThreadKey | None, puts: Sequence[Operation[None]], *, indexes: Indexes) -> Op[None]:
    """Carry out what stores checkpoints and pending writes, one after the other, all or none.

    Args:
        key: Their thread; None where they are of several.
        puts: Each an operation of its own, those of a thread in their order.
        indexes: What this process knows.
    """
    yield from learn_missing((put.thread for put in puts if put.thread is not None), indexes)
    for put in puts:
        yield from put
        yield PAUSE


@operation
def stored(key: ThreadKey, *, indexes: Indexes, codec: Codec) -> Op[Places]:
    """The checkpoints of a thread that are there, each with its pending writes."""
    thread = yield from find_thread(key, indexes)
    if thread is None:
        return {}
    index = indexes.of(thread.number, thread.generation, codec)
    learn_namespaces(index, (yield from fetch(statements.SELECT_NAMESPACES, thread=thread.number)))
    names = {number: name for name, number in index.namespaces.items()}
    rows = yield from fetch(sql.STORED_CHECKPOINTS, thread=thread.number)
    places: Places = {(names[space], decode_id(checkpoint)): set() for space, checkpoint in rows}
    rows = yield from fetch(sql.STORED_WRITES, thread=thread.number)
    for count, row in enumerate(rows, start=1):
        space, checkpoint, task, *_ = row
        at = places.get((names[space], decode_id(checkpoint)))
        if at is not None:
            at.update((decode_id(task), entry.index) for entry in (yield from read_writes(index, row)))
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    return places


@operation
def size() -> Op[int]:
    """Bytes of the whole database."""
    row = yield from fetch_one(sql.SIZE)
    return int(row[0]) if row is not None else 0
