"""Promise: the statistics say what a database holds, to the byte of its file.

On PostgreSQL the bytes are those of its tables and indexes.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from savers import Backend, Mode, new_schema

from langmem_ext import DeltaSaver, Statistics, StorageUnavailable, astats, stats

WORDS = "one sentence of a conversation that goes on for a while, as conversations do; "


class State(MessagesState):
    report: str


def short(saver: Any) -> Any:
    def answer(state: State) -> dict[str, Any]:
        call = {"name": "look", "args": {"q": WORDS}, "id": f"call-{len(state['messages'])}"}
        message = AIMessage(WORDS * 2, tool_calls=[call])
        return {"messages": [message], "report": f"{len(state['messages'])} {WORDS * 4}"}

    builder = StateGraph(State).add_node("answer", answer).add_edge(START, "answer")
    return builder.compile(checkpointer=saver)


def talk(graph: Any, thread: str, turns: int) -> None:
    for turn in range(turns):
        graph.invoke(
            {"messages": [HumanMessage(f"{turn}: {WORDS}")]},
            {"configurable": {"thread_id": thread}},
        )


def size(path: Path) -> int:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return path.stat().st_size


@pytest.fixture
def several(url: str) -> str:
    with DeltaSaver.from_conn_string(url) as saver:
        for number in range(12):
            talk(short(saver), f"t{number}", 1 + number)
        talk(short(saver), "rich", 14)
    return url


def test_rows_are_counted_and_every_byte_of_the_database_is_of_one_kind(several: str) -> None:
    found = stats(several)
    turns = sum(range(1, 13)) + 14
    assert (found.threads, found.messages, found.checkpoints, found.exact) == (
        13,
        2 * turns,
        3 * turns,
        True,
    )
    assert found.writes > turns
    assert sum(found.bytes.values()) == found.file_bytes
    assert "://" in several or found.file_bytes == size(Path(several))
    assert all(amount >= 0 for amount in found.bytes.values())
    assert found.bytes["texts"] >= turns * 3 * len(WORDS)
    assert (
        min(
            found.bytes[kind]
            for kind in ("rests", "values", "checkpoints", "writes", "words", "threads", "indexes")
        )
        > 0
    )
    assert found.bytes_per_turn == pytest.approx(found.file_bytes / turns)
    with DeltaSaver.from_conn_string(several) as saver:
        saver.delete_thread("rich")
        # Who vacuums a server's tables knows of their free pages.
        assert (stats(saver).bytes["free"] > 0) == ("://" not in several)


def test_the_ten_largest_threads_are_told_the_largest_first(several: str) -> None:
    largest = stats(several).largest
    assert len(largest) == 10
    assert [thread.bytes for thread in largest] == sorted(
        (thread.bytes for thread in largest), reverse=True
    )
    assert "://" in several or largest[0].id == "rich"  # PostgreSQL compresses what is large
    others = [thread for thread in largest if thread.id != "rich"]
    assert [thread.id for thread in others] == [f"t{number}" for number in range(11, 2, -1)]
    assert (others[0].messages, others[0].checkpoints) == (24, 36)


def test_an_empty_database_has_statistics(backend: Backend, tmp_path: Path) -> None:
    with DeltaSaver(backend.new_url(tmp_path)) as saver:
        found = stats(saver)
    assert (found.threads, found.messages, found.largest, found.bytes_per_turn) == (0, 0, (), None)


def test_statistics_are_the_same_by_url_saver_and_event_loop(several: str) -> None:
    found = stats(several)
    assert asyncio.run(astats(several)) == found
    with DeltaSaver.from_conn_string(several) as saver:
        assert stats(saver) == stats(saver.log) == asyncio.run(astats(saver.log)) == found
    assert isinstance(found, Statistics)


async def test_a_database_that_is_not_there_is_an_error_and_is_not_made(
    durable: Backend, mode: Mode, tmp_path: Path
) -> None:
    url = new_schema(tmp_path) if durable.name == "postgres" else str(tmp_path / "none.db")
    for _ in range(2):
        with pytest.raises(StorageUnavailable, match="not found: pass the path|has no tables"):
            stats(url) if mode == "sync" else await astats(url)
    assert list(tmp_path.iterdir()) == []
