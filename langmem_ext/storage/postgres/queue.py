"""Writes that wait for a connection: which may go together, and which threads are being written.

Invariants:
- A thread is written by one connection of this process at a time: two would wait for each other in
  the database, and invalidate each other's cache.
- Jobs that go together are sorted by thread, so that two processes lock the rows of two threads in
  the same order.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from time import monotonic
from typing import Any, Final

from langmem_ext.storage.driver import Job

TOGETHER: Final = 32
"""The maximum number of operations that share a transaction."""


class Busy:
    """The threads that are being written."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        self._threads: dict[str, Job[Any]] = {}
        self._waiting: list[Callable[[], None]] = []

    def claim(self, thread: str | None, job: Job[Any]) -> bool:
        """Take a thread for a job, if nobody has it; with `changed` held."""
        return thread is None or self._threads.setdefault(thread, job) is job

    def is_free(self, thread: str | None) -> bool:
        """Whether nobody has a thread; with `changed` held."""
        return thread not in self._threads

    def give_back(self, jobs: Iterable[Job[Any]]) -> None:
        """Let others write the threads that some jobs have taken; idempotent."""
        with self.changed:
            for job in jobs:
                if job.thread is not None and self._threads.get(job.thread) is job:
                    del self._threads[job.thread]
            self.changed.notify_all()
            waiting, self._waiting = self._waiting, []
        for wake in waiting:
            wake()

    def call_back(self, wake: Callable[[], None]) -> None:
        """Call `wake` once a thread is released; with `changed` held."""
        self._waiting.append(wake)


class Lineup:
    """The jobs that wait, oldest first: those of the sync callers, or of one event loop.

    Args:
        busy: Shared by all that write to one database from this process.
    """

    def __init__(self, busy: Busy) -> None:
        self._busy = busy
        self._jobs: deque[Job[Any]] = deque()

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def is_wanted(self) -> bool:
        """Whether somebody still waits for a job on an event loop."""
        return any(job.future is not None and not job.future.done() for job in self._jobs)

    def add(self, job: Job[Any]) -> None:
        """Let a job wait."""
        job.since = monotonic()
        with self._busy.changed:
            self._jobs.append(job)

    def expire(self, deadline: float) -> list[Job[Any]]:
        """Remove the jobs that have waited for so many seconds."""
        since = monotonic() - deadline
        with self._busy.changed:
            expired = [job for job in self._jobs if job.since <= since]
            for job in expired:
                self._jobs.remove(job)
        return expired

    def oldest(self) -> float | None:
        """Since when the job waits that has waited for longest."""
        with self._busy.changed:
            return self._jobs[0].since if self._jobs else None

    def withdraw(self, job: Job[Any]) -> None:
        """Take back a job that nobody runs.

        It waits, or this thread has taken it and was stopped before it had begun.
        """
        with self._busy.changed, suppress(ValueError):
            self._jobs.remove(job)
        if job.taker == threading.get_ident():
            self._busy.give_back([job])

    def take_or_wait(
        self, own: Job[Any], only: Job[Any] | None = None, *, deadline: float
    ) -> list[Job[Any]]:
        """Jobs to run together, once there are some; none if another has run `own`.

        Raises:
            TimeoutError: `own` has waited for `deadline` seconds, and nobody has taken it; it is
                taken back.
        """
        with self._busy.changed:
            while not own.done:
                if jobs := self._take(only):
                    return jobs
                left = own.since + deadline - monotonic() if own in self._jobs else None
                if left is not None and left <= 0:
                    self._jobs.remove(own)
                    raise TimeoutError
                if only is not None:
                    self._busy.changed.notify_all()  # what has come before it has waited for it
                self._busy.changed.wait(left)
        return []

    def take_or_call(self, wake: Callable[[], None]) -> list[Job[Any]]:
        """Jobs to run together.

        If some wait and none can be taken, `wake` is called when it may be tried again.
        """
        with self._busy.changed:
            jobs = self._take(None)
            if not jobs and self._jobs:
                self._busy.call_back(wake)
            return jobs

    def _take(self, only: Job[Any] | None) -> list[Job[Any]]:
        taken: list[Job[Any]] = []
        taker = threading.get_ident()
        own: set[str] = set()
        left: list[Job[Any]] = []
        passed: set[str] = set()
        while self._jobs and len(taken) < TOGETHER:
            job = self._jobs.popleft()
            thread = job.thread
            # Jobs of one thread go in their order; a job of many threads goes alone.
            free = (
                thread not in passed
                and (only is None or job is only)
                and (thread is not None or not taken)
            )
            if free and (thread in own or self._busy.claim(thread, job)):
                taken.append(job)
                job.taker = taker
                if thread is None or job is only:
                    break
                own.add(thread)
                continue
            left.append(job)
            if thread is not None:
                passed.add(thread)
        self._jobs.extendleft(reversed(left))
        taken.sort(key=lambda job: job.thread or "")
        return taken


def wake_in(loop: asyncio.AbstractEventLoop, wake: Callable[[], None]) -> Callable[[], None]:
    """`wake` as another thread may call it."""

    def call() -> None:
        try:
            loop.call_soon_threadsafe(wake)
        except RuntimeError:  # the loop is closed: nobody waits there any more
            return

    return call
