"""Promise: LangGraph's applications run on DeltaSaver as on its own saver, warm and cold.

Here is what the random programs of `test_equivalence.py` do not use: other APIs, streams, agents,
other kinds of state, values that no saver likes. Both savers get every call, and all that they
give is compared.
"""

from __future__ import annotations

import asyncio
import functools
import operator
import sqlite3
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import UUID

import pytest
from acts import GoOn, Update, deltas
from beside import Beside
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, ToolCall
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import tool
from langgraph.cache.memory import InMemoryCache
from langgraph.config import get_store
from langgraph.func import entrypoint, task
from langgraph.graph import START, MessagesState, StateGraph, add_messages
from langgraph.store.sqlite import SqliteStore
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, StateUpdate, interrupt
from player import Player
from pydantic import BaseModel
from samples import Address, Mood, Order, Point, ShoutedMessage
from savers import BACKENDS, Backend, Calls, Mode, Shelf, run_without_loop
from scripted_model import ScriptedModel

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
MODES = ["values", "updates", "messages", "custom", "checkpoints", "tasks", "debug"]


class Application:
    """What a scenario has: savers side by side, which it calls in one mode."""

    def __init__(self, shelf: Shelf, mode: Mode) -> None:
        self.shelf, self.calls, self.saver = shelf, Calls(mode), Beside(shelf.saver)

    def node(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """A node in the form that fits the mode."""
        if self.calls.mode == "sync":
            return function

        @functools.wraps(function)
        async def anode(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs)

        return anode

    def line(self, *nodes: Callable[..., Any], state: Any = None, **options: Any) -> Any:
        """A compiled graph of nodes that follow each other."""
        builder = StateGraph(state or State)
        for before, node in zip((START, "0", "1", "2"), nodes, strict=False):
            name = str(len(builder.nodes))
            builder.add_node(name, self.node(node)).add_edge(before, name)
        return builder.compile(checkpointer=self.saver, **options)

    async def invoke(
        self, graph: Any, given: Any, config: RunnableConfig = CONFIG, **options: Any
    ) -> None:
        """Run a graph; it may raise what it would raise on any saver."""
        try:
            if "stream_mode" in options:
                await self.calls.collect(graph, "stream", given, config, **options)
            else:
                await self.calls.call(graph, "invoke", given, config, **options)
        except Exception as error:
            if isinstance(error, AssertionError):
                raise
        self.saver.check()

    async def reopen(self) -> None:
        self.saver.subject = await self.shelf.reopen()


class State(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    log: Annotated[list[Any], operator.add]
    value: Any


SCENARIOS: list[Callable[[Application], Awaitable[None]]] = []


def talk(state: State) -> State:
    return {"messages": [("ai", f"after {len(state['messages'])}")], "log": ["talk"]}


def ask(state: State) -> State:
    if (answer := interrupt({"about": state["messages"][-1]})) == "fail":
        raise ValueError("cannot go on")
    return {"messages": [("user", f"{answer}")], "log": [interrupt("second?")]}


@SCENARIOS.append
async def thread_ids_that_are_no_plain_text(app: Application) -> None:
    graph = app.line(talk)
    for thread in (7, UUID(int=5), "with spaces / and ünïcode", "x" * 300):
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        for _ in range(2):
            await app.invoke(graph, {"messages": [("user", "hello")]}, config)
            await app.reopen()
            assert (await app.calls.call(graph, "get_state", config)).values["log"]
    await app.calls.call(app.saver, "delete_thread", "7")
    assert await app.calls.call(app.saver, "get_tuple", {"configurable": {"thread_id": 7}}) is None


@SCENARIOS.append
async def streams_of_runs_that_stop(app: Application) -> None:
    graph = app.line(talk, ask, talk)
    for durability in ("sync", "async", "exit"):
        for given in (
            {"messages": [("user", "one")]},
            Command(resume="fail"),
            Command(resume="answer"),
            Command(resume="second"),
        ):
            await app.invoke(graph, given, stream_mode=MODES, durability=durability)


@SCENARIOS.append
async def static_interrupts(app: Application) -> None:
    for when in ("before", "after"):
        graph = app.line(talk, talk, talk, **{f"interrupt_{when}": ["0", "1"]})
        await app.invoke(graph, {"messages": [("user", "go")]})
        await app.invoke(graph, None)
        update = {"messages": [("user", "edited while it waits")], "value": None}
        await app.calls.call(graph, "update_state", CONFIG, update)
        await app.invoke(graph, None, **{f"interrupt_{when}": "*"})
        await app.invoke(graph, None)


@SCENARIOS.append
async def nodes_that_are_retried_cached_and_deferred(app: Application) -> None:
    failures = iter(range(5))

    def flaky(state: State) -> State:
        if next(failures, None) is not None:
            raise ConnectionError("flaky")
        return {"log": ["done"]}

    policy = RetryPolicy(max_attempts=4, initial_interval=0.0, jitter=False)
    builder = StateGraph(State)
    builder.add_node("flaky", app.node(flaky), retry_policy=policy, defer=True)
    cached = CachePolicy(key_func=lambda state: str(state.get("value")))
    builder.add_node("talk", app.node(talk), cache_policy=cached)
    builder.add_edge(START, "talk").add_edge(START, "flaky").add_edge("talk", "flaky")
    graph = builder.compile(checkpointer=app.saver, cache=InMemoryCache())
    for value in (1, 2, 1):
        await app.invoke(graph, {"messages": [("user", "go")], "value": value})
        await app.invoke(graph, None)


@SCENARIOS.append
async def commands_steer_send_and_are_refused(app: Application) -> None:
    def plan(state: State) -> Any:
        sends = [Send("work", {"item": HumanMessage(f"{n}", id=f"i{n}"), "n": n}) for n in range(3)]
        return Command(update=[("log", ["plan"]), ("value", (1, 2))], goto=[*sends, "end"])

    def work(state: Any) -> State:
        return {"messages": [state["item"]], "log": [interrupt(state["n"])]}

    builder = StateGraph(State)
    for name, node in (("plan", plan), ("work", work), ("end", talk)):
        builder.add_node(name, app.node(node))  # type: ignore[call-overload]
    graph = builder.add_edge(START, "plan").compile(checkpointer=app.saver)
    await app.invoke(graph, {"messages": [("user", "go")]})
    waiting = (await app.calls.call(graph, "get_state", CONFIG)).interrupts
    answers = {one.id: n for n, one in enumerate(waiting)}
    await app.invoke(graph, Command(resume=answers, update={"value": "and more"}, goto="end"))
    await app.invoke(graph, Command(goto=Send("work", {"item": "from outside", "n": 9})))
    await app.invoke(graph, Command(resume="late"))
    await app.invoke(graph, Command(goto="nobody"))
    await app.invoke(graph, {"unknown": 1})
    await app.invoke(graph, {"messages": [("user", "too far")]}, {**CONFIG, "recursion_limit": 1})
    await app.invoke(graph, {"log": "no list"})


@SCENARIOS.append
async def subgraphs_of_every_memory(app: Application) -> None:
    def up(state: State) -> Any:
        return Command(graph=Command.PARENT, update={"log": ["from below"]}, goto="end")

    for memory in (None, True, False):
        inner = StateGraph(State).add_node("ask", app.node(ask)).add_edge(START, "ask")
        middle = StateGraph(State).add_node("inner", inner.compile(checkpointer=memory))
        middle.add_node("up", app.node(up)).add_edge(START, "inner").add_edge("inner", "up")
        outer = StateGraph(State).add_node("middle", middle.compile(checkpointer=memory))
        outer.add_node("end", app.node(talk)).add_edge(START, "middle")
        graph = outer.compile(checkpointer=app.saver)
        config: RunnableConfig = {"configurable": {"thread_id": f"subgraphs {memory}"}}
        for text in ("one", "two"):
            await app.invoke(graph, {"messages": [("user", text)]}, config)
            head = await app.calls.call(graph, "get_state", config, subgraphs=True)
            if head.tasks and hasattr(below := head.tasks[0].state, "config"):
                edit = {"messages": [("user", "edited below")], "log": ["edited"]}
                await app.calls.call(graph, "update_state", below.config, edit)
            await app.invoke(graph, Command(resume=text), config, stream_mode="values")
            await app.invoke(graph, Command(resume=text), config)


@SCENARIOS.append
async def subgraphs_that_a_node_calls(app: Application) -> None:
    for memory in (None, True, False):
        inner: Any = StateGraph(State).add_node("talk", app.node(talk)).add_edge(START, "talk")
        inner = inner.compile(checkpointer=memory)

        def call(state: State, inner: Any = inner) -> State:
            return {"value": inner.invoke({"messages": state["messages"][-1:]})["log"]}

        async def acall(state: State, inner: Any = inner) -> State:
            return {"value": (await inner.ainvoke({"messages": state["messages"][-1:]}))["log"]}

        node: Any = call if app.calls.mode == "sync" else acall
        graph = StateGraph(State).add_node("call", node).add_edge(START, "call")
        for text in ("one", "two", "three"):
            given = {"messages": [("user", text)]}
            config: RunnableConfig = {"configurable": {"thread_id": f"called {memory}"}}
            await app.invoke(graph.compile(checkpointer=app.saver), given, config)


@SCENARIOS.append
async def edits_as_any_node(app: Application) -> None:
    graph = app.line(talk, talk, talk)
    edit = functools.partial(app.calls.call, graph, "update_state", CONFIG)
    await edit({"messages": [("user", "first of all")]}, as_node="0")
    await app.invoke(graph, None)
    at_once = [StateUpdate({"log": ["0"]}, "0"), StateUpdate({"log": ["1"], "value": (1, 2)}, "1")]
    await app.calls.call(graph, "bulk_update_state", CONFIG, [at_once])
    await app.invoke(graph, None)
    for values, node in (
        ({"messages": [("user", "input")]}, "__input__"),
        (None, "__end__"),
        (None, "__copy__"),
    ):
        await edit(values, as_node=node)
        await app.invoke(graph, None)


@SCENARIOS.append
async def the_functional_api(app: Application) -> None:
    done: Any = app.node(lambda text, n: {"said": HumanMessage(f"{text} {n}", id=f"f{n}")})
    step: Any = task(name="step")(done)

    def final(made: list[Any], previous: Any) -> Any:
        answer = interrupt({"so far": made})
        kept = [*(previous or []), made[0]["said"], answer]
        return entrypoint.final(value=[answer, len(kept)], save=kept)

    def workflow(text: str, *, previous: Any = None) -> Any:
        return final([step(text, n).result() for n in range(3)], previous)

    async def aworkflow(text: str, *, previous: Any = None) -> Any:
        return final([await step(text, n) for n in range(3)], previous)

    body: Any = workflow if app.calls.mode == "sync" else aworkflow
    graph: Any = entrypoint(checkpointer=app.saver)(body)
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


class CountedState(AgentState[Any]):
    calls: Annotated[int, operator.add]


class Counting(AgentMiddleware[Any, Any]):
    """Counts the calls of the model, and says so after the last."""

    state_schema = CountedState

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"calls": 1}

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"messages": [("ai", f"after {state['calls']} calls")]}


