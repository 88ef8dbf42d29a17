"""What LangGraph applications do, feature by feature: the same results, states and histories as on InMemorySaver, warm and cold."""

from __future__ import annotations

import asyncio
import functools
import operator
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import UUID

import pytest
from applications import CONFIG, SCENARIOS, Application, Scenario, ScriptedChatModel, scenario
from comparison import assert_same
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph, add_messages
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, RetryPolicy, Send, interrupt
from pydantic import BaseModel
from samples import Address, Mood, Order, Point, ShoutedMessage
from savers import BACKENDS, MODES, Backend, Mode, ReferenceShelf, Shelf, run_without_loop


class State(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    log: Annotated[list[Any], operator.add]
    value: Any


def three_nodes(app: Application) -> Any:
    """A line of three nodes that talk."""
    builder = StateGraph(State)
    builder.add_node("a", app.node(lambda state: {"messages": [("ai", "from a")], "log": ["a"]}))
    builder.add_node("b", app.node(lambda state: {"messages": AIMessage("from b", id="b"), "value": {"seen": len(state["messages"])}}))
    builder.add_node("c", app.node(lambda state: {"log": [len(state["messages"])]}))
    for source, target in ((START, "a"), ("a", "b"), ("b", "c"), ("c", END)):
        builder.add_edge(source, target)
    return builder


# -- running -------------------------------------------------------------------------------------------------------------------------------


@scenario("sync", "async", "exit")
async def durability(app: Application, case: Any) -> None:
    graph = app.compiled(three_nodes(app))
    for text in ("one", "two"):
        await app.invoke(graph, {"messages": [("user", text)]}, durability=case)


@scenario("values", "updates", "messages", "custom", "checkpoints", "tasks", "debug", ["values", "updates"])
async def stream_modes(app: Application, case: Any) -> None:
    graph = app.compiled(three_nodes(app))
    for text in ("one", "two"):
        chunks = await app.calls.collect(graph, "stream", {"messages": [("user", text)]}, CONFIG, stream_mode=case, durability="sync")
        app.record.append(("chunks", app.names.form(chunks, late=True)))
    await app.look(graph)


@scenario(0, 3, 5)
async def failing_nodes_are_retried(app: Application, case: Any) -> None:
    failures = iter(range(case))

    def flaky(state: State) -> State:
        if next(failures, None) is not None:
            raise ConnectionError("flaky")
        return {"log": ["done"]}

    builder = StateGraph(State)
    builder.add_node("a", app.node(lambda state: {"log": ["a"]}))
    policy = RetryPolicy(max_attempts=4, initial_interval=0.0, jitter=False, retry_on=ConnectionError)
    builder.add_node("flaky", app.node(flaky), retry_policy=policy)
    builder.add_edge(START, "a")
    builder.add_edge("a", "flaky")
    graph = app.compiled(builder)
    await app.invoke(graph, {"messages": [("user", "go")]})
    await app.invoke(graph, None)


@scenario()
async def deferred_nodes_run_last(app: Application) -> None:
    builder = StateGraph(State)
    for name, after in (("a", START), ("b", "a"), ("c", "b")):
        builder.add_node(name, app.node(lambda state, name=name: {"log": [name]}))
        builder.add_edge(after, name)
    builder.add_node("last", app.node(lambda state: {"log": ["last"], "messages": [("ai", "last")]}), defer=True)
    builder.add_edge("a", "last")
    builder.add_edge("c", "last")
    await app.invoke(app.compiled(builder), {"log": []})


@scenario(7, UUID(int=5), "with spaces / and ünïcode", "x" * 300)
async def thread_ids(app: Application, case: Any) -> None:
    graph = app.compiled(three_nodes(app))
    config: RunnableConfig = {"configurable": {"thread_id": case}}
    await app.calls.call(graph, "invoke", {"messages": [("user", "hello")]}, config)
    graph.checkpointer = await app.shelf.reopen()
    head = await app.state(graph, config)
    app.record.append(("values", app.names.unordered(head.values)))
    await app.calls.call(app.shelf.saver, "delete_thread", str(case))
    app.record.append(("values", app.names.unordered((await app.state(graph, config)).values)))


# -- interrupts ----------------------------------------------------------------------------------------------------------------------------


@scenario("before", "after")
async def static_interrupts(app: Application, case: Any) -> None:
    graph = app.compiled(three_nodes(app), **{f"interrupt_{case}": ["a", "b"]})
    await app.invoke(graph, {"messages": [("user", "go")]})
    await app.invoke(graph, None)
    await app.calls.call(graph, "update_state", CONFIG, {"messages": [("user", "edited while it waits")], "value": None})
    await app.look(graph)
    await app.invoke(graph, None)


@scenario(None, 7, ["a", {"b": None}], {"c": 1.0}, "text", False)
async def dynamic_interrupts(app: Application, case: Any) -> None:
    def ask(state: State) -> State:
        first = interrupt({"question": "first?", "about": state["messages"][-1]})
        second = interrupt("second?")
        return {"log": [first, second], "messages": [("user", "answered")]}

    builder = StateGraph(State)
    builder.add_node("ask", app.node(ask))
    builder.add_edge(START, "ask")
    graph = app.compiled(builder)
    await app.invoke(graph, {"messages": [("user", "go")]})
    for _ in range(2):
        waiting = (await app.state(graph)).interrupts[0]
        await app.invoke(graph, Command(resume={waiting.id: deepcopy(case)}))
    await app.invoke(graph, {"messages": [("user", "again")]})
    await app.invoke(graph, Command(resume="bare", update={"value": "with an update"}))


@scenario()
async def several_interrupts_at_once(app: Application) -> None:
    builder = StateGraph(State)
    builder.add_node("ask", app.node(lambda state: {"log": [interrupt(state["value"])]}))
    builder.add_conditional_edges(START, lambda state: [Send("ask", {"value": n}) for n in range(3)], ["ask"])
    graph = app.compiled(builder)
    await app.calls.call(graph, "invoke", {"messages": []}, CONFIG)
    await app.look(graph)
    first, *others = (await app.state(graph)).interrupts
    await app.calls.call(graph, "invoke", Command(resume={first.id: "one"}), CONFIG)
    await app.look(graph)
    await app.invoke(graph, Command(resume={one.id: n for n, one in enumerate(others)}))


# -- control flow --------------------------------------------------------------------------------------------------------------------------


@scenario()
async def commands_steer_and_update(app: Application) -> None:
    builder = StateGraph(State)
    builder.add_node("a", app.node(lambda state: Command(update={"log": ["a"], "messages": [("ai", "go on")]}, goto=["b", "c"])))
    builder.add_node("b", app.node(lambda state: Command(update=[("log", ["b"]), ("value", (1, 2))])))
    builder.add_node("c", app.node(lambda state: {"log": ["c"]}))
    builder.add_edge(START, "a")
    graph = app.compiled(builder)
    await app.invoke(graph, {"messages": [("user", "go")]})
    await app.invoke(graph, Command(update={"value": "set from outside"}, goto="c"))


@scenario(None, True)
async def subgraphs(app: Application, case: Any) -> None:
    inner = StateGraph(State)
    inner.add_node("ask", app.node(lambda state: {"messages": [("ai", f"heard {interrupt('inner?')}")], "log": ["inner"]}))
    inner.add_edge(START, "ask")
    middle = StateGraph(State)
    middle.add_node("inner", inner.compile(checkpointer=case))
    middle.add_node("up", app.node(lambda state: Command(graph=Command.PARENT, update={"log": ["from below"]}, goto="end")))
    middle.add_edge(START, "inner")
    middle.add_edge("inner", "up")
    outer = StateGraph(State)
    outer.add_node("middle", middle.compile(checkpointer=case))
    outer.add_node("end", app.node(lambda state: {"messages": [("ai", "end")]}))
    outer.add_edge(START, "middle")
    graph = app.compiled(outer)
    for text in ("one", "two"):
        await app.invoke(graph, {"messages": [("user", text)]})
        below = (await app.state(graph, subgraphs=True)).tasks[0].state
        await app.calls.call(graph, "update_state", below.config, {"messages": [("user", "edited below")], "log": ["edited"]})
        await app.look(graph)
        await app.invoke(graph, Command(resume=text))


@scenario()
async def sends_carry_messages(app: Application) -> None:
    builder = StateGraph(State)
    builder.add_node("plan", app.node(lambda state: {"messages": [("ai", "planned")], "log": ["plan"]}))
    builder.add_node("work", app.node(lambda state: {"messages": [state["item"]], "log": [state["n"]]}))
    builder.add_edge(START, "plan")
    send = app.node(lambda state: [Send("work", {"item": HumanMessage(f"item {n}", id=f"i{n}"), "n": n}) for n in range(12)])
    builder.add_conditional_edges("plan", send, ["work"])
    graph = app.compiled(builder)
    for text in ("one", "two"):
        await app.invoke(graph, {"messages": [("user", text)]})


# -- history -------------------------------------------------------------------------------------------------------------------------------


@scenario()
async def time_travel(app: Application) -> None:
    graph = app.compiled(three_nodes(app))
    for text in ("one", "two", "three"):
        await app.calls.call(graph, "invoke", {"messages": [("user", text)]}, CONFIG)
    history = await app.history(graph)
    await app.invoke(graph, None, history[6].config)
    fork = await app.calls.call(graph, "update_state", history[8].config, {"messages": [HumanMessage("fork", id="b")]}, as_node="a")
    await app.invoke(graph, None, fork)
    copied = await app.calls.call(graph, "update_state", history[3].config, None, as_node="__copy__")
    app.record.append(("copied", app.names.config(copied)))
    await app.invoke(graph, {"messages": [("user", "on the newest branch")]})
    await app.invoke(graph, {"messages": [("user", "on an old one")]}, history[-1].config)


@scenario()
async def messages_are_removed_replaced_and_summarised(app: Application) -> None:
    def tidy(state: State) -> State:
        messages = state["messages"]
        if len(messages) > 6:
            return {"messages": [RemoveMessage(id=one.id) for one in messages[:4]], "value": f"{len(messages)} were there"}
        if len(messages) == 4:
            return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), AIMessage("summary", id="s"), *messages[2:]]}
        return {"messages": [HumanMessage("replaced", id=messages[0].id)]}

    builder = StateGraph(State)
    builder.add_node("talk", app.node(lambda state: {"messages": [("ai", f"answer {len(state['messages'])}")]}))
    builder.add_node("tidy", app.node(tidy))
    builder.add_edge(START, "talk")
    builder.add_edge("talk", "tidy")
    graph = app.compiled(builder)
    for number in range(7):
        await app.calls.call(graph, "invoke", {"messages": [("user", f"turn {number}")]}, CONFIG)
    await app.look(graph)
    await app.invoke(graph, {"messages": [RemoveMessage(id="nobody")]})


