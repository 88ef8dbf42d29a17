"""One round trip: one pipeline with one Sync, on a sync or an async connection.

psycopg's own pipeline passes each statement to the network by itself, and looks for answers each
time. Here all statements of a trip are put into libpq's buffer first, so that they cost one call,
however many they are.
"""

from __future__ import annotations

import asyncio
import re
from base64 import urlsafe_b64encode
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from hashlib import blake2b
from operator import itemgetter
from time import monotonic
from typing import Any, Final, TypeAlias

import psycopg
from psycopg import capabilities, errors, pq
from psycopg.adapt import PyFormat, Transformer
from psycopg.generators import fetch_many, send
from psycopg.pq.abc import PGconn, PGresult
from psycopg.types.numeric import Int8BinaryDumper, Int8Dumper

from langmem_ext._internal.collector import without_collector
from langmem_ext.storage.operation import Rows
from langmem_ext.storage.postgres.inherited import keep_from_children
from langmem_ext.storage.postgres.server import NoAnswer
from langmem_ext.storage.postgres.wire.commands import Command
from langmem_ext.storage.postgres.wire.pipeline import ExchangeFailed

GRACE_S: Final = 5.0
"""How long a server has for stopping what takes too long, in seconds."""

PREPARED: Final = 400
"""The maximum number of statements that a connection prepares: the first ones that are repeated."""

_NAMED: Final = re.compile(r"%\((\w+)\)s|%%")
_BINARY: Final = pq.Format.BINARY
_Form: TypeAlias = tuple[bytes, tuple[int, ...]]
"""A statement, and the types of its parameters."""
_Message: TypeAlias = tuple[_Form, Sequence[Any], Sequence[pq.Format]]
"""A statement's form, and the values and formats of its parameters."""

_NOTHING: Final = Command("SELECT 1")
"""Asked for to see whether there is an answer."""

_FAILED: Final = frozenset({pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.PIPELINE_ABORTED})
_OUTDATED: Final = (errors.FeatureNotSupported, errors.InvalidSqlStatementName)
"""A prepared statement is of no use: a table has other columns now, or the statement is gone."""

_TUPLES: Final = pq.ExecStatus.TUPLES_OK


class Session:
    """The statements that a connection has prepared.

    Args:
        connection: The connection.
        prepare: Whether it may prepare any; not behind a pooler in transaction mode.
    """

    def __init__(self, connection: psycopg.BaseConnection[Any], *, prepare: bool) -> None:
        self._adapter = Transformer(connection)
        self._prepare = prepare
        self._names: dict[_Form, bytes] = {}
        self._met: set[_Form] = set()
        self._outdated = 0  # how often what was prepared has become so

    def talk(self, pgconn: PGconn, commands: list[Command]) -> Generator[Any, Any, list[Rows]]:
        """Send commands and receive their rows; the list is emptied.

        It is a generator that psycopg's connections run (`wait`).

        Raises:
            psycopg.Error: A command has failed: the first one that has.
        """
        # Before anything is begun: a parameter that cannot be sent leaves the connection as it was.
        try:
            messages = self._messages(commands)
            commands.clear()
        except OverflowError as error:
            raise psycopg.DataError("a number of more than 64 bits") from error
        except UnicodeError as error:
            raise psycopg.DataError("half of a character") from error
        pgconn.enter_pipeline_mode()
        try:
            answers = self._put(pgconn, messages)
            del messages
            pgconn.pipeline_sync()
            yield from send(pgconn)
            results: list[PGresult] = []
            for _ in answers:
                results += yield from fetch_many(pgconn)
            yield from fetch_many(pgconn)  # the Sync's
        finally:
            if (
                pgconn.status == pq.ConnStatus.OK
                and pgconn.transaction_status != pq.TransactionStatus.ACTIVE
            ):
                pgconn.exit_pipeline_mode()
        statuses = [result.status for result in results]
        if not _FAILED.isdisjoint(statuses):
            failed = errors.error_from_result(
                next(result for result in results if result.status in _FAILED)
            )
            self._forget(
                failed,
                [
                    form
                    for form, status in zip(answers, statuses, strict=False)
                    if form is not None and status in _FAILED
                ],
            )
            raise failed
        return [
            self._rows(result) if status == _TUPLES else ()
            for result, status, prepared in zip(results, statuses, answers, strict=True)
            if prepared is None
        ]

    def _messages(self, commands: Sequence[Command]) -> list[_Message]:
        """Commands as libpq takes them."""
        adapter, messages = self._adapter, list[_Message]()
        dump = adapter.dump_sequence
        for sql, params in commands:
            if isinstance(params, tuple):
                values = dump(params, [_AUTO] * len(params))
                messages.append(
                    ((_encoded(sql), tuple(adapter.types or ())), values, adapter.formats or ())
                )
                continue
            statement, values_of, formats = _positional(sql)
            if values_of is None:
                messages.append(((statement, ()), (), ()))
                continue
            values = dump(values_of(params or {}), formats)
            messages.append(
                ((statement, tuple(adapter.types or ())), values, adapter.formats or ())
            )
        return messages

    def _put(self, pgconn: PGconn, messages: Sequence[_Message]) -> list[_Form | None]:
        """Put messages into the buffer; returns the statement that each answer prepares, or None.

        None is the answer of a command.
        """
        answers: list[_Form | None] = []
        known_as, send_prepared = self._names.get, pgconn.send_query_prepared
        for form, values, formats in messages:
            name = known_as(form) or self._prepared(pgconn, form, answers)
            if name:
                send_prepared(name, values, formats, _BINARY)
            else:
                pgconn.send_query_params(form[0], values, form[1], formats, _BINARY)
            answers.append(None)
        return answers

    def _prepared(self, pgconn: PGconn, form: _Form, answers: list[_Form | None]) -> bytes | None:
        """The name of a statement that is prepared now; None for one that is not."""
        if not self._prepare or len(self._names) >= PREPARED or form not in self._met:
            if len(self._met) < 4 * PREPARED:
                self._met.add(form)
            return None
        name = self._names[form] = _name_of(form, self._outdated)
        pgconn.send_prepare(name, *form)
        answers.append(form)
        return name

    def _forget(self, error: psycopg.Error, refused: Sequence[_Form]) -> None:
        """Know no more than is prepared: what was in front of what failed is, and has its name."""
        if isinstance(error, _OUTDATED):
            self._names.clear()
            self._outdated += 1
        for form in refused:
            self._names.pop(form, None)

    def _rows(self, result: PGresult) -> Rows:
        count = result.ntuples
        if not count:
            return ()
        self._adapter.set_pgresult(result, format=_BINARY)
        return self._adapter.load_rows(0, count, tuple)


