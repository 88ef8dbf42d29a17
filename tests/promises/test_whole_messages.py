"""Promise: a message reaches the graph and the thread as it was sent, with all that is in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import MessagesState
from langgraph.types import interrupt
from payments import Payments
from savers import Calls
from scripted_model import scripted
from small_graphs import asking_for, chain, config

import langmem_ext
from langmem_ext import AskUserMiddleware, DeltaSaver, InvalidInput, Turn

PICTURE = {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"}
QUESTION = HumanMessage(
    [{"type": "text", "text": "What is this?"}, PICTURE],
    id="q",
    name="ann",
    additional_kwargs={"source": "phone"},
)
ALONE = HumanMessage([PICTURE], id="p")

Say = Callable[..., Any]


@pytest.fixture
def say(calls: Calls) -> Say:
    """Say something on the thread `t`."""

    async def say(graph: Any, message: str | HumanMessage) -> Turn:
        turn: Turn = await calls.call(langmem_ext, "converse", graph, message, thread_id="t")
        return turn

    return say


def stored(graph: Any) -> list[Any]:
    return graph.get_state(config()).values["messages"]


async def test_a_message_begins_a_turn_whole(say: Say) -> None:
    seen: list[Any] = []

    def look(state: MessagesState) -> dict[str, Any]:
        seen.append(state["messages"][-1])
        return {"messages": [AIMessage("I see.")]}

    for message in (QUESTION, ALONE):
        graph = chain(look, saver=DeltaSaver())
        assert (await say(graph, message)).reply == "I see."
        assert seen.pop() == message
        assert stored(graph)[0] == message


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


async def test_a_picture_alone_begins_no_request_and_is_answered(tmp_path: Path, say: Say) -> None:
    desk = Payments(tmp_path)
    graph = desk.graph(DeltaSaver())
    turn = await say(graph, ALONE)
    assert turn.reply
    assert stored(graph)[0].content == ALONE.content


async def test_other_graphs_get_the_content_where_any_answer_will_do(say: Say) -> None:
    def ask(_: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage(str(interrupt("Show me.") == QUESTION.content))]}

    graph = chain(ask, saver=DeltaSaver())
    await say(graph, "hello")
    assert (await say(graph, QUESTION)).reply == "True"


@tool
def cancel_order(order_id: str) -> str:
    """Cancel an order."""
    return f"{order_id} is cancelled."


async def test_where_a_form_is_asked_a_picture_is_refused_and_the_question_waits(say: Say) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"]}
    call = AIMessage("", tool_calls=[{"name": "cancel_order", "args": {}, "id": "c1"}])
    model = scripted(lambda told: call if told[-1].type == "human" else told[-1].text)
    asks = [AskUserMiddleware([cancel_order])]
    for graph, why, answer, reply in (
        (
            chain(asking_for({"response_schema": schema}), saver=DeltaSaver()),
            "JSON that fits its schema",
            '{"age": 7}',
            "{'age': 7}",
        ),
        (
            create_agent(model, [cancel_order], middleware=asks, checkpointer=DeltaSaver()),
            "neither pictures nor files",
            HumanMessage("O-1"),
            "O-1 is cancelled.",
        ),
    ):
        await say(graph, "cancel my order")
        with pytest.raises(InvalidInput, match=why):
            await say(graph, ALONE)
        assert (await say(graph, answer)).reply == reply
