"""Promise: every message is stored once, so that one more turn costs what the turn costs."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import MessagesState
from small_graphs import chain, config

from langmem_ext import DeltaSaver, Threads

WORDS = [
    "".join(random.Random(number).choices("abcdefghijklmnopqrstuvwxyz", k=7))
    for number in range(2000)
]


def chat(saver: DeltaSaver) -> Any:
    def answer(state: MessagesState) -> Any:
        return {"messages": [AIMessage(text(len(state["messages"])))]}

    return chain(answer, saver=saver)


def text(number: int) -> str:
    return " ".join(random.Random(number).choices(WORDS, k=53))


def size_after(path: Path, first: int, last: int) -> int:
    """The bytes of the database after these turns."""
    with DeltaSaver.open(str(path), synchronous="normal") as saver:
        graph = chat(saver)
        for turn in range(first, last):
            graph.invoke({"messages": [HumanMessage(text(-1 - turn))]}, config())
    return path.stat().st_size


def test_a_later_turn_costs_what_an_early_one_does(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    empty, half, whole = (size_after(path, *turns) for turns in ((0, 1), (1, 150), (150, 300)))
    assert whole - half < 1.2 * (half - empty), "as much again as the turns before"
    with DeltaSaver.open(str(path)) as saver:
        messages = chat(saver).get_state(config()).values["messages"]
    assert [message.text for message in messages[::2]] == [text(-1 - turn) for turn in range(300)]
    own = sum(len(JsonPlusSerializer().dumps_typed(message)[1]) for message in messages)
    assert len(messages) == 600
    assert whole < 1.6 * own + empty


def test_a_fork_and_a_copy_store_no_text_again(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    before = size_after(path, 0, 100)
    with DeltaSaver.open(str(path)) as saver:
        for number in range(5):
            saver.copy_thread("t", f"copy {number}")
        Threads(saver).fork("t", to="fork")
    assert path.stat().st_size < 7 * before, "each as large as the thread at most"
    with DeltaSaver.open(str(path)) as saver:
        for thread in ("fork", "copy 4"):
            assert len(chat(saver).get_state(config(thread)).values["messages"]) == 200
