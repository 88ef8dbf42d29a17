"""Promise: one truth.

What is derived is what it is derived from; the doctor computes it again, and puts right what has
drifted.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from asked_statements import watch
from carried import ids_of, rows_of
from forged_rows import reseal, reseal_rows
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from prune_reference import rows
from samples import ShoutedMessage
from savers import Backend, new_schema

from langmem_ext import (
    DeltaSaver,
    Finding,
    Report,
    StorageUnavailable,
    ThreadChatMessageHistory,
    aexamine,
    examine,
)
from langmem_ext.log.message_log import is_server
from langmem_ext.storage.inspect import examine as examination
from langmem_ext.storage.inspect import findings
from langmem_ext.storage.operation import fetch, operation
from langmem_ext.storage.schema.dialect import KEY, OF_THREAD, PLACE, PLACE_VALUES
from langmem_ext.storage.threads.rows_sql import TABLES


def amiss(source: Any, **options: Any) -> list[str]:
    """What is not a note."""
    return [
        f"{finding.place}: {finding.message}"
        for finding in examine(source, **options).findings
        if finding.severity != "note"
    ]


# -- what is found ---------------------------------------------------------------------------------

ID = "1ffe6000-0000-6000-8000-00000000000"


def put(
    saver: DeltaSaver, thread: str, number: int, values: dict[str, Any], parent: str | None = None
) -> None:
    config: Any = {
        "configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": parent}
    }
    versions = {channel: f"{number}" for channel in values}
    checkpoint: Any = {
        "v": 4,
        "id": f"{ID}{number}",
        "ts": "now",
        "channel_values": values,
        "channel_versions": versions,
        "versions_seen": {},
    }
    saver.put(config, checkpoint, {"step": number}, dict(versions))


@pytest.fixture
def db(url: str) -> str:
    """Two threads of two checkpoints each: lists of messages, values of their own rows, a name that
    is waited for, pending writes.
    """
    with DeltaSaver.from_conn_string(url) as saver:
        for thread in ("one", "two"):
            said = [
                HumanMessage(f"{thread} {number}", id=f"{thread}-{number}") for number in range(4)
            ]
            put(saver, thread, 1, {"messages": said[:2], "big": [thread] * 50})
            put(
                saver,
                thread,
                2,
                {"messages": said, "big": [thread] * 60, "waiting_for_param": "order_id"},
                f"{ID}1",
            )
            config: Any = {
                "configurable": {
                    "thread_id": thread,
                    "checkpoint_ns": "",
                    "checkpoint_id": f"{ID}2",
                }
            }
            blocks: Any = [
                {"type": "text", "text": "an answer"},
                {"type": "image_url", "image_url": {"url": "x"}},
            ]
            saver.put_writes(config, [("messages", [AIMessage(blocks)])], "task")
    return url


def numbers(url: str) -> dict[str, int]:
    """The numbers of the threads, by their ids."""
    with DeltaSaver.from_conn_string(url) as saver:
        return {
            str(name): int(number) for name, number in rows(saver, "SELECT id, number FROM thread")
        }


def change(
    url: str, statement: str, *, thread: str = "one", sealed: bool = True, **params: Any
) -> None:
    """Change rows, `:thread` is the number of one; `sealed`: with a check that matches, as if they
    had been written so.
    """
    with DeltaSaver.from_conn_string(url) as saver:
        number = numbers(url).get(thread)
        assert saver.log.run(
            operation(fetch)(f"{statement} RETURNING 1", thread=number, **params), write=True
        ), statement
        if sealed and is_server(url):
            reseal_rows(saver)
    if sealed and not is_server(url):
        with closing(sqlite3.connect(url)) as connection:
            reseal(connection)  # texts that are none, too


ONE = "UPDATE thread SET {} WHERE number = :thread"
DRIFT = {
    "too few items": (ONE.format("items = 1"), "total"),
    "too many tokens": (ONE.format("tokens = 1000"), "total"),
    "no head": (ONE.format("head_messages = NULL"), "head"),
    "another head": (ONE.format("head_messages = 9"), "head"),
    "nothing waited for": (ONE.format("waiting_for = NULL"), "head"),
    "something else waited for": (ONE.format("waiting_for = 'name'"), "head"),
    "items given again": (ONE.format("next_item = 0"), "counter"),
    "values given again": (ONE.format("next_value = 1"), "counter"),
    "words given again": (ONE.format("next_word = 0"), "counter"),
    "a generation that is none": (ONE.format("generation = -1"), "counter"),
    "a token count": (
        f"UPDATE item SET tokens = 99 WHERE {OF_THREAD} AND {KEY} & 4294967295 = 2",
        "column",
    ),
    "words without a thread": (
        (
            "INSERT INTO word (thread, number, crc, body) SELECT 77, number, crc, body FROM word"
            " WHERE thread = :thread"
        ),
        "orphan",
    ),
}
OF_ANOTHER_TYPE = {"a counter that is none": (ONE.format("next_item = 'many'"), "counter")}
"""What a column of SQLite takes, and none of PostgreSQL."""


@pytest.mark.parametrize(
    ("durable", "drift"),
    [
        *(("file", drift) for drift in (*DRIFT, *OF_ANOTHER_TYPE)),
        *(("postgres", drift) for drift in DRIFT),
    ],
    indirect=["durable"],
)
def test_what_has_drifted_is_found_put_right_and_found_no_more(drift: str, db: str) -> None:
    before = all_rows(db)
    statement, kind = {**DRIFT, **OF_ANOTHER_TYPE}[drift]
    change(db, statement)
    report = examine(db)
    assert not report.ok
    assert {
        (finding.kind, finding.severity, finding.thread, finding.fixable)
        for finding in report.findings
    } <= {
        (kind, "wrong", None if kind == "orphan" else "one", True),
        ("total", "wrong", "one", True),  # the tokens of a message count among the thread's
    }
    assert kind in {finding.kind for finding in report.findings}
    repaired = examine(db, fix=True)
    assert repaired.ok
    assert all(finding.fixed for finding in repaired.findings)
    assert examine(db).findings == ()
    assert all_rows(db) == before


def all_rows(url: str) -> Any:
    """All rows, without the generations, which a repair moves."""
    with DeltaSaver.from_conn_string(url) as saver:
        counts = [list(rows(saver, f"SELECT count(*) FROM {table.name}")) for table in TABLES]
        return counts, [rows_of(saver, thread) for thread in ids_of(saver)]


def test_a_repair_makes_void_what_others_remember(db: str) -> None:
    with DeltaSaver.from_conn_string(db) as saver:
        history = ThreadChatMessageHistory("one", saver)
        assert len(history.messages) == 4
        change(db, ONE.format("items = 1"))
        with DeltaSaver.from_conn_string(db) as other:
            assert examine(other, fix=True).ok
        history.add_messages([HumanMessage("more")])
        assert len(history.messages) == 5
        assert examine(saver).findings == ()


AT_NUMBER = f"{OF_THREAD} AND {KEY} & 4294967295 = "
BOTH, LATER = {f"{ID}1", f"{ID}2"}, {f"{ID}2"}
DAMAGE: dict[str, tuple[str, bytes, str, str, set[str]]] = {
    "an item": (f"UPDATE item SET role = 99 WHERE {AT_NUMBER} 0", b"", "item", "item {}:0", BOTH),
    "a late item": (
        f"UPDATE item SET rest = :bytes WHERE {AT_NUMBER} 3",
        b"\xff",
        "item",
        "item {}:3",
        LATER,
    ),
    "a missing item": (
        f"DELETE FROM item WHERE {AT_NUMBER} 2",
        b"",
        "reference",
        "item {}:2",
        LATER,
    ),
    "a value": (
        f"UPDATE value SET body = substr(body, 1, 20) WHERE {AT_NUMBER} 0",
        b"",
        "value",
        "value {}:0",
        {f"{ID}1"},
    ),
    "a missing value": (
        f"DELETE FROM value WHERE {AT_NUMBER} 1",
        b"",
        "reference",
        "value {}:1",
        LATER,
    ),
    "a checkpoint": (
        "UPDATE checkpoint SET body = :bytes WHERE thread = :thread AND step = 2",
        b"\0",
        "checkpoint",
        f"checkpoint {{}}/0/{ID}2",
        LATER,
    ),
    "pending writes": (
        "UPDATE pending_write SET body = :bytes WHERE thread = :thread",
        b"\x91",
        "write",
        f"pending_write {{}}/0/{ID}2/task",
        LATER,
    ),
    "blocks": (f"UPDATE item SET text = 'an' WHERE {AT_NUMBER} 4", b"", "item", "item {}:4", LATER),
    "blocks and more": (
        f"UPDATE item SET text = text || '!' WHERE {AT_NUMBER} 4",
        b"",
        "item",
        "item {}:4",
        LATER,
    ),
}
NO_TEXT: dict[str, tuple[str, bytes, str, str, set[str]]] = {
    "bytes for a text": (
        f"UPDATE item SET text = :bytes WHERE {AT_NUMBER} 3",
        b"\xff",
        "item",
        "item {}:3",
        LATER,
    ),
    "a broken text": (
        f"UPDATE item SET text = CAST(:bytes AS TEXT) WHERE {AT_NUMBER} 1",
        b"\xc3\x28",
        "item",
        "item {}:1",
        BOTH,
    ),
}
"""What PostgreSQL takes for no text."""


@pytest.mark.parametrize("sealed", [True, False], ids=["forged", "damaged"])
@pytest.mark.parametrize(
    ("durable", "damage"),
    [
        *(("file", damage) for damage in (*DAMAGE, *NO_TEXT)),
        *(("postgres", damage) for damage in DAMAGE),
    ],
    indirect=["durable"],
)
def test_what_is_damaged_is_named_and_stays(damage: str, sealed: bool, db: str) -> None:
    statement, content, kind, place, checkpoints = {**DAMAGE, **NO_TEXT}[damage]
    change(db, statement, sealed=sealed, **({"bytes": content} if content else {}))
    report = examine(db, fix=True)
    found = [finding for finding in report.findings if finding.severity == "damaged"]
    assert [
        (finding.kind, finding.place, finding.thread, set(finding.checkpoints)) for finding in found
    ] == [(kind, place.format(numbers(db)["one"]), "one", checkpoints)]
    assert not found[0].fixable
    again = examine(db)
    assert [finding for finding in again.findings if finding.severity != "note"] == found
    with DeltaSaver.from_conn_string(db) as saver:
        assert len(ThreadChatMessageHistory("two", saver).messages) == 4


def test_a_message_of_a_lost_thread_comes_back_with_a_thread(db: str) -> None:
    lost = numbers(db)["one"]
    change(db, "DELETE FROM thread WHERE number = :thread")
    assert [finding.kind for finding in examine(db).findings] == ["orphan"]
    assert examine(db, fix=True).ok
    assert examine(db).findings == ()
    with DeltaSaver.from_conn_string(db) as saver:
        recovered = ThreadChatMessageHistory(f"recovered-{lost}", saver)
        assert [message.content for message in recovered.messages] == [f"one {n}" for n in range(4)]
        put(saver, "one", 3, {"messages": [HumanMessage("a new one")]})
        assert [message.content for message in ThreadChatMessageHistory("one", saver).messages] == [
            "a new one"
        ]
        assert examine(saver).findings == ()


def test_what_is_no_fault_is_a_note(db: str) -> None:
    columns = "message_id, role, name, text, tool_call_id, seconds, tokens, rest, shape, crc"
    change(
        db,
        f"INSERT INTO item ({PLACE}, {columns}) SELECT {PLACE_VALUES}, {columns} FROM item WHERE"
        f" {AT_NUMBER} 0",
        number=50,
    )
    total = "(SELECT sum(tokens) FROM conversation WHERE thread_id = 'one')"
    change(db, ONE.format(f"next_item = 51, items = items + 1, tokens = {total}"))
    change(db, "DELETE FROM checkpoint WHERE thread = :thread AND step = 1", thread="two")
    columns = "task, shape, body, crc"
    change(
        db,
        f"INSERT INTO pending_write (thread, namespace, checkpoint, {columns})"
        f" SELECT thread, namespace, :bytes, {columns} FROM pending_write WHERE thread = :thread",
        thread="two",
        bytes=b"x\0",
    )
    report = examine(db)
    assert report.ok
    assert {(finding.kind, finding.severity, finding.thread) for finding in report.findings} == {
        ("double", "note", "one"),
        ("unused", "note", "one"),
        ("unused", "note", "two"),
    }


def test_a_database_that_was_written_with_another_serializer_is_examined_as_far_as_can_be(
    url: str,
) -> None:
    with DeltaSaver.open(url, serde=Reversed()) as saver:
        put(
            saver,
            "one",
            1,
            {
                "messages": [HumanMessage("hello")],
                "big": ["x"] * 50,
                "waiting_for_param": "order_id",
            },
        )
        assert examine(saver).findings == ()
    [note] = examine(url).findings
    assert (note.kind, note.severity) == ("foreign", "note")
    assert examine(url, serde=Reversed()).findings == ()
    change(
        url, f"UPDATE value SET body = :bytes WHERE {OF_THREAD}", bytes=b"\x92\xa4json\xc4\x01\xff"
    )
    change(url, ONE.format("items = 7"))
    assert [finding.kind for finding in examine(url, serde=Reversed()).findings] == [
        "value",
        "total",
    ]
    assert [finding.kind for finding in examine(url).findings if finding.severity != "note"] == [
        "total"
    ]


class Reversed(SerializerProtocol):
    """A serializer of an application's own."""

    def __init__(self) -> None:
        self.inner = JsonPlusSerializer()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = self.inner.dumps_typed(obj)
        return kind, data[::-1]

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self.inner.loads_typed((data[0], data[1][::-1]))


