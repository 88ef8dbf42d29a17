"""Many processes on one file: no error, no lock that is too long, and what each was told is stored
can be read, and nothing else.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from forked_workers import forks
from patience import PATIENCE_S
from prune_reference import assert_sound
from savers import Calls, open_saver, run_without_loop
from writer_turns import Turn, assert_readable, store, turns

from langmem_ext import DeltaSaver, ThreadChatMessageHistory

pytestmark = pytest.mark.process


SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
PUTS = 1000 if SOAK else 25
"""Checkpoints that each of eight processes puts, each with its pending writes."""

SHARED_PUTS = 200 if SOAK else 12
"""Checkpoints that each writer of one thread puts."""

_begin: Any = None


def prepare(barrier: Any) -> None:
    """Called in each process of a pool: they begin together."""
    global _begin
    _begin = barrier


def alone(saver: Any, worker: str, thread: str, count: int) -> list[Turn]:
    """Store the turns of one writer."""
    return [
        run_without_loop(store(Calls("sync"), saver, turn)) for turn in turns(worker, thread, count)
    ]


def by_threads(saver: Any, worker: str, thread: str, count: int) -> list[Turn]:
    """Store the turns of four writers, each in a thread of its own."""
    with ThreadPoolExecutor(4) as pool:
        done = pool.map(lambda number: alone(saver, f"{worker}.{number}", thread, count), range(4))
        return [turn for turns_of_one in done for turn in turns_of_one]


async def _tasks(saver: Any, worker: str, thread: str, count: int) -> list[Turn]:
    async def one(number: int) -> list[Turn]:
        return [
            await store(Calls("async"), saver, turn)
            for turn in turns(f"{worker}.{number}", thread, count)
        ]

    return [
        turn for turns_of_one in await asyncio.gather(*map(one, range(10))) for turn in turns_of_one
    ]


def by_tasks(saver: Any, worker: str, thread: str, count: int) -> list[Turn]:
    """Store the turns of ten writers, tasks of one event loop."""
    return asyncio.run(_tasks(saver, worker, thread, count))


WAYS = {"alone": alone, "by threads": by_threads, "by tasks": by_tasks}


def in_another_process(way: str, url: str, worker: str, thread: str, count: int) -> list[Turn]:
    """Store turns through a saver of this process, and begin when the others do."""
    _begin.wait(PATIENCE_S)
    saver = open_saver(url)
    try:
        return WAYS[way](saver, worker, thread, count)
    finally:
        saver.close()


def at_once(processes: int, way: str, url: str, thread: str | None, count: int) -> list[Turn]:
    """Have several processes write at once, each a thread of its own if none is named; what they
    were told is stored.
    """
    context = forks()
    names = [f"p{number}" for number in range(processes)]
    with context.Pool(processes, prepare, (context.Barrier(processes),)) as pool:
        done = pool.starmap(
            in_another_process,
            [(way, url, name, thread or name, count) for name in names],
            chunksize=1,
        )
        pool.close()
        pool.join()
    return [turn for turns_of_one in done for turn in turns_of_one]


def assert_all_there(url: str, acknowledged: list[Turn]) -> None:
    """Check everything through a saver that has seen none of it, and with the doctor."""
    saver = open_saver(url)
    run_without_loop(assert_readable(Calls("sync"), saver, acknowledged))
    assert_sound(saver)
    saver.close()


def test_what_eight_processes_were_told_is_stored_can_be_read(url: str) -> None:
    acknowledged = at_once(8, "alone", url, None, PUTS)
    assert len(acknowledged) == 8 * PUTS
    assert_all_there(url, acknowledged)


@pytest.mark.parametrize("way", WAYS)
def test_two_processes_write_one_thread_at_once_and_lose_and_mix_nothing(
    way: str, url: str
) -> None:
    acknowledged = at_once(2, way, url, "shared", SHARED_PUTS)
    assert len(acknowledged) == {"alone": 2, "by threads": 8, "by tasks": 20}[way] * SHARED_PUTS
    assert_all_there(url, acknowledged)


def test_two_event_loops_and_threads_write_one_thread_through_one_saver(url: str) -> None:
    saver = open_saver(url)
    with ThreadPoolExecutor(3) as pool:
        ways = (by_tasks, by_tasks, by_threads)
        futures = [
            pool.submit(way, saver, f"w{number}", "shared", SHARED_PUTS)
            for number, way in enumerate(ways)
        ]
        acknowledged = [turn for future in futures for turn in future.result()]
    run_without_loop(assert_readable(Calls("sync"), saver, acknowledged))
    saver.close()
    assert_all_there(url, acknowledged)


COUNT = """
import sqlite3, sys
[count] = sqlite3.connect(sys.argv[1]).execute("SELECT count(*) FROM item").fetchone()
print(count)
"""


@pytest.mark.smoke
def test_a_process_that_opens_its_database_again_keeps_it_from_losing_its_log(
    tmp_path: Path,
) -> None:
    """POSIX drops all locks of a process on a file when it closes any descriptor of it."""
    path = str(tmp_path / "memory.db")

    def counted_elsewhere() -> str:
        command = [sys.executable, "-c", COUNT, path]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    with DeltaSaver.open(path) as first:
        history = ThreadChatMessageHistory("t", first)
        history.add_user_message("one")
        with DeltaSaver.open(path), DeltaSaver.open(path):
            assert counted_elsewhere() == "1"  # it closes the file as the last one that it knows of
        history.add_user_message("two")
        assert counted_elsewhere() == "2"
    assert counted_elsewhere() == "2"
