"""Promise: a program may fork (a preloading server, a pool of workers): parent and children go on,
each on connections of its own.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from patience import PATIENCE_S

from langmem_ext import (
    DeltaSaver,
    Retention,
    StorageUnavailable,
    ThreadBusy,
    ThreadChatMessageHistory,
)
from langmem_ext._internal.collector import without_collector
from langmem_ext.maintenance.doctor import examine
from postgres.server import SHARED, Database

pytestmark = pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # of a fork with threads about, since 3.12

TURNS = 8


@pytest.fixture
def url(database: Database) -> str:
    return f"{database.url}?schema={SHARED.tables()}&deadline=240"


class Child:
    """A forked process that does some work, and ends without what a test has opened being closed in
    it.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            told = b""
            try:
                work()
            except BaseException:
                told = traceback.format_exc().encode()
            finally:
                os.write(writing, told[-4000:])
                os._exit(bool(told))
        os.close(writing)

    def join(self) -> None:
        """Wait for its end, which must come and be a good one."""
        until = time.monotonic() + PATIENCE_S
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > until:
                os.kill(self.pid, 9)
                os.waitpid(self.pid, 0)
                raise AssertionError("a child hangs")
            time.sleep(0.01)
        with open(self._reading, "rb") as told:
            if said := told.read().decode():
                pytest.fail(said)


def take_turns(saver: DeltaSaver, name: str, own: str) -> None:
    """Add to a thread, and see that everything of one's own is there, in order."""
    history = ThreadChatMessageHistory(name, saver)
    for number in range(TURNS):
        history.add_messages([HumanMessage(f"{own} {number}", id=f"{own}-{number}")])
        said = [message.text for message in history.messages if message.text.startswith(f"{own} ")]
        assert said == [f"{own} {one}" for one in range(number + 1)]


async def atake_turns(saver: DeltaSaver, name: str, own: str) -> None:
    history = ThreadChatMessageHistory(name, saver)
    for number in range(TURNS):
        await history.aadd_messages([HumanMessage(f"{own} {number}", id=f"{own}-{number}")])
        said = [
            message.text
            for message in await history.aget_messages()
            if message.text.startswith(f"{own} ")
        ]
        assert said == [f"{own} {one}" for one in range(number + 1)]


def all_said(url: str, name: str) -> set[str]:
    with DeltaSaver.open(url) as saver:
        return {message.text for message in ThreadChatMessageHistory(name, saver).messages}


def expected(*speakers: str) -> set[str]:
    return {f"{own} {number}" for own in speakers for number in range(TURNS)}


@pytest.mark.parametrize("pool_size", [1, None])
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_parent_and_its_children_go_on_with_the_same_threads_and_with_others(
    url: str, pool_size: int | None, way: str
) -> None:
    url += f"&pool_size={pool_size}" if pool_size else ""
    with DeltaSaver.open(url) as saver:
        take_turns(saver, "all", "before")
        asyncio.run(atake_turns(saver, "all", "asynchronously before"))

        def work(own: str) -> None:
            for name in ("all", own):
                if way == "sync":
                    take_turns(saver, name, own)
                else:
                    asyncio.run(atake_turns(saver, name, own))

        children = [Child(lambda own=own: work(own)) for own in ("one", "two")]  # type: ignore[misc]
        work("parent")
        for child in children:
            child.join()
        take_turns(saver, "all", "after")
    assert all_said(url, "all") == expected(
        "before", "asynchronously before", "one", "two", "parent", "after"
    )
    assert all(all_said(url, own) == expected(own) for own in ("one", "two", "parent"))
    assert examine(url).findings == ()


def test_a_fork_on_an_event_loop_that_is_at_work(url: str) -> None:
    with DeltaSaver.open(url) as saver:

        def work() -> None:
            take_turns(saver, "child", "sync")
            asyncio.run(atake_turns(saver, "child", "async"))
            gc.collect()  # what the parent's tasks would do at their end

        async def story() -> None:
            await atake_turns(saver, "t", "before")
            under_way = [
                asyncio.create_task(atake_turns(saver, f"t{at}", "meanwhile")) for at in range(4)
            ]
            await asyncio.sleep(0.05)
            child = Child(work)
            await asyncio.gather(*under_way)
            await asyncio.to_thread(child.join)
            await atake_turns(saver, "t", "after")
            await saver.aclose()

        asyncio.run(story())
    assert all_said(url, "child") == expected("sync", "async")
    assert all_said(url, "t") == expected("before", "after")
    assert examine(url).findings == ()


@contextmanager
def at_work(*work: Callable[[int], None]) -> Iterator[None]:
    """As long as it lasts, threads do things again and again."""
    over, failed = threading.Event(), list[BaseException]()

    def go(do: Callable[[int], None]) -> None:
        number = 0
        try:
            while not over.is_set():
                do(number)
                number += 1
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=go, args=(do,)) for do in work]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(PATIENCE_S)
    assert failed == []


def test_forks_while_other_threads_are_in_the_midst_of_operations(url: str) -> None:
    with DeltaSaver.open(f"{url}&pool_size=2", retention=Retention(keep_last=20)) as saver:

        def say(name: str) -> Callable[[int], None]:
            history = ThreadChatMessageHistory(name, saver)
            return lambda number: patiently(
                lambda: history.add_messages([HumanMessage(f"{name} {number}")])
            )

        with at_work(
            say("a"), say("a"), say("b"), lambda _: patiently(lambda: asyncio.run(look(saver)))
        ):
            for at in range(6):
                time.sleep(0.05 + at / 100)

                def work(own: str = f"child{at}") -> None:
                    assert gc.isenabled()
                    take_turns(saver, own, own)
                    patiently(
                        lambda: ThreadChatMessageHistory("a", saver).add_messages(
                            [HumanMessage(own)]
                        )
                    )

                Child(work).join()
    assert all_said(url, "child0") == expected("child0")
    assert examine(url).findings == ()


