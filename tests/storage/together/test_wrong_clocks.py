"""Promise: a turn that was answered is the thread's state, whatever the clocks of those who write
to it say.

LangGraph names checkpoints by the time at which they are made. What follows a thread's newest
checkpoint is the newest, even if its id is lower; a fork of an earlier checkpoint stays a branch on
a clock that is behind that of the machine that wrote last.
"""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from acts import Act, GoOn, Run, Update, go_ons, runs, updates
from comparison import Names, assert_same
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from player import Player
from savers import Backend, Mode, Shelf, run_without_loop
from wrong_clock import SKEWS, clock_off_by

from langmem_ext import ConversationMemory, DeltaSaver, ThreadChatMessageHistory, Threads, examine

THREAD: Any = {"configurable": {"thread_id": "t"}}


def chat(saver: Any) -> Any:
    def answer(state: MessagesState) -> Any:
        return {"messages": [AIMessage(f"a{len(state['messages'])}")]}

    return (
        StateGraph(MessagesState)
        .add_node("answer", answer)
        .add_edge(START, "answer")
        .compile(checkpointer=saver)
    )


def say(saver: Any, *texts: str) -> list[str]:
    """Say something in a turn each; the conversation as the last turn returned it."""
    graph = chat(saver)
    for text in texts:
        found = graph.invoke({"messages": [HumanMessage(text)]}, THREAD)
    return [message.text for message in found["messages"]]


def conversation(saver: Any, thread: Any = THREAD) -> list[str]:
    return [message.text for message in chat(saver).get_state(thread).values["messages"]]


def history(saver: Any, thread: Any = THREAD) -> list[tuple[int, Any, Any, int]]:
    """Each checkpoint of the history, newest first: step, id, parent, messages."""
    return [
        (
            one.metadata["step"],
            one.config["configurable"]["checkpoint_id"],
            one.parent_config and one.parent_config["configurable"]["checkpoint_id"],
            len(one.values.get("messages", ())),
        )
        for one in chat(saver).get_state_history(thread)
    ]


def assert_clean(saver: DeltaSaver) -> None:
    found = examine(saver).findings
    assert [one for one in found if one.severity != "note"] == []


@pytest.mark.parametrize("skew", SKEWS)
async def test_history_sessions_and_async_runs_go_on_on_a_clock_that_is_behind(
    url: str, skew: float
) -> None:
    async with DeltaSaver.open(url) as saver:
        await chat(saver).ainvoke({"messages": [HumanMessage("q0")]}, THREAD)
        kept = ThreadChatMessageHistory("h", saver)
        await kept.aadd_messages([HumanMessage("one")])
        memory = ConversationMemory(saver).for_session("s")
        await memory.amerge({"a": 1})
        with clock_off_by(skew):
            await chat(saver).ainvoke({"messages": [HumanMessage("q1")]}, THREAD)
            await kept.aadd_messages([HumanMessage("two")])
            await memory.amerge({"b": 2})
        assert [one.text for one in (await chat(saver).aget_state(THREAD)).values["messages"]] == [
            "q0",
            "a1",
            "q1",
            "a3",
        ]
        assert [one.text for one in await kept.aget_messages()] == ["one", "two"]
        assert await memory.aparams() == {"a": 1, "b": 2}


@pytest.mark.parametrize("skew", SKEWS)
def test_what_a_subgraph_did_comes_behind_the_checkpoint_in_whose_step_it_did_it(
    url: str, skew: float
) -> None:
    put: list[Any] = []

    class Noting(DeltaSaver):
        def put(self, *given: Any) -> Any:
            put.append(super().put(*given)["configurable"])
            return {"configurable": put[-1]}

    child = (
        StateGraph(MessagesState)
        .add_node("answer", lambda state: {"messages": [AIMessage("a")]})
        .add_edge(START, "answer")
        .compile()
    )
    with Noting(url) as saver:
        graph: Any = (
            StateGraph(MessagesState)
            .add_node("child", child)
            .add_edge(START, "child")
            .compile(checkpointer=saver)
        )
        graph.invoke({"messages": [HumanMessage("q0")]}, THREAD, durability="sync")
        earlier = graph.get_state(THREAD).config
        with clock_off_by(skew):
            graph.invoke({"messages": [HumanMessage("q1")]}, THREAD, durability="sync")
        names = [(one["checkpoint_ns"], one["checkpoint_id"]) for one in put]
        listed = [
            (
                one.config["configurable"]["checkpoint_ns"],
                one.config["configurable"]["checkpoint_id"],
            )
            for one in saver.list(THREAD)
        ]
        assert listed == names[::-1]
        with clock_off_by(skew - 60):  # on a branch, where its id puts it
            fork = graph.update_state(earlier, {"messages": [HumanMessage("aside")]}, as_node=START)
            graph.invoke(None, fork, durability="sync")
        newest = next(iter(saver.list(THREAD))).config["configurable"]
        assert (newest["checkpoint_ns"], newest["checkpoint_id"]) == listed[0]
        assert_clean(saver)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("skew", SKEWS)
