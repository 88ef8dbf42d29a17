"""Promise: one truth. What is derived is what it is derived from; the doctor computes it again, and puts right what has drifted.

The random tests are of both kinds of database. The others change a file by SQLite's own means; their twins: tests/postgres/test_doctor.py.
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
from forged import reseal
from hypothesis import given
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from programs import Program, programs
from puts import Branch, Call, call_lists, new_ids
from samples import ShoutedMessage
from savers import Backend, Shelf, run_without_loop
from sessions import Session

from langmem_ext import DeltaSaver, Finding, Report, StorageUnavailable, ThreadChatMessageHistory, aexamine, examine
from langmem_ext.storage import examination, findings
from langmem_ext.storage.effects import Effect, Rows
from langmem_ext.storage.sqlite import SqliteDriver


def amiss(source: Any, **options: Any) -> list[str]:
    """What is not a note."""
    return [f"{finding.place}: {finding.message}" for finding in examine(source, **options).findings if finding.severity != "note"]


async def _play(steps: Any, subject: Any, shelf: Shelf) -> None:
    try:
        for number, step in enumerate(steps):
            await subject.carry_out(step, last=number == len(steps) - 1)
        assert amiss(shelf.saver) == []
        await shelf.reopen()
        assert amiss(shelf.url) == []
    finally:
        await shelf.close()


@given(program=programs)
def test_nothing_is_found_after_random_programs(program: Program, durable: Backend, folder: Path) -> None:
    shelf = Shelf(durable, "sync", folder)
    run_without_loop(_play(program.steps, Session(shelf, "sync", program), shelf))


@given(calls=call_lists)
def test_nothing_is_found_after_random_calls(calls: list[Call], durable: Backend, folder: Path) -> None:
    shelf = Shelf(durable, "sync", folder)
    run_without_loop(_play(calls, Branch(shelf, "sync", new_ids(len(calls) + 1)), shelf))


# -- what is found -----------------------------------------------------------------------------------------------------------------------

ID = "1ffe6000-0000-6000-8000-00000000000"


def put(saver: DeltaSaver, thread: str, number: int, values: dict[str, Any], parent: str | None = None) -> None:
    config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": parent}}
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
def db(tmp_path: Path) -> Path:
    """Two threads of two checkpoints each: lists of messages, values of their own rows, a name that is waited for, pending writes."""
    path = tmp_path / "memory.db"
    with DeltaSaver.from_conn_string(str(path)) as saver:
        for thread in ("one", "two"):
            said = [HumanMessage(f"{thread} {number}", id=f"{thread}-{number}") for number in range(4)]
            put(saver, thread, 1, {"messages": said[:2], "big": [thread] * 50})
            put(saver, thread, 2, {"messages": said, "big": [thread] * 60, "waiting_for_param": "order_id"}, f"{ID}1")
            config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": "", "checkpoint_id": f"{ID}2"}}
            blocks: Any = [{"type": "text", "text": "an answer"}, {"type": "image_url", "image_url": {"url": "x"}}]
            saver.put_writes(config, [("messages", [AIMessage(blocks)])], "task")
    return path


def change(path: Path, *statements: str, sealed: bool = True) -> None:
    """Change rows; `sealed`: with a check that matches, as if they had been written so."""
    with closing(sqlite3.connect(path)) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount, statement
        if sealed:
            reseal(connection)
        connection.commit()


DRIFT = {
    "too few items": ("UPDATE thread SET items = 1 WHERE number = 1", "total"),
    "too many tokens": ("UPDATE thread SET tokens = 1000 WHERE number = 1", "total"),
    "no head": ("UPDATE thread SET head_messages = NULL WHERE number = 1", "head"),
    "another head": ("UPDATE thread SET head_messages = 9 WHERE number = 1", "head"),
    "nothing waited for": ("UPDATE thread SET waiting_for = NULL WHERE number = 1", "head"),
    "something else waited for": ("UPDATE thread SET waiting_for = 'name' WHERE number = 1", "head"),
    "items given again": ("UPDATE thread SET next_item = 0 WHERE number = 1", "counter"),
    "values given again": ("UPDATE thread SET next_value = 1 WHERE number = 1", "counter"),
    "words given again": ("UPDATE thread SET next_word = 0 WHERE number = 1", "counter"),
    "a counter that is none": ("UPDATE thread SET next_item = 'many' WHERE number = 1", "counter"),
    "a generation that is none": ("UPDATE thread SET generation = -1 WHERE number = 1", "counter"),
    "a token count": ("UPDATE item SET tokens = 99 WHERE key = (1 << 32) + 2", "column"),
    "words without a thread": ("INSERT INTO word VALUES (77, 0, x'00', 0)", "orphan"),
}


@pytest.mark.parametrize("drift", DRIFT)
def test_what_has_drifted_is_found_put_right_and_found_no_more(drift: str, db: Path) -> None:
    before = rows(db)
    statement, kind = DRIFT[drift]
    change(db, statement)
    report = examine(str(db))
    assert not report.ok
    assert {(finding.kind, finding.severity, finding.thread, finding.fixable) for finding in report.findings} <= {
        (kind, "wrong", None if kind == "orphan" else "one", True),
        ("total", "wrong", "one", True),  # the tokens of a message count among the thread's
    }
    assert kind in {finding.kind for finding in report.findings}
    repaired = examine(str(db), fix=True)
    assert repaired.ok
    assert all(finding.fixed for finding in repaired.findings)
    assert examine(str(db)).findings == ()
    assert rows(db) == before


def rows(path: Path) -> list[Any]:
    """All rows, without the generations, which a repair moves."""
    with closing(sqlite3.connect(path)) as connection:
        columns = [name for _, name, *_ in connection.execute("PRAGMA table_info(thread)") if name != "generation"]
        found = connection.execute(f"SELECT {', '.join(columns)} FROM thread").fetchall()
        tables = ("item", "value", "checkpoint", "pending_write", "word", "namespace")
        return [found, *(connection.execute(f"SELECT * FROM {table}").fetchall() for table in tables)]


def test_a_repair_makes_void_what_others_remember(db: Path) -> None:
    with DeltaSaver.from_conn_string(str(db)) as saver:
        history = ThreadChatMessageHistory("one", saver)
        assert len(history.messages) == 4
        change(db, "UPDATE thread SET items = 1")
        with DeltaSaver.from_conn_string(str(db)) as other:
            assert examine(other, fix=True).ok
        history.add_messages([HumanMessage("more")])
        assert len(history.messages) == 5
        assert examine(saver).findings == ()


DAMAGE = {
    "an item": ("UPDATE item SET role = 99 WHERE key = 1 << 32", "item", "item 1:0", {f"{ID}1", f"{ID}2"}),
    "a late item": ("UPDATE item SET text = x'ff' WHERE key = (1 << 32) + 3", "item", "item 1:3", {f"{ID}2"}),
    "a missing item": ("DELETE FROM item WHERE key = (1 << 32) + 2", "reference", "item 1:2", {f"{ID}2"}),
    "a value": ("UPDATE value SET body = substr(body, 1, 20) WHERE key = 1 << 32", "value", "value 1:0", {f"{ID}1"}),
    "a missing value": ("DELETE FROM value WHERE key = (1 << 32) + 1", "reference", "value 1:1", {f"{ID}2"}),
    "a checkpoint": ("UPDATE checkpoint SET body = x'00' WHERE thread = 1 AND step = 2", "checkpoint", f"checkpoint 1/0/{ID}2", {f"{ID}2"}),
    "pending writes": ("UPDATE pending_write SET body = x'91' WHERE thread = 1", "write", f"pending_write 1/0/{ID}2/task", {f"{ID}2"}),
    "blocks": ("UPDATE item SET text = 'an' WHERE key = (1 << 32) + 4", "item", "item 1:4", {f"{ID}2"}),
    "blocks and more": ("UPDATE item SET text = text || '!' WHERE key = (1 << 32) + 4", "item", "item 1:4", {f"{ID}2"}),
    "a broken text": ("UPDATE item SET text = CAST(x'c328' AS TEXT) WHERE key = (1 << 32) + 1", "item", "item 1:1", {f"{ID}1", f"{ID}2"}),
}


@pytest.mark.parametrize("sealed", [True, False], ids=["forged", "damaged"])
@pytest.mark.parametrize("damage", DAMAGE)
def test_what_is_damaged_is_named_and_stays(damage: str, sealed: bool, db: Path) -> None:
    statement, kind, place, checkpoints = DAMAGE[damage]
    change(db, statement, sealed=sealed)
    report = examine(str(db), fix=True)
    found = [finding for finding in report.findings if finding.severity == "damaged"]
    assert [(finding.kind, finding.place, finding.thread, set(finding.checkpoints)) for finding in found] == [
        (kind, place, "one", checkpoints)
    ]
    assert not found[0].fixable
    again = examine(str(db))
    assert [finding for finding in again.findings if finding.severity != "note"] == found
    with DeltaSaver.from_conn_string(str(db)) as saver:
        assert len(ThreadChatMessageHistory("two", saver).messages) == 4


def test_a_message_of_a_lost_thread_comes_back_with_a_thread(db: Path) -> None:
    change(db, "DELETE FROM thread WHERE id = 'one'")
    assert [finding.kind for finding in examine(str(db)).findings] == ["orphan"]
    assert examine(str(db), fix=True).ok
    assert examine(str(db)).findings == ()
    with DeltaSaver.from_conn_string(str(db)) as saver:
        assert [message.content for message in ThreadChatMessageHistory("recovered-1", saver).messages] == [f"one {n}" for n in range(4)]
        put(saver, "one", 3, {"messages": [HumanMessage("a new one")]})
        assert examine(saver).findings == ()


def test_what_is_no_fault_is_a_note(db: Path) -> None:
    change(
        db,
        "INSERT INTO item SELECT key + 50, message_id, role, name, text, tool_call_id, seconds, tokens, rest, shape, 0 FROM item"
        " WHERE key = 1 << 32",
        "UPDATE thread SET next_item = 51, items = items + 1, tokens ="
        " (SELECT sum(tokens) FROM conversation WHERE thread_id = 'one') WHERE number = 1",
        "DELETE FROM checkpoint WHERE thread = 2 AND step = 1",
        "INSERT INTO pending_write SELECT thread, namespace, x'7800', task, shape, body, 0 FROM pending_write WHERE thread = 2",
    )
    report = examine(str(db))
    assert report.ok
    assert {(finding.kind, finding.severity, finding.thread) for finding in report.findings} == {
        ("double", "note", "one"),
        ("unused", "note", "one"),
        ("unused", "note", "two"),
    }


def test_a_database_that_was_written_with_another_serializer_is_examined_as_far_as_can_be(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    with DeltaSaver.open(path, serde=Reversed()) as saver:
        put(saver, "t", 1, {"messages": [HumanMessage("hello")], "big": ["x"] * 50, "waiting_for_param": "order_id"})
        assert examine(saver).findings == ()
    [note] = examine(path).findings
    assert (note.kind, note.severity) == ("foreign", "note")
    assert examine(path, serde=Reversed()).findings == ()
    change(Path(path), "UPDATE value SET body = x'92a46a736f6e c401ff'".replace(" c4", "c4"), "UPDATE thread SET items = 7")
    assert [finding.kind for finding in examine(path, serde=Reversed()).findings] == ["value", "total"]
    assert [finding.kind for finding in examine(path).findings if finding.severity != "note"] == ["total"]


class Reversed(SerializerProtocol):
    """A serializer of an application's own."""

    def __init__(self) -> None:
        self.inner = JsonPlusSerializer()

    def dumps_typed(self, obj: Any) -> tuple[str, bytes]:
        kind, data = self.inner.dumps_typed(obj)
        return kind, data[::-1]

    def loads_typed(self, data: tuple[str, bytes]) -> Any:
        return self.inner.loads_typed((data[0], data[1][::-1]))


