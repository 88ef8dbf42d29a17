"""What is taken by the queue is carried out at least once, whatever becomes of a process, and can
be asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from patience import auntil

from langmem_ext import DeltaSaver, DeltaStore, InvalidInput
from langmem_ext.server import StoreQueue, Task, TaskState

ATTEMPTS = 5
Perform = Callable[[Task], Awaitable[Any]]


async def echo(task: Task) -> Any:
    return {"said": task.payload["text"]}


def queue_on(saver: DeltaSaver, perform: Perform = echo) -> StoreQueue:
    return StoreQueue(DeltaStore(saver), saver.log, perform)


async def over(queue: StoreQueue, task: Task) -> TaskState:
    async def ended() -> TaskState | None:
        state = await queue.get(task.id)
        return state if state is not None and state.is_over else None

    found = await auntil(ended)
    assert found is not None
    return found


async def test_two_processes_do_not_work_on_one_task_together(url: str) -> None:
    at_work: list[Task] = []

    async def work(task: Task) -> Any:
        at_work.append(task)
        await asyncio.sleep(0.05)

    async with DeltaSaver.from_conn_string(url) as one, DeltaSaver.from_conn_string(url) as other:
        task = Task("COUNT", {})
        first, second = queue_on(one, work), queue_on(other, work)
        await first.put(task)
        first.start()
        second.start()
        assert (await over(first, task)).attempts == 1
        await asyncio.gather(first.aclose(), second.aclose())
    assert at_work == [task]


async def test_what_may_help_is_tried_again_and_no_more_than_so_often(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("langmem_ext.server.queue.EVERY", 0.01)
    tries: list[str] = []

    async def fail(task: Task) -> Any:
        tries.append(task.kind)
        if task.kind == "BAD":
            raise InvalidInput("there is nothing to do")
        if task.kind == "ONCE" and tries.count("ONCE") > 1:
            return "at last"
        raise RuntimeError("the secret is 4711")

    with DeltaSaver.open(":memory:") as saver:
        queue = queue_on(saver, fail)
        queue.start()
        tasks = [Task(kind, {}) for kind in ("BAD", "ONCE", "NEVER")]
        for task in tasks:
            await queue.put(task)
        bad, once, never = [await over(queue, task) for task in tasks]
        assert (bad.status, bad.attempts, bad.error) == ("failed", 1, "there is nothing to do")
        assert (once.status, once.attempts, once.result) == ("done", 2, "at last")
        assert (never.status, never.attempts, never.error) == (
            "failed",
            ATTEMPTS,
            "RuntimeError",
        )
        await queue.aclose()


async def test_a_task_that_ends_every_process_is_given_up() -> None:
    async def end(task: Task) -> Any:
        raise asyncio.CancelledError

    with DeltaSaver.open(":memory:") as saver:
        task = Task("END", {})
        for _ in range(ATTEMPTS):
            queue = queue_on(saver, end)
            if await queue.get(task.id) is None:
                await queue.put(task)
            before = await queue.get(task.id)
            queue.start()

            async def tried(queue: StoreQueue = queue, before: Any = before) -> bool:
                return (await queue.get(task.id)).attempts > before.attempts  # type: ignore[union-attr]

            await auntil(tried)
            await queue.aclose()
        last = queue_on(saver)
        last.start()
        state = await over(last, task)
        assert state.status == "failed"
        assert "every process" in str(state.error)
        await last.aclose()
