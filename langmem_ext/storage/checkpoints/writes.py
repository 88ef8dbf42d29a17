"""Operations on pending writes: what a task has written to a checkpoint is one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from langmem_ext.messages.packed import pack, unpack
from langmem_ext.storage.cache import ThreadCache, ThreadCaches
from langmem_ext.storage.checkpoints import sql
from langmem_ext.storage.checkpoints.late_writes import Origin
from langmem_ext.storage.checkpoints.lookup import read_pattern
from langmem_ext.storage.checkpoints.put import (
    close_writer,
    ensure_namespace,
    open_writer,
    store_value,
)
from langmem_ext.storage.operation import ANY, ONE, Op, Row
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.rows.checkpoint import Entry, ValueRef, decode_values
from langmem_ext.storage.rows.clock import Times
from langmem_ext.storage.rows.ids import encode_id
from langmem_ext.types import Codec, PackedWrite, ThreadKey

_index_of: Final = itemgetter(1)


def put_writes(
    key: ThreadKey,
    namespace: str,
    checkpoint_id: str,
    task_id: str,
    path: str,
    writes: Sequence[PackedWrite],
    *,
    now: int,
    caches: ThreadCaches,
    codec: Codec,
    times: Times | None = None,
    origin: Origin | None = None,
    asks: bool = False,
) -> Op[None]:
    """Store a task's pending writes for a checkpoint, all in one row.

    A write that the task has already stored at the same index is kept, unless the index is one of
    LangGraph's special ones (negative): those are replaced. If the writes were made earlier,
    `times` count in place of now. With `asks`, earlier writes of the task are looked for: use it if
    there may well be some.

    Raises:
        ThreadNotFound: The thread belongs to another owner.
        ThreadDeleted: The thread was deleted during the task's run.
    """
    writer = yield from open_writer(
        key, now=now, caches=caches, codec=codec, times=times, origin=origin
    )
    writer.by_task = True
    space = 0 if namespace == "" else (yield from ensure_namespace(writer, namespace))
    places: list[list[Any]] = []
    values: list[Entry] = []
    for write in writes:
        places.append([path, write.index, write.channel])
        values.append(
            (yield from store_value(writer, write.value, (space, write.channel), whole=False))
        )
    cache, thread = writer.cache, writer.thread.number
    where = space, encode_id(checkpoint_id), encode_id(task_id)
    earlier: Row | None = None
    # If nothing is cached of the task, its row is new; else storing it fails, and the operation
    # runs again and asks.
    if where in cache.tasks or (not cache.knows_tasks and (asks or not writer.warm)):
        rows = yield sql.SELECT_TASK_WRITES, (thread, *where)
        earlier = rows[0] if rows else None
    if earlier is not None or len(set(map(_index_of, places))) < len(places):
        before = ((), ()) if earlier is None else (yield from _read_row(cache, earlier))
        places, values = _merged(before, (places, values))
    shape = pack(places)
    word = writer.intern(shape, pattern=True)
    columns = (thread, *where, word, pack(values if word is not None else [shape, *values]))
    check = checks.check_of(*columns)
    if earlier is None:
        writer.changes.append((sql.INSERT_WRITES, (*columns, check), ANY))
    else:
        writer.changes.append((sql.UPDATE_WRITES, (*columns, check), ONE))
    cache.learn_task(*where)
    yield from close_writer(writer, None)


def _merged(
    earlier: tuple[Sequence[Any], Sequence[Entry]], later: tuple[Sequence[Any], Sequence[Entry]]
) -> tuple[list[Any], list[Entry]]:
    """What a task wrote earlier merged with what it writes now: places and values' entries."""
    merged = {place[1]: (place, entry) for place, entry in zip(*earlier, strict=True)}
    for place, entry in zip(*later, strict=True):
        if place[1] < 0 or place[1] not in merged:
            merged[place[1]] = place, entry
    return [place for place, _ in merged.values()], [entry for _, entry in merged.values()]


def _read_row(cache: ThreadCache, row: Row) -> Op[tuple[Sequence[Any], Sequence[Entry]]]:
    """A pending-write row as it was written.

    Raises:
        ValueError: It has changed since it was written, or does not decode (other errors, too: the
            caller names the row).
    """
    *columns, shape, body, check = row
    checks.verify(check, cache.number, *columns, shape, body)
    values = unpack(body)
    if shape is not None:
        return unpack((yield from read_pattern(cache, shape))), values
    form, *values = values
    return unpack(form), values


@dataclass(slots=True)  # not frozen: that takes several times as long to make
class WriteEntry:
    """One write of a task: its path when it was stored, its index, channel and value."""

    path: str
    index: int
    channel: str
    value: ValueRef


def read_writes(cache: ThreadCache, row: Row) -> Op[list[WriteEntry]]:
    """The entries that a pending-write row (`WRITE_COLUMNS`) holds.

    Raises:
        ValueError: It has changed since it was written, or does not decode (other errors, too: the
            caller names the row).
    """
    places, values = yield from _read_row(cache, row)
    entries = [
        WriteEntry(path, at, channel, ref)
        for (path, at, channel), ref in zip(places, decode_values(values), strict=True)
    ]
    if not all(
        isinstance(entry.path, str)
        and isinstance(entry.index, int)
        and isinstance(entry.channel, str)
        for entry in entries
    ):
        raise ValueError("an entry has no position")
    return entries


def order_of_write(pair: tuple[str, WriteEntry]) -> tuple[str, str, int]:
    """What LangGraph orders pending writes by: task path, task id and index."""
    task, entry = pair
    return entry.path, task, entry.index
