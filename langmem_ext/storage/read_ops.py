"""Operations that read checkpoints: one, a page of them, or what one channel contributed along the ancestors of one.

They return bytes; whoever asked builds the objects, outside the transaction.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, TypeAlias

from langmem_ext.errors import DamagedRow, cause, told
from langmem_ext.interruption import pass_on
from langmem_ext.messages.manifest import merged, ranges_of
from langmem_ext.messages.proportion import MEMORY, SMALL, is_in_proportion, packed_size
from langmem_ext.storage import statements as sql
from langmem_ext.storage.checkpoint_ops import header_of, key_of
from langmem_ext.storage.dialect import label, scalar
from langmem_ext.storage.effects import Foresight, Op, Row, Statement, both, fetch, operation, operation_brief, side_by_side
from langmem_ext.storage.header import Header, ValueRef, require_countable
from langmem_ext.storage.ids import decode_id, encode_id, readable, thread_number
from langmem_ext.storage.index import Indexes, ThreadIndex
from langmem_ext.storage.lookup_ops import (
    AROUND,
    find_checkpoint,
    find_namespace,
    find_newest,
    find_writes,
    learn_namespaces,
    learn_words,
    read_body,
    read_value,
    read_word,
)
from langmem_ext.storage.message_ops import catch_up_words, gather_messages, load_items, missing_items, out_of_proportion
from langmem_ext.storage.thread_ops import find_thread, thread_foresight
from langmem_ext.storage.write_ops import WriteEntry, read_writes
from langmem_ext.types import Codec, DeltaHistory, PackedValue, Snapshot, StoredCheckpoint, StoredWrite, ThreadKey

FEW: Final = 16
"""Values that are read side by side, each with what it names: at worst, so often is a row read that all of them name."""


class Distrusted(DamagedRow):
    """A checkpoint names rows so often that reading it may fill the memory: an application may mean that, and so may an attacker."""


@dataclass(slots=True)
class Reader:
    """One thread being read.

    Attributes:
        thread_id, index, codec: The thread's.
        bodies: The values that were read already, by their rows.
        ahead: Value rows that were read ahead of them.
        joined: What the values are that were put together of several rows, for the checkpoint that is being read.
        distrusts: Whether all that a checkpoint holds must be in proportion together (`Distrusted`), and not only each value.
    """

    thread_id: str
    index: ThreadIndex
    codec: Codec
    bodies: dict[tuple[int, ...], bytes | None] = field(default_factory=dict)
    ahead: dict[int, bytes] = field(default_factory=dict)
    joined: list[tuple[bytes, tuple[int, ...]]] = field(default_factory=list)
    distrusts: bool = False


@operation_brief
def get_checkpoint(
    key: ThreadKey, namespace: str, checkpoint_id: str | None, *, indexes: Indexes, codec: Codec, moment: bytes | None = None
) -> Op[StoredCheckpoint | None]:
    """A checkpoint with its pending writes; the newest where no id is given; None where there is none.

    Where a run asks for it, `moment` is an id that was made before (`late_writes`).
    """
    unknown = indexes.speculates and namespace == "" and indexes.row_of(key.id) is None
    if unknown:
        yield _first_look(key.id, checkpoint_id)
    found = yield from _look_up(key, namespace, checkpoint_id, indexes, codec, moment)
    if found is None:
        return None
    reader, space, row = found
    writes = yield from find_writes(reader.index, space, row[0], foreseen=unknown and checkpoint_id is None)
    stored = yield from assemble(reader, namespace, space, row, writes, last=unknown)
    indexes.account(reader.index)
    return stored


def _first_look(thread_id: str, checkpoint_id: str | None) -> Foresight:
    """What is mostly asked for when a checkpoint of the root is read from a thread of which nothing is known."""
    place = {"thread": thread_number(thread_id), "namespace": 0}
    if checkpoint_id is None:
        row = Statement(sql.SELECT_LATEST_CHECKPOINT, place)
        return thread_foresight(thread_id, row, Statement(sql.SELECT_NEWEST_WRITES, {**place, "limit": AROUND}))
    checkpoint = encode_id(checkpoint_id)
    row = Statement(sql.SELECT_CHECKPOINT, {**place, "id": checkpoint})
    return thread_foresight(thread_id, row, Statement(sql.SELECT_WRITES, {**place, "checkpoint": checkpoint, "limit": AROUND}))


def _look_up(
    key: ThreadKey, namespace: str, checkpoint_id: str | None, indexes: Indexes, codec: Codec, moment: bytes | None = None
) -> Op[tuple[Reader, int, Row] | None]:
    """A reader for the thread, the namespace's number, and the row of the checkpoint, or of the newest; None where one is missing."""
    thread = yield from find_thread(key, indexes)
    if thread is None:
        return None
    if moment is not None:
        indexes.late_writes.met(key.id, thread.born, moment)
    reader = Reader(key.id, indexes.of(thread.number, thread.generation, codec), codec)
    space = yield from find_namespace(reader.index, namespace, end=thread.next_namespace)
    if space is None:
        return None
    yield from catch_up_words(reader.index, thread)
    if checkpoint_id is None:
        row = yield from find_newest(reader.index, space)
    else:
        row = yield from find_checkpoint(reader.index, space, encode_id(checkpoint_id))
    if row is None:
        return None
    if moment is not None:
        indexes.late_writes.read(key.id, thread.born, row[0])
    return reader, space, row


