"""Operations that write checkpoints.

A checkpoint is its header: what is unchanged since its parent is the parent's reference, what is new is stored and referred to. Values are
found by reference only, never by channel and version: versions collide across forks.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import itemgetter
from typing import Any, Final

from langmem_ext.errors import DamagedRow, HeadConflict, InvalidInput, cause, told
from langmem_ext.interruption import pass_on
from langmem_ext.messages.manifest import Runs
from langmem_ext.messages.packed import pack, unpack
from langmem_ext.storage import checks
from langmem_ext.storage import statements as sql
from langmem_ext.storage.clock import MINUTE_MS, Times
from langmem_ext.storage.compounds import Compound, apply_delta, plan_base, plan_delta
from langmem_ext.storage.effects import Batch, Closing, Op, Row, Statement, execute, fetch, fetch_one, operation
from langmem_ext.storage.expectations import NONE, STORED
from langmem_ext.storage.header import Header, ValueRef, decode_header, encode_header, longest_list, require_countable
from langmem_ext.storage.ids import decode_id, encode_id, key_behind, readable
from langmem_ext.storage.index import Indexes, ThreadIndex
from langmem_ext.storage.late_writes import ROOT, Origin
from langmem_ext.storage.lookup_ops import Newest, find_namespace, find_newest_id, read_body, read_pattern, read_word
from langmem_ext.storage.manifests import decode_runs, encode_runs, plan_row
from langmem_ext.storage.message_ops import catch_up, resolve
from langmem_ext.storage.rest import is_at_rest
from langmem_ext.storage.search_ops import keep_indexed
from langmem_ext.storage.thread_ops import ThreadRow, ensure_thread, require_origin
from langmem_ext.storage.title_ops import keep_title
from langmem_ext.storage.writer import Writer
from langmem_ext.types import Codec, PackedCheckpoint, PackedValue, ThreadKey

INLINE_BYTES: Final = 64
"""A value's body up to this size stands in the row that refers to it; a larger one has a row of its own, written once."""

_CHECKPOINT: Final = itemgetter("id", "parent", "step", "label", "shape", "pattern", "body", "own_key", "crc")
"""The columns of a checkpoint's row, as it is read (`statements.CHECKPOINT_COLUMNS`)."""

_SUMS: Final = ("items", "tokens")
"""Of a thread's counters (`close_writer`), those to which a write adds."""

PRECEDING: Final = b""
"""Stands in a row for a parent that is the row before it, by id."""


@operation
def put_checkpoint(
    key: ThreadKey,
    namespace: str,
    packed: PackedCheckpoint,
    *,
    now: int,
    indexes: Indexes,
    codec: Codec,
    times: Times | None = None,
    origin: Origin | None = None,
) -> Op[None]:
    """Store a checkpoint; one with the same id is replaced.

    Args:
        key: The thread; it is made if there is none.
        namespace: The checkpoint namespace; empty for the root.
        packed: The checkpoint.
        now: Unix milliseconds.
        indexes: What this process knows.
        codec: Reads and writes items.
        times: What counts in place of now, where it was made earlier.
        origin: The checkpoint that it follows, where a run puts it.

    Raises:
        ThreadNotFound: The thread belongs to another owner.
        ThreadDeleted: The thread was deleted while the run was under way.
        HeadConflict: It must follow the newest checkpoint, and another than the expected one is that.
    """
    steps = packed.parent or "", packed.id
    writer = yield from open_writer(key, *steps, now=now, indexes=indexes, codec=codec, times=times, born=packed.id, origin=origin)
    space = yield from ensure_namespace(writer, namespace)
    if packed.follows_head:
        yield from _require_head(key, writer, packed)
    inherited = yield from _inherited(writer, space, packed)
    refs: dict[str, ValueRef] = {}
    for channel in packed.order:
        if channel in packed.values:
            refs[channel] = yield from store_value(writer, packed.values[channel], (space, channel))
        elif channel in inherited:
            refs[channel] = inherited[channel]
        else:
            refs[channel] = yield from store_value(writer, packed.carried[channel](), (space, channel))
    header = Header(packed.v, packed.ts, packed.versions, packed.seen, packed.updated, refs, packed.extra, packed.details)
    checkpoint = encode_id(packed.id)
    parent = None if packed.parent is None else encode_id(packed.parent)
    root = origin.id if origin is not None and origin.namespace == ROOT else None
    newest = yield from store_header(writer, space, checkpoint, parent, header, step=packed.step, label=packed.label, root=root)
    if newest and space == 0:
        writer.final = header if is_at_rest(header, codec) else None
        # Not before the graph has looked at the first prompt: it may mark it as one that holds a sensitive value.
        yield from keep_title(writer, refs, ready=(packed.step or 0) > 0 or writer.final is not None)
    yield from close_writer(writer, (longest_list(refs), packed.waiting_for) if newest and space == 0 else None)
    indexes.account(writer.index)


