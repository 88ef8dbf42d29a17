"""How LangGraph applications run: the same results, chunks, errors, states and histories as on
InMemorySaver, warm and cold.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from applications import (
    CONFIG,
    PLACES,
    Application,
    Scenario,
    Scenarios,
    State,
    WordByWordModel,
    play,
    three_nodes,
)
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.cache.memory import InMemoryCache
from langgraph.config import get_stream_writer
from langgraph.graph import START, StateGraph
from langgraph.types import CachePolicy, Command, RetryPolicy, Send, interrupt
from savers import Backend, Mode

scenarios = Scenarios()


# -- running ---------------------------------------------------------------------------------------


@scenarios.add("sync", "async", "exit")
async def durability(app: Application, case: Any) -> None:
    graph = app.compiled(three_nodes(app))
    for text in ("one", "two"):
        await app.invoke(graph, {"messages": [("user", text)]}, durability=case)


@scenarios.add("sync", "async", "exit")
async def durability_of_runs_that_stop(app: Application, case: Any) -> None:
    def go_on(state: State) -> State:
        if interrupt("go on?") == "fail":
            raise ValueError("cannot go on")
        return {"log": ["went on"]}

    builder = StateGraph(State)
    builder.add_node("a", app.node(lambda state: {"messages": [("ai", "from a")], "log": ["a"]}))
    builder.add_node("go on", app.node(go_on))
    builder.add_edge(START, "a")
    builder.add_edge("a", "go on")
    graph = app.compiled(builder)
    for answer in ("yes", "fail"):
        await app.invoke(graph, {"messages": [("user", answer)]}, durability=case)
        await app.invoke(graph, Command(resume=answer), durability=case)
    await app.invoke(graph, None, durability=case)


STREAM_MODES = ["values", "updates", "messages", "custom", "checkpoints", "tasks", "debug"]


def told_as_it_runs(app: Application) -> Any:
    """A graph that calls a model, writes to the stream, and asks and fails inside a subgraph."""
    model = WordByWordModel(
        answers=[AIMessage("one two three", id="m1"), AIMessage("four", id="m2")]
    )

    def talk(state: State) -> State:
        get_stream_writer()({"about": state["messages"][-1]})
        return {"messages": [model.invoke(state["messages"])]}

    def ask(state: State) -> State:
        if (answer := interrupt({"heard": state["messages"][-1]})) == "fail":
            raise ValueError("failed below")
        get_stream_writer()("below")
        return {"log": [answer]}

    inner = StateGraph(State)
    inner.add_node("talk below", app.node(talk))
    inner.add_node("ask", app.node(ask))
    inner.add_edge(START, "talk below")
    inner.add_edge("talk below", "ask")
    builder = StateGraph(State)
    builder.add_node("talk", app.node(talk))
    builder.add_node("below", inner.compile())
    builder.add_edge(START, "talk")
    builder.add_edge("talk", "below")
    return builder


@scenarios.add(*STREAM_MODES, ["values", "updates"], STREAM_MODES)
async def stream_modes(app: Application, case: Any) -> None:
    for number, subgraphs in enumerate((False, True)):
        graph = app.compiled(told_as_it_runs(app))
        config: RunnableConfig = {"configurable": {"thread_id": f"t{number}"}}
        for given in (
            {"messages": [("user", "one")]},
            Command(resume="fail"),
            Command(resume="answer"),
        ):
            await app.stream(
                graph, given, config, stream_mode=case, subgraphs=subgraphs, durability="sync"
            )


@scenarios.add("sync", "async", "exit")
async def streams_of_every_durability(app: Application, case: Any) -> None:
    graph = app.compiled(three_nodes(app))
    for text in ("one", "two"):
        await app.stream(
            graph,
            {"messages": [("user", text)]},
            stream_mode=["values", "updates", "tasks"],
            durability=case,
        )


@scenarios.add(0, 3, 5)
async def failing_nodes_are_retried(app: Application, case: Any) -> None:
    failures = iter(range(case))

    def flaky(state: State) -> State:
        if next(failures, None) is not None:
            raise ConnectionError("flaky")
        return {"log": ["done"]}

    builder = StateGraph(State)
    builder.add_node("a", app.node(lambda state: {"log": ["a"]}))
    policy = RetryPolicy(
        max_attempts=4, initial_interval=0.0, jitter=False, retry_on=ConnectionError
    )
    builder.add_node("flaky", app.node(flaky), retry_policy=policy)
    builder.add_edge(START, "a")
    builder.add_edge("a", "flaky")
    graph = app.compiled(builder)
    await app.invoke(graph, {"messages": [("user", "go")]})
    await app.invoke(graph, None)


@scenarios.add()
async def cached_nodes(app: Application) -> None:
    ran: list[int] = []

    def slow(state: State) -> State:
        ran.append(state["value"])
        return {"log": [len(ran)], "messages": [("ai", f"slow {len(ran)}")]}

    builder = StateGraph(State)
    builder.add_node(
        "slow", app.node(slow), cache_policy=CachePolicy(key_func=lambda state: str(state["value"]))
    )
    builder.add_node("after", app.node(lambda state: {"log": ["after"]}))
    builder.add_edge(START, "slow")
    builder.add_edge("slow", "after")
    graph = app.compiled(builder, cache=InMemoryCache())
    for value in (1, 2, 1):
        await app.stream(
            graph, {"messages": [("user", "go")], "value": value}, stream_mode=["updates", "tasks"]
        )
    await app.calls.call(graph, "clear_cache")
    await app.invoke(graph, {"value": 2})
    app.record.append(("ran", app.names.form(ran)))


@scenarios.add()
async def deferred_nodes_run_last(app: Application) -> None:
    builder = StateGraph(State)
    for name, after in (("a", START), ("b", "a"), ("c", "b")):
        builder.add_node(name, app.node(lambda state, name=name: {"log": [name]}))
        builder.add_edge(after, name)
    builder.add_node(
        "last", app.node(lambda state: {"log": ["last"], "messages": [("ai", "last")]}), defer=True
    )
    builder.add_edge("a", "last")
    builder.add_edge("c", "last")
    await app.invoke(app.compiled(builder), {"log": []})


@scenarios.add(7, UUID(int=5), "with spaces / and ünïcode", "x" * 300)
async def thread_ids(app: Application, case: Any) -> None:
    graph = app.compiled(three_nodes(app))
    config: RunnableConfig = {"configurable": {"thread_id": case}}
    await app.calls.call(graph, "invoke", {"messages": [("user", "hello")]}, config)
    graph.checkpointer = await app.shelf.reopen()
    head = await app.state(graph, config)
    app.record.append(("values", app.names.unordered(head.values)))
    await app.calls.call(app.shelf.saver, "delete_thread", str(case))
    app.record.append(("values", app.names.unordered((await app.state(graph, config)).values)))


# -- interrupts ------------------------------------------------------------------------------------


@scenarios.add("before", "after")
async def static_interrupts(app: Application, case: Any) -> None:
    graph = app.compiled(three_nodes(app), **{f"interrupt_{case}": ["a", "b"]})
    await app.invoke(graph, {"messages": [("user", "go")]})
    await app.invoke(graph, None)
    await app.calls.call(
        graph,
        "update_state",
        CONFIG,
        {"messages": [("user", "edited while it waits")], "value": None},
    )
    await app.look(graph)
    await app.invoke(graph, None)


@scenarios.add("before", "after")
async def static_interrupts_of_several_nodes_at_once(app: Application, case: Any) -> None:
    builder = StateGraph(State)
    for name in ("a", "b"):
        builder.add_node(name, app.node(lambda state, name=name: {"log": [name]}))
        builder.add_edge(START, name)
        builder.add_edge(name, "end")
    builder.add_node("end", app.node(lambda state: {"messages": [("ai", "end")]}))
    graph = app.compiled(builder, **{f"interrupt_{case}": ["a", "b"]})
    await app.invoke(graph, {"messages": [("user", "go")]})
    await app.stream(graph, None, stream_mode="updates", **{f"interrupt_{case}": "*"})
    await app.invoke(graph, None)
    await app.invoke(graph, {"messages": [("user", "not asked")]}, **{f"interrupt_{case}": []})


@scenarios.add(None, 7, ["a", {"b": None}], {"c": 1.0}, "text", False)
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


@scenarios.add()
async def several_interrupts_at_once(app: Application) -> None:
    builder = StateGraph(State)
    builder.add_node("ask", app.node(lambda state: {"log": [interrupt(state["value"])]}))
    builder.add_conditional_edges(
        START, lambda state: [Send("ask", {"value": n}) for n in range(3)], ["ask"]
    )
    graph = app.compiled(builder)
    await app.invoke(graph, {"messages": []})
    first, *others = (await app.state(graph)).interrupts
    await app.invoke(graph, Command(resume={first.id: "one"}))
    await app.invoke(graph, Command(resume={one.id: n for n, one in enumerate(others)}))


# -- control flow ----------------------------------------------------------------------------------


@scenarios.add()
async def commands_steer_and_update(app: Application) -> None:
    builder = StateGraph(State)
    builder.add_node(
        "a",
        app.node(
            lambda state: Command(
                update={"log": ["a"], "messages": [("ai", "go on")]}, goto=["b", "c"]
            )
        ),
    )
    builder.add_node(
        "b", app.node(lambda state: Command(update=[("log", ["b"]), ("value", (1, 2))]))
    )
    builder.add_node("c", app.node(lambda state: {"log": ["c"]}))
    builder.add_edge(START, "a")
    graph = app.compiled(builder)
    await app.invoke(graph, {"messages": [("user", "go")]})
    await app.invoke(graph, Command(update={"value": "set from outside"}, goto="c"))


@scenarios.add()
async def commands_send_and_refuse(app: Application) -> None:
    def plan(state: State) -> Any:
        sends = [
            Send("work", {"item": HumanMessage(f"item {n}", id=f"i{n}"), "n": n}) for n in range(3)
        ]
        return Command(update={"log": ["plan"]}, goto=[*sends, "end"])

    builder = StateGraph(State)
    builder.add_node("plan", app.node(plan))
    builder.add_node(
        "work",
        app.node(lambda state: {"messages": [state["item"]], "log": [interrupt(state["n"])]}),
    )
    builder.add_node("end", app.node(lambda state: {"messages": [("ai", "end")]}))
    builder.add_edge(START, "plan")
    graph = app.compiled(builder)
    await app.invoke(graph, {"messages": [("user", "go")]})
    by_id = {one.id: n for n, one in enumerate((await app.state(graph)).interrupts)}
    await app.invoke(graph, Command(resume=by_id, update={"value": "and more"}, goto="end"))
    await app.invoke(graph, Command(goto=Send("work", {"item": "from outside", "n": 9})))
    await app.invoke(graph, Command(resume="late"))
    await app.invoke(graph, Command(goto="nobody"))
    await app.invoke(graph, {"unknown": 1})
    await app.invoke(graph, {"messages": [("user", "too far")]}, {**CONFIG, "recursion_limit": 1})
    await app.invoke(graph, {"log": "no list"})


@scenarios.add(None, True)
async def subgraphs(app: Application, case: Any) -> None:
    inner = StateGraph(State)
    inner.add_node(
        "ask",
        app.node(
            lambda state: {"messages": [("ai", f"heard {interrupt('inner?')}")], "log": ["inner"]}
        ),
    )
    inner.add_edge(START, "ask")
    middle = StateGraph(State)
    middle.add_node("inner", inner.compile(checkpointer=case))
    middle.add_node(
        "up",
        app.node(
            lambda state: Command(graph=Command.PARENT, update={"log": ["from below"]}, goto="end")
        ),
    )
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
        await app.calls.call(
            graph,
            "update_state",
            below.config,
            {"messages": [("user", "edited below")], "log": ["edited"]},
        )
        await app.look(graph)
        await app.invoke(graph, Command(resume=text))


@scenarios.add(None, True, False)
async def subgraphs_that_a_node_calls(app: Application, case: Any) -> None:
    def talk(state: State) -> State:
        return {"messages": [("ai", f"below, after {len(state['messages'])}")], "log": ["below"]}

    inner = (
        StateGraph(State)
        .add_node("talk", app.node(talk))
        .add_edge(START, "talk")
        .compile(checkpointer=case)
    )

    def call(state: State) -> Any:
        return {
            "value": inner.invoke({"messages": state["messages"][-1:]})["log"],
            "messages": [("ai", "called")],
        }

    async def acall(state: State) -> Any:
        return {
            "value": (await inner.ainvoke({"messages": state["messages"][-1:]}))["log"],
            "messages": [("ai", "called")],
        }

    node: Callable[..., Any] = call if app.calls.mode == "sync" else acall
    graph = app.compiled(StateGraph(State).add_node("call", node).add_edge(START, "call"))
    for text in ("one", "two", "three"):
        await app.stream(
            graph,
            {"messages": [("user", text)]},
            stream_mode=["updates", "values"],
            subgraphs=True,
            durability="sync",
        )


@scenarios.add("talks", "asks")
async def subgraphs_without_memory(app: Application, case: Any) -> None:
    def below(state: State) -> State:
        heard = interrupt("inner?") if case == "asks" else "nothing"
        return {"messages": [("ai", f"heard {heard}")], "log": ["below"]}

    inner = (
        StateGraph(State)
        .add_node("below", app.node(below))
        .add_edge(START, "below")
        .compile(checkpointer=False)
    )
    graph = app.compiled(StateGraph(State).add_node("inner", inner).add_edge(START, "inner"))
    for text in ("one", "two"):
        await app.invoke(graph, {"messages": [("user", text)]})
        await app.invoke(graph, Command(resume=text))


@scenarios.add()
async def sends_carry_messages(app: Application) -> None:
    builder = StateGraph(State)
    builder.add_node(
        "plan", app.node(lambda state: {"messages": [("ai", "planned")], "log": ["plan"]})
    )
    builder.add_node(
        "work", app.node(lambda state: {"messages": [state["item"]], "log": [state["n"]]})
    )
    builder.add_edge(START, "plan")
    send = app.node(
        lambda state: [
            Send("work", {"item": HumanMessage(f"item {n}", id=f"i{n}"), "n": n}) for n in range(12)
        ]
    )
    builder.add_conditional_edges("plan", send, ["work"])
    graph = app.compiled(builder)
    for text in ("one", "two"):
        await app.invoke(graph, {"messages": [("user", text)]})


@pytest.mark.parametrize(("backend", "mode"), PLACES, indirect=True, scope="session")
@pytest.mark.parametrize("played", scenarios.params)
def test_an_application_runs_as_on_the_in_memory_saver(
    played: Scenario, backend: Backend, mode: Mode, folder: Path
) -> None:
    play(played, backend, mode, folder)
