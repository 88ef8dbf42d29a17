"""PostgreSQL servers that a test makes, stops, kills, doubles and removes."""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Literal

import psycopg
from patience import PATIENCE_S

from postgres.guardian import wait_until_empty
from postgres.missing import find
from postgres.sandbox import Sandbox, free_port

StopMode = Literal["fast", "immediate"]

SETTINGS: Mapping[str, str] = {
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    # What a killed server has written is in the system's cache: only a power cut, which nothing
    # here plays, would lose it.
    "fsync": "off",
    # In the cluster's folder, and so removed with it.
    "dynamic_shared_memory_type": "mmap",
}


STARTS_WITHIN = PATIENCE_S
"""Seconds, with a recovery."""


@cache
def programs() -> Path:
    """The folder of the server's programs."""
    newest_first = sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda path: int(path.parent.name),
        reverse=True,
    )
    return Path(find("initdb", "postgresql", *map(str, newest_first))).resolve().parent


class Cluster:
    """A PostgreSQL server on a free port of this machine.

    Everybody there may be `postgres`; nothing of it is left when it is closed.

    Attributes:
        port: Where it listens, for as long as it lives.
    """

    def __init__(
        self,
        *,
        settings: Mapping[str, str] | None = None,
        follows: Cluster | None = None,
        folder: Path | None = None,
    ) -> None:
        """Make one and start it.

        Args:
            settings: Its configuration, beside or instead of `SETTINGS`.
            follows: The one whose standby it becomes: see `standby`.
            folder: Where its programs are; None: the system's.
        """
        self._programs = (
            folder or programs()
        )  # before anything is there that would have to be removed
        self._sandbox = Sandbox()
        self.port = free_port()
        self._data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        try:
            if follows is None:
                self._run(
                    "initdb",
                    "--username=postgres",
                    "--auth=trust",
                    "--encoding=UTF8",
                    "--locale=C",
                    "--no-sync",
                )
            else:
                self._run(
                    "pg_basebackup",
                    f"--dbname={follows.url}",
                    "--write-recovery-conf",
                    "--wal-method=stream",
                    "--checkpoint=fast",
                    "--no-sync",
                )
            self._configure({**SETTINGS, **(settings or {}), "port": str(self.port)})
            self.start()
        except BaseException:
            self.close()
            raise

    @property
    def folder(self) -> Path:
        """Where everything is that belongs to it."""
        return self._sandbox.folder

    @property
    def url(self) -> str:
        """Of the database `postgres`, as its superuser."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def start(self) -> None:
        """Start it, after a crash with its recovery, and wait until it takes connections."""
        log = self.folder / "log"
        # A child of the tests', not of `pg_ctl`: when it has been killed, nobody else has to
        # notice.
        process = self._process = self._sandbox.begin(
            str(self._programs / "postgres"), f"-D{self._data}", log=log
        )
        deadline = time.monotonic() + STARTS_WITHIN
        while not self._is_ready(process.pid):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(
                    f"PostgreSQL did not start:\n{log.read_text(errors='replace')[-4000:]}"
                )
            time.sleep(0.01)

    def _is_ready(self, pid: int) -> bool:
        """Whether the postmaster says so in its file, as `pg_ctl` reads it."""
        file = self._data / "postmaster.pid"
        lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
        return len(lines) >= 8 and lines[0] == str(pid) and lines[7].strip() in ("ready", "standby")

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop it: "fast" ends sessions, "immediate" leaves a crash behind, of which the next start
        recovers.
        """
        self._end(signal.SIGINT if mode == "fast" else signal.SIGQUIT)

    def restart(self, mode: StopMode = "fast") -> None:
        """Stop and start it on the same port."""
        self.stop(mode)
        self.start()

    def kill(self) -> None:
        """Kill the postmaster, and wait until the processes that it leaves behind have noticed."""
        self._end(signal.SIGKILL)

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        self._process.wait(PATIENCE_S)
        if not wait_until_empty(self._data, PATIENCE_S):
            raise RuntimeError("processes of a server that has ended still run")

    def standby(self) -> Cluster:
        """Begin a synchronous standby: from now on no commit here is acknowledged before it is in
        the other's log too.

        So this one stays behind waiting, at its next commit, when the standby goes first.
        """
        standby = Cluster(follows=self)
        try:
            self.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
            self.execute("SELECT pg_reload_conf()")
            standby._wait_until_synchronous(self)
        except BaseException:
            standby.close()
            raise
        return standby

    def _wait_until_synchronous(self, primary: Cluster) -> None:
        with psycopg.connect(primary.url, autocommit=True) as connection:
            for _ in range(1000):
                if connection.execute(
                    "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
                ).fetchone():
                    return
                connection.execute("SELECT pg_sleep(0.01)")
        raise RuntimeError("the standby did not become synchronous")

    def promote(self) -> None:
        """Make a standby the primary, and wait until it is."""
        if self.execute("SELECT pg_promote(true, 60)") != [(True,)]:
            raise RuntimeError("the standby could not be promoted")

    def execute(self, sql: str) -> list[tuple[Any, ...]]:
        """Run a statement as superuser, committed by itself; its rows, if it gives any."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            cursor = connection.execute(sql.encode())
            return cursor.fetchall() if cursor.description else []

    def close(self) -> None:
        """Remove it, whether it runs or not."""
        self._sandbox.close()
        if self._process is not None:
            self._process.wait(PATIENCE_S)

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _run(self, program: str, *arguments: str) -> None:
        self._sandbox.run(str(self._programs / program), f"--pgdata={self._data}", *arguments)

    def _configure(self, settings: Mapping[str, str]) -> None:
        """Add to the configuration; of a setting that comes twice the last one counts."""
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in settings.items())
