"""A test double of a driver whose database is far away: it goes on with what a statement is expected to return."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, TypeVar

from langmem_ext import DeltaSaver, MessageLog
from langmem_ext.storage.effects import Effect, Operation, Rows, Statement
from langmem_ext.storage.index import Indexes
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
        database: A connection, or a file's path.
        twice: Whether each operation is undone once.
    """

    speculates = True
    indexes: Indexes

    def __init__(self, database: sqlite3.Connection | str = ":memory:", *, twice: bool = False) -> None:
        if isinstance(database, str):
            super().__init__(database)
        else:
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
                    with self.indexes.claimed(token):
                        effect = next(steps) if rows is None else steps.send(rows)
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


def expecting_saver(database: sqlite3.Connection | str = ":memory:", *, twice: bool = False, **options: Any) -> DeltaSaver:
    """A saver on such a driver."""
    driver = ExpectingDriver(database, twice=twice)
    log = MessageLog(driver)
    driver.indexes = log.indexes
    return DeltaSaver(log, **options)


def driver_of(saver: DeltaSaver) -> ExpectingDriver:
    """The driver of such a saver."""
    assert isinstance(saver.log.driver, ExpectingDriver)
    return saver.log.driver


def wrong(runs: Iterable[Run]) -> list[tuple[str, list[str]]]:
    """What was expected wrongly, by operation."""
    return [(run.name, run.wrong) for run in runs if run.wrong]
