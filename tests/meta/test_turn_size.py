"""Promise: one turn runs few functions of this package, and no more than recorded here."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

import langmem_ext
from langmem_ext import DeltaSaver

PACKAGE = str(Path(langmem_ext.__file__).parent)
CONFIG: Any = {"configurable": {"thread_id": "t"}}

MOST = {"turn": (101, 25, 330), "put": (61, 22, 72), "get_tuple": (30, 11, 38)}
"""Functions, modules and calls, at most: lower them when they become fewer. Comprehensions count
before Python 3.12; where a turn has to wait, that is two functions and some calls more."""


def graph(saver: DeltaSaver) -> Any:
    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("x" * 280, id=f"a{len(state['messages'])}")]}

    builder = StateGraph(MessagesState)
    builder.add_node("answer", answer)
    builder.add_edge(START, "answer")
    builder.add_edge("answer", END)
    return builder.compile(checkpointer=saver)


def counted(work: Callable[[], object]) -> tuple[int, int, int]:
    """The package's functions and modules that some work runs, and how many calls of them."""
    seen: set[tuple[str, int]] = set()
    calls = 0

    def look(frame: FrameType, event: str, _: object) -> None:
        nonlocal calls
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            seen.add((frame.f_code.co_filename, frame.f_code.co_firstlineno))
            calls += 1

    before = sys.getprofile()
    threading.setprofile(look)
    sys.setprofile(look)
    try:
        work()
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
    return len(seen), len({file for file, _ in seen}), calls


def least(several: list[tuple[int, int, int]]) -> tuple[int, int, int]:
    functions, modules, calls = map(min, zip(*several, strict=True))
    return functions, modules, calls


def put_next(saver: DeltaSaver, prefix: str) -> tuple[int, int, int]:
    """What is run to put a checkpoint with one message more behind the newest."""
    state = saver.get_tuple(CONFIG)
    assert state is not None
    checkpoint: Any = dict(state.checkpoint, id=prefix + state.checkpoint["id"][2:])
    messages = [*checkpoint["channel_values"]["messages"], AIMessage("z", id=prefix)]
    version = saver.get_next_version(checkpoint["channel_versions"]["messages"], None)
    checkpoint["channel_values"] = {**checkpoint["channel_values"], "messages": messages}
    checkpoint["channel_versions"] = {**checkpoint["channel_versions"], "messages": version}
    metadata: Any = {"source": "loop", "step": 30, "parents": {}}
    return counted(lambda: saver.put(state.config, checkpoint, metadata, {"messages": version}))


@pytest.fixture
def measured(tmp_path: Path) -> dict[str, tuple[int, int, int]]:
    with DeltaSaver.open(tmp_path / "t.db") as saver:
        app = graph(saver)
        for number in range(10):
            app.invoke({"messages": [HumanMessage("y" * 280, id=f"h{number}")]}, CONFIG)
        # LangGraph saves in the background: if two calls come at once, one waits in a queue. So the
        # smallest of several turns is taken, figure by figure: the turn with the fewest functions
        # may make more calls than another.
        turns = [
            counted(
                partial(app.invoke, {"messages": [HumanMessage("y" * 280, id=f"h{at}")]}, CONFIG)
            )
            for at in range(10, 60)
        ]
        gets = [counted(lambda: saver.get_tuple(CONFIG)) for _ in range(5)]
        puts = [put_next(saver, f"f{number}") for number in range(5)]
        return {"turn": least(turns), "put": least(puts), "get_tuple": least(gets)}


def test_a_turn_runs_no_more_of_the_package_than_it_did(
    measured: dict[str, tuple[int, int, int]],
) -> None:
    assert {
        name: (found, MOST[name])
        for name, found in measured.items()
        if any(map(int.__gt__, found, MOST[name]))
    } == {}
