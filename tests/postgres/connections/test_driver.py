"""Promises of a database on PostgreSQL: few round trips, nothing lost or doubled by a broken
connection, many processes at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from forked_workers import at_once, open_and_close
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from proxy import Proxy, with_database

from langmem_ext import DeltaSaver, InvalidInput, StorageUnavailable
from postgres.server import SHARED, Database

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}


@pytest.fixture
def url(database: Database) -> str:
    return f"{database.url}?schema={SHARED.new_schema()}"


@pytest.fixture
def proxy(url: str) -> Iterator[Proxy]:
    with Proxy(url) as made:
        yield made


def talk(saver: Any) -> Any:
    """A graph that answers with the number of messages."""
    builder = StateGraph(MessagesState)
    builder.add_node(
        "answer", lambda state: {"messages": [AIMessage(f"{len(state['messages'])} so far")]}
    )
    return builder.add_edge(START, "answer").compile(checkpointer=saver)


def said(number: int) -> dict[str, Any]:
    return {"messages": [HumanMessage(f"turn {number}", id=f"h{number}")]}


async def test_a_turn_of_a_known_thread_takes_four_round_trips(proxy: Proxy) -> None:
    async with DeltaSaver.from_conn_string(proxy.url) as saver:
        graph = talk(saver)
        for number in range(3):
            await graph.ainvoke(said(number), CONFIG)
        before = proxy.counts()
        for number in range(3, 13):
            await graph.ainvoke(said(number), CONFIG)
        # On a busy machine a task's writes may come too late for the trip of the checkpoint that
        # follows.
        assert 40 <= proxy.counts().trips - before.trips < 45
        assert [message.text for message in (await graph.aget_state(CONFIG)).values["messages"]][
            -2:
        ] == ["turn 12", "25 so far"]


def asking(saver: DeltaSaver) -> Any:
    """A graph that asks a long question, and says what it was told."""
    builder = StateGraph(MessagesState)
    builder.add_node("ask", lambda state: {"messages": [AIMessage(interrupt("which one? " * 20))]})
    return builder.add_edge(START, "ask").compile(checkpointer=saver)


async def test_a_worker_that_knows_nothing_of_a_thread_reads_it_in_two_round_trips(
    proxy: Proxy,
) -> None:
    async with DeltaSaver.from_conn_string(proxy.url) as saver:
        await asking(saver).ainvoke(said(0), CONFIG)
    async with DeltaSaver.from_conn_string(proxy.url) as saver:
        before = proxy.counts()
        found = await saver.aget_tuple(CONFIG)
        assert proxy.counts().trips - before.trips == 2
        assert found is not None
        assert [
            value[0].value
            for _, channel, value in found.pending_writes or ()
            if channel == INTERRUPT
        ] == ["which one? " * 20]
        before = proxy.counts()
        answered = await asking(saver).ainvoke(Command(resume="this one"), CONFIG)
        assert [message.text for message in answered["messages"]] == ["turn 0", "this one"]
        assert 3 <= proxy.counts().trips - before.trips <= 4


def test_a_list_of_many_checkpoints_takes_few_round_trips(proxy: Proxy) -> None:
    with DeltaSaver.open(proxy.url) as saver:
        graph = talk(saver)
        for number in range(20):
            graph.invoke(said(number), CONFIG)
    with DeltaSaver.open(proxy.url) as saver:
        before = proxy.counts()
        assert len(list(saver.list(CONFIG))) == 60
        assert proxy.counts().trips - before.trips < 10


def test_a_turn_whose_connections_are_cut_anywhere_is_stored_once(proxy: Proxy) -> None:
    with DeltaSaver.open(proxy.url) as saver:
        graph = talk(saver)
        graph.invoke(said(0), CONFIG)
        for number in range(1, 41):
            proxy.cut_after(number * 211 % 5000)
            graph.invoke(said(number), CONFIG)
        found = [
            message.id
            for message in graph.get_state(CONFIG).values["messages"]
            if message.type == "human"
        ]
        assert found == [f"h{number}" for number in range(41)]
        assert len(list(graph.get_state_history(CONFIG))) == 3 * 41


def test_twenty_processes_that_open_a_new_database_at_once_all_find_it(url: str) -> None:
    assert at_once(open_and_close, [(url,)] * 20) == [True] * 20


@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_a_database_that_must_be_there_is_not_made(url: str, mode: str) -> None:
    with pytest.raises(StorageUnavailable, match="open it once for writing"):
        DeltaSaver.open(f"{url}&mode={mode}")
    DeltaSaver.open(url).close()
    DeltaSaver.open(f"{url}&mode={mode}").close()


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    with pytest.raises(
        StorageUnavailable, match=r"PostgreSQL database shop at 127\.0\.0\.1"
    ) as raised:
        DeltaSaver.open("postgresql://me:secret-word@127.0.0.1:1/shop")
    assert "secret-word" not in str(raised.value)


@pytest.mark.parametrize(
    ("option", "told"),
    [
        ("schema=Shop", "schema"),
        ("schema=a%22b", "schema"),
        ("pool_size=0", "pool_size"),
        ("prepare=maybe", "prepare"),
        ("mode=x", "mode"),
        ("deadline=0", "deadline"),
        ("answer_deadline=soon", "answer_deadline"),
        ("nonsense=1", "URL"),
    ],
)
def test_an_option_of_the_url_that_cannot_be_used_is_named(option: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        DeltaSaver.open(f"postgresql://localhost/x?{option}")


def test_a_database_that_a_server_does_not_have_is_told_with_what_to_look_at(
    database: Database,
) -> None:
    with pytest.raises(
        StorageUnavailable, match="none_of_this_name.*create the database first, or use another"
    ):
        DeltaSaver.open(with_database(database.url, "none_of_this_name"))
