"""With `compress`, bytes are compressed here, and texts by the server: everybody can read them in SQL."""

from __future__ import annotations

import io

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads
from langmem_ext.storage.compression import MARK
from postgres.server import SHARED, Database

LONG = "a long text, which says the same again and again. " * 20
MESSAGES = [HumanMessage(LONG, id="h"), AIMessage(LONG, id="a", response_metadata={"note": LONG})]


@pytest.mark.parametrize("imported", [False, True], ids=["written", "imported"])
def test_a_text_stays_a_text_and_what_is_bytes_is_compressed(database: Database, imported: bool) -> None:
    schema = SHARED.new_schema()
    with DeltaSaver.open(f"{database.url}?schema={schema}", compress=True) as saver:
        if imported:
            with DeltaSaver.open(":memory:") as other:
                ThreadChatMessageHistory("t", other).add_messages(MESSAGES)
                Threads(saver).import_from(io.StringIO("".join(Threads(other).export_lines("t"))), keep_ids=True)
        else:
            ThreadChatMessageHistory("t", saver).add_messages(MESSAGES)
    with psycopg.connect(database.url) as connection:
        rows = connection.execute(f"SELECT text, rest FROM {schema}.item ORDER BY number".encode()).fetchall()
    assert [text for text, _ in rows] == [LONG, LONG]
    assert rows[1][1][:1] == MARK
    with DeltaSaver.open(f"{database.url}?schema={schema}") as fresh:
        assert ThreadChatMessageHistory("t", fresh).messages == MESSAGES
