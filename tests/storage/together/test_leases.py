"""Promise: one caller drives a thread at a time, and a dead process holds nothing.

This holds among threads, event loops and processes.
"""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from patience import PATIENCE_S
from savers import Backend

from langmem_ext import DeltaSaver, ThreadBusy


@pytest.fixture
def saver(backend: Backend, tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver(backend.new_url(tmp_path)) as saver:
        yield saver


def test_the_second_caller_waits_and_then_is_told(saver: DeltaSaver) -> None:
    with saver.lease("t"):
        started = time.monotonic()
        with pytest.raises(ThreadBusy, match="'t'"), saver.lease("t", wait=0.1):
            pass
        assert time.monotonic() - started >= 0.1
        with saver.lease("other", wait=0):
            pass
    with saver.lease("t", wait=PATIENCE_S):
        pass


def test_the_second_caller_goes_on_when_the_first_has_ended(saver: DeltaSaver) -> None:
    order: list[str] = []

    def second() -> None:
        with saver.lease("t", wait=PATIENCE_S):
            order.append("second")

    with saver.lease("t"):
        waiting = threading.Thread(target=second)
        waiting.start()
        time.sleep(0.05)
        order.append("first")
    waiting.join(PATIENCE_S)
    assert order == ["first", "second"]


async def test_tasks_and_threads_exclude_each_other(saver: DeltaSaver) -> None:
    async with saver.alease("t"):
        with pytest.raises(ThreadBusy):
            async with saver.alease("t", wait=0.05):
                pass
        with pytest.raises(ThreadBusy), saver.lease("t", wait=0):
            pass
    # PostgreSQL frees a lock when it notices that its connection has closed: soon, not at once.
    with saver.lease("t", wait=PATIENCE_S):
        pass


async def test_a_cancelled_caller_leaves_nothing_taken(saver: DeltaSaver) -> None:
    async def hold() -> None:
        async with saver.alease("t"):
            await asyncio.sleep(PATIENCE_S)

    for pauses in range(4):
        task = asyncio.create_task(hold())
        for _ in range(pauses):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with saver.alease("t", wait=PATIENCE_S):
            pass


def test_an_error_inside_ends_the_lease(saver: DeltaSaver) -> None:
    with pytest.raises(ZeroDivisionError), saver.lease("t"):
        raise ZeroDivisionError
    with saver.lease("t", wait=PATIENCE_S):
        pass


@pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # of a fork with threads about, since 3.12
def test_another_process_is_kept_out_until_it_may_and_a_killed_one_holds_nothing(url: str) -> None:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with DeltaSaver.from_conn_string(url) as held, held.lease("t"):
            os.write(writing, b"x")
            time.sleep(PATIENCE_S)
        os._exit(0)
    try:
        assert os.read(reading, 1) == b"x"
        with DeltaSaver.from_conn_string(url) as saver:
            with pytest.raises(ThreadBusy), saver.lease("t", wait=0.1):
                pass
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            child = 0
            with saver.lease("t", wait=PATIENCE_S):
                pass
    finally:
        os.close(reading)
        os.close(writing)
        if child:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_does_not_keep_its_parents_lease(url: str) -> None:
    """Of a lock on a file, which is inherited, as is a session's connection."""
    with DeltaSaver.from_conn_string(url) as saver:
        with saver.lease("t"):
            child = os.fork()
            if child == 0:
                time.sleep(PATIENCE_S)
                os._exit(0)
        try:
            with saver.lease("t", wait=PATIENCE_S):
                pass
        finally:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_child_that_leaves_does_not_end_its_parents_lease(url: str) -> None:
    with DeltaSaver.from_conn_string(url) as saver:
        lease = saver.lease("t")
        with lease:
            child = os.fork()
            if child == 0:
                try:
                    lease.__exit__(None, None, None)
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
            with pytest.raises(ThreadBusy), saver.lease("t"):
                pass


def test_a_link_and_the_file_itself_are_one_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "link.db").symlink_to(tmp_path / "memory.db")
    monkeypatch.chdir(tmp_path)
    with (
        DeltaSaver.from_conn_string("memory.db") as one,
        DeltaSaver.from_conn_string(str(tmp_path / "link.db")) as other,
    ):
        monkeypatch.chdir("/")
        with one.lease("t"), pytest.raises(ThreadBusy), other.lease("t", wait=0):
            pass
