"""Promise: a `repr` says which database it is and how much is in it.

It never fails, waits for nobody, and shows no password.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from patience import PATIENCE_S
from savers import new_schema

from langmem_ext import (
    ConversationMemory,
    DeltaSaver,
    MessageLog,
    ThreadChatMessageHistory,
    Threads,
)
from langmem_ext.storage.operation import Op, execute, operation
from langmem_ext.storage.threads import list as list_ops


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A database with two threads, one of them of the owner u1, and three messages."""
    path = str(tmp_path.resolve() / "chat.db")
    with ThreadChatMessageHistory("t", path) as history:
        history.add_messages([HumanMessage("one"), HumanMessage("two")])
    with ThreadChatMessageHistory("own", path, owner="u1") as history:
        history.add_messages([HumanMessage("three")])
    return path


VIEWS: dict[str, tuple[Callable[[MessageLog], Any], str]] = {
    "MessageLog": (lambda log: log, "MessageLog({path!r}, 2 threads, 3 messages)"),
    "DeltaSaver": (DeltaSaver, "DeltaSaver({path!r}, 2 threads, 3 messages)"),
    "DeltaSaver of an owner": (
        lambda log: DeltaSaver(log, owner="u1"),
        "DeltaSaver({path!r}, owner='u1', 1 thread, 1 message)",
    ),
    "Threads": (Threads, "Threads({path!r}, 2 threads, 3 messages)"),
    "Threads of nobody's": (
        lambda log: Threads(log, owner="u2"),
        "Threads({path!r}, owner='u2', 0 threads, 0 messages)",
    ),
    "history": (
        lambda log: ThreadChatMessageHistory("t", log),
        "ThreadChatMessageHistory('t', {path!r}, 2 messages)",
    ),
    "history of another's": (
        lambda log: ThreadChatMessageHistory("own", log, owner="u2"),
        "ThreadChatMessageHistory('own', {path!r}, owner='u2', 0 messages)",
    ),
    "new history": (
        lambda log: ThreadChatMessageHistory("new", log),
        "ThreadChatMessageHistory('new', {path!r}, 0 messages)",
    ),
    "Continuation": (
        lambda log: Threads(log, tool_ttl=None).continue_("t", tool="desk"),
        "Continuation('t', {path!r}, tool='desk', 2 messages)",
    ),
    "ConversationMemory": (
        ConversationMemory,
        "ConversationMemory({path!r}, 2 threads, 3 messages)",
    ),
    "SessionHandle": (
        lambda log: ConversationMemory(log).for_session("t"),
        "SessionHandle('t', {path!r}, 2 messages)",
    ),
}
COUNTS = ("thread", "threads", "message", "messages")


def pretty(thing: Any) -> str:
    """What IPython shows of a thing; it is not there in all environments of these tests."""
    texts: list[str] = []
    thing._repr_pretty_(SimpleNamespace(text=texts.append), False)
    return "".join(texts)


def without_counts(shown: str) -> str:
    """What is shown where nothing may be asked."""
    parts = shown.removesuffix(")").split(", ")
    return ", ".join(part for part in parts if part.split()[-1] not in COUNTS) + ")"


@pytest.mark.parametrize("view", VIEWS)
def test_it_names_the_database_and_counts(view: str, path: str) -> None:
    make, shown = VIEWS[view]
    with closing(MessageLog.open(path)) as log:
        assert repr(make(log)) == shown.format(path=path)


@pytest.mark.parametrize("view", VIEWS)
async def test_on_an_event_loop_it_asks_nothing_and_a_notebook_shows_all(
    view: str, path: str
) -> None:
    make, shown = VIEWS[view]
    with closing(MessageLog.open(path)) as log:
        made, log_was_asked = make(log), log.driver.glance
        log.driver.glance = None  # type: ignore[method-assign,assignment]
        assert repr(made) == without_counts(shown.format(path=path))
        log.driver.glance = log_was_asked  # type: ignore[method-assign]
        assert pretty(made) == shown.format(path=path)