def assemble(
    reader: Reader, namespace: str, space: int, row: Row, write_rows: Sequence[Row], *, last: bool = False
) -> Op[StoredCheckpoint]:
    """The checkpoint that a row holds; `last`, where it is all that is asked for."""
    checkpoint, parent, step, label, *_ = row
    header = yield from header_of(reader.index, space, row)
    entries = yield from read_entries(reader, write_rows)
    said = yield from read_word(reader.index, label)
    if last:
        yield Foresight(last=True)
    refs = list(header.values.values())
    for _, entry in entries:
        refs.append(entry.value)
    place = checkpoint, reader.thread_id
    reader.joined.clear()
    if len(refs) > FEW:
        yield from _read_once(reader, refs)
    reads = [read_packed(reader, ref, (space, channel)) for channel, ref in header.values.items()]
    reads += [read_packed(reader, entry.value) for _, entry in entries]
    packed = yield from side_by_side(reads)
    require_each(packed, place)
    if reader.distrusts:
        _require_together(refs, packed)
    return StoredCheckpoint(
        thread=reader.thread_id,
        namespace=namespace,
        id=decode_id(checkpoint),
        parent=None if parent is None else decode_id(parent),
        v=header.v,
        ts=header.ts,
        versions=header.versions,
        seen=header.seen,
        updated=header.updated,
        values=dict(zip(header.values, packed, strict=False)),
        extra=header.extra,
        label=said,
        step=step,
        details=header.details,
        writes=[
            StoredWrite(task, entry.channel, value) for (task, entry), value in zip(entries, packed[len(header.values) :], strict=True)
        ],
    )


def _read_once(reader: Reader, refs: Sequence[ValueRef]) -> Op[None]:
    """Read what many values name, each row once: side by side, each value would have its own."""
    if reader.distrusts:
        try:
            require_countable(refs)
        except ValueError as error:
            raise Distrusted(str(error)) from None
    index = reader.index
    runs = tuple(chain.from_iterable(merged(pair for ref in refs for pair in ranges_of(ref.runs))))
    rows = {row for ref in refs if ref.row is not None for row in (ref.row, *(ref.deltas or ()))} - reader.ahead.keys()
    missing = yield from missing_items(index, reader.codec, runs)
    _, bodies = yield from both(
        side_by_side([load_items(index, reader.codec, numbers[0], numbers[-1] + 1) for numbers in missing]),
        side_by_side([read_body(index, row) for row in rows]),
    )
    reader.ahead.update(zip(rows, bodies, strict=True))


def require_each(values: Sequence[PackedValue], place: tuple[bytes, str]) -> None:
    """See that each value is in proportion to the messages that it names, as whoever stored it saw to it (`messages.proportion`).

    Args:
        values: The values.
        place: Ids of the checkpoint and of the thread that they are read for.

    Raises:
        DamagedRow: One is not.
    """
    if not all([is_in_proportion([value.messages]) for value in values if value.messages]):
        raise _out_of_proportion(place)


def _require_together(refs: Sequence[ValueRef], values: Sequence[PackedValue]) -> None:
    """See that values are in proportion to all the rows that they name together."""
    size = 0
    for value in values:
        size += sum(map(len, value.messages)) + len(value.body or b"")
    if size <= SMALL:
        return
    bodies = _uses([(value.body, ref.rows()) for ref, value in zip(refs, values, strict=True) if value.body])
    if not is_in_proportion([value.messages for value in values], bodies):
        raise Distrusted("it takes far more memory than its rows")


def _uses(bodies: Sequence[tuple[bytes, tuple[int, ...]]]) -> list[tuple[bytes, int]]:
    """Bodies of values, and how many of them the row of each is a part of that is a part of most."""
    uses = Counter(chain.from_iterable(rows for _, rows in bodies))
    return [(body, max([uses[row] for row in rows], default=1)) for body, rows in bodies]


def _out_of_proportion(place: tuple[bytes, str]) -> DamagedRow:
    checkpoint, thread_id = place
    return out_of_proportion(f"checkpoint {readable(checkpoint)} of thread {thread_id!r}")


