"""Operations that read a thread's checkpoints as a tree, and what each step ran and wrote.

No value is decoded.

A thread may have ten thousand checkpoints of ten thousand messages each, so their contents are read
only for the few that are looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langmem_ext.errors import DamagedRow
from langmem_ext.messages.manifest import (
    Runs,
    below,
    from_on,
    length_of,
    merged,
    numbers_of,
    ranges_of,
    tail_of,
)
from langmem_ext.messages.packed import fields_of
from langmem_ext.storage.cache import ThreadCache, ThreadCaches
from langmem_ext.storage.checkpoints import sql
from langmem_ext.storage.checkpoints.get import Reader, read_entries, read_packed, require_each
from langmem_ext.storage.checkpoints.lookup import (
    find_checkpoint,
    find_namespace,
    find_writes,
    header_of,
    learn_all_namespaces,
    read_word,
)
from langmem_ext.storage.checkpoints.messages import catch_up_words, missing_item, read_messages
from langmem_ext.storage.checkpoints.thread_row import find_thread
from langmem_ext.storage.operation import Op, fetch, operation
from langmem_ext.storage.rows.checkpoint import Header, ValueRef, Versions
from langmem_ext.storage.rows.checksum import CHANGED, changed_items
from langmem_ext.storage.rows.ids import decode_id, encode_id
from langmem_ext.storage.rows.message import AI_CODES, damaged_item, decode_item, rest_of_item
from langmem_ext.storage.schema.dialect import KEY, NUMBER, WITHIN, bytes_of
from langmem_ext.storage.threads.edit import find_head
from langmem_ext.types import Codec, PackedValue, Snapshot, StoredWrite, ThreadKey

SELECT_OUTLINE: Final = (
    "SELECT coalesce(given_id, id), parent, step, label FROM checkpoint"
    " WHERE thread = :thread AND namespace = :namespace ORDER BY checkpoint.id DESC"
)


SELECT_COSTS: Final = (
    f"SELECT {KEY}, role, {sql.TOKENS}, coalesce({bytes_of('text')}, 0)"
    f" + coalesce({bytes_of('rest')}, 0) FROM item WHERE {WITHIN} ORDER BY {KEY}"
)
# A model's messages that hold more than text, and messages that are stored whole.
SELECT_SPENDERS: Final = (
    f"SELECT {sql.ITEM_COLUMNS} FROM item WHERE {WITHIN} AND rest IS NOT NULL"
    f" AND (role IS NULL OR role IN {AI_CODES}) ORDER BY {KEY}"
)


Outlined: TypeAlias = tuple[str, str | None, int | None, bytes]
"""A checkpoint's id, its parent's id, the step of its run, and its scalar metadata as JSON text."""


@dataclass(frozen=True, slots=True)
class Written:
    """A pending write without its value: its task, the task's path in the graph, its channel."""

    task: str
    path: str
    channel: str


@dataclass(frozen=True, slots=True)
class HeadRead:
    """The channels of a thread's newest checkpoint, and the channels of its pending writes."""

    held: frozenset[str]
    written: frozenset[str]


@dataclass(frozen=True, slots=True)
class StepRead:
    """What a checkpoint records of its step, without values.

    Attributes:
        ts: The ISO 8601 time that LangGraph set.
        versions: Version by channel.
        seen: Versions seen, by node and channel.
        updated: Channels that the previous step updated; None if that is not recorded.
        refs: The reference to each channel's value.
        written: Its pending writes, which make the next checkpoint.
    """

    ts: str
    versions: Versions
    seen: Mapping[str, Versions]
    updated: Sequence[str] | None
    refs: Mapping[str, ValueRef]
    written: tuple[Written, ...]


@operation
def read_pending(
    key: ThreadKey, namespace: str, checkpoint: str, *, caches: ThreadCaches, codec: Codec
) -> Op[list[StoredWrite]]:
    """The pending writes of a checkpoint, without the checkpoint; empty if it is not found."""
    at = yield from _checkpoint(key, namespace, checkpoint, caches, codec)
    if at is None:
        return []
    reader, space, row_key, _ = at
    entries = yield from read_entries(
        reader, (yield from find_writes(reader.cache, space, row_key))
    )
    writes = []
    for task, entry in entries:
        writes.append(
            StoredWrite(task, entry.channel, (yield from read_packed(reader, entry.value)))
        )
    require_each([write.value for write in writes], (row_key, key.id))
    caches.keep(reader.cache)
    return writes


