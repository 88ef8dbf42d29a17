"""Graphs of somebody else that ask: agents whose tool calls wait for a decision, and nodes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from scripted_model import ScriptedModel, scripted

CONFIG: Any = {"configurable": {"thread_id": "t"}}
ALL = ["approve", "edit", "reject", "respond"]


class Asking(MessagesState):
    """The state of somebody else's graph."""

    answer: Any


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
def refund(amount: int) -> str:
    """Refund."""
    return f"refunded {amount}"


def calling(*names: str) -> ScriptedModel:
    """A double that calls these tools for a user's message, and then says what they returned."""

    def answer(messages: Sequence[BaseMessage]) -> str | AIMessage:
        if isinstance(messages[-1], HumanMessage):
            calls = [
                {"name": name, "args": {"amount": place + 5}, "id": f"c{place}"}
                for place, name in enumerate(names)
            ]
            return AIMessage("", tool_calls=calls)
        newest = max(
            place for place, message in enumerate(messages) if isinstance(message, HumanMessage)
        )
        return "; ".join(message.text for message in messages[newest:] if message.type == "tool")

    return scripted(answer)


def agent(
    saver: Any,
    *names: str,
    allowed: Sequence[str] = ALL,
    model: ScriptedModel | None = None,
    **given: Any,
) -> Any:
    """An agent whose calls of `pay` and `refund` wait for a decision."""
    asks = {
        "pay": {"allowed_decisions": list(allowed)},
        "refund": {"allowed_decisions": ["approve", "reject"]},
    }
    middleware = [HumanInTheLoopMiddleware(interrupt_on=asks, **given)]  # type: ignore[arg-type]
    return create_agent(
        model or calling(*(names or ("pay",))),
        [pay, refund],
        middleware=middleware,
        checkpointer=saver,
    )


def asking(
    saver: Any,
    node: Callable[[Asking], dict[str, Any]],
    *others: Callable[[Asking], dict[str, Any]],
) -> Any:
    """A graph of one node, or of several at once."""
    builder = StateGraph(Asking)
    for place, one in enumerate((node, *others)):
        builder.add_node(f"node{place}", one)  # type: ignore[call-overload]
        builder.add_edge(START, f"node{place}")
    return builder.compile(checkpointer=saver)


def age(state: Asking) -> dict[str, Any]:
    """Ask for a number, and fail for any other text."""
    return {"answer": int(interrupt("How old are you?"))}


def counted(state: MessagesState) -> dict[str, Any]:
    """Say how many messages there are."""
    return {"messages": [AIMessage(f"I see {len(state['messages'])}")]}


def counting(saver: Any) -> Any:
    """A graph that says how many messages it sees."""
    return asking(saver, counted)
