"""Promise: what an operation expects of the database is right unless another process has written, and then it is known to be wrong.

So a driver that is far from its database may go on before it is answered: an operation whose thread was written here last asks for nothing
that it does not know, and a read for one thing alone, what others have added.

PostgreSQL's driver does so, and has the server compare. On SQLite there is a double, which compares each expectation at once.
"""

from __future__ import annotations

import operator
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

import pytest
from comparison import assert_same
from expecting import Run, driver_of, expecting_saver, wrong
from hypothesis import given
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph, add_messages
from langgraph.types import Command, Send, interrupt
from postgres.server import SHARED
from puts import Branch, Call, call_lists, new_ids
from savers import BACKENDS, Backend, ReferenceShelf, run_without_loop

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads
from langmem_ext.storage.statements import SELECT_WRITES

LONG = "a value of some length, which has a row of its own: " * 4
WRITES = {"put_checkpoint", "put_writes"}


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    log: Annotated[list[Any], operator.add]
    value: Any


class Sent(TypedDict):
    number: int


def speak(state: State) -> Any:
    """A node whose message has no id yet, as a model's has none."""
    return {"messages": [AIMessage(f"answer {len(state['messages'])}")], "value": {"text": LONG, "turn": len(state["messages"])}}


def talking() -> Any:
    builder = StateGraph(State)
    builder.add_node("speak", speak)
    builder.add_edge(START, "speak")
    return builder


def fanned_out() -> Any:
    def work(sent: Sent) -> Any:
        return {"messages": [AIMessage(f"part {sent['number']}")], "log": [sent["number"]]}

    builder = StateGraph(State)
    builder.add_node("split", lambda state: {"log": ["split"]})
    builder.add_node("work", work)
    builder.add_edge(START, "split")
    builder.add_conditional_edges("split", lambda state: [Send("work", {"number": number}) for number in range(5)], ["work"])
    return builder


def nested() -> Any:
    """A graph with a subgraph, which has a namespace of its own in each run."""
    builder = StateGraph(State)
    builder.add_node("inner", talking().compile())
    builder.add_node("speak", speak)
    builder.add_edge(START, "inner")
    builder.add_edge("inner", "speak")
    return builder


def asking() -> Any:
    def ask(state: State) -> Any:
        return {"messages": [HumanMessage(f"told: {interrupt('which one?')}")]}

    builder = StateGraph(State)
    builder.add_node("ask", ask)
    builder.add_node("speak", speak)
    builder.add_edge(START, "ask")
    builder.add_edge("ask", "speak")
    return builder


GRAPHS: dict[str, Callable[[], Any]] = {
    "one node": talking,
    "a fan-out": fanned_out,
    "a subgraph": nested,
    "a question": asking,
}


def turn(graph: Any, number: int, thread: str = "t") -> None:
    """One turn of a conversation; a question is answered.

    One call after the other: a read that PostgreSQL carries out beside a write of its thread may learn what is no longer so.
    """
    config: Any = {"configurable": {"thread_id": thread}}
    said: Any = [("user", f"said {number}: {LONG}")] if number % 2 else [HumanMessage(f"said {number}")]
    result = graph.invoke({"messages": said}, config, durability="sync")
    if "__interrupt__" in result:
        graph.invoke(Command(resume=f"this one {number}"), config, durability="sync")


def form(graph: Any, thread: str = "t") -> list[Any]:
    """What a thread's history says, without the ids that chance gives."""
    states = graph.get_state_history({"configurable": {"thread_id": thread}})
    return [[(type(one).__name__, one.text) for one in said(state)] + [state.values.get("log"), state.next] for state in states]


def said(state: Any) -> list[BaseMessage]:
    messages: list[BaseMessage] = state.values.get("messages", [])
    return messages


KINDS = [backend for backend in BACKENDS if backend.name != "file"]


