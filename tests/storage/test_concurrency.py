"""Many callers at once: what was acknowledged can be read back exactly, and no call leaves a lock or half of itself behind."""

from __future__ import annotations

import asyncio
import multiprocessing
import random
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from comparison import Names, assert_same
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from savers import BACKENDS, Backend, Calls, Saver, Shelf, open_saver, run_without_loop

from langmem_ext.storage.effects import PAUSE, Op
from langmem_ext.storage.group import Job
from langmem_ext.storage.sqlite import SqliteDriver

TURNS = 8


@dataclass(frozen=True)
class Turn:
    """One checkpoint and the writes of one task on it: the arguments of the two calls that store them."""

    config: RunnableConfig
    checkpoint: Any
    metadata: Any
    versions: dict[str, Any]
    stored: RunnableConfig
    writes: list[tuple[str, Any]]
    task: str


def config_of(thread: str, checkpoint_id: str | None = None) -> RunnableConfig:
    place = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": {**place, "checkpoint_id": checkpoint_id} if checkpoint_id else place}


def turns(worker: str, thread: str, count: int = TURNS) -> Iterator[Turn]:
    """Give the turns of one worker: a chain of checkpoints over a growing list of messages, one of whose ids all workers use."""
    messages: list[Any] = [HumanMessage(f"by {worker}", id="shared")]
    parent: str | None = None
    for number in range(count):
        messages = [*messages, AIMessage(f"{worker} {number}", id=f"{worker}-{number}", response_metadata={"n": [number, True]})]
        version = f"{number + 1:032}.0.{abs(hash(worker)) % 10**9}"
        checkpoint_id = str(uuid6())
        checkpoint: Checkpoint = {
            "v": 4,
            "id": checkpoint_id,
            "ts": "2024-05-06T07:08:09.000010+00:00",
            "channel_values": {"messages": messages, "table": {f"key{n}": [worker, n, number] for n in range(9)}},
            "channel_versions": {"messages": version, "table": version},
            "versions_seen": {},
            "updated_channels": ["messages", "table"],
        }
        metadata = {"source": "loop", "step": number, "parents": {}, "worker": worker}
        writes = [("messages", [HumanMessage(f"{worker} says {number}")]), ("note", {"n": number}), ("value", (worker, number))]
        task = f"{number:08x}-3333-5333-8333-333333333333"
        stored = config_of(thread, checkpoint_id)
        yield Turn(config_of(thread, parent), checkpoint, metadata, dict(checkpoint["channel_versions"]), stored, writes, task)
        parent = checkpoint_id


async def store(calls: Calls, saver: Saver, turn: Turn) -> Turn:
    """Make the two calls of a turn, and give a copy of it when both have returned."""
    copy = deepcopy(turn)
    await calls.call(saver, "put", turn.config, turn.checkpoint, turn.metadata, turn.versions)
    await calls.call(saver, "put_writes", turn.stored, turn.writes, turn.task, "~path")
    return copy


async def assert_readable(calls: Calls, saver: Saver, acknowledged: Sequence[Turn]) -> None:
    """Check that everything acknowledged reads back as InMemorySaver gives it, and that there is nothing else."""
    reference, names = InMemorySaver(), Names(keep=True)
    for turn in acknowledged:
        reference.put(turn.config, turn.checkpoint, turn.metadata, turn.versions)
        reference.put_writes(turn.stored, turn.writes, turn.task, "~path")
    for turn in acknowledged:
        found = await calls.call(saver, "get_tuple", turn.stored)
        assert_same(names.checkpoint(reference.get_tuple(turn.stored)), names.checkpoint(found), f"get_tuple of {turn.stored}")
    for thread in sorted({turn.stored["configurable"]["thread_id"] for turn in acknowledged}):
        expected = [names.checkpoint(found) for found in reference.list(config_of(thread))]
        listed = [names.checkpoint(found) for found in await calls.collect(saver, "list", config_of(thread))]
        assert_same(tuple(expected), tuple(listed), f"list of {thread}")
        head = await calls.call(saver, "get_tuple", config_of(thread))
        assert_same(names.checkpoint(reference.get_tuple(config_of(thread))), names.checkpoint(head), f"the newest of {thread}")


# -- readers -------------------------------------------------------------------------------------------------------------------------------


