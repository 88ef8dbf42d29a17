"""Statements as they are sent to PostgreSQL, and such as fail, and with them their transaction, where the database is not as expected."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

from langmem_ext.storage.effects import Params, Row, Rows

LOCKING: Final = " FOR UPDATE"
"""How a statement ends that locks the rows that it returns."""

_RETURNS: Final = re.compile(r"\s*(SELECT|WITH)\b|.*\bRETURNING\b", re.DOTALL | re.IGNORECASE)
_THREADS: Final = re.compile(r'"\.thread\b')
_LOCK: Final = re.compile(rf"SELECT (.*?) FROM \S+ WHERE (.*){LOCKING}", re.DOTALL)


COMMAND_BYTES: Final = 1024
"""What a statement weighs beside its texts and bytes, about."""


class Command(NamedTuple):
    """A statement to be sent.

    Attributes:
        sql: As PostgreSQL and psycopg take it.
        params: Its parameters, by name.
        expected: Its rows, unless another process wrote meanwhile; None: whatever it returns.
    """

    sql: str
    params: Params | None = None
    expected: Rows | None = None

    def asked(self) -> Command:
        """The same, whatever it returns."""
        return self if self.expected is None else Command(self.sql, self.params)

    def condition(self) -> Command:
        """A command that fails unless this one returns what is expected."""
        if not self.expected:
            return Command(_condition(self.sql, 0), self.params, _HOLDS)
        [row] = self.expected
        return Command(_condition(self.sql, len(row)), {**(self.params or {}), **_values(row)}, _HOLDS)

    def weight(self) -> int:
        """What it takes to send it, in bytes, about."""
        return COMMAND_BYTES + sum([len(value) for value in (self.params or {}).values() if isinstance(value, str | bytes)])

    def closed_by(self, update: Command) -> Command:
        """An update of the row that this command locks, in its place, which fails unless the row is as expected."""
        [expected] = self.expected or ()
        sql = _conditional_update(self.sql, update.sql, len(expected))
        return Command(sql, {**(self.params or {}), **(update.params or {}), **_values(expected)}, _HOLDS)


BEGIN_WRITE: Final = Command("BEGIN ISOLATION LEVEL READ COMMITTED")
BEGIN_READ: Final = Command("BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY")
COMMIT: Final = Command("COMMIT")


def one_snapshot(commands: Iterable[Command]) -> list[Command]:
    """A transaction that reads."""
    return [BEGIN_READ, *commands, COMMIT]


def within(commands: Sequence[Command]) -> Sequence[Command]:
    """What a transaction reads, where commands are all of it; else nothing."""
    return commands[1:-1] if commands and commands[0] is BEGIN_READ and commands[-1] is COMMIT else ()


_HOLDS: Final[Rows] = [(1,)]
"""What a condition returns; a list, as the rows that come from a server are, so that both are compared at once."""


class Kind(NamedTuple):
    """What a statement's text tells of it.

    Attributes:
        names_thread: Whether it names a thread by its id.
        returns_rows: Whether it returns rows.
        only_reads: Whether it does no more than to read.
        locks: Whether it locks the rows that it returns.
        uses_threads: Whether it reads threads' rows, or changes them; not one that does no more than to lock them.
    """

    names_thread: bool
    returns_rows: bool
    only_reads: bool
    locks: bool
    uses_threads: bool


@lru_cache(maxsize=1024)
def kind_of(sql: str) -> Kind:
    """A statement's kind."""
    locks = sql.endswith(LOCKING)
    uses_threads = _THREADS.search(sql) is not None and not locks
    return Kind("%(id_number)s" in sql, _RETURNS.match(sql) is not None, sql.startswith("SELECT"), locks, uses_threads)


_NAMES: Final = tuple(f"is{at}" for at in range(64))
"""How the values that a row is expected to have are called, as parameters; more than any row has."""


def _values(row: Row) -> dict[str, object]:
    return dict(zip(_NAMES, row))  # noqa: B905 - there are more names than values


@lru_cache(maxsize=1024)
def _condition(sql: str, columns: int) -> str:
    if not columns:
        return f"WITH found AS ({sql}) SELECT 1 / (CASE WHEN count(*) = 0 THEN 1 ELSE 0 END) FROM found"
    names = ", ".join(f"c{at}" for at in range(columns))
    return f"WITH found ({names}) AS ({sql}) SELECT 1 / count(*)::int FROM found WHERE {_is(names, columns)}"


@lru_cache(maxsize=64)
def _conditional_update(lock: str, update: str, columns: int) -> str:
    match = _LOCK.fullmatch(lock)
    assert match is not None
    names, where = match.groups()
    return f"WITH found AS ({update} AND {where} AND {_is(names, columns)} RETURNING 1) SELECT 1 / count(*)::int FROM found"


def _is(names: str, columns: int) -> str:
    """Whether columns have the values that are expected."""
    values = ", ".join(f"%(is{at})s" for at in range(columns))
    return f"ROW({names}) IS NOT DISTINCT FROM ROW({values})"
