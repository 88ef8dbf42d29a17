"""Operations that write checkpoints.

A checkpoint is its header: for what is unchanged since its parent it holds the parent's reference,
for what is new a reference to what is stored now. Values are found by reference only, never by
channel and version: versions collide across forks.

A write relies on the thread's cache (`cache`). The first of the changes that it queues is the
guard: it writes the thread's counters, and changes nothing if another process has written
meanwhile. Then the operation is `Stale`, and runs again on what it reads.
"""

from __future__ import annotations

from typing import Final

from langmem_ext.errors import HeadConflict, InvalidInput
from langmem_ext.messages.manifest import LONGEST_LIST, Runs, length_of
from langmem_ext.messages.packed import pack
from langmem_ext.storage.cache import KnownList, ThreadCache, ThreadCaches
from langmem_ext.storage.checkpoints import guard, sql
from langmem_ext.storage.checkpoints.late_writes import ROOT, Origin
from langmem_ext.storage.checkpoints.lookup import find_namespace, find_newest_id, read_header
from langmem_ext.storage.checkpoints.messages import catch_up, resolve
from langmem_ext.storage.checkpoints.thread_row import (
    ThreadRow,
    ensure_thread,
    require_origin,
    row_of,
)
from langmem_ext.storage.checkpoints.writer import Writer
from langmem_ext.storage.operation import ANY, ONE, Change, Op, Stale, execute, fetch, fetch_one
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.rows.checkpoint import (
    MOST_NAMED,
    Entry,
    Header,
    PackedCheckpoint,
    ValueRef,
    encode_header,
    require_countable,
)
from langmem_ext.storage.rows.clock import MINUTE_MS, Times
from langmem_ext.storage.rows.delta import Compound, apply_delta, plan_base, plan_delta
from langmem_ext.storage.rows.ids import decode_id, encode_id, key_behind, new_version
from langmem_ext.storage.rows.manifest import MAX_RUNS, encode_runs, plan_row
from langmem_ext.storage.rows.pending_work import is_at_rest
from langmem_ext.storage.search.index import keep_indexed
from langmem_ext.storage.threads.title import keep_title
from langmem_ext.types import Codec, PackedValue, ThreadKey

INLINE_BYTES: Final = 64
"""A value's body up to this size is stored in the row that refers to it; a larger one has a row of
its own, written once."""

MOST_LISTS: Final = MOST_NAMED // LONGEST_LIST
"""The messages that so many lists name need not be counted: they can be read."""

PRECEDING: Final = b""
"""Stored in place of a parent that is the row before, by id."""


