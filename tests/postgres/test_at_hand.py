"""Promise: an event loop that goes on keeps its connections at hand, and one that rests gives them back; whoever asks gets one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint

from benchmarks.proxy import Proxy
from langmem_ext import DeltaSaver, StorageUnavailable
from langmem_ext.storage.postgres import pool as pools
from postgres.server import SHARED, Database

MOMENT_S = 0.5


@pytest.fixture(autouse=True)
def moment(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection is kept for less time than a test takes."""
    monkeypatch.setattr(pools, "_AT_HAND_S", MOMENT_S)


@pytest.fixture
async def saver(database: Database) -> AsyncIterator[DeltaSaver]:
    """A saver with a single connection for each event loop."""
    async with DeltaSaver.from_conn_string(f"{database.url}?schema={SHARED.new_schema()}&pool_size=1&deadline=5") as saver:
        yield saver


def config(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name, "checkpoint_ns": ""}}


def pool_of(saver: DeltaSaver) -> pools.AsyncPool:
    driver: Any = saver.log.driver
    pool: pools.AsyncPool = driver._lanes[asyncio.get_running_loop()].pool
    return pool


def available(pool: pools.AsyncPool) -> int:
    """How many connections psycopg's own pool has."""
    found: int = pool._pool.get_stats().get("pool_available", 0)
    return found


async def until_returned(pool: pools.AsyncPool) -> None:
    """Wait until nothing is at hand any more."""
    async with asyncio.timeout(5):
        while pool._at_hand or available(pool) == 0:
            await asyncio.sleep(MOMENT_S / 50)


async def test_a_connection_is_at_hand_for_a_moment_and_is_given_back_then(saver: DeltaSaver) -> None:
    await saver.aget_tuple(config("t"))
    pool = pool_of(saver)
    [first] = pool._at_hand
    assert available(pool) == 0
    await saver.aput(config("t"), empty_checkpoint(), {}, {})
    assert pool._at_hand == [first]
    await until_returned(pool)
    assert pool.lent == 0
    await saver.aget_tuple(config("t"))
    assert pool._at_hand == [first]


async def test_whoever_waits_for_the_only_connection_gets_it(saver: DeltaSaver) -> None:
    names = [str(number) for number in range(8)]
    await asyncio.gather(*(saver.aput(config(name), empty_checkpoint(), {}, {}) for name in names))
    found = await asyncio.gather(*(saver.aget_tuple(config(name)) for name in names))
    assert None not in found
    assert pool_of(saver).lent == 0


async def test_who_writes_again_at_once_waits_for_nobody(saver: DeltaSaver) -> None:
    async def write(name: str) -> None:
        for _ in range(20):
            await saver.aput(config(name), empty_checkpoint(), {}, {})

    async with asyncio.timeout(4):  # less than the deadline
        await write("alone")
        await asyncio.gather(*(write(str(number)) for number in range(4)))


async def test_what_a_writer_that_was_stopped_leaves_waits_for_nobody(saver: DeltaSaver, database: Database) -> None:
    stored = await saver.aput(config("t"), empty_checkpoint(), {}, {})
    driver: Any = saver.log.driver
    lane = driver._lanes[asyncio.get_running_loop()]
    with psycopg.connect(database.url) as other:
        schema = driver.server.schema
        other.execute(f"LOCK {schema}.thread IN ACCESS EXCLUSIVE MODE".encode())
        first = asyncio.create_task(saver.aput_writes(stored, [("a", 1)], "first"))
        await asyncio.sleep(0.1)
        second = asyncio.create_task(saver.aput_writes(stored, [("a", 2)], "second"))
        await asyncio.sleep(0.1)
        [flusher] = lane._flushers
        flusher.cancel()
        await asyncio.sleep(0.1)
        other.rollback()
    with pytest.raises(StorageUnavailable, match="interrupted"):
        await first
    async with asyncio.timeout(3):  # less than the deadline
        await second


