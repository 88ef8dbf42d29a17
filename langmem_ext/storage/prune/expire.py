"""Operations that apply a retention to one thread, each in one transaction that checks it again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from langmem_ext.errors import ThreadExpired
from langmem_ext.storage.cache import ThreadCache, ThreadCaches
from langmem_ext.storage.checkpoints.lookup import find_writes, header_of
from langmem_ext.storage.checkpoints.sql import (
    LOCK_NUMBER,
    SELECT_CHECKPOINT,
    SELECT_LATEST_CHECKPOINT,
)
from langmem_ext.storage.operation import Op, fetch, fetch_one, operation
from langmem_ext.storage.prune import sql
from langmem_ext.storage.prune.mark import FrameworkFacts, entries_of
from langmem_ext.storage.prune.prune import Policy, drop_thread, prune_thread
from langmem_ext.storage.rows.clock import unix_ms
from langmem_ext.storage.threads.edit import is_edit
from langmem_ext.storage.threads.list import read_info
from langmem_ext.types import Pruned, ThreadInfo, ThreadKey


@dataclass(frozen=True, slots=True)
class Cutoff:
    """A moment for each kind of thread, before which it was last written, in Unix milliseconds.

    Attributes:
        chats: For a thread without a tool.
        tools: For a thread whose turns name a tool.
    """

    chats: int
    tools: int

    @classmethod
    def at(cls, moment: int) -> Cutoff:
        """The same moment for both kinds."""
        return cls(moment, moment)

    def of(self, tool: str | None) -> int:
        """The moment for a thread that has this tool."""
        return self.chats if tool is None else self.tools


EVER: Final = Cutoff.at(1 << 62)
"""Later than any moment: all threads."""

NO_MOMENT: Final = -1
"""A time before that of any thread."""


@dataclass(frozen=True, slots=True)
class Position:
    """A thread's place in the order of deletion: the one written longest ago is the first."""

    updated_at: int = -1
    number: int = -1


BEGINNING: Final = Position()
"""Before all threads."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A thread that may be forgotten."""

    key: ThreadKey
    at: Position


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What every operation here needs.

    Attributes:
        owner: Only this owner's threads are seen.
        facts: What the checkpoints mean to their framework.
        caches: The caches of this process.
        dry_run: Show what would be deleted; change nothing.
    """

    owner: str | None
    facts: FrameworkFacts
    caches: ThreadCaches
    dry_run: bool = False


@operation
def next_threads(
    after: Position, limit: int, around: Surroundings, *, before: Cutoff = EVER
) -> Op[list[Candidate]]:
    """Threads after a position that were last written before a cutoff, the longest ago first."""
    params = {
        "at": after.updated_at,
        "after": after.number,
        "chats": before.chats,
        "tools": before.tools,
        "limit": limit,
    }
    if around.owner is None:
        rows = yield from fetch(sql.SELECT_OLDEST, **params)
    else:
        rows = yield from fetch(sql.SELECT_OLDEST_OF, **params, owner=around.owner)
    return [
        Candidate(ThreadKey(thread_id, owner), Position(updated_at, number))
        for updated_at, number, thread_id, owner in rows
    ]


@operation
def expire(candidate: Candidate, around: Surroundings, *, before: Cutoff = EVER) -> Op[Pruned]:
    """Delete a thread, unless it waits for an answer, or was not last written before a cutoff."""
    if not around.dry_run:
        yield from fetch(LOCK_NUMBER, thread=candidate.at.number)
    row = yield from fetch_one(sql.SELECT_REST, thread=candidate.at.number)
    if row is None or not (
        yield from _is_over(candidate.at.number, *row, before=before, facts=around.facts)
    ):
        return Pruned()
    return (yield from drop_thread(candidate.key, caches=around.caches, dry_run=around.dry_run))


@operation
def read_live(key: ThreadKey, before: Cutoff | None, facts: FrameworkFacts) -> Op[ThreadInfo]:
    """A thread's row.

    Args:
        key: The thread.
        before: Threads that were last written before this have expired; None if none has.
        facts: What the checkpoints mean to their framework.

    Raises:
        ThreadNotFound: It does not exist, or belongs to another owner.
        ThreadExpired: It has expired, and is not deleted yet.
    """
    info = yield from read_info(key)
    if before is not None:
        written = unix_ms(info.updated_at)
        if (
            yield from _is_over(
                info.number, written, info.tool, info.waiting_for, before=before, facts=facts
            )
        ):
            raise ThreadExpired(
                f"thread {key.id!r} has expired: it was last written at"
                f" {info.updated_at:%Y-%m-%d %H:%M:%S} UTC; start a new one"
            )
    return info


def _is_over(
    number: int,
    updated_at: int,
    tool: str | None,
    waiting_for: str | None,
    *,
    before: Cutoff,
    facts: FrameworkFacts,
) -> Op[bool]:
    """Whether a thread was last written before a cutoff and waits for nothing."""
    if updated_at >= before.of(tool) or waiting_for is not None:
        return False
    return not (yield from _is_asked(number, facts))


def _is_asked(number: int, facts: FrameworkFacts) -> Op[bool]:
    """Whether a task of the thread's newest checkpoint waits for an answer.

    If that checkpoint is an edit without the graph, the one that it follows counts too.
    """
    cache = ThreadCache(number)
    row = yield from fetch_one(SELECT_LATEST_CHECKPOINT, thread=number, namespace=0)
    while row is not None:
        for writes in (yield from find_writes(cache, 0, row[0])):
            for entry in (yield from entries_of(cache, writes)):
                if entry.channel == facts.interrupt_channel:
                    return True
        before = (
            None
            if row[1] is None
            else (yield from fetch_one(SELECT_CHECKPOINT, thread=number, namespace=0, id=row[1]))
        )
        if before is None or not is_edit(
            (yield from header_of(cache, 0, row)), (yield from header_of(cache, 0, before))
        ):
            return False
        row = before
    return False


@operation
def thin(key: ThreadKey, last: int, slack: int, around: Surroundings) -> Op[tuple[Pruned, int]]:
    """Prune a thread to the newest checkpoints of each namespace, if one has over `last` + `slack`.

    Args:
        key: The thread.
        last: How many checkpoints of each namespace stay.
        slack: How many more there may be before pruning is worth the work.
        around: What every operation here needs.

    Returns:
        What was deleted, and how many checkpoints the thread has now.
    """
    rows = yield from fetch(sql.COUNT_CHECKPOINTS, id=key.id)
    total = sum(count for (count,) in rows)
    if all(count <= last + slack for (count,) in rows):
        return Pruned(), total
    policy = Policy(last=last)
    pruned = yield from prune_thread(
        key, policy, facts=around.facts, caches=around.caches, dry_run=around.dry_run
    )
    return pruned, total - pruned.checkpoints
