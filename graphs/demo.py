"""A conversation that outlives its process, played without a terminal: `python -m graphs.demo`, or `make demo`.

The agent asks for an order's number and the process ends. A new one is told the number, calls the tool and goes on. Then the database is
looked into, and its size stands beside that of LangGraph's own SqliteSaver after the same conversation, held at the same time.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

FIRST = ["I want to check my order"]
"""What the user says to the first process; it ends while the agent waits for the answer."""

LATER = [
    "It's O-12345",
    "cancel it",
    "yes",
    "I want a refund",
    "where is my order O-12346?",
    "O-777",
    "it arrived broken",
    "change the delivery address of O-778",
    "9 Park Road, Springfield",
    "can I talk to a human?",
]
"""What the user says to the second process, some days later."""

THREAD = "demo"

WIDTH = 100

CONTENTS = {
    "item": "messages, each stored once",
    "value": "other values of the state, each stored once",
    "checkpoint": "states to go back to; they refer to messages and values",
    "pending_write": "results of steps not yet in a checkpoint",
    "thread": "one row per conversation: title, status, what it waits for",
    "namespace": "subgraphs",
    "word": "names that repeat from checkpoint to checkpoint",
    "setting": "settings of the database",
    "langmem_migration": "versions of the schema",
    "checkpoints": "states, each with all messages",
    "writes": "results of steps, with their messages again",
}
"""What a table holds, in a few words."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table's size: its rows, and its bytes with its indexes'."""

    name: str
    rows: int
    bytes: int


def main(arguments: Sequence[str] | None = None) -> None:
    """Play the demonstration, or one of its processes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path(".demo"), help="where the databases go; emptied first")
    parser.add_argument("--converse", choices=("delta", "sqlite"), help=argparse.SUPPRESS)
    parser.add_argument("messages", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.converse:
        hold_conversation(given.converse, given.folder, given.messages)
    else:
        play(given.folder)


def play(folder: Path) -> None:
    """The whole demonstration; each part of the conversation is a process that ends."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    compared = _start("sqlite", folder, [*FIRST, *LATER])
    _title("A user asks. The agent needs an order number, asks back, and its process ends.")
    _finish(_start("delta", folder, FIRST))
    _title("Days later: a new process, the same thread. The answer goes to the question that waits.")
    _finish(_start("delta", folder, LATER))
    _finish(compared)
    delta, sqlite = folder / "delta.db", folder / "sqlite.db"
    _title(f"What {delta} holds, by table")
    _print_tables(delta)
    _title("The same conversation stored by LangGraph's SqliteSaver")
    _print_tables(sqlite)
    ours, theirs = delta.stat().st_size, sqlite.stat().st_size
    print(f"\n  DeltaSaver {ours:,} bytes, SqliteSaver {theirs:,} bytes: {theirs / ours:.1f} times as much, and more with every turn.")
    _title("The conversation, as any SQLite tool shows it")
    _print_view(delta)
    print(f"\nTalk to it yourself: make chat. Look around: sqlite3 {delta} 'SELECT * FROM conversation'")


def hold_conversation(kind: str, folder: Path, messages: Sequence[str]) -> None:
    """One process of the conversation: say the messages to the thread and end."""
    os.environ["LANGMEM_EXT_SHOP_DB"] = str(folder / f"{kind}-shop.db")
    # Imported here: they take a second, and the process that plays the demonstration needs none of them.
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415 - see above

    from graphs.support import make_graph  # noqa: PLC0415 - see above
    from langmem_ext.checkpoint import DeltaSaver  # noqa: PLC0415 - see above
    from langmem_ext.waiting.converse import converse  # noqa: PLC0415 - see above

    shown = kind == "delta"
    with (DeltaSaver if shown else SqliteSaver).from_conn_string(str(folder / f"{kind}.db")) as saver:
        graph = make_graph(saver)
        if shown:
            _narrate(f"process {os.getpid()} begins")
        for message in messages:
            turn = converse(graph, message, thread_id=THREAD)
            if shown:
                _speak("you", message)
                _speak("agent", turn.reply)
                if turn.waiting_for:
                    _narrate(f"waits for {turn.waiting_for}, knows {', '.join(turn.params_keys) or 'nothing'}")
        summary = graph.get_state({"configurable": {"thread_id": THREAD}}).values.get("summary")
    if shown:
        if summary:
            _title("The running summary, kept in the state (what is sensitive is left out; the messages all stay)")
            for line in summary["text"].splitlines()[1:]:
                print("  " + textwrap.shorten(line, WIDTH, placeholder=" …"))
        _narrate(f"process {os.getpid()} ends")


def tables_of(database: Path) -> list[Table]:
    """The tables of a database that hold something, the largest first."""
    with closing(sqlite3.connect(database)) as connection:
        names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        rows = {name: connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0] for name in names}
        tables = [Table(name, rows[name], bytes_of(connection, name)) for name in names if rows[name] and name != "sqlite_sequence"]
    return sorted(tables, key=lambda table: -table.bytes)


def bytes_of(connection: sqlite3.Connection, name: str) -> int:
    """A table's pages, with its indexes'; where SQLite was built without page statistics, the length of its values."""
    pages = "SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_master WHERE tbl_name = ?)"
    try:
        [size] = connection.execute(pages, (name,)).fetchone()
    except sqlite3.DatabaseError:
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')]
        total = " + ".join(f'coalesce(length(CAST("{column}" AS BLOB)), 0)' for column in columns)
        [size] = connection.execute(f'SELECT sum({total}) FROM "{name}"').fetchone()
    return int(size)


# -- processes -----------------------------------------------------------------------------------------------------------------------------


def _start(kind: str, folder: Path, messages: Sequence[str]) -> subprocess.Popen[bytes]:
    sys.stdout.flush()
    return subprocess.Popen([sys.executable, "-m", "graphs.demo", "--folder", str(folder), "--converse", kind, *messages])


def _finish(process: subprocess.Popen[bytes]) -> None:
    if process.wait():
        sys.exit(f"a process of the demonstration failed with exit code {process.returncode}")


# -- printing ------------------------------------------------------------------------------------------------------------------------------


def _title(text: str) -> None:
    print(f"\n── {text}\n")


def _speak(who: str, text: str) -> None:
    print(textwrap.fill(text, WIDTH, initial_indent=f"  {who:>5} › ", subsequent_indent=" " * 10))


def _narrate(text: str) -> None:
    print(f"          [{text}]", flush=True)


def _print_tables(database: Path) -> None:
    print(f"  {'table':<18} {'rows':>5} {'bytes':>9}")
    tables, size = tables_of(database), database.stat().st_size
    for table in tables:
        print(f"  {table.name:<18} {table.rows:>5,} {table.bytes:>9,}  {CONTENTS.get(table.name, '')}")
    print(f"  {'':<18} {'':>5} {size - sum(table.bytes for table in tables):>9,}  the schema, and pages kept for more")
    print(f"  {'whole file':<18} {'':>5} {size:>9,}")


def _print_view(database: Path) -> None:
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT number, role, coalesce(nullif(text, ''), '(calls a tool)') FROM conversation LIMIT 6").fetchall()
    for number, role, text in rows:
        print(f"  {number:>3} {role:<6} " + textwrap.shorten(text, WIDTH, placeholder=" …"))
    print("  …")


if __name__ == "__main__":
    main()