def test_an_applications_own_classes_are_not_built_and_not_wrong(tmp_path: Path) -> None:
    with DeltaSaver.from_conn_string(str(tmp_path / "memory.db")) as saver:
        put(saver, "t", 1, {"messages": [ShoutedMessage("hello", volume=3)], "log": [ShoutedMessage("x" * 100)]})
        assert examine(saver).findings == ()


# -- how it is done ----------------------------------------------------------------------------------------------------------------------


def test_examining_is_the_same_by_url_saver_and_event_loop(db: Path) -> None:
    change(db, "UPDATE thread SET items = 1", "UPDATE item SET role = 99 WHERE key = 1 << 32")
    found = examine(str(db))
    assert isinstance(found, Report)
    assert all(isinstance(finding, Finding) for finding in found.findings)
    assert asyncio.run(aexamine(str(db))) == found
    with DeltaSaver.from_conn_string(str(db)) as saver:
        assert examine(saver) == examine(saver.log) == asyncio.run(aexamine(saver)) == found
        assert not asyncio.run(aexamine(saver, fix=True)).ok
        assert [finding.severity for finding in examine(saver).findings] == ["damaged"]


def test_progress_is_told_thread_by_thread(db: Path) -> None:
    told: list[tuple[int, int]] = []
    examine(str(db), progress=lambda done, total: told.append((done, total)))
    assert told == [(1, 2), (2, 2)]


