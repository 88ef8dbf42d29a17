"""The checkpointers that are compared, each opened on a folder of its own."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from proxy import with_database

from langmem_ext import DeltaSaver

Synchronous = Literal["full", "normal"]


@dataclass(frozen=True)
class Opened:
    """A checkpointer that is ready.

    Attributes:
        saver: What a graph is compiled with; None for none.
        size: Gives its database's size in bytes; None where it has no database.
        delta_channel: Whether the graph's messages are to be a `DeltaChannel`.
    """

    saver: Any
    size: Callable[[], int] | None = None
    delta_channel: bool = False

    def bytes(self) -> int:
        """The database's size with everything committed; 0 if there is no database."""
        return self.size() if self.size else 0


def sqlite_size(file: Path) -> int:
    """Bytes of an SQLite database whose write-ahead log has been worked off."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return sum(
        path.stat().st_size
        for path in file.parent.glob(f"{file.name}*")
        if not path.name.endswith("-shm")
    )


Open = Callable[[Path], AbstractContextManager[Opened]]


@contextmanager
def _none(folder: Path) -> Iterator[Opened]:
    yield Opened(None)


@contextmanager
def _memory(folder: Path) -> Iterator[Opened]:
    yield Opened(InMemorySaver())


def _delta(synchronous: Synchronous, *, compress: bool = False) -> Open:
    @contextmanager
    def opening(folder: Path) -> Iterator[Opened]:
        file = folder / "delta.db"
        with closing(
            DeltaSaver.open(str(file), synchronous=synchronous, compress=compress)
        ) as saver:
            yield Opened(saver, partial(sqlite_size, file))

    return opening


def _sqlite(synchronous: Synchronous, *, delta_channel: bool = False) -> Open:
    @contextmanager
    def opening(folder: Path) -> Iterator[Opened]:
        file = folder / "sqlite.db"
        with closing(sqlite3.connect(file, check_same_thread=False)) as connection:
            connection.execute(f"PRAGMA synchronous = {synchronous.upper()}")
            saver = SqliteSaver(connection)
            saver.setup()
            yield Opened(saver, partial(sqlite_size, file), delta_channel)

    return opening


POSTGRES = "BENCHMARK_POSTGRES"
"""The environment's name for the URL of a PostgreSQL server on which databases may be made and
dropped."""


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """The URL of a database on a PostgreSQL server, which is dropped afterwards."""
    url = with_database(server, f"benchmark_{uuid4().hex}")
    name = url.rpartition("/")[2].partition("?")[0]
    with import_module("psycopg").connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        try:
            yield url
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def _postgres(folder: Path) -> Iterator[Opened]:
    psycopg, postgres = import_module("psycopg"), import_module("langgraph.checkpoint.postgres")
    with (
        new_database(os.environ[POSTGRES]) as url,
        psycopg.connect(url, autocommit=True) as looking,
        postgres.PostgresSaver.from_conn_string(url) as saver,
    ):
        saver.setup()
        yield Opened(saver, lambda: int(looking.execute(POSTGRES_SIZE).fetchone()[0]))


POSTGRES_SIZE = "SELECT sum(pg_total_relation_size(relid)) FROM pg_stat_user_tables"

CONTENDERS: dict[str, Open] = {
    "none": _none,
    "memory": _memory,
    "sqlite": _sqlite("normal"),
    "sqlite-full": _sqlite("full"),
    "deltachannel": _sqlite("normal", delta_channel=True),
    "delta": _delta("normal"),
    "delta-full": _delta("full"),
    "delta-zstd": _delta("normal", compress=True),
}
"""By name. Without a suffix `synchronous=NORMAL`, which commits cheaper: so differences are seen
better."""

if os.environ.get(POSTGRES) and find_spec("psycopg") and find_spec("langgraph.checkpoint.postgres"):
    CONTENDERS["postgres"] = _postgres

TITLES = {
    "none": "no saver",
    "memory": "InMemorySaver",
    "sqlite": "SqliteSaver",
    "sqlite-full": "SqliteSaver FULL",
    "deltachannel": "DeltaChannel + SqliteSaver",
    "postgres": "PostgresSaver (client's CPU)",
    "delta": "DeltaSaver",
    "delta-full": "DeltaSaver FULL",
    "delta-zstd": "DeltaSaver, compressed",
}
