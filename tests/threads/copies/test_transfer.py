"""Promise: a `SqliteSaver`'s database is moved in whole: every state reads there as it did here,
and a thread that waits goes on.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import shutil
import sqlite3
import sys
import types
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypedDict
from uuid import uuid4

import ormsgpack
import pytest
from acts import Act, programs
from comparison import Names, assert_same
from forged_rows import reseal_rows
from hypothesis import given, settings
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph, add_messages
from langgraph.types import Command, Send, interrupt
from move_checks import (
    assert_moved,
    assert_same_histories,
    everything,
    forms_of,
    rows,
    sqlite_saver,
)
from player import Player
from prune_reference import rows as rows_in
from pydantic import BaseModel
from savers import Backend, run_without_loop
from search_reference import spoil

from langmem_ext import (
    DamagedRow,
    DataSerializer,
    DeltaSaver,
    ImportProgress,
    InvalidInput,
    NotADatabase,
    StorageError,
    StorageUnavailable,
    ThreadNotFound,
    Threads,
    aimport_checkpoints,
    examine,
    import_checkpoints,
    stats,
)


def config(thread: str = "t") -> RunnableConfig:
    return {"configurable": {"thread_id": thread}}


# -- an application that uses most of LangGraph ----------------------------------------------------


class Point(NamedTuple):
    x: int
    y: float


@dataclasses.dataclass
class Parcel:
    number: str
    said: list[Any]


class Address(BaseModel):
    street: str
    tags: tuple[str, ...] = ()


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    point: Point
    parcel: Parcel
    address: Address
    results: Annotated[list[str], lambda left, right: [*left, *right]]


class Inner(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]


def build(saver: Any) -> Any:
    """Tool calls, a fan-out, a subgraph with a memory of its own, a removed message, a question."""

    def work(state: State) -> dict[str, Any]:
        turn = len(state["messages"])
        call = {"name": "find", "args": {"flags": [True, 1, 1.0]}, "id": f"call-{turn}"}
        said = [
            AIMessage("", tool_calls=[call]),
            ToolMessage(
                f"found {turn}", tool_call_id=f"call-{turn}", artifact={"at": Point(1, 2.0)}
            ),
        ]
        return {
            "messages": said,
            "point": Point(turn, 1.0),
            "parcel": Parcel(
                f"P-{turn}", [HumanMessage("inside a dataclass " * 9, id=f"in-{turn}")]
            ),
            "address": Address(street="Main", tags=("a", "b")),
        }

    def fan(state: State) -> list[Send]:
        return [
            Send("part", {"number": number, "messages": [HumanMessage(f"part {number}")]})
            for number in range(3)
        ]

    def part(state: dict[str, Any]) -> dict[str, Any]:
        return {
            "results": [f"part {state['number']}"],
            "messages": [("ai", f"did {state['number']}")],
        }

    def inner(state: Inner) -> dict[str, Any]:
        return {"messages": [AIMessage(f"inner saw {len(state['messages'])}")]}

    def ask(state: State) -> dict[str, Any]:
        said = interrupt({"question": "go on?", "about": state["parcel"]})
        last = [RemoveMessage(id=str(state["messages"][0].id))] if said == "forget" else []
        return {"messages": [*last, AIMessage(f"you said {said}")]}

    child = (
        StateGraph(Inner)
        .add_node("inner", inner)
        .add_edge(START, "inner")
        .compile(checkpointer=True)
    )
    builder = StateGraph(State)
    for name, node in (("work", work), ("part", part), ("ask", ask), ("child", child)):
        builder.add_node(name, node)  # type: ignore[call-overload]
    builder.add_edge(START, "work").add_conditional_edges("work", fan, ["part"])
    builder.add_edge("part", "child").add_edge("child", "ask").add_edge("ask", END)
    return builder.compile(checkpointer=saver)


def live(saver: Any) -> None:
    """Threads in every condition: waiting, finished, forked, edited, and one that failed."""
    graph = build(saver)
    for turn in range(3):
        graph.invoke({"messages": [("user", f"hello {turn}")]}, config("a"))
        graph.invoke(Command(resume="forget" if turn == 1 else "yes"), config("a"))
    graph.invoke({"messages": [("user", "and now?")]}, config("a"))
    graph.invoke({"messages": [HumanMessage("one", id="h1")]}, config("b"))
    history = list(graph.get_state_history(config("b")))
    fork = graph.update_state(
        history[2].config, {"messages": [AIMessage("forked")]}, as_node="work"
    )
    graph.invoke(None, fork)
    graph.update_state(config("b"), {"messages": [AIMessage("edited")]}, as_node="ask")
    graph.invoke({"messages": [("user", "only this")]}, config("c"))


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database of the application; not to be changed."""
    path = tmp_path_factory.mktemp("sources") / "old.sqlite"
    with sqlite_saver(path) as saver:
        live(saver)
    return path


