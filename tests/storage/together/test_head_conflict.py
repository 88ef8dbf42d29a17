"""Promise: two writers of one thread both stand as branches; who names the head it expects is told
when another has moved it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from savers import MODES, Backend, Calls, Mode, SyncAsAsync

from langmem_ext import DeltaSaver, HeadConflict


def application(saver: Any) -> Any:
    """A graph that asks, answers, and on "outside" meets another writer in mid-turn."""

    def answer(state: MessagesState) -> dict[str, Any]:
        last = state["messages"][-1].content
        if last == "outside":
            other = application(DeltaSaver(saver.log))
            other.update_state(
                {"configurable": {"thread_id": "t"}},
                {"messages": [AIMessage("meanwhile")]},
                as_node="answer",
            )
        return {"messages": [AIMessage(interrupt("which?") if last == "ask" else f"heard {last}")]}

    return (
        StateGraph(MessagesState)
        .add_node("answer", answer)
        .add_edge(START, "answer")
        .compile(checkpointer=saver)
    )


def config(**more: Any) -> Any:
    return {"configurable": {"thread_id": "t", **more}}


def head(graph: Any) -> str:
    found: str = graph.get_state(config()).config["configurable"]["checkpoint_id"]
    return found


def said(text: str) -> dict[str, Any]:
    return {"messages": [HumanMessage(text)]}


@pytest.fixture
def saver(backend: Backend, tmp_path: Path) -> Any:
    with DeltaSaver.from_conn_string(backend.new_url(tmp_path)) as saver:
        yield saver


def test_a_turn_that_expects_the_head_runs_whole(saver: DeltaSaver) -> None:
    graph = application(saver)
    graph.invoke(said("one"), config(expected_head=""))
    graph.invoke(said("ask"), config(expected_head=head(graph)))
    result = graph.invoke(Command(resume="this"), config(expected_head=head(graph)))
    assert [message.content for message in result["messages"]] == [
        "one",
        "heard one",
        "ask",
        "this",
    ]
    graph.update_state(config(expected_head=head(graph)), said("more"))
    assert all("expected_head" not in found.metadata for found in saver.list(config()))


@pytest.mark.parametrize("expected", ["", None, "1ef00000-0000-6000-8000-000000000000"])
def test_a_turn_on_a_head_that_has_moved_is_refused_and_writes_nothing(
    saver: DeltaSaver, expected: str | None
) -> None:
    graph = application(saver)
    graph.invoke(said("one"), config())
    before = list(saver.list(None))
    with pytest.raises(HeadConflict, match=f"newest checkpoint is {head(graph)}") as refused:
        graph.invoke(said("two"), config(expected_head=expected))
    assert (refused.value.expected, refused.value.found) == (expected or None, head(graph))
    assert list(saver.list(None)) == before


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_writer_that_comes_in_mid_turn_is_met(saver: DeltaSaver, durability: Any) -> None:
    graph = application(saver)
    graph.invoke(said("one"), config())
    with pytest.raises(HeadConflict):
        graph.invoke(said("outside"), config(expected_head=head(graph)), durability=durability)
    assert [message.content for message in graph.get_state(config()).values["messages"]][
        -1
    ] == "meanwhile"


def test_without_an_expected_head_both_writers_stand(saver: DeltaSaver) -> None:
    graph = application(saver)
    graph.invoke(said("one"), config())
    graph.invoke(said("outside"), config())
    tips = {found.config["configurable"]["checkpoint_id"] for found in saver.list(config())}
    tips -= {
        found.parent_config["configurable"]["checkpoint_id"]
        for found in saver.list(config())
        if found.parent_config
    }
    assert len(tips) == 2


async def test_the_second_of_two_puts_on_one_parent_is_refused_in_both_modes(
    saver: DeltaSaver,
) -> None:
    for calls in (saver, SyncAsAsync(saver)):
        first = await calls.aput(config(checkpoint_ns=""), empty_checkpoint(), {}, {})
        guarded = {
            "configurable": {
                **first["configurable"],
                "expected_head": first["configurable"]["checkpoint_id"],
            }
        }
        await calls.aput_writes(guarded, [("a", 1)], "task")
        second = empty_checkpoint()
        await calls.aput(guarded, second, {}, {})
        await calls.aput(guarded, second, {}, {})  # the same again: its own
        with pytest.raises(HeadConflict):
            await calls.aput(guarded, empty_checkpoint(), {}, {})
        await calls.adelete_thread("t")


@pytest.mark.parametrize("mode", MODES)
async def test_a_put_that_names_no_parent_is_stored_if_the_head_is_the_expected_one(
    saver: DeltaSaver, mode: Mode
) -> None:
    calls = Calls(mode)

    async def put(expected: str | None) -> str:
        stored = await calls.call(
            saver,
            "put",
            config(checkpoint_ns="", expected_head=expected),
            empty_checkpoint(),
            {},
            {},
        )
        return str(stored["configurable"]["checkpoint_id"])

    with pytest.raises(
        HeadConflict, match="newest checkpoint is none, not nope as expected"
    ) as refused:
        await put("nope")
    assert (refused.value.expected, refused.value.found) == ("nope", None)
    assert list(saver.list(None)) == []
    first = await put("")
    for expected in ("", None, "nope"):
        with pytest.raises(HeadConflict) as refused:
            await put(expected)
        assert (refused.value.expected, refused.value.found) == (expected or None, first)
    second = await put(first)
    assert [found.config["configurable"]["checkpoint_id"] for found in saver.list(None)] == [
        second,
        first,
    ]
