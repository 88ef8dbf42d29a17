"""What is sent in one round trip, and what comes back: one pipeline with one Sync, on a sync or an async connection.

psycopg's own pipeline hands over each statement to the network by itself, and looks for answers each time. Here all statements of a trip
are put into libpq's buffer first, so that it costs one call, whatever their number.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from operator import itemgetter
from time import monotonic
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import capabilities, errors, pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.generators import fetch_many, send
from psycopg.pq.abc import PGconn, PGresult
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from langmem_ext.storage.commands import Command
from langmem_ext.storage.effects import Rows
from langmem_ext.storage.pipeline import ExchangeFailed
from langmem_ext.storage.postgres.server import NoAnswer

GRACE_S: Final = 5.0
"""How long a server has for stopping what takes too long, in seconds."""

PREPARED: Final = 400
"""Statements that a connection has prepared, at most: those that come first. What comes once is not prepared."""

_NAMED: Final = re.compile(r"%\((\w+)\)s|%%")
_BINARY: Final = pq.Format.BINARY
_Message: TypeAlias = tuple[bytes, Sequence[Any], tuple[int, ...], Sequence[pq.Format]]
"""A statement, and the values, types and formats of its parameters."""

_NOTHING: Final = Command("SELECT 1")
"""Asked for to see whether there is an answer."""

_FAILED: Final = frozenset({pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.PIPELINE_ABORTED})
_TUPLES: Final = pq.ExecStatus.TUPLES_OK
_ONE: Final = (True,)
"""What comes of a command that needs no preparing."""


class Session:
    """What a connection has prepared.

    Args:
        connection: The connection.
        prepare: Whether it may; not behind a pooler in transaction mode.
    """

    def __init__(self, connection: psycopg.BaseConnection[Any], *, prepare: bool) -> None:
        self._adapter = Transformer(connection)
        self._prepare = prepare
        self._names: dict[tuple[bytes, tuple[int, ...]], bytes] = {}
        self._met: set[tuple[bytes, tuple[int, ...]]] = set()
        self._count = 0

    def talk(self, pgconn: PGconn, commands: Sequence[Command]) -> Generator[Any, Any, list[Rows]]:
        """Send commands and receive their rows, as psycopg's connections carry it out (`wait`).

        Raises:
            psycopg.Error: A command has failed: the first one that has.
        """
        # Before anything is begun: a parameter that cannot be sent leaves the connection as it was.
        try:
            messages = list(map(self._message, commands))
        except OverflowError as error:
            raise psycopg.DataError("a number of more than 64 bits") from error
        except UnicodeError as error:
            raise psycopg.DataError("half of a character") from error
        pgconn.enter_pipeline_mode()
        try:
            answers: list[bool] = []  # for each that there will be, whether it is a command's
            for message in messages:
                answers += self._put(pgconn, *message)
            pgconn.pipeline_sync()
            yield from send(pgconn)
            results: list[PGresult] = []
            for _ in answers:
                results += yield from fetch_many(pgconn)
            yield from fetch_many(pgconn)  # the Sync's
        finally:
            if pgconn.status == pq.ConnStatus.OK and pgconn.transaction_status != pq.TransactionStatus.ACTIVE:
                pgconn.exit_pipeline_mode()
        statuses = [result.status for result in results]
        if not _FAILED.isdisjoint(statuses):
            self._names.clear()  # what was prepared behind the one that failed was not
            raise errors.error_from_result(next(result for result in results if result.status in _FAILED))
        return [
            self._rows(result) if status == _TUPLES else ()
            for result, status, is_command in zip(results, statuses, answers, strict=True)
            if is_command
        ]

    def _message(self, command: Command) -> _Message:
        """A command as libpq takes it."""
        statement, values_of, formats = _positional(command.sql)
        if values_of is None:
            return statement, (), (), ()
        adapter = self._adapter
        values = adapter.dump_sequence(values_of(command.params or {}), formats)
        return statement, values, tuple(adapter.types or ()), adapter.formats or ()

    def _put(
        self, pgconn: PGconn, statement: bytes, values: Sequence[Any], types: tuple[int, ...], formats: Sequence[pq.Format]
    ) -> tuple[bool, ...]:
        """Put a command into the buffer; for each of the answers that there will be, whether it is the command's own."""
        key = statement, types
        name = self._names.get(key)
        if name is not None:
            pgconn.send_query_prepared(name, values, formats, _BINARY)
            return _ONE
        if not self._prepare or len(self._names) >= PREPARED or key not in self._met:
            if len(self._met) < 4 * PREPARED:
                self._met.add(key)
            pgconn.send_query_params(statement, values, types, formats, _BINARY)
            return _ONE
        self._count += 1
        name = self._names[key] = b"langmem_%d" % self._count
        pgconn.send_prepare(name, statement, types)
        pgconn.send_query_prepared(name, values, formats, _BINARY)
        return False, True

    def _rows(self, result: PGresult) -> Rows:
        count = result.ntuples
        if not count:
            return ()
        self._adapter.set_pgresult(result, format=_BINARY)
        return self._adapter.load_rows(0, count, tuple)