class Verdict(BaseModel):
    """What an agent finds in the end."""

    good: bool
    why: list[str] = []


def answering(*answers: AIMessage) -> ScriptedModel:
    """A model that gives these answers, in turns."""
    left: Iterator[AIMessage] = (answers[n % len(answers)] for n in range(1000))
    return ScriptedModel(answer=lambda asked: next(left).model_copy(deep=True))


@SCENARIOS.append
async def agents_with_tools_and_middleware(app: Application) -> None:
    calls = [
        ToolCall(name="add", args={"a": 1, "b": 2}, id="c1"),
        ToolCall(name="look_up", args={"key": "k"}, id="c2"),
    ]
    verdict = ToolCall(name="Verdict", args={"good": True, "why": ["found"]}, id="c3")
    summary = SummarizationMiddleware(
        answering(AIMessage("a summary")), trigger=("messages", 8), keep=("messages", 3)
    )
    agent: Any = create_agent(
        answering(AIMessage("", tool_calls=calls), AIMessage("", tool_calls=[verdict])),
        [add, look_up],
        middleware=[Counting(), HumanInTheLoopMiddleware(interrupt_on={"add": True}), summary],
        response_format=ToolStrategy(Verdict),
        checkpointer=app.saver,
    )
    edited = {"type": "edit", "edited_action": {"name": "add", "args": {"a": 20, "b": 2}}}
    for decision in ({"type": "approve"}, edited, {"type": "reject"}):
        given = {"messages": [("user", "one and two?")]}
        await app.invoke(agent, given, stream_mode=["updates", "messages"])
        await app.invoke(agent, Command(resume={"decisions": [deepcopy(decision)]}))


