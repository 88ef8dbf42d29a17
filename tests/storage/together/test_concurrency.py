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
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver
from patience import auntil
from prune_reference import assert_sound
from savers import Backend, Calls, Mode, Shelf, run_without_loop
from writer_turns import Turn, assert_readable, config_of, store, turns

from langmem_ext import HeadConflict, ThreadNotFound

# -- readers ---------------------------------------------------------------------------------------


async def test_a_checkpoint_can_be_read_and_put_while_a_list_is_being_read(
    backend: Backend, mode: Mode, folder: Path
) -> None:
    shelf, calls = Shelf(backend, mode, folder), Calls(mode)
    saver = shelf.saver
    stored = [await store(calls, saver, turn) for turn in turns("a", "t", 40)]
    seen: list[str] = []

    async def look(found: CheckpointTuple) -> None:
        again = await calls.call(saver, "get_tuple", found.config)
        assert Names(keep=True).checkpoint(again) == Names(keep=True).checkpoint(found)
        late = [("late", len(seen))], "44444444-4444-5444-8444-444444444444"
        await calls.call(saver, "put_writes", found.config, *late)
        seen.append(found.config["configurable"]["checkpoint_id"])

    if mode == "sync":
        for found in saver.list(config_of("t")):
            await look(found)
    else:
        async for found in saver.alist(config_of("t")):
            await look(found)
    assert seen == [turn.stored["configurable"]["checkpoint_id"] for turn in reversed(stored)]
    await shelf.close()


# -- failures --------------------------------------------------------------------------------------


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


FAILURES = ("another owner's thread", "a head that has moved", "a value that cannot be stored")


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
    if "://" in url:
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