def _name_of(form: _Form, time: int) -> bytes:
    """The name of a prepared statement: its hash, so that it is safe behind a pooler.

    There, nobody has another statement with its name.

    Args:
        form: The statement.
        time: How often it was prepared under other names, which are still in use.
    """
    statement, types = form
    # Short: it is sent each time.
    digest = urlsafe_b64encode(blake2b(repr(types).encode() + statement, digest_size=9).digest())
    return b"langmem_%b_%d" % (digest, time) if time else b"langmem_%b" % digest


_SESSION: Final = "langmem_ext_session"
"""The attribute of a connection that holds its session, which refers to it: both are collected
together, and no table of sessions keeps them alive."""


def begin_session(connection: psycopg.BaseConnection[Any], *, prepare: bool) -> None:
    """Set up a new connection, once.

    Every integer is sent in one form: else statements would be prepared for each size.
    """
    connection.adapters.register_dumper(int, Int8Dumper)
    connection.adapters.register_dumper(int, Int8BinaryDumper)
    vars(connection)[_SESSION] = Session(connection, prepare=prepare)
    keep_from_children(connection)


def _session_of(connection: psycopg.BaseConnection[Any]) -> Session:
    session: Session = vars(connection)[_SESSION]
    return session


class Talk:
    """An exchange that was sent and is not answered yet; the server may be silent.

    Args:
        talk: The rest of the exchange.
    """

    def __init__(self, talk: Generator[Any, Any, list[Rows]]) -> None:
        self._talk = talk
        self._awaited = next(talk)

    def within(self, seconds: float) -> Generator[Any, Any, list[Rows]]:
        """Wait for what is answered.

        Raises:
            NoAnswer: It takes longer; it can be gone on with.
        """
        until = monotonic() + seconds
        try:
            while True:
                ready = yield self._awaited
                if not ready and monotonic() >= until:
                    raise NoAnswer
                self._awaited = self._talk.send(ready)
        except StopIteration as done:
            rows: list[Rows] = done.value
            return rows


Step: TypeAlias = Callable[[], list[Command]]
"""Goes on with a `pipeline.Wire`, up to what it has to send next."""


def begin(connection: psycopg.BaseConnection[Any], step: Step) -> Talk | None:
    """Take a step, and send its commands; None if there are none. It waits for nothing.

    The commands are released at once: a garbage collection in between would visit all of them, free
    nothing, and move them to an older generation.

    Raises:
        psycopg.Error: A command cannot be sent, or the connection has ended. Also what the step
        raises.
    """
    return without_collector(_begin, connection, step)


