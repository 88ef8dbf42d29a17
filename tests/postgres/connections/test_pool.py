"""Promise: whoever asks gets a connection, however others end or are cancelled; an event loop that
ends and a saver that is closed leave none open.
"""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import threading
from contextlib import suppress
from typing import Any

import anyio
import psycopg
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from patience import PATIENCE_S, until
from savers import empty_tables

from langmem_ext import DeltaSaver, LangmemExtError, StorageUnavailable, ThreadChatMessageHistory
from postgres.server import SHARED, Database

NAMES = [f"t{number}" for number in range(8)]


@pytest.fixture
def url(tmp_path: Any) -> str:
    """A database that is served by one connection; the deadline is longer than the tests wait."""
    return f"{empty_tables(tmp_path)}&pool_size=1&deadline=240"


def config(name: str) -> Any:
    return {"configurable": {"thread_id": name, "checkpoint_ns": ""}}


async def put_and_read_all(saver: DeltaSaver, step: int) -> None:
    """Write to all threads and read them at once, twice over, without waiting for a deadline."""
    async with asyncio.timeout(PATIENCE_S / 3):
        for at in (step, step + 1):
            await asyncio.gather(
                *(saver.aput(config(name), empty_checkpoint(), {"step": at}, {}) for name in NAMES)
            )
            found = await asyncio.gather(*(saver.aget_tuple(config(name)) for name in NAMES))
            assert [one and one.metadata["step"] for one in found] == [at] * len(NAMES)


async def say(saver: DeltaSaver, thread: str = "t") -> None:
    await ThreadChatMessageHistory(thread, saver).aadd_messages([HumanMessage("hello")])


def locked(url: str) -> psycopg.Connection[Any]:
    """A transaction of somebody else, who has taken all threads."""
    address, _, options = url.partition("?")
    schema = dict(option.split("=") for option in options.split("&"))["schema"]
    lock = psycopg.connect(address)
    lock.execute(f"SELECT 1 FROM {schema}.thread FOR UPDATE".encode())
    return lock


def of_application(database: Database, name: str, *, end: bool = False) -> int:
    """How many connections an application has; they may be ended."""
    what = "pg_terminate_backend(pid, 5000)" if end else "pid"
    with psycopg.connect(database.url, autocommit=True) as other:
        query = f"SELECT {what} FROM pg_stat_activity WHERE application_name = %s"
        return len(other.execute(query.encode(), (name,)).fetchall())


@pytest.mark.parametrize("eager", [False, True])
async def test_whoever_waits_for_the_only_connection_gets_it(url: str, eager: bool) -> None:
    if eager:
        if sys.version_info < (3, 12):
            pytest.skip("tasks begin as they are made since Python 3.12")
        asyncio.get_running_loop().set_task_factory(asyncio.eager_task_factory)
    async with DeltaSaver.from_conn_string(url) as saver:
        await put_and_read_all(saver, 0)


async def test_readers_and_writers_that_are_cancelled_anywhere_lose_no_connection(url: str) -> None:
    chance, cancelled, caught = random.Random(7), 0, 0
    async with DeltaSaver.from_conn_string(url) as saver:
        await put_and_read_all(saver, 0)

        async def listed() -> None:
            assert [one async for one in saver.alist(config("t1"))]

        async def in_a_scope(seconds: float) -> bool:
            with anyio.move_on_after(seconds) as scope:
                await listed()
            return scope.cancelled_caught

        for _ in range(60):
            tasks = [
                asyncio.ensure_future(work)
                for work in (
                    saver.aget_tuple(config("t0")),
                    listed(),
                    saver.aput(config("t2"), empty_checkpoint(), {"step": 9}, {}),
                    listed(),
                )
            ]
            scoped = asyncio.create_task(in_a_scope(chance.random() / 100))
            await asyncio.sleep(chance.choice([0, chance.random() / 100]))
            for task in tasks:
                task.cancel("by so and so")
            for task in tasks:
                [ended] = await asyncio.gather(task, return_exceptions=True)
                if isinstance(ended, asyncio.CancelledError):
                    assert ended.args in ((), ("",), ("by so and so",))
                    cancelled += 1
            caught += await scoped
        assert cancelled > 60
        assert caught > 0
        await put_and_read_all(saver, 10)


