"""Many callers at once: what was acknowledged can be read back exactly, and no call leaves a lock
or half of itself behind.
"""

from __future__ import annotations

import asyncio
import random
import sqlite3
import threading
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from copy import deepcopy
from itertools import cycle
from pathlib import Path
from typing import Any

import psycopg
import pytest
from comparison import Names
from langgraph.checkpoint.memory import InMemorySaver
from patience import auntil
from prune_reference import assert_sound, rows
from savers import Backend, Calls, Mode, Shelf, run_without_loop
from writer_turns import Turn, assert_readable, config_of, store, turns

from langmem_ext import HeadConflict, MessageLog, StorageError, ThreadNotFound
from langmem_ext.log.message_log import is_server
from langmem_ext.storage.driver import Job
from langmem_ext.storage.operation import PAUSE, Op, Statement, operation
from langmem_ext.storage.sqlite.connection import FileWatch
from langmem_ext.storage.sqlite.driver import SqliteDriver

# -- readers ---------------------------------------------------------------------------------------


def test_a_checkpoint_can_be_read_and_put_while_a_list_is_being_read(
    backend: Backend, folder: Path
) -> None:
    shelf, calls = Shelf(backend, "sync", folder), Calls("sync")
    stored = [run_without_loop(store(calls, shelf.saver, turn)) for turn in turns("a", "t", 40)]
    seen: list[str] = []
    for found in shelf.saver.list(config_of("t")):
        again = shelf.saver.get_tuple(found.config)
        assert again is not None
        assert Names(keep=True).checkpoint(again) == Names(keep=True).checkpoint(found)
        shelf.saver.put_writes(
            found.config, [("late", len(seen))], "44444444-4444-5444-8444-444444444444"
        )
        seen.append(found.config["configurable"]["checkpoint_id"])
    assert seen == [turn.stored["configurable"]["checkpoint_id"] for turn in reversed(stored)]
    run_without_loop(shelf.close())


async def test_a_checkpoint_can_be_read_and_put_while_an_async_list_is_being_read(
    backend: Backend, folder: Path
) -> None:
    shelf, calls = Shelf(backend, "async", folder), Calls("async")
    stored = [await store(calls, shelf.saver, turn) for turn in turns("a", "t", 40)]
    seen: list[str] = []
    async for found in shelf.saver.alist(config_of("t")):
        again = await shelf.saver.aget_tuple(found.config)
        assert again is not None
        assert Names(keep=True).checkpoint(again) == Names(keep=True).checkpoint(found)
        await shelf.saver.aput_writes(
            found.config, [("late", len(seen))], "44444444-4444-5444-8444-444444444444"
        )
        seen.append(found.config["configurable"]["checkpoint_id"])
    assert seen == [turn.stored["configurable"]["checkpoint_id"] for turn in reversed(stored)]
    await shelf.close()


def test_a_list_that_is_left_early_holds_nothing(backend: Backend, folder: Path) -> None:
    shelf, calls = Shelf(backend, "sync", folder), Calls("sync")
    chain = turns("a", "t", 6)
    stored = [
        run_without_loop(store(calls, shelf.saver, turn))
        for turn, _ in zip(chain, range(5), strict=False)
    ]
    left = shelf.saver.list(config_of("t"))
    next(iter(left))
    stored += [run_without_loop(store(calls, shelf.saver, turn)) for turn in turns("b", "t2", 1)]
    run_without_loop(assert_readable(calls, shelf.saver, stored))
    run_without_loop(shelf.close())


def test_a_saver_opened_outside_an_event_loop_works_inside_one_and_in_the_next(
    backend: Backend, folder: Path
) -> None:
    shelf = Shelf(backend, "async", folder)
    acknowledged: list[Turn] = []

    async def some(worker: str) -> None:
        for turn in turns(worker, worker, 3):
            acknowledged.append(await store(Calls("async"), shelf.saver, turn))

    asyncio.run(some("a"))
    asyncio.run(some("b"))
    acknowledged += [
        run_without_loop(store(Calls("sync"), shelf.saver, turn)) for turn in turns("c", "c", 3)
    ]
    run_without_loop(assert_readable(Calls("sync"), shelf.saver, acknowledged))
    asyncio.run(assert_readable(Calls("async"), shelf.saver, acknowledged))
    asyncio.run(shelf.close())


