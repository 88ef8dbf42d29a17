"""Promise: an event loop that goes on keeps its connections at hand, and one that rests gives them
back; whoever asks gets one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any

import anyio
import psycopg
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from patience import PATIENCE_S, auntil, until
from proxy import Proxy

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
    async with DeltaSaver.from_conn_string(
        f"{database.url}?schema={SHARED.new_schema()}&pool_size=1&deadline=240"
    ) as saver:
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
    await auntil(lambda: not pool._at_hand and available(pool) > 0)


async def test_a_connection_is_at_hand_for_a_moment_and_is_given_back_then(
    saver: DeltaSaver,
) -> None:
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

    async with asyncio.timeout(PATIENCE_S / 3):  # less than the deadline
        await write("alone")
        await asyncio.gather(*(write(str(number)) for number in range(4)))


async def test_what_a_writer_that_was_stopped_leaves_waits_for_nobody(
    saver: DeltaSaver, database: Database
) -> None:
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
    async with asyncio.timeout(PATIENCE_S / 3):  # less than the deadline
        await second


async def test_a_saver_that_is_closed_refuses_those_who_go_on_writing(database: Database) -> None:
    saver = DeltaSaver.open(f"{database.url}?schema={SHARED.new_schema()}")

    async def write(name: str) -> None:
        while True:
            await saver.aput(config(name), empty_checkpoint(), {}, {})

    writers = [asyncio.create_task(write(str(number))) for number in range(8)]
    await asyncio.sleep(0.2)
    async with asyncio.timeout(PATIENCE_S):
        await saver.aclose()
        ends = await asyncio.gather(*writers, return_exceptions=True)
    assert {type(end) for end in ends} == {StorageUnavailable}


async def test_one_that_has_ended_at_hand_is_replaced(
    saver: DeltaSaver, database: Database
) -> None:
    await saver.aput(config("t"), empty_checkpoint(), {}, {})
    pool = pool_of(saver)
    [ended] = pool._at_hand
    with psycopg.connect(database.url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", (ended.info.backend_pid,))
    assert await saver.aget_tuple(config("t")) is not None
    assert pool._at_hand != [ended]
    await until_returned(pool)
    assert available(pool) == 1


async def test_of_several_that_were_cut_at_hand_none_is_used_twice(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pools, "_AT_HAND_S", 60.0)
    schema = SHARED.new_schema()
    with Proxy(database.url) as proxy:
        async with DeltaSaver.from_conn_string(
            f"{proxy.url}?schema={schema}&deadline=240"
        ) as saver:
            await saver.aget_tuple(config("t"))
            pool = pool_of(saver)
            lent = [await pool.lend() for _ in range(3)]
            for connection in lent:
                await pool.give_back(connection)
            assert pool._at_hand == lent
            proxy.cut()
            await asyncio.gather(
                *(
                    saver.aput(config(str(number)), empty_checkpoint(), {}, {})
                    for number in range(6)
                )
            )
            assert not set(lent) & set(pool._at_hand)


def connections(database: Database, name: str) -> int:
    """How many an application has."""
    with psycopg.connect(database.url, autocommit=True) as other:
        found = other.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s", (name,)
        ).fetchone()
    assert found is not None
    return int(found[0])


def test_an_event_loop_that_goes_on_after_the_saver_was_closed_makes_no_connection_again(
    database: Database,
) -> None:
    name = SHARED.new_schema()
    saver = DeltaSaver.open(f"{database.url}?schema={name}&application_name={name}")
    with asyncio.Runner() as runner:
        runner.run(saver.aput(config("t"), empty_checkpoint(), {}, {}))
        assert connections(database, name) == 1
        saver.close()
        runner.run(asyncio.sleep(2 * MOMENT_S))
        until(lambda: connections(database, name) == 0)


def test_an_event_loop_that_ends_with_a_connection_at_hand_leaves_nothing_open(
    database: Database,
) -> None:
    name = SHARED.new_schema()

    async def read(saver: DeltaSaver) -> int:
        await saver.aget_tuple(config("t"))
        return await asyncio.to_thread(connections, database, name)

    with DeltaSaver.open(f"{database.url}?schema={name}&application_name={name}") as saver:
        for _ in range(2):
            assert asyncio.run(read(saver)) == 1
            until(
                lambda: connections(database, name) == 0
            )  # a server's process takes a moment to end


async def test_who_is_cancelled_as_a_connection_comes_is_cancelled(
    saver: DeltaSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """psycopg's pool may keep that to itself, as `asyncio.wait_for` does before Python 3.12.

    What it was told tells whose it is.
    """
    await saver.aput(config("t"), empty_checkpoint(), {}, {})
    await until_returned(pool_of(saver))
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
        reading.cancel("by so and so")
        with pytest.raises(asyncio.CancelledError, match="by so and so"):
            await reading
    assert pool_of(saver).lent == 0
    assert await saver.aget_tuple(config("t")) is not None


async def listed(saver: DeltaSaver) -> int:
    """Reads on a connection of its own."""
    return len([one async for one in saver.alist(config("t"))])


@pytest.mark.parametrize("turns", range(5))
async def test_a_scope_of_anyio_that_is_cancelled_as_a_connection_comes_catches_that(
    saver: DeltaSaver, turns: int
) -> None:
    await saver.aput(config("t"), empty_checkpoint(), {}, {})
    pool, scope = pool_of(saver), anyio.CancelScope()

    async def read() -> None:
        with scope:
            await listed(saver)

    held = await pool.lend()
    reading = asyncio.create_task(read())
    await asyncio.sleep(0.05)
    await pool.give_back(held)
    for _ in range(turns):
        await asyncio.sleep(0)
    scope.cancel()
    await reading
    assert scope.cancelled_caught
    assert await listed(saver) == 1


async def test_a_reader_that_is_cancelled_as_it_gives_its_connection_back_loses_none(
    saver: DeltaSaver,
) -> None:
    await saver.aput(config("t"), empty_checkpoint(), {}, {})
    pool = pool_of(saver)
    first, second = (
        asyncio.create_task(listed(saver)),
        asyncio.create_task(listed(saver)),
    )  # who waits is given it by psycopg's pool
    await asyncio.sleep(0)
    async with pool._pool._lock:  # as the pool has it itself while it serves others
        while pool.lent:
            await asyncio.sleep(0.001)
        first.cancel()
        await asyncio.wait([first])
        assert first.cancelled()
    assert await second == 1
    assert pool.lent == 0


@pytest.mark.parametrize("how", ["at rest", "looked at"])
async def test_connections_that_are_going_back_arrive_whoever_is_cancelled(
    database: Database, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    async with DeltaSaver.from_conn_string(
        f"{database.url}?schema={SHARED.new_schema()}&pool_size=3&deadline=240"
    ) as saver:
        await saver.aput(config("t"), empty_checkpoint(), {}, {})
        pool = pool_of(saver)
        lent = [await pool.lend() for _ in range(3)]
        for connection in lent:
            await pool.give_back(connection)
        looked = asyncio.Event()
        aprobe = pools.aprobe

        async def look(connection: psycopg.AsyncConnection[Any], *, deadline: float) -> None:
            await aprobe(connection, deadline=deadline)
            if available(pool) == 0:
                looked.set()

        monkeypatch.setattr(pools, "aprobe", look)
        going = asyncio.create_task(pool._return() if how == "at rest" else pool.check())
        if how == "looked at":
            await looked.wait()
        async with pool._pool._lock:
            await asyncio.sleep(0.1)
            going.cancel()
            await asyncio.wait([going])
            assert going.cancelled()
            assert available(pool) == 0
        again = [await pool.lend() for _ in range(3)]
        assert {*again} == {*lent}
        for connection in again:
            await pool.give_back(connection)


async def test_a_saver_that_is_closed_waits_for_connections_that_are_going_back(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    saver = DeltaSaver.open(f"{database.url}?schema={SHARED.new_schema()}")
    await saver.aput(config("t"), empty_checkpoint(), {}, {})
    pool, ended = pool_of(saver), list[bool]()
    putconn = pool._pool.putconn

    async def late(connection: Any) -> None:
        await asyncio.sleep(0.2)
        await putconn(connection)
        ended.append(connection.closed)

    monkeypatch.setattr(pool._pool, "putconn", late)
    going = asyncio.create_task(pool._return())
    await asyncio.sleep(0)
    going.cancel()
    await saver.aclose()
    assert ended == [True]