@operation
def read_heads(
    keys: Iterable[ThreadKey], *, caches: ThreadCaches, codec: Codec
) -> Op[dict[str, HeadRead]]:
    """The channels of each thread's newest checkpoint, by thread.

    Threads without a checkpoint, or whose newest one is damaged, are left out.
    """
    heads = {}
    for key in keys:
        with suppress(DamagedRow):
            reader = yield from _open(key, caches, codec)
            head = None if reader is None else (yield from find_head(reader.cache))
            if reader is None or head is None:
                continue
            entries = yield from read_entries(
                reader, (yield from find_writes(reader.cache, 0, head.id))
            )
            heads[key.id] = HeadRead(
                frozenset(head.header.values), frozenset(entry.channel for _, entry in entries)
            )
    return heads


@dataclass(frozen=True, slots=True)
class ListRead:
    """A part of a list of messages.

    Attributes:
        channel: The channel that holds the list.
        first: The position of the first message that was read.
        total: How many messages the list has.
        messages: The messages' exact bytes.
        seconds: The Unix time at which each was stored.
    """

    channel: str
    first: int
    total: int
    messages: Sequence[Snapshot]
    seconds: Sequence[int]


@operation
def read_outline(
    key: ThreadKey, namespace: str, *, caches: ThreadCaches, codec: Codec
) -> Op[list[Outlined]]:
    """Every checkpoint of a thread's namespace, newest first; empty if not found."""
    reader = yield from _open(key, caches, codec)
    space = None if reader is None else (yield from find_namespace(reader.cache, namespace))
    if reader is None or space is None:
        return []
    rows = yield from fetch(SELECT_OUTLINE, thread=reader.cache.number, namespace=space)
    words = {}
    for number in {row[3] for row in rows}:
        words[number] = yield from read_word(reader.cache, number)
    ids = [decode_id(row[0]) for row in rows]
    before = [*ids[1:], None]  # an empty parent is the row before
    caches.keep(reader.cache)
    return [
        (
            checkpoint,
            None if parent is None else decode_id(parent) if parent else previous,
            step,
            words[label],
        )
        for checkpoint, previous, (_, parent, step, label) in zip(ids, before, rows, strict=True)
    ]


@operation
def read_steps(
    key: ThreadKey, namespace: str, ids: Iterable[str], *, caches: ThreadCaches, codec: Codec
) -> Op[dict[str, StepRead]]:
    """The steps of these checkpoints, by id; checkpoints that are not found are left out."""
    reader = yield from _open(key, caches, codec)
    space = None if reader is None else (yield from find_namespace(reader.cache, namespace))
    if reader is None or space is None:
        return {}
    steps = {}
    for checkpoint in ids:
        row = yield from find_checkpoint(reader.cache, space, encode_id(checkpoint))
        if row is None:
            continue
        header = yield from header_of(reader.cache, space, row)
        entries = yield from read_entries(
            reader, (yield from find_writes(reader.cache, space, row[0]))
        )
        written = tuple(Written(task, entry.path, entry.channel) for task, entry in entries)
        steps[checkpoint] = StepRead(
            header.ts, header.versions, header.seen, header.updated, header.values, written
        )
    caches.keep(reader.cache)
    return steps


@operation
def read_channel(
    key: ThreadKey,
    namespace: str,
    checkpoint: str,
    channel: str,
    *,
    caches: ThreadCaches,
    codec: Codec,
) -> Op[PackedValue | None]:
    """The value of one channel in a checkpoint; None if there is none, or no such checkpoint."""
    located = yield from _checkpoint(key, namespace, checkpoint, caches, codec)
    if located is None:
        return None
    reader, space, row_key, header = located
    if (ref := header.values.get(channel)) is None:
        return None
    value = yield from read_packed(reader, ref, (space, channel))
    require_each([value], (row_key, key.id))
    caches.keep(reader.cache)
    return value


