"""The half of `Threads` that has to do with time: how long a thread lives, and what becomes of those that have lived.

A thread whose turns name a tool is a tool thread; others are chats. Each write begins a thread's time anew; one that waits for an answer
does not expire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, Self, TypedDict, Unpack
from uuid import uuid4

from langmem_ext.checkpoint import DeltaSaver
from langmem_ext.errors import InvalidInput, ThreadNotFound
from langmem_ext.log import Database, is_address, thread_key
from langmem_ext.meaning import CheckpointMeaning
from langmem_ext.messages.turns import ConversationTurn
from langmem_ext.retention import Keeper, Retention, Steps, arun_steps, checked_now, run_steps
from langmem_ext.source import Source
from langmem_ext.storage.clock import now_ms
from langmem_ext.storage.effects import Operation
from langmem_ext.storage.retention_ops import Surroundings
from langmem_ext.sweeper import EVERY, AsyncSweeper, Sweeper
from langmem_ext.telemetry import Emitter, Sink
from langmem_ext.threads.continuation.continuation import Continuation
from langmem_ext.threads.continuation.turns import Limits, OnDamage, OnLimit, TurnReader, checked_turns
from langmem_ext.threads.continuation.usage import Prices, ThreadUsage, checked_prices, spent_by, thread_usage
from langmem_ext.threads.rewind import arewind, rewind
from langmem_ext.threads.rows import ThreadId, ThreadRows
from langmem_ext.types import Pruned, ThreadInfo

TOOL_TTL: Final = timedelta(hours=3)
"""How long a tool thread lives after it was last written."""

MONTH: Final = timedelta(days=30)
"""How old the threads are that `prune` deletes."""

MAX_TURNS: Final = 50
"""Turns of a thread that are shown, or that it may have."""


class ThreadsOptions(TypedDict, total=False):
    """What `Threads` takes besides the database."""

    owner: str | None
    ttl: timedelta | float | None
    tool_ttl: timedelta | float | None
    max_turns: int | None
    on_limit: OnLimit
    on_damage: OnDamage
    telemetry: Sequence[Sink]


class LimitedThreads(ThreadRows):
    """The half of `Threads` that has limits; what it takes is described there.

    Raises:
        InvalidInput: A limit cannot be used.
    """

    def __init__(
        self,
        log: Database,
        *,
        owner: str | None = None,
        ttl: timedelta | float | None = None,
        tool_ttl: timedelta | float | None = TOOL_TTL,
        max_turns: int | None = MAX_TURNS,
        on_limit: OnLimit = "trim",
        on_damage: OnDamage = "raise",
        telemetry: Sequence[Sink] = (),
    ) -> None:
        self.retention = Retention(ttl=ttl or None, tool_ttl=tool_ttl or None)
        self._limits = Limits(max_turns or None, on_limit, on_damage)
        self._emitter = Emitter(telemetry)
        self._source = Source.of(log, owner)
        super().__init__(self._source.log, self._source.owner)
        self._opened = is_address(log)
        self._codec = self._source.codec
        self._reader = TurnReader(self._source, self.retention, self._limits)

    @classmethod
    async def aopen(cls, log: Database, **options: Unpack[ThreadsOptions]) -> Self:
        """Async twin of `Threads(log, …)`, which does not block the event loop.

        Example:
            `threads = await Threads.aopen("memory.db")`
        """
        return await asyncio.to_thread(partial(cls, log, **options))

    def _live(self, thread_id: ThreadId) -> Operation[ThreadInfo]:
        return self._reader.live(thread_id)

    # -- going on ------------------------------------------------------------------------------------------------------------------------

    def turns(self, thread_id: ThreadId, last: int | None = None) -> list[ConversationTurn]:
        """The newest whole turns of a thread, oldest first; its log keeps all.

        A turn begins with a user's message, unless that stands between a tool call and the call's result.

        Args:
            thread_id: The thread.
            last: At most so many; as many as `max_turns` says by default.

        Raises:
            ThreadNotFound: There is no such thread (`ThreadExpired`: it has expired).
            DamagedRow: It is damaged, and that is to be an error.
        """
        count = self._limits.max_turns if last is None else checked_turns(last, "last")
        return self._reader.read(thread_key(thread_id), count, numbered=True).last(count)

    async def aturns(self, thread_id: ThreadId, last: int | None = None) -> list[ConversationTurn]:
        """Async twin of `turns`."""
        return await self.log.driver.acall(lambda: self.turns(thread_id, last))

    def begin(self, tool: str | None = None) -> Continuation:
        """A new conversation, for a tool or agent. Nothing is read or stored for it: its thread is made by its first message."""
        return Continuation(self._reader, str(uuid4()), tool)

    async def abegin(self, tool: str | None = None) -> Continuation:
        """Async twin of `begin`."""
        return self.begin(tool)

    def continue_(self, continuation_id: ThreadId | None, *, tool: str | None = None) -> Continuation:
        """Go on with a conversation, whichever tool has begun it.

        Args:
            continuation_id: As a tool's result carries it; None or empty begins a new conversation.
            tool: Who goes on with it.

        Raises:
            ThreadNotFound: There is no such thread (`ThreadExpired`: it has expired).
            TurnLimitReached: It has as many turns as it may have.
            InvalidInput: An argument cannot be used.
        """
        if continuation_id is None or continuation_id == "":
            return self.begin(tool)
        return Continuation(self._reader, self._reader.open(thread_key(continuation_id)), tool)

    async def acontinue_(self, continuation_id: ThreadId | None, *, tool: str | None = None) -> Continuation:
        """Async twin of `continue_`."""
        return await self.log.driver.acall(lambda: self.continue_(continuation_id, tool=tool))

    def rewind(self, thread_id: ThreadId, *, wait: float = 10) -> ThreadInfo:
        """Take back the answers that a thread's open step was given: its question waits again.

        LangGraph stores an answer before the node has gone on. If the node cannot use it, each
        later answer replays that one, and the thread is stuck. Nothing but those answers is lost:
        what was said stays, and so does what other tasks of the step have done. A step with several
        questions asks again from the first one at the next run.

        Args:
            thread_id: The thread.
            wait: Seconds to wait for another caller who drives the thread.

        Raises:
            ThreadNotFound: There is no such thread.
            InvalidInput: Its open step was given no answer, or it has no open step. Nothing was
                changed.
            ThreadBusy: Another caller was still driving the thread after `wait` seconds.
        """
        key, saver = thread_key(thread_id), self._saver()
        with saver.lease(key, wait=wait):
            _require_rewound(key, rewind(saver, key))
        return self.get(key)

    async def arewind(self, thread_id: ThreadId, *, wait: float = 10) -> ThreadInfo:
        """Async twin of `rewind`."""
        key, saver = thread_key(thread_id), self._saver()
        async with saver.alease(key, wait=wait):
            _require_rewound(key, await arewind(saver, key))
        return await self.aget(key)

    def _saver(self) -> DeltaSaver:
        return DeltaSaver(self.log, serde=self._source.serde, owner=self.owner)

    # -- counting ------------------------------------------------------------------------------------------------------------------------

    def usage(self, thread_id: ThreadId, prices: Prices | None = None) -> ThreadUsage:
        """What a thread has used of its models, by its messages' `usage_metadata`: in all, and turn by turn.

        The total is of all messages that the log holds, those of other branches and of subgraphs too: they were paid for. A message counts
        once. What a model used without leaving a message is not in it, and what was pruned is not any more.

        Args:
            thread_id: The thread; one that has expired can be counted until it is deleted.
            prices: By a model's name, exactly as its messages have it, what a million prompt tokens and a million completion tokens cost.

        Raises:
            ThreadNotFound: There is no such thread.
            DamagedRow: A message is damaged.
            InvalidInput: A price is none.
        """
        table = None if prices is None else checked_prices(prices)
        return thread_usage(*self._reader.count(thread_key(thread_id), spent_by), table)

    async def ausage(self, thread_id: ThreadId, prices: Prices | None = None) -> ThreadUsage:
        """Async twin of `usage`."""
        return await self.log.driver.acall(lambda: self.usage(thread_id, prices))

    # -- forgetting ----------------------------------------------------------------------------------------------------------------------

    def sweep(self, *, now: datetime | None = None, dry_run: bool = False) -> Pruned:
        """Delete the threads that have expired, each in a transaction of its own.

        The clock is read once, so what expires does not depend on how long the sweep takes. A thread that was written meanwhile stays, and
        one that waits for an answer; one that is damaged is passed over, with a warning.

        Args:
            now: The moment to take for now, with its time zone.
            dry_run: Only say what would be deleted.

        Raises:
            InvalidInput: `now` has no time zone.
        """
        return run_steps(self.log, self._sweep(self.retention, now, dry_run))

    async def asweep(self, *, now: datetime | None = None, dry_run: bool = False) -> Pruned:
        """Async twin of `sweep`."""
        return await arun_steps(self.log, self._sweep(self.retention, now, dry_run))

    def prune(self, *, older_than: timedelta = MONTH, now: datetime | None = None, dry_run: bool = False) -> Pruned:
        """Delete the threads of whatever kind that were not written for so long; otherwise like `sweep`."""
        return run_steps(self.log, self._prune(older_than, now, dry_run))

    async def aprune(self, *, older_than: timedelta = MONTH, now: datetime | None = None, dry_run: bool = False) -> Pruned:
        """Async twin of `prune`."""
        return await arun_steps(self.log, self._prune(older_than, now, dry_run))

    def sweeper(self, *, every: timedelta = EVERY) -> Sweeper:
        """Sweeps in the background, on a thread of its own: `with threads.sweeper(): …`, or its `start` and `stop`.

        Args:
            every: How long it is to the next sweep.

        Raises:
            InvalidInput: That cannot be used.
        """
        return Sweeper(self.log, lambda: self._sweep(self.retention, None, dry_run=False), every)

    def asweeper(self, *, every: timedelta = EVERY) -> AsyncSweeper:
        """`sweeper` on the running event loop: `async with threads.asweeper(): …`, or its `start` and `await stop()`."""
        return AsyncSweeper(self.log, lambda: self._sweep(self.retention, None, dry_run=False), every)

    def _prune(self, older_than: timedelta, now: datetime | None, dry_run: bool) -> Steps:
        if not isinstance(older_than, timedelta) or older_than <= timedelta():
            raise InvalidInput(f"older_than is how long a thread was not written, a timedelta above zero, not {older_than!r}")
        return self._sweep(Retention(ttl=older_than), now, dry_run)

    def _sweep(self, retention: Retention, now: datetime | None, dry_run: bool) -> Steps:
        around = Surroundings(self.owner, CheckpointMeaning(self._codec), self.log.indexes)
        keeper = Keeper(retention, self.log, around, self._emitter)
        return (yield from keeper.sweep_steps(now_ms() if now is None else checked_now(now), dry_run=dry_run))


def _require_rewound(thread_id: str, taken: bool | None) -> None:
    if taken is None:
        raise ThreadNotFound(f"thread {thread_id!r} not found; `langmem-ext threads list` shows those that there are")
    if not taken:
        why = "its open step was given no answer; go on as usual"
        raise InvalidInput(f"thread {thread_id!r} has nothing to rewind: {why}")
