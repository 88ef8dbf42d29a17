"""Operations on pending writes: what a task has written to a checkpoint, in one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langmem_ext.messages.packed import pack, unpack
from langmem_ext.storage import checks
from langmem_ext.storage import statements as sql
from langmem_ext.storage.checkpoint_ops import close_writer, ensure_namespace, open_writer, store_value
from langmem_ext.storage.clock import Times
from langmem_ext.storage.effects import ONE, RUN, Op, Row
from langmem_ext.storage.header import Entry, ValueRef, decode_values
from langmem_ext.storage.ids import encode_id
from langmem_ext.storage.index import Indexes, ThreadIndex
from langmem_ext.storage.late_writes import Origin
from langmem_ext.storage.lookup_ops import read_pattern
from langmem_ext.types import Codec, PackedWrite, ThreadKey


def put_writes(
    key: ThreadKey,
    namespace: str,
    checkpoint_id: str,
    task_id: str,
    path: str,
    writes: Sequence[PackedWrite],
    *,
    now: int,
    indexes: Indexes,
    codec: Codec,
    times: Times | None = None,
    origin: Origin | None = None,
    asks: bool = False,
) -> Op[None]:
    """Store a task's pending writes for a checkpoint, all in one row.

    A write that the task has stored at the same index already stands, unless the index is one of LangGraph's special ones (negative): those
    are replaced. Where they were made earlier, `times` count in place of now. Where the task may well have written before, `asks` has it
    looked for.

    Raises:
        ThreadNotFound: The thread belongs to another owner.
        ThreadDeleted: The thread was deleted while the run of the task was under way.
    """
    writer = yield from open_writer(key, now=now, indexes=indexes, codec=codec, times=times, origin=origin)
    writer.by_task = True
    space = 0 if namespace == "" else (yield from ensure_namespace(writer, namespace))
    places: list[list[Any]] = []
    values: list[Entry] = []
    for write in writes:
        places.append([path, write.index, write.channel])
        values.append((yield from store_value(writer, write.value, (space, write.channel), whole=False)))
    index, thread = writer.index, writer.thread.number
    where = space, encode_id(checkpoint_id), encode_id(task_id)
    earlier: Row | None = None
    # Of a task of which nothing is remembered the row is new, or storing it fails, and the operation runs again and asks.
    if asks or not writer.warm or where in index.tasks:
        rows = yield sql.SELECT_TASK_WRITES, (thread, *where)
        earlier = rows[0] if rows else None
    places, values = _merged((yield from _read_row(index, earlier)) if earlier is not None else ((), ()), (places, values))
    shape = pack(places)
    word = writer.intern_pattern(shape)
    columns = (thread, *where, word, pack(values if word is not None else [shape, *values]))
    check = checks.check_of(*columns)
    if earlier is None:
        writer.rows.append((sql.INSERT_WRITES, (*columns, check), RUN))
    else:
        writer.rows.append((sql.UPDATE_WRITES, (*columns, check), ONE))
    index.learn_task(*where)
    yield from close_writer(writer, None)


def _merged(earlier: tuple[Sequence[Any], Sequence[Entry]], later: tuple[Sequence[Any], Sequence[Entry]]) -> tuple[list[Any], list[Entry]]:
    """What a task wrote earlier, and what it has written now: paths, indexes and channels, and where the values stand."""
    merged = {place[1]: (place, entry) for place, entry in zip(*earlier, strict=True)}
    for place, entry in zip(*later, strict=True):
        if place[1] < 0 or place[1] not in merged:
            merged[place[1]] = place, entry
    return [place for place, _ in merged.values()], [entry for _, entry in merged.values()]


def _read_row(index: ThreadIndex, row: Row) -> Op[tuple[Sequence[Any], Sequence[Entry]]]:
    """A pending-write row as it was written.

    Raises:
        ValueError: It is not as it was written, or does not decode (also other errors: the caller names the row).
    """
    *columns, shape, body, check = row
    checks.verify(check, index.number, *columns, shape, body)
    values = unpack(body)
    if shape is not None:
        return unpack((yield from read_pattern(index, shape))), values
    form, *values = values
    return unpack(form), values


@dataclass(slots=True)  # not frozen: that takes several times as long to make
class WriteEntry:
    """One write of a task: the path that the task had when it was stored, its place, its channel, and where its value stands."""

    path: str
    index: int
    channel: str
    value: ValueRef


def read_writes(index: ThreadIndex, row: Row) -> Op[list[WriteEntry]]:
    """The entries that a pending-write row (`WRITE_COLUMNS`) holds.

    Raises:
        ValueError: It is not as it was written, or does not decode (also other errors: the caller names the row).
    """
    places, values = yield from _read_row(index, row)
    entries = [WriteEntry(path, at, channel, ref) for (path, at, channel), ref in zip(places, decode_values(values), strict=True)]
    if not all(isinstance(entry.path, str) and isinstance(entry.index, int) and isinstance(entry.channel, str) for entry in entries):
        raise ValueError("an entry has no place")
    return entries
