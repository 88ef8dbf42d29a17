"""Operations on a thread's list of messages without a graph: read it, add to it, empty it.

A change is a checkpoint of its own that follows the newest one and differs from it in that list alone, so that a graph that runs next
finds it, and whatever it was about to do is still to be done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from langmem_ext.errors import InvalidInput, ThreadNotFound
from langmem_ext.messages.manifest import Runs, length_of, numbers_of, ranges_of, runs_of, tail_of
from langmem_ext.storage import statements as sql
from langmem_ext.storage.checkpoint_ops import close_writer, header_of, open_writer, store_header
from langmem_ext.storage.effects import Op, fetch, fetch_one
from langmem_ext.storage.header import Header, ValueRef, longest_list, next_version
from langmem_ext.storage.ids import encode_id, following_id
from langmem_ext.storage.index import Indexes, ThreadIndex
from langmem_ext.storage.lookup_ops import read_body
from langmem_ext.storage.message_ops import Writer, read_messages, resolve
from langmem_ext.storage.thread_ops import find_thread, title_of
from langmem_ext.types import Codec, Snapshot, ThreadKey


@dataclass(frozen=True, slots=True)
class Edit:
    """What a change of the list needs from outside: operations have no clock and no chance.

    Attributes:
        checkpoint_id: A new checkpoint's id.
        ts: Its ISO 8601 time.
        now: Unix milliseconds.
        random: Seven digits for the new version (`header.next_version`).
        v: Format number of a thread's first checkpoint.
        details: Encoded metadata of a thread's first checkpoint.
    """

    checkpoint_id: str
    ts: str
    now: int
    random: int
    v: int
    details: bytes | None


def read_history(key: ThreadKey, channel: str, *, indexes: Indexes, codec: Codec) -> Op[list[Snapshot]]:
    """The messages of the newest checkpoint, oldest first; empty where there are none.

    Raises:
        InvalidInput: The channel holds something else.
    """
    thread = yield from find_thread(key)
    if thread is None:
        return []
    index = indexes.of(thread.number, thread.generation, codec)
    head = yield from _head(index)
    ref = (yield from _list_of(index, codec, head[1], channel)) if head is not None else ValueRef()
    messages = yield from read_messages(index, codec, ref.runs, ref.nameless)
    indexes.account(index)
    return messages


def read_conversation(key: ThreadKey, last: int | None, *, indexes: Indexes, codec: Codec) -> Op[list[Snapshot]]:
    """The longest list of messages of the newest checkpoint, oldest first; only the last ones are read, where a number is given.

    Raises:
        ThreadNotFound: There is no such thread.
        InvalidInput: Its graph keeps messages in a `DeltaChannel`.
    """
    thread = yield from find_thread(key)
    if thread is None:
        raise ThreadNotFound(f"there is no thread {key.id!r}: list those that there are")
    index = indexes.of(thread.number, thread.generation, codec)
    head = yield from _head(index)
    lists = {} if head is None else {name: ref for name, ref in head[1].values.items() if ref.body is None and ref.row is None}
    if not lists:
        if head is not None and "messages" in head[1].versions:
            yield from _list_of(index, codec, head[1], "messages")
        return []
    ref = max(lists.values(), key=lambda ref: length_of(ref.runs))
    runs = ref.runs if last is None else tail_of(ref.runs, last)
    left_out = length_of(ref.runs) - length_of(runs)
    nameless = tuple(position - left_out for position in ref.nameless if position >= left_out)
    messages = yield from read_messages(index, codec, runs, nameless)
    indexes.account(index)
    return messages


def add_to_history(key: ThreadKey, channel: str, messages: Sequence[Snapshot], edit: Edit, *, indexes: Indexes, codec: Codec) -> Op[None]:
    """Append messages; one whose id is in the list already takes that one's place."""
    writer = yield from open_writer(key, "", now=edit.now, indexes=indexes, codec=codec)
    head = yield from _head(writer.index)
    ref = (yield from _list_of(writer.index, codec, head[1], channel)) if head is not None else ValueRef()
    added, bare = yield from resolve(writer, messages)
    yield from writer.flush()
    runs, nameless = ref.runs, list(ref.nameless)
    for position, number in enumerate(numbers_of(added)):
        at = None if position in bare else (yield from _position_of(writer, runs, nameless, messages[position]))
        if at is None:
            if position in bare:
                nameless.append(length_of(runs))
            runs = runs_of([number], runs)
        else:
            numbers = numbers_of(runs)
            numbers[at] = number
            runs = runs_of(numbers)
    yield from _follow(writer, head, channel, ValueRef(runs=runs, nameless=tuple(nameless)), edit)
    indexes.account(writer.index)


