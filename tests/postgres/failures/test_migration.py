"""Promise: a database of a newer release is refused and left as it is, and a migration that fails
leaves nothing behind.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from savers import empty_tables

from langmem_ext import (
    DeltaSaver,
    SchemaTooNew,
    StorageError,
    ThreadChatMessageHistory,
    Threads,
    examine,
    stats,
)
from langmem_ext.storage.postgres import migrate as migration
from langmem_ext.storage.postgres.vacuum import TABLES
from langmem_ext.storage.schema.migrations import Migration
from postgres.server import SHARED, Database

FUTURE = "m999_from_the_future"
WAYS: dict[str, Callable[[str], object]] = {
    "a saver": DeltaSaver.open,
    "threads": Threads,
    "the doctor": examine,
    "statistics": stats,
}


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A database with a thread in it."""
    url = empty_tables(tmp_path)
    say(url)
    return url


def say(url: str) -> int:
    """Add a message; how many there are."""
    with DeltaSaver.open(url) as saver:
        history = ThreadChatMessageHistory("t", saver)
        history.add_messages([HumanMessage("hello")])
        return len(history.messages)


def everything(url: str) -> list[Any]:
    """All rows, and what the tables are."""
    place, _, schema = url.partition("?schema=")
    with psycopg.connect(place, autocommit=True) as connection:
        rows = [
            connection.execute(
                f"SELECT CAST({one} AS text) FROM {schema}.{one} ORDER BY 1".encode()
            ).fetchall()
            for one in TABLES
        ]
    return [SHARED.database().emptied.state(schema), *rows]


@pytest.mark.parametrize("mode", ["rwc", "rw", "ro"])
@pytest.mark.parametrize("way", WAYS)
def test_a_newer_database_is_refused_and_left_as_it_is(
    way: str, mode: str, url: str, database: Database
) -> None:
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(
            f"INSERT INTO {url.partition('=')[2]}.langmem_migration VALUES ('{FUTURE}', 0)".encode()
        )
    before = everything(url)
    with pytest.raises(SchemaTooNew, match=f"{FUTURE}.*upgrade"):
        WAYS[way](f"{url}&mode={mode}")
    assert everything(url) == before


def test_a_migration_that_fails_leaves_nothing_and_the_next_one_works(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = everything(url)
    steps = (
        "ALTER TABLE thread ADD COLUMN more TEXT",
        "UPDATE item SET text = 'other'",
        "ALTER TABLE item ADD COLUMN more NONSENSE",
    )
    for number in range(1, len(steps) + 1):
        failing = Migration(FUTURE, (), (*steps[:number], "SELECT 1 / 0"))
        monkeypatch.setattr(migration, "MIGRATIONS", (*migration.MIGRATIONS, failing))
        with pytest.raises(StorageError):
            DeltaSaver.open(url)
        assert everything(url) == before, f"step {number} left something behind"
        monkeypatch.undo()
    assert say(url) == 2
    monkeypatch.setattr(
        migration, "MIGRATIONS", (*migration.MIGRATIONS, Migration(FUTURE, (), steps[:1]))
    )
    assert say(url) == 3
    monkeypatch.undo()
    with pytest.raises(SchemaTooNew):
        DeltaSaver.open(url)
