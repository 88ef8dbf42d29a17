"""Promise: an input that a graph cannot take blocks no conversation, and its question waits.

`converse` passes over one of another program: nothing is done twice, and nothing is lost. Over HTTP
it is refused, and nothing is stored.
"""

from __future__ import annotations

import functools
import logging
import operator
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from calling import Caller, calling
from langchain_core.messages import AIMessage, AnyMessage
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from langgraph.types import Command, Send, interrupt
from payments import Payments
from pydantic import BaseModel
from savers import Calls
from small_graphs import asking_for, chain, config
from typing_extensions import TypedDict

import langmem_ext
from langmem_ext import DeltaSaver, aconverse, converse, examine
from langmem_ext.server import create_app

BAD: list[Any] = [
    "hi",
    [["user", "hi"]],
    {"messages": [{"role": "tool", "content": "no tool_call_id"}]},
    {"messages": [{"role": "bot", "content": "hi"}]},
    {"messages": 5},
]


def spoil(graph: Any, *values: Any) -> None:
    """What an application does that passes on what it was sent."""
    for value in values:
        with pytest.raises(Exception, match=r"."):
            graph.invoke(value, config())


def test_the_question_that_waited_still_waits_and_is_answered(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "langmem_ext")
    for bad in BAD:
        desk = Payments(tmp_path)
        graph = desk.graph(DeltaSaver())
        converse(graph, "pay 50", thread_id="t")
        spoil(graph, bad)
        caplog.clear()
        assert converse(graph, thread_id="t").reply.endswith("Pay 50?"), bad
        assert len(caplog.records) == 1
        assert "hi" not in caplog.text.split("\n")[0].split("'t'")[-1]
        assert converse(graph, "yes", thread_id="t").reply == "Paid 50."
        assert len(caplog.records) == 1  # it is said once
        assert desk.ran == [("paid", 50)]


async def test_several_in_a_row_are_passed_over(tmp_path: Path) -> None:
    graph = Payments(tmp_path).graph(DeltaSaver())
    await aconverse(graph, "pay 50", thread_id="t")
    spoil(graph, *BAD, *BAD)
    assert (await aconverse(graph, "yes", thread_id="t")).reply == "Paid 50."


async def test_a_thread_that_begins_with_one_begins_anew_and_hears_a_message_once(
    tmp_path: Path, calls: Calls
) -> None:
    for bad in BAD:
        for saver in (InMemorySaver(), DeltaSaver()):
            graph, given = Payments(tmp_path).graph(saver), {"thread_id": "t", "message_id": "m"}
            spoil(graph, bad)
            for _ in range(2):
                turn = await calls.call(langmem_ext, "converse", graph, "pay 50", **given)
                assert turn.reply == "Pay 50?", bad
            assert graph.get_state(config()).values["messages"][0].id == "m"
            assert converse(graph, "yes", thread_id="t", interrupt_id=turn.interrupt_id).reply


def test_it_is_the_same_for_other_graphs() -> None:
    for bad in BAD:
        graph = chain(asking_for("Sure?", "You said {}."), saver=DeltaSaver())
        converse(graph, "hello", thread_id="t")
        spoil(graph, bad)
        assert converse(graph, "yes", thread_id="t").reply == "You said yes."


class Working(MessagesState):
    """The state of a graph whose nodes work beside each other."""

    done: Annotated[list[str], operator.add]


async def test_what_other_tasks_of_the_step_have_done_is_not_done_again(
    saver: DeltaSaver, calls: Calls
) -> None:
    worked: list[str] = []

    def work(state: Any) -> dict[str, Any]:
        worked.append(state["name"])
        return {"done": [state["name"]]}

    def ask(state: Working) -> dict[str, Any]:
        return {"done": [interrupt("Sure?")]}

    def begin(state: Working) -> list[Any]:
        return [Send("work", {"name": "a"}), Send("work", {"name": "b"}), Send("ask", state)]

    builder = StateGraph(Working).add_node("work", work).add_node("ask", ask)
    builder.add_conditional_edges(START, begin, ["work", "ask"])
    graph, say = builder.compile(checkpointer=saver), (langmem_ext, "converse")
    for bad in (BAD[0], BAD[-1]):
        worked.clear()
        await calls.call(*say, graph, "hello", thread_id="t")
        assert sorted(worked) == ["a", "b"]
        spoil(graph, bad)
        assert (await calls.call(*say, graph, thread_id="t")).reply == "Sure?"
        await calls.call(*say, graph, "yes", thread_id="t")
        assert sorted(worked) == ["a", "b"], bad
        assert sorted(graph.get_state(config()).values["done"]) == ["a", "b", "yes"], bad
        assert examine(saver).ok
        saver.delete_thread("t")


