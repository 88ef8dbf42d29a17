"""The demonstration does what it says, and the figures it prints are measured."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.sqlite import SqliteSaver

from graphs.demo import FIRST, LATER, THREAD, bytes_of, tables_of
from langmem_ext import DeltaSaver

ROOT = Path(__file__).parents[2]
CONFIG: Any = {"configurable": {"thread_id": THREAD}}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the demonstration printed, and the folder of its databases."""
    folder = tmp_path_factory.mktemp("demo")
    command = [sys.executable, "-m", "graphs.demo", "--folder", str(folder)]
    return subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT).stdout, folder


def test_the_question_is_asked_by_one_process_and_answered_to_another(played: tuple[str, Path]) -> None:
    printed, _ = played
    events = re.findall(r"process (\d+) (begins|ends)|(What's your order ID\?|you › It's O-12345|Order O-12345 is processing)", printed)
    first, second = events[0][0], events[3][0]
    assert first != second
    assert [(pid, does or said) for pid, does, said in events[:6]] == [
        (first, "begins"),
        ("", "What's your order ID?"),
        (first, "ends"),
        (second, "begins"),
        ("", "you › It's O-12345"),
        ("", "Order O-12345 is processing"),
    ]
    assert (second, "ends", "") in events


def test_the_running_summary_shows_and_holds_nothing_sensitive(played: tuple[str, Path]) -> None:
    summary = played[0].split("The running summary")[1].split("──")[0]
    assert "user: I want to check my order" in summary
    assert "9 Park Road" not in summary


def test_both_databases_hold_the_whole_conversation(played: tuple[str, Path]) -> None:
    _, folder = played
    said = []
    for opened in (DeltaSaver.from_conn_string(str(folder / "delta.db")), SqliteSaver.from_conn_string(str(folder / "sqlite.db"))):
        with opened as saver:
            checkpoint = saver.get(CONFIG)
        assert checkpoint is not None
        said.append([(message.type, message.text) for message in checkpoint["channel_values"]["messages"]])
    assert said[0] == said[1]
    assert [text for kind, text in said[0] if kind == "human"] == [*FIRST, *LATER]


def test_the_sizes_are_those_of_the_files(played: tuple[str, Path]) -> None:
    printed, folder = played
    found = re.search(r"DeltaSaver ([\d,]+) bytes, SqliteSaver ([\d,]+) bytes", printed)
    assert found is not None
    ours, theirs = (int(figure.replace(",", "")) for figure in found.groups())
    assert (ours, theirs) == tuple((folder / name).stat().st_size for name in ("delta.db", "sqlite.db"))
    assert ours * 2 < theirs


def test_every_table_that_holds_something_is_listed(played: tuple[str, Path]) -> None:
    printed, folder = played
    tables = {table.name: table for table in tables_of(folder / "delta.db")}
    assert {"item", "checkpoint", "value", "thread"} <= tables.keys()
    assert all(re.search(rf"^  {name} +{table.rows:,} +{table.bytes:,}  \w", printed, re.MULTILINE) for name, table in tables.items())
    assert tables["item"].rows >= len([*FIRST, *LATER])
    assert sum(table.bytes for table in tables.values()) <= (folder / "delta.db").stat().st_size


def test_without_page_statistics_the_values_are_measured() -> None:
    def no_statistics(action: int, table: str | None, *rest: str | None) -> int:
        return sqlite3.SQLITE_DENY if table == "dbstat" else sqlite3.SQLITE_OK

    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE box (label TEXT, body BLOB)")
        connection.execute("INSERT INTO box VALUES ('é', zeroblob(100)), (NULL, NULL)")
        connection.set_authorizer(no_statistics)
        assert bytes_of(connection, "box") == 102
