"""Operations that read checkpoints: one, a page of them, or a channel's history.

They return bytes; the caller builds the objects, outside the transaction.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Final, TypeAlias

from langmem_ext._internal.interruption import pass_on
from langmem_ext.errors import DamagedRow, cause, safe_text
from langmem_ext.messages.manifest import merged, ranges_of
from langmem_ext.messages.size_limits import MEMORY, SMALL, is_in_proportion, packed_size
from langmem_ext.storage.cache import KnownList, ThreadCache, ThreadCaches
from langmem_ext.storage.checkpoints import sql
from langmem_ext.storage.checkpoints.lookup import (
    find_checkpoint,
    find_namespace,
    find_newest,
    find_writes,
    header_of,
    key_of,
    learn_all_namespaces,
    learn_words,
    missing_namespace,
    read_body,
    read_value,
    read_word,
)
from langmem_ext.storage.checkpoints.messages import (
    catch_up_words,
    gather_messages,
    load_items,
    missing_items,
    out_of_proportion,
)
from langmem_ext.storage.checkpoints.thread_row import (
    THREAD_WIDTH,
    WORDS_AT,
    find_thread,
    require_row,
)
from langmem_ext.storage.checkpoints.writes import WriteEntry, order_of_write, read_writes
from langmem_ext.storage.operation import (
    Command,
    Op,
    Row,
    Rows,
    Statement,
    Together,
    both,
    fetch,
    operation,
    side_by_side,
)
from langmem_ext.storage.rows.checkpoint import Header, ValueRef, entry_of, require_countable
from langmem_ext.storage.rows.ids import decode_id, encode_id, readable, thread_number
from langmem_ext.storage.schema.dialect import label, scalar
from langmem_ext.types import (
    Codec,
    DeltaHistory,
    PackedValue,
    Snapshot,
    StoredCheckpoint,
    StoredWrite,
    ThreadKey,
)


class Distrusted(DamagedRow):
    """A checkpoint names rows so often that reading it may fill the memory.

    An application may mean that, and so may an attacker.
    """


@dataclass(slots=True)
class Reader:
    """One thread being read.

    Attributes:
        thread_id, cache, codec: The thread's.
        bodies: The values that were read already, by their rows.
        ahead: Value rows that were read ahead of them.
        joined: The values of the checkpoint being read that were put together from several rows.
        distrusts: Whether all values of a checkpoint must be in proportion together
            (`Distrusted`), and not only each by itself.
    """

    thread_id: str
    cache: ThreadCache
    codec: Codec
    bodies: dict[tuple[int, ...], bytes | None] = field(default_factory=dict)
    ahead: dict[int, bytes] = field(default_factory=dict)
    joined: list[tuple[bytes, tuple[int, ...]]] = field(default_factory=list)
    distrusts: bool = False


def get_checkpoint(
    key: ThreadKey,
    namespace: str,
    checkpoint_id: str | None,
    *,
    caches: ThreadCaches,
    codec: Codec,
    moment: Callable[[], bytes] | None = None,
) -> Op[StoredCheckpoint | None]:
    """A checkpoint with its pending writes; None if it is not found.

    Without an id, it is the newest. If a run asks, `moment` makes an id
    (`storage.checkpoints.late_writes`).
    """
    cache = caches.take(key.id, codec)
    space = 0 if namespace == "" else None if cache is None else cache.namespaces.get(namespace)
    if space is None:
        if cache is not None:
            caches.keep(cache)
        located = yield from _look_up(key, namespace, checkpoint_id, caches, codec, moment)
        if located is None:
            return None
        reader, space, row = located
        writes = yield from find_writes(reader.cache, space, row[0])
    else:
        wanted = None if checkpoint_id is None else encode_id(checkpoint_id)
        read = (yield from _reread(key, space, wanted, cache, caches)) or (
            yield from _look(key, space, wanted, cache, caches, codec, moment)
        )
        if read is None:
            return None
        cache, row, writes = read
        if moment is not None and cache.row is not None:
            born = cache.row[2]
            if not cache.asked:
                caches.late_writes.met(key.id, born, moment())
                cache.met = cache.asked = True
            if row[0] is not None:
                caches.late_writes.read(key.id, born, row[0])
        if row[0] is None:
            caches.keep(cache)
            return None
        if wanted is None:
            cache.newest[space] = row[0], row[-2] or row[0]
        reader = Reader(key.id, cache, codec)
    stored = yield from assemble(reader, namespace, space, row, writes)
    caches.keep(reader.cache)
    return stored


def _reread(
    key: ThreadKey,
    space: int,
    wanted: bytes | None,
    cache: ThreadCache | None,
    caches: ThreadCaches,
) -> Op[tuple[ThreadCache, Row, Rows] | None]:
    """A checkpoint's remembered row, and its pending writes; None if the row must be read.

    It must, too, where a query costs a round trip: then everything is read at once.
    """
    if cache is None or cache.row is None or caches.remote:
        return None
    at = wanted if wanted is not None else (cache.newest.get(space) or (None,))[0]
    header = None if at is None else cache.headers.get((space, at))
    if header is None or header.row is None:
        return None
    rows = yield sql.SELECT_OWN_ROW, (key.id, key.owner)
    if not rows or rows[0] != cache.row:
        return None
    return cache, header.row, (yield sql.SELECT_WRITES, (cache.number, space, at))


def _look(
    key: ThreadKey,
    space: int,
    wanted: bytes | None,
    cache: ThreadCache | None,
    caches: ThreadCaches,
    codec: Codec,
    moment: Callable[[], bytes] | None,
) -> Op[tuple[ThreadCache, Row, Rows] | None]:
    """A thread's cache, a checkpoint's row and its pending writes; None if there is no such thread.

    Where a query costs a round trip, all that is usually needed is read at once.

    Args:
        key: The thread.
        space: The namespace.
        wanted: The checkpoint; None for the newest.
        cache: The thread's cache, if it has one.
        caches: The caches of this process.
        codec: Reads and writes its items.
        moment: Makes an id if a run asks.
    """
    number = thread_number(key.id)
    look: Command = sql.LOOK_AT_NEWEST, (number, key.id, key.owner, space)
    likely, ahead, words = wanted, None, None
    if wanted is not None:
        look = sql.LOOK_AT_ID, (number, key.id, key.owner, space, wanted)
    elif cache is not None and (newest := cache.newest.get(space)) is not None:
        likely = newest[0]
    if not caches.remote:
        rows = yield look
    else:
        writes = (
            (sql.SELECT_NEWEST_WRITES, (number, space))
            if likely is None
            else (sql.SELECT_WRITES, (number, space, likely))
        )
        first = 0 if cache is None else cache.words_end
        of_words = Statement(sql.SELECT_WORDS_FROM, {"thread": number, "first": first})
        rows, ahead, words = yield Together((look, writes, of_words))
    if not rows:
        _note_missing(key.id, caches, moment if space == 0 and wanted is None else None)
        return None
    thread, row = rows[0][:THREAD_WIDTH], rows[0][THREAD_WIDTH:]
    if cache is None or cache.row != thread:
        require_row(thread, key)
        if cache is not None:
            caches.keep(cache)
        cache = caches.of(key.id, thread, codec)
    if cache.words_end < thread[WORDS_AT]:
        yield from _learn_new_words(cache, thread, words)
    if row[0] is None:
        return cache, row, ()
    if ahead is None or likely not in (None, row[0]):
        ahead = yield sql.SELECT_WRITES, (cache.number, space, row[0])
    return cache, row, ahead


def _note_missing(thread_id: str, caches: ThreadCaches, moment: Callable[[], bytes] | None) -> None:
    """Note that there is no such thread, and that a run which has asked for it may begin it."""
    caches.note_missing(thread_id)
    if moment is not None:
        caches.late_writes.begin(thread_id, moment())


def _learn_new_words(cache: ThreadCache, thread: Row, words: Rows | None) -> Op[None]:
    """Learn the words that are not known yet; some may have been read ahead."""
    if words and words[0][0] <= cache.words_end:
        learn_words(cache, words)
        cache.words_end = thread[WORDS_AT]
    else:
        yield from catch_up_words(cache, thread[0], thread[WORDS_AT])


def _look_up(
    key: ThreadKey,
    namespace: str,
    checkpoint_id: str | None,
    caches: ThreadCaches,
    codec: Codec,
    moment: Callable[[], bytes] | None = None,
) -> Op[tuple[Reader, int, Row] | None]:
    """A thread's reader, the namespace's number, the checkpoint's row; None if one is missing."""
    thread = yield from find_thread(key, caches)
    if thread is None:
        return None
    if moment is not None:
        caches.late_writes.met(key.id, thread.born, moment())
    reader = Reader(key.id, caches.of(key.id, thread.row(), codec), codec)
    space = yield from find_namespace(reader.cache, namespace)
    if space is None:
        return None
    yield from catch_up_words(reader.cache, thread.number, thread.next_word)
    if checkpoint_id is None:
        row = yield from find_newest(reader.cache, space)
    else:
        row = yield from find_checkpoint(reader.cache, space, encode_id(checkpoint_id))
    if row is None:
        return None
    if moment is not None:
        caches.late_writes.read(key.id, thread.born, row[0])
    return reader, space, row