@pytest.fixture(params=KINDS, ids=lambda backend: backend.name)
def backend(request: pytest.FixtureRequest) -> Backend:
    """The double on SQLite, and PostgreSQL's driver."""
    return cast(Backend, request.param)


@contextmanager
def savers(backend: Backend, count: int, *, twice: bool = False) -> Iterator[list[DeltaSaver]]:
    """Savers on one database, which know nothing of each other: so many processes."""
    with ExitStack() as stack:
        database: sqlite3.Connection | str
        if backend.name == "postgres":
            stack.enter_context(SHARED.own_schemas())
            database = backend.new_url(Path())
        else:
            database = stack.enter_context(closing(sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)))
        yield [stack.enter_context(closing(expecting_saver(database, twice=twice))) for _ in range(count)]


@pytest.fixture
def saver(backend: Backend) -> Iterator[DeltaSaver]:
    with savers(backend, 1) as [saver]:
        yield saver


@pytest.fixture
def pair(backend: Backend) -> Iterator[list[DeltaSaver]]:
    """Two processes."""
    with savers(backend, 2) as pair:
        yield pair


def asked(runs: list[Run]) -> dict[str, list[str]]:
    """The statements of which nothing was expected, by operation; of those that had any."""
    return {run.name: run.unexpected for run in runs if run.unexpected}


@pytest.mark.parametrize("name", GRAPHS)
def test_a_thread_that_was_written_here_last_is_as_expected(name: str, saver: DeltaSaver) -> None:
    graph = GRAPHS[name]().compile(checkpointer=saver)
    reference = GRAPHS[name]().compile(checkpointer=InMemorySaver())
    driver = driver_of(saver)
    for number in range(6):
        turn(graph, number)
        turn(reference, number)
        runs = driver.taken()
        assert wrong(runs) == []
        assert {run.name for run in runs} == {*WRITES, "get_checkpoint"}
        if number:
            assert {tuple(run.unexpected) for run in runs if run.name in WRITES} == {()}
            assert {tuple(run.unexpected) for run in runs if run.name == "get_checkpoint"} <= {(SELECT_WRITES,), ()}
    saver.get_tuple({"configurable": {"thread_id": "t"}})
    assert [run.unexpected for run in driver.taken()] == [[SELECT_WRITES]]
    assert form(graph) == form(reference)


@pytest.mark.parametrize("name", GRAPHS)
def test_what_is_deleted_and_made_again_is_as_expected(name: str, saver: DeltaSaver) -> None:
    graph = GRAPHS[name]().compile(checkpointer=saver)
    for number in range(3):
        turn(graph, number)
        turn(graph, number, "other")
        before = form(graph, "other")
        saver.delete_thread("t")
        assert form(graph) == []
        assert form(graph, "other") == before
    turn(graph, 1)
    saver.prune(["t"])
    turn(graph, 2)
    saver.copy_thread("t", "copy")
    turn(graph, 3, "copy")
    Threads(saver).rename("t", "A title")
    turn(graph, 4)
    ThreadChatMessageHistory("t", saver).add_user_message("beside the graph")
    ThreadChatMessageHistory("t", saver).clear()
    turn(graph, 5)
    assert wrong(driver_of(saver).taken()) == []


@pytest.mark.parametrize("name", GRAPHS)
def test_what_another_process_writes_is_never_taken_for_what_was_expected(name: str, pair: list[DeltaSaver]) -> None:
    graphs = [GRAPHS[name]().compile(checkpointer=saver) for saver in pair]
    reference = GRAPHS[name]().compile(checkpointer=InMemorySaver())
    for number in range(6):
        graph, saver = graphs[number % 2], pair[number % 2]
        turn(graph, number)
        turn(reference, number)
        runs = driver_of(saver).taken()
        # It learns of the other's turn once, and then goes on as if it were alone.
        assert [bool(run.wrong) for run in runs] == [number > 1] + [False] * (len(runs) - 1)
    for graph in graphs:
        assert form(graph) == form(reference)


