"""A process that is killed while it prunes, sweeps, copies, carries threads, compacts or makes the
search index.

Run as a script it imports everything once, then reads one JSON command a line and prints one JSON
answer a line. For each it forks a process that does the work, and kills it: before one of the steps
that the database takes, or after a while.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
import traceback
from datetime import UTC, datetime, timedelta
from typing import Any

from dying_database import Steps, dying_log

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
    child = os.fork()
    if child == 0:
        code = 1
        try:
            done = work(command)
            os.write(write, json.dumps(done).encode())
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    os.close(write)
    if "after_s" in command:
        time.sleep(command["after_s"])
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    with os.fdopen(read) as answer:
        done = json.loads(answer.read() or "{}")
    return {"died": os.waitstatus_to_exitcode(status), **done}


def main() -> None:
    """Answer commands until the input ends."""
    with_everything_imported = DeltaSaver.open(":memory:", retention=RETENTION)
    with_everything_imported.close()
    gc.freeze()  # a collection in a fork would copy every page
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        print(json.dumps(run(json.loads(line))), flush=True)


if __name__ == "__main__":
    main()
