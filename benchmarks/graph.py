"""The conversations that the benchmarks have: a graph, its thread, and turns of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.graph.message import _messages_delta_reducer, add_messages

from benchmarks.contenders import Opened


class DeltaMessagesState(TypedDict):
    """`MessagesState` on LangGraph's channel that stores what is new."""

    messages: Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]


class Talk:
    """A conversation: turns of a graph on one thread.

    Without a saver, this object holds the messages between turns.
    """

    def __init__(
        self, opened: Opened, graph: Any, name: object = "t", *, begin: list[Any] | None = None
    ) -> None:
        self._kept = opened.saver is None
        self._messages: list[Any] = []
        self.graph = graph
        self.config = thread(name)
        if begin and self._kept:
            self._messages = list(add_messages([], begin))
        elif begin:
            graph.update_state(self.config, {"messages": begin}, as_node="answer")

    def say(self, message: AnyMessage) -> None:
        """One turn."""
        said = self.graph.invoke({"messages": [*self._messages, message]}, self.config)
        if self._kept:
            self._messages = said["messages"]

    def messages(self) -> list[AnyMessage]:
        """All that has been said."""
        return (
            self._messages if self._kept else self.graph.get_state(self.config).values["messages"]
        )


def conversation(opened: Opened, replies: Iterator[AIMessage], *, on_loop: bool = False) -> Any:
    """One node that answers; `on_loop`, as a coroutine."""

    def answer(state: Any) -> dict[str, Any]:
        return {"messages": [next(replies)]}

    async def answer_async(state: Any) -> dict[str, Any]:
        return answer(state)

    node: Any = answer_async if on_loop else answer
    state: Any = DeltaMessagesState if opened.delta_channel else MessagesState
    return (
        StateGraph(state)
        .add_node("answer", node)
        .add_edge(START, "answer")
        .compile(checkpointer=opened.saver)
    )


def thread(name: object = "t") -> Any:
    """The config of a thread."""
    return {"configurable": {"thread_id": str(name)}}