def test_an_applications_own_classes_are_not_built_and_not_wrong(url: str) -> None:
    with DeltaSaver.from_conn_string(url) as saver:
        put(
            saver,
            "t",
            1,
            {"messages": [ShoutedMessage("hello", volume=3)], "log": [ShoutedMessage("x" * 100)]},
        )
        assert examine(saver).findings == ()


# -- how it is done --------------------------------------------------------------------------------


def test_examining_is_the_same_by_url_saver_and_event_loop(db: str) -> None:
    change(db, ONE.format("items = 1"))
    change(db, f"UPDATE item SET role = 99 WHERE {AT_NUMBER} 0")
    found = examine(db)
    assert isinstance(found, Report)
    assert all(isinstance(finding, Finding) for finding in found.findings)
    assert asyncio.run(aexamine(db)) == found
    with DeltaSaver.from_conn_string(db) as saver:
        assert examine(saver) == examine(saver.log) == asyncio.run(aexamine(saver)) == found
        assert not asyncio.run(aexamine(saver, fix=True)).ok
        assert [finding.severity for finding in examine(saver).findings] == ["damaged"]


def test_progress_is_told_thread_by_thread(db: str) -> None:
    told: list[tuple[int, int]] = []
    examine(db, progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


def test_examining_by_url_neither_makes_nor_changes_a_database(
    durable: Backend, db: str, tmp_path: Path
) -> None:
    def content() -> Any:
        return all_rows(db) if is_server(db) else Path(db).read_bytes()

    before = content()
    assert examine(db).ok
    assert content() == before
    none = new_schema(tmp_path) if is_server(db) else str(tmp_path / "none.db")
    for url in (none, none, ":memory:"):
        with pytest.raises(StorageUnavailable, match="not found: pass the path|has no tables"):
            examine(url, fix=True)
    assert not (tmp_path / "none.db").exists()


def test_many_findings_of_a_kind_are_counted(url: str) -> None:
    with DeltaSaver.from_conn_string(url) as saver:
        ThreadChatMessageHistory("one", saver).add_messages(
            [HumanMessage(f"{number}") for number in range(100)]
        )
        change(url, "UPDATE item SET tokens = 99")
        report = examine(saver)
        assert sum(finding.kind == "column" for finding in report.findings) == findings.MOST
        assert [finding.message for finding in report.findings if finding.kind == "more"] == [
            "80 more findings of the kind 'column'"
        ]
        assert examine(saver, fix=True).ok
        assert examine(saver).findings == ()


def test_no_step_reads_more_than_a_page(
    backend: Backend, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DeltaSaver.from_conn_string(backend.new_url(tmp_path)) as saver:
        history = ThreadChatMessageHistory("t", saver)
        for turn in range(30):
            history.add_messages([HumanMessage(f"{turn} {number}") for number in range(30)])
        asked = watch(monkeypatch)
        assert examine(saver).items == 900
        assert asked.most == examination.PAGE


@pytest.mark.parametrize(
    "look",
    [lambda saver: examine(saver), lambda saver: asyncio.run(aexamine(saver))],
    ids=["sync", "async"],
)
def test_examining_while_others_write_finds_nothing_that_is_not_there(
    look: Callable[[DeltaSaver], Report], backend: Backend, tmp_path: Path
) -> None:
    with DeltaSaver.from_conn_string(backend.new_url(tmp_path)) as saver:
        done = threading.Event()

        def write() -> None:
            for turn in range(60):
                ThreadChatMessageHistory(f"t{turn % 3}", saver).add_messages(
                    [HumanMessage(f"{turn} {number}") for number in range(8)]
                )
                if turn % 20 == 19:
                    saver.delete_thread("t1")
            done.set()

        writer = threading.Thread(target=write)
        writer.start()
        looked = 0
        while not done.is_set() or not looked:
            assert [finding for finding in look(saver).findings if finding.severity != "note"] == []
            looked += 1
        writer.join()
        assert look(saver).findings == ()
