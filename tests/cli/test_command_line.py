"""The command line names a database in one way, completes ids, and says what to do next."""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from small_graphs import chain, config, saying
from typer.testing import CliRunner, Result

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads
from langmem_ext.cli.app import app

IDS = ["order-1", "order-2", "trip"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No database that a command was not told of is there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LANGMEM_EXT_DB", raising=False)


@pytest.fixture
def db(place: str) -> str:
    named = place if "://" in place else str(Path(place).with_name("other.db"))
    with DeltaSaver.open(named) as saver:
        for thread in IDS:
            ThreadChatMessageHistory(thread, saver, owner="ann").add_messages(
                [HumanMessage(f"hello from {thread}")]
            )
    return named


@pytest.fixture
def theirs(tmp_path: Path) -> str:
    """The database of a SqliteSaver."""
    path = str(tmp_path / "checkpoints.sqlite")
    with SqliteSaver.from_conn_string(path) as saver:
        chain(saying(), saver=saver).invoke({"messages": [("user", "hi")]}, config("old"))
    return path


def run(*words: str, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, list(words), input=stdin)


def refused(*words: str, says: str, code: int = 1) -> str:
    """What a command says that fails, which has this in it."""
    done = run(*words)
    assert done.exit_code == code, words
    assert says in done.stderr, words
    return done.stderr


# -- one way to name a database --------------------------------------------------------------------


def test_the_database_is_an_argument_or_an_option(db: str) -> None:
    for command in ("threads list", "threads stats", "stats", "doctor", "sweep --dry-run"):
        words = command.split()
        as_argument, as_option = run(*words, db), run(*words, "--db", db)
        assert as_argument.exit_code == as_option.exit_code == 0, as_argument.output
        assert as_argument.stdout == as_option.stdout, command
        refused(*words, db, "--db", db, code=2, says="both name a database: pass only one")


def test_what_chats_and_what_serves_take_it_as_the_others_do(tmp_path: Path) -> None:
    said = run("chat", "mine.db", "--json", stdin="hello\n")
    assert said.exit_code == 0, said.output
    assert run("threads", "list", "mine.db").stdout.startswith("default\t")
    for command in ("chat", "mcp", "serve", "inspect"):
        said = "a.db and --db b.db both name a database: pass only one"
        refused(command, "a.db", "--db", "b.db", code=2, says=said)
    assert not (tmp_path / "a.db").exists()


# -- completion ------------------------------------------------------------------------------------


def completed(words: str, **environment: str) -> list[str]:
    """What bash offers for the last word of a line."""
    line = shlex.split(words) + ([""] if words.endswith(" ") else [])
    asked = {"_LANGMEM_EXT_COMPLETE": "complete_bash", "COMP_WORDS": words}
    asked["COMP_CWORD"] = str(len(line) - 1)
    done = subprocess.run(
        [sys.executable, "-m", "langmem_ext.cli"],
        env={**os.environ, **asked, **environment},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.process
def test_a_shell_completes_the_ids_of_threads(db: str) -> None:
    shown = f"langmem-ext threads show --db {db}"
    assert sorted(completed(f"{shown} ")) == IDS
    assert sorted(completed(f"{shown} ord")) == ["order-1", "order-2"]
    assert completed("langmem-ext threads delete tr", LANGMEM_EXT_DB=db) == ["trip"]
    assert completed(f"langmem-ext chat {db} --thread tr") == ["trip"]
    assert completed(f"{shown} --owner bob ") == []


@pytest.mark.process
def test_a_shell_is_given_nothing_that_it_would_carry_out(tmp_path: Path) -> None:
    with DeltaSaver.open(tmp_path / "memory.db") as saver:
        for thread in ("$(reboot)", "a b", "x;y", "`id`", "plain"):
            ThreadChatMessageHistory(thread, saver).add_messages([HumanMessage("$(reboot)")])
    assert completed("langmem-ext threads show --db memory.db ") == ["plain"]
    assert completed("langmem-ext threads show --db nowhere.db ") == []  # it hears of no error
    assert not list(tmp_path.glob("nowhere*"))


# -- databases of other savers ---------------------------------------------------------------------


def test_what_is_to_be_done_with_another_savers_file_is_said(theirs: str, tmp_path: Path) -> None:
    before = Path(theirs).read_bytes()
    for command in ("doctor", "stats", "threads list", "chat"):
        told = refused(*command.split(), theirs, says="langmem-ext inspect")
        assert "langmem-ext import-checkpoints" in told, command
        assert Path(theirs).read_bytes() == before, command
    with closing(sqlite3.connect(tmp_path / "theirs.db")) as connection:
        connection.execute("CREATE TABLE recipe (name)")
    assert "import-checkpoints" not in refused("doctor", "theirs.db", says="")  # nobody's


def test_imported_threads_get_an_owner(theirs: str, place: str) -> None:
    done = run("import-checkpoints", theirs, place, "--owner", "ann", "--verify")
    assert done.exit_code == 0, done.output
    with Threads(place) as threads:
        assert [(thread.id, thread.owner) for thread in threads.list()] == [("old", "ann")]
    told = refused("import-checkpoints", theirs, place, "--owner", "bob", says="")
    assert "not found" in told or "another owner" in told


# -- another owner ---------------------------------------------------------------------------------


def test_a_thread_is_given_to_another_owner(db: str) -> None:
    given = run("threads", "give", "trip", "bob", "--db", db, "--json")
    assert given.exit_code == 0, given.output
    assert json.loads(given.stdout)["owner"] == "bob"
    assert run("threads", "list", db, "--owner", "bob").stdout.startswith("trip\t")
    assert "trip" not in run("threads", "list", db, "--owner", "ann").stdout
    refused("threads", "give", "trip", "ann", "--db", db, "--owner", "ann", says="not found")


def test_a_count_beyond_all_counts_is_refused_before_a_database_is_opened() -> None:
    for line in (
        "threads list --limit",
        "threads search x --limit",
        "threads history x --last",
        "memory run --limit",
        "prune --keep-last",
        "store reindex --embed x --dims",
    ):
        refused(*line.split(), "1" + 20 * "0", says="1000000000", code=2)