def store_header(
    writer: Writer,
    space: int,
    checkpoint: bytes,
    parent: bytes | None,
    header: Header,
    *,
    step: int | None,
    label: bytes,
    root: bytes | None = None,
) -> Op[bool]:
    """Write a checkpoint's row, and before it what the writer has queued; whether it is now the newest of its namespace.

    Args:
        writer: What is written.
        space: The namespace.
        checkpoint: Its id.
        parent: The id of the one before it.
        header: What it holds.
        step: Its metadata's.
        label: The metadata that can be searched for.
        root: The root's checkpoint in whose step a run puts it.

    Raises:
        InvalidInput: It names more messages than can be read.
    """
    try:
        require_countable(header.values.values())
    except ValueError as error:
        raise InvalidInput(f"a checkpoint cannot be stored, because {error}: keep shorter lists, or fewer of them") from None
    encoded = encode_header(header, checkpoint)
    pattern = writer.intern_pattern(encoded.pattern)
    thread = writer.thread.number
    newest = yield from find_newest_id(writer.index, space)
    key, is_newest = yield from _key_for(writer, space, checkpoint, parent, newest, root)
    columns = {
        "namespace": space,
        "id": checkpoint,
        "parent": parent,
        "step": step,
        "label": writer.intern(label),
        "shape": writer.intern(encoded.shape),
        "pattern": pattern,
        "body": pack(encoded.body if pattern is not None else [encoded.pattern, *encoded.body]),
        "own_key": None if key == checkpoint else key,
    }
    columns["crc"] = checks.checkpoint_check(thread, tuple(columns.values()))
    yield from writer.flush()
    ahead = newest is None or newest.key < key
    if newest is not None and key < newest.key:
        yield from execute(sql.NAME_PRECEDING, thread=thread, namespace=space, key=key)
    # A parent that is the preceding row is not written out: it mostly is.
    written = PRECEDING if ahead and newest is not None and parent == newest.id else parent
    place = {"thread": thread, "key": key, "given_id": None if key == checkpoint else checkpoint}
    expected = STORED if ahead else NONE if (space, checkpoint) in writer.index.headers else None
    new = yield Statement(sql.INSERT_CHECKPOINT, {**columns, **place, "parent": written}, expected)
    if not new:
        yield from execute(sql.REPLACE_CHECKPOINT, **columns, **place)
        writer.thread.generation = writer.index.generation = writer.thread.generation + 1
    writer.index.learn_header(space, checkpoint, header)
    if writer.index.expected is not None:
        _expect_checkpoint(writer, space, columns, new=bool(new), newest=is_newest)
    return is_newest