def _begin(connection: psycopg.BaseConnection[Any], step: Step) -> Talk | None:
    commands = step()
    return Talk(_session_of(connection).talk(connection.pgconn, commands)) if commands else None


def answers(
    connection: psycopg.Connection[Any], talk: Talk | None, *, deadline: float
) -> Sequence[Rows]:
    """The answers to the commands that were sent: the rows of each.

    Args:
        connection: The connection.
        talk: The exchange that `begin` has begun.
        deadline: How many seconds to wait for an answer. Then the server is asked to stop, and if
            it does not do that either, the connection is closed.

    Raises:
        psycopg.Error: A command has failed, and with it all, unless a transaction was begun.
            `QueryCanceled`: it took too long. `NoAnswer`: the server has been silent.
    """
    if talk is None:
        return []
    try:
        return connection.wait(talk.within(deadline))
    except NoAnswer:
        try:
            if capabilities.has_cancel_safe():
                with suppress(psycopg.Error):
                    connection.cancel_safe(timeout=min(deadline, GRACE_S))
                return connection.wait(talk.within(min(deadline, GRACE_S)))
            raise
        except NoAnswer:
            connection.pgconn.finish()
            raise


async def aanswers(
    connection: psycopg.AsyncConnection[Any], talk: Talk | None, *, deadline: float
) -> Sequence[Rows]:
    """Async twin of `answers`; if nothing was sent, other tasks run."""
    if talk is None:
        await asyncio.sleep(0)
        return []
    try:
        return await connection.wait(talk.within(deadline))
    except NoAnswer:
        try:
            if capabilities.has_cancel_safe():
                with suppress(psycopg.Error):
                    await connection.cancel_safe(timeout=min(deadline, GRACE_S))
                return await connection.wait(talk.within(min(deadline, GRACE_S)))
            raise
        except NoAnswer:
            connection.pgconn.finish()
            raise


def exchange(
    connection: psycopg.Connection[Any], commands: Iterable[Command], *, deadline: float
) -> Sequence[Rows]:
    """Send commands in one trip; the rows of each (`answers`)."""
    return answers(connection, begin(connection, lambda: list(commands)), deadline=deadline)


async def aexchange(
    connection: psycopg.AsyncConnection[Any], commands: Iterable[Command], *, deadline: float
) -> Sequence[Rows]:
    """Async twin of `exchange`."""
    return await aanswers(connection, begin(connection, lambda: list(commands)), deadline=deadline)


def probe(connection: psycopg.Connection[Any], *, deadline: float) -> None:
    """Close a connection that has ended, or whose server does not answer within so many seconds."""
    try:
        if talk := begin(connection, lambda: [_NOTHING]):
            connection.wait(talk.within(deadline))
    except psycopg.Error:
        connection.pgconn.finish()


async def aprobe(connection: psycopg.AsyncConnection[Any], *, deadline: float) -> None:
    """Async twin of `probe`."""
    try:
        if talk := begin(connection, lambda: [_NOTHING]):
            await connection.wait(talk.within(deadline))
    except psycopg.Error:
        connection.pgconn.finish()


def is_left_open(connection: psycopg.BaseConnection[Any]) -> bool:
    """Whether a transaction must be rolled back.

    A connection that a signal has stopped in the middle of an exchange is closed instead.
    """
    pgconn = connection.pgconn
    if pgconn.status == pq.ConnStatus.OK and pgconn.pipeline_status != pq.PipelineStatus.OFF:
        pgconn.finish()
    return (
        pgconn.status == pq.ConnStatus.OK and pgconn.transaction_status != pq.TransactionStatus.IDLE
    )


def failure(error: psycopg.Error) -> ExchangeFailed:
    """An error in the form that an operation's transaction receives."""
    failed = ExchangeFailed()
    failed.__cause__ = error
    return failed


_AUTO: Final = PyFormat.AUTO

_encoded: Final = lru_cache(maxsize=2048)(str.encode)

_Values: TypeAlias = Callable[[Mapping[str, Any]], Sequence[Any]]


@lru_cache(maxsize=2048)
def _positional(sql: str) -> tuple[bytes, _Values | None, Sequence[PyFormat]]:
    """A statement with numbered parameters, and functions for their values and formats.

    The functions are None if it has no parameters.
    """
    names: dict[str, int] = {}

    def numbered(match: re.Match[str]) -> str:
        return "%" if match[1] is None else f"${names.setdefault(match[1], len(names) + 1)}"

    statement = _NAMED.sub(numbered, sql).encode()
    if not names:
        return statement, None, ()
    values_of: _Values = (
        itemgetter(*names) if len(names) > 1 else lambda params: (params[next(iter(names))],)
    )
    return statement, values_of, [PyFormat.AUTO] * len(names)
