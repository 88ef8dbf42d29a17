"""The doctor and the statistics as a user calls them: in a pipe and at a terminal."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest
from commands import data, run
from langchain_core.messages import HumanMessage
from prune_reference import change, rows

from langmem_ext import DeltaSaver, ThreadChatMessageHistory

ON_A_FILE = pytest.mark.parametrize("durable", ["file"], indirect=True)
"""Of a test that is about the file itself, or about a terminal and nothing of the storage."""


@pytest.fixture
def db(place: str) -> str:
    with DeltaSaver.from_conn_string(place) as saver:
        for thread in ("order-1", "order-2"):
            ThreadChatMessageHistory(thread, saver).add_messages([HumanMessage(f"hello {thread}")])
    return place


def number_of(db: str, thread: str) -> int:
    with DeltaSaver.from_conn_string(db) as saver:
        [(number,)] = rows(saver, f"SELECT number FROM thread WHERE id = '{thread}'")
        return int(number)


def test_a_sound_database_is_well_and_what_was_pruned_is_no_fault(db: str) -> None:
    done = run("doctor", db)
    assert done.stdout == "2 threads, 2 checkpoints, 2 messages: all is well\n"
    assert done.stderr == ""
    with DeltaSaver.from_conn_string(db) as saver:
        ThreadChatMessageHistory("order-1", saver).add_messages([HumanMessage("hello again")])
    run("prune", "--db", db, "--keep-last", "1", "--yes")
    assert run("doctor", db).stdout.endswith(": all is well, 1 note\n")


def test_what_has_drifted_is_found_and_put_right(db: str) -> None:
    change(db, "UPDATE thread SET items = 7, next_item = 0 WHERE id = 'order-1'")
    number = number_of(db, "order-1")
    assert run("doctor", db, code=1).stdout.splitlines() == [
        f"wrong: thread {number} of thread 'order-1': items is 7 and should be 1",
        f"wrong: thread {number} of thread 'order-1': next_item is 0 and should be 1",
        "2 threads, 2 checkpoints, 2 messages: 2 wrong (--fix repairs what it can)",
    ]
    fixed = run("doctor", db, "--fix").stdout.splitlines()
    assert fixed[-1] == "2 threads, 2 checkpoints, 2 messages: 2 fixed"
    assert run("doctor", db).stdout.endswith("all is well\n")


def test_damage_stays_and_is_named_in_json(db: str) -> None:
    change(db, "UPDATE item SET role = 99")
    [report] = data("doctor", db, "--fix", code=1)
    assert (report["ok"], report["threads"]) == (False, 2)
    # The counts of the threads' tokens are put right: nobody knows what a damaged message costs.
    found = [finding for finding in report["findings"] if not finding["fixed"]]
    assert {finding["severity"] for finding in found} == {"damaged"}
    assert sorted(finding["thread"] for finding in found) == ["order-1", "order-2"]
    assert all(len(finding["checkpoints"]) == 1 for finding in found)


def test_statistics_in_a_pipe_are_lines_and_json(db: str) -> None:
    lines = run("stats", db).stdout.splitlines()
    assert lines[0] == "threads\t2"
    assert sum(line.startswith("thread\torder-") for line in lines) == 2
    [found] = data("stats", db)
    assert (found["threads"], found["messages"]) == (2, 2)
    assert sum(found["bytes"].values()) == found["file_bytes"]


@pytest.mark.process
@ON_A_FILE
def test_at_a_terminal_there_are_tables_and_the_database_stays_as_it_is(
    db: str, terminal: Callable[..., pexpect.spawn]
) -> None:
    change(db, "UPDATE thread SET tokens = 70 WHERE id = 'order-1'")
    before = Path(db).read_bytes()
    for command, words in (
        ("doctor", ("wrong", "order-1", "tokens")),
        ("stats", ("largest threads", "order-1", "kB")),
    ):
        shown = terminal(command, db).read()
        assert [word for word in words if word not in shown] == []
        assert "\x1b[" in shown
    assert Path(db).read_bytes() == before


def test_words_from_the_database_cannot_steer_the_terminal(place: str) -> None:
    with DeltaSaver.from_conn_string(place) as saver:
        ThreadChatMessageHistory("evil\x1b[2Jname", saver).add_messages([HumanMessage("x")])
    change(place, "UPDATE thread SET items = 7")
    for command, code in (("doctor", 1), ("stats", 0)):
        shown = run(command, place, code=code).stdout
        assert "evil" in shown
        assert "\x1b" not in shown