def test_examining_by_url_neither_makes_nor_changes_a_file(db: Path) -> None:
    before = db.read_bytes()
    assert examine(str(db)).ok
    assert db.read_bytes() == before
    for url in (str(db.with_name("none.db")), ":memory:"):
        with pytest.raises(StorageUnavailable, match="there is no database"):
            examine(url, fix=True)
    assert not db.with_name("none.db").exists()


def test_many_findings_of_a_kind_are_counted(tmp_path: Path) -> None:
    with DeltaSaver.from_conn_string(str(tmp_path / "memory.db")) as saver:
        ThreadChatMessageHistory("t", saver).add_messages([HumanMessage(f"{number}") for number in range(100)])
        change(tmp_path / "memory.db", "UPDATE item SET tokens = 99")
        report = examine(saver)
        assert sum(finding.kind == "column" for finding in report.findings) == findings.MOST
        assert [finding.message for finding in report.findings if finding.kind == "more"] == ["80 more findings of the kind 'column'"]
        assert examine(saver, fix=True).ok
        assert examine(saver).findings == ()


def test_no_step_reads_more_than_a_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with DeltaSaver.from_conn_string(str(tmp_path / "memory.db")) as saver:
        history = ThreadChatMessageHistory("t", saver)
        for turn in range(30):
            history.add_messages([HumanMessage(f"{turn} {number}") for number in range(30)])
        most = 0
        execute = SqliteDriver.execute

        def counted(self: SqliteDriver, effect: Effect) -> Rows:
            nonlocal most
            got = execute(self, effect)
            most = max(most, len(got))
            return got

        monkeypatch.setattr(SqliteDriver, "execute", counted)
        assert examine(saver).items == 900
        assert most == examination.PAGE


@pytest.mark.parametrize("look", [lambda saver: examine(saver), lambda saver: asyncio.run(aexamine(saver))], ids=["sync", "async"])
def test_examining_while_others_write_finds_nothing_that_is_not_there(look: Callable[[DeltaSaver], Report], tmp_path: Path) -> None:
    with DeltaSaver.from_conn_string(str(tmp_path / "memory.db")) as saver:
        done = threading.Event()

        def write() -> None:
            for turn in range(60):
                ThreadChatMessageHistory(f"t{turn % 3}", saver).add_messages([HumanMessage(f"{turn} {number}") for number in range(8)])
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
