"""What runs operations: the protocol of the two drivers, work in steps, the queue, leases.

Write operations that wait for the database at the same time share one commit; each stays atomic by
itself. Callers queue; the one that holds the database runs all that wait, each in a savepoint of
its own, and commits once. So many threads or tasks cost one commit together, and a single caller
waits for nobody.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterable, Iterator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    AsyncExitStack,
    ExitStack,
    asynccontextmanager,
    contextmanager,
)
from functools import partial
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar, runtime_checkable
from weakref import WeakMethod

from langmem_ext.errors import StorageError, StorageUnavailable, ThreadBusy
from langmem_ext.storage.operation import Operation, Rows, Statement

T = TypeVar("T")


class RollbackListeners:
    """What caches something of threads: each forgets it when an operation has failed."""

    def __init__(self) -> None:
        self._methods: list[WeakMethod[Callable[[str | None], None]]] = []

    def add(self, forget: Callable[[str | None], None]) -> None:
        """Add a bound method; it does not keep its object."""
        alive = [method for method in self._methods if method() is not None]
        self._methods = [*alive, WeakMethod(forget)]

    def forget(self, threads: Iterable[str | None]) -> None:
        """Have each forget these threads."""
        for thread in threads:
            for method in self._methods:
                if (forget := method()) is not None:
                    forget(thread)


class Driver(Protocol):
    """Runs operations. One operation is one transaction: all of it happens, or nothing.

    Attributes:
        remote: Whether a query costs a round trip; then a thread's number follows from its id.
        compresses: Whether the database compresses long texts itself; then its columns for texts
            take nothing else.
        counts_pages: Whether the used pages can be counted at once (`sqlite.vacuum.used_bytes`).
    """

    remote: bool
    compresses: bool
    counts_pages: bool

    @property
    def place(self) -> str:
        """The database, for people: without what is secret."""

    @property
    def address(self) -> tuple[str, ...] | None:
        """The same for every driver of this database; None if no other can open it."""

    @property
    def closed(self) -> bool:
        """Whether it was closed."""

    def glance(self, statement: Statement) -> Rows | None:
        """The rows of a statement, if it can be read without disturbing or waiting; else None."""

    def run(self, op: Operation[T], *, write: bool) -> T:
        """Run `op` in the calling thread, and again if another writer interfered.

        Args:
            op: The operation.
            write: Whether it changes anything; a read sees one consistent state.

        Raises:
            StorageError: The database refused; nothing has changed.
        """

    async def arun(self, op: Operation[T], *, write: bool) -> T:
        """Async twin of `run`. Cancelling the caller cannot split the transaction."""

    async def acall(self, function: Callable[[], T]) -> T:
        """Run `function` where `arun` runs operations: an operation and its decoding in one hop."""

    def on_rollback(self, forget: Callable[[str | None], None]) -> None:
        """Call `forget`, before anything else runs, whenever an operation has failed.

        Args:
            forget: A bound method, called for as long as its object lives. It receives the id of
                the operation's thread; None if the operation names none, or many.
        """

    def compaction(self, *, full: bool) -> Generator[None, None, int]:
        """Return free space to the file system, in steps; returns how many bytes.

        Args:
            full: Rewrite the whole database, in one step that writers wait for.
        """

    def compares_vectors(self, *, fewer: int) -> bool:
        """Whether the database itself compares a store's vectors (`dialect.COSINE`).

        SQLite does with sqlite-vec, which is loaded here if it can be; PostgreSQL with pgvector,
        which needs a copy of the vectors.

        Args:
            fewer: A missing copy is made if there are fewer vectors than this.
        """

    def lease(self, thread_id: str, *, wait: float) -> AbstractContextManager[None]:
        """Hold the right to drive a thread, against every other caller and process.

        Args:
            thread_id: The thread.
            wait: Seconds to wait for another holder.

        Raises:
            ThreadBusy: Another caller still holds it.
        """

    def alease(self, thread_id: str, *, wait: float) -> AbstractAsyncContextManager[None]:
        """Async twin of `lease`."""

    def close(self) -> None:
        """Release everything; idempotent."""

    async def aclose(self) -> None:
        """Async twin of `close`."""


# -- work of many operations -----------------------------------------------------------------------

Steps: TypeAlias = Generator[tuple[Operation[Any], bool], Any, T]
"""Yields operations, each with whether it writes, and receives their results; a `StorageError` of
one is raised where it was yielded."""


class Running(Generic[T]):
    """Steps that are being run.

    Args:
        driver: Runs the operations.
        steps: The steps.

    Attributes:
        result: What the steps returned, once `advance` has returned False.
    """

    result: T

    def __init__(self, driver: Driver, steps: Steps[T]) -> None:
        self._driver = driver
        self._steps = steps
        self._resume: Callable[[], tuple[Operation[Any], bool]] = partial(next, steps)

    def advance(self) -> bool:
        """Run the next operation; False if there was none."""
        try:
            op, write = self._resume()
        except StopIteration as done:
            self.result = done.value
            return False
        try:
            self._resume = partial(self._steps.send, self._driver.run(op, write=write))
        except StorageError as error:
            self._resume = partial(self._steps.throw, error)
        return True

    def finish(self) -> T:
        """Run all that is left, in the calling thread."""
        while self.advance():
            pass
        return self.result

    async def afinish(self) -> T:
        """Async twin of `finish`."""
        while await self._driver.acall(self.advance):
            pass
        return self.result


# -- operations that wait --------------------------------------------------------------------------

ATTEMPTS: Final = 8
"""How often an operation is run if others interfere."""

GROUP: Final = 64
"""How many operations share one commit at most: the first of them waits for the last."""


class Job(Generic[T]):
    """An operation that waits, and its outcome.

    Args:
        op: The operation.
        future: Is set, on its event loop, once the operation is stored or refused.

    Attributes:
        taker: The thread that has taken the operation to run it, if the queue notes that.
        since: When it began to wait, by `time.monotonic`, if the queue notes that.
    """

    __slots__ = ("done", "error", "future", "op", "result", "since", "taker")

    def __init__(self, op: Operation[T], future: asyncio.Future[T] | None = None) -> None:
        self.op = op
        self.future = future
        self.done = False
        self.since = 0.0
        self.taker: int | None = None
        self.result: T | None = None
        self.error: Exception | None = None

    @property
    def thread(self) -> str | None:
        """Id of the thread that the operation writes; None if it names none, or several."""
        return self.op.thread

    def outcome(self) -> T:
        """The operation's result; raises what it raised."""
        if self.error is not None:
            raise self.error
        return self.result  # type: ignore[return-value]  # set, if there is no error

    def fail(self, error: Exception) -> None:
        """Note why the operation is not stored; the first reason counts."""
        self.error = self.error or error


