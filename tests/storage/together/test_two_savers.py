"""Promise: two savers on one thread, in one process or two, find exactly what either has put,
whatever each of them remembers.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from prune_reference import rows

from langmem_ext import DeltaSaver, ThreadChatMessageHistory

TEXT = (
    "a long text, long enough to be lifted out of an input when it arrives, before there is a"
    " message"
)
Pair = tuple[DeltaSaver, DeltaSaver]


@pytest.fixture
def pair(url: str) -> Iterator[Pair]:
    with DeltaSaver.from_conn_string(url) as one, DeltaSaver.from_conn_string(url) as other:
        yield one, other


def put(saver: DeltaSaver, number: int, values: dict[str, Any], parent: int | None = None) -> None:
    configurable: dict[str, Any] = {"thread_id": "t", "checkpoint_ns": ""}
    if parent is not None:
        configurable["checkpoint_id"] = f"1f1e6000-0000-6000-8000-{parent:012}"
    checkpoint: Any = {
        "v": 4,
        "id": f"1f1e6000-0000-6000-8000-{number:012}",
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": values,
        "channel_versions": dict.fromkeys(values, number),
        "versions_seen": {},
        "updated_channels": None,
    }
    saver.put(
        {"configurable": configurable}, checkpoint, {"step": number}, dict.fromkeys(values, number)
    )


def values_of(saver: DeltaSaver) -> Any:
    found = saver.get_tuple({"configurable": {"thread_id": "t"}})
    assert found is not None
    return found.checkpoint["channel_values"]


def test_a_text_that_became_one_savers_message_is_not_taken_for_the_others(
    pair: Pair, url: str
) -> None:
    one, other = pair
    put(one, 1, {"__start__": {"messages": [("user", TEXT)]}})
    put(other, 2, {"n": 1}, 1)  # the other has seen the bare text
    put(one, 3, {"messages": [HumanMessage(TEXT, id="h")]}, 1)  # the text becomes this message
    put(other, 4, {"messages": [AIMessage(TEXT, id="echo")]}, 1)
    expected = [SystemMessage("s", id="s"), AIMessage(TEXT, id="echo")]
    put(other, 5, {"messages": expected}, 1)
    assert values_of(other) == values_of(one) == {"messages": expected}
    with DeltaSaver.from_conn_string(url) as cold:
        assert values_of(cold) == {"messages": expected}


def test_a_text_that_has_become_a_message_elsewhere_is_read_as_the_message(pair: Pair) -> None:
    one, other = pair
    put(one, 1, {"__start__": {"messages": [("user", TEXT)]}})
    put(other, 2, {"messages": [HumanMessage(TEXT)]})
    assert values_of(one) == {"messages": [HumanMessage(TEXT)]}


def test_a_message_named_elsewhere_has_its_name_here(pair: Pair) -> None:
    one, other = pair
    put(one, 1, {"messages": [HumanMessage("yes")]})
    put(other, 2, {"messages": [HumanMessage("yes", id="1"), HumanMessage("yes", id="2")]})
    assert values_of(one) == {
        "messages": [HumanMessage("yes", id="1"), HumanMessage("yes", id="2")]
    }
    put(one, 3, {"messages": [HumanMessage("yes", id="1"), HumanMessage("yes", id="3")]})
    assert values_of(other) == {
        "messages": [HumanMessage("yes", id="1"), HumanMessage("yes", id="3")]
    }


def test_a_message_is_stored_once_where_another_saver_has_named_one_that_was_equal(
    pair: Pair,
) -> None:
    one, other = pair
    put(one, 1, {"messages": [HumanMessage("yes")]})
    put(other, 2, {"n": 1}, 1)  # the other has seen it without a name
    put(one, 3, {"messages": [HumanMessage("yes", id="1")]}, 2)
    put(one, 4, {"messages": [HumanMessage("yes", id="1")]}, 3)
    put(
        one, 5, {"messages": [HumanMessage("yes", id="1"), HumanMessage("yes")]}, 4
    )  # said again, and nameless
    put(other, 6, {"messages": [HumanMessage("yes", id="1"), HumanMessage("yes", id="2")]}, 5)
    for saver in pair:
        assert values_of(saver) == {
            "messages": [HumanMessage("yes", id="1"), HumanMessage("yes", id="2")]
        }
        assert rows(saver, "SELECT count(*) FROM item") == [(2,)]


def test_a_checkpoint_that_is_put_again_is_read_as_it_is_now(pair: Pair) -> None:
    one, other = pair
    put(one, 1, {"a": "first"})
    assert values_of(other) == {"a": "first"}
    put(one, 1, {"a": "second"})
    assert values_of(other) == {"a": "second"}


def test_a_thread_that_was_deleted_and_begun_anew_has_nothing_of_the_old(pair: Pair) -> None:
    one, other = pair
    put(one, 1, {"messages": [HumanMessage("old", id="1")]})
    assert values_of(other) == {"messages": [HumanMessage("old", id="1")]}
    one.delete_thread("t")
    put(one, 2, {"messages": [HumanMessage("new", id="1")]})
    assert values_of(other) == {"messages": [HumanMessage("new", id="1")]}


def test_an_added_message_never_takes_the_place_of_one_that_only_looks_like_it(pair: Pair) -> None:
    one, other = pair
    put(one, 1, {"messages": [HumanMessage("yes"), HumanMessage("no"), HumanMessage("yes")]})
    history = ThreadChatMessageHistory("t", other)
    history.add_messages([HumanMessage("yes"), HumanMessage("no")])
    assert [message.content for message in history.messages] == ["yes", "no", "yes", "yes", "no"]
    history.add_messages([HumanMessage("a", id="7"), HumanMessage("b", id="7")])
    assert [message.content for message in ThreadChatMessageHistory("t", one).messages][5:] == ["b"]


def test_a_cleared_history_is_readable_with_every_serializer(url: str) -> None:
    with DeltaSaver(url, serde=JsonPlusSerializer()) as saver:
        history = ThreadChatMessageHistory("t", saver)
        history.add_messages([HumanMessage("x")])
        history.clear()
        assert values_of(saver) == {"messages": []}
        assert history.messages == []
        graph = (
            StateGraph(MessagesState)
            .add_node("none", lambda state: {})
            .add_edge(START, "none")
            .compile(checkpointer=saver)
        )
        graph.invoke({"messages": []}, {"configurable": {"thread_id": "u"}})
        assert ThreadChatMessageHistory("u", saver).messages == []


def test_two_savers_on_one_connection_take_turns(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "t.db", check_same_thread=False)) as connection:
        savers = [DeltaSaver(connection), DeltaSaver(connection)]

        def talk(number: int) -> None:
            graph = echo(savers[number % 2])
            for turn in range(5):
                graph.invoke(
                    {"messages": [HumanMessage(f"{turn}")]},
                    {"configurable": {"thread_id": f"t{number}"}},
                )

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(talk, range(4)))
        for saver in savers:
            for number in range(4):
                found = saver.get_tuple({"configurable": {"thread_id": f"t{number}"}})
                assert found is not None
                assert len(found.checkpoint["channel_values"]["messages"]) == 10


def echo(saver: DeltaSaver) -> Any:
    def answer(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("heard")]}

    return (
        StateGraph(MessagesState)
        .add_node("answer", answer)
        .add_edge(START, "answer")
        .compile(checkpointer=saver)
    )
