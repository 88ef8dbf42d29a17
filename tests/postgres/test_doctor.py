"""What the doctor finds and mends on PostgreSQL, where a thread's number follows from its id."""

from __future__ import annotations

import psycopg
from langchain_core.messages import HumanMessage

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


def test_statistics_tell_what_the_tables_take(database: Database) -> None:
    with DeltaSaver.open(f"{database.url}?schema={SHARED.new_schema()}") as saver:
        ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("hello " * 20, id=str(at)) for at in range(50)])
        told = stats(saver)
    assert (told.threads, told.checkpoints, told.messages, told.exact) == (1, 1, 50, True)
    assert told.bytes["texts"] == 50 * 120
    assert sum(told.bytes.values()) == told.file_bytes
    assert min(told.bytes["checkpoints"], told.bytes["indexes"]) > 0
