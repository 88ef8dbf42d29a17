"""LangGraph's SDK runs the served graph: it streams, waits, answers what waits, and one run at a
time drives a thread.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import httpx
import pytest
from calling import Caller, another, calling
from langchain_core.runnables import RunnableConfig
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.runtime import Runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph_sdk.errors import APIStatusError
from patience import auntil
from served import greeter, notebook, speaker
from typing_extensions import TypedDict

from langmem_ext import DeltaSaver
from langmem_ext.server import Limits, by_token, create_app

INPUT = {"messages": [{"role": "user", "content": "hi", "id": "m1"}]}
ANN, BOB, ALL = "ann-0123456789abcdef", "bob-0123456789abcdef", "all-0123456789abcdef"


@pytest.fixture
async def greeting(url: str) -> AsyncIterator[Caller]:
    async with calling(create_app(url, graph=greeter())) as caller:
        await caller.sdk.threads.create(thread_id="t1")
        yield caller


@pytest.fixture
async def noting() -> AsyncIterator[Caller]:
    async with calling(
        create_app(":memory:", graph=notebook(), limits=Limits(wait=0.05))
    ) as caller:
        await caller.sdk.threads.create(thread_id="t1")
        yield caller


async def status_of(call: Awaitable[Any]) -> int:
    """How the server refuses a call; the SDK has two kinds of errors for it."""
    with pytest.raises((APIStatusError, httpx.HTTPStatusError)) as refused:
        await call
    code: int = refused.value.response.status_code  # type: ignore[attr-defined]
    return code


async def test_an_answer_is_streamed_as_it_happens(greeting: Caller) -> None:
    asked = [part async for part in greeting.sdk.runs.stream("t1", "agent", input=INPUT)]
    assert [part.event for part in asked] == ["metadata", "values", "values"]
    assert asked[-1].data["__interrupt__"][0]["value"] == {"question": "What's your name?"}
    modes: Any = ["updates", "values", "messages-tuple"]
    by_id = {asked[-1].data["__interrupt__"][0]["id"]: "Ann"}
    answered = [
        part
        async for part in greeting.sdk.runs.stream(
            "t1", "agent", command={"resume": by_id}, stream_mode=modes
        )
    ]
    assert [part.data for part in answered if part.event == "updates"][0] == {
        "ask": {"name": "Ann"}
    }
    assert answered[-1].data["name"] == "Ann"
    assert [message["content"] for message in answered[-1].data["messages"]] == ["hi", "Hello Ann"]
    states = await greeting.sdk.threads.get_history("t1")
    assert {state["metadata"]["run_id"] for state in states if state["metadata"]["step"] > 0} == {
        answered[0].data["run_id"]
    }  # type: ignore[index, operator]


async def test_what_a_model_says_is_streamed_piece_by_piece() -> None:
    async with calling(create_app(":memory:", graph=speaker("well met"))) as caller:
        said = {"if_not_exists": "create", "input": INPUT}
        stream: Any = caller.sdk.runs.stream
        parts = [part async for part in stream("t1", "agent", stream_mode="messages", **said)]
        grown = [part.data[0]["content"] for part in parts if part.event == "messages/partial"]
        assert len(grown) > 2
        assert grown[-1] == "well met"
        assert parts[1].event == "messages/metadata"
        parts = [part async for part in stream("t2", "agent", stream_mode="messages-tuple", **said)]
        pieces = [part.data[0]["content"] for part in parts if part.event == "messages"]
        assert "".join(pieces) == "well met"


async def test_a_run_goes_on_when_nobody_listens_and_is_joined(noting: Caller) -> None:
    run = await noting.sdk.runs.create("t1", "agent", input={"notes": ["one"]})
    assert await noting.sdk.runs.join("t1", run["run_id"]) == {"notes": ["one", "noted"]}
    assert (await noting.sdk.runs.get("t1", run["run_id"]))["status"] == "success"
    assert [one["run_id"] for one in await noting.sdk.runs.list("t1")] == [run["run_id"]]


async def test_one_run_at_a_time_drives_a_thread_and_can_be_stopped(noting: Caller) -> None:
    run = await noting.sdk.runs.create("t1", "agent", input={"notes": ["slowly"]})
    assert (await noting.sdk.threads.get("t1"))["status"] == "busy"
    assert [thread["thread_id"] for thread in await noting.sdk.threads.search(status="busy")] == [
        "t1"
    ]
    for strategy in ("reject", "enqueue"):
        second = noting.sdk.runs.wait(
            "t1", "agent", input={"notes": []}, multitask_strategy=strategy
        )  # type: ignore[call-overload]
        assert await status_of(second) == 409
    assert (
        await status_of(noting.sdk.threads.update_state("t1", {"notes": ["x"]}, as_node="note"))
        == 409
    )
    await noting.sdk.runs.cancel("t1", run["run_id"], wait=True)
    assert (await noting.sdk.runs.get("t1", run["run_id"]))["status"] == "interrupted"
    state = await noting.sdk.threads.get_state("t1")
    assert (state["values"], state["next"]) == ({"notes": ["slowly"]}, ["note"])


async def test_a_run_is_stopped_with_its_server_and_its_thread_goes_on(url: str) -> None:
    async with calling(create_app(url, graph=notebook())) as caller:
        await caller.sdk.threads.create(thread_id="t1")
        await caller.sdk.runs.create("t1", "agent", input={"notes": ["slowly"]})
        await auntil(lambda: _has_begun(caller))
    async with DeltaSaver.from_conn_string(url) as saver, saver.alease("t1", wait=0):
        pass  # it is free
    async with calling(create_app(url, graph=notebook())) as caller:
        assert (await caller.sdk.threads.get_state("t1"))["next"] == ["note"]


async def _has_begun(caller: Caller) -> bool:
    return (await caller.sdk.threads.get_state("t1"))["next"] == ["note"]


async def test_a_failure_of_the_graph_is_told_without_what_it_holds(noting: Caller) -> None:
    parts = [
        part async for part in noting.sdk.runs.stream("t1", "agent", input={"notes": ["fail"]})
    ]
    assert (parts[-1].event, parts[-1].data) == (
        "error",
        {"error": "RuntimeError", "message": "RuntimeError"},
    )
    result: Any = await noting.sdk.runs.wait(
        "t1", "agent", input={"notes": ["fail"]}, raise_error=False
    )
    assert result["__error__"]["error"] == "RuntimeError"
    assert "secret" not in json.dumps([part.data for part in parts])
    assert (await noting.sdk.threads.get("t1"))["status"] == "error"


async def test_a_client_chooses_neither_the_owner_nor_the_thread_by_its_config() -> None:
    app = create_app(":memory:", graph=greeter(), access=by_token({ANN: "ann", BOB: "bob"}))
    async with calling(app, headers={"X-Api-Key": ANN}) as ann:
        await ann.sdk.threads.create(thread_id="t1")
        config: Any = {
            "configurable": {
                "owner": "bob",
                "thread_id": "t2",
                "__pregel_checkpointer": "none",
                "tz": "Europe/Rome",
            }
        }
        await ann.sdk.runs.wait("t1", "agent", input=INPUT, config=config)
        assert [thread["thread_id"] for thread in await ann.sdk.threads.search()] == ["t1"]
        run = await ann.sdk.runs.create("t1", "agent", command={"resume": "Ann"})
        ann.http.headers["X-Api-Key"] = BOB
        runs, name = ann.sdk.runs, run["run_id"]
        for call in (
            *(does("t1", name) for does in (runs.get, runs.join, runs.cancel)),
            runs.wait("t1", "agent", input=INPUT),
            runs.wait("t1", "agent", input=INPUT, if_not_exists="create"),
        ):
            assert await status_of(call) == 404


async def test_a_run_forks_where_it_is_told_to_and_stops_where_it_is_told_to(
    noting: Caller,
) -> None:
    await noting.sdk.runs.wait("t1", "agent", input={"notes": ["one"]})
    first = (await noting.sdk.threads.get_state("t1"))["checkpoint"]
    await noting.sdk.runs.wait("t1", "agent", input={"notes": ["two"]})
    forked: Any = await noting.sdk.runs.wait(
        "t1", "agent", input={"notes": ["three"]}, checkpoint_id=first["checkpoint_id"]
    )
    assert forked == {"notes": ["one", "noted", "three", "noted"]}
    await noting.sdk.runs.wait("t1", "agent", input={"notes": ["four"]}, interrupt_before=["note"])
    assert (await noting.sdk.threads.get_state("t1"))["next"] == ["note"]
    gone_on: Any = await noting.sdk.runs.wait("t1", "agent", input=None)
    assert gone_on["notes"][-2:] == ["four", "noted"]


async def test_what_needs_a_queue_is_said_not_to_be_served(noting: Caller) -> None:
    runs = noting.sdk.runs
    for call in (
        runs.wait(None, "agent", input={}),
        runs.create("t1", "agent", input={}, webhook="https://example.com"),
        runs.create("t1", "agent", input={}, after_seconds=5),
        runs.create("t1", "agent", input={}, multitask_strategy="rollback"),
        noting.sdk.crons.search(),
    ):
        assert await status_of(call) == 501
    assert await status_of(runs.create("t1", "another", input={})) == 404
    assert await status_of(runs.create("nobody", "agent", input={})) == 404
    assert await status_of(runs.create("t1", "agent", command={"goto": [{"node": "note"}]})) == 422  # type: ignore[arg-type]


class Who(TypedDict):
    user_id: str


class Told(MessagesState):
    told: list[Any]


async def tell(state: Told, config: RunnableConfig, runtime: Runtime[Who]) -> dict[str, Any]:
    """Tell who the user is, and put it where all users put theirs."""
    assert runtime.store is not None
    before = await runtime.store.aget(("who",), "last")
    info, told = runtime.server_info, config["configurable"]
    user = info.user if info is not None else None
    await runtime.store.aput(("who",), "last", {"by": told.get("user_id")})
    return {
        "told": [
            None if user is None else (user.identity, user["identity"], user.display_name),
            *(told.get(name) for name in ("langgraph_auth_user_id", "user_id")),
            *(told.get(name) for name in ("langgraph_auth_permissions", "tz")),
            runtime.context["user_id"],
            None if before is None else before.value,
        ]
    }


def telling(store: BaseStore | None) -> Any:
    """A graph that tells who its user is."""
    builder = StateGraph(Told, context_schema=Who).add_node(tell).add_edge(START, "tell")
    return builder.compile(store=store)


async def test_a_graph_is_told_the_user_by_the_server_and_has_that_users_store(url: str) -> None:
    names = {"user_id": "bob", "langgraph_auth_user_id": "bob", "langgraph_auth_permissions": ["x"]}
    config: Any = {"configurable": {**names, "langgraph_auth_user": {"identity": "bob"}, "tz": "Z"}}
    tokens = {"ann": ANN, "bob": BOB, None: ALL}
    access = by_token({token: name for name, token in tokens.items()})
    before: dict[str, Any] = {}
    async with DeltaSaver.from_conn_string(url) as saver:
        for store in (None, saver.store):
            app = create_app(saver, graph=telling(store), access=access)
            async with calling(app):
                for name in ("bob", "ann", "bob", None):
                    async with another(app, headers={"X-Api-Key": tokens[name]}) as caller:
                        thread = (await caller.sdk.threads.create())["thread_id"]
                        values: Any = await caller.sdk.runs.wait(
                            thread, "agent", input=INPUT, config=config, context={"user_id": "bob"}
                        )
                    user = None if name is None else [name] * 3
                    told = [user, name, name or "bob", None, "Z", name or "bob"]
                    assert values["told"][:-1] == told
                    if name is not None:
                        assert values["told"][-1] == before.get(name)
                        before[name] = {"by": name}


async def test_an_owner_runs_no_graph_whose_store_shows_the_items_of_all() -> None:
    app = create_app(":memory:", graph=telling(InMemoryStore()), access=by_token({ANN: "ann"}))
    async with calling(app, headers={"X-Api-Key": ANN}) as ann:
        run = ann.sdk.runs.wait("t1", "agent", input=INPUT, if_not_exists="create")
        assert await status_of(run) == 501
