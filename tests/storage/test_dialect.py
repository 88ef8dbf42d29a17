"""Every statement is one text for both databases: dialects fill in markers; SQLite accepts it."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from all_statements import SQLITE_ALONE, statements

from langmem_ext.errors import InvalidInput
from langmem_ext.storage.rows.ids import thread_number
from langmem_ext.storage.schema import dialect, search_dialect
from langmem_ext.storage.schema.dialect import POSTGRES, SQLITE, bytes_of, label, postgres
from langmem_ext.storage.schema.migrations import MIGRATIONS
from langmem_ext.storage.search.sql import CREATE

STATEMENTS = dict(statements())
TEXT = re.compile(r"'(?:[^']|'')*'")
"""A text in SQL."""


@pytest.fixture(scope="module")
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(":memory:")) as opened:
        for statement in (*(one for migration in MIGRATIONS for one in migration.sqlite), *CREATE):
            opened.execute(SQLITE.render(statement))
        yield opened


def test_no_marker_is_left_and_no_text_holds_a_parameter() -> None:
    assert len(STATEMENTS) > 200
    for name, statement in STATEMENTS.items():
        for one in (SQLITE, POSTGRES):
            rendered = one.render(statement)
            assert "[" not in rendered, (name, rendered)
            assert not any(re.search(r":[a-z_]", text) for text in TEXT.findall(rendered)), (
                name,
                rendered,
            )
        assert not re.search(r"(?<!:):[a-z_]", POSTGRES.render(statement)), name


def test_sqlite_takes_every_statement(connection: sqlite3.Connection) -> None:
    for name, statement in STATEMENTS.items():
        rendered = SQLITE.render(statement)
        # Not every SQLite has dbstat.
        if SQLITE_ALONE.search(statement) or rendered.startswith("PRAGMA") or "dbstat" in rendered:
            continue
        named = dict.fromkeys(re.findall(r":([a-z_]\w*)", rendered))
        numbers = [int(number) for number in re.findall(r"\?(\d+)", rendered)]
        assert not (named and numbers), name
        parameters = [None] * max(numbers) if numbers else named
        try:
            connection.execute(f"EXPLAIN {rendered}", parameters)
        except sqlite3.Error as error:
            raise AssertionError(f"{name}: {rendered}") from error


def test_each_dialect_knows_every_marker() -> None:
    known = vars(dialect) | vars(search_dialect)
    markers = {
        value
        for name, value in known.items()
        if name.isupper() and isinstance(value, str) and value.startswith("[")
    }
    for marker in {*markers, label(0), dialect.scalar(0), bytes_of("text")} - {
        dialect.SCHEMA,
        dialect.BY_THREAD,
        dialect.BY_NUMBER,
    }:
        assert "[" not in SQLITE.render(marker) + POSTGRES.render(marker)


def test_an_unknown_marker_is_an_error() -> None:
    with pytest.raises(KeyError, match="no such"):
        SQLITE.render("SELECT [no such]")


def test_postgres_names_the_schema_and_takes_parameters_by_name() -> None:
    rendered = postgres("mine").render(
        f"UPDATE thread SET title = :title FROM (SELECT 7 % 4 AS x) AS one WHERE {dialect.OF_ID}"
    )
    assert (
        rendered
        == 'UPDATE "mine".thread SET title = %(title)s FROM (SELECT 7 %% 4 AS x) AS one WHERE'
        " number = %(id_number)s AND id = %(id)s"
    )
    rendered = POSTGRES.render(
        "INSERT INTO setting (value) VALUES (:value::text) ON CONFLICT (name) DO UPDATE SET value ="
        " excluded.value"
    )
    assert (
        rendered
        == 'INSERT INTO "langmem_ext".setting (value) VALUES (%(value)s::text) ON CONFLICT (name)'
        " DO UPDATE SET value = excluded.value"
    )
    assert (
        postgres("mine").render("UPDATE thread SET tool = ?2 WHERE number = ?1")
        == 'UPDATE "mine".thread SET tool = $2 WHERE number = $1'
    )


@pytest.mark.parametrize("schema", ["", "Mine", "my schema", 'a"b', "1st", "a" * 64])
def test_a_schemas_name_is_plain(schema: str) -> None:
    with pytest.raises(InvalidInput, match="schema"):
        postgres(schema)


def test_a_threads_number_follows_from_its_id_and_fits_into_eight_bytes() -> None:
    assert thread_number("t") == thread_number("t") != thread_number("u")
    numbers = [thread_number(f"thread {at}") for at in range(1000)]
    assert len(set(numbers)) == len(numbers)
    assert all(0 <= number < 1 << 63 for number in numbers)
    assert max(numbers) > 1 << 62
