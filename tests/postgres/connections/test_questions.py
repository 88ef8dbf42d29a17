"""Promise: readers of one event loop that ask at the same time read what each would have read
alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from patience import auntil
from proxy import Proxy

from langmem_ext import DeltaSaver
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


async def test_readers_of_threads_that_nobody_knows_yet_read_them_too(
    saver: DeltaSaver, database: Database, schema: str
) -> None:
    async with DeltaSaver.from_conn_string(f"{database.url}?schema={schema}") as other:
        found = await read_all(other, names=[*NAMES, "nobody"])
        assert [said(one) for one in found[:-1]] == [f"I am {name}" for name in NAMES]
        assert found[-1] is None
        assert found[:-1] == await read_all(saver)


async def test_who_reads_at_the_same_time_sees_what_another_process_has_written(
    saver: DeltaSaver, database: Database, schema: str
) -> None:
    async with DeltaSaver.from_conn_string(f"{database.url}?schema={schema}") as other:
        written = [
            await other.aput(config(name), empty_checkpoint(), {}, {}) for name in NAMES[::3]
        ]
        await other.aput_writes(written[0], [("a", 1)], "task")
    found = await read_all(saver)
    assert [one.config for one in found[::3]] == written
    assert found[0].pending_writes == [("task", "a", 1)]
    assert [said(one) for one in found[1::3]] == [f"I am {name}" for name in NAMES[1::3]]


async def test_one_reader_that_is_cancelled_takes_nothing_from_the_others(
    saver: DeltaSaver, database: Database, schema: str
) -> None:
    with (
        psycopg.connect(database.url, autocommit=True) as other,
        psycopg.connect(database.url) as holder,
    ):
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


async def until_waiting(connection: psycopg.Connection[Any], count: int) -> None:
    """Wait until so many connections wait for a lock."""
    await auntil(lambda: waiting(connection) >= count)


def waiting(connection: psycopg.Connection[Any]) -> int:
    """How many connections wait for a lock."""
    sql = (
        "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname ="
        " current_database()"
    )
    [found] = connection.execute(sql).fetchone() or (0,)
    return int(found)
