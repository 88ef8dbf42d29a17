"""A database that tests begin with, again and again: kept as it was made, and copied for each."""

from __future__ import annotations

import shutil
from pathlib import Path

import psycopg
from patience import until
from postgres.server import SHARED
from savers import Backend

from langmem_ext import DeltaSaver, Threads
from langmem_ext.storage.postgres.vacuum import TABLES


class Original:
    """A database on SQLite or PostgreSQL that stays as it is.

    Args:
        durable: Which of both.
        folder: Where its file is, and its copies' in folders of it.
        indexed: Whether its copies have a search index.

    Attributes:
        url: Of it.
    """

    def __init__(self, durable: Backend, folder: Path, *, indexed: bool = False) -> None:
        self.url = durable.new_url(folder)
        self.indexed = indexed
        self._durable = durable

    def copy(self, folder: Path) -> str:
        """A copy; on SQLite the only file in the folder."""
        if self._durable.name == "file":
            for old in folder.iterdir():
                old.unlink()
            return str(shutil.copy(self.url, folder / "memory.db"))
        copy = self._durable.new_url(folder)
        (place, _, source), target = self.url.partition("?schema="), copy.partition("?schema=")[2]
        with psycopg.connect(place, autocommit=True) as connection:
            connection.execute("SET session_replication_role = replica")  # in any order of tables
            for table in TABLES:
                connection.execute(
                    f"INSERT INTO {target}.{table} SELECT * FROM {source}.{table}".encode()
                )
        if self.indexed:
            with DeltaSaver.open(copy) as saver:
                Threads(saver).enable_search()
        return copy


class Sessions:
    """The connections to this process's database on PostgreSQL; a killed client's ends later."""

    def __init__(self, durable: Backend) -> None:
        self._database = SHARED.database() if durable.name == "postgres" else None
        self._before = self._open()

    def _open(self) -> set[tuple[object, ...]]:
        return self._database.emptied.sessions() if self._database is not None else set()

    def wait(self) -> None:
        """Wait until those have ended that have come since."""
        until(lambda: not self._open() - self._before, "a killed client's session goes on")
