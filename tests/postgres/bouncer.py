"""PgBouncer before a server, as it stands before many of them: in transaction mode."""

from __future__ import annotations

import re
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from urllib.parse import unquote, urlsplit

from patience import PATIENCE_S
from proxy import at_address

from postgres.missing import find
from postgres.sandbox import Sandbox, free_port

STARTS_WITHIN = PATIENCE_S
"""Seconds."""


class Bouncer:
    """A PgBouncer on a free port of this machine, which lends a server's connections for a
    transaction each.

    Attributes:
        url: The server's, through it.
        version: Its own.
    """

    def __init__(self, url: str, *, pool_size: int = 2) -> None:
        """Start one.

        Args:
            url: Of the server; whoever connects uses its account.
            pool_size: How many connections of the server are lent; with few of them, two clients
                meet on one soon.
        """
        program = find("pgbouncer", "pgbouncer", "/usr/sbin")
        said = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True
        ).stdout
        self.version = tuple(map(int, re.findall(r"\d+", said.splitlines()[0])))
        port = free_port()
        self.url = at_address(url, port)
        self._sandbox = Sandbox()
        self._log = self._sandbox.folder / "log"
        try:
            config = self._configure(url, port, pool_size)
            self._process = self._sandbox.begin(program, str(config), log=self._log)
            self._wait_until_it_listens(port)
        except BaseException:
            self._sandbox.close()
            raise

    def close(self) -> None:
        """Stop and remove it."""
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        self._sandbox.close()

    def __enter__(self) -> Bouncer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _configure(self, url: str, port: int, pool_size: int) -> Path:
        server, folder = urlsplit(url), self._sandbox.folder
        known = {
            "host": server.hostname,
            "port": server.port or 5432,
            "user": unquote(server.username or ""),
            "password": server.password,
        }
        target = " ".join(f"{name}={value}" for name, value in known.items() if value)
        settings = {
            "listen_addr": "127.0.0.1",
            "listen_port": port,
            "unix_socket_dir": "",
            "auth_type": "any",
            "pool_mode": "transaction",
            "default_pool_size": pool_size,
            "max_client_conn": 500,
        }
        if self.version >= (1, 21):
            settings["max_prepared_statements"] = (
                0  # as before there was such a thing: what is right without it is right with it
            )
        lines = [
            "[databases]",
            f"* = {target}",
            "[pgbouncer]",
            *(f"{name} = {value}" for name, value in settings.items()),
        ]
        config = folder / "pgbouncer.ini"
        config.write_text("\n".join(lines) + "\n", encoding="utf-8")
        config.chmod(0o644)
        return config

    def _wait_until_it_listens(self, port: int) -> None:
        deadline = time.monotonic() + STARTS_WITHIN
        while self._process.poll() is None and time.monotonic() < deadline:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
            except OSError:
                time.sleep(0.01)
            else:
                return
        self._process.kill()
        self._process.wait()
        raise RuntimeError(
            f"PgBouncer does not listen:\n{self._log.read_text(errors='replace')[-4000:]}"
        )