# -- other APIs ----------------------------------------------------------------------------------------------------------------------------


@scenario()
async def the_functional_api(app: Application) -> None:
    node: Any = app.node(lambda text, n: {"message": HumanMessage(f"{text} {n}", id=f"f{n}"), "n": (n, n + 1)})
    step: Any = task(name="step")(node)

    def final(value: Any, save: Any) -> Any:
        return entrypoint.final(value=value, save=save)

    def workflow(text: str, *, previous: Any = None) -> Any:
        done = [step(text, n).result() for n in range(3)]
        answer = interrupt({"so far": done})
        return final([answer, len(previous or [])], [*(previous or []), done[0]["message"], answer])

    async def aworkflow(text: str, *, previous: Any = None) -> Any:
        done = [await step(text, n) for n in range(3)]
        answer = interrupt({"so far": done})
        return final([answer, len(previous or [])], [*(previous or []), done[0]["message"], answer])

    body: Any = workflow if app.calls.mode == "sync" else aworkflow
    graph: Any = entrypoint(checkpointer=app.shelf.saver)(body)
    for text in ("one", "two"):
        await app.invoke(graph, text)
        await app.invoke(graph, Command(resume=f"answer {text}"))


@tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@tool(response_format="content_and_artifact")
def look_up(key: str) -> tuple[str, dict[str, Any]]:
    """Look something up."""
    return f"found {key}", {"rows": [1, True, 1.0], "key": key}