def assemble(
    reader: Reader, namespace: str, space: int, row: Row, write_rows: Sequence[Row]
) -> Op[StoredCheckpoint]:
    """The checkpoint that a row holds."""
    cache = reader.cache
    checkpoint, parent, step, label, *_ = row
    header = cache.headers.get((space, checkpoint))
    if header is None or header.row != row:
        header = yield from header_of(cache, space, row)
    name, before = header.names or _name(header, checkpoint, parent)
    entries = (yield from read_entries(reader, write_rows)) if write_rows else []
    metadata = cache.bodies.get(label) or (yield from read_word(cache, label))
    values: dict[str, PackedValue] = {}
    left: list[str] = []
    for channel, place in header.entries.items():
        where = place[0]
        if len(place) == 1 and type(where) is bytes:
            values[channel] = PackedValue(body=where)
            continue
        known = cache.lists.get((space, channel)) if where is None else None
        if known is not None and known.entry == place:
            values[channel] = PackedValue(messages=known.packed, known=known)
            continue
        values[channel] = _UNREAD
        left.append(channel)
    reader.joined.clear()
    if left or entries:
        refs = [
            *(header.values[channel] for channel in left),
            *(entry.value for _, entry in entries),
        ]
        yield from _read_once(reader, refs)
        for channel in left:
            values[channel] = yield from read_packed(
                reader, header.values[channel], (space, channel)
            )
    writes = []
    for task, entry in entries:
        writes.append(
            StoredWrite(task, entry.channel, (yield from read_packed(reader, entry.value)))
        )
    if left or entries:
        packed = [*(values[channel] for channel in left), *(write.value for write in writes)]
        require_each(packed, (checkpoint, reader.thread_id))
    if reader.distrusts:
        all_refs = [*header.values.values(), *(entry.value for _, entry in entries)]
        _require_together(all_refs, [*values.values(), *(write.value for write in writes)])
    return StoredCheckpoint(
        thread=reader.thread_id,
        namespace=namespace,
        id=name,
        parent=before,
        v=header.v,
        ts=header.ts,
        versions=header.versions,
        seen=header.seen,
        updated=header.updated,
        values=values,
        extra=header.extra,
        label=metadata,
        step=step,
        details=header.details,
        writes=writes,
    )