def test_a_checkpoint_can_be_read_and_put_while_a_list_is_being_read(backend: Backend, folder: Path) -> None:
    shelf, calls = Shelf(backend, "sync", folder), Calls("sync")
    stored = [run_without_loop(store(calls, shelf.saver, turn)) for turn in turns("a", "t", 40)]
    seen: list[str] = []
    for found in shelf.saver.list(config_of("t")):
        again = shelf.saver.get_tuple(found.config)
        assert again is not None
        assert Names(keep=True).checkpoint(again) == Names(keep=True).checkpoint(found)
        shelf.saver.put_writes(found.config, [("late", len(seen))], "44444444-4444-5444-8444-444444444444")
        seen.append(found.config["configurable"]["checkpoint_id"])
    assert seen == [turn.stored["configurable"]["checkpoint_id"] for turn in reversed(stored)]
    run_without_loop(shelf.close())


async def test_a_checkpoint_can_be_read_and_put_while_an_async_list_is_being_read(backend: Backend, folder: Path) -> None:
    shelf, calls = Shelf(backend, "async", folder), Calls("async")
    stored = [await store(calls, shelf.saver, turn) for turn in turns("a", "t", 40)]
    seen: list[str] = []
    async for found in shelf.saver.alist(config_of("t")):
        again = await shelf.saver.aget_tuple(found.config)
        assert again is not None
        assert Names(keep=True).checkpoint(again) == Names(keep=True).checkpoint(found)
        await shelf.saver.aput_writes(found.config, [("late", len(seen))], "44444444-4444-5444-8444-444444444444")
        seen.append(found.config["configurable"]["checkpoint_id"])
    assert seen == [turn.stored["configurable"]["checkpoint_id"] for turn in reversed(stored)]
    await shelf.close()


def test_a_list_that_is_left_early_holds_nothing(backend: Backend, folder: Path) -> None:
    shelf, calls = Shelf(backend, "sync", folder), Calls("sync")
    chain = turns("a", "t", 6)
    stored = [run_without_loop(store(calls, shelf.saver, turn)) for turn, _ in zip(chain, range(5), strict=False)]
    left = shelf.saver.list(config_of("t"))
    next(iter(left))
    stored += [run_without_loop(store(calls, shelf.saver, turn)) for turn in turns("b", "t2", 1)]
    run_without_loop(assert_readable(calls, shelf.saver, stored))
    run_without_loop(shelf.close())


def test_a_saver_opened_outside_an_event_loop_works_inside_one_and_in_the_next(backend: Backend, folder: Path) -> None:
    shelf = Shelf(backend, "async", folder)
    acknowledged: list[Turn] = []

    async def some(worker: str) -> None:
        for turn in turns(worker, worker, 3):
            acknowledged.append(await store(Calls("async"), shelf.saver, turn))

    asyncio.run(some("a"))
    asyncio.run(some("b"))
    acknowledged += [run_without_loop(store(Calls("sync"), shelf.saver, turn)) for turn in turns("c", "c", 3)]
    run_without_loop(assert_readable(Calls("sync"), shelf.saver, acknowledged))
    asyncio.run(assert_readable(Calls("async"), shelf.saver, acknowledged))
    asyncio.run(shelf.close())


# -- writers -------------------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True], ids=["own threads", "one thread"])
def test_what_eight_os_threads_were_told_is_stored_can_be_read(shared: bool, backend: Backend, folder: Path) -> None:
    shelf, calls = Shelf(backend, "sync", folder), Calls("sync")
    start = threading.Barrier(8)

    def work(worker: str) -> list[Turn]:
        start.wait()
        return [run_without_loop(store(calls, shelf.saver, turn)) for turn in turns(worker, "shared" if shared else worker)]

    with ThreadPoolExecutor(8) as pool:
        acknowledged = [turn for done in pool.map(work, [f"w{n}" for n in range(8)]) for turn in done]
    run_without_loop(assert_readable(calls, shelf.saver, acknowledged))
    run_without_loop(assert_readable(calls, run_without_loop(shelf.reopen()), acknowledged))
    run_without_loop(shelf.close())


@pytest.mark.parametrize("shared", [False, True], ids=["own threads", "one thread"])
async def test_what_twenty_tasks_were_told_is_stored_can_be_read(shared: bool, backend: Backend, folder: Path) -> None:
    shelf, calls = Shelf(backend, "async", folder), Calls("async")

    async def work(worker: str) -> list[Turn]:
        return [await store(calls, shelf.saver, turn) for turn in turns(worker, "shared" if shared else worker, 4)]

    acknowledged = [turn for done in await asyncio.gather(*(work(f"w{n}") for n in range(20))) for turn in done]
    await assert_readable(calls, shelf.saver, acknowledged)
    await assert_readable(calls, await shelf.reopen(), acknowledged)
    await shelf.close()


