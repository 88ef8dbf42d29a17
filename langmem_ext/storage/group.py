"""Write operations that wait for the database at the same time share one commit; each stays atomic by itself.

Callers queue; whoever holds the database runs all that wait, each in a savepoint of its own, and commits once. So many threads or tasks
cost one commit together, and one caller alone waits for nobody.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterable
from typing import Any, Final, Generic, TypeVar

from langmem_ext.errors import StorageUnavailable
from langmem_ext.storage.effects import Operation

T = TypeVar("T")

GROUP: Final = 64
"""Operations that share one commit, at most: the first of them waits for the last."""


class Job(Generic[T]):
    """An operation that waits, and what became of it.

    Args:
        op: The operation.
        future: Is told, on its event loop, once the operation is stored or refused.

    Attributes:
        thread: Id of the thread that the operation writes; None where it names none, or several.
        taker: The thread that has taken it to carry it out, where somebody asks.
        since: When it began to wait, by `time.monotonic`, where somebody counts how long it does.
    """

    __slots__ = ("done", "error", "future", "op", "result", "since", "taker", "thread")

    def __init__(self, op: Operation[T], future: asyncio.Future[T] | None = None) -> None:
        self.op = op
        self.thread = op.thread
        self.future = future
        self.done = False
        self.since = 0.0
        self.taker: int | None = None
        self.result: T | None = None
        self.error: Exception | None = None

    def outcome(self) -> T:
        """The operation's result; raises what it raised."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # set, if there is no error

    def fail(self, error: Exception) -> None:
        """Note why the operation is not stored; the first reason stands."""
        self.error = self.error or error


class Queue:
    """The operations that wait, oldest first; for any thread."""

    def __init__(self) -> None:
        self.jobs: deque[Job[Any]] = deque()

    def add(self, job: Job[Any]) -> None:
        """Let an operation wait."""
        self.jobs.append(job)

    def withdraw(self, job: Job[Any]) -> None:
        """Take an operation back that has not begun."""
        try:
            self.jobs.remove(job)
        except ValueError:
            return

    def take(self) -> list[Job[Any]]:
        """The operations of the next group."""
        jobs: list[Job[Any]] = []
        while self.jobs and len(jobs) < GROUP:
            jobs.append(self.jobs.popleft())
        return jobs


def settle(jobs: Iterable[Job[Any]]) -> None:
    """Tell everyone whose operation is done, with one call for each event loop."""
    waiting: dict[asyncio.AbstractEventLoop, list[Job[Any]]] = {}
    for job in jobs:
        job.done = True
        if job.future is not None:
            waiting.setdefault(job.future.get_loop(), []).append(job)
    for loop, told in waiting.items():
        try:
            loop.call_soon_threadsafe(resolve, told)
        except RuntimeError:  # its loop is closed: nobody waits any more
            continue


def resolve(jobs: Iterable[Job[Any]]) -> None:
    """Tell those of one event loop, on it."""
    for job in jobs:
        job.done = True
        if job.future is None or job.future.done():  # its task was cancelled
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)


def interrupted() -> StorageUnavailable:
    """What the others are told when who carries out their operations is interrupted: that is its own affair."""
    return StorageUnavailable("the operation was interrupted before it was stored: try again")