def read_packed(reader: Reader, ref: ValueRef, place: tuple[int, str] | None = None) -> Op[PackedValue]:
    """A value with its messages, from where it stands; `place` is the namespace and channel whose value it is."""
    index = reader.index
    if ref.body is None and ref.row is None:
        known = index.find_list(place, ref.runs, ref.nameless) if place is not None else None
        if known is not None:
            return PackedValue(messages=known)
        packed = yield from gather_messages(index, reader.codec, ref.runs, ref.nameless)
        if place is not None:
            packed = index.learn_list(place, packed, ref.runs, ref.nameless)
        return PackedValue(messages=packed)
    if ref.row is None:
        return PackedValue(messages=(yield from _messages_of(reader, ref)), body=ref.body)
    messages, body = yield from both(_messages_of(reader, ref), _body_of(reader, ref, place))
    return PackedValue(messages=messages, body=body)


def _messages_of(reader: Reader, ref: ValueRef) -> Op[list[Snapshot]]:
    return (yield from gather_messages(reader.index, reader.codec, ref.runs, ref.nameless)) if ref.runs else []


def _body_of(reader: Reader, ref: ValueRef, place: tuple[int, str] | None) -> Op[bytes | None]:
    rows = ref.rows()
    if rows not in reader.bodies:
        body = reader.bodies[rows] = yield from read_value(reader.index, ref, place, reader.ahead)
        if reader.distrusts and ref.deltas and body is not None:
            # Each is bytes of its own, made before all can be looked at together.
            reader.joined.append((body, rows))
            if packed_size((), [body for body, _ in reader.joined]) > MEMORY and not is_in_proportion((), _uses(reader.joined)):
                raise Distrusted("it takes far more memory than its rows")
    return reader.bodies[rows]


def read_entries(reader: Reader, rows: Sequence[Row]) -> Op[list[tuple[str, WriteEntry]]]:
    """The pending writes that rows hold, each with its task's id, in LangGraph's order: by task path, task id and index."""
    found: list[tuple[str, WriteEntry]] = []
    for row in rows:
        try:
            entries = yield from read_writes(reader.index, row)
            task_id = decode_id(row[2])
        except Exception as error:
            pass_on(error)
            raise DamagedRow(
                f"the pending writes of task {readable(row[2])} in thread {reader.thread_id!r} are damaged ({told(error)}): other threads"
                " stay readable; fork from an earlier checkpoint, or delete the thread"
            ) from cause(error)
        found += [(task_id, entry) for entry in entries]
    found.sort(key=order_of_write)
    return found


def order_of_write(pair: tuple[str, WriteEntry]) -> tuple[str, str, int]:
    """What LangGraph orders pending writes by: task path, task id and index."""
    task, entry = pair
    return entry.path, task, entry.index


# -- pages -------------------------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Query:
    """Which checkpoints a list is asked for.

    Attributes:
        thread: The thread; None for all that the owner may see.
        owner: The caller's owner; None: any.
        namespace: The namespace; None for all.
        checkpoint_id: This checkpoint only.
        before: Checkpoints with a lower id only.
        labels: Scalars that the metadata must hold, by plain name.
        step: The metadata's step, if it is asked for.
    """

    thread: str | None = None
    owner: str | None = None
    namespace: str | None = None
    checkpoint_id: str | None = None
    before: str | None = None
    labels: Mapping[str, str | int | float | None] = field(default_factory=dict)
    step: int | None = None


@dataclass(frozen=True, slots=True)
class Cursor:
    """The last checkpoint of a page: keys repeat across threads and namespaces, so all three are needed."""

    key: bytes
    thread: int
    namespace: int


Page: TypeAlias = tuple[list[StoredCheckpoint], Cursor | None]
"""A page of checkpoints, and where the next one begins; None: this was the last."""


@operation
def list_page(query: Query, cursor: Cursor | None, limit: int, *, indexes: Indexes, codec: Codec) -> Op[Page]:
    """A page of checkpoints, newest id first."""
    statement, params = _page_statement(query, cursor)
    if indexes.speculates:
        yield Foresight(more=True)
    rows = yield from fetch(statement, **params, limit=limit)
    readers = {row[0]: Reader(row[1], indexes.of(row[0], row[2], codec), codec) for row in rows}
    strange = {row[0] for row in rows if row[3] not in readers[row[0]].index.namespaces.values()}
    strange |= {thread for thread, reader in readers.items() if not reader.index.words}
    yield from side_by_side([_learn_names(readers[thread].index) for thread in strange])
    if indexes.speculates and cursor is not None and not any(_asks_for_values(reader.index) for reader in readers.values()):
        yield Foresight(last=True)  # the messages came with an earlier page
    places = [(readers[thread].index, space, checkpoint) for thread, _, _, space, checkpoint, *_ in rows]
    written = yield from side_by_side([find_writes(*place) for place in places])
    page: list[StoredCheckpoint] = []
    for (thread, _, _, space, *row), writes in zip(rows, written, strict=True):
        reader = readers[thread]
        namespace = next((name for name, number in reader.index.namespaces.items() if number == space), None)
        if namespace is None:
            raise missing_namespace(reader, space)
        page.append((yield from assemble(reader, namespace, space, tuple(row), writes)))
    for reader in readers.values():
        indexes.account(reader.index)
    following = Cursor(key_of(rows[-1][4:]), thread=rows[-1][0], namespace=rows[-1][3]) if len(rows) == limit else None
    return page, following


