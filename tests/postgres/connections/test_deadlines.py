"""Promise: nobody waits for ever.

What takes longer than the URL allows is one clear error, and what follows goes well.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from patience import PATIENCE_S
from proxy import Proxy
from savers import Calls, Mode, run_without_loop

from langmem_ext import DeltaSaver, StorageUnavailable
from postgres.bouncer import Bouncer
from postgres.server import SHARED, Database

SILENCE = 3600.0
AT_ONCE = 60.0
"""Seconds: far below a silence, far above what a busy machine makes of a deadline."""
CONFIG: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


@pytest.fixture
def schema() -> str:
    return SHARED.new_schema()


@contextmanager
def locked(database: Database, schema: str) -> Iterator[None]:
    """As long as it lasts, every statement waits."""
    with psycopg.connect(database.url) as connection:
        connection.execute(
            f"LOCK {schema}.checkpoint, {schema}.pending_write, {schema}.thread IN ACCESS EXCLUSIVE"
            " MODE".encode()
        )
        yield
        connection.rollback()


@contextmanager
def nobody_answers(*, accepts: bool) -> Iterator[int]:
    """The port of a host that takes connections and says nothing, or does not even take them."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(8 if accepts else 0)
        port: int = listening.getsockname()[1]
        waiting = [socket.socket() for _ in range(0 if accepts else 4)]
        for one in waiting:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        yield port
        for one in waiting:
            one.close()


def put(saver: DeltaSaver, name: str) -> RunnableConfig:
    """The config of a first checkpoint."""
    return saver.put(
        {"configurable": {"thread_id": name, "checkpoint_ns": ""}}, empty_checkpoint(), {}, {}
    )


def writes(saver: DeltaSaver, config: RunnableConfig) -> list[Any]:
    found = saver.get_tuple(config)
    assert found is not None
    return [value for _, _, value in found.pending_writes or []]


def run(
    story: Callable[[DeltaSaver, Calls], Coroutine[Any, Any, None]], url: str, mode: Mode
) -> None:
    """Let a story happen to a saver, in a mode."""
    with DeltaSaver.open(url) as saver:
        if mode == "sync":
            run_without_loop(story(saver, Calls(mode)))
        else:
            asyncio.run(_told_and_closed(story, saver))


async def _told_and_closed(
    story: Callable[[DeltaSaver, Calls], Coroutine[Any, Any, None]], saver: DeltaSaver
) -> None:
    # Of an event loop that ends while psycopg's pool makes a connection, that attempt would have to
    # be waited for.
    try:
        await story(saver, Calls("async"))
    finally:
        await saver.aclose()


def seconds_until_refused(work: Any, told: str) -> float:
    begun = time.monotonic()
    with pytest.raises(StorageUnavailable, match=told):
        work()
    return time.monotonic() - begun


# -- connections -----------------------------------------------------------------------------------


@pytest.mark.parametrize("accepts", [True, False], ids=["silent", "unreachable"])
def test_a_host_that_does_not_answer_is_an_error_after_the_deadline(accepts: bool) -> None:
    with nobody_answers(accepts=accepts) as port:
        url = f"postgresql://me:secret-word@127.0.0.1:{port}/shop?deadline=1"
        assert (
            seconds_until_refused(
                lambda: DeltaSaver.open(url), "PostgreSQL database shop .* cannot be reached"
            )
            < AT_ONCE
        )


async def test_of_operations_that_meet_no_server_together_each_one_is_refused(
    database: Database, schema: str
) -> None:
    with Proxy(database.url) as proxy:
        saver = await asyncio.to_thread(DeltaSaver.open, f"{proxy.url}?schema={schema}&deadline=2")
        configs = [
            await saver.aput(
                {"configurable": {"thread_id": f"t{at}", "checkpoint_ns": ""}},
                empty_checkpoint(),
                {},
                {},
            )
            for at in range(5)
        ]
    for _ in range(2):  # the first finds connections that have ended, the second none
        begun = time.monotonic()
        ends = await asyncio.gather(
            *(saver.aput_writes(config, [("a", 1)], "task") for config in configs),
            return_exceptions=True,
        )
        assert [type(end) for end in ends] == [StorageUnavailable] * 5
        assert "cannot be reached (no connection within 2 s" in str(ends[0])
        assert time.monotonic() - begun < AT_ONCE
    await saver.aclose()


