"""A process that is killed while it prunes, sweeps, copies, carries threads, compacts or makes the
search index.

Run as a script it imports everything once, then reads one JSON command a line and prints one JSON
answer a line. For each it forks a process that does the work, and kills it: before one of the steps
that the database takes, or after a while.
"""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from dying_database import Steps, dying_log
from nursery import answer_commands, in_child

from langmem_ext import DeltaSaver, Event, Retention, Threads
from langmem_ext.storage.search import catch_up as fill_ops

THREADS = [f"t{number}" for number in range(6)]
RETENTION = Retention(keep_last=4)
EXPIRY = Retention(ttl=60)
fill_ops.AT_ONCE = 16  # type: ignore[misc]  # so that a small database takes many steps


class Told:
    """A sink that writes how many threads have expired to a file beside the database, where a kill
    loses nothing of it.
    """

    def __init__(self, path: str) -> None:
        self._path = f"{path}-told"

    def emit(self, event: Event) -> None:
        with open(self._path, "a") as told:
            told.write(f"{event.as_dict()['threads']}\n")


def carry_out(saver: DeltaSaver, what: str) -> None:
    """Do one of the works."""
    match what:
        case "prune":
            saver.prune(THREADS, keep_last=3)
        case "sweep":
            saver.sweep()
        case "copy":
            for thread in THREADS:
                saver.copy_thread(thread, f"{thread} copied")
        case "delete":
            for thread in THREADS[:3]:
                saver.delete_thread(thread)
        case "compact":
            saver.compact()
        case "compact fully":
            saver.compact(full=True)
        case "search" | "search anew":
            (Threads(saver).enable_search if what == "search" else Threads(saver).rebuild_search)()


def expire(saver: DeltaSaver) -> None:
    """Let an hour pass for the saver, and have it sweep."""
    saver.sweep(now=datetime.now(UTC) + timedelta(hours=1))


def carry(saver: DeltaSaver, what: str, path: str) -> None:
    """Import from, or export to, a file beside the database."""
    if what == "import":
        Threads(saver).import_from(f"{path}-export.jsonl.gz", keep_ids=True)
    else:
        Threads(saver).export_to(f"{path}-export.jsonl.gz")


def work(command: dict[str, Any]) -> dict[str, Any]:
    """Open the database and do the work; how many steps it took, and how long."""
    steps = Steps()
    log = dying_log(command["path"], steps)
    expiring = command["what"] == "expire"
    told = [Told(command.get("beside", command["path"]))] if expiring else []
    saver = DeltaSaver(log, retention=EXPIRY if expiring else RETENTION, telemetry=told)
    steps.count, steps.dies_at = 0, command.get("dies_at")
    began = time.monotonic()
    if command["what"] in ("import", "export"):
        carry(saver, command["what"], command.get("beside", command["path"]))
    elif expiring:
        expire(saver)
    else:
        carry_out(saver, command["what"])
    return {"steps": steps.count, "seconds": time.monotonic() - began}


def run(command: dict[str, Any]) -> dict[str, Any]:
    """Have a forked process do the work, and kill it where and when the command says."""
    read, write = os.pipe()
    died = in_child(
        lambda: os.write(write, json.dumps(work(command)).encode()), command.get("after_s")
    )
    os.close(write)
    with os.fdopen(read) as answer:
        return {"died": died, **json.loads(answer.read() or "{}")}


if __name__ == "__main__":
    DeltaSaver.open(":memory:", retention=RETENTION).close()  # everything is imported now
    answer_commands(run)
