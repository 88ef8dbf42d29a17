"""One event loop's connections to a PostgreSQL server, and the tasks that run waiting writes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from langmem_ext.storage.driver import Job, resolve
from langmem_ext.storage.postgres.pool import AsyncPool
from langmem_ext.storage.postgres.queue import Busy, Lineup, wake_in
from langmem_ext.storage.postgres.server import Server, waited
from langmem_ext.storage.postgres.tasks import start

_JOINING: Final = 3
"""How often a flusher yields at most before it sends: jobs that follow at once still join."""


class Lane:
    """The jobs and connections of one event loop.

    Args:
        server: The server.
        loop: The event loop.
        busy: The threads that this process is writing.
        store: Runs jobs together, and notifies their callers.

    Attributes:
        lineup: The jobs that wait.
        writing: The threads that are being written on this event loop.
        pool: Its connections.
    """

    def __init__(
        self,
        server: Server,
        loop: asyncio.AbstractEventLoop,
        busy: Busy,
        store: Callable[[Lane, Sequence[Job[Any]]], Awaitable[None]],
    ) -> None:
        self.loop = loop
        self.lineup = Lineup(busy)
        self.writing: set[str | None] = set()
        self._server = server
        self._busy = busy
        self._store = store
        self._flushers: set[asyncio.Task[None]] = set()
        self._joining: asyncio.Task[None] | None = None
        self._at_work: dict[int, Sequence[Job[Any]]] = {}
        self._closing: asyncio.Task[None] | None = None
        self.pool = AsyncPool(server, loop)
        self._patience: asyncio.TimerHandle | None = None
        self._watchman: asyncio.Task[None] | None = None

    @property
    def is_over(self) -> bool:
        """Whether its connections are closed for good."""
        return self._watchman is not None and self.pool.is_closed

    @property
    def is_open(self) -> bool:
        """Whether it can be used as it is."""
        return self._watchman is not None and self._closing is None and not self.pool.is_closed

    async def open(self) -> None:
        """Let connections be made when they are needed; idempotent."""
        if self._watchman is not None:
            return
        await self.pool.open()
        if self._watchman is None:  # another task may have been here meanwhile
            self._watchman = start(self.loop, self._watch())

    async def _watch(self) -> None:
        """Close the connections when an event loop ends on which nobody has closed them.

        The event loop cancels all tasks then, and waits for them.

        Of the pool's own tasks, one that makes a connection keeps the cancellation to itself, and
        then waits for work for ever.
        """
        try:
            await self.loop.create_future()
        finally:
            if not self.loop.is_closed():
                with suppress(asyncio.CancelledError):  # those that have heard of it
                    await self.pool.close()
            self.abandon()

    def add(self, job: Job[Any]) -> None:
        """Queue a job; it fails if it does not get its turn within the deadline."""
        self.lineup.add(job)
        if (
            job.thread is None or job.thread not in self.writing
        ):  # else whoever writes the thread takes this job next
            self.kick()
        if self._patience is None:
            self._patience = self.loop.call_later(self._server.deadline, self._expire)

    def _expire(self) -> None:
        self._patience = None
        expired = self.lineup.expire(self._server.deadline)
        for job in expired:
            job.fail(waited(self._server, self.pool.size))
        resolve(expired)
        if oldest := self.lineup.oldest():
            self._patience = self.loop.call_at(oldest + self._server.deadline, self._expire)

    def kick(self) -> None:
        """Make sure that waiting jobs are run."""
        if self._joining is None and len(self.lineup) and len(self._flushers) < self.pool.size:
            self._joining = flusher = start(self.loop, self._flush())
            self._flushers.add(flusher)
            flusher.add_done_callback(self._end)

    async def _flush(self) -> None:
        while True:
            self._joining = asyncio.current_task()
            for _ in range(_JOINING):
                await asyncio.sleep(0)
            self._joining = None
            jobs = self.lineup.take_or_call(wake_in(self.loop, self.kick))
            if not jobs:
                break
            self.kick()  # others may go to another connection meanwhile
            self._at_work[id(jobs)] = jobs
            try:
                await self._store(self, jobs)
            finally:
                del self._at_work[id(jobs)]
            if not len(self.lineup):
                break
        # Here and not in `_end`, which comes later: a caller that gets its answer may add a job
        # before that.
        self._flushers.difference_update({asyncio.current_task()})

    def _end(self, flusher: asyncio.Task[None]) -> None:
        """Start another flusher for what has arrived while one that was stopped was writing."""
        if flusher not in self._flushers:
            return
        self._flushers.discard(flusher)
        if not flusher.cancelled():
            flusher.exception()  # an interrupt, which the event loop's runner has received
        if self._joining is flusher:
            self._joining = None
        if self.lineup.is_wanted:
            self.kick()

    async def aclose(self) -> None:
        """Close the connections once running writes are done, even if the caller is cancelled."""
        await asyncio.shield(self.end())

    def end(self) -> asyncio.Task[None]:
        """Begin to close the connections, once running writes are done; idempotent."""
        if self._closing is None:
            self._closing = start(self.loop, self._close())
        return self._closing

    async def _close(self) -> None:
        while self._flushers:
            await asyncio.wait(self._flushers)
        if self._patience is not None:
            self._patience.cancel()
        await self.pool.close()
        if self._watchman is not None:
            self._watchman.cancel()
            await asyncio.wait([self._watchman])

    def abandon(self) -> None:
        """Close the connections of an event loop that is closed, or ends.

        The threads that a closed one was writing are released.
        """
        self.pool.abandon()
        if self.loop.is_closed():
            for jobs in list(self._at_work.values()):
                self._busy.give_back(jobs)