# -- writers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", [False, True], ids=["own threads", "one thread"])
def test_what_eight_os_threads_were_told_is_stored_can_be_read(
    shared: bool, backend: Backend, folder: Path
) -> None:
    shelf, calls = Shelf(backend, "sync", folder), Calls("sync")
    start = threading.Barrier(8)

    def work(worker: str) -> list[Turn]:
        start.wait()
        return [
            run_without_loop(store(calls, shelf.saver, turn))
            for turn in turns(worker, "shared" if shared else worker)
        ]

    with ThreadPoolExecutor(8) as pool:
        acknowledged = [
            turn for done in pool.map(work, [f"w{n}" for n in range(8)]) for turn in done
        ]
    run_without_loop(assert_readable(calls, shelf.saver, acknowledged))
    run_without_loop(assert_readable(calls, run_without_loop(shelf.reopen()), acknowledged))
    run_without_loop(shelf.close())


@pytest.mark.parametrize("shared", [False, True], ids=["own threads", "one thread"])
async def test_what_twenty_tasks_were_told_is_stored_can_be_read(
    shared: bool, backend: Backend, folder: Path
) -> None:
    shelf, calls = Shelf(backend, "async", folder), Calls("async")

    async def work(worker: str) -> list[Turn]:
        return [
            await store(calls, shelf.saver, turn)
            for turn in turns(worker, "shared" if shared else worker, 4)
        ]

    acknowledged = [
        turn for done in await asyncio.gather(*(work(f"w{n}") for n in range(20))) for turn in done
    ]
    await assert_readable(calls, shelf.saver, acknowledged)
    await assert_readable(calls, await shelf.reopen(), acknowledged)
    await shelf.close()


# -- failures --------------------------------------------------------------------------------------


class HalfDoneError(Exception):
    """What an operation raises that has changed every thread."""


@operation
def half(statement: str | None = None) -> Op[None]:
    """An operation that fails when it has changed something: by itself, or because the database
    refuses a statement.
    """
    yield Statement("UPDATE thread SET title = 'half done'", {})
    if statement is None:
        raise HalfDoneError
    yield Statement(statement, {})


async def fail(calls: Calls, saver: Any, turn: Turn, how: str) -> None:
    """Have an operation fail, and the right caller told why."""
    match how:
        case "another owner's thread":
            with pytest.raises(ThreadNotFound):
                await calls.call(
                    saver.for_owner("b"),
                    "put",
                    config_of("owned"),
                    turn.checkpoint,
                    turn.metadata,
                    turn.versions,
                )
        case "a head that has moved":
            first = "1ef00000-0000-6000-8000-000000000000"
            guarded = {
                "configurable": {
                    **turn.config["configurable"],
                    "checkpoint_id": first,
                    "expected_head": first,
                }
            }
            with pytest.raises(HeadConflict):
                await calls.call(
                    saver, "put", guarded, turn.checkpoint, turn.metadata, turn.versions
                )
        case "a value that cannot be stored":
            with pytest.raises(TypeError):
                await calls.call(
                    saver,
                    "put_writes",
                    turn.stored,
                    [*turn.writes, ("bad", threading.Lock())],
                    turn.task,
                )
        case "half done":
            with pytest.raises(HalfDoneError):
                await calls.call(saver.log, "run", half(), write=True)
        case "refused by the database":
            with pytest.raises(StorageError):
                await calls.call(
                    saver.log, "run", half("INSERT INTO nowhere VALUES (1)"), write=True
                )


FAILURES = (
    "another owner's thread",
    "a head that has moved",
    "a value that cannot be stored",
    "half done",
    "refused by the database",
)