# -- over HTTP -------------------------------------------------------------------------------------

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


def routed(schema: Any) -> Any:
    builder = StateGraph(schema).add_node(ask)
    return builder.add_conditional_edges(START, lambda state: "ask", ["ask"]).compile()


SCHEMAS = {
    "typed": chain(ask, state=Asking),
    "routed": routed(Asking),
    "pydantic": chain(ask, state=Checked),
    "pydantic routed": routed(Checked),
    "dataclass": chain(ask, state=Kept),
    "delta": chain(ask, state=Sparse),
}


@asynccontextmanager
async def waiting(schema: str, saver: Any = ":memory:") -> AsyncIterator[Caller]:
    """A client of a server on whose thread `t` a question waits."""
    async with calling(create_app(saver, graph=SCHEMAS[schema])) as caller:
        await caller.sdk.threads.create(thread_id="t")
        await caller.sdk.runs.wait("t", "agent", input=GOOD)
        yield caller


@pytest.fixture(params=[*SCHEMAS])
async def caller(request: pytest.FixtureRequest) -> AsyncIterator[Caller]:
    async with waiting(request.param) as caller:
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


async def refused(caller: Caller, how: str, thread: str = "t", **body: Any) -> str:
    """What is said of a request that is refused."""
    body |= {"assistant_id": "agent"} if how.startswith("runs") else {}
    answer = await caller.http.post(f"/threads/{thread}/{how}", json=body)
    assert answer.status_code == 422, (how, body, answer.text)
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
            await refused(caller, how, input=bad)
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
        await refused(caller, "runs/wait", command={"update": update})
        await refused(caller, "runs/wait", command={"update": [["messages", messages]]})
        await refused(caller, "runs/wait", command={"update": update, "resume": "Ann"})
        for node in ("ask", "__input__", None):
            await refused(caller, "state", values=update, as_node=node)
    for bad in (5, {"nothing": 1}, {"__start__": {"messages": 5}}, {"__pregel_tasks": [7]}):
        await refused(caller, "runs", command={"update": bad})
    for nowhere in ("nowhere", [{"node": "nowhere", "input": {}}]):
        await refused(caller, "runs", command={"goto": nowhere})
    await refused(caller, "state", values=[[GOOD, "ask"]], as_node="__copy__")
    unknown = await caller.http.post("/threads/t/state", json={"values": {}, "as_node": "nobody"})
    assert unknown.status_code == 400
    assert await everything(caller) == before
    taken: Any = await caller.sdk.runs.wait("t", "agent", command={"resume": "Ann"})
    assert taken["name"] == "Ann"


async def test_a_state_that_its_schema_refuses_is_not_stored() -> None:
    bad = {"messages": [], "age": "many"}
    for schema in ("pydantic", "pydantic routed"):
        async with waiting(schema) as caller:
            before = await everything(caller)
            goto = {"goto": {"node": "ask", "input": bad}}
            assert "age" in await refused(caller, "runs/wait", input=bad), schema
            assert "age" in await refused(caller, "state", values=bad, as_node="__start__")
            assert "age" in await refused(caller, "runs", command=goto), schema
            assert await everything(caller) == before
            assert (await caller.sdk.threads.get("t"))["status"] == "interrupted"


