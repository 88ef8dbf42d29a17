"""Tasks of one line are done in the order in which they were taken, each once."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from patience import auntil
from postgres.server import SHARED, Database

from langmem_ext import DeltaSaver, DeltaStore
from langmem_ext.server import StoreQueue, Task


async def worked_off(queue: StoreQueue, tasks: list[Task]) -> None:
    async def over() -> bool:
        states = [await queue.get(task.id) for task in tasks]
        return all(state is not None and state.is_over for state in states)

    await auntil(over)


async def test_what_two_processes_take_at_once_is_all_done_and_a_known_task_not_again(
    url: str,
) -> None:
    done: list[str] = []

    async def note(task: Task) -> None:
        done.append(task.id)

    async with DeltaSaver.from_conn_string(url) as one, DeltaSaver.from_conn_string(url) as other:
        here, there = (StoreQueue(DeltaStore(saver), saver.log, note) for saver in (one, other))
        tasks = [Task("NOTE", {}, line="t") for _ in range(13)]
        puts = [(here, there)[at % 2].put(task) for at, task in enumerate(tasks[1:])]
        await asyncio.gather(*puts)
        here.start()
        await worked_off(here, tasks[1:])
        await here.put(tasks[1])
        await here.put(tasks[0])
        await worked_off(here, tasks)
        await here.aclose()
    assert sorted(done) == sorted(task.id for task in tasks)


async def test_a_task_that_is_tried_again_is_not_overtaken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("langmem_ext.server.queue.EVERY", 0.01)
    tried: list[str] = []

    async def fail_once(task: Task) -> None:
        tried.append(task.id)
        if len(tried) == 1:
            raise RuntimeError("no connection")

    with DeltaSaver.open(":memory:") as saver:
        queue = StoreQueue(DeltaStore(saver), saver.log, fail_once)
        tasks = [Task("NOTE", {}, line="t") for _ in range(3)]
        for task in tasks:
            await queue.put(task)
        queue.start()
        await worked_off(queue, tasks)
        await queue.aclose()
    assert tried == [tasks[0].id, *(task.id for task in tasks)]


async def test_who_has_lost_a_line_undoes_nothing_that_others_did(database: Database) -> None:
    """A restart of PostgreSQL ends leases, and workers go on."""
    url = f"{database.url}?schema={SHARED.new_schema()}"
    begun, may_end = asyncio.Event(), asyncio.Event()

    async def fail_late(task: Task) -> None:
        if not begun.is_set():
            begun.set()
            await may_end.wait()
            raise RuntimeError("no connection")

    async def answer(task: Task) -> str:
        return "answered"

    def end_leases() -> None:
        with psycopg.connect(database.url, autocommit=True) as server:
            server.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )

    async with DeltaSaver.from_conn_string(url) as one, DeltaSaver.from_conn_string(url) as other:
        here = StoreQueue(DeltaStore(one), one.log, fail_late)
        there = StoreQueue(DeltaStore(other), other.log, answer)
        first, second = (Task("NOTE", {}, line="t") for _ in range(2))
        await here.put(first)
        here.start()
        await begun.wait()
        await asyncio.to_thread(end_leases)
        there.start()
        await worked_off(there, [first])
        await there.aclose()
        may_end.set()
        await here.put(second)
        await worked_off(here, [second])
        state = await here.get(first.id)
        await here.aclose()
    assert state is not None
    assert (state.status, state.result) == ("done", "answered")