_UNREAD: Final = PackedValue()


def _name(header: Header, checkpoint: bytes, parent: bytes | None) -> tuple[str, str | None]:
    header.names = decode_id(checkpoint), None if parent is None else decode_id(parent)
    return header.names


def _read_once(reader: Reader, refs: Sequence[ValueRef]) -> Op[None]:
    """Read all rows that values name, each row once."""
    if reader.distrusts:
        try:
            require_countable(refs)
        except ValueError as error:
            raise Distrusted(str(error)) from None
    cache = reader.cache
    runs = tuple(chain.from_iterable(merged(pair for ref in refs for pair in ranges_of(ref.runs))))
    rows = {
        row for ref in refs if ref.row is not None for row in (ref.row, *(ref.deltas or ()))
    } - reader.ahead.keys()
    missing = yield from missing_items(cache, reader.codec, runs)
    if not missing and not rows:
        return
    _, bodies = yield from both(
        side_by_side(
            [load_items(cache, reader.codec, numbers[0], numbers[-1] + 1) for numbers in missing]
        ),
        side_by_side([read_body(cache, row) for row in rows]),
    )
    reader.ahead.update(zip(rows, bodies, strict=True))


def require_each(values: Sequence[PackedValue], place: tuple[bytes, str]) -> None:
    """Require that each value is in proportion to its messages, as it was when it was stored.

    The limits are those of `messages.size_limits`.

    Args:
        values: The values.
        place: Ids of the checkpoint and of the thread that they are read for.

    Raises:
        DamagedRow: A value is out of proportion.
    """
    if not all([is_in_proportion([value.messages]) for value in values if value.messages]):
        raise _out_of_proportion(place)


