"""Promise: a damaged database gives what is right or a clear error: no other exception, no hang, no
other thread's words, no code run.

Of files: their pages and bits, and columns of SQLite, which hold values of any type. On PostgreSQL:
tests/postgres/failures/test_damage.py.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import ormsgpack
import pytest
from forged_rows import ID, REFERENCES, assert_named, reseal
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.graph import START, StateGraph, add_messages
from langgraph.types import Command, interrupt

from langmem_ext import (
    DamagedRow,
    DeltaSaver,
    LangmemExtError,
    Report,
    StorageError,
    StorageUnavailable,
    ThreadChatMessageHistory,
    examine,
)
from langmem_ext.log.message_log import existing

OPTIONS = ormsgpack.OPT_NON_STR_KEYS
SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
THREADS = ("alpha", "beta", "gamma")


class State(TypedDict):
    messages: Annotated[list[AnyMessage], add_messages]
    notes: dict[str, str]
    waiting_for_param: str | None


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


def build(saver: DeltaSaver, name: str) -> Any:
    """A graph whose every word tells the thread that it belongs to."""

    def work(state: State) -> dict[str, Any]:
        turn = len(state["messages"])
        call = {
            "name": f"{name}_tool",
            "args": {"q": f"{name} {turn}"},
            "id": f"{name}-call-{turn}",
        }
        blocks: Any = [
            {"type": "text", "text": f"{name} says {turn} " * 4},
            {"type": "image_url", "image_url": {"url": f"{name}.png"}},
        ]
        return {
            "messages": [
                AIMessage(
                    blocks,
                    tool_calls=[call],
                    usage_metadata={"input_tokens": 3, "output_tokens": 4, "total_tokens": 7},
                ),
                ToolMessage(f"{name} found {turn}", tool_call_id=f"{name}-call-{turn}"),
            ],
            "notes": {
                f"{name}-{number}": f"{name} note {number} of turn {turn}" for number in range(12)
            },
        }

    def ask(state: State) -> dict[str, Any]:
        said = interrupt(f"{name}, is that so?")
        return {"messages": [SystemMessage(f"{name} {said}")], "waiting_for_param": None}

    builder = (
        StateGraph(State)
        .add_node("work", work)
        .add_node("ask", ask)
        .add_edge(START, "work")
        .add_edge("work", "ask")
    )
    return builder.compile(checkpointer=saver)


def make(path: Path) -> None:
    """Three conversations of several turns, each left at a question, in one file without a
    write-ahead log.
    """
    with DeltaSaver.from_conn_string(str(path)) as saver:
        for name in THREADS:
            graph = build(saver, name)
            for turn in range(4):
                text = (
                    f"{name} asks {turn}, and goes on about it for so long that it has a row of"
                    " its own"
                )
                graph.invoke({"messages": [HumanMessage(text)]}, config(name))
                if turn < 3:
                    graph.invoke(Command(resume=f"{name} yes {turn}"), config(name))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("whole") / "memory.db"
    make(path)
    assert not Path(f"{path}-wal").exists()
    return path


@pytest.fixture(scope="module")
def expected(whole: Path) -> dict[str, Any]:
    return dict(look(str(whole)))


def look(url: str) -> Iterator[tuple[str, Any]]:
    """All that can be read of a database, by thread; an error of this package where it cannot
    be.
    """
    ways: dict[str, Callable[[DeltaSaver, str], Any]] = {
        "get": lambda saver, name: saver.get_tuple(config(name)),
        "list": lambda saver, name: list(saver.list(config(name))),
        "history": lambda saver, name: ThreadChatMessageHistory(name, saver).messages,
        "delta": lambda saver, name: saver.get_delta_channel_history(
            config=config(name), channels=["messages"]
        ),
    }
    try:
        saver = DeltaSaver.open(url)
    except LangmemExtError as error:
        yield "open", error
        return
    with saver:
        for name in THREADS:
            for way, read in ways.items():
                found: Any
                try:
                    found = read(saver, name)
                    repr(found)  # a list's states are built when they are looked at
                except LangmemExtError as error:
                    found = error
                yield f"{name} {way}", found
        try:
            yield "all", len(list(saver.list(None)))
        except LangmemExtError as error:
            yield "all", error


def check(url: str, expected: dict[str, Any]) -> tuple[int, int, list[str]]:
    """Look at a database; how many looks gave exactly what was stored, how many a clear error, and
    which something else.
    """
    right, refused, wrong = 0, 0, []
    for what, found in look(url):
        if isinstance(found, LangmemExtError):
            assert str(found)
            refused += 1
            continue
        if found == expected[what]:
            right += 1
            continue
        wrong.append(what)
        words = repr(found)
        assert not [
            name for name in THREADS if name in words and name not in what and what != "all"
        ], f"{what} shows another thread's words"
    return right, refused, wrong


def hides_a_row(path: Path) -> bool:
    """Whether the doctor says that a row is not where it should be: what a search does not find,
    no check of what is read can tell.

    SQLite itself notices it where the order of keys is broken; in a key of a pending write that has
    kept its place, the row's checksum does.
    """
    return any(
        finding.kind == "file" or (finding.kind == "write" and finding.severity == "damaged")
        for finding in examine(str(path)).findings
    )


# -- truncated and flipped -------------------------------------------------------------------------


def test_a_truncated_file_gives_what_is_left_or_a_clear_error(
    whole: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    data = whole.read_bytes()
    step = 512 if SOAK else 4096
    lengths = sorted(
        {
            1,
            15,
            16,
            99,
            100,
            101,
            511,
            512,
            4095,
            4097,
            len(data) - 1,
            *range(step, len(data), step),
        }
    )
    path = tmp_path / "memory.db"
    refusals = 0
    for length in lengths:
        path.write_bytes(data[:length])
        for what, found in look(str(path)):
            assert isinstance(found, LangmemExtError) or found == expected[what], (
                f"{what} at {length} bytes"
            )
            refusals += isinstance(found, LangmemExtError)
        remove(path)
    assert refusals >= len(lengths)


def remove(path: Path) -> None:
    for end in ("", "-wal", "-shm", "-journal", "-lock"):
        Path(f"{path}{end}").unlink(missing_ok=True)


def flipped(data: bytes, place: int) -> bytes:
    changed = bytearray(data)
    changed[place // 8] ^= 1 << place % 8
    return bytes(changed)


@pytest.mark.parametrize(
    "part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 4))]
)
def test_a_flipped_bit_changes_nothing_that_is_read_or_is_a_clear_error(
    part: int, whole: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    data = whole.read_bytes()
    seed = part if not SOAK else random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    path = tmp_path / "memory.db"
    right = refused = hidden = 0
    flips = 250 if SOAK else 12
    for _ in range(flips):
        place = chance.randrange(len(data) * 8)
        path.write_bytes(flipped(data, place))
        good, bad, wrong = check(str(path), expected)
        right, refused, hidden = right + good, refused + bad, hidden + bool(wrong)
        assert not wrong or hides_a_row(path), f"{wrong} after a flip of bit {place}"
        examine_and_repair(path)
        remove(path)
        path.write_bytes(flipped(data, chance.randrange(len(data) * 8)))
        write_everywhere(path)
        remove(path)
    assert right > refused
    assert hidden <= max(2, flips // 30)  # 6 of 1,000, measured: a few flips may meet two


def test_an_index_that_leads_to_another_threads_row_shows_nothing_of_it(
    whole: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    data = whole.read_bytes()
    entry = b"beta\x02"  # in the index of ids: the id, and the row's number
    assert data.count(entry) == 1

    path.write_bytes(data.replace(entry, b"beta\x03"))
    _, _, wrong = check(str(path), expected)

    assert {what.split()[0] for what in wrong} <= {"beta"}
    assert hides_a_row(path)
    with DeltaSaver.open(str(path)) as saver, pytest.raises(StorageError, match="doctor"):
        saver.put_writes(
            {"configurable": {**config("beta")["configurable"], "checkpoint_id": "1"}},
            [("messages", HumanMessage("one more"))],
            "task",
        )


def keys_of_writes(path: Path) -> list[bytes]:
    """How the keys of pending writes stand in the file: the checkpoint's id, and the task's."""
    with closing(sqlite3.connect(path)) as connection:
        return [
            row[0] + row[1]
            for row in connection.execute(
                "SELECT checkpoint, task FROM pending_write ORDER BY random()"
            )
        ]


@pytest.mark.slow
def test_the_doctor_names_pending_writes_in_whose_key_a_bit_has_flipped(
    whole: Path, tmp_path: Path
) -> None:
    data = whole.read_bytes()
    path = tmp_path / "memory.db"
    keys = keys_of_writes(whole)
    chance = random.Random(1)
    for key in keys if SOAK else keys[:12]:
        start = data.index(key) * 8
        for place in chance.sample(range(start, start + 8 * len(key)), 3):
            path.write_bytes(flipped(data, place))
            assert not examine(str(path)).ok, f"bit {place}"
            remove(path)


def examine_and_repair(path: Path) -> None:
    """The doctor says something, and what it has put right it does not find again."""
    with suppress(LangmemExtError):
        report = examine(str(path))
        if not report.ok and "file" not in {finding.kind for finding in report.findings}:
            examine(str(path), fix=True)
            assert [finding for finding in examine(str(path)).findings if finding.fixable] == []


def write_everywhere(path: Path) -> None:
    """Writing to a damaged database is done or refused."""
    try:
        saver = DeltaSaver.open(str(path))
    except LangmemExtError:
        return
    with saver:
        for name in THREADS:
            for write in (
                lambda name=name: saver.put_writes(
                    at(name, ID), [("messages", [HumanMessage(f"{name} " * 30)])], "task"
                ),
                lambda name=name: saver.put(
                    at(name, None),
                    checkpoint({"messages": [HumanMessage(name)]}),
                    {"step": 1},
                    {"messages": "1"},
                ),
                lambda name=name: ThreadChatMessageHistory(name, saver).add_messages(
                    [HumanMessage(name, id=name)]
                ),
                lambda name=name: saver.delete_thread(name),
            ):
                with suppress(LangmemExtError):
                    write()  # type: ignore[no-untyped-call]  # a lambda


def at(thread: str, checkpoint_id: str | None) -> Any:
    return {
        "configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": checkpoint_id}
    }


def checkpoint(values: dict[str, Any]) -> Any:
    versions = dict.fromkeys(values, "1")
    return {
        "v": 4,
        "id": ID,
        "ts": "now",
        "channel_values": values,
        "channel_versions": versions,
        "versions_seen": {},
    }


# -- changed columns -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def varied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A thread with a row of every kind: metadata of messages, blocks, a value of its own, a
    namespace, pending writes.
    """
    path = tmp_path_factory.mktemp("varied") / "memory.db"
    blocks: Any = [
        {"type": "text", "text": "some words"},
        {"type": "image_url", "image_url": {"url": "x"}},
    ]
    said = [
        HumanMessage("hello", id="a", name="Ann"),
        AIMessage(
            blocks,
            id="b",
            response_metadata={"model": "one", "finish": "stop", "more": list(range(9))},
        ),
        ToolMessage("found", id="c", tool_call_id="call"),
    ]
    with DeltaSaver.from_conn_string(str(path)) as saver:
        for namespace in ("", "child:1"):
            place: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": namespace}}
            at_first = saver.put(
                place,
                checkpoint({"messages": said, "big": ["x"] * 50}),
                {"step": 1},
                {"messages": "1", "big": "1"},
            )
            saver.put_writes(
                at_first, [("messages", [HumanMessage("more")]), ("big", ["y"] * 50)], "task"
            )
            second = {**checkpoint({"messages": said[:2]}), "id": f"{ID[:-1]}2"}
            saver.put(at_first, second, {"step": 2}, {"messages": "2"})
    return path