def missing_namespace(reader: Reader, space: int) -> DamagedRow:
    """The error that rows are of a namespace that is not there."""
    return DamagedRow(f"namespace {space} of thread {reader.thread_id!r} is missing: restore the thread from a copy, or delete it")


def _asks_for_values(index: ThreadIndex) -> bool:
    """Whether a checkpoint of a thread may hold more than messages that are known, as far as those that were read tell."""
    return not index.lists or bool(index.manifests or index.compounds or index.held)


def _learn_names(index: ThreadIndex) -> Op[None]:
    """Learn a thread's namespaces, and the words of one of which nothing is known: each of its checkpoints names some."""
    learn_namespaces(index, (yield from fetch(sql.SELECT_NAMESPACES, thread=index.number)))
    if not index.words:
        learn_words(index, (yield from fetch(sql.SELECT_WORDS_FROM, thread=index.number, first=0)))


def _page_statement(query: Query, cursor: Cursor | None) -> tuple[str, dict[str, Any]]:
    encoded = {"checkpoint_id": query.checkpoint_id, "before": query.before}
    params: dict[str, Any] = {
        "id": query.thread,
        "owner": query.owner,
        "namespace": query.namespace,
        "step": query.step,
        **{name: None if text is None else encode_id(text) for name, text in encoded.items()},
    }
    wheres = [condition for name, condition in sql.PAGE_CONDITIONS.items() if params[name] is not None]
    if query.before is not None and query.thread is not None:
        wheres[wheres.index(sql.PAGE_CONDITIONS["before"])] = sql.PAGE_BEFORE
    if query.namespace == "":
        wheres[wheres.index(sql.PAGE_CONDITIONS["namespace"])] = "checkpoint.namespace = 0"
    for position, (name, value) in enumerate(query.labels.items()):
        # Whoever asked looks again: here True is 1, and what no database's JSON may say is not looked at.
        text = json.dumps(int(value) if isinstance(value, bool) else value)
        if "\\u0000" not in text and "\\ud" not in text:
            wheres.append(f"{label(position)} IS NULL" if value is None else f"{label(position)} = {scalar(position)}")
            params |= {f"name{position}": name, f"value{position}": text}
    if cursor is not None:
        wheres.append(sql.PAGE_AFTER)
        params |= {"at": cursor.key, "at_thread": cursor.thread, "at_namespace": cursor.namespace}
    condition = f" WHERE {' AND '.join(wheres)}" if wheres else ""
    return sql.SELECT_CHECKPOINT_PAGE.format(where=condition), params


# -- delta channels ----------------------------------------------------------------------------------------------------------------------


@operation
def get_delta_history(
    key: ThreadKey, namespace: str, checkpoint_id: str | None, channels: Sequence[str], *, indexes: Indexes, codec: Codec
) -> Op[dict[str, DeltaHistory]]:
    """What each channel contributed along the ancestors of a checkpoint: the writes after the nearest stored value, and that value."""
    history = {channel: DeltaHistory() for channel in channels}
    found = yield from _look_up(key, namespace, checkpoint_id, indexes, codec)
    if found is None:
        return history
    reader, space, target = found
    values: list[PackedValue] = []
    open_channels = set(channels)
    at = target[1]
    passed: set[bytes] = set()
    while at is not None and open_channels and at not in passed:
        passed.add(at)
        row = yield from find_checkpoint(reader.index, space, at)
        if row is None:
            break
        header: Header = yield from header_of(reader.index, space, row)
        writes = yield from find_writes(reader.index, space, at)
        for task_id, entry in reversed((yield from read_entries(reader, writes))):
            if entry.channel in open_channels:
                values.append((yield from read_packed(reader, entry.value)))
                history[entry.channel].writes.append(StoredWrite(task_id, entry.channel, values[-1]))
        for channel in open_channels & header.values.keys():
            history[channel].seed = yield from read_packed(reader, header.values[channel])
        open_channels -= header.values.keys()
        at = row[1]
    require_each(values, (target[0], key.id))
    for contributed in history.values():
        contributed.writes.reverse()
    indexes.account(reader.index)
    return history
