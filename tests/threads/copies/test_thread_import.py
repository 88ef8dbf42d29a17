"""Promises of an import: what is no export, or damaged, or too large, or forged, leaves no trace;
nothing that it names is built.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import random
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from itertools import product
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
import yaml
from carried import bring_in, changed, exported, ids_of, rows_of, sealed, threads_in
from failing_database import Faults, failing_log
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.graph import START, StateGraph, add_messages
from langgraph.types import Command, interrupt
from prune_reference import assert_sound, rows
from savers import Backend, Calls, Mode
from typing_extensions import Annotated, TypedDict  # noqa: UP035 - as graphs have it on 3.11

from langmem_ext import (
    DeltaSaver,
    InvalidInput,
    MalformedExport,
    StorageError,
    ThreadChatMessageHistory,
    Threads,
)

SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
ROUNDS = 1000 if SOAK else 40


class State(TypedDict):
    messages: Annotated[list[Any], add_messages]
    notes: dict[str, Any]


def config(thread: str = "t") -> Any:
    return {"configurable": {"thread_id": thread}}


def build(saver: DeltaSaver) -> Any:
    """Rich messages, a large dict, a question that waits."""

    def work(state: State) -> dict[str, Any]:
        turn = len(state["messages"])
        call = {"name": "find", "args": {"n": turn, "deep": [{"a": 1.5}]}, "id": f"call-{turn}"}
        blocks: Any = [
            {"type": "text", "text": f"turn {turn} "},
            {"type": "image_url", "image_url": {"url": "x.png"}},
        ]
        said = [
            AIMessage(blocks, tool_calls=[call], response_metadata={"m": "n" * 40}),
            ToolMessage("found", tool_call_id=f"call-{turn}"),
        ]
        return {
            "messages": said,
            "notes": {f"key {number}": f"note {number} of {turn} " * 12 for number in range(12)},
        }

    def ask(state: State) -> dict[str, Any]:
        return {"messages": [HumanMessage(interrupt("more?"))]}

    builder = (
        StateGraph(State)
        .add_node("work", work)
        .add_node("ask", ask)
        .add_edge(START, "work")
        .add_edge("work", "ask")
    )
    return builder.compile(checkpointer=saver)


@pytest.fixture(scope="module")
def export() -> str:
    """An export of two threads."""
    with DeltaSaver.open(":memory:") as saver:
        graph = build(saver)
        for thread in ("t", "u"):
            graph.invoke(
                {"messages": [HumanMessage(f"hello from {thread}")], "notes": {}}, config(thread)
            )
            graph.invoke(Command(resume="yes"), config(thread))
        Threads(saver).note("t", {"a": [1, 2.5, None]})
        Threads(saver).tag("t", "vip")
        return exported(saver)


@pytest.fixture
def target(url: str) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(url, synchronous="normal") as saver:
        yield saver


def content_of(saver: DeltaSaver) -> list[Any]:
    """A database's bytes; on PostgreSQL, all rows that it has."""
    path = getattr(saver.log.driver, "path", None)
    if path is not None:
        return [Path(path + end).read_bytes() for end in ("", "-wal") if Path(path + end).exists()]
    return [
        sorted(rows(saver, f"SELECT CAST({table} AS text) FROM {table}"))
        for table in (*TABLES, "setting")
    ]


def assert_refused(
    target: DeltaSaver, export: str | bytes, match: str, **options: Any
) -> MalformedExport:
    """It is refused, and the database is as it was: to the byte, where it is a file."""
    before = content_of(target)
    source = io.StringIO(export) if isinstance(export, str) else io.BytesIO(export)
    with pytest.raises(MalformedExport, match=match) as raised:
        Threads(target).import_from(source, **options)
    assert content_of(target) == before
    assert str(raised.value).startswith(f"line {raised.value.line}: ")
    return raised.value


# -- what is no export -----------------------------------------------------------------------------