def other(value: Any) -> Any:
    """A value of the same kind that differs a little."""
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"\x01"
    if isinstance(value, str):
        return chr(ord(value[0]) ^ 1) + value[1:] if value else "x"
    return 1 if value is None else value + 1


DERIVED = {("item", "tokens")}
"""Columns that nobody reads who restores a checkpoint; the doctor compares them."""


@pytest.mark.parametrize(
    "table", ["item", "value", "checkpoint", "pending_write", "word", "namespace"]
)
def test_every_column_of_every_row_that_is_changed_is_noticed(
    table: str, varied: Path, tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(varied, path)
    with closing(sqlite3.connect(path)) as connection:
        columns = [
            (name, primary)
            for _, name, _, _, _, primary in connection.execute(f"PRAGMA table_info({table})")
        ]
        where = " AND ".join(f"{name} = ?" for name, primary in columns if primary)
        rows = connection.execute(f"SELECT * FROM {table}").fetchall()
        assert rows
        for row in rows:
            key = [value for value, (_, primary) in zip(row, columns, strict=True) if primary]
            for value, (name, primary) in zip(row, columns, strict=True):
                if primary:
                    continue
                connection.execute(
                    f"UPDATE {table} SET {name} = ? WHERE {where}", (other(value), *key)
                )
                connection.commit()
                assert [one for one in examine(str(path)).findings if one.severity != "note"], (
                    name,
                    key,
                )
                if (table, name) not in DERIVED:
                    with pytest.raises(DamagedRow), DeltaSaver.from_conn_string(str(path)) as saver:
                        repr(list(saver.list(None)))
                connection.execute(f"UPDATE {table} SET {name} = ? WHERE {where}", (value, *key))
                connection.commit()
    assert examine(str(path)).ok


def test_a_checkpoint_that_vanishes_is_noticed_by_the_one_that_followed_it(
    varied: Path, tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    shutil.copy(varied, path)
    change(path, "DELETE FROM checkpoint WHERE namespace = 0 AND step = 1", sealed=False)
    with pytest.raises(DamagedRow, match=f"{ID[:-1]}2"):
        read(path, "t")
    assert {name for finding in examine(str(path)).findings for name in finding.checkpoints} == {
        f"{ID[:-1]}2"
    }


def test_the_doctor_names_a_checkpoint_whose_id_has_changed(whole: Path, tmp_path: Path) -> None:
    data = whole.read_bytes()
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(whole)) as connection:
        ids = [
            raw
            for (raw,) in connection.execute(
                "SELECT id FROM checkpoint WHERE thread = 2 ORDER BY id"
            )
        ]
    with DeltaSaver.from_conn_string(str(whole)) as saver:
        names = [
            found.config["configurable"]["checkpoint_id"] for found in saver.list(config("beta"))
        ][::-1]
    for raw, name in list(zip(ids, names, strict=True))[::3]:
        # Pending writes name it too; of the ids in the file, one stands in the checkpoint's row.
        starts = [start for start in range(len(data)) if data.startswith(raw, start)]
        missing = 0
        for start in starts:
            path.write_bytes(flipped(data, start * 8 + 127))
            found: Any = None
            with DeltaSaver.from_conn_string(str(path)) as saver, suppress(DamagedRow):
                found = saver.get_tuple(at("beta", name))
            if found is None:
                assert not examine(str(path)).ok
                missing += 1
            remove(path)
        assert missing >= 1


def test_a_row_that_comes_to_stand_in_another_thread_is_no_row_of_it(forged: Path) -> None:
    change(forged, "DELETE FROM item WHERE key = (2 << 32) + 1", sealed=False)
    change(forged, "UPDATE item SET key = (2 << 32) + 1 WHERE key = (1 << 32) + 1", sealed=False)
    with pytest.raises(DamagedRow, match="message 1 of thread number 2"):
        read(forged, "whole")


def test_a_thread_with_a_damaged_message_goes_on_from_before_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    said = [HumanMessage(f"{number}", id=f"m{number}") for number in range(4)]
    with DeltaSaver.from_conn_string(str(path)) as saver:
        first = saver.put(
            at("t", None), checkpoint({"messages": said[:2]}), {"step": 1}, {"messages": "1"}
        )
        second = saver.put(
            first,
            {**checkpoint({"messages": said}), "id": f"{ID[:-1]}2"},
            {"step": 2},
            {"messages": "2"},
        )
    change(path, "UPDATE item SET text = 'never said' WHERE text = '3'", sealed=False)
    with DeltaSaver.from_conn_string(str(path)) as saver:
        with pytest.raises(DamagedRow, match="message 3"):
            saver.get_tuple(second)
        forked = {
            **checkpoint({"messages": [*said[:2], HumanMessage("instead", id="new")]}),
            "id": f"{ID[:-1]}3",
        }
        third = saver.put(first, forked, {"step": 2}, {"messages": "2"})
        found = saver.get_tuple(third)
        assert found is not None
        assert [message.content for message in found.checkpoint["channel_values"]["messages"]] == [
            "0",
            "1",
            "instead",
        ]


# -- forged rows -----------------------------------------------------------------------------------


@pytest.fixture
def forged(tmp_path: Path) -> Path:
    """Two threads of one checkpoint each, whose rows a test changes: `forged` has the number 1,
    `whole` 2.
    """
    path = tmp_path / "memory.db"
    with DeltaSaver.from_conn_string(str(path)) as saver:
        for name in ("forged", "whole"):
            messages = [
                HumanMessage(f"{name} {number}", id=f"{name}{number}") for number in range(5)
            ]
            saver.put(
                at(name, None),
                checkpoint({"messages": messages, "big": [name] * 50}),
                {"step": 1},
                {"messages": "1", "big": "1"},
            )
    return path


def change(path: Path, statement: str, *values: Any, sealed: bool = True) -> None:
    """Change rows; `sealed`: with a check that matches, as one who forges writes them."""
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(statement, values).rowcount
        if sealed:
            reseal(connection)
        connection.commit()


def read(path: Path, thread: str) -> Any:
    with DeltaSaver.from_conn_string(str(path)) as saver:
        found = saver.get_tuple(config(thread))
        return None if found is None else found.checkpoint["channel_values"]


def examined(path: Path) -> Report:
    return examine(str(path))


def forge_header(path: Path, channel: int, entry: Any) -> None:
    """Put another reference where one of the forged thread's checkpoint stands."""
    with closing(sqlite3.connect(path)) as connection:
        [(body,)] = connection.execute("SELECT body FROM checkpoint WHERE thread = 1").fetchall()
    fields = ormsgpack.unpackb(body)
    fields[2][channel] = entry
    change(path, "UPDATE checkpoint SET body = ? WHERE thread = 1", ormsgpack.packb(fields))


@pytest.mark.parametrize("reference", REFERENCES)
def test_a_forged_reference_is_an_error_that_names_its_checkpoint(
    reference: str, forged: Path
) -> None:
    forge_header(forged, 0, REFERENCES[reference])
    assert_named(forged, read, examined)


ROWS = {
    "an unknown role": ("UPDATE item SET role = ? WHERE key = (1 << 32) + 1", 99),
    "a negative role": ("UPDATE item SET role = ? WHERE key = (1 << 32) + 1", -1),
    "a role that is no number": ("UPDATE item SET role = ? WHERE key = (1 << 32) + 1", "human"),
    "a text that is no text": ("UPDATE item SET text = ? WHERE key = (1 << 32) + 1", b"\xff\xfe"),
    "a rest that is none": ("UPDATE item SET rest = ? WHERE key = (1 << 32) + 1", "text"),
    "a field of a newer release": (
        "UPDATE item SET rest = ? WHERE key = (1 << 32) + 1",
        ormsgpack.packb({99: 1}, option=OPTIONS),
    ),
    "a message kept whole that is none": (
        "UPDATE item SET role = NULL, rest = ? WHERE key = (1 << 32) + 1",
        ormsgpack.packb([1, 2, 3]),
    ),
    "a value of a newer release": (
        "UPDATE value SET body = ? WHERE key = 1 << 32",
        ormsgpack.packb(ormsgpack.Ext(99, b"")),
    ),
    "a value that names no message": (
        "UPDATE value SET body = ? WHERE key = 1 << 32",
        ormsgpack.packb(ormsgpack.Ext(64, b"\x07")),
    ),
    "a value that is none": ("UPDATE value SET body = ? WHERE key = 1 << 32", 7),
    "an empty value": ("UPDATE value SET body = ? WHERE key = 1 << 32", b""),
    "a word in another's place": ("UPDATE checkpoint SET shape = label WHERE thread = 1 AND ?", 1),
    "a word that is none": ("UPDATE word SET body = ? WHERE thread = 1", 7),
    "a label that is none": ("UPDATE checkpoint SET label = shape WHERE thread = 1 AND ?", 1),
    "no label": ("UPDATE checkpoint SET label = ? WHERE thread = 1", 99),
}


@pytest.mark.parametrize("sealed", [True, False], ids=["forged", "damaged"])
@pytest.mark.parametrize("row", ROWS)
def test_a_forged_row_is_an_error_that_names_its_checkpoint(
    row: str, sealed: bool, forged: Path
) -> None:
    change(forged, *ROWS[row], sealed=sealed)
    assert_named(forged, read, examined)


def test_a_header_of_a_newer_release_is_an_error(forged: Path) -> None:
    with closing(sqlite3.connect(forged)) as connection:
        [(body,)] = connection.execute("SELECT body FROM checkpoint WHERE thread = 1").fetchall()
    fields = ormsgpack.unpackb(body)
    change(
        forged,
        "UPDATE checkpoint SET body = ? WHERE thread = 1",
        ormsgpack.packb([*fields[:3], None, None, "news"]),
    )
    assert_named(forged, read, examined)


@pytest.mark.parametrize(
    "column", ["next_item", "next_value", "next_word", "next_namespace", "generation"]
)
@pytest.mark.parametrize("value", [-1, 1 << 40, "many", None])
def test_a_forged_counter_never_leads_a_write_to_another_thread(
    column: str, value: Any, forged: Path
) -> None:
    with closing(sqlite3.connect(forged)) as connection, suppress(sqlite3.IntegrityError):
        connection.execute(f"UPDATE thread SET {column} = ? WHERE number = 1", (value,))
        connection.commit()
    with DeltaSaver.from_conn_string(str(forged)) as saver:
        with suppress(DamagedRow):
            ThreadChatMessageHistory("forged", saver).add_messages([HumanMessage("more")])
        examine(saver, fix=True)
        ThreadChatMessageHistory("forged", saver).add_messages([HumanMessage("still more")])
        assert [finding for finding in examine(saver).findings if finding.severity != "note"] == []
    assert [message.content for message in read(forged, "whole")["messages"]] == [
        f"whole {number}" for number in range(5)
    ]


CODES = range(9)
CALLS = [
    ("os", "system", "touch {path}"),
    ("os", "getenv", "SECRET"),
    ("subprocess", "getoutput", "touch {path}"),
]


@pytest.mark.parametrize("call", CALLS, ids=lambda call: ".".join(call[:2]))
def test_a_forged_value_runs_nothing_and_imports_nothing(
    call: tuple[str, str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "do not tell")
    touched = tmp_path / "touched"
    module, name, argument = call
    for code in CODES:
        for payload in (
            argument.format(path=touched),
            [argument.format(path=touched)],
            {"command": argument.format(path=touched)},
        ):
            for more in ([], ["__call__"], ["model_validate_json"]):
                body = ormsgpack.packb(
                    ormsgpack.Ext(code, ormsgpack.packb([module, name, payload, *more]))
                )
                path = tmp_path / "memory.db"
                with DeltaSaver.from_conn_string(str(path)) as saver:
                    saver.put(
                        at("t", None), checkpoint({"big": ["x"] * 50}), {"step": 1}, {"big": "1"}
                    )
                change(
                    path,
                    "UPDATE value SET body = ? WHERE key >> 32 = (SELECT max(number) FROM thread)",
                    body,
                )
                with suppress(LangmemExtError):
                    assert "do not tell" not in repr(read(path, "t"))
                examine(str(path))
                with DeltaSaver.from_conn_string(str(path)) as saver:
                    saver.delete_thread("t")
    assert not touched.exists()


# -- no room, no right to write --------------------------------------------------------------------


def rows_of(connection: sqlite3.Connection) -> list[Any]:
    tables = ("thread", "namespace", "word", "item", "value", "checkpoint", "pending_write")
    return [connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables]


def refused_by(write: Callable[[], Any]) -> StorageUnavailable | None:
    try:
        write()
    except StorageUnavailable as error:
        return error
    return None


def test_a_full_disk_refuses_writes_and_nothing_is_half_written(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "memory.db", check_same_thread=False)) as connection:
        saver = DeltaSaver(connection)
        history = ThreadChatMessageHistory("t", saver)
        history.add_messages([HumanMessage("first")])
        refused = 0
        for room in range(12):
            [(pages,)] = connection.execute("PRAGMA page_count").fetchall()
            connection.execute(f"PRAGMA max_page_count = {pages + room}")
            before = rows_of(connection)
            for write in (
                lambda: saver.put(
                    at("t", None),
                    checkpoint({"big": os.urandom(30_000)}),
                    {"step": 9},
                    {"big": "1"},
                ),
                lambda: saver.put_writes(at("t", ID), [("big", os.urandom(30_000))], str(uuid4())),
                lambda: history.add_messages([HumanMessage("long " * 6_000)]),
            ):
                refusal = refused_by(write)
                if refusal is not None:
                    assert "is full" in str(refusal)
                    assert rows_of(connection) == before
                    refused += 1
                before = rows_of(connection)
        assert refused > 12
        connection.execute("PRAGMA max_page_count = 1073741823")
        history.add_messages([HumanMessage("there is room again")])
        assert history.messages[-1].content == "there is room again"
        assert examine(saver).ok


@pytest.mark.parametrize("form", ["sqlite:///{path}?mode=ro", "{path}"])
def test_what_may_only_be_read_is_read(
    form: str, whole: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "closed"
    folder.mkdir()
    path = folder / "memory.db"
    shutil.copy(whole, path)
    path.chmod(0o444)
    if "ro" in form:
        folder.chmod(0o555)
    try:
        assert dict(look(form.format(path=path))) == expected
        if (
            "ro" in form or os.geteuid() != 0
        ):  # the system lets its superuser write whatever the file says
            with DeltaSaver.from_conn_string(form.format(path=path)) as saver:
                for write in (
                    lambda: saver.put(
                        at("alpha", None), checkpoint({"x": 1}), {"step": 1}, {"x": "1"}
                    ),
                    lambda: saver.put_writes(at("alpha", ID), [("x", 1)], "task"),
                    lambda: saver.delete_thread("alpha"),
                    lambda: ThreadChatMessageHistory("alpha", saver).add_messages(
                        [HumanMessage("x")]
                    ),
                ):
                    with pytest.raises(StorageUnavailable, match="is read-only"):
                        write()
            with pytest.raises(StorageUnavailable):
                DeltaSaver.open(f"sqlite:///{folder}/none.db?mode=ro")
        assert examine(str(path)).ok
        assert path.read_bytes() == whole.read_bytes()
    finally:
        folder.chmod(0o755)


def test_a_reader_that_may_not_write_sees_what_a_writer_adds(url: str) -> None:
    with DeltaSaver.from_conn_string(url) as writer:
        ThreadChatMessageHistory("t", writer).add_messages([HumanMessage("one")])
        with DeltaSaver.from_conn_string(existing(url, read_only=True)) as reader:
            assert len(ThreadChatMessageHistory("t", reader).messages) == 1
            ThreadChatMessageHistory("t", writer).add_messages([HumanMessage("two")])
            assert len(ThreadChatMessageHistory("t", reader).messages) == 2


# -- no database -----------------------------------------------------------------------------------


def another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 252006675")
        connection.execute("CREATE TABLE bookmarks (title)")
        connection.commit()


STRANGERS: dict[str, Callable[[Path], Any]] = {
    "a folder": lambda path: path.mkdir(),
    "a text": lambda path: path.write_text("Dear diary, " * 500),
    "another program's database": another_program,
    "an empty file": lambda path: path.touch(),
    "nothing": lambda path: None,
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_what_is_no_database_of_ours_is_refused_by_name_and_left_alone(
    stranger: str, tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    STRANGERS[stranger](path)
    before = path.read_bytes() if path.is_file() else None
    urls = (
        [f"sqlite:///{path}?mode=ro"]
        if stranger in ("an empty file", "nothing")
        else [str(path), f"sqlite:///{path}?mode=ro"]
    )
    for url in urls:
        with pytest.raises(StorageError, match=r"memory\.db"):
            DeltaSaver.open(url)
        with pytest.raises(StorageError, match=r"memory\.db"):
            examine(url)
    assert before == (path.read_bytes() if path.is_file() else None)
    assert len(list(tmp_path.iterdir())) == (stranger != "nothing")
