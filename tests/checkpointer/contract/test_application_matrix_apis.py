"""What else LangGraph applications do: edit and travel back, agents, other APIs, other states.

As on InMemorySaver, warm and cold.
"""

from __future__ import annotations

import functools
import operator
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any, TypedDict

import pytest
from applications import (
    CONFIG,
    PLACES,
    Application,
    Scenario,
    Scenarios,
    ScriptedChatModel,
    State,
    play,
    three_nodes,
)
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.structured_output import ToolStrategy
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolCall
from langchain_core.tools import tool
from langgraph.channels.delta import DeltaChannel
from langgraph.config import get_store
from langgraph.func import entrypoint, task
from langgraph.graph import END, START, MessagesState, StateGraph, add_messages
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.store.base import BaseStore
from langgraph.store.sqlite import SqliteStore
from langgraph.types import Command, Send, StateUpdate, interrupt
from pydantic import BaseModel
from samples import Address, Mood, Order, Point, ShoutedMessage
from savers import Backend, Mode

from langmem_ext.log.message_log import is_server

scenarios = Scenarios()


# -- history ---------------------------------------------------------------------------------------


@scenarios.add()
async def edits(app: Application) -> None:
    graph = app.compiled(three_nodes(app))
    await app.attempt(
        graph, "update_state", CONFIG, {"messages": [("user", "first of all")]}, as_node="a"
    )
    await app.invoke(graph, None)
    await app.attempt(
        graph,
        "update_state",
        CONFIG,
        {"messages": [("user", "as the last node")], "log": ["edited"]},
    )
    at_once = [
        StateUpdate({"log": ["as a"], "messages": [HumanMessage("as a", id="x")]}, "a"),
        StateUpdate({"log": ["as b"]}, "b"),
    ]
    await app.attempt(
        graph, "bulk_update_state", CONFIG, [at_once, [StateUpdate({"value": (1, 2)}, as_node="c")]]
    )
    await app.look(graph)
    await app.invoke(graph, None)
    await app.attempt(
        graph, "update_state", CONFIG, {"messages": [("user", "input")]}, as_node="__input__"
    )
    await app.invoke(graph, None)
    await app.attempt(graph, "update_state", CONFIG, {"log": ["again"]}, as_node="a")
    await app.attempt(graph, "update_state", CONFIG, None, as_node=END)
    await app.attempt(graph, "update_state", CONFIG, {"log": ["refused"]}, as_node="nobody")
    await app.attempt(graph, "update_state", CONFIG, {"log": "refused"}, as_node="a")
    await app.attempt(graph, "bulk_update_state", CONFIG, [])
    await app.look(graph)


@scenarios.add()
async def time_travel_over_questions(app: Application) -> None:
    builder = StateGraph(State)
    builder.add_node(
        "ask",
        app.node(
            lambda state: {
                "messages": [("user", f"answer {interrupt('which?')}")],
                "log": [state.get("value")],
            }
        ),
    )
    builder.add_node(
        "reply",
        app.node(lambda state: {"messages": [("ai", f"heard {state['messages'][-1].content}")]}),
    )
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "reply")
    graph = app.compiled(builder)
    await app.invoke(graph, {"messages": [("user", "one")]})
    await app.invoke(graph, Command(resume="first"))
    asked = next(one for one in await app.history(graph) if one.next == ("ask",))
    await app.invoke(graph, None, asked.config)
    await app.invoke(graph, Command(resume="second"), asked.config)
    fork = await app.attempt(
        graph, "update_state", asked.config, {"value": "forked"}, as_node="__start__"
    )
    await app.invoke(graph, None, fork)
    await app.invoke(graph, Command(resume="third"))
    await app.invoke(graph, {"messages": [("user", "two")]}, asked.config)


@scenarios.add()
async def time_travel(app: Application) -> None:
    graph = app.compiled(three_nodes(app))
    for text in ("one", "two", "three"):
        await app.calls.call(graph, "invoke", {"messages": [("user", text)]}, CONFIG)
    history = await app.history(graph)
    await app.invoke(graph, None, history[6].config)
    fork = await app.calls.call(
        graph,
        "update_state",
        history[8].config,
        {"messages": [HumanMessage("fork", id="b")]},
        as_node="a",
    )
    await app.invoke(graph, None, fork)
    copied = await app.calls.call(
        graph, "update_state", history[3].config, None, as_node="__copy__"
    )
    app.record.append(("copied", app.names.config(copied)))
    await app.invoke(graph, {"messages": [("user", "on the newest branch")]})
    await app.invoke(graph, {"messages": [("user", "on an old one")]}, history[-1].config)