@pytest.fixture
def source(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copyfile(original, tmp_path / "old.sqlite"))


@pytest.fixture
def target(url: str) -> str:
    """Where to, on each kind of database."""
    return url


def found(target: str, statement: str) -> list[Any]:
    """Rows of the target."""
    with DeltaSaver.open(target) as saver:
        return list(rows_in(saver, statement))


def test_every_state_of_an_application_reads_as_it_did_and_what_waits_goes_on(
    source: Path, target: str, durable: Backend
) -> None:
    report = import_checkpoints(source, target, verify=True)
    assert (report.threads, report.skipped, report.damaged) == (3, 0, ())
    [checkpoints], [writes] = (
        rows(source, f"SELECT count(*) FROM {table}")[0] for table in ("checkpoints", "writes")
    )
    assert (report.verified, report.checkpoints, report.writes) == (
        checkpoints,
        checkpoints,
        writes,
    )
    ids = found(
        target, "SELECT thread_id, message_id FROM conversation WHERE message_id IS NOT NULL"
    )
    assert len(ids) == len(set(ids)) > 20, "each message is stored once"
    assert report.bytes_before == source.stat().st_size
    assert report.bytes_after == stats(target).file_bytes
    if durable.name == "file":  # on PostgreSQL, empty tables take more than this
        assert report.bytes_after == Path(target).stat().st_size < report.bytes_before
    assert_imported(source, target)
    with sqlite_saver(source) as old, DeltaSaver.open(target) as new:
        assert_same_histories(build, old, new, "abc")
        answers = []
        for saver in (old, new):
            graph = build(saver)
            assert graph.get_state(config("a")).interrupts[0].value["question"] == "go on?"
            graph.invoke(Command(resume="sure"), config("a"))
            graph.invoke({"messages": [("user", "next")]}, config("a"))
            state = graph.invoke(Command(resume="again"), config("a"))
            answers.append(Names().form({name: state[name] for name in sorted(state)}))
        assert_same(answers[0], answers[1], "the thread's end")


def assert_imported(source: Path, target: str, *, unused: tuple[str, ...] = ()) -> None:
    """Fail unless the target gives what a `SqliteSaver` gives, and the doctor has nothing to
    say.
    """
    with sqlite_saver(source) as old, DeltaSaver.open(target) as new:
        assert_moved(old, new)
    assert tuple(finding.kind for finding in examine(target).findings) == unused


# -- what is moved ---------------------------------------------------------------------------------


