"""SQLite: operations on one file or in memory, from any thread, event loop or process.

Invariants:
- One connection and one lock for all callers. The lock's holder runs the queued operations, from
  BEGIN to COMMIT; the lock is held for nothing else.
- Write operations that wait at the same time share a transaction, each in a savepoint of its own.
- Only the beginning of a transaction waits for other processes: a write begins with BEGIN
  IMMEDIATE, a read takes its snapshot at once. An operation computes what it can from caches
  before that, so that a write holds the database's lock only for its statements.
- What was committed is acknowledged only if the file is still the one at the path.
- Async operations run whole on the driver's own worker thread: one hop for any number of
  statements, and no tie to an event loop.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, AbstractContextManager, suppress
from functools import partial
from typing import Any, Final, Literal, TypeVar, get_args

from langmem_ext.errors import ConnectionInUse, InvalidInput, StorageUnavailable
from langmem_ext.storage.driver import (
    ATTEMPTS,
    Job,
    Leases,
    Queue,
    RollbackListeners,
    interrupted,
    settle,
)
from langmem_ext.storage.operation import (
    ONE,
    Batch,
    Effect,
    Operation,
    Pause,
    Rows,
    Stale,
    Statement,
    Together,
)
from langmem_ext.storage.schema.dialect import SQLITE
from langmem_ext.storage.sqlite import vacuum as space
from langmem_ext.storage.sqlite.connection import (
    LOCK_DEADLINE_S,
    FileWatch,
    absolute,
    adopt,
    connect,
    is_busy,
    lock_of,
    path_of,
    require_log,
    storage_error,
)
from langmem_ext.storage.sqlite.lease import FileLeases
from langmem_ext.storage.sqlite.migrate import (
    mark_new,
    migrate,
    pending,
    read_rows,
    refuse_others,
    refuse_strange,
)
from langmem_ext.storage.sqlite.vectors import has_sqlite_vec

T = TypeVar("T")

Synchronous = Literal["full", "normal"]

_render = SQLITE.render

READ: Final = "BEGIN"
WRITE: Final = "BEGIN IMMEDIATE"
SNAPSHOT: Final = "SELECT 1 FROM sqlite_schema LIMIT 0"
"""Takes the snapshot of a transaction that reads; `BEGIN` alone takes none, and no lock."""

PAUSE_S = 0.002
"""How long an operation runs before it yields to other threads, in seconds."""

RETRY_S = (0.0005, 0.004)
"""The shortest and the longest sleep before a driver asks for a lock again, in seconds. SQLite's
own waits grow to 100 ms: with eight writing processes, the slowest turns took twice as long."""


class SqliteDriver:
    """Runs operations on one SQLite database.

    Args:
        path: A file's path, or `:memory:`.
        connection: A connection to use instead, opened with `check_same_thread=False`; it is not
            closed with the driver.
        synchronous: `full` (default): acknowledged writes survive power loss. `normal`: they
            survive a killed process; a power loss may lose the last commits.
        read_only: The file must exist, and is never written.
        own: The file is for this package alone: a file with only another program's tables is
            refused, and a new file is readable by its user only.

    Raises:
        StorageUnavailable: The file cannot be opened or written.
        NotADatabase: The file is no database, or with `own` another program's; or our tables in it
            were changed.
        SchemaTooNew: A newer release wrote the file.
        ConnectionInUse: The passed connection is inside a transaction.
    """

    remote = False
    compresses = False
    counts_pages = True

    def __init__(
        self,
        path: str = "",
        *,
        connection: sqlite3.Connection | None = None,
        synchronous: Synchronous = "full",
        read_only: bool = False,
        own: bool = False,
    ) -> None:
        if synchronous not in get_args(Synchronous):
            raise InvalidInput(f"synchronous must be 'full' or 'normal', not {synchronous!r}")
        self.path = absolute(path) if connection is None else path_of(connection)
        self._owned = connection is None
        self._closed = False
        self._listeners = RollbackListeners()
        self._queue = Queue()
        self._draining = False
        self._busy = False
        self._paused = time.monotonic()
        self._worker: ThreadPoolExecutor | None = None
        # Not `_lock`: an event loop must not wait for an operation.
        self._worker_lock = threading.Lock()
        if self._owned:
            require_log(self.path)  # before SQLite makes a new one
        self._connection = (
            connect(self.path, read_only, own) if connection is None else adopt(connection)
        )
        self._shared = lock_of(self._connection)
        self._lock = self._shared.lock
        self._cursor = self._connection.cursor()
        self._cursor.row_factory = None  # a passed connection may have another
        try:
            self._prepare(synchronous, read_only, own)
        except BaseException:
            if self._owned:
                self._connection.close()
            raise
        self._file = FileWatch(self.path, with_log=self._owned and not read_only)
        # A driver that is never closed closes its connection when it is collected, or when the
        # interpreter exits: Python 3.13 warns of an open one.
        self._close_connection = (
            weakref.finalize(self, self._file.close, self._connection) if self._owned else None
        )
        on_disk = bool(self.path) and self.path != ":memory:"
        self._leases = FileLeases(self.path, self._file.add) if on_disk else Leases()

    def _prepare(self, synchronous: Synchronous, read_only: bool, own: bool) -> None:
        try:
            # Only read at first: a refused database stays unchanged, byte for byte.
            new = bool(pending(self._connection))
            refuse_strange(self._connection, self.path)
            if self._owned:
                refuse_others(self._connection, self.path, complete=read_only, alone=own)
                if read_only:
                    return
                if new:
                    # Takes effect only in a file without tables; space can then be returned
                    # without rewriting the file. Another process may have created the file
                    # meanwhile, and be writing.
                    self._once_unlocked(
                        lambda: self._connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
                    )
                self._connection.execute(f"PRAGMA synchronous = {synchronous.upper()}")
                self._connection.execute(space.FORGET_BYTES)
            if read_rows(self._connection, "PRAGMA journal_mode") != [("wal",)]:
                self._once_unlocked(
                    lambda: read_rows(self._connection, "PRAGMA journal_mode = WAL")
                )
            if self._owned and new and self.path != ":memory:":
                self._once_unlocked(lambda: mark_new(self._connection))
            try:
                migrate(self._connection, self._once_unlocked)
            except BaseException:
                if self._owned and new:
                    # Otherwise the file would announce a log, which closing deletes.
                    with suppress(sqlite3.Error):  # others use the file: the log stays
                        read_rows(self._connection, "PRAGMA journal_mode = DELETE")
                raise
            if self._owned:
                self._connection.execute("PRAGMA busy_timeout = 0")  # from now on: `_once_unlocked`
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise storage_error(error, self.path) from error

    # -- running -----------------------------------------------------------------------------------

    def run(self, op: Operation[T], *, write: bool) -> T:
        """Run `op` as one transaction.

        A write that must wait may be run by another thread, and committed with others.
        """
        # The main thread runs its own operation alone: a signal handler may raise in it at any
        # point.
        if (
            not write
            or not (self._busy or self._queue.jobs)
            or threading.current_thread() is threading.main_thread()
        ):
            with self._lock:
                self._busy = True
                try:
                    return self._run_alone(op, WRITE if write else READ)
                finally:
                    self._busy = False
        job = Job(op)
        self._queue.jobs.append(job)
        with self._lock:
            self._busy = True
            try:
                while not job.done:
                    self._run_group(self._queue.take())
            finally:
                self._busy = False
        return job.outcome()

    async def arun(self, op: Operation[T], *, write: bool) -> T:
        """Async twin of `run`."""
        if not write:
            return await self.acall(lambda: self.run(op, write=False))
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        job = Job(op, future)
        worker = self._open_worker()
        self._queue.jobs.append(job)
        if not self._draining:
            self._draining = True
            try:
                worker.submit(self._drain)
            except RuntimeError as error:
                self._draining = False
                self._queue.withdraw(job)
                raise self._is_closed() from error
        return await future

    def _drain(self) -> None:
        """Run the queued operations."""
        self._draining = False
        with self._lock:
            self._busy = True
            try:
                while jobs := self._queue.take():
                    self._run_group(jobs)
            finally:
                self._busy = False

    async def acall(self, function: Callable[[], T]) -> T:
        """Run `function` on the driver's worker thread."""
        return await asyncio.get_running_loop().run_in_executor(self._open_worker(), function)

    def _open_worker(self) -> ThreadPoolExecutor:
        worker = self._worker
        if worker is None:
            with self._worker_lock:
                if self._closed:
                    raise self._is_closed()
                worker = self._worker = self._worker or ThreadPoolExecutor(
                    max_workers=1, thread_name_prefix="langmem-sqlite"
                )
        return worker

    def _is_closed(self) -> StorageUnavailable:
        return StorageUnavailable(f"the database {self.path} is closed: open it again")

    def _require_usable(self) -> None:
        if self._closed:
            raise self._is_closed()
        if self._connection.in_transaction:
            raise ConnectionInUse(
                "the connection is inside a transaction that this package did not begin: commit or"
                " roll it back"
            )
        self._file.require()

    def _run_alone(self, op: Operation[T], begin: str) -> T:
        """Run an operation as one transaction, and again if it is `Stale`."""
        self._require_usable()
        attempt = 0
        while True:
            try:
                result = self._drive(op, begin)
                if self._connection.in_transaction:
                    self._cursor.execute("COMMIT")
                if begin == WRITE:
                    self._file.require()
                return result
            except (Stale, sqlite3.IntegrityError) as error:
                self._roll_back([Job(op)])
                attempt += 1
                if attempt == ATTEMPTS or not op.repeatable:
                    raise self._known(error) from error
            except BaseException as error:
                self._roll_back([Job(op)])
                if isinstance(error, sqlite3.Error | UnicodeDecodeError):
                    raise self._known(error) from error
                raise

    def _run_group(self, jobs: Sequence[Job[Any]]) -> None:
        """Run operations in one transaction, each in a savepoint, so that each fails by itself.

        A single operation runs alone.
        """
        if len(jobs) == 1:
            self._run_job(jobs[0])
            return
        begun = False
        try:
            self._require_usable()
            begun = True  # set early: a signal handler may raise in between
            self._once_unlocked(partial(self._connection.execute, WRITE))
            for job in jobs:
                self._run_one(job)
            self._cursor.execute("COMMIT")
            self._file.require()
        except BaseException as error:
            known = self._known(error)
            for job in jobs:
                job.fail(known)
            if begun:
                self._roll_back(jobs)
            if not isinstance(error, Exception):
                raise
        finally:
            settle(jobs)

    def _run_job(self, job: Job[Any]) -> None:
        try:
            job.result = self._run_alone(job.op, WRITE)
        except BaseException as error:
            job.fail(error if isinstance(error, Exception) else interrupted())
            if not isinstance(error, Exception):
                raise
        finally:
            settle([job])

    def _run_one(self, job: Job[Any]) -> None:
        attempt = 0
        self._connection.execute("SAVEPOINT operation")
        while True:
            try:
                job.result = self._drive(job.op)
                break
            except Exception as error:
                if not self._connection.in_transaction:
                    raise  # SQLite itself has rolled back everything: a full disk, say
                self._connection.execute("ROLLBACK TO operation")
                self._forget([job])
                attempt += 1
                if attempt == ATTEMPTS or not (
                    job.op.repeatable and isinstance(error, Stale | sqlite3.IntegrityError)
                ):
                    job.fail(self._known(error))
                    break
        self._connection.execute("RELEASE operation")

    def _known(self, error: BaseException) -> Exception:
        """The error that an operation's caller gets."""
        if isinstance(error, Stale):
            return StorageUnavailable("the thread kept changing meanwhile: try again")
        if isinstance(error, sqlite3.Error | UnicodeDecodeError):
            known = storage_error(error, self.path)
            known.__cause__ = error
            return known
        # An interrupt is for this thread alone, not for the callers whose operations it runs.
        return error if isinstance(error, Exception) else interrupted()

    def _drive(self, op: Operation[T], begin: str | None = None) -> T:
        """Run an operation's effects inside the open transaction.

        Args:
            op: The operation.
            begin: The statement that begins the transaction, if none is open, at the operation's
                first effect. Before that, the operation computes from caches while other processes
                may write; its guard checks that the caches were current.
        """
        steps, execute = op(), self._cursor.execute
        send = steps.send
        try:
            effect = next(steps)
            if begin is not None:
                try:
                    execute(begin)
                    if begin == READ:
                        begin = SNAPSHOT
                        execute(begin)
                except sqlite3.OperationalError:
                    self._once_unlocked(partial(execute, begin))
            while True:
                if type(effect) is list:
                    for sql, params, rows in effect:
                        if execute(_render(sql), params).rowcount != 1 and rows == ONE:
                            raise Stale
                    effect = next(steps)
                elif type(effect) is tuple:
                    effect = send(execute(_render(effect[0]), effect[1]).fetchall())
                else:
                    effect = send(self.execute(effect))
        except StopIteration as done:
            result: T = done.value
            return result
        finally:
            steps.close()

    def execute(self, effect: Effect) -> Any:
        """Run an effect that is more than one statement with numbered parameters."""
        if isinstance(effect, Statement):
            return self._cursor.execute(_render(effect.sql), effect.params).fetchall()
        if isinstance(effect, Together):
            return [self.execute(statement) for statement in effect.statements]
        if isinstance(effect, Batch):
            self._cursor.executemany(_render(effect.sql), effect.params)
        elif isinstance(effect, Pause):
            self._pause()
        elif isinstance(effect, tuple):
            return self._cursor.execute(_render(effect[0]), effect[1]).fetchall()
        return ()

    def _pause(self) -> None:
        """Let other threads run, if this one has run for `PAUSE_S`.

        Yielding costs more than a page of rows.
        """
        if time.monotonic() - self._paused > PAUSE_S:
            time.sleep(0)
            self._paused = time.monotonic()

    def _roll_back(self, jobs: Sequence[Job[Any]]) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        finally:
            self._forget(jobs)

    def _forget(self, jobs: Sequence[Job[Any]]) -> None:
        self._listeners.forget(job.thread for job in jobs)

    def _once_unlocked(self, work: Callable[[], T]) -> T:
        """Retry some work while another process has a lock that it needs, up to a deadline."""
        deadline = time.monotonic() + LOCK_DEADLINE_S
        while True:
            try:
                return work()
            except sqlite3.OperationalError as error:
                if not is_busy(error) or time.monotonic() > deadline:
                    raise
            time.sleep(random.uniform(*RETRY_S))

    def on_rollback(self, forget: Callable[[str | None], None]) -> None:
        """Register a function that drops a failed operation's thread from a cache.

        It is called before the next operation begins.
        """
        self._listeners.add(forget)

    # -- properties --------------------------------------------------------------------------------

    @property
    def place(self) -> str:
        """The file."""
        return repr(self.path or ":memory:")

    @property
    def address(self) -> tuple[str, ...] | None:
        """The file; None in memory."""
        return (self.path,) if self.path and self.path != ":memory:" else None

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._closed

    def glance(self, statement: Statement) -> Rows | None:
        """The rows of a statement; None while the connection is in use, or the file is locked."""
        if not self._lock.acquire(blocking=False):
            return None
        try:
            if self._closed or self._connection.in_transaction:
                return None
            [(patience,)] = read_rows(self._connection, "PRAGMA busy_timeout")
            self._connection.execute("PRAGMA busy_timeout = 0")
            try:
                return read_rows(self._connection, _render(statement.sql), statement.params)
            finally:
                self._connection.execute(f"PRAGMA busy_timeout = {patience}")
        except sqlite3.Error:
            return None
        finally:
            self._lock.release()

    # -- space -------------------------------------------------------------------------------------

    def compaction(self, *, full: bool) -> Generator[None, None, int]:
        """Return free space to the file system, step by step."""
        return space.compaction(self, self._alone, full=full)

    def _alone(self, statement: str) -> Rows:
        """Run a statement outside any transaction."""
        with self._lock:
            self._require_usable()
            try:
                return self._once_unlocked(partial(read_rows, self._connection, statement))
            except sqlite3.Error as error:
                raise storage_error(error, self.path) from error

    # -- vectors -----------------------------------------------------------------------------------

    def compares_vectors(self, *, fewer: int) -> bool:
        """Whether sqlite-vec is available; on a passed connection, only if it was loaded there."""
        with self._lock:
            self._require_usable()
            return has_sqlite_vec(self._connection, load=self._owned)

    # -- leases and closing ------------------------------------------------------------------------

    def lease(self, thread_id: str, *, wait: float) -> AbstractContextManager[None]:
        """Hold a thread's lease: only its holder runs the thread."""
        return self._leases.lease(thread_id, wait=wait)

    def alease(self, thread_id: str, *, wait: float) -> AbstractAsyncContextManager[None]:
        """Async twin of `lease`."""
        return self._leases.alease(thread_id, wait=wait)

    def close(self) -> None:
        """Finish running operations, and close a connection that the driver opened; idempotent."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.shutdown(wait=True)
        with self._lock:
            if not self._closed:
                self._closed = True
                if self._close_connection is not None:
                    self._close_connection()

    async def aclose(self) -> None:
        """Async twin of `close`."""
        await asyncio.to_thread(self.close)
