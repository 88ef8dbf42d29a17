"""Promise: what is prepared on a connection is what is used there, whatever fails meanwhile, and it
does not pile up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import psycopg
import pytest
from patience import PATIENCE_S

from langmem_ext.storage.operation import Rows
from langmem_ext.storage.postgres.wire.commands import Command
from langmem_ext.storage.postgres.wire.exchange import begin_session, exchange
from postgres.server import SHARED, Database

ONE = Command("SELECT CAST(%(n)s AS bigint) + 1", {"n": 1})
OTHER = Command("SELECT CAST(%(n)s AS bigint) + 2", {"n": 1})
FAILING = Command("SELECT 1 / CAST(%(n)s AS bigint)", {"n": 0})
LATER = Command("SELECT CAST(%(n)s AS bigint) + 3", {"n": 1})


@pytest.fixture
def connection(database: Database) -> Iterator[psycopg.Connection]:
    with psycopg.connect(database.url, autocommit=True, prepare_threshold=None) as connection:
        begin_session(connection, prepare=True)
        yield connection


def send(connection: psycopg.Connection, *commands: Command) -> Sequence[Rows]:
    return exchange(connection, commands, deadline=PATIENCE_S)


def prepared(connection: psycopg.Connection) -> int:
    [(count,)] = connection.execute("SELECT count(*) FROM pg_prepared_statements").fetchall()
    return int(count)


def test_what_comes_again_is_prepared_once_however_often_something_fails(
    connection: psycopg.Connection,
) -> None:
    for _ in range(20):
        assert send(connection, ONE, OTHER) == [[(2,)], [(3,)]]
        with pytest.raises(psycopg.errors.DivisionByZero):
            send(connection, ONE, FAILING, LATER)
    assert prepared(connection) == 3, "what comes after a failure was never prepared"
    for _ in range(3):
        assert send(connection, LATER, ONE) == [[(4,)], [(2,)]]
    assert prepared(connection) == 4


def test_in_a_transaction_that_fails_what_was_prepared_before_the_failure_stays_so(
    connection: psycopg.Connection,
) -> None:
    for _ in range(2):
        with pytest.raises(psycopg.errors.DivisionByZero):
            send(connection, Command("BEGIN"), ONE, FAILING, LATER)
        connection.rollback()
    assert prepared(connection) == 3
    for _ in range(3):
        assert send(connection, ONE, LATER) == [[(2,)], [(4,)]]


def test_a_table_that_has_become_another_is_read_on_the_same_connection(
    connection: psycopg.Connection, database: Database
) -> None:
    schema = SHARED.new_schema()
    read = Command(f"SELECT * FROM {schema}.kept WHERE n = %(n)s", {"n": 1})
    connection.execute(f"CREATE SCHEMA {schema}".encode())
    connection.execute(f"CREATE TABLE {schema}.kept AS SELECT CAST(1 AS bigint) AS n".encode())
    for _ in range(3):
        assert send(connection, read) == [[(1,)]]
    connection.execute(f"ALTER TABLE {schema}.kept ADD COLUMN more bigint".encode())
    with pytest.raises(psycopg.errors.FeatureNotSupported):
        send(connection, read)
    for _ in range(3):
        assert send(connection, read, ONE) == [[(1, None)], [(2,)]]


def test_where_what_was_prepared_is_not_there_it_is_prepared_again(
    connection: psycopg.Connection,
) -> None:
    for _ in range(3):
        send(connection, ONE)
    connection.execute("DEALLOCATE ALL")
    with pytest.raises(psycopg.errors.InvalidSqlStatementName):
        send(connection, ONE)
    for _ in range(3):
        assert send(connection, ONE, OTHER) == [[(2,)], [(3,)]]
    assert prepared(connection) == 2
