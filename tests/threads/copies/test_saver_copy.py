"""Promise: threads move from any checkpointer to any other through LangGraph's interface, whole;
users leave as easily as they came.
"""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import UUID, uuid4

import pytest
from acts import DELTAS, Act, GoOn, deltas, programs
from comparison import Names, assert_same
from hypothesis import given, settings
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import START, StateGraph, add_messages
from langgraph.types import Command, Send, interrupt
from move_checks import Saver, SqliteShelf, assert_moved, everything, forms_of
from player import Player
from prune_reference import assert_sound
from savers import empty_tables, run_without_loop

from langmem_ext import (
    CopyProgress,
    DeltaSaver,
    InvalidInput,
    ThreadNotFound,
    acopy_saver,
    copy_saver,
)

KINDS = ("memory", "sqlite", "delta", "postgres")
OURS = ("delta", "postgres")
KILLS = 30 if os.environ.get("LANGMEM_EXT_SOAK") == "1" else 3
CONFIG: RunnableConfig = {"configurable": {"thread_id": "a"}}


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    done: Annotated[list[str], lambda left, right: [*left, *right]]


def build(saver: Any) -> Any:
    """A fan-out, a subgraph with a memory of its own, a question."""

    def part(state: dict[str, Any]) -> dict[str, Any]:
        return {"done": [f"part {state['n']}"], "messages": [AIMessage(f"part {state['n']}")]}

    def ask(state: State) -> dict[str, Any]:
        return {"messages": [AIMessage(f"you said {interrupt('go on?')}")]}

    child = (
        StateGraph(State)
        .add_node("inner", lambda state: {"messages": [("ai", "inner")]})
        .add_edge(START, "inner")
    )
    builder = StateGraph(State)
    builder.add_node("part", part).add_node("child", child.compile(checkpointer=True)).add_node(
        "ask", ask
    )  # type: ignore[call-overload]
    builder.add_conditional_edges(
        START, lambda state: [Send("part", {"n": n}) for n in range(3)], ["part"]
    )
    builder.add_edge("part", "child").add_edge("child", "ask")
    return builder.compile(checkpointer=saver)


def live(saver: Any) -> None:
    graph = build(saver)
    for thread in ("a", "b"):
        config: RunnableConfig = {
            "configurable": {"thread_id": thread, "customer": "c-1"},
            "metadata": {"source_app": "shop"},
        }
        graph.invoke({"messages": [HumanMessage("hello", id="h1")]}, config)
        graph.invoke(Command(resume="yes"), config)
        history = list(graph.get_state_history(config))
        graph.update_state(history[3].config, {"messages": [AIMessage("forked")]}, as_node="child")
    graph.invoke({"messages": [("user", "again")]}, CONFIG)


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Callable[[str], Saver]]:
    """Opens a fresh saver of a kind."""
    with ExitStack() as closing:

        def open_saver(kind: str) -> Saver:
            if kind == "memory":
                return InMemorySaver()
            path = tmp_path / uuid4().hex
            if kind == "sqlite":
                shelf = SqliteShelf(path)
                closing.callback(shelf.saver.conn.close)
                return shelf.saver
            return closing.enter_context(
                DeltaSaver.open(empty_tables(tmp_path) if kind == "postgres" else str(path))
            )

        yield open_saver


# -- exact -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_a_copy_reads_as_the_original_and_goes_on_like_it(
    source: str, target: str, opened: Callable[[str], Saver]
) -> None:
    old, new = opened(source), opened(target)
    live(old)
    before = everything(old)
    report = copy_saver(old, new)
    assert everything(old) == before
    assert_moved(old, new)
    assert (report.threads, report.checkpoints, report.skipped) == (2, len(before), 0)
    ends = []
    for saver in (old, new):
        graph = build(saver)
        assert len(graph.get_state(CONFIG).interrupts) == 1
        values = graph.invoke(Command(resume="sure"), CONFIG)
        ends.append(Names().form([values["messages"], values["done"]]))
    assert_same(ends[0], ends[1], "the thread's end")


def test_an_edit_in_place_of_an_answer_stays_before_the_question(tmp_path: Path) -> None:
    old = InMemorySaver()
    graph = build(old)
    graph.invoke({"messages": [("user", "hello")]}, CONFIG)
    asked = graph.get_state(CONFIG).config
    graph.update_state(CONFIG, {"messages": [AIMessage("never mind")]}, as_node="ask")
    found = old.get_tuple(asked)
    assert found is not None
    assert [channel for _, channel, _ in found.pending_writes or ()] == [
        "messages",
        "__interrupt__",
    ]
    assert len({task for task, *_ in found.pending_writes or ()}) == 1
    go_round(old, ("delta", "memory", "postgres", "sqlite"), tmp_path)


def play(acts: Iterable[Act], saver: Any) -> Player:
    player = Player(saver)
    for act in acts:
        run_without_loop(player.play(act))
    return player