@scenario()
async def an_agent_with_tools(app: Application) -> None:
    usage = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}
    calls = [ToolCall(name="add", args={"a": 1, "b": 2}, id="c1"), ToolCall(name="look_up", args={"key": "k"}, id="c2")]
    answers = [
        AIMessage("", tool_calls=calls, usage_metadata=usage, response_metadata={"model_name": "scripted", "logprobs": None}),
        AIMessage([{"type": "text", "text": "three", "annotations": []}], usage_metadata=usage),
    ]
    agent: Any = create_agent(ScriptedChatModel(answers=answers), [add, look_up], checkpointer=app.shelf.saver)
    for text in ("one and two?", "once more"):
        await app.invoke(agent, {"messages": [("user", text)]})


class PydanticState(BaseModel):
    """A graph's state as a pydantic model."""

    messages: Annotated[list[Any], add_messages] = []
    address: Address = Address()
    mood: Mood = Mood.GOOD


@dataclass
class DataState:
    """A graph's state as a dataclass."""

    messages: Annotated[list[Any], add_messages] = field(default_factory=list)
    order: Order = field(default_factory=lambda: Order("O-0"))
    point: Point = Point(0, 0.0)


@scenario(PydanticState, DataState, MessagesState)
async def state_schemas(app: Application, case: Any) -> None:
    def change(state: Any) -> Any:
        if case is PydanticState:
            return {
                "address": Address(street="New", extra={"n": [1]}),
                "mood": Mood.BAD,
                "messages": [ShoutedMessage(content="hey", id="s")],
            }
        return {"order": Order("O-1", [state.point]), "point": Point(1, 2.0)} if case is DataState else {"messages": ["plain text"]}

    builder = StateGraph(case)
    builder.add_node("change", app.node(change))
    builder.add_edge(START, "change")
    graph = app.compiled(builder)
    for text in ("one", "two"):
        await app.invoke(graph, {"messages": [("user", text)]})