class ShelfOfSavers:
    """A shelf with several savers on one database, which take turns call by call, as processes may."""

    def __init__(self, savers: list[DeltaSaver]) -> None:
        self.savers = savers
        self._calls = len(savers)

    @property
    def saver(self) -> DeltaSaver:
        """The saver whose turn it is."""
        self._calls += 1
        return self.savers[self._calls % len(self.savers)]

    async def reopen(self) -> DeltaSaver:
        return self.saver


async def compare(calls: list[Call], backend: Backend, count: int) -> list[tuple[str, list[str]]]:
    """Make the same calls on several savers that take turns and on one that is in memory, and compare all that can be read after each.

    What the savers have expected wrongly is given back.
    """
    ids = new_ids(len(calls) + 1)
    with savers(backend, count) as subjects:
        shelf = ShelfOfSavers(subjects)
        reference, subject = Branch(ReferenceShelf(), "sync", ids), Branch(shelf, "sync", ids)  # type: ignore[arg-type]
        for number, call in enumerate(calls):
            last = number == len(calls) - 1
            expected, found = await reference.carry_out(call, last=last), await subject.carry_out(call, last=last)
            for (what, form), (_, other) in zip(expected, found, strict=True):
                assert_same(form, other, f"call {number} ({type(call).__name__}), {what}")
        return [one for saver in shelf.savers for one in wrong(driver_of(saver).taken())]


@given(calls=call_lists)
def test_whatever_is_called_it_is_as_expected(backend: Backend, calls: list[Call]) -> None:
    assert run_without_loop(compare(calls, backend, 1)) == []


def test_whatever_processes_call_in_turn_no_wrong_expectation_is_believed(backend: Backend) -> None:
    met: list[Any] = []

    @given(calls=call_lists)
    def compare_some(calls: list[Call]) -> None:
        met.extend(run_without_loop(compare(calls, backend, 2)))

    compare_some()
    assert met, "none was wrong, so this says nothing"


def test_a_history_without_a_graph_is_as_expected(saver: DeltaSaver) -> None:
    history, driver = ThreadChatMessageHistory("t", saver), driver_of(saver)
    for number in range(4):
        history.add_messages([HumanMessage(f"said {number}"), AIMessage(f"answer {number}")])
        assert [one.content for one in history.messages][-1] == f"answer {number}"
        runs = driver.taken()
        assert wrong(runs) == []
        assert number == 0 or asked(runs) == {}


@pytest.mark.parametrize("name", GRAPHS)
def test_every_operation_can_be_run_again(name: str, backend: Backend) -> None:
    with savers(backend, 1, twice=True) as [saver]:
        graph = GRAPHS[name]().compile(checkpointer=saver)
        reference = GRAPHS[name]().compile(checkpointer=InMemorySaver())
        for number in range(3):
            turn(graph, number)
            turn(reference, number)
        assert form(graph) == form(reference)
        history = ThreadChatMessageHistory("t", saver)
        history.add_messages([HumanMessage("one"), AIMessage("two")])
        assert [one.content for one in history.messages][-2:] == ["one", "two"]
        assert [one.content for one in history.window(1_000)][-2:] == ["one", "two"]
        threads = Threads(saver)
        assert threads.fork("t", to="copy").id == "copy"
        assert threads.rename("t", "A title").title == "A title"
        assert {thread.id for thread in threads.list()} == {"t", "copy"}
        assert threads.clear("copy") == len(said(graph.get_state({"configurable": {"thread_id": "t"}})))
        assert threads.delete("t").threads == 1
        assert threads.count() == 1


def test_what_is_expected_counts_in_what_is_held(saver: DeltaSaver) -> None:
    graph, indexes = talking().compile(checkpointer=saver), saver.log.indexes
    turn(graph, 0)
    before = indexes.size
    turn(graph, 2)
    assert indexes.size > before
    indexes.forget()
    assert indexes.size == 0