def test_an_operation_that_fails_takes_no_other_with_it(
    mode: Mode, backend: Backend, folder: Path
) -> None:
    shelf, calls = Shelf(backend, mode, folder), Calls(mode)
    saver: Any = shelf.saver

    async def work(number: int) -> AsyncIterator[Turn]:
        failures = cycle(FAILURES[number % len(FAILURES) :] + FAILURES[: number % len(FAILURES)])
        for turn in turns(f"w{number}", "shared" if number % 2 else f"w{number}"):
            if turn.config["configurable"].get(
                "checkpoint_id"
            ):  # there is something that the failure may hurt
                await fail(calls, saver, turn, next(failures))
            yield await store(calls, saver, turn)

    async def whole(number: int) -> list[Turn]:
        return [turn async for turn in work(number)]

    (owned,) = turns("a", "owned", 1)
    acknowledged = [run_without_loop(store(Calls("sync"), saver.for_owner("a"), owned))]
    if mode == "sync":
        with ThreadPoolExecutor(8) as pool:
            done = list(pool.map(lambda number: run_without_loop(whole(number)), range(8)))
    else:

        async def all_of_them() -> list[list[Turn]]:
            return list(await asyncio.gather(*(whole(number) for number in range(20))))

        done = asyncio.run(all_of_them())
    acknowledged += [turn for turns_of_one in done for turn in turns_of_one]
    run_without_loop(assert_readable(Calls("sync"), saver, acknowledged))
    assert_sound(saver)
    saver = run_without_loop(shelf.reopen()) if mode == "sync" else asyncio.run(shelf.reopen())
    run_without_loop(assert_readable(Calls("sync"), saver, acknowledged))
    assert list(rows(saver, "SELECT id FROM thread WHERE title = 'half done'")) == []
    saver.close()


# -- cancellation ----------------------------------------------------------------------------------


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


OPEN = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND state ^@ 'idle in'"


async def test_cancelling_a_write_at_any_point_leaves_no_transaction_and_no_half(
    backend: Backend, folder: Path
) -> None:
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
        assert found == names.checkpoint(reference.get_tuple(turn.stored)) or (
            writes_cut and found == whole
        )
        cut += put_cut + writes_cut
        if backend.survives_close:
            await assert_nobody_holds_the_lock(shelf.url)
    assert cut > 20, "too few operations were cut off for this test to say anything"
    await shelf.close()


async def assert_nobody_holds_the_lock(url: str) -> None:
    """Check that another connection may write at once: no transaction is open, or stays so."""
    if is_server(url):
        async with await psycopg.AsyncConnection.connect(
            url.partition("?")[0], autocommit=True
        ) as looking:

            async def none_is_open() -> bool:
                return await (await looking.execute(OPEN)).fetchone() is None

            await auntil(none_is_open, "a transaction has been left open")
        return
    with closing(sqlite3.connect(url, timeout=0)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.rollback()


def test_the_main_thread_carries_out_nobody_elses_operations(url: str) -> None:
    """A signal's handler may raise in the main thread at any place: that must meet its own
    operation alone.
    """

    @operation
    def nothing() -> Op[str]:
        yield PAUSE
        return "done"

    with closing(MessageLog.open(url)) as log:
        driver: Any = log.driver
        waiting = Job(nothing())
        is_file = isinstance(driver, SqliteDriver)
        (driver._queue.jobs.append if is_file else driver._lineup.add)(waiting)
        assert driver.run(nothing(), write=True) == "done"
        assert not waiting.done
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(driver.run, nothing(), write=True).result() == "done"
        assert waiting.done
        assert waiting.outcome() == "done"


# -- other processes' locks ------------------------------------------------------------------------


def test_a_write_works_out_what_to_store_while_others_may_still_write(tmp_path: Path) -> None:
    path = tmp_path / "t.db"
    with closing(MessageLog.open(str(path))) as log, closing(another(path)) as other:

        @operation
        def writes() -> Op[bool]:
            other.execute("BEGIN IMMEDIATE")
            other.execute("ROLLBACK")
            yield Statement("SELECT 1", {})
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                other.execute("BEGIN IMMEDIATE")
            return True

        assert log.run(writes(), write=True)


@pytest.mark.parametrize("write", [True, False])
def test_whoever_comes_while_another_process_has_the_file_to_itself_waits(
    write: bool, tmp_path: Path
) -> None:
    path = tmp_path / "t.db"
    with closing(MessageLog.open(str(path))) as log, closing(another(path)) as other:
        driver: Any = log.driver
        driver._connection.execute("PRAGMA journal_mode = DELETE")
        driver._file = FileWatch(driver.path, with_log=False)
        other.execute("BEGIN EXCLUSIVE")
        seen: list[Any] = []

        @operation
        def looks() -> Op[None]:
            seen.append((yield Statement("SELECT count(*) FROM thread", {})))

        waits = threading.Thread(target=lambda: log.run(looks(), write=write))
        waits.start()
        waits.join(0.1)
        assert waits.is_alive()
        assert seen == []
        other.execute("COMMIT")
        waits.join()
        assert seen == [[(0,)]]


def another(path: Path) -> sqlite3.Connection:
    """A connection of another program, which waits for nobody."""
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=0)
