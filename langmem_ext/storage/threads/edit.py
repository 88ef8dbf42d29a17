"""An edit of a thread without its graph: a checkpoint that changes only the edited channels.

So a graph that runs next finds the edit, and still does what it was about to do: a question that
waits is asked again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import EllipsisType
from typing import Final

from langmem_ext.storage.cache import ThreadCache
from langmem_ext.storage.checkpoints import sql
from langmem_ext.storage.checkpoints.lookup import find_newest, header_of, read_waiting
from langmem_ext.storage.checkpoints.put import close_writer, store_header
from langmem_ext.storage.checkpoints.thread_row import find_settled
from langmem_ext.storage.checkpoints.writer import Writer
from langmem_ext.storage.operation import Op, Trace, fetch_one
from langmem_ext.storage.rows.checkpoint import Header, ValueRef, next_version
from langmem_ext.storage.rows.ids import encode_id

EDIT: Final = b'{"source":"update"}'
"""The metadata of an edit's checkpoint."""


@dataclass(frozen=True, slots=True)
class Edit(Trace):
    """What an edit needs from outside: operations have no clock and no random numbers.

    Attributes:
        checkpoint_id: A new checkpoint's id.
        ts: Its ISO 8601 time.
        now: Unix milliseconds.
        random: Seven digits for the new version (`storage.rows.checkpoint.next_version`).
        v: Format number of a thread's first checkpoint.
        details: Encoded metadata of a thread's first checkpoint.
    """

    checkpoint_id: str
    ts: str
    now: int
    random: int
    v: int
    details: bytes | None

    def is_left(self, thread_id: str) -> Op[bool]:
        """Whether the checkpoint that it makes exists."""
        thread = yield from find_settled(thread_id, now=self.now)
        if thread is None:
            return False
        own = encode_id(self.checkpoint_id)
        return (
            yield from fetch_one(
                sql.HAS_CHECKPOINT, thread=thread.number, namespace=0, checkpoint=own
            )
        ) is not None


def is_edit(header: Header, before: Header) -> bool:
    """Whether a checkpoint only edits the one that it follows.

    That is: no node has seen more, and nothing that one was to look at has gone.
    """
    return header.seen == before.seen and before.values.keys() <= header.values.keys()


@dataclass(frozen=True, slots=True)
class Head:
    """The root's newest checkpoint."""

    id: bytes
    header: Header
    step: int | None


def find_head(cache: ThreadCache) -> Op[Head | None]:
    """The root's newest checkpoint; None if there is none."""
    newest = cache.newest.get(0)
    known = None if newest is None else cache.headers.get((0, newest[0]))
    if known is not None and known.row is not None:
        return Head(known.row[0], known, known.row[2])
    row = yield from find_newest(cache, 0)
    if row is None:
        return None
    return Head(row[0], (yield from header_of(cache, 0, row)), row[2])


def follow(
    writer: Writer,
    head: Head | None,
    refs: Mapping[str, ValueRef],
    edit: Edit,
    *,
    waiting_for: str | None | EllipsisType = ...,
) -> Op[None]:
    """Store the checkpoint that follows `head` and has other values in some channels.

    Args:
        writer: Where the values were stored.
        head: The newest checkpoint.
        refs: References to the new values, by channel.
        edit: The new checkpoint's id and times.
        waiting_for: The parameter that the new checkpoint waits for. Default: the one that the
            thread's row shows.
    """
    header = (
        head.header
        if head is not None
        else Header(edit.v, edit.ts, {}, {}, None, details=edit.details)
    )
    step = head.step if head is not None else -2
    checkpoint = encode_id(edit.checkpoint_id)
    version = next_version(max(header.versions.values(), default=None), edit.random)
    # Not "only these were updated": LangGraph would then look at no other channel for what is still
    # to be done.
    following = header.following(edit.ts, {**header.versions, **dict.fromkeys(refs, version)}, refs)
    parent = head.id if head is not None else None
    yield from store_header(
        writer,
        0,
        checkpoint,
        parent,
        following,
        step=None if step is None else step + 1,
        label=EDIT,
    )
    shown = yield from read_waiting(writer.cache)
    writer.settled = True
    yield from close_writer(
        writer, following, shown if isinstance(waiting_for, EllipsisType) else waiting_for
    )
