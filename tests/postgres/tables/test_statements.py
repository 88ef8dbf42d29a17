"""PostgreSQL takes the tables, and every statement that the package makes for it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import psycopg
import pytest
from all_statements import SQLITE_ALONE, statements

from langmem_ext.storage.schema.dialect import Dialect, postgres
from langmem_ext.storage.schema.migrations import MIGRATIONS
from langmem_ext.storage.schema.postgres import CREATE_SCHEMA, MIGRATION_TABLE
from langmem_ext.storage.search.sql import CREATE
from postgres.server import SHARED, Database


@pytest.fixture
def tables(database: Database) -> Iterator[tuple[psycopg.Connection, Dialect]]:
    """A connection, and the dialect of a schema that has the tables."""
    dialect = postgres(SHARED.new_schema())
    with psycopg.connect(database.url, autocommit=True) as connection:
        with connection.transaction():
            for statement in (
                CREATE_SCHEMA,
                MIGRATION_TABLE,
                *(one for migration in MIGRATIONS for one in migration.postgres),
                *CREATE,
            ):
                connection.execute(dialect.render(statement).encode(), {})
        yield connection, dialect


def test_postgres_prepares_every_statement(tables: tuple[psycopg.Connection, Dialect]) -> None:
    connection, dialect = tables
    refused = {}
    asked = {name: text for name, text in statements() if not SQLITE_ALONE.search(text)}
    for name, text in asked.items():
        rendered = dialect.render(text)
        for at, parameter in enumerate(
            dict.fromkeys(re.findall(r"%\((\w+)\)s", rendered)), start=1
        ):
            rendered = rendered.replace(f"%({parameter})s", f"${at}")
        try:
            connection.execute(f"PREPARE stated AS {rendered.replace('%%', '%')}".encode())
            connection.execute("DEALLOCATE stated")
        except psycopg.Error as error:
            refused[name] = str(error)
    assert refused == {}
    assert len(asked) > 200


LABELS = {
    b'{"run_id":"r1","n":1,"f":1.5,"t":true,"z":null}': ("r1", 1, 1.5, 1, None),
    b'{"run_id":"a\\u0000b","n":"1","f":"\\ud83d","t":false}': ("a?b", "1", "?", 0, None),
    # Behind a backslash that stands for itself no escape begins, and two halves are a character.
    b'{"run_id":"\\\\u0000 \\\\\\ude00","n":2,"f":"\\ud83d\\ude00",'
    b'"t":"\\ude00\\ud83d\\ud83d\\ude00"}': (
        "\\u0000 \\?",
        2,
        "😀",
        "??😀",
        None,
    ),
    b'["run_id"]': (None,) * 5,
    b'{"run_id":': (None,) * 5,
    b'{"run_id":"\xff"}': (None,) * 5,
    b"": (None,) * 5,
    b"\xc1\x00": (None,) * 5,
}


@pytest.mark.parametrize("body", LABELS, ids=repr)
def test_a_label_gives_its_scalars_and_every_other_word_none(
    body: bytes, tables: tuple[psycopg.Connection, Dialect]
) -> None:
    connection, dialect = tables
    columns = ", ".join(f"[schema].label(%s, '{name}')" for name in ("run_id", "n", "f", "t", "z"))
    rows = connection.execute(
        f"SELECT {columns}".replace("[schema]", dialect.render("[schema]")).encode(), [body] * 5
    ).fetchall()
    assert rows == [LABELS[body]]