async def test_a_pool_that_two_hundred_tasks_exhaust_refuses_in_time_and_serves_again(
    database: Database, schema: str
) -> None:
    # What goes well at the end waits for a connection too, on a machine that may be busy: the
    # deadline is many times what that takes.
    async with DeltaSaver.from_conn_string(
        f"{database.url}?schema={schema}&pool_size=2&deadline=3"
    ) as saver:
        configs = [await asyncio.to_thread(put, saver, f"t{at}") for at in range(100)]
        await asyncio.gather(
            *(saver.aget_tuple(config) for config in configs[:10])
        )  # the connections are made
        with locked(database, schema):
            reads = [asyncio.create_task(saver.aget_tuple(config)) for config in configs]
            await asyncio.sleep(0.1)
            stores = [
                asyncio.create_task(saver.aput_writes(config, [("a", 1)], "task"))
                for config in configs
            ]
            # Each of both connections has a reader, which waits for the lock.
            under_way, waiting, late = 2, {*reads, *stores}, time.monotonic() + PATIENCE_S
            while len(waiting) > under_way and time.monotonic() < late:
                _, waiting = await asyncio.wait(
                    waiting, timeout=1, return_when=asyncio.FIRST_COMPLETED
                )
            refused = [task.exception() for task in (*reads, *stores) if task.done()]
            assert len(refused) == 200 - under_way
            assert all(
                "all 2 connections to the PostgreSQL database" in str(error) for error in refused
            )
        await asyncio.gather(*reads, *stores, return_exceptions=True)
        stored = [bool(await asyncio.to_thread(writes, saver, config)) for config in configs]
        assert stored == [task.exception() is None for task in stores]
        await asyncio.gather(*(saver.aput_writes(config, [("a", 1)], "task") for config in configs))


# -- answers ---------------------------------------------------------------------------------------


def test_a_server_that_falls_silent_is_an_error_and_is_used_again_once_it_speaks(
    database: Database, schema: str, mode: Mode
) -> None:
    async def story(saver: DeltaSaver, calls: Calls) -> None:
        config = await calls.call(saver, "put", CONFIG, empty_checkpoint(), {}, {})
        for name, *arguments in (("get_tuple", config), ("put_writes", config, [("a", 1)], "task")):
            proxy.set_delay(SILENCE)
            begun = time.monotonic()
            with pytest.raises(StorageUnavailable, match=r"has not answered within 2 s"):
                await calls.call(saver, name, *arguments)
            assert time.monotonic() - begun < AT_ONCE
            proxy.set_delay(0)
            assert await calls.call(saver, "get_tuple", config) is not None
        await calls.call(saver, "put_writes", config, [("b", 2)], "another")
        found = await calls.call(saver, "get_tuple", config)
        assert [value for _, _, value in found.pending_writes] == [2]

    with Proxy(database.url) as proxy:
        run(story, f"{proxy.url}?schema={schema}&answer_deadline=2", mode)


@pytest.mark.parametrize("pooled", [False, True], ids=["direct", "pooled"])
def test_what_takes_too_long_is_stopped_and_has_changed_nothing(
    database: Database, schema: str, mode: Mode, pooled: bool
) -> None:
    async def story(saver: DeltaSaver, calls: Calls) -> None:
        config = await calls.call(saver, "put", CONFIG, empty_checkpoint(), {}, {})
        with locked(database, schema):
            for name, *arguments in (
                ("get_tuple", config),
                ("put_writes", config, [("a", 1)], "task"),
            ):
                with pytest.raises(StorageUnavailable, match="answer_deadline in the URL"):
                    await calls.call(saver, name, *arguments)
        found = await calls.call(saver, "get_tuple", config)
        assert found.pending_writes == []
        await calls.call(saver, "put_writes", config, [("a", 1)], "task")

    options = {"schema": schema, "answer_deadline": 2}
    if not pooled:
        run(story, f"{database.url}?{urlencode(options)}", mode)
        return
    with Bouncer(database.url) as bouncer:
        run(
            story,
            f"{bouncer.url}?{urlencode(options | {'prepare': 'off', 'direct': database.url})}",
            mode,
        )
