"""A value that the graph's channels do not take is refused over HTTP, and nothing is stored.

The question that waited still waits. A thread that was given such a value elsewhere can be read.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from calling import Caller, calling
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from langgraph.types import Command, interrupt
from payments import Payments
from pydantic import BaseModel
from typing_extensions import TypedDict

from langmem_ext import DeltaSaver
from langmem_ext.server import create_app

GOOD = {"messages": [{"role": "user", "content": "hello", "id": "m1"}]}


def extend(before: list[Any], added: list[Any]) -> Any:
    return functools.reduce(add_messages, added, before)  # type: ignore[arg-type]


class Asking(MessagesState):
    name: str


class Checked(BaseModel):
    messages: Annotated[list[AnyMessage], add_messages] = []
    name: str = ""
    age: int = 0


@dataclass
class Kept:
    messages: Annotated[list[AnyMessage], add_messages]
    name: str = ""


class Sparse(TypedDict):
    messages: Annotated[list[AnyMessage], DeltaChannel(extend)]
    name: str


def ask(state: Any) -> dict[str, Any]:
    name = interrupt("What is your name?")
    return {"name": name, "messages": [AIMessage(f"Hello {name}", id="greeting")]}


def asking(schema: Any, *, routed: bool = False) -> Any:
    builder = StateGraph(schema).add_node(ask)
    if routed:
        builder.add_conditional_edges(START, lambda state: "ask", ["ask"])
    else:
        builder.add_edge(START, "ask")
    return builder.compile()


SCHEMAS = {
    "typed": asking(Asking),
    "routed": asking(Asking, routed=True),
    "pydantic": asking(Checked),
    "pydantic routed": asking(Checked, routed=True),
    "dataclass": asking(Kept),
    "delta": asking(Sparse),
}


@pytest.fixture(params=[*SCHEMAS])
async def caller(request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    """A client of a server on whose thread `t` a question waits."""
    async with calling(create_app(":memory:", graph=SCHEMAS[request.param])) as caller:
        await caller.sdk.threads.create(thread_id="t")
        await caller.sdk.runs.wait("t", "agent", input=GOOD)
        yield caller


NO_MESSAGES: list[Any] = [
    5,
    {"role": "tool", "content": "of no call"},
    [{"role": "boss", "content": "hi"}],
    [{"role": "user"}],
    [7],
    [[1, 2, 3]],
    [{"type": "remove", "id": "nothing", "content": ""}],
]
NO_INPUTS: list[Any] = ["hi", ["user", "hi"], [["user", "hi"]], 5, True]


async def everything(caller: Caller) -> Any:
    """What the server tells of the thread."""
    state = (await caller.http.get("/threads/t/state")).json()
    history = (await caller.http.post("/threads/t/history", json={})).json()
    return state, history, (await caller.http.get("/threads/t")).json()


async def refused(caller: Caller, path: str, body: dict[str, Any]) -> str:
    answer = await caller.http.post(path, json=body)
    assert answer.status_code == 422, (path, body, answer.text)
    detail: str = answer.json()["detail"]
    assert len(detail.split()) > 4
    return detail


async def test_an_input_that_the_graph_does_not_take_is_refused_and_the_question_waits(
    caller: Caller,
) -> None:
    before = await everything(caller)
    assert before[0]["interrupts"][0]["value"] == "What is your name?"
    for bad in [*NO_INPUTS, *({"messages": messages} for messages in NO_MESSAGES)]:
        for how in ("runs", "runs/wait", "runs/stream"):
            await refused(caller, f"/threads/t/{how}", {"assistant_id": "agent", "input": bad})
    assert await everything(caller) == before
    assert len(await caller.sdk.runs.list("t")) == 1
    answered: Any = await caller.sdk.runs.wait("t", "agent", command={"resume": "Ann"})
    assert [message["content"] for message in answered["messages"]] == ["hello", "Hello Ann"]


async def test_what_a_command_or_an_update_puts_into_the_state_is_checked_too(
    caller: Caller,
) -> None:
    before = await everything(caller)
    for messages in NO_MESSAGES:
        update = {"messages": messages}
        for command in (
            {"update": update},
            {"update": [["messages", messages]]},
            {"update": update, "resume": "Ann"},
        ):
            await refused(
                caller, "/threads/t/runs/wait", {"assistant_id": "agent", "command": command}
            )
        for node in ("ask", "__input__", None):
            await refused(caller, "/threads/t/state", {"values": update, "as_node": node})
    for command in (
        {"update": 5},
        {"update": {"nothing": 1}},
        {"update": {"__start__": {"messages": 5}}},
        {"update": {"__pregel_tasks": [7]}},
        {"goto": "nowhere"},
        {"goto": [{"node": "nowhere", "input": {}}]},
    ):
        await refused(caller, "/threads/t/runs", {"assistant_id": "agent", "command": command})
    await refused(caller, "/threads/t/state", {"values": [[GOOD, "ask"]], "as_node": "__copy__"})
    unknown = await caller.http.post("/threads/t/state", json={"values": {}, "as_node": "nobody"})
    assert unknown.status_code == 400
    assert await everything(caller) == before
    taken: Any = await caller.sdk.runs.wait("t", "agent", command={"resume": "Ann"})
    assert taken["name"] == "Ann"


@pytest.mark.parametrize("schema", ["pydantic", "pydantic routed"])
async def test_a_state_that_its_schema_refuses_is_not_stored(schema: str) -> None:
    async with calling(create_app(":memory:", graph=SCHEMAS[schema])) as caller:
        await caller.sdk.threads.create(thread_id="t")
        await caller.sdk.runs.wait("t", "agent", input=GOOD)
        before = await everything(caller)
        bad = {"messages": [], "age": "many"}
        for path, body in (
            ("/threads/t/runs/wait", {"assistant_id": "agent", "input": bad}),
            ("/threads/t/state", {"values": bad, "as_node": "__start__"}),
            (
                "/threads/t/runs",
                {"assistant_id": "agent", "command": {"goto": {"node": "ask", "input": bad}}},
            ),
        ):
            assert "age" in await refused(caller, path, body)
        assert await everything(caller) == before
        assert (await caller.sdk.threads.get("t"))["status"] == "interrupted"


async def test_a_refused_input_makes_no_thread() -> None:
    async with calling(create_app(":memory:", graph=SCHEMAS["typed"])) as caller:
        body = {"assistant_id": "agent", "input": {"messages": 5}, "if_not_exists": "create"}
        await refused(caller, "/threads/new/runs/wait", body)
        assert await caller.sdk.threads.count() == 0
        body["input"] = GOOD
        assert (await caller.http.post("/threads/new/runs/wait", json=body)).status_code == 200


async def test_values_of_a_subgraph_are_checked_against_its_own_channels() -> None:
    inner = StateGraph(Asking).add_node(ask).add_edge(START, "ask").compile()
    graph = StateGraph(MessagesState).add_node("inner", inner).add_edge(START, "inner").compile()
    async with calling(create_app(":memory:", graph=graph)) as caller:
        await caller.sdk.threads.create(thread_id="t")
        await caller.sdk.runs.wait("t", "agent", input=GOOD)
        state = await caller.sdk.threads.get_state("t", subgraphs=True)
        place = state["tasks"][0]["state"]["checkpoint"]  # type: ignore[index]
        bad = {"values": {"messages": 5}, "checkpoint": place, "as_node": "ask"}
        await refused(caller, "/threads/t/state", bad)
        bad["values"] = {"name": "Ann"}
        assert (await caller.http.post("/threads/t/state", json=bad)).status_code == 200


@pytest.mark.parametrize("bad", [{"messages": 5}, {"messages": [{"role": "boss"}]}, "hi"])
async def test_a_thread_that_was_given_a_bad_input_elsewhere_can_be_read_and_goes_on(
    bad: Any, url: str
) -> None:
    async with DeltaSaver.from_conn_string(url) as saver:
        graph = SCHEMAS["typed"].copy({"checkpointer": saver})
        async with calling(create_app(saver, graph=SCHEMAS["typed"])) as caller:
            await caller.sdk.threads.create(thread_id="t")
            await caller.sdk.runs.wait("t", "agent", input=GOOD)
            with suppress(Exception):  # whatever LangGraph makes of it
                await graph.ainvoke(bad, {"configurable": {"thread_id": "t"}})
            state, history, thread = await everything(caller)
            assert [message["content"] for message in state["values"]["messages"]] == ["hello"]
            assert len(history) > 1
            assert thread["status"] == "error"
            found = await caller.sdk.threads.search(status="error")
            assert [one["thread_id"] for one in found] == ["t"]
            answer: Any = await caller.sdk.runs.wait("t", "agent", input=GOOD)
            assert answer["__interrupt__"][0]["value"] == "What is your name?"
            assert (await caller.sdk.threads.get("t"))["status"] == "interrupted"


async def test_a_thread_that_was_given_a_bad_command_elsewhere_can_be_read_and_left() -> None:
    with DeltaSaver.open(":memory:") as saver:
        graph = SCHEMAS["typed"].copy({"checkpointer": saver})
        async with calling(create_app(saver, graph=SCHEMAS["typed"])) as caller:
            await caller.sdk.threads.create(thread_id="t")
            await caller.sdk.runs.wait("t", "agent", input=GOOD)
            before = await caller.sdk.threads.get_history("t")
            with suppress(Exception):  # as above
                await graph.ainvoke(
                    Command(update={"messages": 5}), {"configurable": {"thread_id": "t"}}
                )
            state, history, thread = await everything(caller)
            assert state["values"]["messages"][0]["content"] == "hello"
            assert (len(history), thread["status"]) == (len(before), "error")
            good = {"assistant_id": "agent", "input": GOOD}
            blocked = await caller.http.post("/threads/t/runs/wait", json=good)
            assert (blocked.status_code, "earlier checkpoint" in blocked.text) == (409, True)
            back: Any = await caller.sdk.runs.wait(
                "t", "agent", input=GOOD, checkpoint_id=before[1]["checkpoint"]["checkpoint_id"]
            )
            assert back["__interrupt__"][0]["value"] == "What is your name?"
            assert (await caller.sdk.threads.get("t"))["status"] == "interrupted"


@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00", "9999-12-31T23:59:59+00:00", 5, "x"])
async def test_a_message_may_claim_any_time(tmp_path: Path, moment: Any) -> None:
    graph = Payments(tmp_path).graph(DeltaSaver())
    async with calling(create_app(graph.checkpointer, graph=graph, sweep_every=None)) as caller:
        await caller.http.post("/threads", json={"thread_id": "t"})
        noted = {"langmem_ext": {"at": moment}}
        message = {"role": "user", "content": "pay tomorrow", "additional_kwargs": noted}
        body = {"assistant_id": "agent", "input": {"messages": [message]}}
        await caller.http.post("/threads/t/runs/wait", json=body)
        for text in ("50", "no", "start over"):
            answer = await caller.http.post("/langmem/threads/t/reply", json={"text": text})
            assert answer.status_code == 200, (text, answer.text)
