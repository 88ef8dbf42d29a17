"""Promise: one operation is atomic.

Broken at every statement and at COMMIT, it leaves no row, and the next one works.

On PostgreSQL each is broken in both ways in which it is run: sent at once, with what is expected;
and, where that has failed, asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from clock import Clock
from failing_database import Faults, failing_log
from langchain_core.messages import AIMessage, HumanMessage
from prune_reference import rows
from savers import Backend

from langmem_ext import ConversationMemory, DeltaSaver, StorageError, ThreadChatMessageHistory

pytestmark = pytest.mark.contract


LONG = "x" * 500
FIRST, SECOND, THIRD = (f"1f1e6000-0000-6000-8000-00000000000{digit}" for digit in (1, 2, 3))


def checkpoint(id: str, values: dict[str, Any], version: str) -> Any:
    return {
        "v": 4,
        "id": id,
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": values,
        "channel_versions": dict.fromkeys(values, version),
        "versions_seen": {"node": {"messages": version}},
        "updated_channels": list(values),
    }


def put(
    saver: DeltaSaver, id: str, values: dict[str, Any], parent: str | None, namespace: str = ""
) -> None:
    config: Any = {
        "configurable": {
            "thread_id": "t",
            "checkpoint_ns": namespace,
            **({"checkpoint_id": parent} if parent else {}),
        }
    }
    version = f"{int(id[-1]):032}.0000000000000001"
    saver.put(
        config,
        checkpoint(id, values, version),
        {"source": "loop", "step": 1, "parents": {}},
        dict.fromkeys(values, version),
    )


def prepare(saver: DeltaSaver) -> None:
    """A thread with one checkpoint, and a pending write whose message has no id yet."""
    put(saver, FIRST, {"messages": [HumanMessage("hello", id="h1")], "files": LONG}, None)
    saver.put_writes(
        at(FIRST), [("messages", AIMessage("unnamed")), ("note", LONG)], "task-1", "path"
    )


def prepare_to_forget(saver: DeltaSaver) -> None:
    """The same, and a checkpoint of a run on top of it."""
    prepare(saver)
    put_of_a_run(saver)


def prepare_to_clear(saver: DeltaSaver) -> None:
    """The same, and values of a session."""
    prepare(saver)
    session = ConversationMemory(saver).for_session("t")
    session.merge({"a": LONG})
    session.set_waiting("b")


FORGETTING = ("delete_for_runs", "copy_thread", "prune", "prune_delete")


def at(id: str) -> Any:
    return {"configurable": {"thread_id": "t", "checkpoint_ns": "", "checkpoint_id": id}}


def put_next(saver: DeltaSaver) -> None:
    messages = [
        HumanMessage("hello", id="h1"),
        AIMessage("unnamed", id="a1"),
        AIMessage("new", id="a2"),
    ]
    put(saver, SECOND, {"messages": messages, "files": LONG + "y"}, FIRST)


def put_in_new_thread_and_namespace(saver: DeltaSaver) -> None:
    config: Any = {"configurable": {"thread_id": "u", "checkpoint_ns": "child:1"}}
    saver.put(
        config,
        checkpoint(THIRD, {"messages": [HumanMessage("hi")]}, "1"),
        {"step": 0},
        {"messages": "1"},
    )


def put_together(saver: DeltaSaver) -> None:
    """Checkpoints and writes of two threads."""
    version = f"{2:032}.0000000000000001"
    values = {
        "messages": [HumanMessage("hello", id="h1"), AIMessage("unnamed", id="a1")],
        "files": LONG + "y",
    }
    other: Any = {"configurable": {"thread_id": "u", "checkpoint_ns": ""}}
    saver.put_all(
        [
            (
                "put",
                (
                    other,
                    checkpoint(THIRD, values, version),
                    {"step": 0},
                    dict.fromkeys(values, version),
                ),
            ),
            (
                "put_writes",
                (at(SECOND), [("messages", AIMessage("new")), ("note", LONG + "w")], "task-2"),
            ),
            (
                "put",
                (
                    at(FIRST),
                    checkpoint(SECOND, values, version),
                    {"step": 2},
                    dict.fromkeys(values, version),
                ),
            ),
        ]
    )


def put_of_a_run(saver: DeltaSaver) -> None:
    """A checkpoint of a run whose message and value are its own, and writes of its own."""
    config: Any = at(FIRST) | {"metadata": {"run_id": "run-1"}}
    values = {
        "messages": [HumanMessage("hello", id="h1"), AIMessage("of the run", id="a2")],
        "files": LONG + "z",
    }
    version = f"{2:032}.0000000000000001"
    saver.put(
        config,
        checkpoint(SECOND, values, version),
        {"source": "loop", "step": 2},
        dict.fromkeys(values, version),
    )
    saver.put_writes(
        at(SECOND), [("messages", AIMessage("written")), ("note", LONG + "w")], "task-3"
    )


OPERATIONS: dict[str, Callable[[DeltaSaver], object]] = {
    "put": put_next,
    "put_new_thread": put_in_new_thread_and_namespace,
    "put_all": put_together,
    "put_writes": lambda saver: saver.put_writes(
        at(FIRST), [("messages", [AIMessage("x"), AIMessage("y")]), ("big", LONG.upper())], "task-2"
    ),
    "put_writes_again": lambda saver: saver.put_writes(
        at(FIRST), [("messages", AIMessage("z")), ("__error__", "boom")], "task-1", "other"
    ),
    "delete_thread": lambda saver: saver.delete_thread("t"),
    "delete_for_runs": lambda saver: saver.delete_for_runs(["run-1"]),
    "copy_thread": lambda saver: saver.copy_thread("t", "copy"),
    "prune": lambda saver: saver.prune(["t"]),
    "prune_delete": lambda saver: saver.prune(["t"], strategy="delete"),
    "history_add": (
        lambda saver: ThreadChatMessageHistory("t", saver).add_messages(
            [HumanMessage("more", id="m"), AIMessage("new", id="h1")]
        )
    ),
    "history_clear": lambda saver: ThreadChatMessageHistory("t", saver).clear(),
    "session_merge": lambda saver: (
        ConversationMemory(saver).for_session("t").merge({"a": LONG, "b": 1})
    ),
    "session_waiting": lambda saver: ConversationMemory(saver).for_session("t").set_waiting("a"),
    "session_prune": lambda saver: ConversationMemory(saver).for_session("t").prune(0),
    "session_clear": lambda saver: ConversationMemory(saver).for_session("t").clear(),
    "session_begin": lambda saver: (
        ConversationMemory(saver).for_session("u").set_last_result([LONG])
    ),
}


def dump(saver: DeltaSaver) -> list[str]:
    """Every row of the database."""
    number = "thread, number" if saver.log.driver.remote else "key"
    tables = {
        "item": number,
        "value": number,
        "checkpoint": "thread, namespace, id",
        "thread": "number",
        "setting": "name",
    }
    tables |= {
        "pending_write": "thread, namespace, checkpoint, task",
        "word": "thread, number",
        "namespace": "thread, number",
    }
    return [
        f"{table} {row}"
        for table, order in tables.items()
        for row in rows(saver, f"SELECT * FROM {table} ORDER BY {order}")
    ]


def observe(saver: DeltaSaver) -> list[Any]:
    return [*saver.list(None), ThreadChatMessageHistory("t", saver).messages]


def break_everywhere(saver: DeltaSaver, name: str, faults: Faults, *, first: bool) -> int:
    """Break an operation at each of its statements, until it is not broken any more; at how many it
    was.
    """
    before, seen = dump(saver), observe(saver)
    statement = int(first)
    while True:
        faults.begin(statement, first=first)
        try:
            OPERATIONS[name](saver)
        except StorageError:
            reached = faults.reached
            faults.end()
            assert dump(saver) == before, f"statement {statement} left something behind"
            assert observe(saver) == seen, f"statement {statement} left something in memory"
            if first and reached == 1:
                return 0  # it cannot be run again, and was not
            statement += 1
        else:
            faults.end()
            return statement


@pytest.mark.parametrize("name", OPERATIONS)
def test_an_operation_that_fails_at_any_statement_leaves_no_row_and_the_next_one_works(
    name: str, durable: Backend, tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    # All runs have one clock, which stands still: what they leave can be compared to the letter.
    prepare_thread = (
        prepare_to_forget
        if name in FORGETTING
        else prepare_to_clear
        if name == "session_clear"
        else prepare
    )
    faults = Faults()
    for first in (False, True) if durable.name == "postgres" else (False,):
        with DeltaSaver(failing_log(durable.new_url(tmp_path), faults, monkeypatch)) as saver:
            prepare_thread(saver)
            broken = break_everywhere(saver, name, faults, first=first)
            assert broken >= 3 or first
            if not broken:
                continue
            # After all these failures in one process, the operation did what it does in a process
            # where nothing ever failed.
            with DeltaSaver.open(durable.new_url(tmp_path)) as healthy:
                prepare_thread(healthy)
                OPERATIONS[name](healthy)
                assert _anonymous(observe(saver)) == _anonymous(observe(healthy))
                assert _shape(dump(saver)) == _shape(dump(healthy))


def _anonymous(found: list[Any]) -> list[Any]:
    """What was read, without what a history's edit draws anew: checkpoint id, time and version."""
    return [
        (
            item
            if isinstance(item, list)
            else (item.checkpoint["channel_values"], item.metadata, item.pending_writes)
        )
        for item in found
    ]


def _shape(lines: list[str]) -> list[str]:
    """How many rows each table has."""
    return sorted(line.split()[0] for line in lines)


def test_an_error_inside_the_callers_value_changes_nothing(url: str) -> None:
    with DeltaSaver.from_conn_string(url) as saver:
        prepare(saver)
        before = dump(saver)
        with pytest.raises(TypeError):
            saver.put_writes(at(FIRST), [("ok", 1), ("bad", object())], "task-9")
        with pytest.raises(TypeError):
            put(saver, SECOND, {"messages": [HumanMessage("x", id="x")], "bad": object()}, FIRST)
        assert dump(saver) == before
