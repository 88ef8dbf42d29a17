"""Programs that listen on a port."""

from __future__ import annotations

import signal
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from patience import PATIENCE_S, until


@contextmanager
def listening(command: Callable[[int], list[str]], folder: Path, **options: Any) -> Iterator[int]:
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
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    server = subprocess.Popen(command(port), cwd=folder, **options)
    try:
        until(answers)
        yield port
        server.send_signal(signal.SIGINT)
        server.wait(PATIENCE_S)
    finally:
        server.kill()
        server.wait()