class Queue:
    """The operations that wait, oldest first; for any thread."""

    def __init__(self) -> None:
        self.jobs: deque[Job[Any]] = deque()

    def withdraw(self, job: Job[Any]) -> None:
        """Remove an operation that has not begun."""
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
    """Notify everyone whose operation is done, with one call for each event loop."""
    waiting: dict[asyncio.AbstractEventLoop, list[Job[Any]]] = {}
    for job in jobs:
        job.done = True
        if job.future is not None:
            waiting.setdefault(job.future.get_loop(), []).append(job)
    for loop, jobs_of_loop in waiting.items():
        try:
            loop.call_soon_threadsafe(resolve, jobs_of_loop)
        except RuntimeError:  # the loop is closed: nobody waits any more
            continue


def resolve(jobs: Iterable[Job[Any]]) -> None:
    """Notify those of one event loop, on that loop."""
    for job in jobs:
        job.done = True
        if job.future is None or job.future.done():  # its task was cancelled
            continue
        if job.error is not None:
            job.future.set_exception(job.error)
        else:
            job.future.set_result(job.result)


def interrupted() -> StorageUnavailable:
    """The error of the other callers if the one that runs their operations is interrupted."""
    return StorageUnavailable("the operation was interrupted and nothing was stored: try again")


# -- leases ----------------------------------------------------------------------------------------

