"""The part of `Threads` for lifetimes: how long a thread lives, and how it is deleted.

A thread whose turns name a tool is a tool thread; others are chats. Each write begins a thread's
time again; one that waits for an answer does not expire.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final, Self, TypedDict, Unpack
from uuid import uuid4

from langmem_ext._internal.stepping import aperform, perform
from langmem_ext.checkpointer.delta_channels import LangGraphFacts
from langmem_ext.checkpointer.saver import DeltaSaver
from langmem_ext.errors import InvalidInput, ThreadNotFound
from langmem_ext.log.message_log import Database, bound_owner, is_address, thread_key
from langmem_ext.log.retention import Keeper, Retention, Steps, arun_steps, checked_now, run_steps
from langmem_ext.log.scope import DatabaseView
from langmem_ext.log.sweeper import EVERY, AsyncSweeper, Sweeper
from langmem_ext.messages.turns import ConversationTurn
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.prune.expire import Surroundings
from langmem_ext.storage.prune.prune import drop_thread
from langmem_ext.storage.rows.clock import now_ms
from langmem_ext.storage.threads.list import list_owned
from langmem_ext.store.operations import delete_owned
from langmem_ext.telemetry import Emitter, Sink
from langmem_ext.threads.continuation.continuation import Continuation
from langmem_ext.threads.continuation.turns import (
    Limits,
    OnDamage,
    OnLimit,
    TurnReader,
    checked_turns,
)
from langmem_ext.threads.continuation.usage import (
    Prices,
    ThreadUsage,
    checked_prices,
    spent_by,
    thread_usage,
)
from langmem_ext.threads.rows import PAGE, ThreadId, ThreadRows
from langmem_ext.threads.states.rewind import arewind, rewind
from langmem_ext.types import Pruned, ThreadInfo, ThreadKey

TOOL_TTL: Final = timedelta(hours=3)
"""How long a tool thread lives after it was last written."""

MONTH: Final = timedelta(days=30)
"""How old the threads are that `prune` deletes."""

MAX_TURNS: Final = 50
"""Turns of a thread that are shown, or that it may have."""


class ThreadsOptions(TypedDict, total=False):
    """The options of `Threads`."""

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
        InvalidInput: A limit is invalid.
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
        self._view = DatabaseView.of(log, owner)
        super().__init__(self._view.log, self._view.owner)
        self._opened = is_address(log)
        self._codec = self._view.codec
        self._reader = TurnReader(self._view, self.retention, self._limits)

    @classmethod
    async def aopen(cls, log: Database, **options: Unpack[ThreadsOptions]) -> Self:
        """Async twin of `Threads(log, …)`, which does not block the event loop.

        Example:
            `threads = await Threads.aopen("memory.db")`
        """
        return await asyncio.to_thread(partial(cls, log, **options))

    def _live(self, thread_id: ThreadId) -> Operation[ThreadInfo]:
        return self._reader.live(thread_id)

    # -- going on ----------------------------------------------------------------------------------

    def turns(self, thread_id: ThreadId, last: int | None = None) -> list[ConversationTurn]:
        """The newest whole turns of a thread, oldest first; its log keeps all.

        A turn starts with a user's message, unless that is between a tool call and its result.

        Args:
            thread_id: The thread.
            last: The maximum number of turns. Default: `max_turns`.

        Raises:
            ThreadNotFound: The thread does not exist (`ThreadExpired`: it has expired).
            DamagedRow: It is damaged, and `on_damage` is `raise`.
        """
        count = self._limits.max_turns if last is None else checked_turns(last, "last")
        return self._reader.read(thread_key(thread_id), count, numbered=True).last(count)

    async def aturns(self, thread_id: ThreadId, last: int | None = None) -> list[ConversationTurn]:
        """Async twin of `turns`."""
        return await self.log.driver.acall(lambda: self.turns(thread_id, last))

    def begin(self, tool: str | None = None) -> Continuation:
        """Start a conversation, for a tool or agent.

        Nothing is read or stored: its first message creates the thread.
        """
        return Continuation(self._reader, str(uuid4()), tool)

    async def abegin(self, tool: str | None = None) -> Continuation:
        """Async twin of `begin`."""
        return self.begin(tool)

    def continue_(
        self, continuation_id: ThreadId | None, *, tool: str | None = None
    ) -> Continuation:
        """Continue a conversation, whichever tool started it.

        Args:
            continuation_id: The id in a tool's result; None or empty starts a new conversation.
            tool: The tool that continues it.

        Raises:
            ThreadNotFound: The thread does not exist (`ThreadExpired`: it has expired).
            TurnLimitReached: It has reached its maximum number of turns.
            InvalidInput: An argument is invalid.
        """
        if continuation_id is None or continuation_id == "":
            return self.begin(tool)
        return Continuation(self._reader, self._reader.open(thread_key(continuation_id)), tool)

    async def acontinue_(
        self, continuation_id: ThreadId | None, *, tool: str | None = None
    ) -> Continuation:
        """Async twin of `continue_`."""
        return await self.log.driver.acall(lambda: self.continue_(continuation_id, tool=tool))

    def rewind(self, thread_id: ThreadId, *, wait: float = 10) -> ThreadInfo:
        """Undo the answers given to a thread's pending step: its question waits again.

        LangGraph stores an answer before the node has continued. If the node cannot use it, each
        later answer replays that one, and the thread is stuck. Only those answers are lost:
        messages stay, and so do the results of other tasks of the step. A step with several
        questions asks again from the first one at the next run.

        Args:
            thread_id: The thread.
            wait: Seconds to wait for another caller that is using the thread.

        Raises:
            ThreadNotFound: The thread does not exist.
            InvalidInput: It has no pending step, or no answer was given to it. Nothing was changed.
            ThreadBusy: Another caller was still using the thread after `wait` seconds.
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
        return DeltaSaver(self.log, serde=self._view.serde, owner=self.owner)

    # -- counting ----------------------------------------------------------------------------------

    def usage(self, thread_id: ThreadId, prices: Prices | None = None) -> ThreadUsage:
        """The model usage of a thread by its messages' `usage_metadata`: in total, and by turn.

        The total is of all messages in the log, including those of other branches and of subgraphs:
        they were paid for. A message counts once. Usage that left no message is not included, nor
        that of pruned messages.

        Args:
            thread_id: The thread; an expired one can be counted until it is deleted.
            prices: By a model's name, exactly as its messages have it, the cost of a million prompt
                tokens and of a million completion tokens.

        Raises:
            ThreadNotFound: The thread does not exist.
            DamagedRow: A message is damaged.
            InvalidInput: A price is invalid.
        """
        table = None if prices is None else checked_prices(prices)
        return thread_usage(*self._reader.count(thread_key(thread_id), spent_by), table)

    async def ausage(self, thread_id: ThreadId, prices: Prices | None = None) -> ThreadUsage:
        """Async twin of `usage`."""
        return await self.log.driver.acall(lambda: self.usage(thread_id, prices))

    # -- forgetting --------------------------------------------------------------------------------

    def sweep(self, *, now: datetime | None = None, dry_run: bool = False) -> Pruned:
        """Delete expired threads, each in its own transaction.

        The clock is read once, so what expires does not depend on how long the sweep takes. A
        thread written to in the meantime stays, and so does a waiting one; a damaged one is
        skipped, with a warning.

        Args:
            now: The time to use as now, with a time zone.
            dry_run: Show what would be deleted; change nothing.

        Raises:
            InvalidInput: `now` has no time zone.
        """
        return run_steps(self.log, self._sweep(self.retention, now, dry_run))

    async def asweep(self, *, now: datetime | None = None, dry_run: bool = False) -> Pruned:
        """Async twin of `sweep`."""
        return await arun_steps(self.log, self._sweep(self.retention, now, dry_run))

    def prune(
        self, *, older_than: timedelta = MONTH, now: datetime | None = None, dry_run: bool = False
    ) -> Pruned:
        """Delete threads of any kind not written to for this long; otherwise like `sweep`."""
        return run_steps(self.log, self._prune(older_than, now, dry_run))

    async def aprune(
        self, *, older_than: timedelta = MONTH, now: datetime | None = None, dry_run: bool = False
    ) -> Pruned:
        """Async twin of `prune`."""
        return await arun_steps(self.log, self._prune(older_than, now, dry_run))

    def forget_owner(self, owner: str) -> Pruned:
        """Delete everything of an owner: all threads, and all items of the long-term store.

        The store's items include memories and facts.

        Deleted rows are also overwritten in the file (`MessageLog.compact`). A run that is under
        way cannot bring its thread back (`ThreadDeleted`). If the deletion is stopped, call it
        again to continue. Items that a store wrote without an owner belong to nobody, whatever
        their namespace says, and stay.

        Returns:
            What was deleted; `store_items` are those of the store.

        Raises:
            InvalidInput: The owner is invalid, or another than the one that these threads are bound
                to.
            StorageUnavailable: All is deleted, but this role may not free the space.
        """
        pruned = perform(self._forgetting(owner), lambda op: self.log.run(op, write=True))
        self.log.compact()
        return pruned

    async def aforget_owner(self, owner: str) -> Pruned:
        """Async twin of `forget_owner`."""
        pruned = await aperform(self._forgetting(owner), lambda op: self.log.arun(op, write=True))
        await self.log.acompact()
        return pruned

    def _forgetting(self, owner: str) -> Generator[Operation[Any], Any, Pruned]:
        name = bound_owner(self, owner)
        if name is None:
            raise InvalidInput("whose threads are to be forgotten? give the owner's name")
        total = Pruned()
        while thread_ids := (yield list_owned(name, PAGE)):
            for thread_id in thread_ids:
                total += yield drop_thread(
                    ThreadKey(thread_id, name), caches=self.log.caches, dry_run=False
                )
        while count := (yield delete_owned(name)):
            total += Pruned(store_items=count)
        return total

    def sweeper(self, *, every: timedelta = EVERY) -> Sweeper:
        """Sweep periodically on a background thread: `with threads.sweeper(): …`.

        Or use its `start` and `stop`.

        Args:
            every: Time between two sweeps.

        Raises:
            InvalidInput: The time is invalid.
        """
        return Sweeper(self.log, lambda: self._sweep(self.retention, None, dry_run=False), every)

    def asweeper(self, *, every: timedelta = EVERY) -> AsyncSweeper:
        """`sweeper` on the running event loop: `async with threads.asweeper(): …`.

        Or use its `start` and `await stop()`.
        """
        return AsyncSweeper(
            self.log, lambda: self._sweep(self.retention, None, dry_run=False), every
        )

    def _prune(self, older_than: timedelta, now: datetime | None, dry_run: bool) -> Steps:
        if not isinstance(older_than, timedelta) or older_than <= timedelta():
            raise InvalidInput(f"older_than must be a positive timedelta, not {older_than!r}")
        return self._sweep(Retention(ttl=older_than), now, dry_run)

    def _sweep(self, retention: Retention, now: datetime | None, dry_run: bool) -> Steps:
        around = Surroundings(self.owner, LangGraphFacts(self._codec), self.log.caches)
        keeper = Keeper(retention, self.log, around, self._emitter)
        moment = now_ms() if now is None else checked_now(now)
        return (yield from keeper.sweep_steps(moment, dry_run=dry_run))


def _require_rewound(thread_id: str, taken: bool | None) -> None:
    if taken is None:
        raise ThreadNotFound(f"thread {thread_id!r} not found; see `langmem-ext threads list`")
    if not taken:
        why = "no answer was given to its pending step; continue as usual"
        raise InvalidInput(f"thread {thread_id!r} has nothing to rewind: {why}")