_SESSION: Final = "langmem_ext_session"
"""Where a connection has its session, which refers to it: both go together, and no table of sessions holds any."""


def begin_session(connection: psycopg.BaseConnection[Any], *, prepare: bool) -> None:
    """What is done once with a new connection. Every integer is sent in one form: else statements would be prepared for each size."""
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    vars(connection)[_SESSION] = Session(connection, prepare=prepare)


def _session_of(connection: psycopg.BaseConnection[Any]) -> Session:
    session: Session = vars(connection)[_SESSION]
    return session


class _Watch:
    """A talk with a server that may be silent.

    Args:
        talk: The talk.
    """

    def __init__(self, talk: Generator[Any, Any, list[Rows]]) -> None:
        self._talk = talk
        self._awaited: Any = None

    def within(self, seconds: float) -> Generator[Any, Any, list[Rows]]:
        """Go on with it.

        Raises:
            NoAnswer: It takes longer; it can be gone on with.
        """
        until = monotonic() + seconds
        try:
            if self._awaited is None:
                self._awaited = next(self._talk)
            while True:
                ready = yield self._awaited
                if not ready and monotonic() >= until:
                    raise NoAnswer
                self._awaited = self._talk.send(ready)
        except StopIteration as done:
            rows: list[Rows] = done.value
            return rows


def exchange(connection: psycopg.Connection[Any], commands: Sequence[Command], *, deadline: float) -> Sequence[Rows]:
    """Send commands in one trip; the rows of each.

    Args:
        connection: Where to.
        commands: What is sent.
        deadline: How long an answer is waited for, in seconds. Then the server is asked to stop, and where it does not do that either, the
            connection is closed.

    Raises:
        psycopg.Error: One has failed, and with it, where no transaction was begun, all. `QueryCanceled`: it took too long.
            `NoAnswer`: the server has been silent.
    """
    if not commands:
        return []
    watch = _Watch(_session_of(connection).talk(connection.pgconn, commands))
    try:
        return connection.wait(watch.within(deadline))
    except NoAnswer:
        try:
            if capabilities.has_cancel_safe():
                with suppress(psycopg.Error):
                    connection.cancel_safe(timeout=min(deadline, GRACE_S))
                return connection.wait(watch.within(min(deadline, GRACE_S)))
            raise
        except NoAnswer:
            connection.pgconn.finish()
            raise


async def aexchange(connection: psycopg.AsyncConnection[Any], commands: Sequence[Command], *, deadline: float) -> Sequence[Rows]:
    """Async twin of `exchange`; others get on where there is nothing to send."""
    if not commands:
        await asyncio.sleep(0)
        return []
    watch = _Watch(_session_of(connection).talk(connection.pgconn, commands))
    try:
        return await connection.wait(watch.within(deadline))
    except NoAnswer:
        try:
            if capabilities.has_cancel_safe():
                with suppress(psycopg.Error):
                    await connection.cancel_safe(timeout=min(deadline, GRACE_S))
                return await connection.wait(watch.within(min(deadline, GRACE_S)))
            raise
        except NoAnswer:
            connection.pgconn.finish()
            raise


def probe(connection: psycopg.Connection[Any], *, deadline: float) -> None:
    """Close a connection that has ended, or whose server does not answer within so many seconds."""
    try:
        connection.wait(_Watch(_session_of(connection).talk(connection.pgconn, [_NOTHING])).within(deadline))
    except psycopg.Error:
        connection.pgconn.finish()


async def aprobe(connection: psycopg.AsyncConnection[Any], *, deadline: float) -> None:
    """Async twin of `probe`."""
    try:
        await connection.wait(_Watch(_session_of(connection).talk(connection.pgconn, [_NOTHING])).within(deadline))
    except psycopg.Error:
        connection.pgconn.finish()


def is_left_open(connection: psycopg.BaseConnection[Any]) -> bool:
    """Whether a transaction is to be rolled back; a connection that a signal has stopped in the middle of an exchange is closed instead."""
    pgconn = connection.pgconn
    if pgconn.status == pq.ConnStatus.OK and pgconn.pipeline_status != pq.PipelineStatus.OFF:
        pgconn.finish()
    return pgconn.status == pq.ConnStatus.OK and pgconn.transaction_status != pq.TransactionStatus.IDLE


def failure(error: psycopg.Error) -> ExchangeFailed:
    """What an operation's transaction is told of an error."""
    failed = ExchangeFailed()
    failed.__cause__ = error
    return failed


_Values: TypeAlias = Callable[[Mapping[str, Any]], Sequence[Any]]


@lru_cache(maxsize=2048)
def _positional(sql: str) -> tuple[bytes, _Values | None, Sequence[PyFormat]]:
    """A statement with numbers in place of its parameters' names, and what gives their values and formats; None where it has none."""
    names: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        return "%" if match[1] is None else f"${names.setdefault(match[1], len(names) + 1)}"

    statement = _NAMED.sub(numbered, sql).encode()
    if not names:
        return statement, None, ()
    values_of: _Values = itemgetter(*names) if len(names) > 1 else lambda params: (params[next(iter(names))],)
    return statement, values_of, [PyFormat.AUTO] * len(names)
