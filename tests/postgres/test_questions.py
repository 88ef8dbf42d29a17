"""Promise: readers of one event loop that ask at the same time share a trip, and each of them reads what it would have read alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from patience import PATIENCE_S, auntil

from benchmarks.proxy import Proxy
from langmem_ext import DeltaSaver, StorageUnavailable
from langmem_ext.storage.postgres import questions
from langmem_ext.storage.postgres.server import NoAnswer
from postgres.hot_path import desk
from postgres.server import SHARED, Database

NAMES = [f"t{number}" for number in range(20)]


@pytest.fixture
def schema() -> str:
    return SHARED.new_schema()


@pytest.fixture
def proxy(database: Database) -> Any:
    with Proxy(database.url) as proxy:
        yield proxy


@pytest.fixture
async def saver(proxy: Proxy, schema: str) -> AsyncIterator[DeltaSaver]:
    """A saver that knows twenty threads, and has a connection at hand."""
    async with DeltaSaver.from_conn_string(f"{proxy.url}?schema={schema}&deadline=240") as saver:
        await say_to_all(saver)
        await read_all(saver)
        yield saver


def config(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name, "checkpoint_ns": ""}}


async def say_to_all(saver: DeltaSaver, *, names: list[str] = NAMES) -> None:
    graph = desk(saver)
    for name in names:
        await graph.ainvoke({"messages": [("user", f"I am {name}")]}, config(name))


async def read_all(saver: DeltaSaver, *, names: list[str] = NAMES) -> list[Any]:
    return await asyncio.gather(*(saver.aget_tuple(config(name)) for name in names))


def said(found: Any) -> str:
    """The first words of a thread's conversation."""
    text: str = found.checkpoint["channel_values"]["messages"][0].text
    return text


async def test_readers_share_a_trip_and_each_reads_its_own_thread(saver: DeltaSaver, proxy: Proxy) -> None:
    before = proxy.counts()
    found = await read_all(saver)
    assert (proxy.counts() - before).trips == 2  # who comes first goes at once, the others together
    assert [said(one) for one in found] == [f"I am {name}" for name in NAMES]
    assert found == [await saver.aget_tuple(config(name)) for name in NAMES]


async def test_more_readers_than_a_trip_takes_need_another(saver: DeltaSaver, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "TOGETHER", 4)
    before = proxy.counts()
    found = await read_all(saver)
    assert (proxy.counts() - before).trips == 1 + 5  # nineteen, by fours
    assert [said(one) for one in found] == [f"I am {name}" for name in NAMES]


async def test_readers_of_threads_that_nobody_knows_yet_share_a_trip_too(saver: DeltaSaver, database: Database, schema: str) -> None:
    async with DeltaSaver.from_conn_string(f"{database.url}?schema={schema}") as other:
        found = await read_all(other, names=[*NAMES, "nobody"])
        assert [said(one) for one in found[:-1]] == [f"I am {name}" for name in NAMES]
        assert found[-1] is None
        assert found[:-1] == await read_all(saver)


async def test_who_shares_a_trip_sees_what_another_process_has_written(saver: DeltaSaver, database: Database, schema: str) -> None:
    async with DeltaSaver.from_conn_string(f"{database.url}?schema={schema}") as other:
        written = [await other.aput(config(name), empty_checkpoint(), {}, {}) for name in NAMES[::3]]
        await other.aput_writes(written[0], [("a", 1)], "task")
    found = await read_all(saver)
    assert [one.config for one in found[::3]] == written
    assert found[0].pending_writes == [("task", "a", 1)]
    assert [said(one) for one in found[1::3]] == [f"I am {name}" for name in NAMES[1::3]]


async def test_readers_whose_connection_breaks_ask_again_alone(saver: DeltaSaver, database: Database, schema: str) -> None:
    with psycopg.connect(database.url, autocommit=True) as other:
        holder = psycopg.connect(database.url)
        holder.execute(f"LOCK {schema}.checkpoint IN ACCESS EXCLUSIVE MODE".encode())
        reading = asyncio.create_task(read_all(saver))
        await until_waiting(other, 2)
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        await asyncio.to_thread(holder.close)
        found = await reading
    assert [said(one) for one in found] == [f"I am {name}" for name in NAMES]


