"""The half of `Threads` that has to do with time: how long a thread lives, and what becomes of those that have lived.

A thread whose turns name a tool is a tool thread; others are chats. Each write begins a thread's time anew; one that waits for an answer
does not expire.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, get_args
from uuid import UUID

from langmem_ext.errors import InvalidInput
from langmem_ext.meaning import CheckpointMeaning
from langmem_ext.retention import Keeper, Retention, Steps, arun_steps, checked_now, run_steps
from langmem_ext.source import Source
from langmem_ext.storage.clock import now_ms
from langmem_ext.storage.effects import Op
from langmem_ext.storage.retention_ops import Surroundings, read_live
from langmem_ext.sweeper import EVERY, AsyncSweeper, Sweeper
from langmem_ext.types import Pruned, ThreadInfo

if TYPE_CHECKING:
    from langmem_ext.checkpoint import DeltaSaver
    from langmem_ext.log import MessageLog

ThreadId: TypeAlias = str | int | UUID
OnLimit: TypeAlias = Literal["trim", "error"]
OnDamage: TypeAlias = Literal["raise", "skip"]

TOOL_TTL: Final = timedelta(hours=3)
"""How long a tool thread lives after it was last written."""

MONTH: Final = timedelta(days=30)
"""How old the threads are that `prune` deletes."""

MAX_TURNS: Final = 50
"""Turns of a thread that are shown, or that it may have."""


class LimitedThreads:
    """Threads that live for some time.

    Args:
        log: The database: a `MessageLog`, a `DeltaSaver` (whose serializer and owner are then used too) or a URL.
        owner: Bind to an owner.
        ttl: A thread that was not written for so long (a `timedelta`, or seconds) has expired; 0 or None: never.
        tool_ttl: The same for tool threads; 0 or None: as `ttl` has it.
        max_turns: How many whole turns of a thread are shown, the newest; 0 or None: all.
        on_limit: `trim`: a thread may have more turns than are shown; its log keeps them. `error`: the turn after them is refused.
        on_damage: What reading a damaged thread for its continuation does. `raise`: a `DamagedRow` that names the row. `skip`: a warning,
            once, and it goes on without memory.

    Raises:
        InvalidInput: A limit cannot be used.
    """

    def __init__(
        self,
        log: MessageLog | DeltaSaver | str,
        *,
        owner: str | None = None,
        ttl: timedelta | float | None = None,
        tool_ttl: timedelta | float | None = TOOL_TTL,
        max_turns: int | None = MAX_TURNS,
        on_limit: OnLimit = "trim",
        on_damage: OnDamage = "raise",
    ) -> None:
        self.retention = Retention(ttl=ttl or None, tool_ttl=tool_ttl or None)
        if max_turns is not None and (isinstance(max_turns, bool) or not isinstance(max_turns, int) or max_turns < 0):
            raise InvalidInput(f"max_turns is how many turns a thread shows, or 0 for all, not {max_turns!r}")
        if on_limit not in get_args(OnLimit):
            raise InvalidInput(f"on_limit is 'trim' or 'error', not {on_limit!r}")
        if on_damage not in get_args(OnDamage):
            raise InvalidInput(f"on_damage is 'raise' or 'skip', not {on_damage!r}")
        self.max_turns = max_turns or None
        self.on_limit: OnLimit = on_limit
        self.on_damage: OnDamage = on_damage
        self._source = Source.of(log, owner)
        self.log = self._source.log
        self.owner = self._source.owner
        self._codec = self._source.codec

    def get(self, thread_id: ThreadId) -> ThreadInfo:
        """One thread.

        Raises:
            ThreadNotFound: There is none of this id, or it is another owner's.
            ThreadExpired: It has expired; until the next sweep, lists still show it.
        """
        return self.log.run(self._live(thread_id), write=False)

    async def aget(self, thread_id: ThreadId) -> ThreadInfo:
        """Async twin of `get`."""
        return await self.log.arun(self._live(thread_id), write=False)

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
        keeper = Keeper(retention, self.log, Surroundings(self.owner, CheckpointMeaning(self._codec), self.log.indexes))
        return keeper.sweep_steps(now_ms() if now is None else checked_now(now), dry_run=dry_run)

    # -- parts ---------------------------------------------------------------------------------------------------------------------------

    def _live(self, thread_id: ThreadId) -> Op[ThreadInfo]:
        return read_live(self._source.key(thread_id), self.retention.cutoff(now_ms()), CheckpointMeaning(self._codec))