def patiently(work: Callable[[], None]) -> None:
    """Use a thread that others write to without a pause: an operation gives way a few times, and is
    then refused.
    """
    for _ in range(50):
        try:
            work()
        except StorageUnavailable as error:
            assert "again and again" in str(error)  # noqa: PT017 - any other is a failure
        else:
            return
    pytest.fail("nobody lets this one work")


async def look(saver: DeltaSaver) -> None:
    await saver.aget_tuple({"configurable": {"thread_id": "b", "checkpoint_ns": ""}})


def test_a_fork_while_a_thread_waits_for_the_server(url: str, database: Database) -> None:
    schema = url.split("schema=")[1].split("&")[0]
    with DeltaSaver.open(f"{url}&pool_size=1") as saver:
        take_turns(saver, "t", "before")
        with psycopg.connect(database.url) as connection:
            connection.execute(f"LOCK {schema}.item IN EXCLUSIVE MODE".encode())
            writer = threading.Thread(target=take_turns, args=(saver, "t", "parent"))
            writer.start()
            time.sleep(0.3)  # it waits for an answer, and has the only connection and the thread
            child = Child(lambda: take_turns(saver, "t", "child"))
            time.sleep(0.3)
            connection.rollback()
        writer.join(PATIENCE_S)
        child.join()
    assert all_said(url, "t") == expected("before", "parent", "child")
    assert examine(url).findings == ()


def test_the_collector_does_not_rest_for_good_in_a_child() -> None:
    begun, over = threading.Event(), threading.Event()

    def linger() -> None:
        begun.set()
        over.wait(PATIENCE_S)

    def work() -> None:
        assert gc.isenabled()

    thread = threading.Thread(target=without_collector, args=(linger,))
    thread.start()
    begun.wait(PATIENCE_S)
    assert not gc.isenabled()
    child = Child(work)
    over.set()
    thread.join()
    child.join()
    assert gc.isenabled()


def test_a_child_of_a_child_goes_on_too_and_what_was_closed_stays_so(url: str) -> None:
    closed = DeltaSaver.open(url)
    closed.close()
    with DeltaSaver.open(url) as saver:
        take_turns(saver, "t", "parent")

        def work() -> None:
            with pytest.raises(StorageUnavailable, match="is closed"):
                closed.get_tuple({"configurable": {"thread_id": "t"}})
            take_turns(saver, "t", "child")
            Child(lambda: take_turns(saver, "t", "grandchild")).join()
            saver.close()

        Child(work).join()
        take_turns(saver, "t", "after")
    assert all_said(url, "t") == expected("parent", "child", "grandchild", "after")


def test_of_a_killed_parent_nothing_lasts_as_long_as_its_child(url: str) -> None:
    reading, writing = os.pipe()

    def work() -> None:
        saver = DeltaSaver.open(url)
        saver.put(
            {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, empty_checkpoint(), {}, {}
        )
        with saver.lease("t"):
            child = Child(lambda: time.sleep(PATIENCE_S))
            os.write(writing, b"%d" % child.pid)
            os.kill(os.getpid(), 9)

    parent = os.fork()
    if parent == 0:
        work()
    os.waitpid(parent, 0)
    child = int(os.read(reading, 20))
    try:
        with DeltaSaver.open(url) as saver, saver.lease("t", wait=5):
            os.kill(child, 0)  # it is there
    finally:
        os.kill(child, 9)
        os.close(reading)
        os.close(writing)


def test_a_child_that_leaves_a_lease_or_ends_does_not_end_its_parents(url: str) -> None:
    with DeltaSaver.open(url) as saver, DeltaSaver.open(url) as other:
        lease = saver.lease("t")
        lease.__enter__()
        Child(lambda: lease.__exit__(None, None, None)).join()
        with pytest.raises(ThreadBusy), other.lease("t", wait=0):
            pass
        lease.__exit__(None, None, None)


PROGRAM = """
import asyncio, multiprocessing, os, sys, threading, warnings
from langchain_core.messages import HumanMessage
from langmem_ext import DeltaSaver, ThreadChatMessageHistory

warnings.filterwarnings("ignore", "This process", DeprecationWarning)
saver = DeltaSaver.open(sys.argv[1])

def say(own):
    ThreadChatMessageHistory("t", saver).add_messages([HumanMessage(own)])

async def linger(begun):
    await ThreadChatMessageHistory("t", saver).aadd_messages([HumanMessage("async")])
    begun.set()
    await asyncio.sleep(60)

say("parent")
begun = threading.Event()
threading.Thread(target=lambda: asyncio.run(linger(begun)), daemon=True).start()
begun.wait()
if (child := os.fork()) == 0:
    say("forked")
    sys.exit(0)
assert os.waitpid(child, 0)[1] == 0
worker = multiprocessing.get_context("fork").Process(target=say, args=("worker",))
worker.start()
worker.join()
assert worker.exitcode == 0
say("after")
print(len(ThreadChatMessageHistory("t", saver).messages), flush=True)
os._exit(0)
"""


def test_a_child_that_ends_as_programs_do_ends_at_once_and_says_nothing(url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM, url],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "5\n")