TABLES = ("item", "value", "checkpoint", "pending_write", "word", "namespace", "thread")

HEADER = '{"format":"langmem-ext/threads","version":1,"created_at":"x"}'

NO_EXPORTS: list[tuple[str | bytes, str]] = [
    ("", "line 1: the file ends too early"),
    ("\n", "line 1"),
    ("SQLite format 3\0", "line 1: this is not an export of threads; nothing was imported"),
    (b"\xff\xfe", "line 1: this is not an export of threads; nothing was imported"),
    ("\ud800", "line 1: it is not text: this is not an export of threads"),
    ("[]", "line 1: it is not an object"),
    ("5", "line 1"),
    ("[" * 100_000, "line 1"),
    ('{"format":"another","version":1}', "not an export of threads"),
    ('{"format":"langmem-ext/threads","version":2,"created_at":"x"}', "a newer release"),
    (HEADER[:-1] + ',"more":1}', "not written by an export"),
    (HEADER.replace(',"', ', "', 1), "not written by an export"),
    (HEADER, "line 2: the file ends too early"),
    (HEADER.encode() + b"\n\x80\n", "line 2: it is not JSON: the file was changed or damaged"),
    (HEADER + '\n{"kind":"total","threads":1}', "line 2: the file has 0"),
    (HEADER + '\n{"kind":"word","number":0,"body":""}', "outside of any thread"),
    (HEADER + '\n{"kind":"end"}', "outside of any thread"),
    (HEADER.replace("1", "NaN"), "NaN"),
    (HEADER.replace("1", "9" * 5000), "line 1"),
    (HEADER.replace("1", "[" + "[]," * 2_000_000 + "[]]"), "characters besides its texts"),
    (gzip.compress(HEADER.encode(), mtime=0), r"line 1: .* a compressed one, whose name ends in"),
]


def test_what_is_no_export_is_refused(target: DeltaSaver) -> None:
    for text, match in NO_EXPORTS:
        assert_refused(target, text, match)


def test_a_line_that_is_missing_doubled_or_elsewhere_is_noticed(
    target: DeltaSaver, export: str
) -> None:
    lines = export.splitlines(keepends=True)
    for at in range(len(lines)):
        assert_refused(target, "".join(lines[:at]), f"line {at + 1}: the file ends too early")
        assert_refused(target, "".join(lines[: at + 1])[:-2], "line")
        if at:
            assert_refused(target, "".join(lines[:at] + lines[at + 1 :]), "line")
            assert_refused(target, "".join(lines[:at] + [lines[at]] + lines[at:]), "line")
    assert_refused(target, export + lines[-1], "data after the last line")
    assert_refused(target, "".join([*lines[:-1], *lines[1:]]), "there is twice|appears twice")
    assert_refused(target, export.replace("vip", "VIP"), "checksum of the thread does not match")
    changed_letter = export.replace("hello from u", "hello from v", 1)
    error = assert_refused(
        target, changed_letter, "file was changed or damaged|not written by an export"
    )
    assert error.line > 1


def other_call(line: dict[str, Any]) -> None:
    """Shows another tool call than the one that is made."""
    line["tool_calls"][0]["name"] = "something harmless"


def test_lines_may_end_as_on_windows(target: DeltaSaver, export: str) -> None:
    done = Threads(target).import_from(
        io.BytesIO(export.replace("\n", "\r\n").encode()), keep_ids=True
    )
    assert list(done.ids) == ["t", "u"]
    assert threads_in(exported(target)) == threads_in(export)


# -- what is too large -----------------------------------------------------------------------------


def test_what_is_larger_than_allowed_is_refused(target: DeltaSaver, export: str) -> None:
    size = len(export.encode())
    assert_refused(target, export, "raise max_bytes", max_bytes=size - 1)
    longest = max(len(line.encode()) for line in export.splitlines())
    assert_refused(target, export, "raise max_line", max_line=longest - 1)
    for limits in ({"max_bytes": 0}, {"max_line": True}, {"max_bytes": "all"}):
        with pytest.raises(InvalidInput):
            bring_in(target, export, **limits)
    assert len(bring_in(target, export, max_bytes=size, max_line=longest).ids) == 2


