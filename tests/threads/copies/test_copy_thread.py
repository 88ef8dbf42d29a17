"""Promises of a copied thread: it is the source to the byte, shares nothing with it, and costs no
decoding.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from comparison import Names
from langchain_core.messages import HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from prune_reference import assert_sound, everything, rows
from savers import Calls, Mode

from langmem_ext import DeltaSaver, InvalidInput, ThreadNotFound


@pytest.fixture
def saver(url: str) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(url) as saver:
        yield saver


def config(thread: str = "t", **configurable: Any) -> Any:
    return {"configurable": {"thread_id": thread, **configurable}}


def asking(saver: Any) -> Any:
    inner = StateGraph(MessagesState).add_node(
        "answer", lambda state: {"messages": [("ai", f"{len(state['messages'])}")]}
    )
    child = inner.add_edge(START, "answer").compile(checkpointer=True)
    builder = StateGraph(MessagesState)
    builder.add_node("child", child)
    builder.add_node("ask", lambda state: {"messages": [("user", interrupt("more?"))]})
    return builder.add_edge(START, "child").add_edge("child", "ask").compile(checkpointer=saver)


def begin(saver: Any, thread: str = "t") -> None:
    """A thread with a fork, a subgraph's memory, and a question that waits."""
    graph = asking(saver)
    graph.invoke({"messages": [HumanMessage("hello " * 30)]}, config(thread))
    graph.invoke(Command(resume="yes"), config(thread))
    graph.invoke({"messages": [HumanMessage("again")]}, config(thread))
    older = list(graph.get_state_history(config(thread)))[3]
    graph.update_state(
        older.config, {"messages": [HumanMessage("another branch")]}, as_node="__start__"
    )
    graph.invoke(None, config(thread))


def told(saver: DeltaSaver, thread: str) -> list[Any]:
    """Everything that a thread says, but for its own id."""
    names = Names(keep=True)
    forms = []
    for place, found in everything(saver, [thread]).items():
        anonymous = {"configurable": {**found.config["configurable"], "thread_id": ""}}
        parent = found.parent_config and {
            "configurable": {**found.parent_config["configurable"], "thread_id": ""}
        }
        forms.append(
            (place[1:], names.checkpoint(found._replace(config=anonymous, parent_config=parent)))
        )  # type: ignore[arg-type]
    return sorted(forms)


async def test_a_copy_reads_and_continues_as_the_source_does(saver: DeltaSaver, mode: Mode) -> None:
    begin(saver)
    before = told(saver, "t")
    assert await Calls(mode).call(saver, "copy_thread", "t", "copy") is None
    assert told(saver, "copy") == told(saver, "t") == before
    assert len(before) > 10
    graph = asking(saver)
    assert graph.get_state(config("copy")).interrupts == graph.get_state(config("t")).interrupts
    answered = [
        graph.invoke(Command(resume="go on"), config(thread))["messages"]
        for thread in ("t", "copy")
    ]
    assert [one.text for one in answered[0]] == [one.text for one in answered[1]]
    assert_sound(saver)
    assert rows(
        saver,
        "SELECT forked_from, next_item, items, tokens FROM thread ORDER BY forked_from IS NOT NULL",
    ) == [
        (None, *rows(saver, "SELECT next_item, items, tokens FROM thread WHERE id = 't'")[0]),
        ("t", *rows(saver, "SELECT next_item, items, tokens FROM thread WHERE id = 't'")[0]),
    ]


def test_metadata_that_names_the_source_names_the_copy(saver: DeltaSaver) -> None:
    graph = asking(saver)
    metadata = {
        "thread_id": "t",
        "about": "t",
        "ünï": "ä\U0001f642",
        "n": 1.0,
        "big": 2**53,
        "run_id": "run-1",
    }
    begun = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    graph.invoke({"messages": [HumanMessage("hello")]}, config())
    head = saver.get_tuple(config())
    assert head is not None
    saver.put(
        begun, {**head.checkpoint, "id": "ffffffff-ffff-6fff-bfff-ffffffffffff"}, metadata, {}
    )  # type: ignore[typeddict-item, arg-type]
    saver.copy_thread("t", "cöpy")
    copied = saver.get_tuple(config("cöpy"))
    assert copied is not None
    assert copied.metadata == {**metadata, "thread_id": "cöpy"}
    assert [type(value) for value in copied.metadata.values()] == [
        type(copied.metadata[name]) for name in copied.metadata
    ]
    saver.delete_for_runs(["run-1"])
    assert saver.get_tuple(config("cöpy")) != copied
    assert_sound(saver)


def test_a_copy_belongs_to_the_sources_owner_and_others_cannot_copy_it(saver: DeltaSaver) -> None:
    mine, theirs = saver.for_owner("u1"), saver.for_owner("u2")
    begin(mine)
    begin(theirs, "theirs")
    theirs.copy_thread("t", "stolen")
    assert everything(saver, ["stolen"]) == {}
    with pytest.raises(ThreadNotFound):
        mine.copy_thread("t", "theirs")
    saver.copy_thread("t", "copy")
    assert theirs.get_tuple(config("copy")) is None
    assert told(mine, "copy") == told(mine, "t")


def test_what_is_there_is_never_written_over(saver: DeltaSaver) -> None:
    begin(saver), begin(saver, "u")
    before = everything(saver)
    for target in ("t", "u"):
        with pytest.raises(InvalidInput, match="another id"):
            saver.copy_thread("t", target)
    with pytest.raises(InvalidInput):
        saver.copy_thread("t", "")
    assert everything(saver) == before
    saver.delete_thread("u")
    saver.copy_thread("t", "u")
    assert told(saver, "u") == told(saver, "t")