def test_an_input_is_one_row_whenever_its_message_got_its_id(tmp_path: Path, target: str) -> None:
    source = tmp_path / "old.sqlite"
    with sqlite_saver(source) as old:
        # LangGraph sets the id while it saves: what a row holds is a matter of chance.
        for number, (given_id, late) in enumerate(product([None, "m1"], repeat=2)):
            place: RunnableConfig = {
                "configurable": {"thread_id": f"t{number}", "checkpoint_ns": ""}
            }
            first, second = empty_checkpoint(), empty_checkpoint()
            said = {"messages": [HumanMessage("hello", id=given_id)]}
            first["channel_values"] = {"__start__": said}
            second["channel_values"] = {"messages": [HumanMessage("hello", id="m1")]}
            stored = old.put(place, first, {"source": "input", "step": -1}, {})
            old.put_writes(stored, [("messages", [HumanMessage("hello", id=late)])], str(uuid4()))
            old.put(stored, second, {"source": "loop", "step": 0}, {})
    import_checkpoints(source, target, verify=True)
    assert_imported(source, target)
    assert found(target, "SELECT text FROM item") == [("hello",)] * 4


def test_a_thread_was_written_when_its_checkpoints_say_or_else_when_it_was_imported(
    tmp_path: Path, target: str
) -> None:
    source = tmp_path / "old.sqlite"
    senseless = (
        *("1969-12-31T00:00:00+00:00", "9999-12-31T23:59:59+00:00"),
        *("2024-05-17T09:30:15", "yesterday"),
    )
    stored = {}
    with sqlite_saver(source) as old:
        for ts in (*senseless, "2024-05-17T09:30:15+00:00"):
            place = {"configurable": {"thread_id": ts, "checkpoint_ns": ""}}
            stored[ts] = old.put(place, empty_checkpoint() | {"ts": ts}, {"step": 0}, {})  # type: ignore[arg-type]
    began = datetime.now(UTC)
    import_checkpoints(source, target)
    with DeltaSaver.open(target) as new:
        sensible = Threads(new).get("2024-05-17T09:30:15+00:00").created_at
        assert sensible == datetime(2024, 5, 17, 9, 30, 15, tzinfo=UTC)
        for ts in senseless:
            new.put(stored[ts], empty_checkpoint(), {"step": 1}, {})
            waited = Threads(new).get(ts).created_at - began + timedelta(milliseconds=1)
            assert timedelta() <= waited < timedelta(minutes=5), ts


def test_what_is_imported_is_compressed_where_that_is_asked_for(
    source: Path, durable: Backend, tmp_path: Path
) -> None:
    plain, small, opened = (durable.new_url(tmp_path) for _ in range(3))
    import_checkpoints(source, plain)
    import_checkpoints(source, small, compress=True)
    with sqlite_saver(source) as old, DeltaSaver.open(small) as new:
        assert_moved(old, new)
    with DeltaSaver.open(opened) as saver:
        with pytest.raises(InvalidInput, match="open it with compress=True"):
            import_checkpoints(source, saver, compress=True)
        assert Threads(saver).list() == []
    with DeltaSaver.open(opened, compress=True) as saver:
        import_checkpoints(source, saver)
    [[long]], [[short]], [[also]] = (
        found(url, "SELECT sum(length(body)) FROM value") for url in (plain, small, opened)
    )
    assert long > short == also


def test_only_the_threads_asked_for_are_imported(source: Path, target: str, tmp_path: Path) -> None:
    for threads in ("a", "", "nobody"):
        with pytest.raises(InvalidInput, match=r"not one text: pass threads=\[thread_id\]"):
            import_checkpoints(source, target, threads=threads)
    report = import_checkpoints(source, target, threads=["c", "c"])
    assert report.threads == 1
    assert found(target, "SELECT id FROM thread") == [("c",)]
    with sqlite_saver(source) as old, DeltaSaver.open(target) as new:
        expected = forms_of(old.list(config("c")))
        assert everything(new) == expected
    with pytest.raises(ThreadNotFound, match="thread 'nobody' not found"):
        import_checkpoints(source, target, threads=["a", "nobody"])
    with sqlite_saver(tmp_path / "empty.sqlite"):
        pass
    report = import_checkpoints(tmp_path / "empty.sqlite", target, verify=True)
    assert (report.threads, report.checkpoints, report.verified) == (0, 0, 0)
    assert found(target, "SELECT id FROM thread") == [("c",)]