@scenarios.add()
async def messages_are_removed_replaced_and_summarised(app: Application) -> None:
    def tidy(state: State) -> State:
        messages = state["messages"]
        if len(messages) > 6:
            return {
                "messages": [RemoveMessage(id=one.id) for one in messages[:4]],
                "value": f"{len(messages)} were there",
            }
        if len(messages) == 4:
            return {
                "messages": [
                    RemoveMessage(id=REMOVE_ALL_MESSAGES),
                    AIMessage("summary", id="s"),
                    *messages[2:],
                ]
            }
        return {"messages": [HumanMessage("replaced", id=messages[0].id)]}

    builder = StateGraph(State)
    builder.add_node(
        "talk", app.node(lambda state: {"messages": [("ai", f"answer {len(state['messages'])}")]})
    )
    builder.add_node("tidy", app.node(tidy))
    builder.add_edge(START, "talk")
    builder.add_edge("talk", "tidy")
    graph = app.compiled(builder)
    for number in range(7):
        await app.calls.call(graph, "invoke", {"messages": [("user", f"turn {number}")]}, CONFIG)
    await app.look(graph)
    await app.invoke(graph, {"messages": [RemoveMessage(id="nobody")]})


# -- other APIs ------------------------------------------------------------------------------------


@scenarios.add()
async def the_functional_api(app: Application) -> None:
    node: Any = app.node(
        lambda text, n: {"message": HumanMessage(f"{text} {n}", id=f"f{n}"), "n": (n, n + 1)}
    )
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


@scenarios.add()
async def an_agent_with_tools(app: Application) -> None:
    usage = {"input_tokens": 5, "output_tokens": 7, "total_tokens": 12}
    calls = [
        ToolCall(name="add", args={"a": 1, "b": 2}, id="c1"),
        ToolCall(name="look_up", args={"key": "k"}, id="c2"),
    ]
    answers = [
        AIMessage(
            "",
            tool_calls=calls,
            usage_metadata=usage,
            response_metadata={"model_name": "scripted", "logprobs": None},
        ),
        AIMessage([{"type": "text", "text": "three", "annotations": []}], usage_metadata=usage),
    ]
    agent: Any = create_agent(
        ScriptedChatModel(answers=answers), [add, look_up], checkpointer=app.shelf.saver
    )
    for text in ("one and two?", "once more"):
        await app.invoke(agent, {"messages": [("user", text)]})


class CountedState(AgentState[Any]):
    """What the counting middleware keeps beside the messages."""

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


@scenarios.add("approve", "edit", "reject")
async def an_agent_with_middleware(app: Application, case: Any) -> None:
    answers = [
        AIMessage(
            "",
            tool_calls=[
                ToolCall(name="add", args={"a": 1, "b": 2}, id="c1"),
                ToolCall(name="look_up", args={"key": "k"}, id="c2"),
            ],
        ),
        AIMessage(
            "",
            tool_calls=[ToolCall(name="Verdict", args={"good": True, "why": ["found"]}, id="c3")],
        ),
    ]
    agent: Any = create_agent(
        ScriptedChatModel(answers=answers),
        [add, look_up],
        middleware=[
            Counting(),
            HumanInTheLoopMiddleware(interrupt_on={"add": True}),
            SummarizationMiddleware(
                ScriptedChatModel(answers=[AIMessage("a summary")]),
                trigger=("messages", 8),
                keep=("messages", 3),
            ),
        ],
        response_format=ToolStrategy(Verdict),
        checkpointer=app.shelf.saver,
    )
    decision: dict[str, Any] = {"type": case}
    if case == "edit":
        decision["edited_action"] = {"name": "add", "args": {"a": 20, "b": 2}}
    for text in ("one and two?", "once more", "and again"):
        await app.stream(
            agent,
            {"messages": [("user", text)]},
            stream_mode=["updates", "messages"],
            durability="sync",
        )
        await app.invoke(agent, Command(resume={"decisions": [deepcopy(decision)]}))


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


