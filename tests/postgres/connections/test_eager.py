"""Promise: an event loop whose tasks begin as they are made (`asyncio.eager_task_factory`) is
served as any other.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from patience import PATIENCE_S
from proxy import Proxy

from langmem_ext import DeltaSaver
from postgres.connections.eager import EAGER
from postgres.server import SHARED, Database

NAMES = [f"t{number}" for number in range(20)]
CONNECTIONS = 3


@pytest.fixture
def proxy(database: Database) -> Any:
    with Proxy(database.url) as proxy:
        yield proxy


@pytest.fixture
async def saver(proxy: Proxy) -> AsyncIterator[DeltaSaver]:
    """A saver on an event loop with such tasks, which knows twenty threads."""
    asyncio.get_running_loop().set_task_factory(EAGER)
    url = f"{proxy.url}?schema={SHARED.new_schema()}&deadline=240&pool_size={CONNECTIONS}"
    async with DeltaSaver.from_conn_string(url) as saver:
        await asyncio.gather(
            *(
                saver.aput(config(name), empty_checkpoint(), {"step": at}, {})
                for at, name in enumerate(NAMES)
            )
        )
        yield saver


def config(name: str) -> RunnableConfig:
    return {"configurable": {"thread_id": name, "checkpoint_ns": ""}}


async def read_all(saver: DeltaSaver, *, names: list[str] = NAMES) -> list[Any]:
    async with asyncio.timeout(PATIENCE_S):
        return await asyncio.gather(*(saver.aget_tuple(config(name)) for name in names))


def steps(found: list[Any]) -> list[int]:
    return [one.metadata["step"] for one in found]


async def test_a_task_begins_as_it_is_made() -> None:
    order = list[str]()

    async def work() -> str:
        order.append("begun")
        await asyncio.sleep(0)
        order.append("ended")
        return "value"

    asyncio.get_running_loop().set_task_factory(EAGER)
    task = asyncio.create_task(work())
    order.append("made")
    assert await task == "value"
    assert order == ["begun", "made", "ended"]


async def test_a_reader_beside_another_is_answered(saver: DeltaSaver) -> None:
    driver: Any = saver.log.driver
    pool = driver._latest.pool
    connection = await pool.lend()
    [found] = await read_all(saver, names=["t1"])
    await pool.give_back(connection)
    assert steps([found]) == [1]


async def test_writers_use_as_many_connections_as_they_may(saver: DeltaSaver) -> None:
    driver: Any = saver.log.driver
    lane, used = driver._latest, list[int]()
    store = lane._store

    async def counting(lane: Any, jobs: Any) -> None:
        used.append(len(lane._flushers))
        await store(lane, jobs)

    lane._store = counting
    for round_ in range(3):
        stored = [
            saver.aput(config(name), empty_checkpoint(), {"step": at + round_}, {})
            for at, name in enumerate(NAMES)
        ]
        await asyncio.gather(*stored)
    assert 1 <= min(used) <= max(used) <= CONNECTIONS
    found = await read_all(saver)
    assert steps(found) == [*range(2, 22)]
