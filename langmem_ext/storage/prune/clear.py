"""The operation that clears a thread's view; the thread still refers to all earlier messages.

What is set aside is kept in a namespace of its own, which no graph reads: pruning always keeps the
newest checkpoint of every namespace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from langmem_ext.errors import ThreadNotFound
from langmem_ext.messages.manifest import Runs, length_of, numbers_of, runs_of
from langmem_ext.storage.cache import ThreadCaches
from langmem_ext.storage.checkpoints.lookup import find_newest, header_of
from langmem_ext.storage.checkpoints.put import (
    ensure_namespace,
    open_writer,
    store_header,
    store_value,
)
from langmem_ext.storage.checkpoints.thread_row import find_thread
from langmem_ext.storage.checkpoints.writer import Writer
from langmem_ext.storage.operation import Op, operation
from langmem_ext.storage.rows.checkpoint import Header, ValueRef, next_version, value_ref
from langmem_ext.storage.rows.ids import encode_id
from langmem_ext.storage.threads.edit import EDIT, Edit, find_head, follow
from langmem_ext.storage.threads.history import list_of, list_ref
from langmem_ext.types import Codec, PackedValue, ThreadKey

ASIDE: Final = "langmem_ext:cleared"
"""The namespace of what was set aside. A subgraph's is `node:task id`: none is named so."""


@operation
def clear_view(
    key: ThreadKey,
    channel: str,
    emptied: Mapping[str, PackedValue],
    edit: Edit,
    aside: Edit,
    *,
    caches: ThreadCaches,
    codec: Codec,
) -> Op[int]:
    """Empty a thread's list of messages and set aside what it held; returns how many messages.

    Nothing is copied.

    Args:
        key: The thread.
        channel: The channel that holds the list.
        emptied: New values of channels that only make sense with the list, as far as they exist.
        edit: The id and times of the checkpoint that has the empty list.
        aside: The id and times of the checkpoint that refers to what was set aside.
        caches: The caches of this process.
        codec: Reads and writes items.

    Raises:
        ThreadNotFound: The thread does not exist.
        InvalidInput: The channel does not hold a list of messages.
    """
    if (yield from find_thread(key, caches)) is None:
        raise ThreadNotFound(f"thread {key.id!r} not found; see `langmem-ext threads list`")
    writer = yield from open_writer(key, now=edit.now, caches=caches, codec=codec)
    head = yield from find_head(writer.cache)
    ref = (
        (yield from list_of(writer.cache, codec, head.header, channel))
        if head is not None
        else ValueRef()
    )
    if head is None or not ref.runs:
        return 0
    yield from _set_aside(writer, channel, ref, aside)
    refs = {channel: list_ref(codec, ())}
    for name, value in emptied.items():
        if name in head.header.values:
            refs[name] = value_ref((yield from store_value(writer, value, (0, name))))
    yield from follow(writer, head, refs, edit)
    caches.keep(writer.cache)
    return length_of(ref.runs)


def _set_aside(writer: Writer, channel: str, ref: ValueRef, aside: Edit) -> Op[None]:
    """Store a checkpoint that refers to what was set aside before, and to what is set aside now."""
    space = yield from ensure_namespace(writer, ASIDE)
    row = yield from find_newest(writer.cache, space)
    checkpoint, parent, step = encode_id(aside.checkpoint_id), None, -1
    header = Header(aside.v, aside.ts, {}, {}, None, details=aside.details)
    earlier = ValueRef()
    if row is not None:
        header, parent, step = (
            (yield from header_of(writer.cache, space, row)),
            row[0],
            (row[2] or 0) + 1,
        )
        earlier = yield from list_of(writer.cache, writer.codec, header, channel)
    together = _appended(earlier, ref)
    version = next_version(max(header.versions.values(), default=None), aside.random)
    following = header.following(
        aside.ts, {**header.versions, channel: version}, {channel: together}
    )
    yield from store_header(writer, space, checkpoint, parent, following, step=step, label=EDIT)


def _appended(earlier: ValueRef, later: ValueRef) -> ValueRef:
    """The messages of two lists, each once.

    Messages that were brought back into a view may be set aside again.
    """
    known, bare, length = (
        set(numbers_of(earlier.runs)),
        set(numbers_of(later.nameless)),
        length_of(earlier.runs),
    )
    added = [
        (number, position in bare)
        for position, number in enumerate(numbers_of(later.runs))
        if number not in known
    ]
    runs: Runs = runs_of((number for number, _ in added), earlier.runs)
    nameless = runs_of(
        (length + at for at, (_, is_bare) in enumerate(added) if is_bare), earlier.nameless
    )
    return ValueRef(runs=runs, nameless=nameless)
