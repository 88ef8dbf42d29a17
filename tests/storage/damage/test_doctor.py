"""Promise: one truth.

What is derived is what it is derived from; the doctor computes it again, and puts right what has
drifted.
"""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from raw_tables import change, is_file, number_of, tables
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


ONE = "UPDATE thread SET {} WHERE id = 'one'"
DRIFT = {
    "too few items": (ONE.format("items = 1"), "total"),
    "another head": (ONE.format("head_messages = 9"), "head"),
    "something else waited for": (ONE.format("waiting_for = 'name'"), "head"),
    "items given again": (ONE.format("next_item = 0"), "counter"),
    "a token count": ("UPDATE item SET tokens = 99 WHERE text = 'one 2'", "column"),
    "words without a thread": (
        "INSERT INTO word (thread, number, crc, body) SELECT 77, word.number, crc, body FROM word"
        " JOIN thread ON thread.number = word.thread WHERE id = 'one'",
        "orphan",
    ),
}


@pytest.mark.parametrize("drift", DRIFT)
def test_what_has_drifted_is_found_put_right_and_found_no_more(drift: str, db: str) -> None:
    before = all_rows(db)
    statement, kind = DRIFT[drift]
    change(db, statement, sealed=True)
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
    columns = "id, items, tokens, head_messages, waiting_for, next_item"
    with tables(url) as run:
        return [sorted(map(repr, run(f"SELECT {columns} FROM thread")))] + [
            sorted(map(repr, run(f"SELECT * FROM {table}")))
            for table in ("item", "value", "checkpoint", "pending_write", "word", "namespace")
        ]


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


def test_a_message_of_a_lost_thread_comes_back_with_a_thread(db: str) -> None:
    lost = number_of(db, "one")
    change(db, "DELETE FROM thread WHERE id = 'one'")
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
    change(url, "UPDATE value SET body = ?", b"\x92\xa4json\xc4\x01\xff", sealed=True)
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
    change(db, "UPDATE item SET role = 99 WHERE text = 'one 0'", sealed=True)
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
        return all_rows(db) if not is_file(db) else Path(db).read_bytes()

    before = content()
    assert examine(db).ok
    assert content() == before
    none = new_schema(tmp_path) if not is_file(db) else str(tmp_path / "none.db")
    for url in (none, none, ":memory:"):
        with pytest.raises(StorageUnavailable, match="not found: pass the path|has no tables"):
            examine(url, fix=True)
    assert not (tmp_path / "none.db").exists()


def test_examining_while_others_write_finds_nothing_that_is_not_there(url: str) -> None:
    with DeltaSaver.from_conn_string(url) as saver:
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
            assert [
                finding for finding in examine(saver).findings if finding.severity != "note"
            ] == []
            looked += 1
        writer.join()
        assert examine(saver).findings == ()