async def test_a_saver_that_is_closed_refuses_those_who_go_on_writing(database: Database) -> None:
    saver = DeltaSaver.open(f"{database.url}?schema={SHARED.new_schema()}")

    async def write(name: str) -> None:
        while True:
            await saver.aput(config(name), empty_checkpoint(), {}, {})

    writers = [asyncio.create_task(write(str(number))) for number in range(8)]
    await asyncio.sleep(0.2)
    async with asyncio.timeout(5):
        await saver.aclose()
        ends = await asyncio.gather(*writers, return_exceptions=True)
    assert {type(end) for end in ends} == {StorageUnavailable}


async def test_one_that_has_ended_at_hand_is_replaced(saver: DeltaSaver, database: Database) -> None:
    await saver.aput(config("t"), empty_checkpoint(), {}, {})
    pool = pool_of(saver)
    [ended] = pool._at_hand
    with psycopg.connect(database.url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (ended.info.backend_pid,))
    assert await saver.aget_tuple(config("t")) is not None
    assert pool._at_hand != [ended]
    await until_returned(pool)
    assert available(pool) == 1


async def test_of_several_that_were_cut_at_hand_none_is_used_twice(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pools, "_AT_HAND_S", 60.0)
    schema = SHARED.new_schema()
    with Proxy(database.url) as proxy:
        async with DeltaSaver.from_conn_string(f"{proxy.url}?schema={schema}&deadline=5") as saver:
            await saver.aget_tuple(config("t"))
            pool = pool_of(saver)
            lent = [await pool.lend() for _ in range(3)]
            for connection in lent:
                await pool.give_back(connection)
            assert pool._at_hand == lent
            proxy.cut()
            await asyncio.gather(*(saver.aput(config(str(number)), empty_checkpoint(), {}, {}) for number in range(6)))
            assert not set(lent) & set(pool._at_hand)


def connections(database: Database, name: str) -> int:
    """How many an application has."""
    with psycopg.connect(database.url, autocommit=True) as other:
        found = other.execute("SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", (name,)).fetchone()
    assert found is not None
    return int(found[0])


def test_an_event_loop_that_goes_on_after_the_saver_was_closed_makes_no_connection_again(database: Database) -> None:
    name = SHARED.new_schema()
    saver = DeltaSaver.open(f"{database.url}?schema={name}&application_name={name}")
    with asyncio.Runner() as runner:
        runner.run(saver.aput(config("t"), empty_checkpoint(), {}, {}))
        assert connections(database, name) == 1
        saver.close()
        runner.run(asyncio.sleep(2 * MOMENT_S))
        assert connections(database, name) == 0


def test_an_event_loop_that_ends_with_a_connection_at_hand_leaves_nothing_open(database: Database) -> None:
    name = SHARED.new_schema()

    async def read(saver: DeltaSaver) -> int:
        await saver.aget_tuple(config("t"))
        return await asyncio.to_thread(connections, database, name)

    with DeltaSaver.open(f"{database.url}?schema={name}&application_name={name}") as saver:
        for _ in range(2):
            assert asyncio.run(read(saver)) == 1
            assert connections(database, name) == 0


async def test_who_is_cancelled_as_a_connection_comes_is_cancelled(saver: DeltaSaver, monkeypatch: pytest.MonkeyPatch) -> None:
    """psycopg's pool may keep that to itself, as `asyncio.wait_for` does before Python 3.12."""
    await saver.aput(config("t"), empty_checkpoint(), {}, {})
    await asyncio.sleep(2 * MOMENT_S)  # the pool has it back
    pool = pool_of(saver)._pool
    getconn = pool.getconn

    async def deaf(timeout: float | None = None) -> Any:
        connection = await getconn(timeout)
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(5)
        return connection

    with monkeypatch.context() as patch:
        patch.setattr(pool, "getconn", deaf)
        reading = asyncio.create_task(saver.aget_tuple(config("t")))
        await asyncio.sleep(0.1)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    assert pool_of(saver).lent == 0
    assert await saver.aget_tuple(config("t")) is not None
