"""The doctor and the statistics as a user calls them: in a pipe and at a terminal."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from commands import call as carry_out
from langchain_core.messages import HumanMessage
from patience import PATIENCE_S
from prune_reference import change, rows
from typer.testing import CliRunner

from langmem_ext import DeltaSaver, ThreadChatMessageHistory
from langmem_ext.cli.app import app
from langmem_ext.cli.commands.database.inspection import bytes_in_words
from langmem_ext.storage.schema.dialect import ROW_THREAD

COMMAND = [sys.executable, "-m", "langmem_ext.cli"]

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


def call(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return carry_out(list(map(str, words)), environment=os.environ, folder=Path.cwd())


def test_a_sound_database_is_said_to_be_well(db: str) -> None:
    done = call("doctor", db)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "2 threads, 2 checkpoints, 2 messages: all is well\n"


def test_what_was_pruned_is_noted_and_no_fault(db: str) -> None:
    with DeltaSaver.from_conn_string(db) as saver:
        ThreadChatMessageHistory("order-1", saver).add_messages([HumanMessage("hello again")])
    assert call("prune", "--db", db, "--keep-last", "1", "--yes").returncode == 0
    done = call("doctor", db)
    assert done.returncode == 0
    assert done.stdout.endswith(": all is well, 1 note\n")


def test_what_has_drifted_is_found_and_put_right(db: str) -> None:
    change(db, "UPDATE thread SET items = 7, next_item = 0 WHERE id = 'order-1'")
    found, number = call("doctor", db), number_of(db, "order-1")
    assert found.returncode == 1
    assert found.stdout.splitlines() == [
        f"wrong: thread {number} of thread 'order-1': items is 7 and should be 1",
        f"wrong: thread {number} of thread 'order-1': next_item is 0 and should be 1",
        "2 threads, 2 checkpoints, 2 messages: 2 wrong (--fix repairs what it can)",
    ]
    fixed = call("doctor", db, "--fix")
    assert fixed.returncode == 0
    assert fixed.stdout.splitlines()[-1] == "2 threads, 2 checkpoints, 2 messages: 2 fixed"
    assert call("doctor", db).stdout.endswith("all is well\n")


def test_damage_stays_and_is_named_in_json(db: str) -> None:
    number = number_of(db, "order-2")
    change(db, f"UPDATE item SET role = 99 WHERE {ROW_THREAD} = {number}")
    done = call("doctor", db, "--fix", "--json")
    report = json.loads(done.stdout)
    assert (done.returncode, report["ok"], report["threads"]) == (1, False, 2)
    # The count of its thread's tokens is put right: nobody knows what a damaged message costs.
    [finding] = [finding for finding in report["findings"] if not finding["fixed"]]
    assert (finding["severity"], finding["thread"], finding["place"]) == (
        "damaged",
        "order-2",
        f"item {number}:0",
    )
    assert len(finding["checkpoints"]) == 1


def test_statistics_in_a_pipe_are_lines_and_json(db: str) -> None:
    lines = call("stats", db).stdout.splitlines()
    assert lines[0] == "threads\t2"
    assert sum(line.startswith("thread\torder-") for line in lines) == 2
    found = json.loads(call("stats", db, "--json").stdout)
    assert (found["threads"], found["messages"], sum(found["bytes"].values())) == (
        2,
        2,
        found["file_bytes"],
    )


@pytest.mark.parametrize("command", ["doctor", "stats"])
def test_a_file_that_is_missing_or_none_is_one_line_and_is_left_alone(
    command: str, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("notes " * 200)
    for name, words in (
        ("none.db", "not found: pass the path"),
        ("notes.txt", "not a SQLite database"),
    ):
        done = CliRunner().invoke(app, [command, str(tmp_path / name)])
        assert (done.exit_code, done.stdout) == (1, "")
        assert words in done.stderr
        assert len(done.stderr.splitlines()) == 1
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("words", [["doctor"], ["stats"], ["threads", "list"], ["chat"]])
def test_a_file_whose_log_was_lost_is_one_line(words: list[str], tmp_path: Path) -> None:
    copied = tmp_path / "copy.db"
    with DeltaSaver.open(str(tmp_path / "memory.db")) as saver:
        ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("x")])
        shutil.copy(tmp_path / "memory.db", copied)
    done = call(*words, "--db", copied)
    assert done.returncode == 1
    assert done.stdout == ""
    [line] = done.stderr.splitlines()
    assert "lost its write-ahead log" in line


@ON_A_FILE
def test_neither_changes_the_database(db: str) -> None:
    before = Path(db).read_bytes()
    for command in ("doctor", "stats"):
        assert call(command, db).returncode == 0
    assert Path(db).read_bytes() == before


@pytest.mark.process
@ON_A_FILE
@pytest.mark.parametrize(
    ("command", "words"),
    [("doctor", ["wrong", "order-1", "tokens"]), ("stats", ["largest threads", "order-1", "kB"])],
)
def test_at_a_terminal_there_are_tables(command: str, words: list[str], db: str) -> None:
    change(db, "UPDATE thread SET tokens = 70 WHERE id = 'order-1'")
    shown = pexpect.run(
        " ".join([*COMMAND, command, str(db)]),
        timeout=PATIENCE_S,
        encoding="utf-8",
        env={"TERM": "xterm", "COLUMNS": "100"},
    )
    assert [word for word in words if word not in shown] == []
    assert "\x1b[" in shown


def test_words_from_the_database_cannot_steer_the_terminal(place: str) -> None:
    with DeltaSaver.from_conn_string(place) as saver:
        ThreadChatMessageHistory("evil\x1b[2Jname", saver).add_messages([HumanMessage("x")])
    change(place, "UPDATE thread SET items = 7")
    for command in ("doctor", "stats"):
        assert "\x1b" not in call(command, place).stdout


def test_bytes_are_said_as_people_say_them() -> None:
    assert [bytes_in_words(size) for size in (0, 1_234, 2_500_000)] == [
        "0.0 kB",
        "1.2 kB",
        "2.5 MB",
    ]
