"""PgBouncer in transaction mode: what goes wrong behind it, so that tests of the driver have something to withstand, and what works."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from postgres.bouncer import Bouncer
from postgres.server import Database

SHOW = "SHOW statement_timeout"
OPTIONS = "-c statement_timeout=13s"


@pytest.fixture
def bouncer(database: Database) -> Iterator[Bouncer]:
    """One that has lent nothing yet: its first two clients share its first connection as long as neither is in a transaction."""
    with Bouncer(database.url) as made:
        yield made


def connected(bouncer: Bouncer, *, prepare_threshold: int | None = None) -> psycopg.Connection:
    return psycopg.connect(bouncer.url, autocommit=True, prepare_threshold=prepare_threshold)


def test_clients_share_connections(bouncer: Bouncer) -> None:
    with connected(bouncer) as one, connected(bouncer) as other:
        assert len({connection.execute("SELECT pg_backend_pid()").fetchone() for connection in (one, other)}) == 1
        with one.transaction():
            mine = one.execute("SELECT pg_backend_pid()").fetchone()
            assert other.execute("SELECT pg_backend_pid()").fetchone() != mine
            assert one.execute("SELECT pg_backend_pid()").fetchone() == mine


def test_a_prepared_statement_is_missed_on_another_connection(bouncer: Bouncer) -> None:
    with connected(bouncer, prepare_threshold=0) as one, connected(bouncer) as other:
        one.execute("SELECT %s::int", [1])
        with other.transaction():
            other.execute("SELECT 1")  # has the connection on which it was prepared
            with pytest.raises(psycopg.errors.InvalidSqlStatementName):
                one.execute("SELECT %s::int", [2])


def test_nothing_prepared_is_nothing_missed_also_in_pipelines(bouncer: Bouncer) -> None:
    with connected(bouncer) as one, connected(bouncer) as other:
        for number in range(10):
            with other.transaction(force_rollback=bool(number % 2)):
                other.execute("SELECT 1")
                with one.pipeline():
                    cursors = [one.execute("SELECT %s::int", [number + step]) for step in range(5)]
                assert [cursor.fetchone() for cursor in cursors] == [(number + step,) for step in range(5)]


def test_an_advisory_lock_of_a_session_keeps_nobody_out_and_one_of_a_transaction_does(bouncer: Bouncer) -> None:
    with connected(bouncer) as one, connected(bouncer) as other:
        assert one.execute("SELECT pg_try_advisory_lock(1)").fetchone() == (True,)
        assert other.execute("SELECT pg_try_advisory_lock(1)").fetchone() == (True,)
        with one.transaction():
            assert one.execute("SELECT pg_try_advisory_xact_lock(2)").fetchone() == (True,)
            assert other.execute("SELECT pg_try_advisory_xact_lock(2)").fetchone() == (False,)


def test_a_setting_reaches_other_clients_and_a_local_one_does_not(bouncer: Bouncer) -> None:
    with connected(bouncer) as one, connected(bouncer) as other:
        with one.transaction():
            one.execute("SET LOCAL statement_timeout = '11s'")
            assert one.execute(SHOW).fetchone() == ("11s",)
        assert other.execute(SHOW).fetchone() == ("0",)
        one.execute("SET statement_timeout = '12s'")
        assert other.execute(SHOW).fetchone() == ("12s",)


def test_who_listens_hears_nothing(bouncer: Bouncer, database: Database) -> None:
    with connected(bouncer) as through, psycopg.connect(database.url, autocommit=True) as direct:
        for connection in (through, direct):
            connection.execute("LISTEN news")
        direct.execute("NOTIFY news")
        assert [news.channel for news in direct.notifies(timeout=5, stop_after=1)] == ["news"]
        assert list(through.notifies(timeout=0.3)) == []


def test_options_of_a_connection_are_refused_or_followed(bouncer: Bouncer) -> None:
    if bouncer.version < (1, 20):
        with pytest.raises(psycopg.OperationalError, match="unsupported startup parameter: options"):
            psycopg.connect(bouncer.url, options=OPTIONS)
        return
    with psycopg.connect(bouncer.url, options=OPTIONS, autocommit=True) as connection:
        assert connection.execute(SHOW).fetchone() == ("13s",)