def test_a_file_that_expands_to_more_than_is_allowed_is_not_expanded(
    target: DeltaSaver, tmp_path: Path, export: str
) -> None:
    bomb = tmp_path / "bomb.jsonl.gz"
    with gzip.open(bomb, "wb") as file:
        for _ in range(64):
            file.write(b" " * (1 << 20))
    assert bomb.stat().st_size < 1 << 17
    with pytest.raises(MalformedExport, match="max_line"):
        Threads(target).import_from(bomb, max_line=1 << 16)
    with gzip.open(bomb, "wb") as file:
        file.write(export.partition("\n")[0].encode() + b"\n" * (1 << 20))
    with pytest.raises(MalformedExport, match="line 2"):
        Threads(target).import_from(bomb)
    whole = gzip.compress(export.encode())
    for damaged in (whole[:-20], whole[:100] + b"\0" + whole[101:], b"no gzip at all"):
        bomb.write_bytes(damaged)
        with pytest.raises(MalformedExport, match="the file is damaged|line"):
            Threads(target).import_from(bomb)
    assert ids_of(target) == []


# -- what somebody has written who knows the format ------------------------------------------------


def also(**fields: Any) -> Callable[[dict[str, Any]], None]:
    """A change that sets fields of a line; None takes one away."""

    def change(line: dict[str, Any]) -> None:
        for name, value in fields.items():
            line.pop(name, None) if value is None else line.__setitem__(name, value)

    return change


FORGED: list[tuple[str, dict[str, Any]]] = [
    *yaml.safe_load(Path(__file__).with_name("forged.yaml").read_text("utf-8")),
    ("thread", {"title": "x" * 2000}),
    ("thread", {"metadata": {"a": "x" * 70_000}}),
]


def test_a_forged_line_is_refused(target: DeltaSaver, export: str) -> None:
    same = sealed(export.splitlines())
    for kind, fields in FORGED:
        other = changed(export, kind, also(**fields))
        if other != same:
            error = assert_refused(target, other, "line")
            assert 1 < error.line < len(export.splitlines()), (kind, fields)
    which = next(at for at, line in enumerate(kinds_of(export, "message")) if "tool_calls" in line)
    assert_refused(
        target, changed(export, "message", other_call, which), "not written by an export"
    )


def kinds_of(export: str, kind: str) -> list[dict[str, Any]]:
    return [line for line in map(json.loads, export.splitlines()) if line.get("kind") == kind]


def test_what_follows_from_other_rows_is_counted_and_not_believed(
    target: DeltaSaver, export: str
) -> None:
    forged = changed(
        export,
        "thread",
        also(tokens=1 << 40, messages=3, stored_messages=0, waiting_for="everything"),
    )
    forged = changed(forged, "message", also(tokens=12345))
    bring_in(target, forged, keep_ids=True)
    assert threads_in(exported(target)) == threads_in(export)
    assert_sound(target)


class Trap:
    """Something that must never be built."""

    sprung = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        Trap.sprung += 1


def test_nothing_is_built_that_a_file_names(
    export: str, target: DeltaSaver, durable: Backend
) -> None:
    Trap.sprung = 0
    names = [
        (__name__, "Trap", ["echo"], "__call__"),
        ("os", "system", "exit 1"),
        ("os", "getenv", "HOME"),
    ]
    # Those from 8 on mean nothing to anybody.
    for code, payload in product(range(128 if durable.name == "file" else 9), names):
        value = ormsgpack.Ext(code, ormsgpack.packb(payload))
        body = b64encode(ormsgpack.packb({f"k{number}": value for number in range(3)})).decode()
        forged = changed(export, "value", also(body=body))
        with suppress(MalformedExport):
            Threads(target).delete(*bring_in(target, forged).ids.values())
        assert ids_of(target) == []
    assert Trap.sprung == 0