def test_what_the_source_got_since_is_brought_in_and_what_is_there_is_skipped(
    source: Path, target: str
) -> None:
    first = import_checkpoints(source, target)
    before = found(target, "SELECT count(*) FROM item")
    again = import_checkpoints(source, target, verify=True)
    assert (again.checkpoints, again.writes, again.skipped) == (0, 0, first.checkpoints)
    assert again.bytes_after == first.bytes_after
    assert found(target, "SELECT count(*) FROM item") == before
    with sqlite_saver(source) as old:
        graph = build(old)
        graph.invoke(Command(resume="later"), config("a"))
        graph.invoke({"messages": [("user", "more")]}, config("a"))
        graph.invoke({"messages": [("user", "new thread")]}, config("d"))
    import_checkpoints(source, target, verify=True)
    assert_imported(source, target)
    with DeltaSaver.open(target) as new:  # what went on in the target stays as it is
        build(new).invoke(Command(resume="here"), config("b"))
        there = everything(new)
        import_checkpoints(source, new)
        assert everything(new) == there


def test_rows_of_an_older_release_are_read(source: Path, target: str) -> None:
    old_message = {
        "lc": 1,
        "type": "constructor",
        "id": ["langchain", "schema", "messages", "HumanMessage"],
        "kwargs": {"content": "old"},
    }
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("ALTER TABLE writes DROP COLUMN task_path")
        [(checkpoint_id, blob)] = connection.execute(
            "SELECT checkpoint_id, checkpoint FROM checkpoints WHERE thread_id = 'c' AND"
            " checkpoint_ns = '' ORDER BY checkpoint_id LIMIT 1"
        ).fetchall()
        checkpoint = ormsgpack.unpackb(blob, ext_hook=lambda code, data: None)
        checkpoint["channel_values"] = {"messages": [old_message], "value": [1, True]}
        checkpoint["pending_sends"] = []
        metadata = '{"step": -1, "note": "nul \\u0000 in it"}'
        connection.execute(
            "UPDATE checkpoints SET type = 'json', checkpoint = ?, metadata = ? WHERE"
            " checkpoint_id = ?",
            (json.dumps(checkpoint).encode(), metadata, checkpoint_id),
        )
        connection.commit()
    import_checkpoints(source, target, verify=True)
    assert "task_path" not in [name for _, name, *_ in rows(source, "PRAGMA table_info(writes)")]
    assert_imported(source, target)


def test_a_source_that_its_application_has_open_is_read_with_its_log_and_nothing_changes_in_it(
    tmp_path: Path, target: str
) -> None:
    folder = tmp_path / "source"
    folder.mkdir()
    source = folder / "old file?#.sqlite"
    with sqlite_saver(source) as saver:
        live(saver)
        before = stamps(folder)
        assert before[f"{source.name}-wal"][1]
        import_checkpoints(source, target, verify=True)
        assert stamps(folder) == before
        build(saver).invoke({"messages": [("user", "still there")]}, config("z"))
    copied = tmp_path / "copied"
    copied.mkdir()
    for name, (_, content) in before.items():  # as people copy databases: without the log's index
        (copied / name).write_bytes(content)
    before = stamps(copied)
    import_checkpoints(copied / source.name, str(tmp_path / "second.db"), verify=True)
    assert stamps(copied) == before
    assert {path.name for path in copied.iterdir()} == {source.name, f"{source.name}-wal"}


def test_serializers_of_ones_own_are_used(tmp_path: Path, target: str) -> None:
    source = tmp_path / "old.sqlite"
    with sqlite_saver(source) as old:
        old.serde = ReversingSerializer()
        live(old)
        expected = everything(old)
    with pytest.raises(InvalidInput, match=r"'msgpack\+reversed'\): pass it as serde="):
        import_checkpoints(source, target)
    with DeltaSaver.open(target, serde=ReversingSerializer()) as new:
        import_checkpoints(source, new, serde=ReversingSerializer(), verify=True)
    with DeltaSaver.open(target, serde=ReversingSerializer()) as new:
        assert everything(new) == expected
    assert {text for (text,) in found(target, "SELECT text FROM item")} == {None}


