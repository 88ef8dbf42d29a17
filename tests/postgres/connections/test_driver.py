"""Promises of a database on PostgreSQL: few round trips, nothing lost or doubled by a broken
connection, many processes at once.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from forked_workers import at_once, open_and_close
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.serde.types import INTERRUPT
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from patience import PATIENCE_S
from proxy import Proxy, with_database
from prune_reference import assert_sound
from psycopg.conninfo import conninfo_to_dict

from langmem_ext import DeltaSaver, InvalidInput, StorageUnavailable, ThreadBusy, Threads
from langmem_ext.storage.postgres.server import Server
from postgres.bouncer import Bouncer
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


async def test_what_is_written_to_a_thread_together_is_counted_in_its_row_as_one_after_the_other(
    proxy: Proxy,
) -> None:
    async with DeltaSaver.from_conn_string(proxy.url) as saver:
        for name, together in (("together", True), ("in turn", False)):
            head = await talk(saver).aupdate_state(
                {"configurable": {"thread_id": name}}, said(0), as_node="answer"
            )
            writes = [
                saver.aput_writes(
                    head,
                    [("messages", [HumanMessage(f"task {at}", id=f"{name}-{at}")])],
                    f"{at:08x}-3333-5333-8333-333333333333",
                )
                for at in range(5)
            ]
            before = proxy.counts()
            if together:
                await asyncio.gather(*writes)
                spent = proxy.counts() - before
                # Each its row of writes, its message's row and the guard on the thread's row; the
                # word that all of these have, once.
                assert (spent.trips, spent.statements) == (1, 16)
            else:
                for write in writes:
                    await write
    with DeltaSaver.open(proxy.url) as saver:
        rows = {name: Threads(saver).get(name) for name in ("together", "in turn")}
        assert {(row.stored_messages, row.messages) for row in rows.values()} == {(6, 1)}
        assert rows["together"].tokens == rows["in turn"].tokens
        assert_sound(saver)


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


async def test_a_new_thread_takes_as_many_round_trips_as_a_known_one(proxy: Proxy) -> None:
    async with DeltaSaver.from_conn_string(proxy.url) as saver:
        await talk(saver).ainvoke(said(0), {"configurable": {"thread_id": "another"}})
        before = proxy.counts()
        await talk(saver).ainvoke(said(0), CONFIG)
        assert 4 <= proxy.counts().trips - before.trips <= 5


def test_a_list_of_many_checkpoints_takes_few_round_trips(proxy: Proxy) -> None:
    with DeltaSaver.open(proxy.url) as saver:
        graph = talk(saver)
        for number in range(20):
            graph.invoke(said(number), CONFIG)
    with DeltaSaver.open(proxy.url) as saver:
        before = proxy.counts()
        assert len(list(saver.list(CONFIG))) == 60
        assert proxy.counts().trips - before.trips < 10


def test_two_workers_that_serve_one_thread_in_turn_never_read_what_is_old(url: str) -> None:
    with DeltaSaver.open(url) as one, DeltaSaver.open(url) as other:
        graphs = talk(one), talk(other)
        for number in range(8):
            state = graphs[number % 2].invoke(said(number), CONFIG)
            assert state["messages"][-1].text == f"{2 * number + 1} so far"


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


async def test_calls_from_several_event_loops_and_threads_share_one_saver(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        graph = talk(saver)

        async def turns(name: str) -> int:
            config: RunnableConfig = {"configurable": {"thread_id": name}}
            for number in range(3):
                state = await graph.ainvoke(said(number), config)
            return len(state["messages"])

        def own_loop(name: str) -> int:
            return asyncio.run(turns(name))

        def no_loop(name: str) -> int:
            for number in range(3):
                state = graph.invoke(said(number), {"configurable": {"thread_id": name}})
            return len(state["messages"])

        with ThreadPoolExecutor(4) as pool:
            loop = asyncio.get_running_loop()
            others = [
                loop.run_in_executor(pool, work, f"{work.__name__}{at}")
                for work in (own_loop, no_loop)
                for at in range(2)
            ]
            assert await asyncio.gather(turns("here"), *others) == [6] * 5


async def test_a_saver_behind_a_pooler_in_transaction_mode_works_as_without(
    database: Database,
) -> None:
    schema = SHARED.new_schema()
    with Bouncer(database.url) as bouncer:
        parts = {"schema": schema, "prepare": "off", "direct": database.url}
        url = f"{bouncer.url}?{urlencode(parts)}"
        async with (
            DeltaSaver.from_conn_string(url) as saver,
            DeltaSaver.from_conn_string(url) as other,
        ):
            graphs = talk(saver), talk(other)

            async def turns(name: str) -> int:
                config: RunnableConfig = {"configurable": {"thread_id": name}}
                for number in range(4):
                    state = await graphs[number % 2].ainvoke(said(number), config)
                return len(state["messages"])

            assert await asyncio.gather(*(turns(f"t{at}") for at in range(8))) == [8] * 8
            assert (
                len(
                    await asyncio.to_thread(
                        lambda: list(saver.list({"configurable": {"thread_id": "t0"}}))
                    )
                )
                == 12
            )
            async with saver.alease("t0"):
                with pytest.raises(ThreadBusy):
                    async with other.alease("t0", wait=0):
                        raise AssertionError("two hold it")


def test_twenty_processes_that_open_a_new_database_at_once_all_find_it(url: str) -> None:
    assert at_once(open_and_close, [(url,)] * 20) == [True] * 20


def test_a_thread_is_driven_by_one_holder_at_a_time(url: str) -> None:
    with DeltaSaver.open(url) as one, DeltaSaver.open(url) as other:
        with one.lease("t"):
            with pytest.raises(ThreadBusy), other.lease("t", wait=0):
                raise AssertionError("two hold it")
            with pytest.raises(ThreadBusy), other.lease("t", wait=0.1):
                raise AssertionError("two hold it")
            with other.lease("u", wait=0):
                pass
        with other.lease("t", wait=0):
            pass


async def test_who_is_cancelled_as_a_lease_connects_is_cancelled_and_leaves_nothing_open(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Older releases of psycopg keep that to themselves.

    What a task was told tells whose the cancellation is.
    """
    connect, made = psycopg.AsyncConnection.connect, list[Any]()

    async def deaf(*args: Any, **options: Any) -> Any:
        made.append(await connect(*args, **options))
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(5)
        return made[0]

    async with DeltaSaver.from_conn_string(url) as saver, asyncio.timeout(PATIENCE_S):
        with monkeypatch.context() as patch:
            patch.setattr(psycopg.AsyncConnection, "connect", deaf)
            holding = asyncio.create_task(saver.alease("t").__aenter__())
            while not made:
                await asyncio.sleep(0.01)
            holding.cancel("by so and so")
            with pytest.raises(asyncio.CancelledError, match="by so and so"):
                await holding
            while not made[0].closed:
                await asyncio.sleep(0.01)
        async with saver.alease("t", wait=0):
            pass