def go_round(source: Saver, kinds: tuple[str, ...], folder: Path) -> None:
    """Copy from saver to saver; each must give what the first gives, and a second copy must find
    nothing to do.
    """
    with ExitStack() as closing:
        for kind in kinds:
            target: Saver
            if kind == "sqlite":
                shelf = SqliteShelf(folder / uuid4().hex)
                closing.callback(shelf.saver.conn.close)
                target = shelf.saver
            else:
                url = empty_tables(folder) if kind == "postgres" else str(folder / uuid4().hex)
                target = (
                    InMemorySaver()
                    if kind == "memory"
                    else closing.enter_context(DeltaSaver.open(url))
                )
            copy_saver(source, target)
            assert_moved(source, target)
            again = copy_saver(source, target)
            assert (again.checkpoints, again.writes) == (0, 0)
            source = target


@settings(max_examples=settings().max_examples * 2)
@given(program=programs)
def test_random_programs_go_round_unchanged(program: list[Act], folder: Path) -> None:
    reference, shelf = InMemorySaver(), SqliteShelf(folder / uuid4().hex)
    play(program, reference)
    go_round(reference, ("delta", "memory", "postgres", "sqlite"), folder)
    play(program, shelf.saver)
    # Not through memory: a value changed in place under the same version is there the same in all
    # checkpoints.
    go_round(shelf.saver, ("delta", "sqlite"), folder)
    run_without_loop(shelf.close())


@pytest.mark.parametrize("target", KINDS)
@pytest.mark.parametrize("source", KINDS)
def test_delta_channels_are_rebuilt_as_they_were(
    source: str, target: str, opened: Callable[[str], Saver]
) -> None:
    old, new = opened(source), opened(target)
    one = play(deltas("async"), old)
    copy_saver(old, new)
    other = Player(new)
    other.script = one.script
    config: RunnableConfig = {"configurable": {"thread_id": "g"}}
    histories = [
        [Names(keep=True).snapshot(state) for state in player.graph.get_state_history(config)]
        for player in (one, other)
    ]
    assert len(histories[0]) == len(histories[1]) > 20
    for expected, found in zip(*histories, strict=True):
        assert_same(expected, found, "a state")
    rebuilt = [
        Names(keep=True).form(
            [
                entry["writes"]
                for entry in saver.get_delta_channel_history(
                    config=config, channels=DELTAS
                ).values()
            ]
        )
        for saver in (old, new)
    ]
    assert_same(*rebuilt, "the delta history")
    ends = []
    for player in (one, other):
        run_without_loop(player.play(GoOn("g", "all", "yes")))
        ends.append(Names().unordered(player.graph.get_state(config).values))
    assert_same(*ends, "the answered turn")


# -- again, in part, and what cannot be ------------------------------------------------------------


class FailingSaver(InMemorySaver):
    """Fails at one of its calls."""

    fails_at = -1
    calls = 0

    def _call(self) -> None:
        self.calls += 1
        if self.calls == self.fails_at:
            raise ConnectionError("no more")

    def put(self, *args: Any, **kwargs: Any) -> Any:
        self._call()
        return super().put(*args, **kwargs)

    def put_writes(self, *args: Any, **kwargs: Any) -> None:
        self._call()
        super().put_writes(*args, **kwargs)


@pytest.mark.parametrize("source", OURS)
@pytest.mark.parametrize("fails_at", [1, 2, 5, 17, 30])
def test_a_copy_that_failed_goes_on_when_it_is_run_again(
    fails_at: int, source: str, opened: Callable[[str], Saver]
) -> None:
    old, new = opened(source), FailingSaver()
    live(old)
    new.fails_at = fails_at
    with pytest.raises(ConnectionError):
        copy_saver(old, new)
    expected = everything(old)
    for place, form in everything(new).items():
        assert_same(expected[place], form, "a checkpoint that is there is whole")
    report = copy_saver(old, new)
    assert report.checkpoints + report.skipped == len(expected)
    assert_moved(old, new)


def test_what_comes_before_a_put_that_cannot_be_made_is_copied_and_nothing_of_what_comes_after(
    url: str,
) -> None:
    with DeltaSaver.open(url) as saver:
        old, mine = InMemorySaver(), saver.for_owner("me")
        live(old)
        build(old).invoke({"messages": [("user", "later")]}, {"configurable": {"thread_id": "c"}})
        saver.for_owner("another").put(
            {"configurable": {"thread_id": "b", "checkpoint_ns": ""}},
            empty_checkpoint(),
            {"step": 1},
            {},
        )
        with pytest.raises(ThreadNotFound, match="'b'"):
            copy_saver(old, mine)
        assert everything(mine) == forms_of(old.list(CONFIG))
        with pytest.raises(ThreadNotFound, match="'b'"):
            asyncio.run(acopy_saver(old, mine))
        copy_saver(old, mine, threads=["a", "c"])
        assert everything(mine) == {
            place: form for place, form in everything(old).items() if place[0] != "b"
        }


CHILD = """
import sys
from langmem_ext import DeltaSaver, copy_saver

with DeltaSaver.open(sys.argv[1]) as old, DeltaSaver.open(sys.argv[2]) as new:
    copy_saver(old, new, progress=lambda at: print(at.done, flush=True))
"""


