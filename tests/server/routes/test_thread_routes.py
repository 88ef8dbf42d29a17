"""LangGraph's SDK works with threads over HTTP, on each kind of database, without a graph and with
one.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from calling import Caller, calling
from langchain_core.messages import HumanMessage
from langgraph_sdk.errors import (
    APIStatusError,
    ConflictError,
    NotFoundError,
    UnprocessableEntityError,
)
from served import greeter, notebook

from langmem_ext import DeltaSaver
from langmem_ext.server import create_app


@pytest.fixture
async def caller(url: str) -> AsyncIterator[Caller]:
    async with calling(create_app(url)) as caller:
        yield caller


@pytest.fixture
async def saver(url: str) -> AsyncIterator[DeltaSaver]:
    async with DeltaSaver.from_conn_string(url) as saver:
        yield saver


async def ask(saver: DeltaSaver, thread_id: str) -> None:
    """A thread that waits for a name."""
    graph = greeter().copy({"checkpointer": saver})
    await graph.ainvoke(
        {"messages": [HumanMessage("hi", id=f"hi-{thread_id}")]},
        {"configurable": {"thread_id": thread_id}},
    )


async def note(saver: DeltaSaver, thread_id: str, *notes: str) -> None:
    """A thread that is at rest, with notes; or that has failed."""
    graph = notebook().copy({"checkpointer": saver})
    await graph.ainvoke({"notes": list(notes)}, {"configurable": {"thread_id": thread_id}})


async def ids(caller: Caller, **wanted: Any) -> list[str]:
    return [thread["thread_id"] for thread in await caller.sdk.threads.search(**wanted)]


async def test_a_thread_is_made_found_noted_copied_and_deleted(caller: Caller) -> None:
    threads = caller.sdk.threads
    made = await threads.create(
        thread_id="a b/ü".replace("/", ""), metadata={"customer": "c-9"}, graph_id="support"
    )
    assert made["metadata"] == {"customer": "c-9", "graph_id": "support"}
    assert (made["status"], made["values"], made.get("interrupts")) == ("idle", None, None)
    assert await threads.get(made["thread_id"]) == made

    noted = await threads.update(made["thread_id"], metadata={"customer": None, "vip": True})
    assert noted["metadata"] == {"graph_id": "support", "vip": True}
    assert await threads.update(made["thread_id"], metadata={}, return_minimal=True) is None  # type: ignore[call-overload]

    copy = await threads.copy(made["thread_id"])
    assert copy["thread_id"] != made["thread_id"]  # type: ignore[index]
    assert copy["metadata"] == noted["metadata"]  # type: ignore[index]

    await threads.delete(made["thread_id"])
    for call in (threads.get, threads.delete, threads.copy, threads.get_state, threads.get_history):
        with pytest.raises(NotFoundError):
            await call(made["thread_id"])  # type: ignore[operator]


async def test_a_thread_is_made_once_and_has_no_states_yet(caller: Caller) -> None:
    threads = caller.sdk.threads
    made = await threads.create(thread_id="t1", metadata={"n": 1})
    with pytest.raises(ConflictError, match="already"):
        await threads.create(thread_id="t1")
    there = await threads.create(thread_id="t1", if_exists="do_nothing", metadata={"n": 2})
    assert there == made
    assert (await threads.create())["thread_id"] not in ("", "t1")
    assert (await threads.get_state("t1"))["values"] == {}
    nowhere = "1ef00000-0000-6000-8000-000000000000"
    assert (await threads.get_state("t1", checkpoint_id=nowhere))["next"] == []
    assert await threads.get_history("t1") == []
    with pytest.raises(APIStatusError, match="time to live") as refused:
        await threads.create(ttl=5)
    assert refused.value.status_code == 501
    assert await threads.count() == 2, "what cannot be kept is not promised"


async def test_a_thread_shows_what_it_waits_for_and_its_values(
    caller: Caller, saver: DeltaSaver
) -> None:
    await ask(saver, "t1")
    thread = await caller.sdk.threads.get("t1")
    assert thread["status"] == "interrupted"
    [(task, [waiting])] = thread["interrupts"].items()
    assert waiting == {"id": waiting["id"], "value": {"question": "What's your name?"}}
    [message] = thread["values"]["messages"]  # type: ignore[call-overload]
    assert (message["type"], message["content"], message["id"]) == ("human", "hi", "hi-t1")

    state = await caller.sdk.threads.get_state("t1")
    assert state["next"] == ["ask"]
    assert [(one["id"], one["name"], one["interrupts"]) for one in state["tasks"]] == [
        (task, "ask", [waiting])
    ]
    assert state["interrupts"] == [waiting]
    assert state["values"] == thread["values"]


async def test_states_are_what_the_graph_itself_gives(url: str, saver: DeltaSaver) -> None:
    await ask(saver, "t1")
    async with (
        calling(create_app(url)) as plain,
        calling(create_app(url, graph=greeter())) as whole,
    ):
        assert await plain.sdk.threads.get_state("t1") == await whole.sdk.threads.get_state("t1")
        alone, of_graph = [await caller.sdk.threads.get_history("t1") for caller in (plain, whole)]
        assert of_graph[-1]["values"] == {"messages": []}, "it knows what a list begins with"
        of_graph[-1]["values"] = {}
        assert alone == of_graph
        assert len(alone) == 2


async def test_a_checkpoint_is_read_by_its_id_and_history_stops_before_it(
    caller: Caller, saver: DeltaSaver
) -> None:
    await note(saver, "t1", "one")
    await note(saver, "t1", "two")
    threads = caller.sdk.threads
    states = await threads.get_history("t1", limit=100)
    assert [state["values"].get("notes", []) for state in states][0] == [
        "one",
        "noted",
        "two",
        "noted",
    ]
    middle = states[2]
    for by in (
        {"checkpoint_id": middle["checkpoint"]["checkpoint_id"]},
        {"checkpoint": middle["checkpoint"]},
    ):
        assert await threads.get_state("t1", **by) == middle  # type: ignore[arg-type]
    assert await threads.get_history("t1", limit=2, before=middle["checkpoint"]) == states[3:5]
    assert [
        state["metadata"]["source"]
        for state in await threads.get_history("t1", metadata={"source": "input"})
    ] == ["input"] * 2
    assert (await threads.get_state("t1", select=["nothing"]))["values"] == {}  # type: ignore[call-arg]


async def test_threads_are_found_by_what_is_noted_and_what_they_hold(
    caller: Caller, saver: DeltaSaver
) -> None:
    threads = caller.sdk.threads
    await ask(saver, "waits")
    await note(saver, "rests", "one")
    with pytest.raises(RuntimeError):
        await note(saver, "failed", "fail")
    await threads.create(
        thread_id="empty", metadata={"a": {"b": 1, "c": "x"}, "d": True, "quote": 'say "hi"'}
    )
    assert sorted(await ids(caller)) == ["empty", "failed", "rests", "waits"]
    for status, found in (("interrupted", "waits"), ("error", "failed")):
        assert await ids(caller, status=status) == [found]
        assert await threads.count(status=status) == 1  # type: ignore[arg-type]
    assert sorted(await ids(caller, status="idle")) == ["empty", "rests"]
    assert await ids(caller, status="busy") == []
    assert "RuntimeError" in (await threads.get("failed"))["error"]  # type: ignore[typeddict-item]
    for metadata in ({"a": {"b": 1}}, {"a": {"c": "x"}, "d": True}, {"quote": 'say "hi"'}):
        assert await ids(caller, metadata=metadata) == ["empty"]
        assert await threads.count(metadata=metadata) == 1
    for metadata in ({"a": {"b": 2}}, {"d": 1}, {"a": {}, "e": None}):
        assert await ids(caller, metadata=metadata) == []
    assert await ids(caller, values={"notes": ["one", "noted"]}) == ["rests"]
    assert await threads.count(values={"notes": ["one", "noted"]}) == 1
    assert sorted(await ids(caller, ids=["waits", "rests", "nobody"])) == ["rests", "waits"]
    assert await threads.count() == 4


async def test_threads_come_in_the_order_and_the_pages_that_are_asked_for(caller: Caller) -> None:
    for name in "bca":
        await caller.sdk.threads.create(thread_id=name)
    assert await ids(caller) == ["a", "c", "b"]
    assert await ids(caller, sort_by="thread_id", sort_order="asc") == ["a", "b", "c"]
    assert await ids(caller, sort_by="created_at", sort_order="asc") == ["b", "c", "a"]
    assert await ids(caller, sort_by="status", sort_order="asc", limit=2) == ["b", "c"]
    assert await ids(caller, limit=1, offset=1) == ["c"]
    first = await caller.http.post("/threads/search", json={"limit": 2})
    assert (first.headers["X-Pagination-Total"], first.headers["X-Pagination-Next"]) == ("3", "2")
    last = await caller.http.post("/threads/search", json={"limit": 2, "offset": 2})
    assert (last.headers["X-Pagination-Total"], last.headers.get("X-Pagination-Next")) == (
        "3",
        None,
    )


async def test_only_the_fields_that_are_asked_for_are_sent(
    caller: Caller, saver: DeltaSaver
) -> None:
    await ask(saver, "t1")
    [row] = await caller.sdk.threads.search(
        select=["thread_id", "status"],
        extract={"last": "values.messages[-1].content", "none": "values.messages[7].content"},
    )
    assert row == {
        "thread_id": "t1",
        "status": "interrupted",
        "extracted": {"last": "hi", "none": None},
    }
    for extract in ({"a b": "values.x"}, {"status": "values.x"}, {"x": "thread_id"}):
        with pytest.raises(UnprocessableEntityError):
            await caller.sdk.threads.search(extract=extract)


async def test_threads_are_pruned(caller: Caller, saver: DeltaSaver) -> None:
    await note(saver, "t1", "one")
    await note(saver, "t2", "two")
    assert await caller.sdk.threads.prune(["t1", "nobody"], strategy="keep_latest") == {
        "pruned_count": 1
    }
    assert len(await caller.sdk.threads.get_history("t1")) == 1
    assert await caller.sdk.threads.prune(["t1"]) == {"pruned_count": 1}
    assert await ids(caller) == ["t2"]


async def test_a_state_is_changed_where_there_is_a_graph(url: str, saver: DeltaSaver) -> None:
    await note(saver, "t1", "one")
    async with (
        calling(create_app(url)) as plain,
        calling(create_app(url, graph=notebook())) as whole,
    ):
        with pytest.raises(APIStatusError, match="--graph"):
            await plain.sdk.threads.update_state("t1", {"notes": ["x"]})
        threads = whole.sdk.threads
        before = await threads.get_state("t1")
        changed = await threads.update_state("t1", {"notes": ["x"]}, as_node="note")
        after = await threads.get_state("t1")
        assert changed["checkpoint"] == after["checkpoint"]
        assert after["values"] == {"notes": ["one", "noted", "x"]}
        forked = await threads.update_state(
            "t1", {"notes": ["y"]}, checkpoint=before["checkpoint"], as_node="note"
        )
        assert (await threads.get_state("t1", checkpoint=forked["checkpoint"]))["values"] == {
            "notes": ["one", "noted", "y"]
        }  # type: ignore[arg-type]
        with pytest.raises(APIStatusError, match="Node nobody does not exist") as refused:
            await threads.update_state("t1", {}, as_node="nobody")
        assert refused.value.status_code == 400
        with pytest.raises(NotFoundError):
            await threads.update_state("nobody", {"notes": []})


async def test_every_thread_of_a_server_with_a_graph_is_of_that_graph(
    url: str, saver: DeltaSaver
) -> None:
    await ask(saver, "t1")
    async with calling(create_app(url, graph=greeter(), graph_id="greeter")) as caller:
        found = await caller.sdk.threads.get("t1")
        assistant = found["metadata"]["assistant_id"]  # type: ignore[index]
        for metadata in ({"graph_id": "greeter"}, {"assistant_id": assistant}):
            assert await ids(caller, metadata=metadata) == ["t1"]
        assert await ids(caller, metadata={"graph_id": "other"}) == []
        await caller.sdk.threads.create(thread_id="t2", graph_id="other")
        assert await ids(caller, metadata={"graph_id": "other"}) == ["t2"]