class PydanticState(BaseModel):
    messages: Annotated[list[Any], add_messages] = []
    address: Address = Address()
    mood: Mood = Mood.GOOD


@dataclass
class DataState:
    messages: Annotated[list[Any], add_messages] = field(default_factory=list)
    order: Order = field(default_factory=lambda: Order("O-0"))
    point: Point = Point(0, 0.0)


@SCENARIOS.append
async def states_of_every_kind(app: Application) -> None:
    new = Address(street="New", extra={"n": [1]})
    shouted = [ShoutedMessage(content="hey", id="s")]
    changes: Sequence[tuple[Any, Any]] = (
        (PydanticState, {"address": new, "mood": Mood.BAD, "messages": shouted}),
        (DataState, {"order": Order("O-1", [Point(1, 2.0)]), "point": Point(1, 2.0)}),
        (MessagesState, {"messages": ["plain text"]}),
    )
    for state, change in changes:
        graph = app.line(lambda _, change=change: deepcopy(change), state=state)
        config: RunnableConfig = {"configurable": {"thread_id": state.__name__}}
        for text in ("one", "two"):
            await app.invoke(graph, {"messages": [("user", text)]}, config)
            await app.reopen()


@SCENARIOS.append
async def a_store_in_the_same_file(app: Application) -> None:
    def remember(state: State) -> State:
        store = get_store()
        store.put(("facts", "u1"), f"fact {len(state['messages'])}", {"said": "hello"})
        return {"log": [item.key for item in store.search(("facts",))]}

    path = ":memory:" if "://" in app.shelf.url else app.shelf.url
    with closing(sqlite3.connect(path, check_same_thread=False, isolation_level=None)) as database:
        store = SqliteStore(database)
        store.setup()
        graph = app.line(remember, store=store)
        for text in ("one", "two"):
            await app.invoke(graph, {"messages": [("user", text)]})


