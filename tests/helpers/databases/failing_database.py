"""A database whose statements fail, to break an operation at each of its statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from langmem_ext import MessageLog
from langmem_ext.storage.postgres.wire.commands import Command
from langmem_ext.storage.postgres.wire.exchange import Session
from langmem_ext.storage.sqlite.driver import SqliteDriver


@dataclass
class Faults:
    """Which statements fail, counted from when `begin` was called.

    Attributes:
        at: The first that fails, as does every later one; None: none does.
        first: Whether the very first one fails too. PostgreSQL's driver then runs the operation
            again by another way: it asks for all that it needs, and expects nothing.
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
        self._cursor = WatchedCursor(self._cursor, self._reach)  # type: ignore[assignment]  # as the driver uses it

    def _reach(self) -> None:
        if self._faults.reach():
            raise sqlite3.OperationalError("disk I/O error")


class WatchedCursor:
    """A cursor that calls `reach` before each statement but BEGIN and ROLLBACK, and before a
    COMMIT.

    Args:
        cursor: The driver's.
        reach: Called before each.
        committed: Called after each COMMIT.
    """

    def __init__(
        self,
        cursor: sqlite3.Cursor,
        reach: Callable[[], object],
        committed: Callable[[], object] = lambda: None,
    ) -> None:
        self._cursor, self._reach, self._committed = cursor, reach, committed

    def execute(self, statement: str, params: Any = ()) -> sqlite3.Cursor:
        if not statement.startswith(("BEGIN", "ROLLBACK", "SAVEPOINT", "RELEASE")):
            self._reach()
        done = self._cursor.execute(statement, params)
        if statement == "COMMIT":
            self._committed()
        return done

    def executemany(self, statement: str, params: Any) -> sqlite3.Cursor:
        self._reach()
        return self._cursor.executemany(statement, params)


def failing_log(url: str, faults: Faults, patch: pytest.MonkeyPatch) -> MessageLog:
    """A database whose statements fail.

    On PostgreSQL the server itself fails: it is sent another statement, amid those of a trip.
    """
    if not url.startswith("postgresql:"):
        return MessageLog(FailingDriver(url, faults))
    messages = Session._messages

    def replaced(session: Session, commands: Sequence[Command]) -> Any:
        return messages(
            session,
            [Command("SELECT 1 / 0") if faults.reach() else command for command in commands],
        )

    patch.setattr(Session, "_messages", replaced)
    return MessageLog.open(url)
