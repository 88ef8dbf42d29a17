"""Operations on a thread's list of messages without a graph: read it, add to it, narrow it.

A change is an edit (`storage.threads.edit`); the log keeps every message, even if the list does
not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar

from langmem_ext._internal.interruption import pass_on
from langmem_ext.errors import DamagedRow, InvalidInput, ThreadNotFound, cause, safe_text
from langmem_ext.messages.annotations import asked_in
from langmem_ext.messages.manifest import (
    LONGEST_LIST,
    Runs,
    from_on,
    length_of,
    numbers_of,
    ranges_of,
    runs_of,
    tail_of,
)
from langmem_ext.messages.packed import fields_of
from langmem_ext.storage.cache import ThreadCache, ThreadCaches
from langmem_ext.storage.checkpoints import sql
from langmem_ext.storage.checkpoints.lookup import read_body, read_waiting
from langmem_ext.storage.checkpoints.messages import read_messages, resolve
from langmem_ext.storage.checkpoints.put import open_writer
from langmem_ext.storage.checkpoints.thread_row import find_thread
from langmem_ext.storage.checkpoints.writer import Writer
from langmem_ext.storage.operation import Op, fetch, operation
from langmem_ext.storage.rows.checkpoint import Header, ValueRef
from langmem_ext.storage.rows.ids import encode_id
from langmem_ext.storage.schema.dialect import NUMBER
from langmem_ext.storage.threads.edit import Edit, find_head, follow
from langmem_ext.types import Codec, Snapshot, ThreadKey

T = TypeVar("T")

LATEST: Final = 16
"""Messages at the end of a list among which its question is looked for."""

IDS: Final = 64
"""Ids that are looked for at a time."""

FIRST: Final = 16
"""Messages of the end of a list that are read before it is known how large they are."""

SPARE: Final = 4
"""How many more messages are read."""

MOST: Final = 512
"""The maximum number of messages read at a time if only some of the last may be needed."""


@operation
def read_history(
    key: ThreadKey, channel: str, *, caches: ThreadCaches, codec: Codec
) -> Op[list[Snapshot]]:
    """The messages of the newest checkpoint, oldest first; empty if there are none.

    Raises:
        InvalidInput: The channel holds something else.
    """
    return [packed for packed, _ in (yield from _read(key, channel, caches, codec, dated=False))]


@operation
def read_dated_history(
    key: ThreadKey, channel: str, *, caches: ThreadCaches, codec: Codec
) -> Op[list[tuple[Snapshot, int]]]:
    """`read_history`, each message with the Unix time in seconds at which it was stored."""
    return (yield from _read(key, channel, caches, codec, dated=True))


def _read(
    key: ThreadKey, channel: str, caches: ThreadCaches, codec: Codec, *, dated: bool
) -> Op[list[tuple[Snapshot, int]]]:
    thread = yield from find_thread(key, caches)
    if thread is None:
        return []
    cache = caches.of(key.id, thread.row(), codec)
    head = yield from find_head(cache)
    ref = (
        (yield from list_of(cache, codec, head.header, channel)) if head is not None else ValueRef()
    )
    messages = yield from read_messages(cache, codec, ref.runs, ref.nameless)
    times = (yield from _times_of(cache, ref.runs, thread.epoch)) if dated else [0] * len(messages)
    caches.keep(cache)
    return list(zip(messages, times, strict=True))


def _times_of(cache: ThreadCache, runs: Runs, epoch: int) -> Op[list[int]]:
    times: list[int] = []
    for first, end in ranges_of(runs):
        times += [
            time
            for (time,) in (
                yield from fetch(sql.SELECT_ITEM_TIMES, thread=cache.number, low=first, high=end)
            )
        ]
    if len(times) != length_of(runs) or not all(type(time) is int for time in times):
        raise DamagedRow(
            f"messages of thread number {cache.number} are missing: restore the thread from a copy,"
            " or delete it"
        )
    return [epoch + time for time in times]


@operation
def read_conversation(
    key: ThreadKey, last: int | None, *, caches: ThreadCaches, codec: Codec
) -> Op[list[Snapshot]]:
    """The newest checkpoint's longest list of messages, oldest first; only the `last` if given.

    Raises:
        ThreadNotFound: The thread does not exist.
        InvalidInput: Its graph keeps messages in a `DeltaChannel`.
    """
    cache, ref = yield from list_of_conversation(key, caches=caches, codec=codec)
    messages = yield from _read_last(
        cache, codec, ref, length_of(ref.runs) if last is None else last
    )
    caches.keep(cache)
    return messages


@operation
def read_dated_conversation(
    key: ThreadKey, last: int | None, *, caches: ThreadCaches, codec: Codec
) -> Op[list[tuple[Snapshot, int]]]:
    """`read_conversation`, each message with the Unix time in seconds at which it was stored."""
    cache, ref = yield from list_of_conversation(key, caches=caches, codec=codec)
    count = length_of(ref.runs) if last is None else last
    messages = yield from _read_last(cache, codec, ref, count)
    thread = yield from find_thread(key, caches)
    assert thread is not None
    times = yield from _times_of(cache, tail_of(ref.runs, count), thread.epoch)
    caches.keep(cache)
    return list(zip(messages, times, strict=True))


def _read_last(cache: ThreadCache, codec: Codec, ref: ValueRef, count: int) -> Op[list[Snapshot]]:
    """The last messages of a list; no others are read."""
    runs = tail_of(ref.runs, count)
    left_out = length_of(ref.runs) - length_of(runs)
    return (yield from read_messages(cache, codec, runs, from_on(ref.nameless, left_out)))


@operation
def read_back(
    key: ThreadKey,
    channel: str,
    limit: int,
    weigh: Callable[[Snapshot], tuple[T, int]],
    *,
    caches: ThreadCaches,
    codec: Codec,
) -> Op[tuple[list[T], bool]]:
    """Weigh the newest checkpoint's messages from the last on, until they exceed `limit`.

    Hardly any others are read.

    Args:
        key: The thread.
        channel: The channel that holds the list.
        limit: The maximum of their weights' sum.
        weigh: Loads a message, and returns its weight, which is more than 0.
        caches: The caches of this process.
        codec: Reads items.

    Returns:
        The messages that were weighed, the last one first; and whether they are all messages, and
        within the limit.

    Raises:
        InvalidInput: The channel holds something else.
    """
    thread = yield from find_thread(key, caches)
    loaded: list[T] = []
    if thread is None:
        return loaded, True
    cache = caches.of(key.id, thread.row(), codec)
    head = yield from find_head(cache)
    ref = (
        (yield from list_of(cache, codec, head.header, channel)) if head is not None else ValueRef()
    )
    length, weight = length_of(ref.runs), 0
    while (weighed := len(loaded)) < length and weight <= limit:
        # As many as will do if they are about as heavy as those before: each time that more must be
        # read costs as much as some messages.
        more = (
            min(MOST, (limit - weight) * weighed * 9 // (weight * 8) + SPARE) if weighed else FIRST
        )
        messages = yield from _read_last(cache, codec, ref, min(length, weighed + more))
        for packed in reversed(messages[: len(messages) - weighed]):
            message, own = weigh(packed)
            loaded.append(message)
            weight += own
            if weight > limit:
                break
    caches.keep(cache)
    return loaded, weight <= limit


def list_of_conversation(
    key: ThreadKey, *, caches: ThreadCaches, codec: Codec
) -> Op[tuple[ThreadCache, ValueRef]]:
    """The longest list of messages of a thread's newest checkpoint; without runs if there is none.

    Raises:
        ThreadNotFound: The thread does not exist.
        InvalidInput: Its graph keeps messages in a `DeltaChannel`.
    """
    thread = yield from find_thread(key, caches)
    if thread is None:
        raise ThreadNotFound(f"thread {key.id!r} not found; see `langmem-ext threads list`")
    cache = caches.of(key.id, thread.row(), codec)
    head = yield from find_head(cache)
    lists = (
        []
        if head is None
        else [ref for ref in head.header.values.values() if ref.body is None and ref.row is None]
    )
    if head is not None and not lists and "messages" in head.header.versions:
        yield from list_of(cache, codec, head.header, "messages")
    return cache, max(lists, key=lambda ref: length_of(ref.runs), default=ValueRef())


def find_risks(
    key: ThreadKey, channel: str, *, caches: ThreadCaches, codec: Codec
) -> Op[list[str]]:
    """The sensitive parameters whose values an answer may contain, by the question that waits.

    The thread is locked until the operation has ended: what it writes next relies on this.
    """
    thread = yield from find_thread(key, caches, lock=True)
    if thread is None:
        return []
    cache = caches.of(key.id, thread.row(), codec)
    risks = yield from _risks_of(cache, channel, codec)
    caches.keep(cache)
    return risks


def _risks_of(cache: ThreadCache, channel: str, codec: Codec) -> Op[list[str]]:
    waiting = yield from read_waiting(cache)
    if waiting is None:
        return []
    head = yield from find_head(cache)
    ref = (
        (yield from list_of(cache, codec, head.header, channel)) if head is not None else ValueRef()
    )
    packed = yield from read_messages(cache, codec, tail_of(ref.runs, LATEST), ())
    questions = [
        question
        for message in reversed(packed)
        if (question := asked_in(fields_of(message))) is not None
    ]
    return next((risks for name, risks in questions if name == waiting), [])


def add_to_history(
    key: ThreadKey,
    channel: str,
    messages: Sequence[Snapshot],
    edit: Edit,
    *,
    fresh: Collection[int] = (),
    caches: ThreadCaches,
    codec: Codec,
) -> Op[None]:
    """Append messages; one whose id is in the list already replaces that message.

    Args:
        key: The thread; it is made if there is none.
        channel: The channel that holds the list.
        messages: The messages' exact bytes.
        edit: The new checkpoint's id and times.
        fresh: Positions of messages whose ids were made for them: no other message has them, and
            the list is not searched.
        caches: The caches of this process.
        codec: Reads and writes items.

    Raises:
        InvalidInput: The list would be longer than can be read.
    """
    writer = yield from open_writer(key, now=edit.now, caches=caches, codec=codec)
    head = yield from find_head(writer.cache)
    ref = (
        (yield from list_of(writer.cache, codec, head.header, channel))
        if head is not None
        else ValueRef()
    )
    added, unnamed = yield from resolve(writer, messages)
    bare = set(numbers_of(unnamed))
    yield from writer.flush()
    names = [encode_id(str(codec.id_of(message))) for message in messages]
    asked = {
        name
        for position, name in enumerate(names)
        if position not in bare and position not in fresh
    }
    places = yield from _places_of(writer, ref, asked)
    runs, nameless, length = ref.runs, ref.nameless, length_of(ref.runs)
    for position, number in enumerate(numbers_of(added)):
        at = None if position in bare else places.get(names[position])
        if at is None:
            if position in bare:
                nameless = runs_of([length], nameless)
            else:
                places[names[position]] = length
            runs, length = runs_of([number], runs), length + 1
        else:
            numbers = numbers_of(runs)
            numbers[at] = number
            runs = runs_of(numbers)
    yield from follow(writer, head, {channel: list_ref(codec, runs, nameless)}, edit)
    caches.keep(writer.cache)


@operation
def narrow_history(
    key: ThreadKey,
    channel: str,
    last: int,
    cannot_begin: Callable[[Snapshot], bool],
    edit: Edit,
    *,
    caches: ThreadCaches,
    codec: Codec,
) -> Op[None]:
    """Keep the last messages in the list; the others stay in the log and in earlier checkpoints.

    Args:
        key: The thread; nothing happens if there is none.
        channel: The channel that holds the list.
        last: The maximum number of messages that stay.
        cannot_begin: Whether a message makes no sense without the one before it, so that the list
            must not begin with it.
        edit: The new checkpoint's id and times.
        caches: The caches of this process.
        codec: Reads and writes items.
    """
    if (yield from find_thread(key, caches)) is None:
        return
    writer = yield from open_writer(key, now=edit.now, caches=caches, codec=codec)
    head = yield from find_head(writer.cache)
    ref = (
        (yield from list_of(writer.cache, codec, head.header, channel))
        if head is not None
        else ValueRef()
    )
    numbers = numbers_of(ref.runs)
    start = len(numbers) - last
    if start <= 0:
        caches.keep(writer.cache)
        return
    while start < len(numbers):
        [first] = yield from read_messages(
            writer.cache, codec, runs_of(numbers[start : start + 1]), ()
        )
        if not cannot_begin(first):
            break
        start += 1
    kept = list_ref(codec, runs_of(numbers[start:]), from_on(ref.nameless, start))
    yield from follow(writer, head, {channel: kept}, edit)
    caches.keep(writer.cache)


def list_ref(codec: Codec, runs: Runs, nameless: Runs = ()) -> ValueRef:
    """The reference to a list of messages: its items, or an empty list in place.

    Raises:
        InvalidInput: The list would be longer than can be read.
    """
    if length_of(runs) > LONGEST_LIST:
        raise InvalidInput(
            f"a history holds at most {LONGEST_LIST:,} messages: clear it, keep the newest alone"
            " (`prune` of a session), or begin another thread"
        )
    return ValueRef(runs=runs, nameless=nameless) if runs else ValueRef(body=codec.empty_list())


def list_of(cache: ThreadCache, codec: Codec, header: Header, channel: str) -> Op[ValueRef]:
    """The list of messages in a channel; without runs if it is empty, or the channel is.

    Raises:
        InvalidInput: The channel holds something else.
    """
    ref = header.values.get(channel)
    if ref is None:
        if channel in header.versions and header.versions[channel]:
            # A channel with a version and no value here is one that LangGraph rebuilds from writes.
            raise InvalidInput(
                f"the thread keeps {channel!r} as a DeltaChannel: read and change it through its"
                " graph"
            )
        return ValueRef()
    body = ref.body if ref.row is None else (yield from read_body(cache, ref.row))
    try:
        is_list = body is None or codec.is_empty_list(body)
    except Exception as error:
        pass_on(error)
        raise DamagedRow(
            f"the channel {channel!r} of thread number {cache.number} does not decode"
            f" ({safe_text(error)}): other threads stay readable; open it with the serializer that"
            " wrote it, or delete the thread"
        ) from cause(error)
    if not is_list:
        raise InvalidInput(
            f"the channel {channel!r} of the thread is not a list of messages: pass the name of the"
            " channel that is"
        )
    return ValueRef(runs=ref.runs, nameless=ref.nameless)


def _places_of(writer: Writer, ref: ValueRef, names: Collection[bytes]) -> Op[dict[bytes, int]]:
    """Positions in a list of the messages with some ids.

    A message that had no id when it came into the list is another.
    """
    places: dict[bytes, int] = {}
    nameless = set(numbers_of(ref.nameless))
    ordered = sorted(names)
    for begin in range(0, len(ordered), IDS):
        params = {f"id{at}": name for at, name in enumerate(ordered[begin : begin + IDS])}
        statement = sql.FIND_ITEMS.format(ids=", ".join(f":{name}" for name in params))
        passed = 0
        for first, end in ranges_of(ref.runs):
            for key, name in (
                yield from fetch(
                    statement, thread=writer.thread.number, low=first, high=end, **params
                )
            ):
                position = passed + (key & NUMBER) - first
                if position not in nameless:
                    places.setdefault(bytes(name), position)
            passed += end - first
    return places