@scenarios.add(PydanticState, DataState, MessagesState)
async def state_schemas(app: Application, case: Any) -> None:
    def change(state: Any) -> Any:
        if case is PydanticState:
            return {
                "address": Address(street="New", extra={"n": [1]}),
                "mood": Mood.BAD,
                "messages": [ShoutedMessage(content="hey", id="s")],
            }
        return (
            {"order": Order("O-1", [state.point]), "point": Point(1, 2.0)}
            if case is DataState
            else {"messages": ["plain text"]}
        )

    builder = StateGraph(case)
    builder.add_node("change", app.node(change))
    builder.add_edge(START, "change")
    graph = app.compiled(builder)
    for text in ("one", "two"):
        await app.invoke(graph, {"messages": [("user", text)]})


def joined(state: list[Any], writes: Sequence[list[Any]]) -> list[Any]:
    """Reducer of a list, for a channel of deltas."""
    return [*state, *(item for write in writes for item in write)]


class DeltaState(TypedDict, total=False):
    messages: Annotated[list[Any], DeltaChannel(joined, snapshot_frequency=4)]
    log: Annotated[list[Any], DeltaChannel(joined, snapshot_frequency=1000)]


@scenarios.add("sync", "async", "exit")
async def delta_channels(app: Application, case: Any) -> None:
    builder = StateGraph(DeltaState)
    builder.add_node(
        "talk",
        app.node(
            lambda state: {"messages": [AIMessage("answer", id=f"a{len(state['messages'])}")]}
        ),
    )
    builder.add_node("work", app.node(lambda state: {"log": [state["n"]]}))
    builder.add_edge(START, "talk")
    builder.add_conditional_edges(
        "talk", app.node(lambda state: [Send("work", {"n": n}) for n in range(2)]), ["work"]
    )
    graph = app.compiled(builder)
    for text in ("one", "two", "three"):
        await app.invoke(graph, {"messages": [HumanMessage(text, id=text)]}, durability=case)
    history = await app.history(graph)
    fork = await app.attempt(
        graph,
        "update_state",
        history[-2].config,
        {"messages": [HumanMessage("fork", id="f")]},
        as_node="talk",
    )
    await app.invoke(graph, None, fork, durability=case)
    await app.invoke(graph, {"messages": [HumanMessage("on the fork", id="four")]}, durability=case)


@scenarios.add()
async def a_store_beside_it(app: Application) -> None:
    def facts(store: BaseStore) -> list[Any]:
        return sorted((item.key, item.namespace, item.value) for item in store.search(("facts",)))

    def remember(state: State) -> State:
        store, number = get_store(), len(state["messages"])
        store.put(
            ("facts", "u1"), f"fact {number}", {"said": state["messages"][-1].content, "n": number}
        )
        return {"log": facts(store), "messages": [("ai", "noted")]}

    # In the same file, where there is one: its tables are its own.
    url = getattr(app.shelf, "url", ":memory:")
    with closing(
        sqlite3.connect(
            ":memory:" if is_server(url) else url, check_same_thread=False, isolation_level=None
        )
    ) as connection:
        store = SqliteStore(connection)
        store.setup()
        graph = app.compiled(
            StateGraph(State).add_node("remember", app.node(remember)).add_edge(START, "remember"),
            store=store,
        )
        for text in ("one", "two"):
            await app.invoke(graph, {"messages": [("user", text)]})
        app.record.append(("facts", app.names.form(facts(store))))


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


@scenarios.add(*AWKWARD)
async def awkward_values(app: Application, case: Any) -> None:
    builder = StateGraph(State)
    builder.add_node("a", app.node(lambda state: {"value": deepcopy(AWKWARD[case]), "log": ["a"]}))
    builder.add_node("b", app.node(lambda state: {"log": ["b"]}))
    builder.add_edge(START, "a")
    builder.add_edge("a", "b")
    await app.invoke(app.compiled(builder), {"messages": [("user", "go")]}, durability="sync")


@pytest.mark.parametrize(("backend", "mode"), PLACES, indirect=True, scope="session")
@pytest.mark.parametrize("played", scenarios.params)
def test_an_application_runs_as_on_the_in_memory_saver(
    played: Scenario, backend: Backend, mode: Mode, folder: Path
) -> None:
    play(played, backend, mode, folder)
