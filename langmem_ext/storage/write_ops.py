"""Operations on pending writes: what a task has written to a checkpoint, in one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langmem_ext.messages.packed import pack, unpack
from langmem_ext.storage import checks
from langmem_ext.storage import statements as sql
from langmem_ext.storage.checkpoint_ops import close_writer, ensure_namespace, open_writer, store_value
from langmem_ext.storage.clock import Times
from langmem_ext.storage.effects import Op, Row, execute, fetch, operation_followed
from langmem_ext.storage.header import ValueRef, decode_values, encode_values
from langmem_ext.storage.ids import encode_id
from langmem_ext.storage.index import Indexes, ThreadIndex
from langmem_ext.storage.late_writes import Origin
from langmem_ext.storage.lookup_ops import read_pattern
from langmem_ext.storage.writer import Writer
from langmem_ext.types import Codec, PackedWrite, ThreadKey


@operation_followed
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
) -> Op[None]:
    """Store a task's pending writes for a checkpoint, all in one row.

    A write that the task has stored at the same index already stands, unless the index is one of LangGraph's special ones (negative): those
    are replaced. Where they were made earlier, `times` count in place of now.

    Raises:
        ThreadNotFound: The thread belongs to another owner.
        ThreadDeleted: The thread was deleted while the run of the task was under way.
    """
    writer = yield from open_writer(key, checkpoint_id, now=now, indexes=indexes, codec=codec, times=times, origin=origin)
    writer.by_task = True
    space = yield from ensure_namespace(writer, namespace)
    entries: list[WriteEntry] = []
    for write in writes:
        ref = yield from store_value(writer, write.value, (space, write.channel), whole=False)
        entries.append(WriteEntry(path, write.index, write.channel, ref))
    place = space, encode_id(checkpoint_id), encode_id(task_id)
    where = {"thread": writer.thread.number, "namespace": space, "checkpoint": place[1], "task": place[2]}
    columns = _encode_writes(writer, where, _merge_writes((), entries))
    yield from writer.flush()
    expected = writer.index.expected
    if not (yield from fetch(sql.INSERT_WRITES, expected and expected.storing_writes(*place), **columns)):
        [earlier] = yield from fetch(sql.SELECT_TASK_WRITES, expected and expected.written_by(*place), **where)
        merged = _merge_writes((yield from read_writes(writer.index, earlier)), entries)
        columns = _encode_writes(writer, where, merged)
        yield from writer.flush()
        yield from execute(sql.UPDATE_WRITES, **columns)
    if expected is not None:
        expected.learn_written((*place, columns["shape"], columns["body"], columns["crc"]))
    yield from close_writer(writer, None)
    indexes.account(writer.index)


@dataclass(slots=True)  # not frozen: that takes several times as long to make
class WriteEntry:
    """One write of a task: the path that the task had when it was stored, its place, its channel, and where its value stands."""

    path: str
    index: int
    channel: str
    value: ValueRef


def _merge_writes(earlier: Sequence[WriteEntry], later: Sequence[WriteEntry]) -> list[WriteEntry]:
    merged = {entry.index: entry for entry in earlier}
    for entry in later:
        if entry.index < 0 or entry.index not in merged:
            merged[entry.index] = entry
    return list(merged.values())


def _encode_writes(writer: Writer, where: Mapping[str, Any], entries: Sequence[WriteEntry]) -> dict[str, Any]:
    """A row: its key, its shape (paths, indexes and channels, which repeat from turn to turn) as a word, if it may be one, and its body."""
    shape = pack([[entry.path, entry.index, entry.channel] for entry in entries])
    values = encode_values(entry.value for entry in entries)
    word = writer.intern_pattern(shape)
    columns = {**where, "shape": word, "body": pack(values if word is not None else [shape, *values])}
    return {**columns, "crc": checks.check_of(*columns.values())}


def decode_writes(shape: bytes | None, body: bytes) -> list[WriteEntry]:
    """A pending-write row's entries.

    Args:
        shape: The word that its column names; None where the shape stands in the body.
        body: The row's body.
    """
    values = unpack(body)
    if shape is None:
        shape, *values = values
    places: list[tuple[str, int, str]] = unpack(shape)
    entries = [WriteEntry(path, index, channel, ref) for (path, index, channel), ref in zip(places, decode_values(values), strict=True)]
    if not all(isinstance(entry.path, str) and isinstance(entry.index, int) and isinstance(entry.channel, str) for entry in entries):
        raise ValueError("an entry has no place")
    return entries


def read_writes(index: ThreadIndex, row: Row) -> Op[list[WriteEntry]]:
    """The entries that a pending-write row (`WRITE_COLUMNS`) holds.

    Raises:
        ValueError: It is not as it was written, or does not decode (also other errors: the caller names the row).
    """
    *columns, shape, body, check = row
    checks.verify(check, index.number, *columns, shape, body)
    return decode_writes(None if shape is None else (yield from read_pattern(index, shape)), body)
