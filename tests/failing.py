"""A database of which statements fail: how the tests break an operation at each of its statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from langmem_ext import MessageLog
from langmem_ext.storage.commands import Command
from langmem_ext.storage.postgres.exchange import Session
from langmem_ext.storage.sqlite import SqliteDriver


@dataclass
class Faults:
    """Which statements fail, counted from when `begin` was called.

    Attributes:
        at: The first that fails, as does every later one; None: none does.
        first: Whether the very first one fails too. PostgreSQL's driver then runs the operation again by another way: it asks for all that
            it needs, and expects nothing.
        reached: How many there were.
    """

    at: int | None = None
    first: bool = False
    reached: int = 0

    def begin(self, at: int, *, first: bool = False) -> None:
        """Have statements fail from this one on."""
        self.at, self.first, self.reached = at, first, 0

    def end(self) -> None:
        """Have none fail any more."""
        self.at = None

    def reach(self) -> bool:
        """Come to the next statement; whether it fails."""
        if self.at is None:
            return False
        self.reached += 1
        return self.reached > self.at or (self.first and self.reached == 1)


class FailingDriver(SqliteDriver):
    """Fails where a statement is about to run that is to; the COMMIT counts as the last one."""

    def __init__(self, path: str, faults: Faults) -> None:
        super().__init__(path)
        self._faults = faults

        self._cursor = FailingCursor(self._cursor, self._reach)  # type: ignore[assignment]  # as the driver uses it

    def _reach(self) -> None:
        if self._faults.reach():
            raise sqlite3.OperationalError("disk I/O error")

    def commit(self) -> None:
        self._reach()
        super().commit()


class FailingCursor:
    """A cursor that asks first whether a statement is to fail; what begins a transaction does not."""

    def __init__(self, cursor: sqlite3.Cursor, reach: Callable[[], None]) -> None:
        self._cursor, self._reach = cursor, reach

    def execute(self, statement: str, params: Any = ()) -> sqlite3.Cursor:
        if not statement.startswith(("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE")):
            self._reach()
        return self._cursor.execute(statement, params)

    def executemany(self, statement: str, params: Any) -> sqlite3.Cursor:
        self._reach()
        return self._cursor.executemany(statement, params)


def failing_log(url: str, faults: Faults, patch: pytest.MonkeyPatch) -> MessageLog:
    """A database whose statements fail. PostgreSQL itself has them fail: it is sent another in place of each, amid all those of a trip."""
    if not url.startswith("postgresql:"):
        return MessageLog(FailingDriver(url, faults))
    messages = Session._messages

    def replaced(session: Session, commands: Sequence[Command]) -> Any:
        return messages(session, [Command("SELECT 1 / 0") if faults.reach() else command for command in commands])

    patch.setattr(Session, "_messages", replaced)
    return MessageLog.open(url)
