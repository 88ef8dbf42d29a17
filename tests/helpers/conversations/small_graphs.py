"""Graphs of a node or two, and the config of a thread: what most scenes need."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

Node = Callable[[Any], dict[str, Any]]


def config(thread: str = "t", **configurable: Any) -> Any:
    return {"configurable": {"thread_id": thread, **configurable}}


def chain(*nodes: Any, saver: Any = None, state: Any = MessagesState) -> Any:
    """A graph whose nodes run one after the other; named as the functions, or step0, step1 …"""
    names = [getattr(node, "__name__", "") for node in nodes]
    named = [
        (name if name.isidentifier() else f"step{at}", node)
        for at, (name, node) in enumerate(zip(names, nodes, strict=True))
    ]
    builder = StateGraph(state).add_sequence(named).add_edge(START, named[0][0])
    return builder.compile(checkpointer=saver)


def saying(*messages: Any) -> Node:
    """A node that says this."""
    return lambda _: {"messages": list(messages)}


def asking_for(question: Any, reply: str = "{}") -> Node:
    """A node that asks, and says what it was answered."""
    return lambda _: {"messages": [AIMessage(reply.format(interrupt(question)))]}


def echo(state: MessagesState) -> dict[str, Any]:
    """A node that repeats what was said."""
    return {"messages": [AIMessage(f"You said: {state['messages'][-1].text}")]}
