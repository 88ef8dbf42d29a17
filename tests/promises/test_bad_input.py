"""Promise: an input that a graph cannot take blocks no conversation, and its question waits."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from payments import Payments

from langmem_ext import DeltaSaver, aconverse, converse

BAD: list[Any] = [
    "hi",
    [["user", "hi"]],
    {"messages": [{"role": "tool", "content": "no tool_call_id"}]},
    {"messages": [{"role": "bot", "content": "hi"}]},
    {"messages": 5},
]
CONFIG: Any = {"configurable": {"thread_id": "t"}}


def spoil(graph: Any, *values: Any) -> None:
    """What an application does that passes on what it was sent."""
    for value in values:
        with pytest.raises(Exception, match=r"."):
            graph.invoke(value, CONFIG)


def test_the_question_that_waited_still_waits_and_is_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for values in ([bad] for bad in BAD):
        desk = Payments(tmp_path)
        graph = desk.graph(DeltaSaver())
        converse(graph, "pay 50", thread_id="t")
        spoil(graph, *values)
        caplog.clear()
        with caplog.at_level(logging.WARNING, "langmem_ext"):
            turn = converse(graph, thread_id="t")
        assert turn.reply.endswith("Pay 50?"), values
        assert len(caplog.records) == 1
        assert "hi" not in caplog.text.split("\n")[0].split("'t'")[-1]
        with caplog.at_level(logging.WARNING, "langmem_ext"):
            assert converse(graph, "yes", thread_id="t").reply == "Paid 50."
        assert len(caplog.records) == 1  # it is said once
        assert desk.ran == [("paid", 50)]


async def test_several_in_a_row_are_passed_over(tmp_path: Path) -> None:
    desk = Payments(tmp_path)
    graph = desk.graph(DeltaSaver())
    await aconverse(graph, "pay 50", thread_id="t")
    spoil(graph, *BAD, *BAD)
    assert (await aconverse(graph, "yes", thread_id="t")).reply == "Paid 50."


async def test_a_thread_that_begins_with_one_begins_anew(tmp_path: Path) -> None:
    for bad in BAD:
        desk = Payments(tmp_path)
        graph = desk.graph(DeltaSaver())
        spoil(graph, bad)
        assert (await aconverse(graph, "pay 50", thread_id="t")).reply == "Pay 50?"


def test_it_is_the_same_for_other_graphs() -> None:
    def ask(_: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(f"You said {interrupt('Sure?')}.")]}

    builder = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask")
    for bad in BAD:
        graph = builder.compile(checkpointer=DeltaSaver())
        converse(graph, "hello", thread_id="t")
        spoil(graph, bad)
        assert converse(graph, "yes", thread_id="t").reply == "You said yes."
