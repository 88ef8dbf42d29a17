"""What cannot be done is one message and an exit code, and nothing is changed (`refused.yaml`)."""

from __future__ import annotations

import shlex
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import yaml
from commands import run
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.sqlite import SqliteSaver

from langmem_ext import DeltaSaver, ThreadChatMessageHistory

GRAPHS = """
from langgraph.graph import START, MessagesState, StateGraph

builder = StateGraph(MessagesState).add_node("answer", lambda state: {}).add_edge(START, "answer")
compiled = builder.compile()
number = 7


def make(saver):
    return builder.compile(checkpointer=saver)


def make_builder(checkpointer):
    return builder


def make_nothing(saver):
    return None


def make_error(saver):
    raise RuntimeError("no connection")


def make_without():
    return builder
"""

FILES = {
    "file": "This is no database, whatever its name says.\n" * 20,
    "notes.jsonl": '{"kind": "thread"}\n',
    "others.py": GRAPHS,
    "broken.py": "def",
    "intents.yaml": "intents:\n  - id: a\n  - id: a\n",
    "mistaken.py": (
        "from langmem_ext import IntentCatalog\ncatalog = IntentCatalog.from_yaml('intents.yaml')\n"
    ),
    "empty": "# no token\n",
    "short": "secret ann\n",
}


def contents(folder: Path) -> dict[str, bytes]:
    """What is in a folder, but for what SQLite has beside a file that is open."""
    files = (path for path in folder.iterdir() if path.suffix not in (".db-shm", ".db-wal"))
    return {path.name: path.read_bytes() for path in files if path.is_file()}


def test_what_is_refused_is_one_message_and_changes_nothing(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(text)
    with DeltaSaver.open("memory.db") as saver:
        ThreadChatMessageHistory("new", saver).add_messages([HumanMessage("hello")])
        shutil.copy("memory.db", "copy.db")  # without its log
    DeltaSaver.open("newer.db").close()
    for name, statements in (
        ("newer.db", ["INSERT INTO langmem_migration VALUES ('m999_of_tomorrow', 0)"]),
        ("theirs.db", ["CREATE TABLE customer (name TEXT)", "CREATE TABLE invoice (amount REAL)"]),
    ):
        with closing(sqlite3.connect(name)) as connection, connection:
            for statement in statements:
                connection.execute(statement)
    with SqliteSaver.from_conn_string("saver.db") as saver:
        saver.setup()
    before = contents(folder)
    cases = Path(__file__).with_name("refused.yaml").read_text(encoding="utf-8")
    for line, code, words in yaml.safe_load(cases):
        done = run(*shlex.split(line), given="hello\n", code=code)
        assert done.stdout == "", line
        assert done.stderr.count("langmem-ext: ") == 1, f"{line}: {done.stderr}"
        assert words in done.stderr, f"{line}: {done.stderr}"
        assert "secret" not in done.stderr, line
        assert contents(folder) == before, line
    run("chat", "--bogus", code=2)
