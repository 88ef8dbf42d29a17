"""Clusters of a test's own: what stopping, killing and failing over keep, and that nothing of them
stays behind.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest
from patience import PATIENCE_S

from postgres.cluster import Cluster
from postgres.guardian import processes_in

ENDS: dict[str, Callable[[Cluster], None]] = {
    "fast": lambda cluster: cluster.stop("fast"),
    "immediate": lambda cluster: cluster.stop("immediate"),
    "killed": Cluster.kill,
}


@pytest.mark.parametrize("end", ENDS)
def test_what_was_committed_is_there_when_a_server_has_come_back(
    cluster: Cluster, end: str
) -> None:
    cluster.execute(f"CREATE TABLE kept_{end} (n INTEGER)")
    with psycopg.connect(cluster.url) as open_session:
        open_session.execute(f"INSERT INTO kept_{end} VALUES (1)".encode())
        open_session.commit()
        open_session.execute(f"INSERT INTO kept_{end} VALUES (2)".encode())
        ENDS[end](cluster)
        with pytest.raises(psycopg.OperationalError):
            open_session.execute("SELECT 1")
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(cluster.url, connect_timeout=5)
        cluster.start()
    assert cluster.execute(f"SELECT n FROM kept_{end}") == [(1,)]


def test_a_server_comes_back_where_it_was(cluster: Cluster) -> None:
    url, started = cluster.url, cluster.execute("SELECT pg_postmaster_start_time()")
    cluster.restart("immediate")
    assert cluster.url == url
    assert cluster.execute("SELECT pg_postmaster_start_time()") > started


def test_a_promoted_standby_has_all_that_the_primary_acknowledged() -> None:
    with Cluster() as primary, primary.standby() as standby:
        primary.execute("CREATE TABLE kept (n INTEGER)")
        with psycopg.connect(primary.url, autocommit=True) as connection:
            for number in range(50):
                connection.execute("INSERT INTO kept VALUES (%s)", [number])
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            standby.execute("INSERT INTO kept VALUES (50)")
        primary.kill()
        standby.promote()
        standby.execute("INSERT INTO kept VALUES (50)")
        assert standby.execute("SELECT count(*), max(n) FROM kept") == [(51, 50)]


def test_settings_are_the_servers() -> None:
    with Cluster(settings={"max_connections": "17"}) as cluster:
        assert cluster.execute("SHOW max_connections") == [("17",)]


@pytest.mark.parametrize("end", ["running", *ENDS])
def test_nothing_is_left_of_a_cluster(end: str) -> None:
    with Cluster() as cluster:
        folder = cluster.folder
        if end != "running":
            ENDS[end](cluster)
        state = folder / "data" / "postmaster.pid"
        segment = state.read_text().splitlines()[6].split()[1] if state.exists() else None
    assert not folder.exists()
    assert list(processes_in(folder)) == []
    assert segment not in shared_memory()
    assert (segment is None) == (end in ("fast", "immediate"))


def shared_memory() -> set[str]:
    """The System V segments of this machine; none are known where there is no such list."""
    listed = Path("/proc/sysvipc/shm")
    return (
        {line.split()[1] for line in listed.read_text().splitlines()[1:]}
        if listed.exists()
        else set()
    )


MAKES_ONE = """
import sys, time
from postgres.cluster import Cluster
cluster = Cluster()
print(cluster.folder, cluster.url, flush=True)
time.sleep(600)
"""


def test_nothing_is_left_when_the_process_that_made_it_is_killed() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with subprocess.Popen(
        [sys.executable, "-c", MAKES_ONE], stdout=subprocess.PIPE, text=True, env=environment
    ) as maker:
        assert maker.stdout is not None
        place, url = maker.stdout.readline().split()
        folder = Path(place)
        assert folder.exists()
        psycopg.connect(url).close()
        maker.send_signal(signal.SIGKILL)
        maker.wait(PATIENCE_S)
        # Its guardian has the same output: it ends when the guardian does.
        assert maker.stdout.read() == ""
    assert not folder.exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(url, connect_timeout=5)


def test_servers_do_not_run_as_root(cluster: Cluster) -> None:
    accounts = {process.uids().real for process in processes_in(cluster.folder)}
    assert accounts
    assert 0 not in accounts