def in_another_process(url: str, worker: str, count: int) -> list[Turn]:
    """Store a worker's turns, on a thread of its own and on one that all share, through a saver of this process."""
    saver, calls = open_saver(url), Calls("sync")
    own, shared = turns(worker, worker, count), turns(f"{worker} shared", "shared", count)
    acknowledged = [run_without_loop(store(calls, saver, turn)) for pair in zip(own, shared, strict=True) for turn in pair]
    saver.close()
    return acknowledged


@pytest.mark.parametrize("backend", [b for b in BACKENDS if b.survives_close], ids=lambda b: b.name, scope="session", indirect=True)
def test_what_several_processes_were_told_is_stored_can_be_read(backend: Backend, folder: Path) -> None:
    shelf = Shelf(backend, "sync", folder)
    with multiprocessing.get_context("spawn").Pool(3) as pool:
        done = pool.starmap(in_another_process, [(shelf.url, f"p{n}", 10) for n in range(3)])
        pool.close()
        pool.join()
    acknowledged = [turn for turns_of_one in done for turn in turns_of_one]
    run_without_loop(assert_readable(Calls("sync"), shelf.saver, acknowledged))
    run_without_loop(shelf.close())


# -- cancellation --------------------------------------------------------------------------------------------------------------------------


async def cancelled(work: Any, pauses: int, seconds: float) -> bool:
    """Start an operation and cancel it after a while; say whether it was cut off."""
    task = asyncio.ensure_future(work)
    for _ in range(pauses):
        await asyncio.sleep(0)
    if seconds:
        await asyncio.sleep(seconds)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return True
    return False


async def test_cancelling_a_write_at_any_point_leaves_no_transaction_and_no_half(backend: Backend, folder: Path) -> None:
    shelf, calls, chance = Shelf(backend, "async", folder), Calls("async"), random.Random(20240506)
    saver, names = shelf.saver, Names(keep=True)
    cut = 0
    for number in range(100):
        turn = next(turns(f"w{number}", f"t{number % 7}", 1))
        reference = InMemorySaver()
        reference.put(turn.config, deepcopy(turn.checkpoint), turn.metadata, turn.versions)
        put_cut = await cancelled(
            saver.aput(turn.config, turn.checkpoint, turn.metadata, turn.versions),
            chance.randrange(4),
            chance.choice([0, 0, chance.random() / 500]),
        )
        whole = names.checkpoint(reference.get_tuple(turn.stored))
        found = names.checkpoint(await calls.call(saver, "get_tuple", turn.stored))
        assert found == whole or (put_cut and found is None)
        if found is None:
            await saver.aput(turn.config, turn.checkpoint, turn.metadata, turn.versions)
        reference.put_writes(turn.stored, deepcopy(turn.writes), turn.task, "~path")
        writes_cut = await cancelled(
            saver.aput_writes(turn.stored, turn.writes, turn.task, "~path"),
            chance.randrange(4),
            chance.choice([0, 0, chance.random() / 500]),
        )
        found = names.checkpoint(await calls.call(saver, "get_tuple", turn.stored))
        assert found == names.checkpoint(reference.get_tuple(turn.stored)) or (writes_cut and found == whole)
        cut += put_cut + writes_cut
        if backend.survives_close:
            assert_nobody_holds_the_lock(shelf.url)
    assert cut > 20, "too few operations were cut off for this test to say anything"
    await shelf.close()


def assert_nobody_holds_the_lock(url: str) -> None:
    """Check that another connection may write at once: no transaction is open."""
    with closing(sqlite3.connect(url, timeout=0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.rollback()


def test_the_main_thread_carries_out_nobody_elses_operations(tmp_path: Path) -> None:
    """A signal's handler may raise in the main thread at any place: that must meet its own operation alone."""

    def nothing() -> Op[str]:
        yield PAUSE
        return "done"

    with closing(SqliteDriver(str(tmp_path / "t.db"))) as driver:
        waiting = Job(nothing())
        driver._queue.add(waiting)
        assert driver.run(nothing(), write=True) == "done"
        assert not waiting.done
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(driver.run, nothing(), write=True).result() == "done"
        assert waiting.done
        assert waiting.outcome() == "done"
