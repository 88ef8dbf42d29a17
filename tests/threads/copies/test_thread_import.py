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
from zlib import crc32

import ormsgpack
import pytest
from carried import bring_in, changed, exported, ids_of, rows_of, sealed, threads_in, written
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


def packed(value: Any) -> str:
    return b64encode(ormsgpack.packb(value, option=ormsgpack.OPT_NON_STR_KEYS)).decode()


FORGED: list[tuple[str, dict[str, Any]]] = [
    ("thread", {"id": ""}),
    ("thread", {"id": 5}),
    ("thread", {"id": "a\0b"}),
    ("thread", {"id": "u"}),
    ("thread", {"title": "two\nlines"}),
    ("thread", {"title": "x" * 2000}),
    ("thread", {"status": "gone"}),
    ("thread", {"tags": ["b", "a\n"]}),
    ("thread", {"tags": "vip"}),
    ("thread", {"metadata": [1]}),
    ("thread", {"metadata": {"a": "x" * 70_000}}),
    ("thread", {"created_at": "yesterday"}),
    ("thread", {"created_at": "2026-01-01T00:00:00.000"}),
    ("thread", {"updated_at": 5}),
    ("thread", {"tokens": -1}),
    ("thread", {"messages": 1.0}),
    ("thread", {"next": [1, 2, 3]}),
    ("thread", {"next": [1, 2, 3, 1 << 33]}),
    ("thread", {"next": [1, 2, 3, 1 << 31]}),
    ("thread", {"next": None}),
    ("thread", {"titled_by": 1 << 31}),
    ("thread", {"owner": ""}),
    ("thread", {"colour": "red"}),
    ("word", {"number": -1}),
    ("word", {"number": 1 << 31}),
    ("word", {"body": "no base64!"}),
    ("word", {"body": packed(1) + "\n"}),
    ("message", {"number": True}),
    ("message", {"role": "nobody"}),
    ("message", {"role": 5}),
    ("message", {"rest": packed([1, 2])}),
    ("message", {"rest": "wQ=="}),
    ("message", {"shape": 99}),
    ("message", {"text": 5}),
    ("message", {"created_at": "9999-99-99T00:00:00Z"}),
    ("message", {"tokens": None}),
    ("message", {"id": "a\0b"}),
    ("value", {"body": packed(5)}),
    ("value", {"number": 77}),
    ("checkpoint", {"body": packed([])}),
    ("checkpoint", {"label": 99}),
    ("checkpoint", {"shape": 0, "label": 0}),
    ("checkpoint", {"step": "first"}),
    ("checkpoint", {"step": 1 << 70}),
    ("checkpoint", {"namespace": 5}),
    ("checkpoint", {"id": "00000000-0000-0000-0000-000000000000", "parent": ""}),
    ("write", {"body": packed([[1]])}),
    ("write", {"shape": 99}),
    ("write", {"task": None}),
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


VALUES: list[Any] = [
    *(
        None,
        True,
        0,
        1,
        -1,
        3,
        2**31,
        2**32,
        2**63,
        2**70,
        1.5,
        "",
        "a",
        "\ud800",
        "0" * 200,
        [],
        [1],
        {},
        {"a": 1},
    ),
    *("wQ==", "gA==", "kA=="),
]


def mutated(export: str, chance: random.Random) -> str:
    """An export with one thing changed, and mostly with the right checksum again."""
    lines = export.splitlines()
    at = chance.randrange(len(lines))
    line = json.loads(lines[at])
    match chance.randrange(6):
        case 0:
            text = lines[at]
            where = chance.randrange(len(text))
            lines[at] = (
                text[:where]
                + chance.choice('"{}[],:0a\\ \0é')
                + text[where + chance.randrange(2) :]
            )
            return "".join(f"{one}\n" for one in lines)
        case 1:
            del lines[at]
        case 2:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        case 3:
            line[chance.choice(sorted(line))] = chance.choice(VALUES)
            lines[at] = written(line)
        case _:
            # The bytes of a row, which only the doctor can tell apart.
            of_bytes = [
                number
                for number, text in enumerate(lines)
                if '"body":' in text or '"rest":' in text
            ]
            at = chance.choice(of_bytes)
            line = json.loads(lines[at])
            name = "body" if "body" in line else "rest"
            raw = bytearray(b64decode(line[name]))
            for _ in range(chance.randrange(1, 3)):
                raw[chance.randrange(len(raw))] = chance.randrange(256)
            lines[at] = written({**line, name: b64encode(raw).decode()})
    try:
        return sealed(lines)
    except ValueError:
        return "".join(f"{one}\n" for one in lines)


async def test_random_changes_are_refused_without_a_trace_or_give_a_sound_thread(
    export: str, backend: Backend, mode: Mode, tmp_path: Path
) -> None:
    seed = (
        random.SystemRandom().randrange(1 << 32)
        if SOAK
        else crc32(f"{backend.name} {mode}".encode())
    )
    chance, taken = random.Random(seed), 0
    with DeltaSaver.open(backend.new_url(tmp_path), synchronous="normal") as saver:
        for number in range(ROUNDS):
            forged = mutated(export, chance)
            there = set(export.splitlines())  # it has new ids each time: a seed does not repeat it
            note = f"round {number}: {[one for one in forged.splitlines() if one not in there]}"
            try:
                done = await Calls(mode).call(
                    Threads(saver),
                    "import_from",
                    io.BytesIO(forged.encode("utf-8", "surrogatepass")),
                )
                taken += 1
                assert_sound(saver)
                for thread in done.ids.values():
                    assert_reads(saver, thread)
            except MalformedExport:
                pass
            except Exception as error:
                error.add_note(note)
                raise
            else:
                Threads(saver).delete(*done.ids.values())
            assert [
                one for table in TABLES for one in rows(saver, f"SELECT '{table}' FROM {table}")
            ] == [], note
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