@settings(max_examples=settings().max_examples * 2)
@given(program=programs)
def test_random_programs_are_moved_whole_and_once(
    program: list[Act], durable: Backend, folder: Path
) -> None:
    path, new = folder / f"{uuid4().hex}.sqlite", durable.new_url(folder)
    with sqlite_saver(path) as old:
        player = Player(old)
        for act in program:
            run_without_loop(player.play(act))
    import_checkpoints(path, new, verify=True)
    assert_imported(path, new)
    again = import_checkpoints(path, new)
    assert (again.checkpoints, again.writes) == (0, 0)


# -- again and again -------------------------------------------------------------------------------


def test_a_question_that_was_answered_and_asked_again_since_is_brought_in(
    tmp_path: Path, target: str
) -> None:
    def ask(state: State) -> dict[str, Any]:
        return {"results": [interrupt("first?"), interrupt("second?"), interrupt("third?")]}

    builder = StateGraph(State).add_node("ask", ask).add_edge(START, "ask")
    source = tmp_path / "old.sqlite"
    with sqlite_saver(source) as old:
        graph = builder.compile(checkpointer=old)
        graph.invoke({"results": []}, config())
        for answer in ("one", "two", "three"):
            import_checkpoints(source, target, verify=True)
            graph.invoke(Command(resume=answer), config())
    import_checkpoints(source, target, verify=True)
    with DeltaSaver.open(target) as new:
        assert builder.compile(checkpointer=new).get_state(config()).values["results"] == [
            "one",
            "two",
            "three",
        ]
    assert_imported(
        source, target, unused=("unused",)
    )  # the questions and answers that others have replaced


# -- the source stays as it is ---------------------------------------------------------------------


