"""Promises of `compact`: the file gets smaller, writers get on meanwhile, and what was deleted
stands in no file any more.

What a file holds is looked up in files alone: on PostgreSQL `compact` has the server vacuum its
tables, one in each step; that no word of a deleted message stands in them then is tested in
tests/postgres/tables/test_search.py.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from patience import PATIENCE_S
from prune_reference import assert_sound, everything
from savers import Calls, Mode

from langmem_ext import DeltaSaver

SECRET = "the number of the account is 4711"


def chat(saver: Any, thread: str, turns: int = 1, text: str = SECRET) -> None:
    builder = StateGraph(MessagesState).add_node(
        "answer", lambda state: {"messages": [AIMessage(f"{text} {len(state['messages'])}")]}
    )
    graph = builder.add_edge(START, "answer").compile(checkpointer=saver)
    for turn in range(turns):
        graph.invoke(
            {"messages": [HumanMessage(f"{text} of turn {turn} " + "and so on " * 20)]},
            {"configurable": {"thread_id": thread}},
        )


def places_of(path: Path, text: str = SECRET) -> dict[str, int]:
    """How often a text stands in each of the database's files."""
    files = {name: Path(f"{path}{name}") for name in ("", "-wal", "-shm", "-journal")}
    return {
        name: count
        for name, file in files.items()
        if file.exists() and (count := file.read_bytes().count(text.encode()))
    }


async def test_the_file_gets_smaller_and_holds_nothing_of_what_was_deleted(
    tmp_path: Path, mode: Mode
) -> None:
    path, calls = tmp_path / "a.db", Calls(mode)
    with DeltaSaver.open(str(path)) as saver:
        chat(saver, "kept", 3, "this stays")
        for thread in range(20):
            chat(saver, str(thread), 5)
        before = everything(saver, ["kept"])
        assert places_of(path)
        for thread in range(10):
            saver.delete_thread(str(thread))
        saver.prune([str(thread) for thread in range(10, 20)], strategy="delete")
        assert places_of(path), "deleted, and still in the files: otherwise this test shows nothing"
        size = path.stat().st_size
        given_back = await calls.call(saver, "compact")
        assert given_back > 50_000
        assert path.stat().st_size < size
        assert places_of(path) == {}
        assert await calls.call(saver, "compact") == 0
        assert everything(saver, ["kept"]) == before
        assert_sound(saver)
        chat(saver, "0", 1, "again")


async def test_pruned_messages_are_gone_from_pages_that_others_share(
    tmp_path: Path, mode: Mode
) -> None:
    path = tmp_path / "a.db"
    with DeltaSaver.open(str(path)) as saver:
        for turn in range(30):
            chat(saver, "t", 1, SECRET if turn % 3 == 0 else "this stays")
        config: Any = {"configurable": {"thread_id": "t"}}
        builder = StateGraph(MessagesState).add_node("answer", lambda state: {})
        graph = builder.add_edge(START, "answer").compile(checkpointer=saver)
        from langchain_core.messages import RemoveMessage  # noqa: PLC0415

        messages = graph.get_state(config).values["messages"]
        graph.update_state(
            config,
            {"messages": [RemoveMessage(id=one.id) for one in messages if SECRET in one.text]},
            as_node="answer",
        )
        saver.prune(["t"])
        await Calls(mode).call(saver.log, "compact")
        assert places_of(path) == {}
        assert places_of(path, "this stays")
        assert len(graph.get_state(config).values["messages"]) == 40


def test_async_callers_get_on_between_two_steps(url: str) -> None:
    with DeltaSaver.open(url, synchronous="normal") as saver:
        for thread in range(12):
            chat(saver, str(thread), 1, f"{thread} " + "long text " * 10_000)
        chat(saver, "kept")
        saver.prune([str(thread) for thread in range(12)], strategy="delete")

        async def both() -> tuple[int, int]:
            compacting = asyncio.create_task(saver.acompact())
            found = 0
            while not compacting.done():
                found += (
                    await saver.aget_tuple({"configurable": {"thread_id": "kept"}})
                ) is not None
            return await compacting, found

        given_back, found = asyncio.run(both())
        assert given_back > 1_000_000 or "://" in url  # which compresses such texts
        # A server may be done with all steps while it answers the first call.
        assert found > (0 if "://" in url else 1)
        assert_sound(saver)


def test_a_reader_is_waited_for_by_nobody(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with DeltaSaver.open(str(path)) as saver:
        chat(saver, "t", 20)
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            assert reader.execute("SELECT count(*) FROM item").fetchone()[0] > 0
            saver.delete_thread("t")
            done = threading.Event()
            thread = threading.Thread(target=lambda: (saver.compact(), done.set()))
            thread.start()
            thread.join(PATIENCE_S)
            assert done.is_set()
            assert reader.execute("SELECT count(*) FROM item").fetchone()[0] > 0
        saver.compact()
        assert places_of(path) == {}


def test_a_file_without_a_list_of_its_pages_gives_nothing_back_unless_it_is_written_anew(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x)")
    with DeltaSaver.open(str(path)) as saver:
        chat(saver, "t", 20)
        saver.delete_thread("t")
        assert saver.compact() == 0
        assert saver.compact(full=True) > 0
        assert places_of(path) == {}
        chat(saver, "t", 20)
        saver.delete_thread("t")
        assert saver.compact() > 0, "from then on step by step"
        assert_sound(saver)


@pytest.mark.slow
@pytest.mark.parametrize("full", [False, True])
def test_a_database_in_memory_and_a_passed_connection_can_be_compacted_too(
    full: bool, tmp_path: Path
) -> None:
    with DeltaSaver(":memory:") as saver:
        chat(saver, "t", 100)
        saver.delete_thread("t")
        assert saver.compact(full=full) > 0
    with (
        closing(sqlite3.connect(tmp_path / "b.db", check_same_thread=False)) as connection,
        DeltaSaver(connection) as saver,
    ):
        chat(saver, "t", 100)
        saver.delete_thread("t")
        assert (saver.compact(full=full) > 0) is full
        assert not connection.in_transaction