def test_a_subgraphs_answer_is_taken_back_though_it_was_stored_before_the_step(
    url: str, skew: float, durability: Any
) -> None:
    """With "exit", and now and then with "async", a subgraph's checkpoint is stored before the
    root's that it names.
    """

    def ask(state: MessagesState) -> Any:
        return {"messages": [AIMessage(f"age {int(interrupt('How old?'))}")]}

    child = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").compile()
    with DeltaSaver.open(url) as saver:
        say(saver, "q0")
        graph: Any = (
            StateGraph(MessagesState)
            .add_node("child", child)
            .add_edge(START, "child")
            .compile(checkpointer=saver)
        )
        with clock_off_by(skew):
            graph.invoke({"messages": [HumanMessage("q1")]}, THREAD, durability=durability)
            for _ in range(2):
                with pytest.raises(ValueError, match="old enough"):
                    graph.invoke(Command(resume="old enough"), THREAD, durability=durability)
            Threads(saver).rewind("t")
            found = graph.invoke(Command(resume="42"), THREAD, durability=durability)
        assert found["messages"][-1].text == "age 42"
        assert_clean(saver)


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("keeps", [False, True], ids=["asks", "keeps its state"])
@pytest.mark.parametrize("way", ["sync", "async"])
async def test_what_a_subgraph_stores_is_not_refused_on_a_clock_that_is_behind(
    url: str, way: str, keeps: bool, durability: Any
) -> None:
    """With "exit" it is stored before the root's checkpoint that it names, which is older than the
    thread by the clock that began it.
    """
    ran: list[str] = []

    def pay(state: MessagesState) -> Any:
        ran.append("pay")
        return {"messages": [AIMessage("paid")]}

    def ask(state: MessagesState) -> Any:
        return {"messages": [AIMessage("kept" if keeps else f"said {interrupt('sure?')}")]}

    builder = (
        StateGraph(MessagesState)
        .add_node("pay", pay)
        .add_node("ask", ask)
        .add_edge(START, "pay")
        .add_edge("pay", "ask")
    )
    child = builder.compile(checkpointer=True if keeps else None)
    outer = StateGraph(MessagesState).add_node("child", child).add_edge(START, "child")

    async def turn(saver: DeltaSaver, given: Any) -> list[str]:
        graph, options = outer.compile(checkpointer=saver), {"durability": durability}
        found = (
            await graph.ainvoke(given, THREAD, **options)
            if way == "async"
            else graph.invoke(given, THREAD, **options)
        )
        return [message.text for message in found["messages"]]

    async with DeltaSaver.open(url) as right, DeltaSaver.open(url) as behind:
        await chat(right).ainvoke({"messages": [HumanMessage("q0")]}, THREAD)
        with clock_off_by(-60):
            said = await turn(behind, {"messages": [HumanMessage("pay")]})
            if not keeps:
                said = await turn(behind, Command(resume="yes"))
        assert said == ["q0", "a1", "pay", "paid", "kept" if keeps else "said yes"]
        assert ran == ["pay"], "a resumed run goes on where the subgraph had asked"
        everything: Any = {"configurable": {"thread_id": "t"}}
        assert any(one.config["configurable"]["checkpoint_ns"] for one in right.list(everything))
        assert_clean(right)


@pytest.mark.parametrize("skew", SKEWS)
def test_a_run_goes_on_where_another_process_prunes_what_it_made_on_a_clock_that_is_behind(
    url: str, skew: float
) -> None:
    with DeltaSaver.open(url) as right, DeltaSaver.open(url) as behind:
        say(right, "q0")

        def prune(state: MessagesState) -> Any:
            say(right, "meanwhile")
            right.prune(["t"])
            return {"messages": [AIMessage("a")]}

        builder = StateGraph(MessagesState).add_node("prune", prune).add_edge(START, "prune")
        with clock_off_by(skew):
            found = builder.compile(checkpointer=behind).invoke(
                {"messages": [HumanMessage("q1")]}, THREAD, durability="sync"
            )
        assert [message.text for message in found["messages"]] == ["q0", "a1", "q1", "a"]
        assert_clean(right)


