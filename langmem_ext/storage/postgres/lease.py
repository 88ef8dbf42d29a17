"""The right to drive a thread, among all processes of a PostgreSQL database: an advisory lock.

It is held on a connection of its own, and ends with that connection: a killed process holds
nothing. A forked child does not have it (`inherited`).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from hashlib import blake2b
from typing import Any

import psycopg
from psycopg import errors

from langmem_ext.errors import InvalidInput, StorageUnavailable
from langmem_ext.storage.driver import thread_busy
from langmem_ext.storage.operation import Rows
from langmem_ext.storage.postgres.server import Server, storage_error
from langmem_ext.storage.postgres.tasks import obtain
from langmem_ext.storage.postgres.wire.commands import Command
from langmem_ext.storage.postgres.wire.exchange import aexchange, begin_session, exchange

_BACKEND = "SELECT pg_backend_pid()"
_WAIT = "SELECT set_config('lock_timeout', %(wait)s, false)"
_LOCK = "SELECT pg_advisory_lock(%(key)s)"
_TRY = "SELECT pg_try_advisory_lock(%(key)s)"


class AdvisoryLeases:
    """Leases by advisory locks.

    Args:
        server: The server, by its direct URL: a pooler in transaction mode keeps no session.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._keeps_sessions = not server.may_be_pooled
        self._held: dict[str, psycopg.BaseConnection[Any]] = {}
        self._looking = threading.Lock()
        # Connections that came when nobody waited for them any more.
        self._unwanted: set[asyncio.Task[Any]] = set()

    @contextmanager
    def lease(self, thread_id: str, *, wait: float) -> Iterator[None]:
        """Hold the lease; `ThreadBusy` if another still holds it after `wait` seconds."""
        try:
            connection = psycopg.connect(self._server.direct, **self._server.options())
        except psycopg.Error as error:
            raise storage_error(error, self._server) from error
        with connection:
            begin_session(connection, prepare=False)
            try:
                if not self._keeps_sessions:
                    backend = exchange(
                        connection, [Command(_BACKEND)], deadline=self._server.answer_deadline
                    )
                    self._require_session(connection, backend)
                rows = exchange(
                    connection,
                    self._commands(thread_id, wait),
                    deadline=wait + self._server.answer_deadline,
                )
                self._require(rows, thread_id, wait)
            except psycopg.Error as error:
                raise self._refusal(error, thread_id, wait) from error
            with self._holding(thread_id, connection):
                yield

    @asynccontextmanager
    async def alease(self, thread_id: str, *, wait: float) -> AsyncIterator[None]:
        """Async twin of `lease`."""
        connecting = psycopg.AsyncConnection.connect(self._server.direct, **self._server.options())
        try:
            connection = await obtain(connecting, psycopg.AsyncConnection.close, self._unwanted)
        except psycopg.Error as error:
            raise storage_error(error, self._server) from error
        async with connection:
            begin_session(connection, prepare=False)
            try:
                if not self._keeps_sessions:
                    backend = await aexchange(
                        connection, [Command(_BACKEND)], deadline=self._server.answer_deadline
                    )
                    self._require_session(connection, backend)
                rows = await aexchange(
                    connection,
                    self._commands(thread_id, wait),
                    deadline=wait + self._server.answer_deadline,
                )
                self._require(rows, thread_id, wait)
            except psycopg.Error as error:
                raise self._refusal(error, thread_id, wait) from error
            with self._holding(thread_id, connection):
                yield

    def require_kept(self, thread_id: str | None) -> None:
        """Require that a lease which is held here was not lost with its connection.

        Raises:
            StorageUnavailable: It was.
        """
        connection = self._held.get(thread_id or "")
        if connection is None:
            return
        with self._looking:
            lost = _is_over(connection)
        if lost and self._held.get(thread_id or "") is connection:
            raise StorageUnavailable(
                f"the connection that held the lease of thread {thread_id!r} was ended, so others"
                " may go on with the thread, and nothing more of this turn is stored: read the"
                " thread's state, or send the message again with its id"
            )

    @contextmanager
    def _holding(self, thread_id: str, connection: psycopg.BaseConnection[Any]) -> Iterator[None]:
        self._held[thread_id] = connection
        try:
            yield
        finally:
            if self._held.get(thread_id) is connection:
                del self._held[thread_id]

    def _require_session(
        self, connection: psycopg.BaseConnection[Any], backend: Sequence[Rows]
    ) -> None:
        """Refuse a pooler: the process ID that it reports is not that of the server's session.

        A lock taken through it would belong to the pooler's next client, and stay when nobody holds
        it any more.
        """
        if backend[0][0][0] != connection.info.backend_pid:
            raise InvalidInput(
                f"a pooler stands before the {self._server.place}, and in transaction mode it keeps"
                " no session, which a lease is: add direct= to its URL, with the URL of the same"
                " database past the pooler, or with the pooler's own if it keeps sessions; nothing"
                " was changed"
            )
        self._keeps_sessions = True

    def _commands(self, thread_id: str, wait: float) -> list[Command]:
        name = f"{self._server.schema}/{thread_id}".encode("utf-8", "surrogatepass")
        key = {"key": int.from_bytes(blake2b(name, digest_size=8).digest(), "big", signed=True)}
        if wait <= 0:
            return [Command(_TRY, key)]
        return [Command(_WAIT, {"wait": f"{max(1, round(wait * 1000))}ms"}), Command(_LOCK, key)]

    def _require(self, rows: Sequence[Rows], thread_id: str, wait: float) -> None:
        if rows[-1][0][0] is False:
            raise thread_busy(thread_id, wait)

    def _refusal(self, error: psycopg.Error, thread_id: str, wait: float) -> Exception:
        return (
            thread_busy(thread_id, wait)
            if isinstance(error, errors.LockNotAvailable)
            else storage_error(error, self._server)
        )


def _is_over(connection: psycopg.BaseConnection[Any]) -> bool:
    """Whether the server has ended an idle session: it says so unasked, and nothing else."""
    try:
        for _ in range(2):  # why it ends it, and the end
            connection.pgconn.consume_input()
    except psycopg.Error:
        return True
    return connection.closed
