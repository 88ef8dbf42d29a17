"""Promise: a thread that was deleted stays deleted.

What its runs still write is refused, and a new conversation starts clean.
"""

from __future__ import annotations

import asyncio
import io
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from patience import PATIENCE_S
from prune_reference import rows
from wrong_clock import clock_off_by

from langmem_ext import DeltaSaver, Threads
from langmem_ext.errors import ThreadDeleted
from langmem_ext.log import message_log as log

THREAD: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
COLUMNS = (
    ("item", "text"),
    ("item", "rest"),
    ("value", "body"),
    ("checkpoint", "body"),
    ("pending_write", "body"),
)
QUESTION: Any = {"messages": [("user", "old question")]}


class Held:
    """A graph whose second node waits until it is let go."""

    def __init__(self, saver: Any, *, nested: bool = False, text: str = "old") -> None:
        self.inside, self.go = threading.Event(), threading.Event()

        def wait(state: MessagesState) -> Any:
            self.inside.set()
            assert self.go.wait(PATIENCE_S)
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

    def run(
        self, durability: str, outcome: list[BaseException | None], mode: str
    ) -> threading.Thread:
        """Begin a turn, and come back when it waits."""

        def work() -> None:
            try:
                if mode == "sync":
                    self.app.invoke(QUESTION, THREAD, durability=durability)
                else:
                    asyncio.run(self.app.ainvoke(QUESTION, THREAD, durability=durability))
                outcome.append(None)
            except BaseException as error:
                outcome.append(error)

        running = threading.Thread(target=work)
        running.start()
        assert self.inside.wait(PATIENCE_S)
        return running


def say(saver: Any, text: str, thread: str = "t") -> list[str]:
    builder = (
        StateGraph(MessagesState)
        .add_node("answer", lambda state: {"messages": [AIMessage(f"re: {text}")]})
        .add_edge(START, "answer")
    )
    found = builder.compile(checkpointer=saver).invoke(
        {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}}
    )
    return [message.text for message in found["messages"]]


def stored_texts(saver: DeltaSaver) -> str:
    """All that is stored anywhere, of any thread."""
    return "".join(repr(rows(saver, f"SELECT {column} FROM {table}")) for table, column in COLUMNS)


@pytest.mark.parametrize("again", [False, True])
def test_writes_that_overtake_the_checkpoint_that_begins_their_thread_are_stored(
    url: str, again: bool
) -> None:
    """LangGraph stores in the background: a task's writes may overtake their checkpoint, and a
    subgraph's checkpoint the root's.
    """
    with DeltaSaver.open(url) as saver:
        if again:
            say(saver, "old")
            saver.delete_thread("t")
        assert saver.get_tuple(THREAD) is None  # as each run begins
        first, child = empty_checkpoint(), empty_checkpoint()
        config: Any = {"configurable": {**THREAD["configurable"], "checkpoint_id": first["id"]}}
        inner: Any = {
            "configurable": {
                "thread_id": "t",
                "checkpoint_ns": "child:1",
                "checkpoint_map": {"": first["id"]},
            }
        }
        with ThreadPoolExecutor() as background:
            early = [
                background.submit(
                    saver.put_writes, config, [("messages", [AIMessage("one")])], "task 1"
                ),
                background.submit(saver.put, inner, child, {"source": "loop", "step": 0}, {}),
                background.submit(
                    saver.put_writes, config, [("messages", [AIMessage("two")])], "task 2"
                ),
            ]
            time.sleep(0.05)
            saver.put(THREAD, first, {"source": "input", "step": -1}, {})
        for one in early:
            one.result()
        found = saver.get_tuple(THREAD)
        assert found is not None
        assert {task for task, *_ in found.pending_writes or ()} == {"task 1", "task 2"}
        assert saver.get_tuple(inner) is not None


def test_a_question_before_the_first_checkpoint_is_stored_buries_no_thread(url: str) -> None:
    """A page that shows the state may ask in mid-run: there is a thread, but no checkpoint yet."""
    with DeltaSaver.open(url) as saver:
        assert saver.get_tuple(THREAD) is None  # as each run begins
        first, second = empty_checkpoint(), empty_checkpoint()

        def early(checkpoint: Any, text: str) -> None:
            config: Any = {
                "configurable": {**THREAD["configurable"], "checkpoint_id": checkpoint["id"]}
            }
            saver.put_writes(config, [("messages", [AIMessage(text)])], f"task {text}")

        early(first, "one")
        assert saver.get_tuple(THREAD) is None
        head = saver.put(THREAD, first, {"source": "input", "step": -1}, {})
        early(second, "two")
        saver.put(head, second, {"source": "loop", "step": 0}, {})
        found = saver.get_tuple(THREAD)
        assert found is not None
        assert [task for task, *_ in found.pending_writes or ()] == ["task two"]