@pytest.mark.process
def test_a_copy_that_is_killed_has_what_it_told_of_whole_and_goes_on(
    url: str, tmp_path: Path
) -> None:
    source, chance, there = str(tmp_path / "old.db"), random.Random(11), 0
    with DeltaSaver.open(source) as old:
        for thread in "abcdefghij":
            for _ in range(3):
                build(old).invoke(
                    {"messages": [("user", "hello")]}, {"configurable": {"thread_id": thread}}
                )
                build(old).invoke(Command(resume="yes"), {"configurable": {"thread_id": thread}})
        expected = everything(old)
        assert len(expected) > 3 * 64
        for _ in range(KILLS):
            with subprocess.Popen(
                [sys.executable, "-c", CHILD, source, url], stdout=subprocess.PIPE, text=True
            ) as child:
                assert child.stdout is not None
                first = child.stdout.readline()
                time.sleep(chance.random() / 10)
                child.kill()
                told = [first, *child.stdout.read().splitlines(keepends=True)]
            with DeltaSaver.open(url) as new:
                found = everything(new)
                assert_sound(new)
            assert int([line for line in told if line.endswith("\n")][-1]) <= len(found)
            assert there <= len(found)
            there = len(found)
            for place, form in found.items():
                assert_same(expected[place], form, f"checkpoint {place}, its writes with it")
        with DeltaSaver.open(url) as new:
            report = copy_saver(old, new)
            assert (report.checkpoints, report.skipped) == (len(expected) - there, there)
            assert_moved(old, new)


@pytest.mark.parametrize("target", KINDS)
def test_a_thread_that_went_on_in_the_target_lacks_nothing(
    target: str, opened: Callable[[str], Saver]
) -> None:
    old, new = opened("memory"), opened(target)
    live(old)
    copy_saver(old, new)
    build(new).invoke(Command(resume="here"), CONFIG)
    expected = everything(new)
    for _ in range(2):
        report = copy_saver(old, new)
        assert (report.checkpoints, report.writes) == (0, 0)
        assert everything(new) == expected
    asked = build(old).get_state(CONFIG).config
    old.put_writes(asked, [("done", ["another"])], "another task")
    assert [copy_saver(old, new).writes for _ in range(2)] == [1, 0]


@pytest.mark.parametrize("target", OURS)
def test_only_the_threads_asked_for_are_copied(target: str, opened: Callable[[str], Saver]) -> None:
    old, new = opened("sqlite"), opened(target)
    live(old)
    seen: list[CopyProgress] = []
    copy_saver(old, new, threads=["b"], progress=seen.append)
    assert everything(new) == forms_of(old.list({"configurable": {"thread_id": "b"}}))
    assert (seen[-1].thread, seen[-1].done) == ("b", seen[-1].total)
    with pytest.raises(ThreadNotFound, match="'nobody'"):
        copy_saver(old, new, threads=["nobody"])


def test_thread_ids_that_are_no_text_are_copied_as_they_are(opened: Callable[[str], Saver]) -> None:
    old, new = InMemorySaver(), InMemorySaver()
    for thread in (
        7,
        UUID(int=7),
    ):  # LangGraph makes a text of it; others that call a saver may not
        old.put(
            {"configurable": {"thread_id": thread, "checkpoint_ns": ""}},
            empty_checkpoint(),
            {"step": 1},
            {},
        )
    copy_saver(old, new)
    assert set(new.storage) == {7, UUID(int=7)}
    assert_moved(old, new)
    assert copy_saver(old, new).checkpoints == 0


# -- async -----------------------------------------------------------------------------------------


@pytest.fixture
async def async_sqlite(tmp_path: Path) -> AsyncIterator[AsyncSqliteSaver]:
    async with AsyncSqliteSaver.from_conn_string(str(tmp_path / "async.sqlite")) as saver:
        yield saver


@pytest.mark.parametrize("kind", KINDS)
async def test_an_async_saver_is_copied_both_ways(
    kind: str, async_sqlite: AsyncSqliteSaver, opened: Callable[[str], Saver]
) -> None:
    old, back = opened(kind), opened(kind)
    live(old)
    report = await acopy_saver(old, async_sqlite)
    assert report.checkpoints == len(everything(old))
    assert forms_of([found async for found in async_sqlite.alist(None)]) == everything(old)
    await acopy_saver(async_sqlite, back)
    assert_moved(old, back)
    assert (await acopy_saver(async_sqlite, back)).checkpoints == 0


def test_what_cannot_be_asked_for_is_one_clear_error(async_sqlite: AsyncSqliteSaver) -> None:
    old, new = InMemorySaver(), InMemorySaver()
    live(old)
    for threads in ("a", "", "nobody"):
        for copied in (copy_saver, lambda *given, **kw: asyncio.run(acopy_saver(*given, **kw))):
            with pytest.raises(
                InvalidInput,
                match=r"thread ids must be a list, not one text: pass threads=\[thread_id\]",
            ):
                copied(old, new, threads=threads)
    with pytest.raises(InvalidInput, match="the same saver"):
        copy_saver(old, old)
    with pytest.raises(InvalidInput, match="AsyncSqliteSaver is async only: use acopy_saver"):
        copy_saver(async_sqlite, new)
    assert not new.storage