def put_checkpoint(
    key: ThreadKey,
    namespace: str,
    packed: PackedCheckpoint,
    *,
    now: int,
    caches: ThreadCaches,
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
        caches: The caches of this process.
        codec: Reads and writes items.
        times: When it was made, if that was earlier than now.
        origin: The checkpoint that it follows, if a run puts it.

    Raises:
        ThreadNotFound: The thread belongs to another owner.
        ThreadDeleted: The thread was deleted during the run.
        HeadConflict: It must follow the newest checkpoint, and that is not the expected one.
    """
    writer = yield from open_writer(
        key, now=now, caches=caches, codec=codec, times=times, born=packed.id, origin=origin
    )
    space = 0 if namespace == "" else (yield from ensure_namespace(writer, namespace))
    if packed.follows_head:
        yield from _require_head(key, writer, packed)
    cache, header = writer.cache, packed.header
    entries: dict[str, Entry] = {}
    whole: dict[str, ValueRef] = {}
    for channel, value in packed.values.items():
        if not isinstance(value, PackedValue):
            carrier = yield from _find_carrier(cache, space, packed, channel)
            if carrier is not None:
                entries[channel] = carrier.entries[channel]
                if channel in carrier.whole:
                    whole[channel] = carrier.whole[channel]
                continue
            value = value()
        elif value.body is not None and not value.messages and len(value.body) <= INLINE_BYTES:
            entries[channel] = [value.body]
            continue
        entries[channel] = entry = yield from store_value(writer, value, (space, channel))
        if len(entry) > 1 and type(entry[1]) is dict:
            ref = cache.lists[space, channel].whole
            if ref is not None:
                whole[channel] = ref
    header.entries, header.whole, header.names = entries, whole, (packed.id, packed.parent)
    checkpoint = encode_id(packed.id)
    parent = None if packed.parent is None else encode_id(packed.parent)
    root = origin.id if origin is not None and origin.namespace == ROOT else None
    newest = yield from store_header(
        writer, space, checkpoint, parent, header, step=packed.step, label=packed.label, root=root
    )
    yield from close_writer(
        writer, header if newest and space == 0 else None, packed.waiting_for, step=packed.step or 0
    )


def _find_carrier(
    cache: ThreadCache, space: int, packed: PackedCheckpoint, channel: str
) -> Op[Header | None]:
    """The header with the value that a channel carries on at the same version.

    It is the parent's, or the checkpoint's own if it is put again.
    """
    version = packed.header.versions.get(channel)
    for name in (packed.parent, packed.id):
        if name is None:
            continue
        checkpoint = encode_id(name)
        header = cache.headers.get((space, checkpoint))
        if header is None:
            header = yield from read_header(cache, space, checkpoint)
        if (
            header is not None
            and channel in header.entries
            and header.versions.get(channel) == version
        ):
            return header
    return None


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
    """Queue a checkpoint's row; whether it is now the newest of its namespace.

    Args:
        writer: Collects what is written.
        space: The namespace.
        checkpoint: The checkpoint's id.
        parent: The id of the checkpoint before it.
        header: What it holds.
        step: The metadata's step.
        label: The metadata that can be searched for.
        root: The root's checkpoint in whose step a run puts it.

    Raises:
        InvalidInput: It names more messages than can be read.
    """
    cache, thread = writer.cache, writer.thread.number
    lists = sum(map((1).__lt__, map(len, header.entries.values())))  # behind a value, its runs
    if lists > MOST_LISTS:
        _require_readable(header)
    form, own = encode_header(header, checkpoint)
    word = writer.intern(form, pattern=True)
    body = pack(own if word is not None else [form, *own])
    newest = (
        cache.newest[space] if space in cache.newest else (yield from find_newest_id(cache, space))
    )
    if newest is not None and newest[1] < checkpoint:
        key, is_newest, exists = checkpoint, True, False
    else:
        key, is_newest, exists = yield from _key_for(
            writer, space, checkpoint, parent, newest, root
        )
    # The column `id` holds the key, which orders rows; `given_id` the id, where that is another.
    columns = (parent, step, writer.intern(label), word, body)
    own_id, own_key = (None, None) if key == checkpoint else (checkpoint, key)
    check = checks.checkpoint_check(thread, (space, checkpoint, *columns, own_key))
    if newest is not None and newest[1] >= key:
        yield from execute(sql.NAME_PRECEDING, thread=thread, namespace=space, key=key)
    elif newest is not None and newest[0] == parent:
        parent = PRECEDING  # not written out: it mostly is
    row = (thread, space, key, own_id, parent, *columns[1:], check)
    if exists:
        writer.changes.append((sql.REPLACE_CHECKPOINT, row, ONE))
        writer.thread.generation = cache.generation = writer.thread.generation + 1
    else:
        writer.changes.append((sql.INSERT_CHECKPOINT, row, ANY))
    if is_newest:
        cache.newest[space] = checkpoint, key
    header.row = (checkpoint, *columns, own_key, check)
    cache.learn_header(space, checkpoint, header)
    return is_newest


def _require_readable(header: Header) -> None:
    try:
        require_countable(header.values.values())
    except ValueError as error:
        raise InvalidInput(
            f"a checkpoint cannot be stored, because {error}: keep shorter lists, or fewer of them"
        ) from None


def _key_for(
    writer: Writer,
    space: int,
    checkpoint: bytes,
    parent: bytes | None,
    newest: tuple[bytes, bytes] | None,
    root: bytes | None,
) -> Op[tuple[bytes, bool, bool]]:
    """A checkpoint's key, whether it is its namespace's newest, and whether it is already stored.

    A checkpoint that follows the newest is the newest, whatever its id says: the clock of the
    machine that made the id may be behind. A subgraph's first follows the root's checkpoint that it
    names (`_is_behind`). Any other checkpoint with a lower id is a branch, and is ordered by its
    id. One that is put again keeps its key.
    """
    if newest is None:
        is_behind = root is not None and (yield from _is_behind(writer, checkpoint, root))
        return ((yield from _key_behind_all(writer)) if is_behind else checkpoint), True, False
    if newest[1] < checkpoint:
        return checkpoint, True, False
    if newest[0] == checkpoint:
        return newest[1], True, True
    stored = yield from fetch_one(
        sql.SELECT_KEY, thread=writer.thread.number, namespace=space, id=checkpoint
    )
    if stored is not None:
        return stored[0], False, True
    if parent != newest[0]:
        return checkpoint, False, False
    return (yield from _key_behind_all(writer)), True, False


def _is_behind(writer: Writer, checkpoint: bytes, root: bytes) -> Op[bool]:
    """Whether a subgraph's first checkpoint was made after the root's newest, and has a lower id.

    The root's checkpoint that it names may not be stored yet: then it follows the newest.
    """
    head = yield from find_newest_id(writer.cache, 0)
    if head is None or checkpoint > head[1]:
        return False
    if head[0] == root:
        return True
    return not (yield from fetch(sql.SELECT_KEY, thread=writer.thread.number, namespace=0, id=root))


def _key_behind_all(writer: Writer) -> Op[bytes]:
    """A key behind the newest of all namespaces, and so behind a subgraph's earlier steps.

    Raises:
        Stale: There is none. The cache may hold what an operation wrote that was then rolled back,
            and this query comes before the guard that would notice.
    """
    rows = yield from fetch(sql.SELECT_LATEST_KEYS, thread=writer.thread.number)
    keys = [key for (key,) in rows if key is not None]
    if not keys:
        raise Stale
    return key_behind(max(keys))


def _require_head(key: ThreadKey, writer: Writer, packed: PackedCheckpoint) -> Op[None]:
    """Refuse a checkpoint unless the root's newest is the expected one or the checkpoint itself."""
    newest = yield from find_newest_id(writer.cache, 0)
    head_id = None if newest is None else decode_id(newest[0])
    if head_id not in (packed.expected_head, packed.id):
        if writer.warm:
            raise Stale  # it may be the expected one by now
        raise HeadConflict(key.id, packed.expected_head, head_id)


# -- parts -----------------------------------------------------------------------------------------


def open_writer(
    key: ThreadKey,
    *,
    now: int,
    caches: ThreadCaches,
    codec: Codec,
    times: Times | None = None,
    born: str | None = None,
    origin: Origin | None = None,
) -> Op[Writer]:
    """What a write needs of a thread, from its cache or else read.

    Args:
        key: The thread; it is made if there is none.
        now: Unix milliseconds.
        caches: The caches of this process.
        codec: Reads and writes items.
        times: When the thing written was made, if that was earlier than now.
        born: Id of the checkpoint that begins the thread, if that is what is written.
        origin: The checkpoint that a write of a run builds on (`storage.checkpoints.late_writes`).
    """
    stored, created, updated = (
        (now, now, now) if times is None else (times.made, times.created, times.updated)
    )
    cache, warm = caches.take(key.id, codec), False
    if cache is not None and cache.row is not None and key.owner in (None, cache.row[1]):
        warm = (
            origin is None
            or (cache.namespaces.get(origin.namespace), origin.id) in cache.headers
            or caches.late_writes.is_timely(key.id, cache.row[2], origin)
        )
    if warm and cache is not None and cache.row is not None:
        thread = cache.thread or ThreadRow(*cache.row)
        if not cache.met:
            caches.late_writes.met(key.id, thread.born)
            cache.met = True
    else:
        if cache is not None:
            caches.keep(cache)
        first = origin.id if origin is not None else None if born is None else encode_id(born)
        thread, made = yield from ensure_thread(
            key, now=created, caches=caches, born=first, origin=origin
        )
        cache = caches.of(key.id, thread.row(), codec)
        if made:
            cache.newest[0], cache.knows_tasks, cache.knows_notes = None, True, True
        else:
            caches.late_writes.met(key.id, thread.born)
            cache.met = True
        if origin is not None:
            yield from require_origin(cache, key, thread.born, origin, caches.late_writes)
    if cache.items_end < thread.next_item or cache.words_end < thread.next_word:
        yield from catch_up(cache, thread, codec)
    cache.thread = None  # if the writer is not closed, the cache is left without it
    return Writer(thread, cache, caches, codec, stored, updated, warm)


def close_writer(
    writer: Writer, head: Header | None, waiting_for: str | None = None, *, step: int = 1
) -> Op[None]:
    """Write the thread's counters, then all that is queued.

    Writing the counters fails if another process has written to the thread.

    Args:
        writer: Holds what is queued.
        head: The root's newest checkpoint, if that is what was written.
        waiting_for: The parameter that it waits for.
        step: The metadata's step. Before step 1 a graph has not seen its first prompt, which it may
            yet mark as one that holds a sensitive value.
    """
    thread, cache = writer.thread, writer.cache
    length: int | None = None
    if head is not None:
        length, runs = longest_runs_of(head)
        if thread.untitled or thread.indexed is not None:
            writer.final = head if is_at_rest(head, writer.codec) else None
        if (
            thread.untitled
            # The list has lost the message that gave the title.
            or (thread.titled and not (runs and runs[0] <= thread.titled - 1 < runs[1]))
        ):
            yield from keep_title(writer, runs, ready=step > 0 or writer.final is not None)
    minute = max(thread.active_at, writer.updated // MINUTE_MS)
    if minute != thread.active_at or writer.title is not None or writer.tool is not None:
        description = (minute, writer.tool, writer.title, writer.titled_by, thread.number)
        writer.changes.append((sql.DESCRIBE_THREAD, description, ANY))
        thread.active_at = minute
        if thread.untitled:
            thread.untitled, thread.titled = (
                int(writer.title is None),
                0 if writer.titled_by is None else writer.titled_by + 1,
            )
    indexer = None if thread.indexed is None else (yield from keep_indexed(writer))
    before, thread.version = thread.version, new_version()
    counters = (
        thread.version,
        writer.updated,
        thread.generation,
        thread.next_item,
        thread.next_value,
        thread.next_word,
        thread.next_namespace,
        thread.indexed,
        writer.added_items,
        writer.added_tokens,
        thread.number,
        before,
    )
    change: Change = guard.GUARD, counters, ONE
    if head is not None:
        change = guard.GUARD_HEAD, (*counters, length, waiting_for), ONE
    yield [change, *writer.changes]
    if indexer is not None:
        yield from indexer.finish()
    cache.row, cache.thread = row_of(thread), thread
    cache.items_end, cache.words_end = thread.next_item, thread.next_word
    writer.caches.keep(cache, written=True)


def longest_runs_of(header: Header) -> tuple[int | None, Runs]:
    """Length and runs of the longest list of messages among a checkpoint's values; None if none."""
    longest: int | None = None
    longest_runs: Runs = ()
    for channel, entry in header.entries.items():
        if entry[0] is None:
            end = len(entry) - (type(entry[-1]) is list)
            if channel in header.whole:
                runs = header.whole[channel].runs
                length = length_of(runs)
            elif end == 3:
                runs, length = (entry[1], entry[2]), entry[2] - entry[1]
            else:
                runs = tuple(entry[1:end])
                length = length_of(runs)
            if longest is None or length > longest:
                longest, longest_runs = length, runs
    return longest, longest_runs


def ensure_namespace(writer: Writer, name: str) -> Op[int]:
    """A namespace's number within its thread; a new namespace gets one."""
    cache, thread = writer.cache, writer.thread
    number = cache.namespaces.get(name)
    if number is None:
        number = (
            None
            if thread.next_namespace == len(cache.namespaces)
            else (yield from find_namespace(cache, name))
        )
    if number is not None:
        return number
    number = thread.next_namespace
    thread.next_namespace = number + 1
    values = (thread.number, number, name, checks.check_of(thread.number, number, name))
    writer.changes.append((sql.INSERT_NAMESPACE, values, ANY))
    cache.learn_namespace(name, number)
    cache.newest[number] = None
    return number


def store_value(
    writer: Writer, value: PackedValue, place: tuple[int, str], *, whole: bool = True
) -> Op[Entry]:
    """Store what is new in a value; the reference to it.

    Args:
        writer: Where new rows go.
        value: The value.
        place: Namespace and channel.
        whole: Whether it is the channel's value, not what a task adds to it.
    """
    body = value.body
    if body is None:
        known = writer.cache.lists.get(place) if whole else None
        runs, nameless = yield from resolve(writer, value.messages, known)
        if whole:
            return _entry_of_list(writer, value, place, known, runs, nameless)
        return [None, *runs, list(nameless)] if nameless else [None, *runs]
    where: int | bytes | list[int] = body
    if len(body) > INLINE_BYTES:
        rows = (
            _store_compound(writer, value, place, whole)
            if value.keyed or value.count is not None
            else None
        )
        if rows is not None:
            return [list(rows)]
        where = writer.add_value(body)
    if not value.messages:
        return [where]
    runs, nameless = yield from resolve(writer, value.messages)
    return [where, *runs, list(nameless)] if nameless else [where, *runs]


def _entry_of_list(
    writer: Writer,
    value: PackedValue,
    place: tuple[int, str],
    known: KnownList | None,
    runs: Runs,
    nameless: Runs,
) -> Entry:
    """The reference to a channel's list of messages, which is cached from now on."""
    if known is not None and known.runs == runs and known.nameless == nameless:
        return known.entry
    manifest = _store_manifest(writer, runs, place) if len(runs) > MAX_RUNS else None
    ref = None if manifest is None else ValueRef(runs=runs, nameless=nameless, manifest=manifest)
    entry: Entry = (
        [None, *runs] if manifest is None else [None, dict([manifest]), *runs[manifest[1] :]]
    )
    if nameless:
        entry.append(list(nameless))
    writer.cache.learn_list(
        place, KnownList(value.messages, runs, nameless, entry, ref, value.templates)
    )
    return entry


def _store_manifest(writer: Writer, runs: Runs, place: tuple[int, str]) -> tuple[int, int] | None:
    """The row of a fragmented list's beginning, and its length; None for any other list."""
    row, known = writer.cache.manifests.get(place, (0, ()))
    beginning = plan_row(known, runs)
    if not beginning:
        return None
    if beginning != known:
        row = writer.add_value(encode_runs(beginning))
        writer.cache.learn_manifest(place, row, beginning)
    return row, len(beginning)


def _store_compound(
    writer: Writer, packed: PackedValue, place: tuple[int, str], whole: bool
) -> tuple[int, ...] | None:
    """Store what is new in a large dict or list; its rows.

    None if it is no compound, or if it is what a task adds and there is no delta to the channel's
    value.
    """
    stored = writer.cache.compounds.get(place)
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
        # A value that was stored lately is found again: if two values alternate, or two channels
        # hold the same one.
        row = writer.add_value(delta.body)
    else:
        row = writer.add_row(delta.body)
    compound = apply_delta(stored, value, delta, row)
    writer.cache.learn_compound(place, compound)
    return compound.rows()
