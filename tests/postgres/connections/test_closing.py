"""Promise: a closed saver serves nobody any more, closing can be done again where it was cut short,
and a closed loop holds nobody up.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage
from patience import PATIENCE_S
from savers import empty_tables

from langmem_ext import DeltaSaver, LangmemExtError, StorageUnavailable, ThreadChatMessageHistory
from langmem_ext.storage.driver import Job
from langmem_ext.storage.operation import Op, execute, operation
from langmem_ext.storage.postgres.queue import Lineup


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"{empty_tables(tmp_path)}&deadline=240"


def locked(url: str) -> psycopg.Connection[Any]:
    """A transaction of somebody else, who has taken all threads."""
    address, _, options = url.partition("?")
    schema = dict(option.split("=") for option in options.split("&"))["schema"]
    lock = psycopg.connect(address)
    lock.execute(f"SELECT 1 FROM {schema}.thread FOR UPDATE".encode())
    return lock


async def say(saver: DeltaSaver, thread: str = "t") -> None:
    await ThreadChatMessageHistory(thread, saver).aadd_messages([HumanMessage("hello")])


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
    closed = threading.Event()
    begun = threading.Event()

    async def read_on() -> None:
        with suppress(LangmemExtError):
            while True:
                late = closed.is_set()
                await saver.aget_tuple({"configurable": {"thread_id": "t"}})
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
        ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("hello")])
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
            ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("hello again")])
        else:
            asyncio.run(say(saver))
        assert len(ThreadChatMessageHistory("t", saver).messages) in (
            2,
            3,
        ), "what was sent may be stored"
        del writing, loop
        gc.collect()


@operation
def touch_all() -> Op[None]:
    yield from execute("UPDATE thread SET items = items")


async def test_a_sync_call_does_not_wait_for_what_its_own_event_loop_writes_of_many_threads(
    url: str,
) -> None:
    async with DeltaSaver.from_conn_string(url) as saver:
        await say(saver)
        with locked(url) as lock:
            writing = asyncio.create_task(saver.log.arun(touch_all(), write=True))
            await asyncio.sleep(0.2)
            with pytest.raises(StorageUnavailable, match="await the async method"):
                ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("hello")])
            lock.rollback()
        await writing


def test_who_is_stopped_while_others_may_join_keeps_nobody_from_writing(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(lineup: Lineup, wake: Callable[[], None]) -> list[Job[Any]]:
        monkeypatch.undo()
        raise KeyboardInterrupt

    loop = asyncio.new_event_loop()
    with DeltaSaver.open(url) as saver:
        loop.run_until_complete(say(saver))
        monkeypatch.setattr(Lineup, "take_or_call", stop)
        with pytest.raises(KeyboardInterrupt):
            loop.run_until_complete(say(saver))
        loop.run_until_complete(asyncio.wait_for(say(saver), PATIENCE_S))
        loop.run_until_complete(saver.aclose())
    loop.close()