DEEPEST: list[Any] = [1]
AWKWARD: dict[str, Any] = {
    "not a number": float("nan"),
    "big integers": [2**63 - 1, 2**64 - 1, -(2**63)],
    "an integer beyond 64 bits": 2**70,
    "surrogates": "lone \ud800 surrogate",
    "a function": print,
    "an object": object(),
    "a class": Order,
    "a deep list": functools.reduce(lambda inner, _: [inner], range(40), DEEPEST),
    "keys that are not text": {1: "a", None: "b", 2.5: "c", b"k": "e"},
    "a bytearray": bytearray(b"abc"),
    "a timedelta in a tuple": (timedelta(1), (1, [2])),
    "an exception": ValueError("kept"),
    "a complex number": 1 + 2j,
    "a message in a set of fields": {"m": [{"deep": (HumanMessage("hi", id="h"),)}]},
}


@scenario(*AWKWARD)
async def awkward_values(app: Application, case: Any) -> None:
    builder = StateGraph(State)
    builder.add_node("a", app.node(lambda state: {"value": deepcopy(AWKWARD[case]), "log": ["a"]}))
    builder.add_node("b", app.node(lambda state: {"log": ["b"]}))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    await app.invoke(app.compiled(builder), {"messages": [("user", "go")]}, durability="sync")


async def compare(scenario: Scenario, backend: Backend, mode: Mode, folder: Path) -> None:
    """Play a scenario on both savers and compare all that was recorded."""
    shelf = Shelf(backend, mode, folder)
    try:
        reference, subject = (Application(place, mode, cold=backend.survives_close) for place in (ReferenceShelf(), shelf))
        for app in (reference, subject):
            await scenario(app)
        for (what, expected), (other, found) in zip(reference.record, subject.record, strict=True):
            assert_same((what, expected), (other, found), what)
        assert reference.record
    finally:
        await shelf.close()


# A database that outlives its connection is read cold as well, and so says more; the other kind is played once.
PLACES = [pytest.param(b, m, id=f"{b.name}-{m}") for b in BACKENDS for m in MODES if b.survives_close or m == "sync"]


@pytest.mark.parametrize(("backend", "mode"), PLACES, indirect=True, scope="session")
@pytest.mark.parametrize("played", SCENARIOS)
def test_an_application_runs_as_on_the_in_memory_saver(played: Scenario, backend: Backend, mode: Mode, folder: Path) -> None:
    work = compare(played, backend, mode, folder)
    if mode == "async":
        asyncio.run(work)
    else:
        run_without_loop(work)