def stamps(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        path.name: (path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.iterdir()
        if not path.name.endswith("-shm")
    }


def test_a_source_that_is_opened_meanwhile_ends_the_import(source: Path, target: str) -> None:
    def write(at: ImportProgress) -> None:
        connection = sqlite3.connect(source)
        connection.execute("UPDATE checkpoints SET parent_checkpoint_id = NULL")
        connection.commit()
        opened.append(connection)

    opened: list[sqlite3.Connection] = []
    with pytest.raises(StorageError, match="run the import again"):
        import_checkpoints(source, target, progress=write)
    for connection in opened:
        connection.close()


# -- classes ---------------------------------------------------------------------------------------

MODULE = "application_of_another_process"


@pytest.fixture
def foreign() -> Iterator[Any]:
    """A class in a module that is there only while the source is written, and that tells when it is
    used.
    """
    module = types.ModuleType(MODULE)
    made: list[Any] = []

    @dataclasses.dataclass
    class Ticket:
        number: int
        said: list[Any]

        def __post_init__(self) -> None:
            made.append(self)

    Ticket.__module__, Ticket.__qualname__ = MODULE, "Ticket"
    module.Ticket, module.made = Ticket, made  # type: ignore[attr-defined]
    sys.modules[MODULE] = module
    yield module
    sys.modules.pop(MODULE, None)


class AnyState(TypedDict, total=False):
    value: Any
    messages: Annotated[list[AnyMessage], add_messages]


def test_a_class_that_is_not_there_is_not_needed_and_not_lost(
    foreign: Any, tmp_path: Path, target: str, caplog: pytest.LogCaptureFixture
) -> None:
    source = tmp_path / "old.sqlite"
    builder = (
        StateGraph(AnyState)
        .add_node("say", lambda state: {"messages": [("ai", "yes")]})
        .add_edge(START, "say")
    )
    with sqlite_saver(source) as old:
        ticket = foreign.Ticket(7, [HumanMessage("words in a ticket " * 9, id="m1")])
        builder.compile(checkpointer=old).invoke(
            {"value": ticket, "messages": [("user", "a ticket")]}, config()
        )
    del sys.modules[MODULE]
    with caplog.at_level(logging.WARNING):
        import_checkpoints(source, target, verify=True)
    assert caplog.records == []
    sys.modules[MODULE] = foreign
    made = len(foreign.made)
    import_checkpoints(source, str(tmp_path / "second.db"), verify=True)
    assert len(foreign.made) == made, "a class of the source ran"
    with DeltaSaver.open(target) as new:
        values = builder.compile(checkpointer=new).get_state(config()).values
    assert type(values["value"]) is foreign.Ticket
    assert_imported(source, target)
    said = [text for (text,) in found(target, "SELECT text FROM item")]
    assert said.count("words in a ticket " * 9) == 1


class ReversingSerializer(JsonPlusSerializer):
    """A serializer of an application's own."""

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = super().dumps_typed(obj)
        return f"{kind}+reversed", bytes(data)[::-1]

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        kind, packed = data
        return super().loads_typed((kind.removesuffix("+reversed"), packed[::-1]))


def test_a_class_that_must_be_built_and_may_not_be_is_an_error_that_says_how(
    foreign: Any, tmp_path: Path, target: str
) -> None:
    source = tmp_path / "old.sqlite"
    builder = StateGraph(AnyState).add_node("say", lambda state: {}).add_edge(START, "say")
    with sqlite_saver(source) as old:
        builder.compile(checkpointer=old).invoke({"value": foreign.Ticket(7, [])}, config())
    del sys.modules[MODULE]
    with DeltaSaver.open(target, serde=ReversingSerializer()) as new:
        with pytest.raises(
            InvalidInput, match=rf"{MODULE}\.Ticket.*DataSerializer\(allow="
        ) as caught:
            import_checkpoints(source, new)
        assert "checkpoint" in str(caught.value)
        sys.modules[MODULE] = foreign
        import_checkpoints(
            source, new, serde=DataSerializer(allow=[(MODULE, "Ticket")]), verify=True
        )
        assert builder.compile(checkpointer=new).get_state(config()).values[
            "value"
        ] == foreign.Ticket(7, [])


# -- what is wrong ---------------------------------------------------------------------------------


def test_a_source_that_is_none_is_one_clear_error_and_makes_no_target(
    source: Path, tmp_path: Path
) -> None:
    target = tmp_path / "new.db"
    with DeltaSaver.open(str(tmp_path / "own.db")):
        pass
    (tmp_path / "text").write_text("no database at all, but long enough to be one")
    (tmp_path / "nothing").touch()
    with closing(sqlite3.connect(tmp_path / "other.db")) as connection:
        connection.execute(
            "CREATE TABLE checkpoints (thread_id, thread_ts, parent_ts, checkpoint, metadata)"
        )
        connection.commit()
    refused: list[tuple[str, type[Exception], str]] = [
        ("missing", StorageUnavailable, "not found: pass the path"),
        ("own.db", InvalidInput, "a langmem_ext database already"),
        ("text", NotADatabase, "not a SQLite database"),
        ("nothing", NotADatabase, "no table 'checkpoints'"),
        ("other.db", NotADatabase, "no column 'checkpoint_id'"),
        (".", StorageUnavailable, "not found: pass the path"),
    ]
    for name, error, words in refused:
        with pytest.raises(error, match=words):
            import_checkpoints(tmp_path / name, str(target))
    with pytest.raises(InvalidInput, match="the same file"):
        import_checkpoints(source, f"sqlite:///{source}")
    with pytest.raises(StorageUnavailable):
        import_checkpoints(source, str(tmp_path / "no" / "folder.db"))
    assert not target.exists()


def damage(source: Path) -> tuple[str, str]:
    """Cut a checkpoint and a write short; their ids."""
    with closing(sqlite3.connect(source)) as connection:
        ids = connection.execute(
            "SELECT checkpoint_id FROM checkpoints WHERE thread_id = 'b' AND checkpoint_ns = ''"
            " ORDER BY checkpoint_id"
        ).fetchall()
        cut, written = ids[1][0], ids[2][0]
        connection.execute(
            "UPDATE checkpoints SET checkpoint = substr(checkpoint, 1, 100) WHERE"
            " checkpoint_id = ?",
            (cut,),
        )
        connection.execute(
            "UPDATE writes SET value = x'c1' WHERE checkpoint_id = ? AND idx = 0", (written,)
        )
        connection.commit()
    return cut, written


def test_a_damaged_row_is_named_and_left_out_where_that_is_asked_for(
    source: Path, target: str
) -> None:
    cut, written = damage(source)
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("UPDATE checkpoints SET thread_id = '' WHERE thread_id = 'c'")
        connection.commit()
    with pytest.raises(DamagedRow, match="a thread id is empty"):
        import_checkpoints(source, target)
    with pytest.raises(
        DamagedRow, match=rf"checkpoint {cut} of thread 'b' does not decode.*skip_damaged"
    ):
        import_checkpoints(source, target, threads=["b"])
    report = import_checkpoints(source, target, skip_damaged=True, verify=True)
    told = "\n".join(report.damaged)
    assert cut in told
    assert written in told
    assert "thread ''" in told
    with closing(sqlite3.connect(source)) as connection:
        connection.execute("DELETE FROM checkpoints WHERE thread_id = ''")
        connection.execute("DELETE FROM writes WHERE thread_id = 'c'")
        connection.execute("DELETE FROM checkpoints WHERE checkpoint_id = ?", (cut,))
        connection.execute("DELETE FROM writes WHERE checkpoint_id = ? AND idx = 0", (written,))
        connection.commit()
    with sqlite_saver(source) as old, DeltaSaver.open(target) as new:
        assert_moved(old, new)


async def test_the_async_twin_does_the_same_and_progress_comes_to_all_that_there_is(
    source: Path, target: str
) -> None:
    seen: list[ImportProgress] = []
    report = await aimport_checkpoints(source, target, verify=True, progress=seen.append)
    moved = [at for at in seen if not at.verifying]
    assert [at.done for at in moved] == sorted(at.done for at in moved)
    assert moved[-1].done == moved[-1].total == seen[-1].done == report.checkpoints
    assert report.verified == report.checkpoints
    assert {at.thread for at in seen} == {"a", "b", "c"}
    assert_imported(source, target)


def test_a_comparison_finds_what_is_not_the_same(source: Path, target: str) -> None:
    import_checkpoints(source, target)
    with DeltaSaver.open(target) as new:
        spoil(new, "UPDATE item SET text = 'never said' WHERE text = 'hello 0'")
        reseal_rows(new)
    with pytest.raises(
        StorageError,
        match=r"of thread 'a' \(namespace ''\) is not as in the source: its checkpoint differs",
    ):
        import_checkpoints(source, target, verify=True)


# -- owners, progress, async -----------------------------------------------------------------------


def test_a_saver_that_is_bound_to_an_owner_imports_for_him(source: Path, target: str) -> None:
    with DeltaSaver.open(target) as new:
        import_checkpoints(source, new.for_owner("u1"), verify=True)
        with pytest.raises(ThreadNotFound):
            import_checkpoints(source, new.for_owner("u2"))
        assert len(everything(new.for_owner("u1"))) == len(everything(new))
        assert everything(new.for_owner("u2")) == {}
    assert found(target, "SELECT DISTINCT owner FROM thread") == [("u1",)]


async def test_a_cancelled_import_ends_with_its_step_and_can_be_run_again(
    source: Path, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langmem_ext.maintenance.moving.BATCH", 2)
    halfway = asyncio.Event()
    task = asyncio.create_task(
        aimport_checkpoints(source, target, progress=lambda at: halfway.set())
    )
    await halfway.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert found(target, "SELECT count(*) FROM checkpoint")[0][0] > 0
    await aimport_checkpoints(source, target, verify=True)
    assert_imported(source, target)
