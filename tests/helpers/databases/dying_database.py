"""A database whose process dies at a chosen step, to kill writes, prunes, imports and turns."""

from __future__ import annotations

import os
import signal
from collections.abc import Generator
from typing import Any

from failing_database import WatchedCursor

from langmem_ext import MessageLog
from langmem_ext.storage.operation import Rows
from langmem_ext.storage.postgres.wire import exchange
from langmem_ext.storage.sqlite.driver import SqliteDriver


class Steps:
    """Counts the steps of a database, and kills the process at one of them.

    Args:
        dies_at: Which; None: it lives.
    """

    def __init__(self, dies_at: int | None = None) -> None:
        self.dies_at = dies_at
        self.count = 0

    def take(self) -> None:
        """Come to the next step."""
        if self.count == self.dies_at:
            os.kill(os.getpid(), signal.SIGKILL)
        self.count += 1


class DyingDriver(SqliteDriver):
    """Kills its process at one of its steps: before a statement, before a COMMIT, or after it."""

    def __init__(self, path: str, steps: Steps | None = None, **options: Any) -> None:
        super().__init__(path, **options)
        self._steps = steps or Steps()
        take = self._steps.take
        self._cursor = WatchedCursor(self._cursor, take, take)  # type: ignore[assignment]  # as the driver uses it


def dying_log(url: str, steps: Steps, **options: Any) -> MessageLog:
    """A database that kills this process at one of its steps; on PostgreSQL, all opened later.

    There the steps are those of each trip: before anything is sent, when all is sent but no answer
    is read, and when all are. Each is one that comes after the database was opened.
    """
    if not url.startswith("postgresql:"):
        return MessageLog(DyingDriver(url, steps, **options))
    log = MessageLog.open(url)
    talk, send = exchange.Session.talk, exchange.send  # type: ignore[attr-defined]  # psycopg's

    def talk_in_steps(*arguments: Any) -> Generator[Any, Any, list[Rows]]:
        steps.take()
        found: list[Rows] = yield from talk(*arguments)
        steps.take()
        return found

    def send_in_steps(connection: Any) -> Generator[Any, Any, None]:
        yield from send(connection)
        steps.take()

    exchange.Session.talk, exchange.send = talk_in_steps, send_in_steps  # type: ignore[method-assign,attr-defined]
    return log
