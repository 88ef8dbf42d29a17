"""Operations that read or change a thread's channels without a graph, in one edit.

Edits: `storage.threads.edit`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import EllipsisType
from typing import TypeAlias

from langmem_ext.storage.cache import ThreadCaches
from langmem_ext.storage.checkpoints.get import Reader, read_entries, read_packed, require_each
from langmem_ext.storage.checkpoints.lookup import find_writes
from langmem_ext.storage.checkpoints.put import open_writer, store_value
from langmem_ext.storage.checkpoints.thread_row import find_thread
from langmem_ext.storage.operation import Op, operation
from langmem_ext.storage.rows.checkpoint import ValueRef, Versions, value_ref
from langmem_ext.storage.threads.edit import Edit, Head, find_head, follow
from langmem_ext.storage.threads.history import list_of, list_ref
from langmem_ext.types import Codec, PackedValue, ThreadKey

Values: TypeAlias = Mapping[str, PackedValue]


@dataclass(frozen=True, slots=True)
class ChannelsRead:
    """Some channels of a thread's newest checkpoint, and how far its graph has come.

    Attributes:
        values: Value by channel, of the requested channels that have one.
        held: Every channel that has a value.
        versions: Version by channel.
        seen: Versions seen, by node and channel.
        written: Channels of its pending writes, if requested.
    """

    values: Values = field(default_factory=dict)
    held: frozenset[str] = frozenset()
    versions: Versions = field(default_factory=dict)
    seen: Mapping[str, Versions] = field(default_factory=dict)
    written: frozenset[str] = frozenset()


@operation
def read_channels(
    key: ThreadKey,
    channels: Collection[str],
    *,
    pending: bool = False,
    caches: ThreadCaches,
    codec: Codec,
) -> Op[ChannelsRead]:
    """The values of some channels in the newest checkpoint; empty if there is none.

    `pending` adds what is written to it.
    """
    thread = yield from find_thread(key, caches)
    if thread is None:
        return ChannelsRead()
    reader = Reader(key.id, caches.of(key.id, thread.row(), codec), codec)
    head = yield from find_head(reader.cache)
    if head is None:
        caches.keep(reader.cache)
        return ChannelsRead()
    written: frozenset[str] = frozenset()
    if pending:
        rows = yield from find_writes(reader.cache, 0, head.id)
        written = frozenset(entry.channel for _, entry in (yield from read_entries(reader, rows)))
    header = head.header
    values = yield from _values_of(reader, head, channels)
    caches.keep(reader.cache)
    return ChannelsRead(values, frozenset(header.values), header.versions, header.seen, written)


@operation
def change_channels(
    key: ThreadKey,
    channels: Collection[str],
    change: Callable[[Values], Values],
    edit: Edit,
    *,
    emptied: str | None = None,
    waiting_for: str | None | EllipsisType = ...,
    caches: ThreadCaches,
    codec: Codec,
) -> Op[None]:
    """Change channels of the newest checkpoint, all in one; nothing is written if nothing differs.

    Args:
        key: The thread; it is made if there is none and there is something to write.
        channels: The channels that `change` reads.
        change: Returns the new values, by channel, from the current ones. Pure.
        edit: The new checkpoint's id and times.
        emptied: A channel whose list of messages becomes empty.
        waiting_for: The parameter that the thread waits for then, if that changes.
        caches: The caches of this process.
        codec: Reads and writes items.

    Raises:
        ThreadNotFound: The thread belongs to another owner.
    """
    if (yield from find_thread(key, caches)) is None and not change({}):
        return
    writer = yield from open_writer(key, now=edit.now, caches=caches, codec=codec)
    head = yield from find_head(writer.cache)
    values = (
        (yield from _values_of(Reader(key.id, writer.cache, codec), head, channels))
        if head is not None
        else {}
    )
    refs: dict[str, ValueRef] = {}
    if (
        head is not None
        and emptied is not None
        and (yield from list_of(writer.cache, codec, head.header, emptied)).runs
    ):
        refs[emptied] = list_ref(codec, ())
    for channel, value in change(values).items():
        refs[channel] = value_ref((yield from store_value(writer, value, (0, channel))))
    if refs:
        yield from follow(writer, head, refs, edit, waiting_for=waiting_for)
    caches.keep(writer.cache)


def _values_of(reader: Reader, head: Head, channels: Collection[str]) -> Op[dict[str, PackedValue]]:
    values: dict[str, PackedValue] = {}
    for channel, ref in head.header.values.items():
        if channel in channels:
            values[channel] = yield from read_packed(reader, ref, (0, channel))
    require_each(list(values.values()), (head.id, reader.thread_id))
    return values
