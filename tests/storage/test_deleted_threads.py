"""Promise: a thread that was deleted stays deleted. What its runs still write is refused, and a new conversation starts clean."""

from __future__ import annotations

import asyncio
import io
import os
import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from forgotten import rows
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import START, MessagesState, StateGraph
from outliving import OLD

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads, examine
from langmem_ext.errors import LangmemExtError, ThreadDeleted, ThreadNotFound

THREAD: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
COLUMNS = (("item", "text"), ("item", "rest"), ("value", "body"), ("checkpoint", "body"), ("pending_write", "body"))
SOON = 30
"""Seconds that no machine is too busy for."""


class Held:
    """A graph whose second node waits until it is let go."""

    def __init__(self, saver: Any, *, nested: bool = False, text: str = "old") -> None:
        self.inside, self.go = threading.Event(), threading.Event()

        def wait(state: MessagesState) -> Any:
            self.inside.set()
            assert self.go.wait(SOON)
            return {"messages": [AIMessage(f"{text} late")]}

        def say(state: MessagesState) -> Any:
            return {"messages": [AIMessage(f"{text} answer")]}

        def chain(**nodes: Any) -> StateGraph[Any]:
            builder = StateGraph(MessagesState)
            before = START
            for name, node in nodes.items():
                builder.add_node(name, node).add_edge(before, name)
                before = name
            return builder

        last: Any = chain(wait=wait, after=say).compile() if nested else wait
        self.app: Any = chain(first=say, last=last, more=say).compile(checkpointer=saver)

    def run(self, durability: str, outcome: list[BaseException | None], mode: str) -> threading.Thread:
        """Begin a turn, and come back when it waits."""

        def work() -> None:
            given = {"messages": [HumanMessage("old question")]}
            try:
                if mode == "sync":
                    self.app.invoke(given, THREAD, durability=durability)
                else:
                    asyncio.run(self.app.ainvoke(given, THREAD, durability=durability))
                outcome.append(None)
            except BaseException as error:
                outcome.append(error)

        running = threading.Thread(target=work)
        running.start()
        assert self.inside.wait(SOON)
        return running


