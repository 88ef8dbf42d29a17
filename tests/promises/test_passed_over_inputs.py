"""Promise: where an input is passed over, nothing is done twice, and nothing is lost."""

from __future__ import annotations

import operator
from pathlib import Path
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Send, interrupt
from payments import Payments
from savers import Calls, Mode
from scripted_model import scripted

import langmem_ext
from langmem_ext import AskUserMiddleware, DeltaSaver, InvalidInput, converse, examine

CONFIG: Any = {"configurable": {"thread_id": "t"}}


class Working(MessagesState):
    """The state of a graph whose nodes work beside each other."""

    done: Annotated[list[str], operator.add]


@pytest.mark.parametrize("bad", ["hi", {"messages": 5}])
async def test_what_other_tasks_of_the_step_have_done_is_not_done_again(
    url: str, mode: Mode, bad: Any
) -> None:
    worked: list[str] = []

    def work(state: Any) -> dict[str, Any]:
        worked.append(state["name"])
        return {"done": [state["name"]]}

    def ask(state: Working) -> dict[str, Any]:
        return {"done": [interrupt("Sure?")]}

    def begin(state: Working) -> list[Any]:
        return [Send("work", {"name": "a"}), Send("work", {"name": "b"}), Send("ask", state)]

    builder = StateGraph(Working).add_node("work", work).add_node("ask", ask)
    builder.add_conditional_edges(START, begin, ["work", "ask"])
    calls = Calls(mode)
    with DeltaSaver.open(url) as saver:
        graph = builder.compile(checkpointer=saver)
        await calls.call(langmem_ext, "converse", graph, "hello", thread_id="t")
        assert sorted(worked) == ["a", "b"]
        with pytest.raises(Exception, match=r"."):
            graph.invoke(bad, CONFIG)
        turn = await calls.call(langmem_ext, "converse", graph, thread_id="t")
        assert turn.reply == "Sure?"
        await calls.call(langmem_ext, "converse", graph, "yes", thread_id="t")
        assert sorted(worked) == ["a", "b"]
        assert sorted(graph.get_state(CONFIG).values["done"]) == ["a", "b", "yes"]
        assert examine(saver).ok


def test_a_good_message_behind_a_bad_input_is_heard_once(tmp_path: Path) -> None:
    for saver in (InMemorySaver(), DeltaSaver()):
        desk = Payments(tmp_path)
        graph = desk.graph(saver)
        with pytest.raises(Exception, match=r"."):
            graph.invoke({"messages": 5}, CONFIG)
        for _ in range(2):
            turn = converse(graph, "pay 50", thread_id="t", message_id="m")
            assert turn.reply == "Pay 50?"
        assert [message.id for message in graph.get_state(CONFIG).values["messages"]][0] == "m"
        assert converse(graph, "yes", thread_id="t", interrupt_id=turn.interrupt_id).reply


def test_an_agents_question_for_a_value_takes_no_picture() -> None:

    @tool
    def cancel_order(order_id: str) -> str:
        """Cancel an order."""
        return f"{order_id} is cancelled."

    def answer(messages: Any) -> Any:
        if isinstance(messages[-1], HumanMessage):
            call = {"name": "cancel_order", "args": {}, "id": "c1"}
            return AIMessage("", tool_calls=[call])
        return messages[-1].text

    graph = create_agent(
        scripted(answer),
        [cancel_order],
        middleware=[AskUserMiddleware([cancel_order])],
        checkpointer=DeltaSaver(),
    )
    converse(graph, "cancel my order", thread_id="t")
    picture = {"type": "image", "base64": "aGVsbG8=", "mime_type": "image/png"}
    with pytest.raises(InvalidInput, match="neither pictures nor files"):
        converse(graph, HumanMessage([picture]), thread_id="t")
    assert converse(graph, HumanMessage("O-1"), thread_id="t").reply == "O-1 is cancelled."