async def test_connections_that_have_ended_are_replaced(database: Database) -> None:
    name = SHARED.new_schema()
    url = f"{database.url}?schema={name}&application_name={name}&pool_size=3"
    async with DeltaSaver.from_conn_string(url) as saver:
        await put_and_read_all(saver, 0)
        for step in (10, 20):
            assert await asyncio.to_thread(of_application, database, name, end=True) >= 1
            await put_and_read_all(saver, step)


def test_an_event_loop_that_ends_and_a_saver_that_is_closed_leave_nothing_open(
    database: Database,
) -> None:
    name = SHARED.new_schema()
    saver = DeltaSaver.open(f"{database.url}?schema={name}&application_name={name}")
    for step in (0, 10):
        asyncio.run(put_and_read_all(saver, step))
        until(lambda: of_application(database, name) == 0)  # a server's process takes a moment
    with asyncio.Runner() as runner:
        runner.run(put_and_read_all(saver, 20))
        saver.close()
        runner.run(asyncio.sleep(0.1))
    # A connection that was being made meanwhile may last as long as its loop.
    until(lambda: of_application(database, name) == 0)


async def test_a_saver_that_is_closed_refuses_those_who_go_on_writing(database: Database) -> None:
    saver = DeltaSaver.open(f"{database.url}?schema={SHARED.new_schema()}")

    async def write(name: str) -> None:
        while True:
            await saver.aput(config(name), empty_checkpoint(), {}, {})

    writers = [asyncio.create_task(write(name)) for name in NAMES]
    await asyncio.sleep(0.2)
    async with asyncio.timeout(PATIENCE_S):
        await saver.aclose()
        ends = await asyncio.gather(*writers, return_exceptions=True)
    assert {type(end) for end in ends} == {StorageUnavailable}


async def test_closing_that_is_cut_short_goes_on_and_can_be_done_again(url: str) -> None:
    saver = DeltaSaver.open(url)
    await say(saver)
    with locked(url) as lock:
        writing = asyncio.create_task(say(saver))
        await asyncio.sleep(0.1)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(saver.aclose(), 0.1)
        with pytest.raises(StorageUnavailable, match="is closed"):
            await say(saver, "another")
        lock.rollback()
    await writing
    await saver.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    with DeltaSaver.open(url) as again:
        assert len(ThreadChatMessageHistory("t", again).messages) == 2


def test_a_saver_that_another_thread_closes_serves_none_who_comes_later(url: str) -> None:
    saver = DeltaSaver.open(url)
    served: list[str] = []
    closed, begun = threading.Event(), threading.Event()

    async def read_on() -> None:
        with suppress(LangmemExtError):
            while True:
                late = closed.is_set()
                await saver.aget_tuple(config("t"))
                begun.set()
                served.append("late" if late else "in time")

    async def crowd() -> None:
        await asyncio.gather(*(read_on() for _ in range(8)))

    crowding = threading.Thread(target=asyncio.run, args=[crowd()])
    crowding.start()
    begun.wait(PATIENCE_S)
    saver.close()
    closed.set()
    crowding.join(PATIENCE_S)
    assert not crowding.is_alive()
    assert served.count("late") == 0
    assert served.count("in time") > 0


@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # tasks of the pool are destroyed with their loop
@pytest.mark.parametrize("later", ["sync", "async"])
def test_what_an_event_loop_was_writing_when_it_was_closed_can_be_written_by_others(
    later: str, url: str
) -> None:
    with DeltaSaver.open(url) as saver:
        history = ThreadChatMessageHistory("t", saver)
        history.add_messages([HumanMessage("hello")])
        loop = asyncio.new_event_loop()
        loop.set_exception_handler(
            lambda loop, context: None
        )  # what its tasks say as they are let go
        with locked(url) as lock:
            writing = loop.create_task(say(saver))
            loop.run_until_complete(asyncio.sleep(0.3))
            loop.close()
            lock.rollback()
        if later == "sync":
            history.add_messages([HumanMessage("hello again")])
        else:
            asyncio.run(say(saver))
        assert len(history.messages) in (2, 3), "what was sent may be stored"
        del writing, loop
        gc.collect()


async def test_a_sync_call_does_not_wait_for_what_its_own_event_loop_writes(url: str) -> None:
    async with DeltaSaver.from_conn_string(url) as saver:
        await say(saver)
        with locked(url) as lock:
            writing = asyncio.create_task(say(saver))
            await asyncio.sleep(0.2)
            with pytest.raises(StorageUnavailable, match="await the async method"):
                ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("hello")])
            lock.rollback()
        await writing
        assert len(await ThreadChatMessageHistory("t", saver).aget_messages()) == 2