@operation
def read_list(
    key: ThreadKey,
    namespace: str,
    checkpoint: str,
    first: int,
    limit: int,
    channel: str | None = None,
    *,
    caches: ThreadCaches,
    codec: Codec,
) -> Op[ListRead | None]:
    """Some messages of a list in a checkpoint, and no others; None if it has no such list.

    Args:
        key: The thread.
        namespace: The checkpoint's namespace.
        checkpoint: The checkpoint's id.
        first: The position of the first message; below 0, counted from the end.
        limit: The maximum number.
        channel: The channel that holds the list; None for the conversation's.
        caches: The caches of this process.
        codec: Reads items.
    """
    located = yield from _checkpoint(key, namespace, checkpoint, caches, codec)
    thread = yield from find_thread(key, caches)
    if located is None or thread is None:
        return None
    reader, _, _, header = located
    channel = channel or _conversation_of(header)
    ref = None if channel is None else header.values.get(channel)
    if channel is None or ref is None or not is_list(ref):
        return None
    total = length_of(ref.runs)
    first = max(total + first, 0) if first < 0 else min(first, total)
    runs = _part(ref.runs, first, limit)
    messages = yield from read_messages(
        reader.cache, codec, runs, below(from_on(ref.nameless, first), limit)
    )
    seconds: list[int] = []
    for low, high in ranges_of(runs):
        seconds += [
            time
            for (time,) in (
                yield from fetch(
                    sql.SELECT_ITEM_TIMES, thread=reader.cache.number, low=low, high=high
                )
            )
        ]
    caches.keep(reader.cache)
    return ListRead(channel, first, total, messages, [thread.epoch + time for time in seconds])


@dataclass(slots=True)  # not frozen: there are thousands
class CostRead:
    """A message's cost, by its row.

    Attributes:
        role: The code of its class; None for a message that is stored whole.
        tokens: Its tokens, estimated.
        size: The stored bytes of its text and its other fields.
        fields: The id and the fields besides text of a model's message, by name or code; None if it
            has only text.
    """

    role: int | None
    tokens: int
    size: int
    fields: Mapping[Any, Any] | None = None


@operation
def read_costs(
    key: ThreadKey, namespace: str, checkpoint: str, *, caches: ThreadCaches, codec: Codec
) -> Op[list[CostRead]]:
    """The cost of each message in a checkpoint's conversation; few messages are decoded.

    Raises:
        DamagedRow: A message is missing or damaged.
    """
    located = yield from _checkpoint(key, namespace, checkpoint, caches, codec)
    channel = None if located is None else _conversation_of(located[3])
    if located is None or channel is None:
        return []
    reader, _, _, header = located
    cache, runs = reader.cache, header.values[channel].runs
    costs: dict[int, CostRead] = {}
    for low, high in merged(ranges_of(runs)):
        rows = yield from fetch(SELECT_COSTS, thread=cache.number, low=low, high=high)
        for item, role, tokens, size in rows:
            costs[item & NUMBER] = CostRead(role, tokens or 0, size)
        rows = yield from fetch(SELECT_SPENDERS, thread=cache.number, low=low, high=high)
        changed = changed_items(rows, cache.number)
        for row in rows:
            if row[0] in changed:
                raise damaged_item(cache.number, row, CHANGED)
            keys = None if row[8] is None else (yield from read_word(cache, row[8]))
            costs[row[0] & NUMBER].fields = (
                fields_of(decode_item(cache.number, row, keys, codec)[0])
                if row[2] is None
                else {
                    "id": None if row[1] is None else decode_id(row[1]),
                    **rest_of_item(cache.number, row, keys),
                }
            )
    caches.keep(cache)
    try:
        return [costs[number] for number in numbers_of(runs)]
    except KeyError as error:
        raise missing_item(cache, error.args[0]) from None