async def test_a_refused_input_makes_no_thread() -> None:
    async with calling(create_app(":memory:", graph=SCHEMAS["typed"])) as caller:
        await refused(caller, "runs/wait", "new", input={"messages": 5}, if_not_exists="create")
        assert await caller.sdk.threads.count() == 0
        body = {"assistant_id": "agent", "input": GOOD, "if_not_exists": "create"}
        assert (await caller.http.post("/threads/new/runs/wait", json=body)).status_code == 200


async def test_values_of_a_subgraph_are_checked_against_its_own_channels() -> None:
    graph = chain(chain(ask, state=Asking))
    async with calling(create_app(":memory:", graph=graph)) as caller:
        await caller.sdk.threads.create(thread_id="t")
        await caller.sdk.runs.wait("t", "agent", input=GOOD)
        state = await caller.sdk.threads.get_state("t", subgraphs=True)
        place = state["tasks"][0]["state"]["checkpoint"]  # type: ignore[index]
        where: dict[str, Any] = {"checkpoint": place, "as_node": "ask"}
        await refused(caller, "state", values={"messages": 5}, **where)
        good = {"values": {"name": "Ann"}, **where}
        assert (await caller.http.post("/threads/t/state", json=good)).status_code == 200


async def test_a_thread_that_was_given_a_bad_input_elsewhere_can_be_read_and_goes_on(
    saver: DeltaSaver,
) -> None:
    graph: Any = SCHEMAS["typed"].copy({"checkpointer": saver})
    async with waiting("typed", saver) as caller:
        for bad in ({"messages": 5}, {"messages": [{"role": "boss"}]}, "hi"):
            with suppress(Exception):  # whatever LangGraph makes of it
                await graph.ainvoke(bad, config())
            state, history, thread = await everything(caller)
            assert [message["content"] for message in state["values"]["messages"]] == ["hello"]
            assert len(history) > 1
            assert thread["status"] == "error", bad
            found = await caller.sdk.threads.search(status="error")
            assert [one["thread_id"] for one in found] == ["t"]
            answer: Any = await caller.sdk.runs.wait("t", "agent", input=GOOD)
            assert answer["__interrupt__"][0]["value"] == "What is your name?"
            assert (await caller.sdk.threads.get("t"))["status"] == "interrupted"


async def test_a_thread_that_was_given_a_bad_command_elsewhere_can_be_read_and_left() -> None:
    saver = DeltaSaver()
    graph: Any = SCHEMAS["typed"].copy({"checkpointer": saver})
    async with waiting("typed", saver) as caller:
        before = await caller.sdk.threads.get_history("t")
        with suppress(Exception):  # as above
            await graph.ainvoke(Command(update={"messages": 5}), config())
        state, history, thread = await everything(caller)
        assert state["values"]["messages"][0]["content"] == "hello"
        assert (len(history), thread["status"]) == (len(before), "error")
        good = {"assistant_id": "agent", "input": GOOD}
        blocked = await caller.http.post("/threads/t/runs/wait", json=good)
        assert (blocked.status_code, "earlier checkpoint" in blocked.text) == (409, True)
        earlier: Any = before[1]["checkpoint"]["checkpoint_id"]
        back: Any = await caller.sdk.runs.wait("t", "agent", input=GOOD, checkpoint_id=earlier)
        assert back["__interrupt__"][0]["value"] == "What is your name?"
        assert (await caller.sdk.threads.get("t"))["status"] == "interrupted"


async def test_a_message_may_claim_any_time(tmp_path: Path) -> None:
    graph = Payments(tmp_path).graph(DeltaSaver())
    async with calling(create_app(graph.checkpointer, graph=graph, sweep_every=None)) as caller:
        for moment in ("0001-01-01T00:00:00", "9999-12-31T23:59:59+00:00", 5, "x"):
            noted = {"langmem_ext": {"at": moment}}
            message = {"role": "user", "content": "pay tomorrow", "additional_kwargs": noted}
            await graph.ainvoke({"messages": [message]}, config(f"t{moment}"))
            for text in ("50", "no", "start over"):
                path = f"/langmem/threads/t{moment}/reply"
                answer = await caller.http.post(path, json={"text": text})
                assert answer.status_code == 200, (moment, text, answer.text)
