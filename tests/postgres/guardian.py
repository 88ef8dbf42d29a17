"""Ends what runs in a folder and deletes the folder, as soon as its standard input ends: the
process that began it has gone, or says so.

Run as a script, with the folder as its argument. It outlives a killed test process by as long as
this takes.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil

GRACE = 10.0
"""Seconds for a server to end by itself."""


def processes_in(folder: Path) -> Iterator[psutil.Process]:
    """Processes whose working folder lies in `folder`: PostgreSQL's and PgBouncer's do not leave
    theirs, nobody else enters it.
    """
    for process in psutil.process_iter():
        try:
            if Path(process.cwd()).is_relative_to(folder):
                yield process
        except psutil.Error:
            continue  # it has just ended, or is another account's


def wait_until_empty(folder: Path, seconds: float) -> bool:
    """Wait until nothing runs in the folder any more; whether that came in time."""
    deadline = time.monotonic() + seconds
    while any(True for _ in processes_in(folder)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def clear(folder: Path) -> None:
    """End what runs in the folder, and delete it."""
    _signal(folder, signal.SIGQUIT)  # to a postmaster: at once, but leaving no shared memory behind
    if not wait_until_empty(folder, GRACE):
        _signal(folder, signal.SIGKILL)
        wait_until_empty(folder, GRACE)
    for left in folder.glob("*/postmaster.pid"):
        _remove_shared_memory(left)
    shutil.rmtree(folder)


def _signal(folder: Path, number: signal.Signals) -> None:
    for process in processes_in(folder):
        try:
            process.send_signal(number)
        except psutil.Error:
            continue


def _remove_shared_memory(pid_file: Path) -> None:
    """A killed postmaster leaves a System V segment behind, which the seventh line of its file
    names.
    """
    lines = pid_file.read_text(encoding="utf-8").splitlines()
    if len(lines) >= 7 and shutil.which("ipcrm"):
        subprocess.run(["ipcrm", "-m", lines[6].split()[1]], check=False, capture_output=True)


if __name__ == "__main__":
    sys.stdin.read()
    clear(Path(sys.argv[1]))