@SCENARIOS.append
async def long_threads_of_deltas(app: Application) -> None:
    for durability in ("sync", "async", "exit"):
        player = Player(app.saver, app.calls.mode)
        for act in deltas(durability):
            await player.play(act)
            app.saver.check()
        await app.reopen()
        for act in (GoOn("g", "all", "yes"), Update("g", ((("notes", ["edited"]),),), "first", 3)):
            await player.play(act)
            app.saver.check()


AWKWARD: dict[str, Any] = {
    "not a number": float("nan"),
    "big integers": [2**63 - 1, 2**64 - 1, -(2**63)],
    "an integer beyond 64 bits": 2**70,
    "surrogates": "lone \ud800 surrogate",
    "a function": print,
    "an object": object(),
    "a class": Order,
    "a deep list": functools.reduce(lambda inner, _: [inner], range(40), [1]),
    "keys that are not text": {1: "a", None: "b", 2.5: "c", b"k": "e"},
    "a bytearray": bytearray(b"abc"),
    "a timedelta in a tuple": (timedelta(1), (1, [2])),
    "an exception": ValueError("kept"),
    "a complex number": 1 + 2j,
    "a message deep in a dict": {"m": [{"deep": (HumanMessage("hi", id="h"),)}]},
}


@SCENARIOS.append
async def values_that_no_saver_likes(app: Application) -> None:
    for name, value in AWKWARD.items():
        graph = app.line(lambda _, value=value: {"value": deepcopy(value)}, talk)
        config: RunnableConfig = {"configurable": {"thread_id": name}}
        await app.invoke(graph, {"messages": [("user", "go")]}, config, durability="sync")


PLACES = [
    pytest.param(backend, mode, id=f"{backend.name}-{mode}")
    for backend in BACKENDS
    for mode in ("sync", "async")
    if (backend.name, mode) != ("postgres", "sync")
]
"""What storage does in each mode is shown elsewhere; here LangGraph's two engines meet both."""


async def play(scenario: Any, backend: Backend, mode: Mode, folder: Path) -> None:
    shelf = Shelf(backend, mode, folder)
    try:
        app = Application(shelf, mode)
        await scenario(app)
        await app.saver.read_all(app.calls)
        await app.reopen()
        await app.saver.read_all(app.calls)
    finally:
        await shelf.close()


@pytest.mark.parametrize(("backend", "mode"), PLACES, indirect=True, scope="session")
def test_applications_run_as_on_the_in_memory_saver(
    backend: Backend, mode: Mode, folder: Path
) -> None:
    for scenario in SCENARIOS:
        work = play(scenario, backend, mode, folder)
        try:
            asyncio.run(work) if mode == "async" else run_without_loop(work)
        except Exception as error:
            error.add_note(f"in the scenario {scenario.__name__}")
            raise