async def test_one_reader_that_is_cancelled_takes_nothing_from_the_others(saver: DeltaSaver, database: Database, schema: str) -> None:
    with psycopg.connect(database.url, autocommit=True) as other, psycopg.connect(database.url) as holder:
        holder.execute(f"LOCK {schema}.checkpoint IN ACCESS EXCLUSIVE MODE".encode())
        readers = [asyncio.create_task(saver.aget_tuple(config(name))) for name in NAMES]
        await until_waiting(other, 2)
        readers[7].cancel()
        await asyncio.sleep(0)
        holder.rollback()
        found = await asyncio.gather(*readers, return_exceptions=True)
    assert isinstance(found.pop(7), asyncio.CancelledError)
    assert [said(one) for one in found] == [f"I am {name}" for name in NAMES if name != "t7"]
    assert [said(one) for one in await read_all(saver)] == [f"I am {name}" for name in NAMES]


async def test_a_trip_that_nobody_waits_for_any_more_is_stopped_on_the_server(saver: DeltaSaver, database: Database, schema: str) -> None:
    with psycopg.connect(database.url, autocommit=True) as other, psycopg.connect(database.url) as holder:
        holder.execute(f"LOCK {schema}.checkpoint IN ACCESS EXCLUSIVE MODE".encode())
        first, *sharing = [asyncio.create_task(saver.aget_tuple(config(name))) for name in NAMES]
        await until_waiting(other, 2)
        for reader in sharing[:-1]:
            reader.cancel()
        await asyncio.wait(sharing[:-1])
        await asyncio.sleep(0.2)
        assert waiting(other) == 2  # the last one is still to be answered
        sharing[-1].cancel()
        await auntil(lambda: waiting(other) <= 1)
        again = asyncio.create_task(saver.aget_tuple(config("t1")))
        await until_waiting(other, 2)
        holder.rollback()
        assert [said(await reader) for reader in (first, again)] == ["I am t0", "I am t1"]
    assert {reader.cancelled() for reader in sharing} == {True}
    assert [said(one) for one in await read_all(saver)] == [f"I am {name}" for name in NAMES]


async def test_whoever_still_waits_for_a_trip_is_answered(saver: DeltaSaver, database: Database, schema: str) -> None:
    with psycopg.connect(database.url, autocommit=True) as other, psycopg.connect(database.url) as holder:
        holder.execute(f"LOCK {schema}.checkpoint IN ACCESS EXCLUSIVE MODE".encode())
        readers = {name: asyncio.create_task(saver.aget_tuple(config(name))) for name in NAMES}
        await until_waiting(other, 2)
        for name in NAMES[1:-1]:
            readers[name].cancel()
        await asyncio.sleep(0.1)
        holder.rollback()
        assert [said(await readers[name]) for name in ("t0", "t19")] == ["I am t0", "I am t19"]


async def test_who_joins_a_trip_that_all_others_have_left_before_it_began_is_answered(saver: DeltaSaver) -> None:
    first, second = (asyncio.create_task(saver.aget_tuple(config(name))) for name in ("t0", "t1"))
    await asyncio.sleep(0)
    second.cancel()  # it has planned a trip, which begins in the turn that comes
    third = asyncio.create_task(saver.aget_tuple(config("t2")))
    async with asyncio.timeout(PATIENCE_S):
        assert [said(await reader) for reader in (first, third)] == ["I am t0", "I am t2"]
    assert second.cancelled()


async def test_who_comes_after_a_trip_that_was_cancelled_before_it_began_goes_with_another(
    saver: DeltaSaver, database: Database, schema: str
) -> None:
    with psycopg.connect(database.url) as holder:
        holder.execute(f"LOCK {schema}.checkpoint IN ACCESS EXCLUSIVE MODE".encode())
        others = asyncio.all_tasks()
        readers = [asyncio.create_task(saver.aget_tuple(config(name))) for name in NAMES]
        await asyncio.sleep(0)
        [trip] = asyncio.all_tasks() - others - set(readers)
        trip.cancel()
        readers[7].cancel()  # as where an event loop ends, which cancels all; and some read while they clean up
        await asyncio.sleep(0)
        later = [asyncio.create_task(saver.aget_tuple(config(name))) for name in NAMES]
        await asyncio.sleep(0.1)
        holder.rollback()
        async with asyncio.timeout(PATIENCE_S):
            ends = await asyncio.gather(*readers, return_exceptions=True)
            found = await asyncio.gather(*later)
    assert said(ends[0]) == "I am t0"  # it went by itself
    assert isinstance(ends.pop(7), asyncio.CancelledError)
    assert {type(end) for end in ends[1:]} == {StorageUnavailable}
    assert [said(one) for one in found] == [f"I am {name}" for name in NAMES]


