"""What an application does with one thread, over and over: a checkpointer's work, a chat history's,
and what is shown of a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads


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


def fan_out(saver: DeltaSaver, thread: str) -> None:
    """What several tasks wrote to the newest checkpoint."""
    head = saver.get_tuple(config(thread))
    assert head is not None
    for task in range(3):
        writes = [("messages", [HumanMessage(f"{thread} task {task}")]), ("note", {"n": task})]
        saver.put_writes(head.config, writes, f"{task:08x}-3333-5333-8333-333333333333")


def edit(saver: DeltaSaver, thread: str) -> None:
    """A state that a person changed at an earlier checkpoint: a fork of the thread."""
    earlier = list(desk(saver).get_state_history(config(thread), limit=2))[-1]
    desk(saver).update_state(
        earlier.config,
        {"messages": [HumanMessage(f"{thread} edited " + "at length " * 300)]},
        as_node="answer",
    )


STEPS: Mapping[str, Callable[[DeltaSaver, str], object]] = {
    "the first turn": say,
    "a turn": say,
    "a question": lambda saver, thread: say(saver, thread, "ask"),
    "pending writes": fan_out,
    "the state": lambda saver, thread: desk(saver).get_state(config(thread)),
    "an edited state": edit,
    "a list of its checkpoints": lambda saver, thread: list(saver.list(config(thread), limit=10)),
    "a list before one": lambda saver, thread: list(
        saver.list(config(thread), before=saver.get_tuple(config(thread)).config)
    ),  # type: ignore[union-attr]
    "a message more": (
        lambda saver, thread: ThreadChatMessageHistory(thread, saver).add_user_message(
            f"{thread} by hand"
        )
    ),
    "its history": lambda saver, thread: ThreadChatMessageHistory(thread, saver).messages,
    "the end of its history": (
        lambda saver, thread: ThreadChatMessageHistory(thread, saver).window(20)
    ),
    "the last messages": lambda saver, thread: Threads(saver).messages(thread, last=2),
    "the last turns": lambda saver, thread: Threads(saver).turns(thread, last=2),
    "its row": lambda saver, thread: Threads(saver).get(thread),
    "a title": lambda saver, thread: Threads(saver).rename(thread, f"about {thread}"),
}
"""In the order in which each is possible. None deletes the thread."""


def texts(saver: DeltaSaver, thread: str) -> list[str]:
    """What was said in the thread, as its newest checkpoint has it."""
    return [message.text for message in ThreadChatMessageHistory(thread, saver).messages]
