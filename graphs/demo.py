"""A conversation that outlives its process: `python -m graphs.demo`, or `make demo`.

The agent asks for an order's number and the process ends. A new one is told the number, calls the
tool and goes on. Then the database is looked into, and its size stands beside that of LangGraph's
own SqliteSaver after the same conversation, held at the same time.

Where the environment names a PostgreSQL database (`LANGMEM_EXT_DB=postgresql://user@host/name make
demo`), the conversation is held there, in a schema of its own. Whatever else it names is left
alone.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path

from graphs.contents import ABOUT, Table, beginning_of, drop_schema, in_schema, tables_of
from graphs.environment import named_database
from langmem_ext.errors import LangmemExtError
from langmem_ext.log.message_log import is_server

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

SCHEMA = "langmem_ext_demo"
"""Where the conversation goes in a PostgreSQL database; emptied first, as the folder is."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Play the demonstration, or one of its processes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--folder", type=Path, default=Path(".demo"), help="where the databases go; emptied first"
    )
    parser.add_argument("--converse", choices=("delta", "sqlite"), help=argparse.SUPPRESS)
    parser.add_argument("messages", nargs="*", help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    try:
        if given.converse:
            hold_conversation(given.converse, given.folder, given.messages)
        else:
            play(given.folder)
    except LangmemExtError as error:
        sys.exit(f"demo: {error}")


def play(folder: Path) -> None:
    """The whole demonstration; each part of the conversation is a process that ends."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    delta, sqlite = database_of("delta", folder), database_of("sqlite", folder)
    on_server = is_server(delta)
    if on_server:
        drop_schema(delta)
    compared = None if on_server else _start("sqlite", folder, [*FIRST, *LATER])
    _title("A user asks. The agent needs an order number, asks back, and its process ends.")
    _finish(_start("delta", folder, FIRST))
    _title(
        "Days later: a new process, the same thread. The answer goes to the question that waits."
    )
    _finish(_start("delta", folder, LATER))
    _title(f"What {f'the schema {SCHEMA}' if on_server else delta} holds, by table")
    tables = _print_tables(delta)
    if compared is None:
        print(
            f"  {'all of it':<18} {'':>5} {sum(table.bytes for table in tables):>9,}  indexes and"
            " empty pages too"
        )
    else:
        _finish(compared)
        _print_rest(delta, tables)
        _title("The same conversation stored by LangGraph's SqliteSaver")
        _print_rest(sqlite, _print_tables(sqlite))
        ours, theirs = os.path.getsize(delta), os.path.getsize(sqlite)
        print(
            f"\n  DeltaSaver {ours:,} bytes, SqliteSaver {theirs:,} bytes: {theirs / ours:.1f}"
            " times as much, and more with every turn."
        )
    _title(
        f"The conversation, as any {'PostgreSQL client' if on_server else 'SQLite tool'} shows it"
    )
    for number, role, text in beginning_of(delta):
        print(f"  {number:>3} {role:<6} " + textwrap.shorten(text, WIDTH, placeholder=" …"))
    print("  …")
    look = (
        f"in psql: SELECT * FROM {SCHEMA}.conversation"
        if on_server
        else f"sqlite3 {delta} 'SELECT * FROM conversation'"
    )
    print(f"\nTalk to it yourself: make chat. Look around{':' * (not on_server)} {look}")


def database_of(kind: str, folder: Path) -> str:
    """Where a conversation is stored: a file of the folder, or the environment's PostgreSQL."""
    named = named_database()
    if kind == "delta" and named and is_server(named):
        return in_schema(named, SCHEMA)
    return str(folder / f"{kind}.db")


def hold_conversation(kind: str, folder: Path, messages: Sequence[str]) -> None:
    """One process of the conversation: say the messages to the thread and end."""
    # In the folder also where the conversation is on a server: each run begins with the same
    # orders.
    os.environ["LANGMEM_EXT_SHOP_DB"] = str(folder / f"{kind}-shop.db")
    # Imported here: they take a second, and the process that plays the demonstration needs none of
    # them.
    from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: PLC0415 - see above

    from graphs.support import make_graph  # noqa: PLC0415 - see above
    from langmem_ext.checkpointer.saver import DeltaSaver  # noqa: PLC0415 - see above
    from langmem_ext.waiting.converse import converse  # noqa: PLC0415 - see above

    shown = kind == "delta"
    with (DeltaSaver if shown else SqliteSaver).from_conn_string(
        database_of(kind, folder)
    ) as saver:
        graph = make_graph(saver)
        if shown:
            _narrate(f"process {os.getpid()} begins")
        for message in messages:
            turn = converse(graph, message, thread_id=THREAD)
            if shown:
                _speak("you", message)
                _speak("agent", turn.reply)
                if turn.waiting_for:
                    _narrate(
                        f"waits for {turn.waiting_for}, knows"
                        f" {', '.join(turn.params_keys) or 'nothing'}"
                    )
        summary = graph.get_state({"configurable": {"thread_id": THREAD}}).values.get("summary")
    if shown:
        if summary:
            _title(
                "The running summary, kept in the state (what is sensitive is left out; the"
                " messages all stay)"
            )
            for line in summary["text"].splitlines()[1:]:
                print("  " + textwrap.shorten(line, WIDTH, placeholder=" …"))
        _narrate(f"process {os.getpid()} ends")


# -- processes -------------------------------------------------------------------------------------


def _start(kind: str, folder: Path, messages: Sequence[str]) -> subprocess.Popen[bytes]:
    sys.stdout.flush()
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "graphs.demo",
            "--folder",
            str(folder),
            "--converse",
            kind,
            *messages,
        ]
    )


def _finish(process: subprocess.Popen[bytes]) -> None:
    if process.wait():
        sys.exit(f"a process of the demonstration failed with exit code {process.returncode}")


# -- printing --------------------------------------------------------------------------------------


def _title(text: str) -> None:
    print(f"\n── {text}\n")


def _speak(who: str, text: str) -> None:
    print(textwrap.fill(text, WIDTH, initial_indent=f"  {who:>5} › ", subsequent_indent=" " * 10))


def _narrate(text: str) -> None:
    print(f"          [{text}]", flush=True)


def _print_tables(database: str) -> list[Table]:
    print(f"  {'table':<18} {'rows':>5} {'bytes':>9}")
    tables = tables_of(database)
    for table in tables:
        print(f"  {table.name:<18} {table.rows:>5,} {table.bytes:>9,}  {ABOUT.get(table.name, '')}")
    return tables


def _print_rest(database: str, tables: Sequence[Table]) -> None:
    size = os.path.getsize(database)
    print(
        f"  {'':<18} {'':>5} {size - sum(table.bytes for table in tables):>9,}  the schema, and"
        " pages kept for more"
    )
    print(f"  {'whole file':<18} {'':>5} {size:>9,}")


if __name__ == "__main__":
    main()