def _require_together(refs: Sequence[ValueRef], values: Sequence[PackedValue]) -> None:
    """Require that values are in proportion to all the rows that they name together."""
    size = 0
    for value in values:
        size += sum(map(len, value.messages)) + len(value.body or b"")
    if size <= SMALL:
        return
    bodies = _uses(
        [(value.body, ref.rows()) for ref, value in zip(refs, values, strict=True) if value.body]
    )
    if not is_in_proportion([value.messages for value in values], bodies):
        raise Distrusted("it takes far more memory than its rows")


def _uses(bodies: Sequence[tuple[bytes, tuple[int, ...]]]) -> list[tuple[bytes, int]]:
    """Values' bodies, each with the highest number of values that share one of its rows."""
    uses = Counter(chain.from_iterable(rows for _, rows in bodies))
    return [(body, max([uses[row] for row in rows], default=1)) for body, rows in bodies]


def _out_of_proportion(place: tuple[bytes, str]) -> DamagedRow:
    checkpoint, thread_id = place
    return out_of_proportion(f"checkpoint {readable(checkpoint)} of thread {thread_id!r}")


def read_packed(
    reader: Reader, ref: ValueRef, place: tuple[int, str] | None = None
) -> Op[PackedValue]:
    """A value with its messages; `place` is its namespace and channel."""
    cache = reader.cache
    if ref.body is None and ref.row is None:
        cached = cache.find_list(place, ref.runs, ref.nameless) if place is not None else None
        if cached is not None:
            return PackedValue(messages=cached[0], known=cached[1])
        packed = yield from gather_messages(cache, reader.codec, ref.runs, ref.nameless)
        if place is None:
            return PackedValue(messages=packed)
        known = KnownList(
            packed, ref.runs, ref.nameless, entry_of(ref), None if ref.manifest is None else ref
        )
        cache.learn_list(place, known)
        return PackedValue(messages=packed, known=known)
    if ref.row is None:
        return PackedValue(messages=(yield from _messages_of(reader, ref)), body=ref.body)
    messages, body = yield from both(_messages_of(reader, ref), _body_of(reader, ref, place))
    return PackedValue(messages=messages, body=body)


def _messages_of(reader: Reader, ref: ValueRef) -> Op[list[Snapshot]]:
    return (
        (yield from gather_messages(reader.cache, reader.codec, ref.runs, ref.nameless))
        if ref.runs
        else []
    )


