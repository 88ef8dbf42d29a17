"""Connections to a PostgreSQL server, opened on demand, for sync callers and event loops."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import Context
from functools import partial
from time import monotonic
from traceback import clear_frames
from typing import Any, Final, Self
from weakref import WeakSet

import psycopg
from psycopg import pq
from psycopg_pool import AsyncConnectionPool, ConnectionPool, PoolTimeout

from langmem_ext.storage.postgres.server import (
    ASYNC_POOL,
    SYNC_POOL,
    Server,
    first_line,
    is_closed,
    no_connection,
)
from langmem_ext.storage.postgres.tasks import obtain, start_held
from langmem_ext.storage.postgres.wire.exchange import GRACE_S, aprobe, begin_session, probe

_AT_ONCE_S: Final = 0.01
"""How long to wait for a connection that is free unless another caller has just taken it."""

_IDLE: Final = pq.TransactionStatus.IDLE

_AT_HAND_S: Final = 1.0
"""How long a connection that has been used is kept for the next one on the same event loop, at
most, before its pool has it back."""


class _Attempts:
    """The outcome of the last attempt to connect, which psycopg's pool does not report.

    Attributes:
        reason: Why it failed, or that it lasts; None if it succeeded.
    """

    def __init__(self) -> None:
        self.reason: str | None = "no answer yet"

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Note how an attempt ends; while another lasts, why the one before it failed."""
        self.reason = self.reason or "no answer yet"
        try:
            yield
        except psycopg.Error as error:
            self.reason = first_line(error)
            raise
        except asyncio.CancelledError as error:
            # The pool logs it; a record that is kept would keep the connection open.
            clear_frames(error.__traceback__)
            raise
        self.reason = None


class _Connection(psycopg.Connection[Any]):
    @classmethod
    def connect(cls, conninfo: str = "", *, attempts: _Attempts, **options: Any) -> Self:  # type: ignore[override]
        """Connect, and have it noted what came of it."""
        with attempts.heeded():
            return super().connect(conninfo, **options)


class _AsyncConnection(psycopg.AsyncConnection[Any]):
    @classmethod
    async def connect(cls, conninfo: str = "", *, attempts: _Attempts, **options: Any) -> Self:  # type: ignore[override]
        """Async twin of `_Connection.connect`."""
        with attempts.heeded():
            return await super().connect(conninfo, **options)