def clear_history(key: ThreadKey, channel: str, edit: Edit, *, indexes: Indexes, codec: Codec) -> Op[None]:
    """Empty the list; the messages stay in the log and in the earlier checkpoints."""
    if (yield from find_thread(key)) is None:
        return
    writer = yield from open_writer(key, "", now=edit.now, indexes=indexes, codec=codec)
    head = yield from _head(writer.index)
    if head is not None and (yield from _list_of(writer.index, codec, head[1], channel)).runs:
        yield from _follow(writer, head, channel, ValueRef(), edit)


def _head(index: ThreadIndex) -> Op[tuple[bytes, Header, int | None] | None]:
    """Id, header and step of the root's newest checkpoint."""
    row = yield from fetch_one(sql.SELECT_LATEST_CHECKPOINT, thread=index.number, namespace=0)
    if row is None:
        return None
    return row[0], (yield from header_of(index, 0, row)), row[2]


def _list_of(index: ThreadIndex, codec: Codec, header: Header, channel: str) -> Op[ValueRef]:
    ref = header.values.get(channel)
    if ref is None:
        if channel in header.versions and header.versions[channel]:
            # A channel with a version and no value here is one that LangGraph rebuilds from writes.
            raise InvalidInput(f"the thread keeps {channel!r} as a DeltaChannel: read and change it through its graph")
        return ValueRef()
    body = ref.body if ref.row is None else (yield from read_body(index, ref.row))
    if body is not None and not codec.is_empty_list(body):
        raise InvalidInput(f"the channel {channel!r} of the thread holds no list of messages: name the channel that does")
    return ValueRef(runs=ref.runs, nameless=ref.nameless)


def _position_of(writer: Writer, runs: Runs, nameless: Sequence[int], packed: Snapshot) -> Op[int | None]:
    """Where in the list a message with the same id stands; one that had no id when it came into the list is another."""
    message_id = encode_id(str(writer.codec.id_of(packed)))
    passed = 0
    for first, end in ranges_of(runs):
        low = sql.row_key(writer.thread.number, first)
        rows = yield from fetch(sql.FIND_ITEM, low=low, high=low + end - first, message_id=message_id)
        for (key,) in rows:
            position: int = passed + key - low
            if position not in nameless:
                return position
        passed += end - first
    return None


def _follow(writer: Writer, head: tuple[bytes, Header, int | None] | None, channel: str, ref: ValueRef, edit: Edit) -> Op[None]:
    """Store the checkpoint that follows `head` and has `ref` in `channel`."""
    parent, header, step = head if head is not None else (None, Header(edit.v, edit.ts, {}, {}, None, details=edit.details), -2)
    checkpoint = encode_id(edit.checkpoint_id)
    if parent is not None and checkpoint <= parent:
        # Another machine's clock is ahead: the newest checkpoint is the one with the highest id, and this one must be it.
        checkpoint = following_id(parent)
    version = next_version(max(header.versions.values(), default=None), edit.random)
    value = ref if ref.runs else ValueRef(body=writer.codec.empty_list())
    following = replace(
        header,
        ts=edit.ts,
        versions={**header.versions, channel: version},
        updated=None,  # not "only this one": LangGraph would then look at no other channel for what is still to be done
        values={**header.values, channel: value},
    )
    yield from store_header(writer, 0, checkpoint, parent, following, step=None if step is None else step + 1, label=b'{"source":"update"}')
    if writer.thread.untitled:
        writer.title = title_of(writer.index, writer.codec, following.values)
    [(waiting_for,)] = yield from fetch(sql.SELECT_WAITING, thread=writer.thread.number)
    yield from close_writer(writer, (longest_list(following.values), waiting_for))