@operation
def find_place(
    key: ThreadKey,
    namespace: str,
    checkpoint: str,
    channel: str,
    message_id: str,
    *,
    caches: ThreadCaches,
    codec: Codec,
) -> Op[int | None]:
    """The position of the last message in a list with this id; None if not found."""
    located = yield from _checkpoint(key, namespace, checkpoint, caches, codec)
    ref = None if located is None else located[3].values.get(channel)
    if located is None or ref is None or not is_list(ref):
        return None
    cache, wanted = located[0].cache, encode_id(message_id)
    numbers: set[int] = set()
    for low, high in merged(ranges_of(ref.runs)):
        rows = yield from fetch(
            sql.FIND_ITEM, thread=cache.number, low=low, high=high, message_id=wanted
        )
        numbers |= {number & NUMBER for (number,) in rows}
    places: set[int] = set()
    start = 0
    for low, high in ranges_of(ref.runs):
        places |= {start + number - low for number in numbers if low <= number < high}
        start += high - low
    return max(places - {*numbers_of(ref.nameless)}, default=None)


def is_list(ref: ValueRef) -> bool:
    """Whether a value is a plain list of messages."""
    return ref.body is None and ref.row is None


def _conversation_of(header: Header) -> str | None:
    """The channel of the conversation: `messages`, or the longest list; None without one."""
    lists = {name: ref for name, ref in header.values.items() if is_list(ref)}
    if "messages" in lists:
        return "messages"
    return max(lists, key=lambda name: length_of(lists[name].runs), default=None)


def _part(runs: Runs, first: int, limit: int) -> Runs:
    """The runs of at most so many items, from a position on.

    >>> _part((0, 3, 5, 9), 2, 3)
    (2, 3, 5, 7)
    """
    part: list[int] = []
    for start, end in ranges_of(tail_of(runs, length_of(runs) - first)):
        if limit > 0:
            part += (start, min(end, start + limit))
            limit -= part[-1] - start
    return tuple(part)


@operation
def list_namespaces(key: ThreadKey, *, caches: ThreadCaches, codec: Codec) -> Op[list[str]]:
    """The namespaces of a thread's subgraphs, in the order of their first writes."""
    reader = yield from _open(key, caches, codec)
    if reader is None:
        return []
    yield from learn_all_namespaces(reader.cache)
    caches.keep(reader.cache)
    return [
        name
        for name, number in sorted(reader.cache.namespaces.items(), key=lambda pair: pair[1])
        if number
    ]


def common_length(ref: ValueRef, other: ValueRef) -> int:
    """The length of two lists' common beginning: the same messages, with an id in both or neither.

    The messages are not read.
    """
    length = 0
    for (low, high), (other_low, other_high) in zip(
        ranges_of(ref.runs), ranges_of(other.runs), strict=False
    ):
        if low == other_low:
            length += min(high, other_high) - low
        if (low, high) != (other_low, other_high):
            break
    nameless = {*numbers_of(ref.nameless)} ^ {*numbers_of(other.nameless)}
    return min(length, *nameless) if nameless else length


def number_of(ref: ValueRef, position: int) -> int:
    """The number, in its thread, of the message at a position of a list.

    Raises:
        IndexError: The list is shorter.
    """
    for first, end in ranges_of(ref.runs):
        if position < end - first:
            return first + position
        position -= end - first
    raise IndexError(position)


def names_message(ref: ValueRef | None, number: int) -> bool:
    """Whether a value names the message of this number in its thread."""
    return ref is not None and any(first <= number < end for first, end in ranges_of(ref.runs))


def _checkpoint(
    key: ThreadKey, namespace: str, checkpoint: str, caches: ThreadCaches, codec: Codec
) -> Op[tuple[Reader, int, bytes, Header] | None]:
    """A reader, a namespace's number, and a checkpoint's key and header; None if not found."""
    reader = yield from _open(key, caches, codec)
    space = None if reader is None else (yield from find_namespace(reader.cache, namespace))
    if reader is None or space is None:
        return None
    row = yield from find_checkpoint(reader.cache, space, encode_id(checkpoint))
    if row is None:
        return None
    return reader, space, row[0], (yield from header_of(reader.cache, space, row))


def _open(key: ThreadKey, caches: ThreadCaches, codec: Codec) -> Op[Reader | None]:
    """A reader for a thread that knows its newest words; None if the thread is not found."""
    thread = yield from find_thread(key, caches)
    if thread is None:
        return None
    cache: ThreadCache = caches.of(key.id, thread.row(), codec)
    yield from catch_up_words(cache, thread.number, thread.next_word)
    return Reader(key.id, cache, codec)
