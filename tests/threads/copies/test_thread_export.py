"""Promises of exporting and importing: a thread comes back as it was, to the bit, into any
database, under a new id or its own.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import timedelta
from operator import attrgetter
from pathlib import Path
from typing import Any

import pytest
from acts import Act, programs
from carried import body_of, bring_in, exported, ids_of, rows_of
from clock import EARLY, Clock
from comparison import assert_same
from hypothesis import given, settings
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command
from move_checks import assert_moved
from patience import PATIENCE_S
from player import Player
from prune_reference import assert_sound, rows
from savers import BACKENDS, COMPRESSED, Backend, Calls, Mode, Shelf, open_saver, run_without_loop
from search_reference import spoil
from test_copy_thread import asking, begin, config, told

from langmem_ext import (
    DamagedRow,
    DeltaSaver,
    InvalidInput,
    MessageLog,
    StorageError,
    ThreadChatMessageHistory,
    ThreadNotFound,
    Threads,
)

KINDS = (*BACKENDS, *(kind for kind in COMPRESSED if kind.survives_close))

WHOLE = ("file", "postgres")
"""The sample is whole for these; what is in memory or compressed is exported by the same
statements."""

LONG = (
    "It goes on about this for so long that it is worth being compressed, and so on, and so forth,"
    " as people do. " * 3
)


@pytest.fixture
def saver(url: str) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(url, synchronous="normal") as saver:
        yield saver


@pytest.fixture
def other(durable: Backend, tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(durable.new_url(tmp_path), synchronous="normal") as saver:
        yield saver


def say(saver: DeltaSaver, text: str, thread: str = "t", **notes: Any) -> None:
    ThreadChatMessageHistory(thread, saver).add_messages(
        [HumanMessage(text, additional_kwargs={"langmem_ext": notes} if notes else {})]
    )


# -- the way there and back ------------------------------------------------------------------------


async def there_and_back(program: list[Act], backend: Backend, mode: Mode, folder: Path) -> None:
    """Play a program, export what it leaves, import it elsewhere, and compare every row and
    everything that can be read.
    """
    shelf, target = (
        Shelf(backend, mode, folder),
        open_saver(backend.new_url(folder), compress=backend.compress),
    )
    try:
        player = Player(shelf.saver, mode)
        for act in program:
            await player.play(act)
        await assert_comes_back(shelf.saver, target, mode)
    finally:
        target.close()
        await shelf.close()


async def assert_comes_back(source: Any, target: Any, mode: Mode) -> None:
    """Export all of a database, import it into an empty one, and compare."""
    export = exported(source)
    done = await Calls(mode).call(
        Threads(target), "import_from", io.StringIO(export), keep_ids=True
    )
    assert list(done.ids) == ids_of(target) == ids_of(source)
    for thread in done.ids:
        assert_same(rows_of(source, thread), rows_of(target, thread), f"rows of {thread}")
    assert_moved(source, target)
    assert_sound(target)
    assert body_of(exported(target)) == body_of(export)


@pytest.mark.parametrize("backend", KINDS, ids=lambda backend: backend.name)
def test_whatever_is_stored_comes_back_to_the_bit(
    backend: Backend, mode: Mode, folder: Path
) -> None:
    few = settings().derandomize and backend.name not in WHOLE

    @settings(max_examples=1 + settings().max_examples // 3 if few else settings().max_examples)
    @given(programs)
    def compare(program: list[Act]) -> None:
        work = there_and_back(program, backend, mode, folder)
        asyncio.run(work) if mode == "async" else run_without_loop(work)

    compare()


async def test_a_thread_goes_on_where_it_was_whatever_its_id_is_now(
    saver: DeltaSaver, other: DeltaSaver, mode: Mode
) -> None:
    begin(saver)
    before = told(saver, "t")
    calls, buffer = Calls(mode), io.BytesIO()
    done = await calls.call(Threads(saver), "export_to", buffer)
    assert (done.threads, done.messages, done.checkpoints) == (
        1,
        len(rows_of(saver, "t")["item"]),
        len(before),
    )
    buffer.seek(0)
    imported = await calls.call(Threads(other), "import_from", buffer)
    [(origin, thread)] = imported.ids.items()
    assert origin == "t" != thread
    assert (imported.skipped, imported.messages, imported.checkpoints) == (
        (),
        done.messages,
        done.checkpoints,
    )
    assert told(other, thread) == before == told(saver, "t")
    assert (
        asking(other).get_state(config(thread)).interrupts
        == asking(saver).get_state(config()).interrupts
        != ()
    )
    answered = [
        asking(one).invoke(Command(resume="go on"), config(name))["messages"]
        for one, name in ((saver, "t"), (other, thread))
    ]
    assert [one.text for one in answered[0]] == [one.text for one in answered[1]]
    assert_sound(other)


def test_what_somebody_said_of_a_thread_comes_with_it(saver: DeltaSaver, other: DeltaSaver) -> None:
    threads = Threads(saver)
    say(saver, "one", "t", tool="chat")
    threads.rename("t", "Ünïcode \U0001f642")
    threads.tag("t", "vip", "late")
    threads.note("t", {"a": [1, {"b": 1.5}], "ü": "x"})
    threads.fork("t", to="f")
    threads.archive("t")
    ids = bring_in(other, exported(saver)).ids
    fields = attrgetter(
        *("title", "status", "created_at", "updated_at"),
        *("messages", "stored_messages", "tokens", "tool", "tags", "metadata"),
    )
    for name, to in ids.items():
        assert fields(Threads(other).get(to)) == fields(threads.get(name))
    assert Threads(other).get(ids["f"]).forked_from == ids["t"]


def test_metadata_that_names_the_thread_names_it_by_its_new_id(
    saver: DeltaSaver, other: DeltaSaver
) -> None:
    asking(saver).invoke({"messages": [HumanMessage("hello")]}, config())
    head = saver.get_tuple(config())
    assert head is not None
    named: Any = {"thread_id": "t", "about": "t", "n": 1.0}
    saver.put({"configurable": {"thread_id": "t", "checkpoint_ns": ""}}, head.checkpoint, named, {})
    export = exported(saver)
    [to] = bring_in(other, export).ids.values()

    def named_in(thread: str) -> list[tuple[Any, Any]]:
        return [
            (found["thread_id"], found["about"])
            for one in other.list(config(thread))
            if "about" in (found := dict(one.metadata))
        ]

    assert named_in(to) == [(to, "t")]
    bring_in(other, export, keep_ids=True)
    assert named_in("t") == [("t", "t")]
    assert_sound(other)


def test_the_readable_part_of_a_message_is_there(saver: DeltaSaver) -> None:
    call = {"name": "find", "args": {"about": ["ä", 1.5, None]}, "id": "call-1"}
    asked, called = (
        HumanMessage("Wo ist \U0001f642?", name="Zoë", id="m1"),
        AIMessage("", tool_calls=[call]),
    )
    ThreadChatMessageHistory("t", saver).add_messages(
        [asked, called, ToolMessage("there", tool_call_id="call-1")]
    )
    said = [
        line
        for line in map(json.loads, exported(saver).splitlines())
        if line.get("kind") == "message"
    ]
    assert [line["role"] for line in said] == ["human", "ai", "tool"]
    assert (said[0]["text"], said[0]["name"], said[0]["id"]) == ("Wo ist \U0001f642?", "Zoë", "m1")
    assert said[1]["tool_calls"] == [{**call, "type": "tool_call"}]
    assert (said[2]["text"], said[2]["tool_call_id"]) == ("there", "call-1")


def test_what_is_imported_is_found_where_there_is_a_search_index(
    saver: DeltaSaver, other: DeltaSaver
) -> None:
    say(saver, "a lantern for the cellar")
    say(saver, "my pin is 4711", sensitive=["pin"], spans=[[10, 14]])
    say(other, "something else", "u")
    export = exported(saver)
    threads = Threads(other)
    [early] = bring_in(other, export).ids.values()
    threads.enable_search()
    [late] = bring_in(other, export).ids.values()
    say(other, "another lantern", late)
    assert {hit.thread_id for hit in threads.search("cellar")} == {early, late}
    assert {hit.thread_id for hit in threads.search("lantern another")} == {late}
    assert list(threads.search("4711")) == []
    assert_sound(other)


# -- which threads, and whose ----------------------------------------------------------------------


async def test_threads_are_named_or_wanted_and_archived_ones_belong_to_all(
    saver: DeltaSaver, mode: Mode
) -> None:
    for name in ("a", "b", "c"):
        say(saver, name, name)
    threads, calls = Threads(saver), Calls(mode)
    threads.tag("b", "vip")
    threads.archive("c")

    async def names(*ids: str, **wanted: Any) -> list[str]:
        lines = [
            json.loads(line)
            for line in await calls.collect(threads, "export_lines", *ids, **wanted)
        ]
        assert lines[-1] == {
            "kind": "total",
            "threads": len([line for line in lines if line.get("kind") == "end"]),
        }
        return [line["id"] for line in lines if line.get("kind") == "thread"]

    assert sorted(await names()) == ["a", "b", "c"]
    assert await names("c", "a", "c") == ["c", "a"]
    assert await names(tag="vip") == ["b"]
    assert sorted(await names(status="active")) == ["a", "b"]
    assert await names(tag="none") == []
    for ids, wanted in ((("a",), {"tag": "vip"}), ((), {"colour": "red"}), ((), {"format": "xml"})):
        with pytest.raises(InvalidInput):
            await names(*ids, **wanted)
    with pytest.raises(ThreadNotFound):
        await names("a", "gone")


def test_another_owners_thread_is_not_exported_and_imported_ones_are_the_importers(
    saver: DeltaSaver, other: DeltaSaver
) -> None:
    say(saver.for_owner("alice"), "mine", "a")
    say(saver.for_owner("bob"), "his", "b")
    alices = Threads(saver.for_owner("alice"))
    assert [
        json.loads(line)["id"] for line in alices.export_lines() if '"kind":"thread"' in line
    ] == ["a"]
    with pytest.raises(ThreadNotFound):
        list(alices.export_lines("b"))
    export = exported(saver)

    def owners() -> list[tuple[Any, ...]]:
        return list(rows(other, "SELECT id, owner FROM thread ORDER BY number"))

    carol = Threads(other, owner="carol")
    carol.import_from(io.StringIO(export), keep_ids=True)
    assert owners() == [("a", "carol"), ("b", "carol")]
    with pytest.raises(InvalidInput, match="bound"):
        carol.import_from(io.StringIO(export), keep_owners=True)
    with pytest.raises(ThreadNotFound):
        Threads(other, owner="dave").import_from(io.StringIO(export), keep_ids=True)
    Threads(other).delete("a", "b")
    bring_in(other, export, keep_ids=True)
    assert owners() == [("a", None), ("b", None)]
    Threads(other).delete("a", "b")
    bring_in(other, export, keep_ids=True, keep_owners=True)
    assert owners() == [("a", "alice"), ("b", "bob")]


def test_with_kept_ids_what_is_there_already_stays_as_it_is(
    saver: DeltaSaver, other: DeltaSaver
) -> None:
    for name in ("a", "b"):
        say(saver, f"from {name}", name)
    say(other, "something else", "a")
    before = rows_of(other, "a")
    done = bring_in(other, exported(saver), keep_ids=True)
    assert (dict(done.ids), done.skipped, done.messages) == ({"b": "b"}, ("a",), 1)
    assert rows_of(other, "a") == before
    again = bring_in(other, exported(saver), keep_ids=True)
    assert (dict(again.ids), again.skipped, again.messages) == ({}, ("a", "b"), 0)


def test_a_thread_of_another_serializer_is_carried_unread(
    other: DeltaSaver, durable: Backend, tmp_path: Path
) -> None:
    class Sealed(JsonPlusSerializer):
        """Stands for an encrypting serializer: what it writes says nothing."""

        def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
            kind, body = super().dumps_typed(obj)
            return f"sealed-{kind}", bytes(255 - byte for byte in body)

        def loads_typed(self, data: tuple[str, bytes]) -> Any:
            return super().loads_typed(
                (data[0].removeprefix("sealed-"), bytes(255 - byte for byte in data[1]))
            )

    with DeltaSaver.open(durable.new_url(tmp_path), serde=Sealed()) as sealed:
        begin(sealed)
        export = exported(sealed)
        assert "hello" not in export
        bring_in(other, export, keep_ids=True)
        assert_same(rows_of(sealed, "t"), rows_of(other, "t"), "rows")
        assert told(DeltaSaver(other.log, serde=Sealed()), "t") == told(sealed, "t")
        assert "hello " * 29 in "".join(Threads(sealed).export_lines("t", format="markdown"))
        assert "hello" not in "".join(Threads(other).export_lines("t", format="markdown"))


# -- while others work -----------------------------------------------------------------------------


def test_no_lock_is_held_between_two_lines_and_a_thread_is_as_it_was_when_it_began(
    saver: DeltaSaver, other: DeltaSaver, url: str
) -> None:
    count = 800
    ThreadChatMessageHistory("t", saver).add_messages(
        [HumanMessage(f"message {number}") for number in range(count)]
    )
    lines = Threads(saver).export_lines("t")
    told_so_far = [next(lines) for _ in range(count // 3)]
    say(saver, "something later")
    Threads(saver).archive("t")
    with DeltaSaver.open(url) as another:
        say(another, "from another connection")
    bring_in(other, "".join([*told_so_far, *lines]), keep_ids=True)
    thread = Threads(other).get("t")
    assert (thread.messages, thread.status) == (count, "active")
    assert Threads(saver).get("t").messages == count + 2


def test_a_damaged_row_ends_an_export_and_leaves_no_file(
    saver: DeltaSaver, durable: Backend, tmp_path: Path
) -> None:
    say(saver, "one")
    (folder := tmp_path / "folder").mkdir()
    spoil(saver, "UPDATE item SET text = 'two'")
    for format in ("jsonl", "markdown"):
        with pytest.raises(DamagedRow, match="message 0"):
            Threads(saver).export_to(folder / "out", format=format)  # type: ignore[arg-type]
    if durable.name == "file":  # PostgreSQL's texts are texts
        spoil(saver, "UPDATE item SET text = CAST(x'ff' AS TEXT)")
        with pytest.raises(StorageError):
            Threads(saver).export_to(folder / "out")
    assert list(folder.iterdir()) == []


# -- places ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["threads.jsonl", "threads.jsonl.gz"])
async def test_a_path_has_all_of_an_export_or_what_it_had_before(
    saver: DeltaSaver,
    other: DeltaSaver,
    tmp_path: Path,
    mode: Mode,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    say(saver, LONG)
    folder = tmp_path / "folder"
    folder.mkdir()
    path, calls = folder / name, Calls(mode)
    path.write_text("what was there before")
    with pytest.raises(ThreadNotFound):
        await calls.call(Threads(saver), "export_to", path, "t", "gone")
    assert path.read_text() == "what was there before"
    await calls.call(Threads(saver), "export_to", str(path))
    assert path.stat().st_mode & 0o777 == 0o600
    assert [one.name for one in folder.iterdir()] == [name]
    raw = path.read_bytes()
    text = gzip.decompress(raw).decode() if name.endswith(".gz") else raw.decode()
    assert body_of(text) == body_of(exported(saver))
    assert (await calls.call(Threads(other), "import_from", path)).messages == 1


@pytest.mark.process
def test_what_a_killed_export_leaves_is_removed_by_a_later_one_to_the_same_path(
    saver: DeltaSaver, url: str, tmp_path: Path
) -> None:
    say(saver, "hello")
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "a[b].jsonl"
    killed = (
        "import os, signal, sys; from langmem_ext import Threads; os.fsync = lambda file:"
        " os.kill(os.getpid(), signal.SIGKILL); Threads(sys.argv[1]).export_to(sys.argv[2])"
    )
    assert (
        subprocess.run([sys.executable, "-c", killed, url, str(path)], check=False).returncode
        == -signal.SIGKILL
    )
    [left] = folder.iterdir()
    assert "hello" in left.read_text()
    others = [folder / f".{name}.0123456789ab" for name in ("ab.jsonl", "a[b].jsonl.gz")]
    for other in others:
        other.touch()
        os.utime(other, (0, 0))
    Threads(saver).export_to(path)
    assert set(folder.iterdir()) == {path, left, *others}, "it may still be written"
    os.utime(left, (0, 0))
    Threads(saver).export_to(path)
    assert set(folder.iterdir()) == {path, *others}


def test_a_pipe_and_a_link_stay_what_they_are(
    saver: DeltaSaver, other: DeltaSaver, tmp_path: Path
) -> None:
    say(saver, "one")
    pipe, link, target = tmp_path / "pipe", tmp_path / "link", tmp_path / "target"
    os.mkfifo(pipe)
    link.symlink_to(target)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_bytes()), daemon=True)
    reader.start()
    Threads(saver).export_to(pipe)
    reader.join(PATIENCE_S)
    assert pipe.is_fifo()
    Threads(saver).export_to(link)
    assert link.is_symlink()
    assert not target.is_symlink()
    assert read[0].splitlines()[1:] == target.read_bytes().splitlines()[1:]
    assert Threads(other).import_from(f"file://{link}").messages == 1


def test_an_export_takes_no_databases_place(
    saver: DeltaSaver, durable: Backend, url: str, tmp_path: Path
) -> None:
    say(saver, "one")
    of_the_database = (
        ((url, "database"), (f"file://{url}", "database"), (f"{url}-wal", "database"))
        if durable.name == "file"
        else ()
    )
    for place, why in (
        *of_the_database,
        (tmp_path, "directory"),
        (tmp_path / "no" / "where", "written"),
        ("", "path"),
        ("a\0b", "path"),
    ):
        with pytest.raises(InvalidInput, match=why):
            Threads(saver).export_to(place)
    assert [message.content for message in Threads(saver).messages("t")] == ["one"]
    with pytest.raises(InvalidInput, match="cannot be read"):
        Threads(saver).import_from(tmp_path / "missing")
    with pytest.raises(InvalidInput, match="path"):
        Threads(saver).import_from("a\0b")
    for nothing in (5, object()):
        with pytest.raises(InvalidInput):
            Threads(saver).export_to(nothing)  # type: ignore[arg-type]
        with pytest.raises(InvalidInput):
            Threads(saver).import_from(nothing)  # type: ignore[arg-type]


async def test_a_url_is_written_and_read_with_fsspec(
    saver: DeltaSaver, other: DeltaSaver, durable: Backend, mode: Mode
) -> None:
    memory = pytest.importorskip("fsspec").filesystem("memory")
    say(saver, "one")
    calls, url = Calls(mode), f"memory://folder-{durable.name}-{mode}/threads.jsonl.gz"
    with pytest.raises(ThreadNotFound):
        await calls.call(Threads(saver), "export_to", url, "t", "gone")
    assert not memory.exists(url)
    await calls.call(Threads(saver), "export_to", url)
    assert memory.cat(url)[:2] == b"\x1f\x8b"
    assert (await calls.call(Threads(other), "import_from", url)).messages == 1
    with pytest.raises(InvalidInput, match="cannot be read"):
        await calls.call(Threads(other), "import_from", "memory://nothing/here.jsonl")
    with pytest.raises(InvalidInput, match="cannot be opened"):
        await calls.call(Threads(saver), "export_to", "nonsense://user:secret@here/x")


async def test_an_error_about_a_url_shows_no_secret(saver: DeltaSaver, mode: Mode) -> None:
    pytest.importorskip("fsspec")
    for place in (
        "memory://user:SECRET@nothing/here.jsonl?sig=SECRET&v=1",
        "nosuch://host/here?databaseUrl=SECRET",
    ):
        with pytest.raises(InvalidInput) as refused:
            await Calls(mode).call(Threads(saver), "import_from", place)
        assert "SECRET" not in str(refused.value)


def test_a_missing_fsspec_names_the_pip_command(
    saver: DeltaSaver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    for call in (Threads(saver).export_to, Threads(saver).import_from):
        with pytest.raises(ImportError, match=r"pip install 'langmem-ext\[fsspec\]'"):
            call("memory://here")  # type: ignore[operator]


def test_standard_output_and_input_are_called_by_a_dash(
    saver: DeltaSaver,
    other: DeltaSaver,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    say(saver, "Grüße")
    Threads(saver).export_to("-")
    text = capfd.readouterr().out
    assert body_of(text) == body_of(exported(saver))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert Threads(other).import_from("-").messages == 1


def test_a_database_that_is_only_read_is_exported(
    saver: DeltaSaver, durable: Backend, url: str
) -> None:
    say(saver, "one")
    log = MessageLog.open(
        f"sqlite:///{url}?mode=ro" if durable.name == "file" else f"{url}&mode=ro"
    )
    assert body_of("".join(Threads(log).export_lines())) == body_of(exported(saver))
    for_people = "".join(Threads(log).export_lines(format="markdown"))
    assert for_people == "".join(Threads(saver).export_lines(format="markdown"))
    log.close()


def test_a_graph_whose_list_has_gaps_is_told_in_its_order(saver: DeltaSaver) -> None:
    def answer(state: MessagesState) -> Any:
        return {"messages": [AIMessage("B", id="b"), HumanMessage("A again", id="a")]}

    graph = (
        StateGraph(MessagesState)
        .add_node("answer", answer)
        .add_edge(START, "answer")
        .compile(checkpointer=saver)
    )
    graph.invoke({"messages": [HumanMessage("A", id="a"), HumanMessage("C", id="c")]}, config())
    told_text = "".join(Threads(saver).export_lines("t", format="markdown"))
    assert [line for line in told_text.splitlines() if line.startswith("> ")] == [
        "> A again",
        "> C",
        "> B",
    ]


def test_each_message_is_told_with_the_time_at_which_it_was_stored(
    saver: DeltaSaver, clock: Clock
) -> None:
    say(saver, "one")
    clock.wait(days=1)
    say(saver, "two")
    copy = Threads(saver).fork("t").id
    for thread in ("t", copy):
        text = "".join(Threads(saver).export_lines(thread, format="markdown"))
        assert re.findall(r"^## User, (.*) UTC", text, re.MULTILINE) == [
            f"{EARLY + timedelta(days=day):%Y-%m-%d %H:%M:%S}" for day in (0, 1)
        ]