async def test_readers_of_a_silent_server_are_refused_in_time(database: Database, proxy: Proxy, schema: str) -> None:
    async with DeltaSaver.from_conn_string(f"{proxy.url}?schema={schema}&deadline=3&answer_deadline=3") as saver:
        await say_to_all(saver)
        with psycopg.connect(database.url) as holder:
            holder.execute(f"LOCK {schema}.checkpoint IN ACCESS EXCLUSIVE MODE".encode())
            async with asyncio.timeout(PATIENCE_S):
                ends = await asyncio.gather(*(saver.aget_tuple(config(name)) for name in NAMES), return_exceptions=True)
        assert {type(end) for end in ends} == {StorageUnavailable}
        assert [said(one) for one in await read_all(saver)] == [f"I am {name}" for name in NAMES]


@pytest.mark.parametrize("option", ["answer_deadline=1", "options=-c%20statement_timeout%3D1000"])
async def test_a_reader_that_takes_too_long_fails_nobody_else(database: Database, schema: str, option: str) -> None:
    # Nothing is prepared: a plan for any thread would have to wait for a lock on one partition, whichever thread is read.
    url = f"{database.url}?schema={schema}&partitions=4&prepare=off"
    async with DeltaSaver.from_conn_string(url) as saver:
        await say_to_all(saver)
    with psycopg.connect(database.url) as holder:
        sql = f"SELECT t.id, c.tableoid::regclass::text FROM {schema}.checkpoint AS c JOIN {schema}.thread AS t ON t.number = c.thread"
        places: dict[str, str] = dict(holder.execute(sql.encode()).fetchall())
        slow = [name for name in NAMES if places[name] == places["t0"]]
        async with DeltaSaver.from_conn_string(f"{url}&{option}") as saver:
            await read_all(saver)
            holder.execute(f"LOCK {places['t0']} IN ACCESS EXCLUSIVE MODE".encode())
            ends = await beside_another(saver)
            holder.rollback()
            assert [said(one) for one in await read_all(saver)] == [f"I am {name}" for name in NAMES]
    assert 0 < len(slow) < len(NAMES)
    for name, end in ends.items():
        if name in slow:
            assert isinstance(end, StorageUnavailable)
            assert "it took longer than" in str(end)
        else:
            assert said(end) == f"I am {name}"


async def test_readers_whose_server_is_silent_do_not_ask_again(saver: DeltaSaver, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    async def silent(commands: Any) -> Any:
        raise NoAnswer

    driver: Any = saver.log.driver
    monkeypatch.setattr(driver._latest.questions, "_exchange", silent)
    before = proxy.counts()
    ends = await beside_another(saver)
    assert {type(end) for end in ends.values()} == {StorageUnavailable}
    assert "has not answered" in str(ends["t0"])
    assert (proxy.counts() - before).trips == 0


async def beside_another(saver: DeltaSaver) -> dict[str, Any]:
    """What all readers come to that share a trip, as another caller uses a connection."""
    driver: Any = saver.log.driver
    pool = driver._latest.pool
    connection = await pool.lend()
    try:
        return dict(
            zip(NAMES, await asyncio.gather(*(saver.aget_tuple(config(name)) for name in NAMES), return_exceptions=True), strict=True)
        )
    finally:
        await pool.give_back(connection)


async def test_a_saver_that_is_closed_lets_those_finish_who_share_a_trip(database: Database, schema: str) -> None:
    saver = DeltaSaver.open(f"{database.url}?schema={schema}")
    await say_to_all(saver)
    await read_all(saver)
    with psycopg.connect(database.url, autocommit=True) as other, psycopg.connect(database.url) as holder:
        holder.execute(f"LOCK {schema}.checkpoint IN ACCESS EXCLUSIVE MODE".encode())
        readers = [asyncio.create_task(saver.aget_tuple(config(name))) for name in NAMES]
        await until_waiting(other, 2)
        closing = asyncio.create_task(saver.aclose())
        await asyncio.sleep(0.1)
        holder.rollback()
        found = await asyncio.gather(*readers)
        async with asyncio.timeout(PATIENCE_S):
            await closing
    assert [said(one) for one in found] == [f"I am {name}" for name in NAMES]


async def until_waiting(connection: psycopg.Connection[Any], count: int) -> None:
    """Wait until so many connections wait for a lock."""
    await auntil(lambda: waiting(connection) >= count)


def waiting(connection: psycopg.Connection[Any]) -> int:
    """How many connections wait for a lock."""
    sql = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    [found] = connection.execute(sql).fetchone() or (0,)
    return int(found)
