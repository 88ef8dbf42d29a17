"""Where servers that tests start live: a folder and an account of their own, both left as they were
found.
"""

from __future__ import annotations

import os
import pwd
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from patience import PATIENCE_S

from postgres import guardian

ACCOUNTS = ("postgres", "nobody")
"""Accounts without privileges, of which one is everywhere. PostgreSQL and PgBouncer refuse to run
as root."""


@cache
def account() -> pwd.struct_passwd | None:
    """The account that servers run under; None for the one that runs the tests, which has no
    privileges either.
    """
    if os.geteuid() != 0:
        return None
    for name in ACCOUNTS:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise RuntimeError(
        f"none of the accounts {', '.join(ACCOUNTS)} is there, and servers do not run as root"
    )


def free_port() -> int:
    """A port of this machine on which nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class Sandbox:
    """A folder that programs may run in.

    When it is closed, or when the process that made it has ended in whatever way, what runs in the
    folder is ended and the folder deleted.
    """

    def __init__(self) -> None:
        # Not pytest's folder: what belongs to root there is closed to the account.
        self.folder = Path(tempfile.mkdtemp(prefix="langmem-ext-")).resolve()
        if found := account():
            os.chown(self.folder, found.pw_uid, found.pw_gid)
        command = [sys.executable, guardian.__file__, str(self.folder)]
        # Interrupting the tests in a terminal interrupts the session's processes: this one has to
        # stay.
        self._guardian = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    def run(self, *command: str) -> None:
        """Run a program to its end.

        Raises:
            RuntimeError: It failed; with what it wrote.
        """
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            **self._options(),
        )
        if done.returncode:
            raise RuntimeError(
                f"{Path(command[0]).name} ended with {done.returncode}:\n{done.stdout}{done.stderr}"
            )

    def begin(self, *command: str, log: Path) -> subprocess.Popen[bytes]:
        """Start a program that adds what it has to say to a file."""
        with log.open("ab") as out:
            return subprocess.Popen(
                command, stdout=out, stderr=subprocess.STDOUT, **self._options()
            )

    def close(self) -> None:
        """End what runs in the folder, and delete it."""
        assert self._guardian.stdin is not None
        self._guardian.stdin.close()
        if code := self._guardian.wait(PATIENCE_S):
            raise RuntimeError(
                f"{self.folder} could not be cleared: its guardian ended with {code}"
            )

    def _options(self) -> Mapping[str, Any]:
        found = account()
        rights = {"user": found.pw_uid, "group": found.pw_gid, "extra_groups": []} if found else {}
        # No PG… variable and no password file of the account that runs the tests.
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "LC_ALL": "C",
            "TZ": "UTC",
        }
        return {
            "cwd": self.folder,
            "env": environment,
            "stdin": subprocess.DEVNULL,
            "start_new_session": True,
            **rights,
        }