class _Pool(ConnectionPool[psycopg.Connection[Any]]):
    """A pool that does nothing when it is finalized in a forked child.

    The child has none of its workers.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        self._made_in = os.getpid()
        super().__init__(*args, **options)

    def __del__(self) -> None:
        if self._made_in == os.getpid():
            super().__del__()


class SyncPool:
    """The connections of the sync callers of all threads.

    Args:
        server: The server.
    """

    def __init__(self, server: Server) -> None:
        self.size = server.pool_size or SYNC_POOL
        self._server = server
        self._lock = threading.Lock()
        self._pool: _Pool | None = None
        self._attempts = _Attempts()
        self._lent = 0
        self._closed = False

    @contextmanager
    def connection(self) -> Iterator[psycopg.Connection[Any]]:
        """A connection, for as long as the context lasts.

        Raises:
            StorageUnavailable: None is free, or can be made, within the deadline.
        """
        pool = self._open()
        try:
            connection = pool.getconn()
        except (PoolTimeout, psycopg.Error) as error:
            raise no_connection(
                error, self._server, lent=self._lent, size=self.size, reason=self._attempts.reason
            ) from error
        with self._lock:
            self._lent += 1
        try:
            yield connection
        finally:
            with self._lock:
                self._lent -= 1
            pool.putconn(connection)

    def check(self) -> None:
        """Remove connections that have ended, or whose server does not answer in time."""
        pool, idle = self._open(), list[psycopg.Connection[Any]]()
        until = monotonic() + min(self._server.deadline, GRACE_S)
        try:
            with suppress(PoolTimeout):
                for _ in range(pool.get_stats().get("pool_available", 0)):
                    idle.append(pool.getconn(timeout=_AT_ONCE_S))
            for connection in idle:
                probe(connection, deadline=until - monotonic())
        finally:
            for connection in idle:
                pool.putconn(connection)  # which makes another in place of one that is closed

    def close(self) -> None:
        """Close all; idempotent."""
        with self._lock:
            self._closed = True
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.close()

    def _open(self) -> _Pool:
        with self._lock:
            if self._closed:
                raise is_closed(self._server)
            if self._pool is None:
                self._pool = _Pool(
                    self._server.conninfo,
                    connection_class=_Connection,
                    kwargs={**self._server.options(), "attempts": self._attempts},
                    min_size=0,
                    max_size=self.size,
                    configure=partial(begin_session, prepare=self._server.prepare),
                    timeout=self._server.deadline,
                    reconnect_timeout=self._server.deadline,
                    open=True,
                )
            return self._pool


class AsyncPool:
    """The connections of the tasks of one event loop.

    A returned connection is kept at hand for a moment: a turn of a graph needs one four times, and
    getting it from psycopg's pool costs more than sending a statement.

    Args:
        server: The server.
        loop: The event loop.

    Attributes:
        size: The maximum number of connections.
        lent: How many connections are in use.
    """

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.size = server.pool_size or ASYNC_POOL
        self.lent = 0
        self._server = server
        self._loop = loop
        self._opened: WeakSet[psycopg.AsyncConnection[Any]] = WeakSet()
        self._at_hand: list[psycopg.AsyncConnection[Any]] = []
        self._asking = 0
        self._keeps = True
        self._timer: asyncio.TimerHandle | None = None
        self._returning: set[asyncio.Task[Any]] = (
            set()
        )  # tasks that return connections to psycopg's pool
        self._attempts = _Attempts()
        self._pool: AsyncConnectionPool[psycopg.AsyncConnection[Any]] = AsyncConnectionPool(
            server.conninfo,
            connection_class=_AsyncConnection,
            kwargs={**server.options(), "attempts": self._attempts},
            min_size=0,
            max_size=self.size,
            open=False,
            configure=self._begin_session,
            timeout=server.deadline,
            reconnect_timeout=server.deadline,
        )

    @property
    def is_closed(self) -> bool:
        """Whether it has no connections to lend: not yet, or no longer."""
        return self._pool.closed

    async def open(self) -> None:
        """Let connections be made when they are needed."""
        await self._pool.open()

    async def _begin_session(self, connection: psycopg.AsyncConnection[Any]) -> None:
        begin_session(connection, prepare=self._server.prepare)
        self._opened.add(connection)

    async def lend(self) -> psycopg.AsyncConnection[Any]:
        """A connection, until it is returned.

        Raises:
            StorageUnavailable: No connection is free, or can be made, within the deadline.
        """
        if self._at_hand:
            connection = self._at_hand.pop()
        else:
            connection = await self._get()
        self.lent += 1
        return connection

    async def _get(self) -> psycopg.AsyncConnection[Any]:
        """A connection of psycopg's pool; if its caller is cancelled, it is returned."""
        self._asking += 1
        try:
            return await obtain(self._pool.getconn(), self._pool.putconn, self._returning)
        except (PoolTimeout, psycopg.Error) as error:
            raise no_connection(
                error, self._server, lent=self.lent, size=self.size, reason=self._attempts.reason
            ) from error
        finally:
            self._asking -= 1

    async def give_back(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Let others have a connection."""
        self.lent -= 1
        if self._asking or not self._keeps or connection.pgconn.transaction_status != _IDLE:
            await self._put(
                [connection]
            )  # the pool lends it to the next caller, or replaces it if it has ended
            return
        self._at_hand.append(connection)
        if self._timer is None:
            # In a context of its own: what this caller's holds is not to be kept.
            self._timer = self._loop.call_later(_AT_HAND_S, self._return_now, context=Context())

    def _return_now(self) -> None:
        self._timer = None
        start_held(self._loop, self._return(), self._returning)

    async def _return(self) -> None:
        """Give idle connections back to psycopg's pool, which closes old and unneeded ones."""
        connections, self._at_hand = self._at_hand, []
        await self._put(connections)

    async def _put(self, connections: Sequence[psycopg.AsyncConnection[Any]]) -> None:
        """Give connections back to psycopg's pool, even if the caller is cancelled.

        A connection that the pool has not got yet when it waits would be lost.
        """
        if self._loop.is_closed():  # the caller is let go with it, and could wait for nothing
            for connection in connections:
                connection.pgconn.finish()
        elif connections:
            await asyncio.shield(
                start_held(self._loop, self._put_all(connections), self._returning)
            )

    async def _put_all(self, connections: Sequence[psycopg.AsyncConnection[Any]]) -> None:
        for connection in connections:
            await self._pool.putconn(connection)

    async def check(self) -> None:
        """Remove connections that have ended, or whose server does not answer in time."""
        await self._return()
        idle: list[psycopg.AsyncConnection[Any]] = []
        try:
            with suppress(PoolTimeout):
                for _ in range(self._pool.get_stats().get("pool_available", 0)):
                    idle.append(
                        await obtain(
                            self._pool.getconn(timeout=_AT_ONCE_S),
                            self._pool.putconn,
                            self._returning,
                        )
                    )
            await asyncio.gather(
                *(
                    aprobe(connection, deadline=min(self._server.deadline, GRACE_S))
                    for connection in idle
                )
            )
        finally:
            await self._put(idle)  # which makes another in place of one that is closed

    async def close(self) -> None:
        """Close all; idempotent."""
        self._keep_nothing()
        await self._return()
        await self._pool.close()
        while self._returning:  # to a pool that is closed, which closes them
            await asyncio.wait(self._returning)

    def abandon(self) -> None:
        """Close the connections of an event loop that is closed, or ends."""
        self._keep_nothing()
        self._at_hand.clear()
        for connection in self._opened:
            connection.pgconn.finish()

    def _keep_nothing(self) -> None:
        """From now on, keep no returned connection at hand."""
        self._keeps = False
        if self._timer is not None:
            self._timer.cancel()
