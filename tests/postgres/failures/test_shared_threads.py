"""Promise: many processes may work on the same threads: what each was told is stored can be read,
and nothing else.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
from forked_workers import forks
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import MessagesState
from patience import PATIENCE_S
from prune_reference import assert_sound
from savers import Mode, open_saver
from small_graphs import chain
from writer_turns import config_of

from langmem_ext import (
    DeltaSaver,
    StorageUnavailable,
    ThreadChatMessageHistory,
    aconverse,
    converse,
)
from postgres.failures.test_failures import talk
from postgres.server import SHARED, Database

SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
PROCESSES, GRAPH_TURNS = (16, 40) if SOAK else (4, 8)
SHARED_BY = 4
"""Processes that work on one thread."""

_begin: Any = None


def prepare(barrier: Any) -> None:
    """Called in each process of a pool: they begin together."""
    global _begin
    _begin = barrier


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


def test_turns_of_two_processes_on_one_thread_both_stand_as_branches(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        for thread, said in at_once(keep_talking, url).items():
            assert_branches(saver, thread, said)
        assert_sound(saver)


def test_who_has_lost_the_lease_of_a_thread_stores_nothing_more_on_it(
    url: str, database: Database, mode: Mode
) -> None:
    """What others are told meanwhile stays the newest."""
    at_work, may_end = threading.Event(), threading.Event()

    def answer(state: MessagesState) -> dict[str, Any]:
        if not at_work.is_set():
            at_work.set()
            assert may_end.wait(PATIENCE_S)
        return {"messages": [AIMessage(f"heard {state['messages'][-1].text}")]}

    def say(saver: DeltaSaver, text: str) -> str:
        graph = chain(answer, saver=saver)
        if mode == "sync":
            return converse(graph, text, thread_id="t").reply
        return asyncio.run(aconverse(graph, text, thread_id="t")).reply

    with (
        DeltaSaver.open(url) as one,
        DeltaSaver.open(url) as other,
        ThreadPoolExecutor() as pool,
        psycopg.connect(database.url, autocommit=True) as server,
    ):
        first = pool.submit(say, one, "one")
        try:
            assert at_work.wait(PATIENCE_S)
            server.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_locks WHERE locktype = 'advisory'"
                " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
            )
            assert pool.submit(say, other, "two").result(PATIENCE_S) == "heard two"
        finally:
            may_end.set()
        with pytest.raises(StorageUnavailable, match="lease"):
            first.result(PATIENCE_S)
        said = [message.text for message in ThreadChatMessageHistory("t", other).messages]
        assert said == ["one", "heard one", "two", "heard two"]
        assert pool.submit(say, one, "three").result(PATIENCE_S) == "heard three"


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