@pytest.mark.parametrize("view", VIEWS)
def test_after_close_it_says_closed(view: str, path: str) -> None:
    make, shown = VIEWS[view]
    log = MessageLog.open(path)
    made = make(log)
    log.close()
    assert repr(made) == without_counts(shown.format(path=path)).replace(")", ", closed)")


def test_in_a_transaction_it_asks_nothing_and_changes_nothing(path: str) -> None:
    with closing(sqlite3.connect(path, check_same_thread=False)) as connection:
        saver = DeltaSaver(connection)
        counted = repr(saver)
        connection.execute("BEGIN")
        connection.execute("UPDATE thread SET title = 'mine' WHERE id = 't'")
        assert repr(saver) == f"DeltaSaver({path!r})"
        assert connection.in_transaction
        connection.rollback()
        assert repr(saver) == counted
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (5_000,)


def test_of_a_connection_that_its_program_has_closed_it_fails_not(path: str) -> None:
    connection = sqlite3.connect(path, check_same_thread=False)
    saver = DeltaSaver(connection)
    connection.close()
    assert repr(saver) == f"DeltaSaver({path!r})"


def test_inside_an_operation_and_beside_one_it_waits_for_nobody(path: str) -> None:
    seen: list[str] = []
    with DeltaSaver.open(path) as saver:

        @operation
        def looks() -> Op[None]:
            yield from execute("UPDATE thread SET title = 'mine'")
            seen.append(repr(saver))
            other = threading.Thread(target=lambda: seen.append(repr(saver)))
            other.start()
            other.join(PATIENCE_S)

        saver.log.run(looks(), write=True)
        assert seen == [f"DeltaSaver({path!r})"] * 2
        assert Threads(saver).get("t").title == "mine"


def test_another_program_that_has_the_file_to_itself_is_not_waited_for(path: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        log = MessageLog.open(path)
        log.driver._connection.execute("PRAGMA journal_mode = DELETE")  # type: ignore[attr-defined]
        log.driver._connection.execute("PRAGMA busy_timeout = 3600000")  # type: ignore[attr-defined]
        other.execute("BEGIN EXCLUSIVE")
        assert repr(log) == f"MessageLog({path!r})"
        other.execute("ROLLBACK")
        assert repr(log) == f"MessageLog({path!r}, 2 threads, 3 messages)"
        log.close()


def test_of_many_threads_no_more_are_counted_than_a_moment_takes(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(list_ops, "MOST_GLANCED", 1)
    monkeypatch.setattr("langmem_ext.log.shown.MOST_GLANCED", 1)
    with DeltaSaver.open(path) as saver:
        assert repr(saver) == f"DeltaSaver({path!r}, over 1 threads)"


def test_a_damaged_count_is_left_out(path: str) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("UPDATE thread SET items = 'many', head_messages = 'many'")
        other.commit()
    with DeltaSaver.open(path) as saver:
        assert repr(saver).startswith(f"DeltaSaver({path!r}")
        assert (
            repr(ThreadChatMessageHistory("t", saver)) == f"ThreadChatMessageHistory('t', {path!r})"
        )


def test_what_is_not_made_yet_has_one_too() -> None:
    assert repr(DeltaSaver.__new__(DeltaSaver)) == "DeltaSaver(…)"
    assert repr(DeltaSaver()) == "DeltaSaver(':memory:', 0 threads, 0 messages)"


@pytest.mark.postgres
def test_of_a_server_it_names_database_and_schema_and_no_password(tmp_path: Path) -> None:
    url = new_schema(tmp_path)
    schema = url.rpartition("=")[2]
    with DeltaSaver.open(f"{url}&password=hidden&application_name=mine") as saver:
        shown = repr(saver)
        assert shown == f"DeltaSaver({saver.log.driver.place})"
        assert shown.endswith(f", schema {schema})")
        assert "hidden" not in shown
        assert "hidden" not in pretty(saver)
    assert repr(saver) == shown.replace(")", ", closed)")