def _body_of(reader: Reader, ref: ValueRef, place: tuple[int, str] | None) -> Op[bytes | None]:
    rows = ref.rows()
    if rows not in reader.bodies:
        body = reader.bodies[rows] = yield from read_value(reader.cache, ref, place, reader.ahead)
        if reader.distrusts and ref.deltas and body is not None:
            # Each is a copy of its own, made before all can be checked together.
            reader.joined.append((body, rows))
            if packed_size(
                (), [body for body, _ in reader.joined]
            ) > MEMORY and not is_in_proportion((), _uses(reader.joined)):
                raise Distrusted("it takes far more memory than its rows")
    return reader.bodies[rows]


def read_entries(reader: Reader, rows: Sequence[Row]) -> Op[list[tuple[str, WriteEntry]]]:
    """The pending writes of rows, each with its task's id, ordered by task path, task id and index.

    That is LangGraph's order.
    """
    ordered: list[tuple[str, WriteEntry]] = []
    for row in rows:
        try:
            entries = yield from read_writes(reader.cache, row)
            task_id = decode_id(row[2])
        except Exception as error:
            pass_on(error)
            raise DamagedRow(
                f"the pending writes of task {readable(row[2])} in thread {reader.thread_id!r} are"
                f" damaged ({safe_text(error)}): other threads stay readable; fork from an earlier"
                " checkpoint, or delete the thread"
            ) from cause(error)
        reader.cache.learn_task(*row[:3])
        ordered += [(task_id, entry) for entry in entries]
    ordered.sort(key=order_of_write)
    return ordered


