"""What the doctor finds and mends on PostgreSQL, where a thread's number follows from its id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import psycopg
import pytest
from forgotten import rows
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base import empty_checkpoint
from savers import empty_tables
from searched import spoil

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, examine, stats
from langmem_ext.storage.ids import thread_number
from postgres.server import SHARED, Database


def test_a_lost_threads_messages_come_back_under_a_number_that_its_new_id_gives(database: Database) -> None:
    schema = SHARED.new_schema()
    with DeltaSaver.open(f"{database.url}?schema={schema}") as saver:
        for name in ("lost", "kept"):
            ThreadChatMessageHistory(name, saver).add_messages([HumanMessage(f"{name} {at}", id=str(at)) for at in range(3)])
        assert examine(saver).findings == ()
        with psycopg.connect(database.url) as connection:
            connection.execute(f"DELETE FROM {schema}.thread WHERE id = 'lost'".encode())
        assert [finding.kind for finding in examine(saver).findings] == ["orphan"]
        assert examine(saver, fix=True).ok
        assert examine(saver).findings == ()
        found = ThreadChatMessageHistory(f"recovered-{thread_number('lost')}", saver).messages
        assert [message.content for message in found] == ["lost 0", "lost 1", "lost 2"]
        ThreadChatMessageHistory("lost", saver).add_messages([HumanMessage("a new one")])
        assert len(ThreadChatMessageHistory("lost", saver).messages) == 1
        assert examine(saver).findings == ()


def test_a_wrong_total_is_counted_again(database: Database) -> None:
    schema = SHARED.new_schema()
    with DeltaSaver.open(f"{database.url}?schema={schema}") as saver:
        ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("hello", id="h")])
        with psycopg.connect(database.url) as connection:
            connection.execute(f"UPDATE {schema}.thread SET items = 7, next_item = 0".encode())
            connection.execute(f"UPDATE {schema}.item SET tokens = 99".encode())
        assert {finding.kind for finding in examine(saver, fix=True).findings} == {"total", "counter", "column"}
        assert examine(saver).findings == ()


DRIFT = {
    "too few items": ("UPDATE thread SET items = 1", "total"),
    "too many tokens": ("UPDATE thread SET tokens = 1000", "total"),
    "no head": ("UPDATE thread SET head_messages = NULL", "head"),
    "another head": ("UPDATE thread SET head_messages = 9", "head"),
    "nothing waited for": ("UPDATE thread SET waiting_for = NULL", "head"),
    "something else waited for": ("UPDATE thread SET waiting_for = 'name'", "head"),
    "items given again": ("UPDATE thread SET next_item = 0", "counter"),
    "values given again": ("UPDATE thread SET next_value = 0", "counter"),
    "words given again": ("UPDATE thread SET next_word = 0", "counter"),
    "a generation that is none": ("UPDATE thread SET generation = -1", "counter"),
    "a token count": ("UPDATE item SET tokens = 99 WHERE number = 2", "column"),
    "words without a thread": ("INSERT INTO word VALUES (77, 0, 0, '')", "orphan"),
}


@pytest.mark.parametrize("drift", DRIFT)
def test_what_has_drifted_is_found_put_right_and_found_no_more(drift: str, tmp_path: Path) -> None:
    statement, kind = DRIFT[drift]
    with DeltaSaver.open(empty_tables(tmp_path)) as saver:
        config: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        said = [HumanMessage(f"{number}", id=f"{number}") for number in range(4)]
        checkpoint: Any = empty_checkpoint() | {"channel_values": {"messages": said, "big": ["x"] * 50, "waiting_for_param": "order_id"}}
        checkpoint["channel_versions"] = dict.fromkeys(checkpoint["channel_values"], "1")
        saver.put(config, checkpoint, {"step": 1}, dict(checkpoint["channel_versions"]))
        assert examine(saver).findings == ()
        before = counted(saver)
        spoil(saver, statement)
        report = examine(saver)
        assert not report.ok
        found = {(finding.kind, finding.severity, finding.fixable) for finding in report.findings}
        assert {(kind, "wrong", True)} <= found <= {(kind, "wrong", True), ("total", "wrong", True)}
        assert examine(saver, fix=True).ok
        assert examine(saver).findings == ()
        assert counted(saver) == before


def counted(saver: DeltaSaver) -> list[Any]:
    """What is derived, but for the generation, which a repair may move on."""
    columns = "items, tokens, head_messages, waiting_for, next_item, next_value, next_word, next_namespace"
    return [*rows(saver, f"SELECT {columns} FROM thread"), *rows(saver, "SELECT number, tokens FROM item ORDER BY number")]


def test_statistics_tell_what_the_tables_take(database: Database) -> None:
    with DeltaSaver.open(f"{database.url}?schema={SHARED.new_schema()}") as saver:
        ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("hello " * 20, id=str(at)) for at in range(50)])
        told = stats(saver)
    assert (told.threads, told.checkpoints, told.messages, told.exact) == (1, 1, 50, True)
    assert told.bytes["texts"] == 50 * 120
    assert sum(told.bytes.values()) == told.file_bytes
    assert min(told.bytes["checkpoints"], told.bytes["indexes"]) > 0