def test_a_thread_that_was_asked_for_on_a_clock_that_was_ahead_is_begun(url: str) -> None:
    """A task's writes, and a subgraph's checkpoint, may come before the checkpoint that begins the
    thread.
    """
    with DeltaSaver.open(url) as saver:
        for ahead in (True, False):
            with clock_off_by(3600 if ahead else 0):
                assert saver.get_tuple(THREAD) is None
        first = empty_checkpoint()
        at: Any = {
            "configurable": {
                **THREAD["configurable"],
                "checkpoint_ns": "",
                "checkpoint_id": first["id"],
            }
        }
        saver.put_writes(at, [("messages", [AIMessage("one")])], "task")
        saver.put(
            {"configurable": {"thread_id": "t", "checkpoint_ns": ""}},
            first,
            {"source": "input", "step": -1},
            {},
        )
        found = saver.get_tuple(THREAD)
        assert found is not None
        assert [task for task, *_ in found.pending_writes or ()] == ["task"]


def test_a_checkpoint_that_is_put_again_keeps_its_place(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        say(saver, "q0")
        with clock_off_by(-60):
            said = say(saver, "q1")
        for one in list(saver.list(THREAD)):
            before = history(saver)
            parent: Any = one.parent_config or {
                "configurable": {"thread_id": "t", "checkpoint_ns": ""}
            }
            saver.put(parent, one.checkpoint, one.metadata, one.checkpoint["channel_versions"])
            assert history(saver) == before
        assert conversation(saver) == said
        assert_clean(saver)


# -- random programs -------------------------------------------------------------------------------


def straight(act: Act) -> Act:
    """The same at the head: a fork becomes the head only where its id is the highest.

    Without what is LangGraph's own race: which of several tasks ends first.
    """
    if isinstance(act, Run):
        return replace(act, at=None, sends=0, child=False, durability="sync")
    return replace(act, at=None) if isinstance(act, GoOn | Update) else act


graph_acts = st.one_of(runs, runs, go_ons, updates).map(straight)
seeds = st.integers(0, 2**32)


async def read(player: Player, names: Names) -> Any:
    """All that a graph tells of its threads, whatever the ids are."""
    told = []
    for thread in ("g", "h"):
        config = {"configurable": {"thread_id": thread}}
        head = await player.calls.call(player.graph, "get_state", config)
        history = await player.calls.collect(player.graph, "get_state_history", config)
        told.append(tuple(names.snapshot(state) for state in (head, *history)))
    return tuple(told)


async def compare_skewed(
    program: list[Act], seed: int, backend: Backend, mode: Mode, folder: Path
) -> None:
    """Play a program on the reference, and on the subject with another clock at each step; all
    that can be read must be the same.
    """
    shelf, chance = Shelf(backend, mode, folder), random.Random(seed)
    try:
        reference, subject = Player(InMemorySaver(), mode), Player(shelf.saver, mode)
        names = Names(), Names()
        for number, act in enumerate(program):
            await reference.play(act)
            # Ids of one process never go back, whatever its clock does: each step is another's.
            shelf.saver.log.caches.start_anew()
            with clock_off_by(chance.choice([0, 0, *SKEWS, 3600])):
                await subject.play(act)
            expected, found = await read(reference, names[0]), await read(subject, names[1])
            assert_same(expected, found, f"step {number} ({act})")
    finally:
        await shelf.close()


def test_random_programs_on_wrong_clocks_read_back_as_on_a_right_one(
    backend: Backend, mode: Mode, folder: Path
) -> None:
    @settings(
        max_examples=(
            max(1, settings().max_examples // 4)
            if settings().derandomize
            else settings().max_examples
        )
    )
    @given(st.lists(graph_acts, min_size=4, max_size=8), seeds)
    def compare(program: list[Act], seed: int) -> None:
        work = compare_skewed(program, seed, backend, mode, folder)
        if mode == "async":
            asyncio.run(work)
        else:
            run_without_loop(work)

    compare()