def test_what_is_told_of_one_run_is_not_believed_of_an_earlier_one(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        say(saver, "old")
        head = saver.get_tuple(THREAD)
        assert head is not None
        saver.delete_thread("t")
        assert saver.get_tuple(THREAD) is None  # a new run has begun, and stored nothing yet
        with pytest.raises(ThreadDeleted):
            saver.put_writes(head.config, [("messages", [AIMessage("ghost")])], "task")


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_a_run_that_goes_on_with_another_ones_thread_does_not_begin_it_again(
    url: str, durability: Any
) -> None:
    """Its process was told once that there is no such thread."""
    with DeltaSaver.open(url) as saver, DeltaSaver.open(url) as other:

        def fail(state: MessagesState) -> Any:
            raise ValueError("away")

        def delete(state: MessagesState) -> Any:
            other.delete_thread("t")
            return {"messages": [AIMessage("old answer")]}

        begins, goes_on = (
            StateGraph(MessagesState)
            .add_node("first", node)
            .add_edge(START, "first")
            .compile(checkpointer=where)
            for node, where in ((fail, other), (delete, saver))
        )
        assert goes_on.get_state(THREAD).values == {}
        with pytest.raises(ValueError, match="away"):
            begins.invoke(QUESTION, THREAD, durability="sync")
        with pytest.raises(ThreadDeleted):
            goes_on.invoke(None, THREAD, durability=durability)
        assert Threads(other).list() == []
        assert "old" not in stored_texts(other)


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_run_does_not_begin_again_what_the_turn_before_began_in_one_write(
    url: str, way: str
) -> None:
    with DeltaSaver.open(url) as saver:
        turns: list[str] = []

        def ask(state: MessagesState) -> Any:
            turns.append("turn")
            if len(turns) == 2:
                saver.delete_thread("t")
                interrupt("old?")
            return {"messages": [AIMessage("old answer")]}

        child = StateGraph(MessagesState).add_node("ask", ask).add_edge(START, "ask").compile()
        app: Any = (
            StateGraph(MessagesState)
            .add_node("child", child)
            .add_edge(START, "child")
            .compile(checkpointer=saver)
        )

        def turn() -> None:
            if way == "sync":
                app.invoke(QUESTION, THREAD, durability="exit")
            else:
                asyncio.run(app.ainvoke(QUESTION, THREAD, durability="exit"))

        turn()
        with pytest.raises(ThreadDeleted):
            turn()
        assert Threads(saver).list() == []
        assert "old" not in stored_texts(saver)


def test_who_has_begun_a_thread_does_not_begin_it_twice(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        for name in ("checkpoint", "writes"):
            thread: Any = {"configurable": {"thread_id": name, "checkpoint_ns": ""}}
            assert saver.get_tuple(thread) is None
            first = empty_checkpoint()
            at: Any = {"configurable": {**thread["configurable"], "checkpoint_id": first["id"]}}
            if name == "checkpoint":
                saver.put(thread, first, {"source": "input", "step": -1}, {})
            else:
                saver.put_writes(at, [("messages", [AIMessage("one")])], "task 1")
            saver.delete_thread(name)
            with pytest.raises(ThreadDeleted):
                saver.put_writes(at, [("messages", [AIMessage("ghost")])], "task 2")
        assert Threads(saver).list() == []


def paying(saver: DeltaSaver, ran: list[str], meanwhile: Any, *, beside: Any = None) -> Any:
    """A graph with a subgraph that pays, and then asks; what `ran` tells."""

    def pay(state: MessagesState) -> Any:
        ran.append("pay")
        return {"messages": [AIMessage("paid")]}

    def ask(state: MessagesState) -> Any:
        meanwhile()
        return {"messages": [AIMessage(f"said {interrupt('sure?')}")]}

    child = StateGraph(MessagesState).add_sequence([("pay", pay), ("ask", ask)])
    builder = StateGraph(MessagesState).add_node("child", child.add_edge(START, "pay").compile())
    if beside is not None:
        builder.add_node("beside", beside).add_edge(START, "beside")
    return builder.add_edge(START, "child").compile(checkpointer=saver)


@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_subgraph_is_stored_where_its_run_stores_at_its_end(
    url: str, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread was deleted and has begun again; the root's checkpoint comes long after that of
    the subgraph that asks.
    """
    monkeypatch.setattr(
        log, "PATIENCE", (0.001, 0.01, 0.05, 0.2)
    )  # less than the root's checkpoint takes
    with DeltaSaver.open(url) as saver:
        ran: list[str] = []

        def beside(state: MessagesState) -> Any:
            time.sleep(1)
            return {"messages": [AIMessage("beside")]}

        app = paying(saver, ran, lambda: None, beside=beside)

        def turn(given: Any) -> Any:
            if way == "sync":
                return app.invoke(given, THREAD, durability="exit")
            return asyncio.run(app.ainvoke(given, THREAD, durability="exit"))

        say(saver, "old")
        saver.delete_thread("t")
        say(saver, "new")
        turn({"messages": [HumanMessage("pay")]})
        turn(Command(resume="yes"))
        assert ran == ["pay"]


@pytest.mark.parametrize("skew", [0, -60])
def test_a_run_whose_thread_another_process_begins_meanwhile_is_stored_with_its_subgraph(
    url: str, skew: float
) -> None:
    """Its root's checkpoint comes at its end; the thread's first is the other's, by another
    clock.
    """
    with DeltaSaver.open(url) as saver, DeltaSaver.open(url) as other:
        ran: list[str] = []

        def meanwhile() -> None:
            with clock_off_by(-2 * skew):
                say(other, "meanwhile")

        app = paying(saver, ran, meanwhile)
        with clock_off_by(skew):
            app.invoke(QUESTION, THREAD, durability="exit")
        inner = [
            one
            for one in saver.list({"configurable": {"thread_id": "t"}})
            if one.config["configurable"]["checkpoint_ns"]
        ]
        assert len(inner) == 1
        assert ran == ["pay"]


def test_a_run_goes_on_in_a_thread_that_was_deleted_and_imported_with_its_checkpoint(
    url: str,
) -> None:
    with DeltaSaver.open(url) as saver:
        held, outcome = Held(saver), []
        running = held.run("sync", outcome, "sync")
        lines = "".join(Threads(saver).export_lines("t")).encode()
        saver.delete_thread("t")
        Threads(saver).import_from(io.BytesIO(lines), keep_ids=True)
        held.go.set()
        running.join(PATIENCE_S)
        assert outcome == [None]
        assert [one.text for one in held.app.get_state(THREAD).values["messages"]][-2:] == [
            "old late",
            "old answer",
        ]


def test_a_run_does_not_go_on_in_an_import_from_before_it(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        say(saver, "kept")
        lines = "".join(Threads(saver).export_lines("t")).encode()
        held, outcome = Held(saver), []
        running = held.run("sync", outcome, "sync")
        saver.delete_thread("t")
        Threads(saver).import_from(io.BytesIO(lines), keep_ids=True)
        held.go.set()
        running.join(PATIENCE_S)
        assert isinstance(outcome[0], ThreadDeleted)
        assert [one.text for one in held.app.get_state(THREAD).values["messages"]] == [
            "kept",
            "re: kept",
        ]
        assert "old" not in stored_texts(saver)


def test_a_run_goes_on_where_its_checkpoint_was_pruned(url: str) -> None:
    with DeltaSaver.open(url) as saver, DeltaSaver.open(url) as other:
        held, outcome = Held(saver), []
        running = held.run("sync", outcome, "sync")
        say(other, "meanwhile")
        say(other, "and on")
        other.prune(["t"])
        held.go.set()
        running.join(PATIENCE_S)
        assert outcome == [None]
        assert Threads(saver).list()[0].id == "t"


def test_a_run_does_not_go_on_in_a_thread_that_began_in_the_same_millisecond() -> None:
    with DeltaSaver() as saver:
        for number in range(100):
            place: Any = {"configurable": {"thread_id": f"t{number}", "checkpoint_ns": ""}}
            saver.get_tuple(place)
            old = saver.put(place, empty_checkpoint(), {"source": "input", "step": -1}, {})
            saver.delete_thread(f"t{number}")
            Threads(saver).create(f"t{number}")
            with pytest.raises(ThreadDeleted):
                saver.put(old, empty_checkpoint(), {"source": "loop", "step": 0}, {})


@pytest.mark.parametrize("way", ["copy", "fork", "import"])
def test_a_run_goes_on_from_a_copied_checkpoint_that_was_pruned(url: str, way: str) -> None:
    """The checkpoint is older than its thread, and was there when the run read it."""
    with DeltaSaver.open(url) as saver, DeltaSaver.open(url) as other:
        say(other, "kept", "source" if way != "import" else "t")
        lines = "".join(Threads(other).export_lines("t")) if way == "import" else ""

        def make() -> None:
            other.delete_thread("t")
            if way == "copy":
                other.copy_thread("source", "t")
            elif way == "fork":
                Threads(other).fork("source", to="t")
            else:
                Threads(other).import_from(io.BytesIO(lines.encode()), keep_ids=True)

        def move_on() -> None:
            say(other, "meanwhile")
            other.prune(["t"])

        def go_on() -> None:
            saver.put(
                head.config,
                {**head.checkpoint, "id": str(uuid6())},
                {"source": "loop", "step": 3},
                {},
            )

        make()
        head: Any = saver.get_tuple(THREAD)
        move_on()
        go_on()
        make()  # with the same checkpoints
        move_on()
        with pytest.raises(ThreadDeleted):
            go_on()