# -- pages -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Query:
    """Which checkpoints to list.

    Attributes:
        thread: The thread; None for all that the owner may see.
        owner: The caller's owner; None for any.
        namespace: The namespace; None for all.
        checkpoint_id: This checkpoint only.
        before: Checkpoints with a lower id only.
        labels: Scalars that the metadata must hold, by plain name.
        step: The metadata's step; None for any.
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
    """The last checkpoint of a page.

    Keys repeat across threads and namespaces, so all three are needed.
    """

    key: bytes
    thread: int
    namespace: int


Page: TypeAlias = tuple[list[StoredCheckpoint], Cursor | None]
"""A page of checkpoints, and where the next one begins; None after the last."""


@operation
def list_page(
    query: Query, cursor: Cursor | None, limit: int, *, caches: ThreadCaches, codec: Codec
) -> Op[Page]:
    """A page of checkpoints, newest id first."""
    statement, params = _page_statement(query, cursor)
    rows = yield from fetch(statement, **params, limit=limit)
    readers: dict[int, Reader] = {}
    for thread, thread_id, generation, version, *_ in rows:
        if thread not in readers:
            readers[thread] = Reader(
                thread_id, caches.borrow(thread_id, (thread, generation, version), codec), codec
            )
    strange = {row[0] for row in rows if row[4] not in readers[row[0]].cache.namespaces.values()}
    strange |= {thread for thread, reader in readers.items() if not reader.cache.words}
    yield from side_by_side([_learn_names(readers[thread].cache) for thread in strange])
    places = [
        (readers[thread].cache, space, checkpoint)
        for thread, _, _, _, space, checkpoint, *_ in rows
    ]
    written = yield from side_by_side([find_writes(*place) for place in places])
    page: list[StoredCheckpoint] = []
    for (thread, _, _, _, space, *row), writes in zip(rows, written, strict=True):
        reader = readers[thread]
        namespace = next(
            (name for name, number in reader.cache.namespaces.items() if number == space), None
        )
        if namespace is None:
            raise missing_namespace(reader.thread_id, space)
        page.append((yield from assemble(reader, namespace, space, tuple(row), writes)))
    for reader in readers.values():
        caches.keep(reader.cache)
    following = (
        Cursor(key_of(rows[-1][5:]), thread=rows[-1][0], namespace=rows[-1][4])
        if len(rows) == limit
        else None
    )
    return page, following


def _learn_names(cache: ThreadCache) -> Op[None]:
    """Learn a thread's namespaces, and its words if none is known.

    Each of its checkpoints names some words.
    """
    names = learn_all_namespaces(cache)
    yield from names if cache.words else both(names, _learn_all_words(cache))


def _learn_all_words(cache: ThreadCache) -> Op[None]:
    learn_words(cache, (yield from fetch(sql.SELECT_WORDS_FROM, thread=cache.number, first=0)))


def _page_statement(query: Query, cursor: Cursor | None) -> tuple[str, dict[str, Any]]:
    encoded = {"checkpoint_id": query.checkpoint_id, "before": query.before}
    params: dict[str, Any] = {
        "id": query.thread,
        "owner": query.owner,
        "namespace": query.namespace,
        "step": query.step,
        **{name: None if text is None else encode_id(text) for name, text in encoded.items()},
    }
    wheres = [
        condition for name, condition in sql.PAGE_CONDITIONS.items() if params[name] is not None
    ]
    if query.before is not None and query.thread is not None:
        wheres[wheres.index(sql.PAGE_CONDITIONS["before"])] = sql.PAGE_BEFORE
    if query.namespace == "":
        wheres[wheres.index(sql.PAGE_CONDITIONS["namespace"])] = "checkpoint.namespace = 0"
    for position, (name, value) in enumerate(query.labels.items()):
        # The caller checks again: here True is 1, and text that a database's JSON cannot hold is
        # not compared.
        text = json.dumps(int(value) if isinstance(value, bool) else value)
        if "\\u0000" not in text and "\\ud" not in text:
            wheres.append(
                f"{label(position)} IS NULL"
                if value is None
                else f"{label(position)} = {scalar(position)}"
            )
            params |= {f"name{position}": name, f"value{position}": text}
    if cursor is not None:
        wheres.append(sql.PAGE_AFTER)
        params |= {"at": cursor.key, "at_thread": cursor.thread, "at_namespace": cursor.namespace}
    condition = f" WHERE {' AND '.join(wheres)}" if wheres else ""
    return sql.SELECT_CHECKPOINT_PAGE.format(where=condition), params


# -- delta channels --------------------------------------------------------------------------------


@operation
def get_delta_history(
    key: ThreadKey,
    namespace: str,
    checkpoint_id: str | None,
    channels: Sequence[str],
    *,
    caches: ThreadCaches,
    codec: Codec,
) -> Op[dict[str, DeltaHistory]]:
    """What each channel contributed along a checkpoint's ancestors.

    That is the nearest stored value and the writes after it.
    """
    history = {channel: DeltaHistory() for channel in channels}
    located = yield from _look_up(key, namespace, checkpoint_id, caches, codec)
    if located is None:
        return history
    reader, space, target = located
    values: list[PackedValue] = []
    open_channels = set(channels)
    at = target[1]
    passed: set[bytes] = set()
    while at is not None and open_channels and at not in passed:
        passed.add(at)
        row = yield from find_checkpoint(reader.cache, space, at)
        if row is None:
            break
        header: Header = yield from header_of(reader.cache, space, row)
        writes = yield from find_writes(reader.cache, space, at)
        for task_id, entry in reversed((yield from read_entries(reader, writes))):
            if entry.channel in open_channels:
                values.append((yield from read_packed(reader, entry.value)))
                history[entry.channel].writes.append(
                    StoredWrite(task_id, entry.channel, values[-1])
                )
        for channel in open_channels & header.values.keys():
            history[channel].seed = yield from read_packed(reader, header.values[channel])
        open_channels -= header.values.keys()
        at = row[1]
    require_each(values, (target[0], key.id))
    for contributed in history.values():
        contributed.writes.reverse()
    caches.keep(reader.cache)
    return history
