"""Promise: a `repr` says which database it is; it never fails, and shows no password."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from savers import new_schema

from langmem_ext import (
    ConversationMemory,
    DeltaSaver,
    MessageLog,
    ThreadChatMessageHistory,
    Threads,
)


def test_every_view_names_its_database_and_says_when_it_is_closed(tmp_path: Path) -> None:
    path = str(tmp_path.resolve() / "chat.db")
    log = MessageLog.open(path)
    history = ThreadChatMessageHistory("t", log)
    history.add_messages([HumanMessage("one")])
    memory = ConversationMemory(log)
    views = [log, DeltaSaver(log, owner="u1"), Threads(log), history, memory]
    views += [memory.for_session("t"), Threads(log, tool_ttl=None).continue_("t", tool="desk")]
    for view in views:
        assert repr(view).startswith(f"{type(view).__name__}(")
        assert repr(path) in repr(view)
    assert "owner='u1'" in repr(views[1])
    log.close()
    for view in views:
        assert repr(view).endswith(", closed)")


def test_it_changes_nothing_and_waits_for_nobody(tmp_path: Path) -> None:
    path = str(tmp_path.resolve() / "chat.db")
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        saver = DeltaSaver(connection)
        connection.execute("BEGIN EXCLUSIVE")
        with DeltaSaver.open(str(tmp_path / "other.db")) as other:
            assert repr(other).startswith("DeltaSaver(")
        assert repr(saver).startswith(f"DeltaSaver({path!r}")
        assert connection.in_transaction
        connection.rollback()
    assert repr(saver).startswith(f"DeltaSaver({path!r}"), "its program has closed the connection"
    assert repr(DeltaSaver.__new__(DeltaSaver)) == "DeltaSaver(…)"
    assert repr(DeltaSaver()).startswith("DeltaSaver(':memory:'")


@pytest.mark.postgres
def test_of_a_server_it_names_database_and_schema_and_no_password(tmp_path: Path) -> None:
    url = new_schema(tmp_path)
    with DeltaSaver.open(f"{url}&password=hidden&application_name=mine") as saver:
        shown = repr(saver)
        assert f"schema {url.rpartition('=')[2]}" in shown
        assert "hidden" not in shown