def _key_for(
    writer: Writer, space: int, checkpoint: bytes, parent: bytes | None, newest: Newest | None, root: bytes | None
) -> Op[tuple[bytes, bool]]:
    """The key of a checkpoint that is to be stored, and whether it is the newest of its namespace then.

    What follows the newest is the newest, whatever its id says: the clock of the machine that made the
    id may be behind. A subgraph's first follows the root's that it names (`_is_behind`). Any other
    checkpoint with a lower id is a branch, and comes where its id puts it. One that is put again
    keeps its key.
    """
    if newest is None:
        is_behind = root is not None and (yield from _is_behind(writer, checkpoint, root))
        return ((yield from _key_behind_all(writer)) if is_behind else checkpoint), True
    if newest.key < checkpoint:
        return checkpoint, True
    if newest.id == checkpoint:
        return newest.key, True
    stored = yield from fetch_one(sql.SELECT_KEY, thread=writer.thread.number, namespace=space, id=checkpoint)
    if stored is not None:
        return stored[0], False
    if parent != newest.id:
        return checkpoint, False
    return (yield from _key_behind_all(writer)), True


def _is_behind(writer: Writer, checkpoint: bytes, root: bytes) -> Op[bool]:
    """Whether a subgraph's first checkpoint was made after the root's newest, and has a lower id.

    The root's checkpoint that it names may still be on its way: it follows the newest then.
    """
    head = yield from find_newest_id(writer.index, 0)
    if head is None or checkpoint > head.key:
        return False
    if head.id == root:
        return True
    return not (yield from fetch(sql.SELECT_KEY, thread=writer.thread.number, namespace=0, id=root))


def _key_behind_all(writer: Writer) -> Op[bytes]:
    """A key behind the newest of all namespaces: what a subgraph did before this step comes before it."""
    keys = yield from fetch(sql.SELECT_LATEST_KEYS, thread=writer.thread.number)
    return key_behind(max(key for (key,) in keys if key is not None))


def key_of(row: Row) -> bytes:
    """The key of a checkpoint, from its row (`statements.CHECKPOINT_COLUMNS`): what a thread's checkpoints are in the order of."""
    key: bytes = row[0] if row[-2] is None else row[-2]
    return key


def _expect_checkpoint(writer: Writer, space: int, columns: Mapping[str, Any], *, new: bool, newest: bool) -> None:
    """Expect a checkpoint to be there as it has been stored."""
    expected = writer.index.expected
    assert expected is not None
    expected.generation = writer.thread.generation
    if new:
        expected.begin_writes(space, columns["id"])
    if newest:
        expected.learn_newest(space, _CHECKPOINT(columns))


def _require_head(key: ThreadKey, writer: Writer, packed: PackedCheckpoint) -> Op[None]:
    """Refuse a checkpoint if the root's newest one is not the expected one; the same again is its own."""
    newest = yield from find_newest_id(writer.index, 0)
    found = None if newest is None else decode_id(newest.id)
    if found not in (packed.expected_head, packed.id):
        raise HeadConflict(key.id, packed.expected_head, found)


# -- parts -------------------------------------------------------------------------------------------------------------------------------


def open_writer(
    key: ThreadKey,
    *steps: str,
    now: int,
    indexes: Indexes,
    codec: Codec,
    times: Times | None = None,
    born: str | None = None,
    origin: Origin | None = None,
) -> Op[Writer]:
    """What a write needs.

    Args:
        key: The thread; it is made if there is none.
        steps: The checkpoints whose following step it is a part of (`Writer.late`).
        now: Unix milliseconds.
        indexes: What this process knows.
        codec: Reads and writes items.
        times: What counts in place of now, where it was made earlier.
        born: Id of the checkpoint that begins the thread, if that is what is written.
        origin: The checkpoint that a write of a run builds on (`late_writes`).
    """
    made, created, updated = (now, now, now) if times is None else (times.made, times.created, times.updated)
    first = origin.id if origin is not None else None if born is None else encode_id(born)
    thread = yield from ensure_thread(key, now=created, indexes=indexes, born=first, origin=origin)
    index = indexes.of(thread.number, thread.generation, codec)
    if origin is not None:
        yield from require_origin(index, key.id, thread.born, origin, indexes.late_writes)
    yield from catch_up(index, thread, codec)
    late = [index.late_of(encode_id(step)) for step in steps]
    return Writer(thread, key.id, index, indexes, codec, now=made, late=late, updated=updated)


