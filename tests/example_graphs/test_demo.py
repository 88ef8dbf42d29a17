"""The demonstration does what it says, and the figures it prints are measured."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from postgres.server import Database
from repository import ROOT

from graphs.contents import bytes_of, in_schema, tables_of
from graphs.demo import FIRST, LATER, SCHEMA, THREAD
from graphs.environment import VARIABLES
from langmem_ext import DeltaSaver, ThreadChatMessageHistory

pytestmark = pytest.mark.process


CONFIG: Any = {"configurable": {"thread_id": THREAD}}


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the demonstration printed, and the folder of its databases."""
    folder = tmp_path_factory.mktemp("demo")
    done = play(folder)
    done.check_returncode()
    return done.stdout, folder


def play(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """The whole demonstration, with variables in its environment, and no others that name a
    database.
    """
    command = [sys.executable, "-m", "graphs.demo", "--folder", str(folder)]
    environment = {
        name: value for name, value in os.environ.items() if name not in VARIABLES
    } | variables
    return subprocess.run(
        command, check=False, capture_output=True, text=True, cwd=ROOT, env=environment
    )


def test_the_question_is_asked_by_one_process_and_answered_to_another(
    played: tuple[str, Path],
) -> None:
    printed, _ = played
    events = re.findall(
        r"process (\d+) (begins|ends)|(What's your order ID\?|you › It's O-12345|Order O-12345 is"
        r" processing)",
        printed,
    )
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


def test_the_summary_holds_nothing_sensitive_and_both_databases_the_whole_conversation(
    played: tuple[str, Path],
) -> None:
    printed, folder = played
    summary = printed.split("The running summary")[1].split("──")[0]
    assert "user: I want to check my order" in summary
    assert "9 Park Road" not in summary
    said = []
    for kind, name in ((DeltaSaver, "delta.db"), (SqliteSaver, "sqlite.db")):
        with kind.from_conn_string(str(folder / name)) as saver:
            checkpoint = saver.get(CONFIG)
        assert checkpoint is not None
        messages = checkpoint["channel_values"]["messages"]
        said.append([(message.type, message.text) for message in messages])
    assert said[0] == said[1]
    assert [text for kind, text in said[0] if kind == "human"] == [*FIRST, *LATER]


def test_the_sizes_are_those_of_the_files_and_every_table_is_listed(
    played: tuple[str, Path],
) -> None:
    printed, folder = played
    found = re.search(r"DeltaSaver ([\d,]+) bytes, SqliteSaver ([\d,]+) bytes", printed)
    assert found is not None
    sizes = [int(figure.replace(",", "")) for figure in found.groups()]
    assert sizes == [(folder / name).stat().st_size for name in ("delta.db", "sqlite.db")]
    assert sizes[0] * 2 < sizes[1]
    tables = {table.name: table for table in tables_of(str(folder / "delta.db"))}
    assert {"item", "checkpoint", "value", "thread"} <= tables.keys()
    for name, table in tables.items():
        line = rf"^  {name} +{table.rows:,} +{table.bytes:,}  \w"
        assert re.search(line, printed, re.MULTILINE), name
    assert tables["item"].rows >= len([*FIRST, *LATER])
    assert sum(table.bytes for table in tables.values()) <= sizes[0]


def test_one_variable_has_it_played_on_postgres_where_it_was_played_before(
    database: Database, tmp_path: Path
) -> None:
    url = in_schema(database.url, SCHEMA)
    with DeltaSaver.open(url) as saver:
        ThreadChatMessageHistory(THREAD, saver).add_messages(
            [HumanMessage("said in an earlier demonstration")]
        )
    done = play(tmp_path, LANGMEM_EXT_DB=database.url)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("Order O-12345 is processing") >= 1
    for table in tables_of(url):
        assert re.search(
            rf"^  {table.name} +{table.rows:,} +{table.bytes:,}  \w", done.stdout, re.MULTILINE
        )
    with DeltaSaver.open(url) as saver:
        said = [
            message.text
            for message in ThreadChatMessageHistory(THREAD, saver).messages
            if message.type == "human"
        ]
    assert said == [*FIRST, *LATER]
    assert not (tmp_path / "delta.db").exists()


def test_a_server_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    done = play(tmp_path, LANGMEM_EXT_DB="postgresql://me:secret-word@127.0.0.1:1/shop")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "demo: the PostgreSQL database shop at 127.0.0.1 cannot be reached"
    )
    assert "secret-word" not in done.stderr
    assert done.stderr.count("\n") == 1


def test_without_page_statistics_the_values_are_measured() -> None:
    def no_statistics(action: int, table: str | None, *rest: str | None) -> int:
        return sqlite3.SQLITE_DENY if table == "dbstat" else sqlite3.SQLITE_OK

    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE box (label TEXT, body BLOB)")
        connection.execute("INSERT INTO box VALUES ('é', zeroblob(100)), (NULL, NULL)")
        connection.set_authorizer(no_statistics)
        assert bytes_of(connection, "box") == 102
