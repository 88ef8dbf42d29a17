"""What an application does with one thread, over and over: a checkpointer's work, a chat history's,
and what is shown of a thread.
"""

from __future__ import annotations

from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from langmem_ext import DeltaSaver


def config(thread: str, **configurable: Any) -> RunnableConfig:
    return {"configurable": {"thread_id": thread, **configurable}}


def desk(saver: Any) -> Any:
    """A graph that answers, and asks back when it is told to."""

    def answer(state: MessagesState) -> Any:
        said = state["messages"][-1].text
        return {
            "messages": [
                AIMessage(
                    f"{said}? {interrupt('which one?')}" if said.endswith("ask") else f"{said}: yes"
                )
            ]
        }

    return (
        StateGraph(MessagesState)
        .add_node("answer", answer)
        .add_edge(START, "answer")
        .compile(checkpointer=saver)
    )


def say(saver: DeltaSaver, thread: str, text: str = "hello") -> None:
    desk(saver).invoke({"messages": [HumanMessage(f"{thread} {text}")]}, config(thread))
