"""Promise: many processes may work on the same threads: what each was told is stored can be read,
and nothing else.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from forked_workers import forks
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from patience import PATIENCE_S
from prune_reference import assert_sound
from savers import Calls, open_saver, run_without_loop
from writer_turns import Turn, assert_readable, config_of, store, turns

from langmem_ext import DeltaSaver, ThreadChatMessageHistory
from postgres.failures.test_failures import talk
from postgres.server import SHARED, Database

SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
PROCESSES, TURNS, GRAPH_TURNS = (16, 1000, 40) if SOAK else (4, 20, 8)
SHARED_BY = 4
"""Processes that work on one thread."""

_begin: Any = None


def prepare(barrier: Any) -> None:
    """Called in each process of a pool: they begin together."""
    global _begin
    _begin = barrier


def keep_storing(url: str, worker: str, thread: str) -> list[Turn]:
    """A branch of the thread: checkpoints, their pending writes, and each read back; beside it,
    what is the newest of all branches.
    """
    _begin.wait(PATIENCE_S)
    done = []
    with open_saver(url) as saver:
        for turn in turns(worker, thread, TURNS):
            done.append(run_without_loop(store(Calls("sync"), saver, turn)))
            found, newest = saver.get_tuple(turn.stored), saver.get_tuple(config_of(thread))
            assert (
                found.checkpoint["channel_values"]["messages"][-1].id == f"{worker}-{len(done) - 1}"
            )
            assert [channel for _, channel, _ in found.pending_writes] == [
                "messages",
                "note",
                "value",
            ]
            assert newest.checkpoint["id"] >= found.checkpoint["id"]
    return done


def keep_talking(url: str, worker: str, thread: str) -> list[str]:
    """Turns of a graph, each on whatever is the newest checkpoint then; the ids of what was
    said.
    """
    _begin.wait(PATIENCE_S)
    said = []
    with open_saver(url) as saver:
        graph = talk(saver)
        for number in range(GRAPH_TURNS):
            message = HumanMessage(f"{worker} says {number}", id=f"{worker}-{number}")
            state = graph.invoke({"messages": [message]}, config_of(thread))
            assert message in state["messages"]
            said.append(f"{worker}-{number}")
    return said


def at_once(work: Callable[..., list[Any]], url: str) -> dict[str, list[Any]]:
    """Have all processes work, and give by thread what they brought."""
    context = forks()
    threads = [f"thread{number // SHARED_BY}" for number in range(PROCESSES)]
    calls = [(url, f"p{number}", thread) for number, thread in enumerate(threads)]
    with context.Pool(PROCESSES, prepare, (context.Barrier(PROCESSES),)) as pool:
        brought = pool.starmap(work, calls, chunksize=1)
        pool.close()
        pool.join()
    return {
        thread: [one for at, those in enumerate(brought) if threads[at] == thread for one in those]
        for thread in dict.fromkeys(threads)
    }


@pytest.fixture
def url(database: Database) -> str:
    url = f"{database.url}?schema={SHARED.new_schema()}"
    open_saver(url).close()
    return url


def test_a_reader_is_answered_while_others_write_its_thread_without_a_pause(url: str) -> None:
    enough = threading.Event()

    def write_on() -> None:
        with DeltaSaver.open(url) as saver:
            history = ThreadChatMessageHistory("t", saver)
            while not enough.is_set():
                history.add_messages([HumanMessage("hello")])
                if len(history.messages) > 20:
                    history.clear()

    writers = [threading.Thread(target=write_on) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        with DeltaSaver.open(url) as saver:
            for _ in range(300):
                saver.log.caches.forget()
                saver.get_tuple(config_of("t"))
                list(saver.list(config_of("t"), limit=3))
    finally:
        enough.set()
        for writer in writers:
            writer.join()


def test_nothing_is_lost_or_mixed_where_processes_share_threads(url: str) -> None:
    acknowledged = [turn for those in at_once(keep_storing, url).values() for turn in those]
    assert len(acknowledged) == PROCESSES * TURNS
    with open_saver(url) as saver:
        run_without_loop(assert_readable(Calls("sync"), saver, acknowledged))
        assert_sound(saver)


def test_turns_of_two_processes_on_one_thread_both_stand_as_branches(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        for thread, said in at_once(keep_talking, url).items():
            assert_branches(saver, thread, said)
        assert_sound(saver)


def assert_branches(saver: DeltaSaver, thread: str, said: Sequence[str]) -> None:
    """Check that each turn is in some branch, whole, and that a checkpoint has what its parent has,
    and what was said after that.
    """
    found = {
        one.config["configurable"]["checkpoint_id"]: one for one in saver.list(config_of(thread))
    }
    assert len(found) == 3 * len(said)
    ids = {
        at: [message.id for message in one.checkpoint["channel_values"].get("messages", [])]
        for at, one in found.items()
    }
    assert {one for those in ids.values() for one in those} >= set(said)
    for at, one in found.items():
        if one.parent_config is not None:
            before = ids[one.parent_config["configurable"]["checkpoint_id"]]
            assert ids[at][: len(before)] == before
            assert len(ids[at]) <= len(before) + 1


async def test_a_thread_is_begun_although_what_was_to_begin_it_came_to_nothing(url: str) -> None:
    async with DeltaSaver.open(url) as saver:
        assert await saver.aget_tuple(config_of("t")) is None
        checkpoint = empty_checkpoint()
        first: Any = {
            "configurable": {
                "thread_id": "t",
                "checkpoint_ns": "",
                "checkpoint_id": checkpoint["id"],
            }
        }
        # Another process has changed what a new row begins with: what is written together is rolled
        # back, and run one by one.
        saver.log.caches.missing.indexed = 1
        await asyncio.gather(
            saver.aput_writes(first, [("messages", "hello")], "task"),
            saver.aput(
                {"configurable": {"thread_id": "t", "checkpoint_ns": ""}},
                checkpoint,
                {"source": "input", "step": -1},
                {},
            ),
        )
        found = await saver.aget_tuple(config_of("t"))
        assert found is not None
        assert found.pending_writes == [("task", "messages", "hello")]
