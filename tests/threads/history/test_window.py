"""Promise: a window is the newest whole turns within its tokens.

Only the end of a thread is read for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
)
from langgraph.graph import START, MessagesState, StateGraph
from savers import Backend, brief_saver

from langmem_ext import ApproximateCounter, DeltaSaver, InvalidInput, ThreadChatMessageHistory

COUNTER = ApproximateCounter()


@pytest.fixture
def saver(backend: Backend, tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver.from_conn_string(backend.new_url(tmp_path)) as saver:
        yield saver


def call(*ids: str) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "look", "args": {}, "id": name} for name in ids])


IDS = st.sampled_from(["a", "b", "c"])
SPOKEN: st.SearchStrategy[AnyMessage] = st.one_of(
    st.builds(HumanMessage, st.sampled_from(["hi", "tell me more about it " * 9])),
    st.builds(AIMessage, st.sampled_from(["yes", "there is much to be said " * 9])),
    st.just(SystemMessage("be kind")),
    st.lists(IDS, min_size=1, max_size=2).map(lambda ids: call(*ids)),
    IDS.map(lambda name: ToolMessage("found", tool_call_id=name)),
)


def callers(messages: list[BaseMessage]) -> dict[int, int | None]:
    """Where the call of each result stands: the newest before it that has its id."""
    found: dict[int, int | None] = {}
    for at, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            asked = [
                before
                for before in range(at)
                if message.tool_call_id
                in [one["id"] for one in getattr(messages[before], "tool_calls", [])]
            ]
            found[at] = asked[-1] if asked else None
    return found


def expected(messages: list[BaseMessage], tokens: int) -> list[BaseMessage]:
    """The window, found by trying every beginning."""
    if sum(map(COUNTER.count, messages)) <= tokens:
        return messages
    pairs = callers(messages).items()
    for start, message in enumerate(messages):
        whole = all(
            result < start or (asked is not None and asked >= start) for result, asked in pairs
        )
        if (
            isinstance(message, HumanMessage)
            and whole
            and sum(map(COUNTER.count, messages[start:])) <= tokens
        ):
            return messages[start:]
    return []


@given(messages=st.lists(SPOKEN, max_size=50), tokens=st.integers(1, 1_500))
def test_a_window_is_the_most_whole_turns_that_are_within_its_tokens(
    messages: list[BaseMessage], tokens: int, backend: Backend, folder: Path
) -> None:
    with brief_saver(backend, folder) as saver:
        history = ThreadChatMessageHistory("t", saver)
        history.add_messages(
            [message.model_copy(update={"id": str(at)}) for at, message in enumerate(messages)]
        )
        assert history.window(tokens) == expected(history.messages, tokens)


def test_a_list_that_was_changed_gives_its_own_end(saver: DeltaSaver) -> None:
    graph: Any = (
        StateGraph(MessagesState)
        .add_node("a", lambda state: {})
        .add_edge(START, "a")
        .compile(checkpointer=saver)
    )
    config: Any = {"configurable": {"thread_id": "t"}}
    graph.invoke(
        {"messages": [HumanMessage(f"message {number}", id=str(number)) for number in range(90)]},
        config,
    )
    graph.invoke(
        {
            "messages": [
                *(RemoveMessage(str(number)) for number in range(1, 90, 3)),
                HumanMessage("new", id="5"),
            ]
        },
        config,
    )
    history = ThreadChatMessageHistory("t", saver)
    for tokens in (1, 30, 200, 10_000):
        assert history.window(tokens) == expected(history.messages, tokens)


def test_the_given_counter_counts(saver: DeltaSaver) -> None:
    class OneEach(ApproximateCounter):
        def count(self, message: BaseMessage) -> int:
            return 1

    history = ThreadChatMessageHistory("t", saver)
    history.add_messages([HumanMessage("long " * 500) for _ in range(100)])
    assert len(history.window(40, counter=OneEach())) == 40
    assert history.window(40) == []
    history.window(10_000)[0].content = "changed"
    assert "changed" not in [message.content for message in history.messages]


async def test_a_window_is_read_without_holding_up_the_loop(saver: DeltaSaver) -> None:
    history = ThreadChatMessageHistory("t", saver)
    await history.aadd_messages([HumanMessage(f"message {number}") for number in range(50)])
    assert await history.awindow(100) == history.window(100) != []


def test_a_thread_that_is_not_there_has_an_empty_window(saver: DeltaSaver) -> None:
    ThreadChatMessageHistory("t", saver.log, owner="ann").add_messages([HumanMessage("one")])
    assert ThreadChatMessageHistory("t", saver.log, owner="bob").window(100) == []
    assert ThreadChatMessageHistory("none", saver).window(100) == []


def test_a_window_of_no_tokens_is_refused(saver: DeltaSaver) -> None:
    for tokens in (0, -1, 1.5, True, None, "100"):
        with pytest.raises(InvalidInput, match="max_tokens"):
            ThreadChatMessageHistory("t", saver).window(tokens)  # type: ignore[arg-type]
