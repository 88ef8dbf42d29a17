"""PostgreSQL: operations on one database, from any thread and any event loop of many processes.

Invariants:
- Write operations that wait at the same time share a transaction and a round trip; if that fails,
  each runs by itself.
- A thread is written by one connection of this process at a time.
- After a failure, the caches of the operation's threads are dropped before anything else uses them.
- An operation whose connection broke runs once more. That is safe even if the first run was stored
  after all (`recalled`).
- A forked child has its own connections, and nothing of what its parent was doing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

from psycopg import errors
from psycopg_pool import PoolTimeout

from langmem_ext._internal.forking import renew_in_child
from langmem_ext._internal.stepping import aperform, perform
from langmem_ext.errors import StorageUnavailable
from langmem_ext.storage.driver import (
    ATTEMPTS,
    Job,
    RollbackListeners,
    interrupted,
    resolve,
    settle,
)
from langmem_ext.storage.operation import Op, Operation, Rows, Stale, Statement, Trace, operation
from langmem_ext.storage.postgres import vacuum as space
from langmem_ext.storage.postgres.inherited import leave
from langmem_ext.storage.postgres.lease import AdvisoryLeases
from langmem_ext.storage.postgres.loop import Lane
from langmem_ext.storage.postgres.migrate import give_vectors, migrate
from langmem_ext.storage.postgres.pool import SyncPool
from langmem_ext.storage.postgres.queue import Busy, Lineup
from langmem_ext.storage.postgres.server import (
    MISSED,
    NoAnswer,
    Server,
    is_broken,
    is_closed,
    storage_error,
    waited,
)
from langmem_ext.storage.postgres.wire.pipeline import (
    ExchangeFailed,
    GroupFailed,
    Read,
    Transaction,
    Wire,
    Write,
)
from langmem_ext.storage.postgres.wire.trips import aplay, play
from langmem_ext.storage.schema.dialect import postgres
from langmem_ext.types import ThreadKey

T = TypeVar("T")

_STALE: Final = (errors.DivisionByZero, errors.UniqueViolation)
"""How the server says that a thread is not as it is cached (`commands.exactly_one`)."""

_AGAIN: Final = (
    errors.DeadlockDetected,
    errors.SerializationFailure,
    errors.UndefinedTable,
    *_STALE,
)
"""Others interfered; the tables of the search index may have been dropped meanwhile."""

_FINAL: Final = (NoAnswer, errors.QueryCanceled)
"""The operation has used up its time: it is not tried again."""

_OF_ALL: Final = (NoAnswer, *MISSED)
"""Errors that every operation of a group would meet: they fail together."""

Plan = Generator[Wire[Any], Any, T]
"""Yields what to run on a connection, and receives its result; an error is raised where it was
yielded."""


class PostgresDriver:
    """Runs operations on one PostgreSQL database.

    Args:
        url: The database (`server.Server`).

    Raises:
        InvalidInput: The URL cannot be used.
        StorageUnavailable: The server cannot be reached, or refuses.
        SchemaTooNew: A newer release made the tables.
    """

    remote = True
    compresses = True
    counts_pages = False

    def __init__(self, url: str) -> None:
        self.server = Server.of(url)
        self._dialect = postgres(self.server.schema)
        self._listeners = RollbackListeners()
        self._begin_with_nothing()
        self._closed = False
        migrate(self.server)
        renew_in_child(self)

    def _begin_with_nothing(self) -> None:
        self._leases = AdvisoryLeases(self.server)
        self._busy = Busy()
        self._lineup = Lineup(self._busy)
        self._opening = threading.Lock()
        self._pool = SyncPool(self.server)
        self._lanes: WeakKeyDictionary[asyncio.AbstractEventLoop, Lane] = WeakKeyDictionary()
        self._latest: Lane | None = None  # the one used last

    def start_anew(self) -> None:
        """Go on in a forked child, on its own connections.

        What its parent is doing is left to the parent.
        """
        leave(self._pool, *self._lanes.values())
        self._begin_with_nothing()
        if self._closed:
            self._pool.close()

    def on_rollback(self, forget: Callable[[str | None], None]) -> None:
        """Call `forget` with an operation's thread if the operation fails."""
        self._listeners.add(forget)

    # -- plans: what is tried, and what if it fails ------------------------------------------------

    def _reading(self, op: Operation[T]) -> Plan[T]:
        """Read; if others wrote meanwhile, read again, in a snapshot from the beginning."""
        make = lambda attempt: Read(self._dialect, hasty=attempt == 0 and op.repeatable)  # noqa: E731
        return (yield from self._trying(op, make, breaks=2))

    def _writing(self, jobs: Sequence[Job[Any]]) -> Plan[None]:
        """Write waiting operations together; each by itself if that fails or cannot be repeated."""
        if not all(job.op.repeatable for job in jobs):
            return (yield from self._write_singly(jobs))
        transaction = Write(self._dialect)
        try:
            yield transaction.run_all(jobs)
            return
        except (ExchangeFailed, GroupFailed, Stale) as failed:
            self._listeners.forget(job.thread for job in jobs)
            cause = failed.__cause__
            if isinstance(cause, _OF_ALL) or (isinstance(cause, _FINAL) and len(jobs) == 1):
                for job in jobs:
                    job.fail(storage_error(cause, self.server))
                return
        except BaseException as error:
            self._listeners.forget(job.thread for job in jobs)
            if not isinstance(error, Exception):
                raise
            # If the job is alone, this is its own error; else there was no connection, and nothing
            # is stored.
            for job in jobs:
                job.fail(error)
            return
        yield from self._write_singly(jobs, transaction.results if is_broken(cause) else ())

    def _write_singly(self, jobs: Sequence[Job[Any]], results: Sequence[Any] = ()) -> Plan[None]:
        for at, job in enumerate(jobs):
            try:
                job.result = yield from self._trying(
                    job.op, lambda _: Write(self._dialect), results[at : at + 1]
                )
            except Exception as error:
                job.fail(error)
                if isinstance(error.__cause__, PoolTimeout | NoAnswer):
                    for other in jobs[at + 1 :]:  # they would wait as long, one after the other
                        other.fail(error)
                    return

    def _trying(
        self,
        op: Operation[T],
        make: Callable[[int], Transaction],
        results: Sequence[T] = (),
        *,
        breaks: int = 1,
    ) -> Plan[T]:
        """Run an operation, and again if others interfered or its connection broke.

        Args:
            op: The operation.
            make: Makes the transaction of each attempt.
            results: What an earlier run was about to return, if that run may have been stored.
            breaks: How many broken connections it is repeated after.
        """
        attempt = 0
        while True:
            transaction = make(attempt)
            attempt += 1
            try:
                result: T = yield transaction.run(recalled(op, results))
            except (ExchangeFailed, Stale) as failed:
                self._listeners.forget((op.thread,))
                cause = failed.__cause__
                again = (
                    isinstance(failed, Stale)
                    or isinstance(cause, _AGAIN)
                    or (is_broken(cause) and breaks > 0)
                )
                if is_broken(cause):
                    breaks -= 1
                    results = transaction.results or results
                if again and op.repeatable and attempt < ATTEMPTS:
                    continue
                if cause is None or isinstance(cause, _STALE):
                    raise StorageUnavailable(
                        "the thread kept changing meanwhile: try again"
                    ) from None
                raise storage_error(cause, self.server) from cause
            except BaseException:
                self._listeners.forget((op.thread,))
                raise
            return result

    # -- sync --------------------------------------------------------------------------------------

    def run(self, op: Operation[T], *, write: bool) -> T:
        """Run `op` as one transaction; another thread may run a write together with others."""
        if not write:
            return self._follow(self._reading(op))
        self._require_writable(op)
        self._require_progress(op)
        self._release_closed_loops()
        job = Job(op)
        # The main thread runs its own operation alone: a signal's handler may raise in it at any
        # point.
        only = job if threading.current_thread() is threading.main_thread() else None
        self._lineup.add(job)
        try:
            while jobs := self._lineup.take_or_wait(job, only, deadline=self.server.deadline):
                self._store(jobs)
        except TimeoutError:
            raise waited(self.server, self._pool.size) from None
        except BaseException:
            self._lineup.withdraw(job)
            raise
        return job.outcome()

    def _store(self, jobs: Sequence[Job[Any]]) -> None:
        try:
            self._follow(self._writing(jobs))
        except BaseException as error:
            for job in jobs:
                job.fail(error if isinstance(error, Exception) else interrupted())
            if not isinstance(error, Exception):
                raise
        finally:
            settle(jobs)
            self._busy.give_back(jobs)

    def _follow(self, plan: Plan[T]) -> T:
        return perform(plan, self._play)

    def _play(self, wire: Wire[T]) -> T:
        """Run a wire on a connection: with several servers, only this would differ."""
        return play(self._pool, wire, deadline=self.server.answer_deadline)

    # -- async -------------------------------------------------------------------------------------

    async def arun(self, op: Operation[T], *, write: bool) -> T:
        """Async twin of `run`, on the event loop's own connections; a heavy one in a thread.

        Cancelling the caller cannot split the transaction.
        """
        if op.heavy:
            return await self.acall(lambda: self.run(op, write=write))
        lane = self._latest
        if lane is None or lane.loop is not asyncio.get_running_loop() or not lane.is_open:
            lane = await self._open_lane()
        if not write:
            return await self._afollow(lane, self._reading(op))
        self._require_writable(op)
        job = Job(op, lane.loop.create_future())
        lane.add(job)
        assert job.future is not None
        result: T = await job.future
        return result

    async def acall(self, function: Callable[[], T]) -> T:
        """Run `function` in a thread, where it may call `run`."""
        return await asyncio.to_thread(function)

    async def _afollow(self, lane: Lane, plan: Plan[T]) -> T:
        async def play(wire: Wire[Any]) -> Any:
            return await aplay(lane.pool, wire, deadline=self.server.answer_deadline)

        return await aperform(plan, play)

    async def _open_lane(self) -> Lane:
        loop = asyncio.get_running_loop()
        self._release_closed_loops()
        with self._opening:
            if self._closed:
                raise is_closed(self.server)
            lane = self._lanes.get(loop)
            if lane is None or lane.is_over:
                lane = self._lanes[loop] = Lane(self.server, loop, self._busy, self._astore)
        await lane.open()
        with self._opening:
            if not self._closed and self._lanes.get(loop) is lane:
                self._latest = lane
        return lane

    def _release_closed_loops(self) -> None:
        """Release the threads that a closed event loop was writing."""
        for loop in [loop for loop in list(self._lanes) if loop.is_closed()]:
            if lane := self._lanes.pop(loop, None):
                lane.abandon()

    async def _astore(self, lane: Lane, jobs: Sequence[Job[Any]]) -> None:
        threads = {job.thread for job in jobs}
        lane.writing |= threads
        try:
            await self._afollow(lane, self._writing(jobs))
        except BaseException as error:
            for job in jobs:
                job.fail(error if isinstance(error, Exception) else interrupted())
            if not isinstance(error, Exception):
                raise
        finally:
            lane.writing -= threads
            resolve(jobs)
            self._busy.give_back(jobs)

    # -- connections, leases, space ----------------------------------------------------------------

    def _require_writable(self, op: Operation[Any]) -> None:
        if self.server.mode == "ro":
            raise StorageUnavailable(
                f"the {self.server.place} was opened read-only: open it without mode=ro"
            )
        self._leases.require_kept(op.thread)

    def _require_progress(self, op: Operation[Any]) -> None:
        """Refuse a sync call on an event loop that would wait for work of that event loop."""
        try:
            lane = self._lanes.get(asyncio.get_running_loop())
        except RuntimeError:
            return
        # An operation on many threads (None) may be about to write this one.
        if (
            lane is not None
            and op.thread is not None
            and not lane.writing.isdisjoint({op.thread, None})
        ):
            raise StorageUnavailable(
                f"thread {op.thread!r} is being written by a task of this event loop, which a sync"
                " call would keep from going on: await the async method, or call this one in a"
                " thread; nothing was changed"
            )

    @property
    def place(self) -> str:
        """The database and its schema."""
        return f"{self.server.place}, schema {self.server.schema}"

    @property
    def address(self) -> tuple[str, ...]:
        """The server, the database and its schema, as the URL names them."""
        return self.server.address

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def glance(self, statement: Statement) -> Rows | None:
        """None: a server may take as long as it likes."""
        return None

    def compaction(self, *, full: bool) -> Generator[None, None, int]:
        """Vacuum each table, one in each step."""
        return space.compaction(self.server, full=full)

    def compares_vectors(self, *, fewer: int) -> bool:
        """Whether pgvector does; its copy is made if there are fewer vectors than this."""
        return give_vectors(self.server, fewer=fewer)

    def lease(self, thread_id: str, *, wait: float) -> AbstractContextManager[None]:
        """Hold the right to drive a thread."""
        return self._leases.lease(thread_id, wait=wait)

    def alease(self, thread_id: str, *, wait: float) -> AbstractAsyncContextManager[None]:
        """Async twin of `lease`."""
        return self._leases.alease(thread_id, wait=wait)

    def close(self) -> None:
        """Close all connections, those of other event loops too; idempotent."""
        with self._opening:
            self._closed = True
            self._latest = None
            lanes = [self._lanes.pop(loop) for loop in list(self._lanes)]
        for lane in lanes:
            if not lane.loop.is_running():
                lane.abandon()
            with suppress(RuntimeError):  # it is closed; else one that stands still may go on
                lane.loop.call_soon_threadsafe(lane.end)
        self._pool.close()

    async def aclose(self) -> None:
        """Async twin of `close`; cancelled, it can be called again."""
        with self._opening:
            self._closed = True
            self._latest = None
        loop = asyncio.get_running_loop()
        if lane := self._lanes.get(loop):
            await lane.aclose()
            self._lanes.pop(loop, None)
        await asyncio.to_thread(self.close)


def recalled(op: Operation[T], results: Sequence[T]) -> Operation[T]:
    """An operation to run again, unless its earlier run was stored before the connection broke.

    Most of what an operation does can be repeated; what it appends, makes and counts cannot. So it
    first looks for what its earlier run left (`storage.operation.Trace`). If that is found, it
    returns what that run was about to return, and changes nothing.

    Args:
        op: The operation.
        results: What an earlier run was about to return, if that run may have been stored; else
            empty.
    """
    trace, thread = (op.trace, op.thread) if results else (None, None)
    return (
        op
        if trace is None or thread is None
        else _unless_left(ThreadKey(thread), trace, op, results[0])
    )


@operation
def _unless_left(key: ThreadKey, trace: Trace, op: Operation[T], result: T) -> Op[T]:
    return result if (yield from trace.is_left(key.id)) else (yield from op)
