"""The statements a database is asked during a test, and their rows, on both databases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from langmem_ext.storage.operation import Batch, Operation, Rows, Statement, Together
from langmem_ext.storage.postgres.wire.commands import Command
from langmem_ext.storage.postgres.wire.exchange import Session
from langmem_ext.storage.sqlite.driver import SqliteDriver

_FRAME = ("BEGIN", "COMMIT", "SET ")


@dataclass
class Asked:
    """What was asked since `clear`.

    Attributes:
        statements: Those of operations, without what begins and ends a transaction; on PostgreSQL
            as they are sent.
        given: Rows that came back.
        most: Those of one statement.
    """

    statements: list[Statement | Batch | Command] = field(default_factory=list)
    given: int = 0
    most: int = 0

    def receive(self, rows: Rows) -> Rows:
        """Count the rows of a statement."""
        self.given += len(rows)
        self.most = max(self.most, len(rows))
        return rows

    def clear(self) -> None:
        """Count anew."""
        self.statements.clear()
        self.given = self.most = 0


def watch(patch: pytest.MonkeyPatch) -> Asked:
    """Look at every database from now on."""
    asked = Asked()
    drive, messages, rows = SqliteDriver._drive, Session._messages, Session._rows

    def driven(driver: SqliteDriver, op: Any, *begin: Any) -> Any:
        return drive(driver, Operation(watched, op), *begin)

    def watched(op: Any) -> Any:
        steps, answer = op(), None
        while True:
            try:
                effect = steps.send(answer)
            except StopIteration as done:
                return done.value
            for one in _asked_by(effect):
                asked.statements.append(one)
            answer = yield effect
            for found in answer if isinstance(effect, Together) else (answer,):
                asked.receive(found or ())

    def sent(session: Session, commands: Sequence[Command]) -> Any:
        asked.statements.extend(
            command for command in commands if not command.sql.startswith(_FRAME)
        )
        return messages(session, commands)

    def received(session: Session, result: Any) -> Rows:
        return asked.receive(rows(session, result))

    patch.setattr(SqliteDriver, "_drive", driven)
    patch.setattr(Session, "_messages", sent)
    patch.setattr(Session, "_rows", received)
    return asked


def _asked_by(effect: Any) -> list[Statement | Batch | Command]:
    several = effect.statements if isinstance(effect, Together) else (effect,)
    return [
        Command(*one[:2]) if isinstance(one, tuple) else one
        for one in several
        if isinstance(one, Statement | Batch | tuple)
    ]