def connections() -> int:
    gc.collect()
    return sum(issubclass(type(one), psycopg.BaseConnection) for one in gc.get_objects())


async def test_nothing_remembers_a_connection_that_has_ended(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        before = connections()
        for _ in range(3):
            with saver.lease("t"):
                pass
            async with saver.alease("t"):
                pass
        assert connections() == before
        saver.get_tuple(CONFIG)
        await saver.aget_tuple(CONFIG)
        assert connections() > before
        await saver.aclose()
    assert connections() == before


@pytest.mark.parametrize("mode", ["ro", "rw"])
def test_a_database_that_must_be_there_is_not_made(url: str, mode: str) -> None:
    with pytest.raises(StorageUnavailable, match="open it once for writing"):
        DeltaSaver.open(f"{url}&mode={mode}")
    DeltaSaver.open(url).close()
    DeltaSaver.open(f"{url}&mode={mode}").close()


def test_nothing_is_written_through_a_database_that_is_only_read(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        talk(saver).invoke(said(0), CONFIG)
    with DeltaSaver.open(f"{url}&mode=ro") as saver:
        assert len(talk(saver).get_state(CONFIG).values["messages"]) == 2
        with pytest.raises(StorageUnavailable, match="opened read-only"):
            saver.delete_thread("t")


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
        ("partitions=-1", "partitions"),
        ("partitions=2000", "partitions"),
        ("nonsense=1", "URL"),
    ],
)
def test_an_option_of_the_url_that_cannot_be_used_is_named(option: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        Server.of(f"postgresql://localhost/x?{option}")


def test_a_database_that_a_server_does_not_have_is_told_with_what_to_look_at(
    database: Database,
) -> None:
    with pytest.raises(
        StorageUnavailable, match="none_of_this_name.*create the database first, or use another"
    ):
        DeltaSaver.open(with_database(database.url, "none_of_this_name"))


def test_what_the_url_says_of_a_connection_counts_for_more() -> None:
    assert (
        Server.of("postgresql://u@h/d?connect_timeout=3")
        .options()
        .keys()
        .isdisjoint({"connect_timeout"})
    )
    assert Server.of("postgresql://u@h/d?deadline=2.5").options()["connect_timeout"] == 3
    assert Server.of("postgresql://u@h/d").options()["connect_timeout"] == 10


def test_what_a_url_says_for_libpq_is_passed_on() -> None:
    server = Server.of(
        "postgres://u@h:5433/d?schema=chat&sslmode=require&pool_size=20&partitions=16"
    )
    assert (server.schema, server.pool_size, server.partitions) == ("chat", 20, 16)
    assert server.conninfo == "postgresql://u@h:5433/d?sslmode=require"
    server = Server.of("postgresql://u@h/d?options=-c%20work_mem%3D1MB&password=a+b%2Bc%26d")
    assert conninfo_to_dict(server.conninfo) == {
        "user": "u",
        "host": "h",
        "dbname": "d",
        "options": "-c work_mem=1MB",
        "password": "a+b+c&d",
    }