def assert_reads(saver: DeltaSaver, thread: str) -> None:
    """All that can be read of a thread is read; errors are this package's."""
    for found in saver.list(config(thread)):
        repr(found)
    newest = saver.get_tuple(config(thread))
    repr(newest)
    repr(Threads(saver).get(thread))
    with outcome_of_reading(newest):
        repr(ThreadChatMessageHistory(thread, saver).messages)
    with suppress(InvalidInput) if has_lost_its_list(newest) else nullcontext():
        "".join(Threads(saver).export_lines(thread, format="markdown"))


def has_lost_its_list(newest: CheckpointTuple | None) -> bool:
    """A change gave the list to another channel: what is left looks like a `DeltaChannel`."""
    return (
        newest is not None
        and bool(newest.checkpoint["channel_versions"].get("messages"))
        and "messages" not in newest.checkpoint["channel_values"]
    )


def outcome_of_reading(newest: CheckpointTuple | None) -> AbstractContextManager[Any]:
    """A list that is lost is refused, and not taken for an empty one."""
    if has_lost_its_list(newest):
        return pytest.raises(InvalidInput, match="as a DeltaChannel: read and change it through")
    return nullcontext()


async def test_random_bytes_in_a_row_are_refused_without_a_trace_or_give_a_sound_thread(
    export: str, target: DeltaSaver, mode: Mode
) -> None:
    """The checksum is right, so the bytes are all that can tell."""
    chance, taken = random.Random(None if SOAK else 7), 0

    def spoil(line: dict[str, Any]) -> None:
        name = "body" if "body" in line else "rest"
        raw = bytearray(b64decode(line[name]))
        for _ in range(chance.randrange(1, 3)):
            raw[chance.randrange(len(raw))] = chance.randrange(256)
        line[name] = b64encode(raw).decode()

    rows_of_bytes = [
        (kind, at)
        for kind in ("word", "message", "value", "checkpoint", "write")
        for at, line in enumerate(kinds_of(export, kind))
        if line.keys() & {"body", "rest"}
    ]
    for _ in range(ROUNDS):
        kind, at = chance.choice(rows_of_bytes)
        forged = changed(export, kind, spoil, at).encode()
        try:
            done = await Calls(mode).call(Threads(target), "import_from", io.BytesIO(forged))
        except MalformedExport:
            assert ids_of(target) == [], forged
            continue
        taken += 1
        assert_sound(target)
        for thread in done.ids.values():
            assert_reads(target, thread)
        Threads(target).delete(*done.ids.values())
    assert 0 < taken < ROUNDS


@pytest.mark.parametrize(("together", "whole"), [(1, {0, 1}), (64, {0})])
def test_an_import_that_fails_while_it_stores_has_stored_whole_threads(
    url: str, export: str, monkeypatch: pytest.MonkeyPatch, together: int, whole: set[int]
) -> None:
    monkeypatch.setattr("langmem_ext.maintenance.moving.TOGETHER", together)
    faults, stored = Faults(), set()
    with DeltaSaver(failing_log(url, faults, monkeypatch)) as target:
        for k in range(1000):
            faults.begin(k)
            try:
                bring_in(target, export, keep_ids=True)
            except StorageError:
                faults.end()
                there = ids_of(target)
                stored.add(len(there))
                assert there in ([], ["t"], ["u"])
                for thread in there:
                    assert (
                        len(rows_of(target, thread)["checkpoint"])
                        == len(kinds_of(export, "checkpoint")) // 2
                    )
                Threads(target).delete("t", "u")
            else:
                break
        faults.end()
        assert stored == whole
        assert sorted(ids_of(target)) == ["t", "u"]
        assert_sound(target)
