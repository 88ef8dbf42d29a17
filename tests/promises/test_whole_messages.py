"""Promise: a message reaches the graph and the thread as it was sent, with all that is in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from payments import Payments

from langmem_ext import DeltaSaver, InvalidInput, Turn, aconverse, converse

PICTURE = {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"}
QUESTION = HumanMessage(
    [{"type": "text", "text": "What is this?"}, PICTURE],
    id="q",
    name="ann",
    additional_kwargs={"source": "phone"},
)
ALONE = HumanMessage([PICTURE], id="p")

Say = Callable[..., Any]


async def say(graph: Any, message: str | HumanMessage, **given: Any) -> Turn:
    """Through `aconverse`, on the thread `t`."""
    return await aconverse(graph, message, thread_id="t", **given)


async def say_sync(graph: Any, message: str | HumanMessage, **given: Any) -> Turn:
    return converse(graph, message, thread_id="t", **given)


BOTH = pytest.mark.parametrize("say", [say_sync, say])


def looking(saver: DeltaSaver) -> tuple[Any, list[HumanMessage]]:
    """A graph that looks at what it is sent."""
    seen: list[HumanMessage] = []

    def answer(state: MessagesState) -> dict[str, Any]:
        seen.append(state["messages"][-1])
        return {"messages": [AIMessage("I see.")]}

    builder = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    return builder.compile(checkpointer=saver), seen


def stored(graph: Any) -> list[Any]:
    return graph.get_state({"configurable": {"thread_id": "t"}}).values["messages"]


@BOTH
async def test_a_message_begins_a_turn_whole(tmp_path: Path, say: Say) -> None:
    for message in (QUESTION, ALONE):
        with DeltaSaver.open(tmp_path / f"{message.id}.db") as saver:
            graph, seen = looking(saver)
            assert (await say(graph, message)).reply == "I see."
            assert seen == [message]
            assert stored(graph)[0] == message


@BOTH
async def test_an_answer_is_delivered_whole(tmp_path: Path, say: Say) -> None:
    for message in (QUESTION, ALONE):
        desk = Payments(tmp_path)
        graph = desk.graph(DeltaSaver())
        await say(graph, "refund my order")
        turn = await say(graph, message)
        assert turn.waiting_for == "order_id"  # a picture is no order, and the question stays
        [said] = [entry for entry in stored(graph) if entry.id == message.id]
        assert said.content == message.content
        assert said.name == message.name
        text = "It's O-123"
        with_text = HumanMessage([PICTURE, {"type": "text", "text": text}], id="a")
        assert (await say(graph, with_text)).reply == "Refund O-123?"


@BOTH
async def test_a_picture_alone_begins_no_request_and_is_answered(tmp_path: Path, say: Say) -> None:
    desk = Payments(tmp_path)
    graph = desk.graph(DeltaSaver())
    turn = await say(graph, ALONE)
    assert turn.reply
    assert stored(graph)[0].content == ALONE.content


@BOTH
async def test_other_graphs_get_the_content_where_any_answer_will_do(say: Say) -> None:
    def ask(_: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(str(interrupt("Show me.") == QUESTION.content))]}

    builder = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask")
    graph = builder.compile(checkpointer=DeltaSaver())
    await say(graph, "hello")
    assert (await say(graph, QUESTION)).reply == "True"


@BOTH
async def test_where_a_form_is_asked_a_picture_is_refused_and_the_question_waits(say: Say) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}

    def ask(_: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(str(interrupt({"response_schema": schema})))]}

    builder = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask")
    graph = builder.compile(checkpointer=DeltaSaver())
    await say(graph, "hello")
    with pytest.raises(InvalidInput):
        await say(graph, ALONE)
    assert (await say(graph, '{"age": 7}')).reply == "{'age': 7}"
