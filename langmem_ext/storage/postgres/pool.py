"""The sync callers' way to a PostgreSQL server: their connections, opened when they are needed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic
from typing import Any, Final

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from langmem_ext.storage.postgres.exchange import GRACE_S, begin_session, probe
from langmem_ext.storage.postgres.server import SYNC_POOL, Server, is_closed, no_connection

_AT_ONCE_S: Final = 0.01
"""How long a connection is waited for that is there unless another caller has just taken it."""


class SyncPool:
    """What the sync callers of all threads need.

    Args:
        server: Where to.
    """

    def __init__(self, server: Server) -> None:
        self.size = server.pool_size or SYNC_POOL
        self._server = server
        self._lock = threading.Lock()
        self._pool: ConnectionPool[psycopg.Connection[Any]] | None = None
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
            raise no_connection(error, self._server, lent=self._lent, size=self.size) from error
        with self._lock:
            self._lent += 1
        try:
            yield connection
        finally:
            with self._lock:
                self._lent -= 1
            pool.putconn(connection)

    def check(self) -> None:
        """Leave out connections that have ended, and those whose server does not say anything within the deadline."""
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

    def _open(self) -> ConnectionPool[psycopg.Connection[Any]]:
        with self._lock:
            if self._closed:
                raise is_closed(self._server)
            if self._pool is None:
                self._pool = ConnectionPool(
                    self._server.conninfo,
                    kwargs=self._server.options(),
                    min_size=0,
                    max_size=self.size,
                    configure=partial(begin_session, prepare=self._server.prepare),
                    timeout=self._server.deadline,
                    reconnect_timeout=self._server.deadline,
                    open=True,
                )
            return self._pool