_POLL_S = 0.02


class Leases:
    """Leases within one process."""

    def __init__(self) -> None:
        self._held: set[str] = set()
        self._guard = threading.Lock()

    def take(self, thread_id: str) -> object | None:
        """Take the lease now; None if another holds it."""
        with self._guard:
            if thread_id in self._held:
                return None
            self._held.add(thread_id)
            return thread_id

    def give_back(self, token: object) -> None:
        """End a lease that `take` gave."""
        with self._guard:
            self._held.discard(str(token))

    @contextmanager
    def lease(self, thread_id: str, *, wait: float) -> Iterator[None]:
        """Hold the lease; `ThreadBusy` if another still holds it after `wait` seconds."""
        deadline = time.monotonic() + wait
        while (token := self.take(thread_id)) is None:
            _give_up_after(deadline, thread_id, wait)
            time.sleep(_POLL_S)
        try:
            yield
        finally:
            self.give_back(token)

    @asynccontextmanager
    async def alease(self, thread_id: str, *, wait: float) -> AsyncIterator[None]:
        """Async twin of `lease`."""
        deadline = time.monotonic() + wait
        while (token := await self._take_off_loop(thread_id)) is None:
            _give_up_after(deadline, thread_id, wait)
            await asyncio.sleep(_POLL_S)
        try:
            yield
        finally:
            self.give_back(token)

    async def _take_off_loop(self, thread_id: str) -> object | None:
        """`take` in a thread; a lease that was taken for a cancelled caller is given back."""
        taking = asyncio.ensure_future(asyncio.to_thread(self.take, thread_id))
        try:
            return await asyncio.shield(taking)
        except asyncio.CancelledError:
            taking.add_done_callback(self._give_back_unused)
            raise

    def _give_back_unused(self, taking: asyncio.Future[object | None]) -> None:
        if (
            not taking.cancelled()
            and taking.exception() is None
            and (token := taking.result()) is not None
        ):
            self.give_back(token)


@runtime_checkable
class SupportsLease(Protocol):
    """What lets one caller at a time drive a thread, sync and async."""

    def lease(self, thread_id: str, *, wait: float) -> AbstractContextManager[None]:
        """Hold the thread while the block runs; `ThreadBusy` if not free after `wait` seconds."""
        ...

    def alease(self, thread_id: str, *, wait: float) -> AbstractAsyncContextManager[None]:
        """Async twin of `lease`."""
        ...


@contextmanager
def leased(
    leases: SupportsLease, thread_id: str, *, wait: float, look: Callable[[], T]
) -> Iterator[T | None]:
    """Hold a lease; what `look` saw before the wait for it, None if there was none."""
    seen = None
    with ExitStack() as stack:
        try:
            stack.enter_context(leases.lease(thread_id, wait=0))
        except ThreadBusy:
            seen = look()
            stack.enter_context(leases.lease(thread_id, wait=wait))
        yield seen


@asynccontextmanager
async def aleased(
    leases: SupportsLease, thread_id: str, *, wait: float, look: Callable[[], Awaitable[T]]
) -> AsyncIterator[T | None]:
    """Async twin of `leased`."""
    seen = None
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(leases.alease(thread_id, wait=0))
        except ThreadBusy:
            seen = await look()
            await stack.enter_async_context(leases.alease(thread_id, wait=wait))
        yield seen


def _give_up_after(deadline: float, thread_id: str, wait: float) -> None:
    if time.monotonic() >= deadline:
        raise thread_busy(thread_id, wait)


def thread_busy(thread_id: str, wait: float) -> ThreadBusy:
    """The error that another caller still holds a lease."""
    return ThreadBusy(
        f"thread {thread_id!r} is in use by another caller (waited {wait:g} s): try again after its"
        " turn"
    )
