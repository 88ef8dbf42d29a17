"""What a storage operation may ask its runner for.

An operation is a generator: it yields effects, receives rows, and returns its result. It holds no connection, lock or clock, so one
implementation serves SQLite and PostgreSQL, sync and async, and a test can break it at every statement. One operation is one transaction,
which the runner owns.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

T = TypeVar("T")

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = Sequence[Row]
Params: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement with named parameters; the operation receives its rows."""

    sql: str
    params: Params


@dataclass(frozen=True, slots=True)
class Batch:
    """One SQL statement for each of several sets of parameters; the operation receives no rows."""

    sql: str
    params: Sequence[Params]


@dataclass(frozen=True, slots=True)
class Pause:
    """A place in long work where another thread or task may run; the operation receives no rows."""


PAUSE: Final = Pause()
PAUSE_EVERY: Final = 64
"""Decoded rows between two pauses."""

Effect: TypeAlias = Statement | Batch | Pause
Op: TypeAlias = Generator[Effect, Rows, T]


def fetch(sql: str, **params: Any) -> Op[Rows]:
    """Run one statement; its rows."""
    return (yield Statement(sql, params))


def fetch_one(sql: str, **params: Any) -> Op[Row | None]:
    """Run one statement; its first row, if it has one."""
    rows = yield Statement(sql, params)
    return rows[0] if rows else None