def close_writer(writer: Writer, head: tuple[int | None, str | None] | None) -> Op[None]:
    """Write the thread's counters.

    Args:
        writer: What was written.
        head: Longest list of messages and awaited parameter of the root's newest checkpoint, if that is what was written.
    """
    thread = writer.thread
    minute = max(thread.active_at, writer.updated // MINUTE_MS)
    if minute != thread.active_at or writer.title is not None or writer.tool is not None:
        yield from execute(sql.DESCRIBE_THREAD, thread=thread.number, active_at=minute, **writer.description())
        thread.active_at = minute
        if thread.untitled:
            thread.untitled, thread.titled = int(writer.title is None), 0 if writer.titled_by is None else writer.titled_by + 1
    if thread.indexed is not None:
        yield from keep_indexed(writer)
    counters = {
        "thread": thread.number,
        "now": writer.updated,
        "indexed": thread.indexed,
        "generation": thread.generation,
        "next_item": thread.next_item,
        "next_value": thread.next_value,
        "next_word": thread.next_word,
        "next_namespace": thread.next_namespace,
        "items": writer.added_items,
        "tokens": writer.added_tokens,
    }
    if head is not None:
        yield Closing(sql.UPDATE_THREAD_HEAD, counters | {"head_messages": head[0], "waiting_for": head[1]}, sums=_SUMS)
    else:
        yield Closing(sql.UPDATE_THREAD, counters, sums=_SUMS)
    if writer.indexes.speculates:
        writer.indexes.keep_row(writer.thread_id, thread.row())
    if head is not None and writer.index.expected is not None:
        writer.index.expected.waiting = (head[1],)


def ensure_namespace(writer: Writer, name: str) -> Op[int]:
    """A namespace's number within its thread, given at its first write."""
    thread = writer.thread
    known = yield from find_namespace(writer.index, name, end=thread.next_namespace)
    if known is not None:
        return known
    number = thread.next_namespace
    thread.next_namespace = number + 1
    check = checks.check_of(thread.number, number, name)
    yield Batch(sql.INSERT_NAMESPACE, ({"thread": thread.number, "number": number, "name": name, "crc": check},))
    writer.index.learn_namespace(name, number)
    if writer.index.expected is not None:
        writer.index.expected.learn_newest(number, None)
    return number


def _inherited(writer: Writer, space: int, packed: PackedCheckpoint) -> Op[dict[str, ValueRef]]:
    """References for the channels that the checkpoint carries on at the same version: the parent's, or its own if it is put again."""
    found: dict[str, ValueRef] = {}
    for checkpoint in (packed.parent, packed.id):
        missing = [channel for channel in packed.carried if channel not in found]
        if not missing or checkpoint is None:
            continue
        header = yield from read_header(writer.thread, writer.index, space, encode_id(checkpoint))
        if header is not None:
            versions = header.versions
            found |= {
                channel: header.values[channel]
                for channel in missing
                if channel in header.values and versions.get(channel) == packed.versions.get(channel)
            }
    return found


def store_value(writer: Writer, value: PackedValue, place: tuple[int, str], *, whole: bool = True) -> Op[ValueRef]:
    """Store what of a value is new.

    Args:
        writer: Where new rows go.
        value: The value.
        place: Namespace and channel.
        whole: Whether it is the channel's value, not what a task adds to it.
    """
    known = writer.index.lists.get(place) if whole and value.body is None else None
    runs, nameless = yield from resolve(writer, value.messages, known)
    if value.body is None:
        if whole:
            writer.index.learn_list(place, value.messages, runs, nameless)
            return ValueRef(runs=runs, nameless=nameless, manifest=_store_manifest(writer, runs, place))
        return ValueRef(runs=runs, nameless=nameless)
    if len(value.body) <= INLINE_BYTES:
        return ValueRef(body=value.body, runs=runs, nameless=nameless)
    rows = _store_compound(writer, value, place, whole)
    if rows is not None:
        return ValueRef(row=rows[0], deltas=rows[1:])
    return ValueRef(row=writer.add_value(value.body), runs=runs, nameless=nameless)


def _store_manifest(writer: Writer, runs: Runs, place: tuple[int, str]) -> tuple[int, int] | None:
    """Where the beginning of a fragmented list stands; None for a list that is not."""
    row, known = writer.index.manifests.get(place, (0, ()))
    beginning = plan_row(known, runs)
    if not beginning:
        return None
    if beginning != known:
        row = writer.add_value(encode_runs(beginning))
        writer.index.learn_manifest(place, row, beginning)
    return row, len(beginning)


def _store_compound(writer: Writer, packed: PackedValue, place: tuple[int, str], whole: bool) -> tuple[int, ...] | None:
    """Store what of a large dict or list is new; its rows.

    None if it is no compound, or is what a task adds and the channel's value does not help.
    """
    stored = writer.index.compounds.get(place)
    if stored is not None and stored.body == packed.body and not packed.messages:
        return stored.rows()
    value = Compound.of(packed)
    if value is None:
        return None
    delta = plan_delta(stored, value) if stored is not None else None
    if stored is None or delta is None:
        if stored is not None and not whole:
            return None
        stored, delta = value, plan_base(value)
        # A value that was stored lately is found again: two that take turns, or one in two channels.
        row = writer.add_value(delta.body)
    else:
        row = writer.add_row(delta.body)
    compound = apply_delta(stored, value, delta, row)
    writer.index.learn_compound(place, compound)
    return compound.rows()


# -- headers -----------------------------------------------------------------------------------------------------------------------------


def read_header(thread: ThreadRow, index: ThreadIndex, space: int, checkpoint: bytes) -> Op[Header | None]:
    """A checkpoint's header; None if there is no such checkpoint."""
    known = index.headers.get((space, checkpoint))
    if known is not None:
        return known
    row = yield from fetch_one(sql.SELECT_CHECKPOINT, thread=thread.number, namespace=space, id=checkpoint)
    if row is None:
        return None
    return (yield from header_of(index, space, row))


def header_of(index: ThreadIndex, space: int, row: Row) -> Op[Header]:
    """The header that a checkpoint row (`CHECKPOINT_COLUMNS`) holds.

    Raises:
        DamagedRow: It is not as it was written, or does not decode.
    """
    checkpoint, _, _, _, shape_number, pattern_number, body, _, check = row
    try:
        if check != checks.checkpoint_check(index.number, (space, *row[:-1])):
            raise ValueError(checks.CHANGED)
        known = index.headers.get((space, checkpoint))
        if known is not None:
            return known
        shape = yield from read_word(index, shape_number)
        pattern = None if pattern_number is None else (yield from read_pattern(index, pattern_number))
        fields = unpack(body)
        if pattern is None:
            pattern, *fields = fields
        header = decode_header(shape, pattern, fields, checkpoint)
        for channel, ref in header.values.items():
            if ref.manifest is not None:
                beginning = yield from _read_manifest(index, (space, channel), ref.manifest[0])
                header = replace(header, values={**header.values, channel: ref.with_beginning(beginning)})
        require_countable(header.values.values())
    except DamagedRow:
        raise
    except Exception as error:
        pass_on(error)
        raise damaged_checkpoint(index.number, checkpoint, told(error)) from cause(error)
    index.learn_header(space, checkpoint, header)
    return header


def damaged_checkpoint(thread: int, checkpoint: bytes, what: str) -> DamagedRow:
    """The error that a checkpoint's row is not as it was written, or does not decode."""
    return DamagedRow(
        f"checkpoint {readable(checkpoint)} of thread number {thread} is damaged ({what}): other threads and checkpoints"
        " stay readable; fork from an earlier one, or delete the thread"
    )


def _read_manifest(index: ThreadIndex, place: tuple[int, str], row: int) -> Op[Runs]:
    known, runs = index.manifests.get(place, (None, ()))
    if known != row:
        runs = decode_runs((yield from read_body(index, row)))
        index.learn_manifest(place, row, runs)
    return runs
