"""Programs that listen on a port, in processes of their own."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from patience import PATIENCE_S, until

Server = subprocess.Popen[bytes]


@contextmanager
def listening(
    command: Callable[[int], list[str]], folder: Path | None, **options: Any
) -> Iterator[tuple[int, Server]]:
    """Start a command that listens on a port; the port, as soon as somebody answers there.

    Args:
        command: What is started, for a port that is free.
        folder: Where it is started.
        options: More for `subprocess.Popen`.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def answers() -> bool:
        assert server.poll() is None
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    server = subprocess.Popen(command(port), cwd=folder, **options)
    try:
        until(answers)
        yield port, server
        server.send_signal(signal.SIGINT)
        server.wait(PATIENCE_S)
    finally:
        server.kill()
        server.wait()


@contextmanager
def serving(
    program: str, *words: str, folder: Path | None = None, **options: Any
) -> Iterator[tuple[httpx.Client, Server]]:
    """A server that answers until it is killed, and a client of it.

    Args:
        program: What it runs; its first argument is the port.
        words: Further arguments; "PORT" stands for the port there.
        folder: Its current folder.
        options: Of the client.
    """

    def command(port: int) -> list[str]:
        given = [str(port) if word == "PORT" else word for word in ("PORT", *words)]
        return [sys.executable, "-c", program, *given]

    with listening(command, folder) as (port, server):
        options = {"timeout": PATIENCE_S, **options}
        try:
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", **options) as client:
                yield client, server
        finally:
            server.kill()
