"""Operations that apply a retention to one thread: each is one transaction, and looks again at what it was called for."""

from __future__ import annotations

from dataclasses import dataclass

from langmem_ext.storage import forget_statements as sql
from langmem_ext.storage.effects import Op, fetch, fetch_one
from langmem_ext.storage.forget_ops import Policy, drop_thread, prune_thread
from langmem_ext.storage.index import Indexes, ThreadIndex
from langmem_ext.storage.lookup_ops import find_writes
from langmem_ext.storage.reach import Meaning, entries_of
from langmem_ext.storage.statements import SELECT_LATEST_ID
from langmem_ext.types import Pruned, ThreadKey

NEVER: int = 1 << 62
"""Later than any moment, in Unix milliseconds."""


@dataclass(frozen=True, slots=True)
class Position:
    """A thread's place in the order in which threads are forgotten: the one that was not written for longest is the first."""

    updated_at: int = -1
    number: int = -1


@dataclass(frozen=True, slots=True)
class Candidate:
    """A thread that may be forgotten."""

    key: ThreadKey
    at: Position


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every operation here needs.

    Attributes:
        owner: Threads of others are not there.
        meaning: What checkpoints mean.
        indexes: What this process knows.
        dry_run: Only say what would be deleted.
    """

    owner: str | None
    meaning: Meaning
    indexes: Indexes
    dry_run: bool = False


def next_threads(after: Position, limit: int, around: Surroundings, *, before: int = NEVER) -> Op[list[Candidate]]:
    """Threads behind a position that were last written before a moment (Unix milliseconds), the one written longest ago first."""
    params = {"at": after.updated_at, "after": after.number, "before": before, "limit": limit}
    if around.owner is None:
        rows = yield from fetch(sql.SELECT_OLDEST, **params)
    else:
        rows = yield from fetch(sql.SELECT_OLDEST_OF, **params, owner=around.owner)
    return [Candidate(ThreadKey(thread_id, around.owner), Position(updated_at, number)) for updated_at, number, thread_id in rows]


def expire(candidate: Candidate, around: Surroundings, *, before: int = NEVER) -> Op[Pruned]:
    """Delete a thread, unless it waits for an answer, or was written meanwhile at or after a moment (Unix milliseconds)."""
    row = yield from fetch_one(sql.SELECT_REST, thread=candidate.at.number)
    if row is None or row[0] >= before or row[1] is not None or (yield from _is_asked(candidate.at.number, around.meaning)):
        return Pruned()
    return (yield from drop_thread(candidate.key, indexes=around.indexes, dry_run=around.dry_run))


def _is_asked(number: int, meaning: Meaning) -> Op[bool]:
    """Whether a task of the thread's newest checkpoint waits for an answer."""
    [(newest,)] = yield from fetch(SELECT_LATEST_ID, thread=number, namespace=0)
    if newest is None:
        return False
    index = ThreadIndex(number)
    for row in (yield from find_writes(index, 0, newest)):
        for entry in (yield from entries_of(index, row)):
            if entry.channel == meaning.interrupt_channel:
                return True
    return False


def thin(key: ThreadKey, last: int, slack: int, around: Surroundings) -> Op[tuple[Pruned, int]]:
    """Prune a thread to the newest checkpoints of each namespace, if one has more than so many and some more.

    Args:
        key: The thread.
        last: How many of each namespace stay.
        slack: How many more there may be before it is worth the work.
        around: What is needed.

    Returns:
        What was deleted, and how many checkpoints the thread has now.
    """
    rows = yield from fetch(sql.COUNT_CHECKPOINTS, id=key.id)
    total = sum(count for (count,) in rows)
    if all(count <= last + slack for (count,) in rows):
        return Pruned(), total
    policy = Policy(last=last)
    pruned = yield from prune_thread(key, policy, meaning=around.meaning, indexes=around.indexes, dry_run=around.dry_run)
    return pruned, total - pruned.checkpoints
