"""The shared server: what a run makes there goes with it, what a killed run has left goes with the
next.
"""

from __future__ import annotations

import psycopg
import pytest
from langgraph.checkpoint.base import empty_checkpoint

from langmem_ext import DeltaSaver, Threads
from postgres.missing import missing
from postgres.server import SHARED, VARIABLE, Database, Shared


def databases(server: str) -> set[str]:
    with psycopg.connect(server, autocommit=True) as connection:
        return {name for (name,) in connection.execute("SELECT datname FROM pg_database")}


def schemas(url: str) -> set[str]:
    with psycopg.connect(url, autocommit=True) as connection:
        return {name for (name,) in connection.execute("SELECT nspname FROM pg_namespace")}


def test_a_database_comes_and_goes(database: Database) -> None:
    made = Database(database.server)
    assert {made.name, database.name} <= databases(database.server)
    made.close()
    assert made.name not in databases(database.server)
    assert database.name in databases(database.server)


def test_what_a_killed_run_has_left_goes_with_the_next_and_what_another_one_uses_stays(
    database: Database,
) -> None:
    killed = Database(database.server)
    with psycopg.connect(database.server, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = %s",
            [killed.name],
        )
    following = Database(database.server)
    try:
        assert killed.name not in databases(database.server)
        assert {following.name, database.name} <= databases(database.server)
    finally:
        following.close()
        killed.close()


def test_a_database_goes_though_somebody_is_connected(database: Database) -> None:
    made = Database(database.server)
    with psycopg.connect(made.url, autocommit=True) as left_open:
        made.close()
        with pytest.raises(psycopg.OperationalError):
            left_open.execute("SELECT 1")
    assert made.name not in databases(database.server)


def test_a_schema_goes_with_its_test(database: Database) -> None:
    with SHARED.own_schemas():
        schema = SHARED.new_schema()
        with psycopg.connect(database.url, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {schema}".encode())
            connection.execute(f"CREATE TABLE {schema}.kept (n INTEGER)".encode())
        assert schema in schemas(database.url)
    assert schema not in schemas(database.url)


def threads(url: str) -> list[str]:
    with DeltaSaver.open(url) as saver:
        return [thread.id for thread in Threads(saver).list()]


def write(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        saver.put(
            {"configurable": {"thread_id": "a", "checkpoint_ns": ""}}, empty_checkpoint(), {}, {}
        )
        assert Threads(saver).search("word") == []


def test_tables_are_emptied_for_the_next_test_and_are_then_as_new(database: Database) -> None:
    made = Database(database.server)  # nobody else is connected to it
    try:
        schema = made.emptied.take()
        new = made.emptied.state(schema)
        write(f"{made.url}?schema={schema}")
        assert threads(f"{made.url}?schema={schema}") == ["a"]
        assert made.emptied.state(schema) != new
        assert made.emptied.give_back(schema)
        assert made.emptied.take() == schema
        assert threads(f"{made.url}?schema={schema}") == []
        assert made.emptied.state(schema) == new
    finally:
        made.close()


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE {}.word",
        "ALTER TABLE {}.item ALTER COLUMN crc DROP NOT NULL",
        "ALTER TABLE {}.item ADD COLUMN more INTEGER",
        "CREATE INDEX more ON {}.item (crc)",
        "CREATE TABLE {}.more (n INTEGER)",
        (
            "CREATE OR REPLACE FUNCTION {}.label(body bytea, name text) RETURNS jsonb LANGUAGE sql"
            " AS 'SELECT NULL::jsonb'"
        ),
        "GRANT SELECT ON {}.item TO PUBLIC",
        "GRANT USAGE ON SCHEMA {} TO PUBLIC",
        "ALTER TABLE {}.thread ENABLE ROW LEVEL SECURITY",
        "INSERT INTO {}.langmem_migration VALUES ('more', 0)",
        "UPDATE {}.setting SET value = 'other'",
        "DROP SCHEMA {} CASCADE",
    ],
)
def test_tables_that_a_test_has_changed_are_no_other_tests(database: Database, change: str) -> None:
    with SHARED.own_schemas():
        schema = SHARED.tables()
        with psycopg.connect(database.url, autocommit=True) as connection:
            connection.execute(change.format(schema).encode())
    assert schema not in schemas(database.url)


def test_tables_that_somebody_still_uses_are_no_other_tests(database: Database) -> None:
    with psycopg.connect(database.url, autocommit=True):
        with SHARED.own_schemas():
            schema = SHARED.tables()
        assert schema not in schemas(database.url)
        with SHARED.own_schemas():
            following = SHARED.tables()
        assert following in schemas(database.url)  # who was there before has nothing to do with it


def test_what_is_missing_skips_a_test_and_fails_it_on_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "postgresql://postgres@127.0.0.1:1/postgres")
    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception, match=f"no PostgreSQL server where {VARIABLE} says"):
        Shared().database()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="may not be skipped"):
        missing("a server")


def test_without_a_server_anywhere_one_is_made_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr("postgres.server.DEFAULT", "postgresql://postgres@127.0.0.1:1/postgres")
    shared = Shared()
    url = shared.database().url
    assert url.split("/")[-1] in databases(url)
    shared.close()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=5)
