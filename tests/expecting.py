"""Drivers that note what operations expect of the database, and whether that was right.

PostgreSQL's own goes on with what a statement is expected to return. For SQLite, which has none that does, there is a test double.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langmem_ext import DeltaSaver, MessageLog
from langmem_ext.storage.effects import Effect, Operation, Rows, Statement
from langmem_ext.storage.group import Job
from langmem_ext.storage.index import Indexes
from langmem_ext.storage.pipeline import ExchangeFailed, ExpectationFailed, ForesightFailed, Read, Transaction, Wire, Write
from langmem_ext.storage.postgres.driver import PostgresDriver
from langmem_ext.storage.sqlite import SqliteDriver
from langmem_ext.storage.statements import INSERT_THREAD

T = TypeVar("T")


@dataclass
class Run:
    """What an operation has asked for, until one of its expectations was wrong.

    Attributes:
        name: The operation's.
        unexpected: Statements of which nothing was expected.
        right, wrong: Those whose expectation was so.
    """

    name: str
    unexpected: list[str] = field(default_factory=list)
    right: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)


class ExpectingDriver(SqliteDriver):
    """Test double: runs operations on a real SQLite database, but gives them what they expect, and notes whether that was right.

    An operation with a wrong expectation is undone and run again without any, as a driver must that learns of it at the end. With
    `twice`, every operation is: so whatever is passed to a driver must survive that.

    Args:
        database: A connection.
        twice: Whether each operation is undone once.
    """

    speculates = True
    indexes: Indexes

    def __init__(self, database: sqlite3.Connection, *, twice: bool = False) -> None:
        super().__init__(connection=database)
        self.runs: list[Run] = []
        self._twice = twice
        self._believes = False

    def _drive(self, op: Operation[T]) -> T:
        run, token = Run(op._begin.__name__), object()
        self.runs.append(run)
        self._connection.execute("SAVEPOINT expecting")
        try:
            self._believes, result, error = True, None, None
            try:
                result = self._advance(op, token)
            except Exception as raised:
                error = raised
            if run.wrong or (self._twice and op.repeatable):
                self._connection.execute("ROLLBACK TO expecting")
                self.indexes.forget_claimed(token)
                self._believes, error = False, None
                result = self._advance(op, token)
            if error is not None:
                raise error
        except Exception:
            self.indexes.forget_claimed(token)
            raise
        finally:
            self.indexes.release(token)
            if self._connection.in_transaction:
                self._connection.execute("RELEASE expecting")
        return result  # type: ignore[return-value]  # set, if there is no error

    def _advance(self, op: Operation[T], token: object) -> T:
        with closing(iter(op)) as steps:
            rows: Rows | None = None
            try:
                while True:
                    effect = self.indexes.claiming(token, steps.send, rows)
                    rows = self.execute(effect)
            except StopIteration as done:
                result: T = done.value
                return result

    def execute(self, effect: Effect) -> Rows:
        rows = super().execute(effect)
        if not isinstance(effect, Statement) or not self._believes or effect.sql == INSERT_THREAD:
            return rows  # SQLite itself numbers threads: what is expected of a new one's row is said to databases that do not
        run = self.runs[-1]
        if effect.expected is None:
            run.unexpected.append(effect.sql)
            return rows
        (run.right if list(rows) == list(effect.expected) else run.wrong).append(effect.sql)
        return effect.expected

    def taken(self) -> list[Run]:
        """The runs since it was asked last."""
        runs, self.runs = self.runs, []
        return runs


class _Noted(Transaction):
    """A transaction of PostgreSQL that notes what it takes for granted."""

    noted_by: NotingDriver
    runs: list[Run]

    def _run(self, op: Operation[T]) -> Wire[T]:
        self.runs.append(Run(op._begin.__name__))
        return (yield from super()._run(op))

    def _answer_one(self, statement: Statement) -> Rows | None:
        self._note_expected(statement)
        return super()._answer_one(statement)

    def _answer_all(self, statements: Any) -> Any:
        for statement in statements:
            self._note_expected(statement)
        return super()._answer_all(statements)

    def _note_expected(self, statement: Statement) -> None:
        run = self.runs[-1]
        (run.unexpected if statement.expected is None else run.right).append(statement.sql)

    def carry_out(self, op: Operation[T]) -> Wire[T]:
        return (yield from self._watched(super().carry_out(op)))

    def _watched(self, wire: Wire[T]) -> Wire[T]:
        """Note what comes of it, where anything was taken for granted; what asks again knows better."""
        if self._trusting:
            self.noted_by.runs_under_way(self.runs)
        try:
            return (yield from wire)
        except ForesightFailed:
            raise
        except (ExpectationFailed, ExchangeFailed):
            for run in self.runs:  # what expected nothing has met a write between its first look and its snapshot
                run.wrong, run.right = run.right, []
            raise

    def _finish(self) -> Wire[None]:
        if self._trusting and self._repeatable and self.noted_by.twice:
            raise ExpectationFailed
        yield from super()._finish()  # type: ignore[safe-super]  # that of `Read` or `Write`


class _NotedRead(_Noted, Read):
    """One that changes nothing."""


class _NotedWrite(_Noted, Write):
    """One that does."""

    def carry_out_all(self, jobs: Sequence[Job[Any]]) -> Wire[None]:
        yield from self._watched(super().carry_out_all(jobs))


class NotingDriver(PostgresDriver):
    """PostgreSQL's driver, which notes what operations that rest on expectations have expected, and whether that was right.

    Args:
        url: The database.
        twice: Whether every operation that rests on expectations, and may be run again, is undone once.
    """

    def __init__(self, url: str, *, twice: bool = False) -> None:
        super().__init__(url)
        self.twice = twice
        self._under_way: list[list[Run]] = []

    def _begin(self, kind: Any, *, trusting: bool, hasty: bool = True) -> Any:
        noted = {Read: _NotedRead, Write: _NotedWrite}[kind]
        transaction = noted(self._indexes, self._dialect, trusting=trusting, hasty=hasty)
        transaction.noted_by, transaction.runs = self, []
        return transaction

    def runs_under_way(self, runs: list[Run]) -> None:
        """Operations of one transaction, which are still to come."""
        self._under_way.append(runs)

    def taken(self) -> list[Run]:
        """The runs since it was asked last."""
        under_way, self._under_way = self._under_way, []
        return [run for runs in under_way for run in runs]


def expecting_saver(database: sqlite3.Connection | str, *, twice: bool = False, **options: Any) -> DeltaSaver:
    """A saver on such a driver: of SQLite, with a connection, or of PostgreSQL, with a URL."""
    if isinstance(database, str):
        return DeltaSaver(MessageLog(NotingDriver(database, twice=twice)), **options)
    driver = ExpectingDriver(database, twice=twice)
    log = MessageLog(driver)
    driver.indexes = log.indexes
    return DeltaSaver(log, **options)


def driver_of(saver: DeltaSaver) -> ExpectingDriver | NotingDriver:
    """The driver of such a saver."""
    assert isinstance(saver.log.driver, ExpectingDriver | NotingDriver)
    return saver.log.driver


def wrong(runs: Iterable[Run]) -> list[tuple[str, list[str]]]:
    """What was expected wrongly, by operation."""
    return [(run.name, run.wrong) for run in runs if run.wrong]
