"""Statements as they are sent to PostgreSQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from langmem_ext.storage.operation import Params

_RETURNS: Final = re.compile(r"\s*(SELECT|WITH)\b|.*\bRETURNING\b", re.DOTALL | re.IGNORECASE)

COMMAND_BYTES: Final = 1024
"""About how many bytes a statement takes beyond its texts and bytes."""


class Command(NamedTuple):
    """A statement to be sent.

    Attributes:
        sql: As PostgreSQL takes it, with numbered parameters, or as psycopg does, with named ones.
        params: Its parameters, in order or by name.
    """

    sql: str
    params: Params | tuple[Any, ...] | None = None

    def weight(self) -> int:
        """About how many bytes are sent for it."""
        values = (
            (self.params or ()) if not isinstance(self.params, Mapping) else self.params.values()
        )
        return COMMAND_BYTES + sum(
            [len(value) for value in values if isinstance(value, str | bytes)]
        )


BEGIN_WRITE: Final = Command("BEGIN ISOLATION LEVEL READ COMMITTED")
BEGIN_READ: Final = Command("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
COMMIT: Final = Command("COMMIT")


def one_snapshot(commands: Iterable[Command]) -> list[Command]:
    """A transaction that reads."""
    return [BEGIN_READ, *commands, COMMIT]


class Kind(NamedTuple):
    """What the text of a statement with named parameters shows.

    Attributes:
        names_thread: Whether it names a thread by its id.
        returns_rows: Whether it returns rows.
    """

    names_thread: bool
    returns_rows: bool


@lru_cache(maxsize=1024)
def kind_of(sql: str) -> Kind:
    """A statement's kind."""
    return Kind("%(id_number)s" in sql, _RETURNS.match(sql) is not None)


@lru_cache(maxsize=1024)
def exactly_one(sql: str) -> str:
    """A statement that fails, with its transaction, unless it changes one row.

    See `storage.operation.ONE`.
    """
    return f"WITH done AS ({sql} RETURNING 1) SELECT 1 / count(*)::int FROM done"
