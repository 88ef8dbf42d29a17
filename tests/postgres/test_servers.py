"""What these tests stand on: the proxy counts and cuts what it says, and servers and databases that
are made for a test go with it, also when its process is killed.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from patience import PATIENCE_S
from proxy import Proxy, ProxyApart

from postgres.missing import missing
from postgres.server import VARIABLE, Database, Shared


@pytest.fixture
def proxy(database: Database) -> Iterator[Proxy]:
    with Proxy(database.url) as made:
        yield made


def connected(proxy: Proxy | ProxyApart) -> psycopg.Connection:
    """A connection through the proxy that prepares nothing: each statement is what it says."""
    return psycopg.connect(proxy.url, autocommit=True, prepare_threshold=None)


def test_each_statement_is_a_trip_and_a_pipeline_one(proxy: Proxy) -> None:
    with connected(proxy) as connection:
        before = proxy.counts()
        for number in range(7):
            connection.execute("SELECT %s", [number])
        one_by_one = proxy.counts() - before
        with connection.pipeline():
            cursors = [connection.execute("SELECT %s", [number]) for number in range(7)]
        together = proxy.counts() - before - one_by_one
    assert [cursor.fetchall() for cursor in cursors] == [[(number,)] for number in range(7)]
    assert (one_by_one.trips, one_by_one.syncs, one_by_one.statements) == (7, 7, 7)
    assert (together.trips, together.syncs, together.statements) == (1, 1, 7)
    assert one_by_one.connections == 0


@pytest.mark.parametrize(("sent", "down"), [(0, False), (50_000, False), (0, True), (3, True)])
def test_what_is_cut_on_its_way_up_has_not_happened_and_on_its_way_down_it_has(
    proxy: Proxy, numbers: str, database: Database, sent: int, down: bool
) -> None:
    with connected(proxy) as connection:
        proxy.cut_after(sent, down=down)
        with pytest.raises(psycopg.OperationalError):
            connection.execute(f"INSERT INTO {numbers} VALUES (1, %s)".encode(), [b"x" * 100_000])
    with psycopg.connect(database.url, autocommit=True) as connection:
        until, found = time.monotonic() + PATIENCE_S, list[object]()
        while len(found) < down and time.monotonic() < until:
            found = connection.execute(f"SELECT n FROM {numbers}".encode()).fetchall()
    assert found == [(1,)] * down


MAKES_ONE = """
import sys, time
from postgres.cluster import Cluster
cluster = Cluster()
print(cluster.folder, cluster.url, flush=True)
time.sleep(600)
"""


def test_nothing_is_left_when_the_process_that_made_a_server_is_killed() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-c", MAKES_ONE], stdout=subprocess.PIPE, text=True, env=environment
    ) as maker:
        assert maker.stdout is not None
        place, url = maker.stdout.readline().split()
        assert Path(place).exists()
        psycopg.connect(url).close()
        maker.send_signal(signal.SIGKILL)
        maker.wait(PATIENCE_S)
        # Its guardian has the same output: it ends when the guardian does.
        assert maker.stdout.read() == ""
    assert not Path(place).exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=5)


def names(url: str, column: str, table: str) -> set[str]:
    with psycopg.connect(url, autocommit=True) as connection:
        return {name for (name,) in connection.execute(f"SELECT {column} FROM {table}".encode())}


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
        there = names(database.server, "datname", "pg_database")
        assert killed.name not in there
        assert {following.name, database.name} <= there
    finally:
        following.close()
        killed.close()


def test_what_is_missing_skips_a_test_and_fails_it_on_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "postgresql://postgres@127.0.0.1:1/postgres")
    monkeypatch.setenv("CI", "")
    with pytest.raises(pytest.skip.Exception, match=f"no PostgreSQL server where {VARIABLE} says"):
        Shared().database()
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="may not be skipped"):
        missing("a server")
