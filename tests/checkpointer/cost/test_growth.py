"""Promise: a message's bytes are written once, and storing one more turn costs what the turn costs,
not what the thread has grown to.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from asked_statements import watch
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from langgraph.types import Command, Send, interrupt
from prune_reference import rows
from pydantic import BaseModel
from savers import Backend

from langmem_ext import DeltaSaver, MessageLog, stats

CONFIG: Any = {"configurable": {"thread_id": "t"}}
TABLES = ("item", "value", "checkpoint", "pending_write", "word")


def long(number: int, who: str) -> str:
    return (
        f"This is what {who} said in turn {number}, and it is long enough to be noticed wherever it"
        " stands in the database. " * 2
    )


class Model(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages] = []


@dataclass
class Data:
    messages: Annotated[list[AnyMessage], add_messages] = field(default_factory=list)


@pytest.fixture
def saver(backend: Backend, tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver.from_conn_string(backend.new_url(tmp_path)) as saver:
        yield saver


def messages_of(state: Any) -> list[Any]:
    found: list[Any] = state["messages"] if isinstance(state, dict) else state.messages
    return found


def chat(saver: DeltaSaver, schema: Any = MessagesState) -> Any:
    def answer(state: Any) -> dict[str, Any]:
        return {"messages": [AIMessage(long(len(messages_of(state)) // 2, "the agent"))]}

    return (
        StateGraph(schema)
        .add_node("answer", answer)
        .add_edge(START, "answer")
        .compile(checkpointer=saver)
    )


def occurrences(saver: DeltaSaver, text: str) -> int:
    """In how many places of the database a text stands."""
    found = [row for table in TABLES for row in rows(saver, f"SELECT * FROM {table}")]
    cells = [
        cell.encode() if isinstance(cell, str) else cell
        for row in found
        for cell in row
        if isinstance(cell, str | bytes)
    ]
    return sum(cell.count(text.strip().encode()) for cell in cells)


INPUTS = {
    "message": lambda text: {"messages": [HumanMessage(text)]},
    "message with id": lambda text: {"messages": [HumanMessage(text, id=text[:60])]},
    "one message": lambda text: {"messages": HumanMessage(text)},
    "text": lambda text: {"messages": text},
    "texts": lambda text: {"messages": [text]},
    "blocks": lambda text: {
        "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}]
    },
    "tuple": lambda text: {"messages": [("user", text)]},
    "dict": lambda text: {"messages": [{"role": "user", "content": text}]},
    "model": lambda text: Model(messages=[HumanMessage(text)]),
    "dataclass": lambda text: Data(messages=[HumanMessage(text)]),
}


@pytest.mark.parametrize("form", INPUTS)
def test_a_text_stands_in_the_database_once_however_it_came_in(
    form: str, saver: DeltaSaver
) -> None:
    schema = {"model": Model, "dataclass": Data}.get(form, MessagesState)
    graph = chat(saver, schema)
    for turn in range(4):
        graph.invoke(INPUTS[form](long(turn, "the user")), CONFIG)
    for turn in range(4):
        assert occurrences(saver, long(turn, "the user")) == 1
        assert occurrences(saver, long(turn, "the agent")) == 1
    assert list(rows(saver, "SELECT items, head_messages FROM thread")) == [(8, 8)]
    assert list(rows(saver, "SELECT count(*) FROM conversation")) == [(8,)]


def test_forks_subgraphs_fan_out_and_updates_refer_to_the_same_row(saver: DeltaSaver) -> None:
    inner = (
        StateGraph(MessagesState)
        .add_node("pass", lambda state: {})
        .add_edge(START, "pass")
        .compile(checkpointer=True)
    )
    builder = StateGraph(MessagesState).add_node("child", inner).add_node("seen", lambda state: {})
    builder.add_edge(START, "child")
    builder.add_conditional_edges(
        "child",
        lambda state: [Send("seen", {"messages": state["messages"]}) for _ in range(3)],
        ["seen"],
    )
    graph = builder.compile(checkpointer=saver)
    for turn in range(3):
        graph.invoke({"messages": [HumanMessage(long(turn, "the user"))]}, CONFIG)
    past = list(graph.get_state_history(CONFIG))[-3]
    for turn in range(3, 6):
        graph.invoke({"messages": [HumanMessage(long(turn, "the user"))]}, past.config)
    last = graph.get_state(CONFIG).values["messages"]
    graph.update_state(CONFIG, {"messages": last}, as_node="child")
    for turn in range(6):
        assert occurrences(saver, long(turn, "the user")) == 1


def _checkpoint(values: dict[str, Any]) -> Any:
    checkpoint = empty_checkpoint()
    checkpoint["channel_values"] = values
    checkpoint["channel_versions"] = dict.fromkeys(values, "1")
    return checkpoint, {}, dict.fromkeys(values, "1")


def test_an_answer_that_becomes_a_message_is_stored_once(saver: DeltaSaver) -> None:
    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [HumanMessage(interrupt("what is it?")["text"])]}

    graph = (
        StateGraph(MessagesState)
        .add_node("ask", ask)
        .add_edge(START, "ask")
        .compile(checkpointer=saver)
    )
    graph.invoke({"messages": [HumanMessage("hi")]}, CONFIG)
    graph.invoke(Command(resume={"text": long(1, "the user")}), CONFIG)
    assert occurrences(saver, long(1, "the user")) == 1
    assert graph.get_state(CONFIG).values["messages"][-1].content == long(1, "the user")


def test_a_large_value_is_stored_once_for_the_write_and_the_checkpoint(saver: DeltaSaver) -> None:
    class State(TypedDict):
        note: str

    builder = (
        StateGraph(State)
        .add_node("write", lambda state: {"note": long(0, "the node")})
        .add_node("pass", lambda state: {})
    )
    graph = builder.add_edge(START, "write").add_edge("write", "pass").compile(checkpointer=saver)
    graph.invoke({"note": ""}, CONFIG)
    assert occurrences(saver, long(0, "the node")) == 1
    assert [state.values.get("note") for state in graph.get_state_history(CONFIG)][:2] == [
        long(0, "the node")
    ] * 2


@pytest.mark.parametrize("channels", [1, 20])
def test_large_values_that_take_turns_or_do_not_change_are_stored_once(
    channels: int, saver: DeltaSaver
) -> None:
    states: list[Any] = [
        {f"{side} {number}": long(number, side) for number in range(30)}
        for side in ("left", "right")
    ]
    config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
    for turn in range(12):
        config = saver.put(
            config,
            *_checkpoint({f"c{n}": {**states[turn % 2], "which": n} for n in range(channels)}),
        )
    [(size,)] = rows(saver, "SELECT sum(length(body)) FROM value")
    assert size < channels * 2.5 * len(str(states[0]))


def test_memory_is_bounded_however_many_subgraphs_run(backend: Backend, tmp_path: Path) -> None:
    inner = (
        StateGraph(MessagesState)
        .add_node("say", lambda state: {"messages": [AIMessage("yes " * 30)]})
        .add_edge(START, "say")
        .compile()
    )
    with DeltaSaver(
        MessageLog.open(backend.new_url(tmp_path), synchronous="normal", cache_bytes=100_000)
    ) as saver:
        graph = (
            StateGraph(MessagesState)
            .add_node("child", inner)
            .add_edge(START, "child")
            .compile(checkpointer=saver)
        )
        for turn in range(60):
            graph.invoke({"messages": [HumanMessage(f"turn {turn}")]}, CONFIG)
            assert saver.log.caches.size <= 100_000
        assert len(graph.get_state(CONFIG).values["messages"]) == 120


def test_statements_rows_and_bytes_per_turn_do_not_grow_with_the_thread(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, found = watch(monkeypatch), []
    with DeltaSaver.open(backend.new_url(tmp_path), synchronous="normal") as saver:
        graph = chat(saver)
        for turn in range(200):
            graph.invoke({"messages": [HumanMessage(long(turn, "the user"))]}, CONFIG)
            if turn % 50 == 49:
                counts = len(asked.statements), asked.given
                told = stats(saver)
                found.append((*counts, told.largest[0].bytes, told.file_bytes))
                asked.clear()
    statements, given, rows_of_thread, of_all = zip(*found, strict=True)
    # A turn has a few more or less, by what its threads happen to store together.
    assert max(statements[1:]) <= min(statements[1:]) * 1.1
    assert max(given[1:]) <= min(given[1:]) * 1.1
    assert_steady(rows_of_thread, 1.15)
    if (
        backend.name != "postgres"
    ):  # its tables grow by several pages, and by what waits to be vacuumed
        assert_steady(of_all, 1.15, 4096)  # pages come whole, and more than one table grows


def assert_steady(sizes: Sequence[int], factor: float, more: int = 0) -> None:
    """What grows grows by nearly the same each time."""
    growth = [later - earlier for earlier, later in pairwise(sizes)]
    assert max(growth) <= min(growth) * factor + more
