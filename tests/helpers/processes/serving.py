"""Servers in processes of their own."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from patience import PATIENCE_S, until


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def serving(
    program: str, *words: str, folder: Path | None = None, **options: Any
) -> Iterator[tuple[httpx.Client, subprocess.Popen[bytes]]]:
    """A server that answers, and a client of it.

    Args:
        program: What it runs; its first argument is the port.
        words: Further arguments; "PORT" stands for the port there.
        folder: Its current folder.
        options: Of the client.
    """
    port = str(free_port())
    words = tuple(port if word == "PORT" else word for word in words)
    server = subprocess.Popen([sys.executable, "-c", program, port, *words], cwd=folder)

    def answers() -> bool:
        assert server.poll() is None
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", int(port))) == 0

    try:
        until(answers)
        options = {"timeout": PATIENCE_S, **options}
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", **options) as client:
            yield client, server
    finally:
        server.kill()
        server.wait()