def say(saver: Any, text: str, thread: str = "t") -> list[str]:
    builder = StateGraph(MessagesState).add_node("answer", lambda state: {"messages": [AIMessage(f"re: {text}")]}).add_edge(START, "answer")
    found = builder.compile(checkpointer=saver).invoke({"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}})
    return [message.text for message in found["messages"]]


def stored_texts(saver: DeltaSaver) -> str:
    """All that is stored anywhere, of any thread."""
    return "".join(repr(rows(saver, f"SELECT {column} FROM {table}")) for table, column in COLUMNS)


@pytest.mark.parametrize("again", [False, True], ids=["gone", "begun again"])
@pytest.mark.parametrize("nested", [False, True], ids=["root", "subgraph"])
@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_run_that_outlives_its_thread_brings_nothing_back(url: str, durability: str, nested: bool, again: bool, way: str) -> None:
    with DeltaSaver.open(url) as saver, DeltaSaver.open(url) as other:
        say(saver, "old beginning")
        held, outcome = Held(saver, nested=nested), []
        running = held.run(durability, outcome, way)
        (other if nested else saver).delete_thread("t")
        if again:
            assert say(other, "new") == ["new", "re: new"]
        held.go.set()
        running.join(SOON)
        [error] = outcome
        assert isinstance(error, ThreadDeleted), error
        assert "begin a new conversation" in str(error)
        assert [one.id for one in Threads(saver).list()] == (["t"] if again else [])
        assert "old" not in stored_texts(saver)
        assert [one for one in examine(saver).findings if one.severity != "note"] == []
        assert say(saver, "next") == (["new", "re: new"] if again else []) + ["next", "re: next"]


def test_late_calls_are_refused_and_leave_nothing(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        gone: Any = {"configurable": {**THREAD["configurable"], "checkpoint_id": str(uuid6())}}
        inner: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "child:1", "checkpoint_map": {"": str(uuid6())}}}
        with pytest.raises(ThreadDeleted):
            saver.put_writes(gone, [("messages", [AIMessage("ghost")])], "task")
        with pytest.raises(ThreadDeleted):
            saver.put(gone, empty_checkpoint(), {"source": "loop", "step": 1}, {})
        with pytest.raises(ThreadNotFound):
            saver.put(inner, empty_checkpoint(), {"source": "loop", "step": 1}, {})
        assert issubclass(ThreadDeleted, LangmemExtError)
        assert Threads(saver).list() == []
        assert rows(saver, "SELECT count(*) FROM item") == [(0,)]


@pytest.mark.parametrize("again", [False, True])
def test_writes_that_overtake_the_checkpoint_that_begins_their_thread_are_stored(url: str, again: bool) -> None:
    """LangGraph stores in the background: a task's writes may overtake their checkpoint, and a subgraph's checkpoint the root's."""
    with DeltaSaver.open(url) as saver:
        if again:
            say(saver, "old")
            saver.delete_thread("t")
        assert saver.get_tuple(THREAD) is None  # as each run begins
        first, child = empty_checkpoint(), empty_checkpoint()
        config: Any = {"configurable": {**THREAD["configurable"], "checkpoint_id": first["id"]}}
        inner: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": "child:1", "checkpoint_map": {"": first["id"]}}}
        with ThreadPoolExecutor() as background:
            early = [
                background.submit(saver.put_writes, config, [("messages", [AIMessage("one")])], "task 1"),
                background.submit(saver.put, inner, child, {"source": "loop", "step": 0}, {}),
                background.submit(saver.put_writes, config, [("messages", [AIMessage("two")])], "task 2"),
            ]
            time.sleep(0.05)
            saver.put(THREAD, first, {"source": "input", "step": -1}, {})
        for one in early:
            one.result()
        found = saver.get_tuple(THREAD)
        assert found is not None
        assert {task for task, *_ in found.pending_writes or ()} == {"task 1", "task 2"}
        assert saver.get_tuple(inner) is not None


def test_what_is_told_of_one_run_is_not_believed_of_an_earlier_one(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        say(saver, "old")
        head = saver.get_tuple(THREAD)
        assert head is not None
        saver.delete_thread("t")
        assert saver.get_tuple(THREAD) is None  # a new run has begun, and stored nothing yet
        with pytest.raises(ThreadDeleted):
            saver.put_writes(head.config, [("messages", [AIMessage("ghost")])], "task")


def test_a_run_goes_on_in_a_thread_that_was_deleted_and_imported_with_its_checkpoint(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        held, outcome = Held(saver), []
        running = held.run("sync", outcome, "sync")
        lines = "".join(Threads(saver).export_lines("t")).encode()
        saver.delete_thread("t")
        Threads(saver).import_from(io.BytesIO(lines), keep_ids=True)
        held.go.set()
        running.join(SOON)
        assert outcome == [None]
        assert [one.text for one in held.app.get_state(THREAD).values["messages"]][-2:] == ["old late", "old answer"]


def test_a_run_does_not_go_on_in_an_import_from_before_it(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        say(saver, "kept")
        lines = "".join(Threads(saver).export_lines("t")).encode()
        held, outcome = Held(saver), []
        running = held.run("sync", outcome, "sync")
        saver.delete_thread("t")
        Threads(saver).import_from(io.BytesIO(lines), keep_ids=True)
        held.go.set()
        running.join(SOON)
        assert isinstance(outcome[0], ThreadDeleted)
        assert [one.text for one in held.app.get_state(THREAD).values["messages"]] == ["kept", "re: kept"]
        assert "old" not in stored_texts(saver)


def test_a_run_goes_on_where_its_checkpoint_was_pruned(url: str) -> None:
    with DeltaSaver.open(url) as saver, DeltaSaver.open(url) as other:
        held, outcome = Held(saver), []
        running = held.run("sync", outcome, "sync")
        say(other, "meanwhile")
        say(other, "and on")
        other.prune(["t"])
        held.go.set()
        running.join(SOON)
        assert outcome == [None]
        assert Threads(saver).list()[0].id == "t"


def test_a_copy_and_a_history_under_a_deleted_threads_id_are_new(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        held, outcome = Held(saver), []
        running = held.run("sync", outcome, "sync")
        say(saver, "other", "source")
        saver.delete_thread("t")
        saver.copy_thread("source", "t")
        held.go.set()
        running.join(SOON)
        assert isinstance(outcome[0], ThreadDeleted)
        assert say(saver, "next") == ["other", "re: other", "next", "re: next"]
        kept = ThreadChatMessageHistory("h", saver)
        kept.add_messages([HumanMessage("x")])
        saver.delete_thread("h")
        kept.add_messages([AIMessage("y")])
        assert [one.text for one in kept.messages] == ["y"]


SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
COUNT = 10_000 if SOAK else 60


@pytest.mark.parametrize("begins_again", [False, True], ids=["gone", "begun again"])
def test_runs_of_another_process_bring_nothing_back(url: str, begins_again: bool) -> None:
    """Deletes threads at random moments of runs in another process; of what these say, nothing must be left."""
    chance, seed, count = random.Random(4711), uuid4().int % 2**31 if SOAK else 7, COUNT // 4
    command = [sys.executable, str(Path(__file__).parent / "outliving.py"), url, str(seed), str(count)]
    refused = 0
    with (
        DeltaSaver.open(url, synchronous="normal") as saver,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        for number in range(count):
            name = f"t{number}"
            assert process.stdout.readline() == "begun\n"
            time.sleep(chance.random() * 0.02)
            saver.delete_thread(name)
            said = say(saver, "new", name) if begins_again else []
            outcome = process.stdout.readline().split()
            refused += outcome[0] == "refused"
            assert [one.id for one in Threads(saver).list()] == ([name] if begins_again else []), (number, outcome)
            if begins_again:
                found = saver.get_tuple({"configurable": {"thread_id": name}})
                assert found is not None
                assert [one.text for one in found.checkpoint["channel_values"]["messages"]] == said
            assert OLD not in stored_texts(saver), (number, outcome)
            saver.delete_thread(name)
            print(file=process.stdin, flush=True)
        assert process.wait(SOON) == 0
    assert refused > count // 10, "hardly any run was under way"


def test_what_a_killed_process_had_written_late_does_not_come_back(url: str) -> None:
    """The process with the run is killed at a random moment around the deletion."""
    chance = random.Random(99)
    command = [sys.executable, str(Path(__file__).parent / "outliving.py"), url]
    with DeltaSaver.open(url, synchronous="normal") as saver:
        for number in range(500 if SOAK else 3):
            with subprocess.Popen([*command, str(number), "1"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
                assert process.stdout is not None
                assert process.stdout.readline() == "begun\n"
                time.sleep(chance.random() * 0.02)
                saver.delete_thread("t0")
                time.sleep(chance.random() * 0.02)
                process.kill()
            assert Threads(saver).list() == []
            assert OLD not in stored_texts(saver)
            assert say(saver, "new", "t0") == ["new", "re: new"]
            saver.delete_thread("t0")
