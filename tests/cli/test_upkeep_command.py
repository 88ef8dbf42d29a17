"""Promise: conversations are searched, moved, counted, swept and pruned from the command line, and
nothing goes that was not meant.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pexpect
import pytest
from commands import call
from langchain_core.messages import AIMessage, HumanMessage
from patience import PATIENCE_S
from prune_reference import change
from savers import Backend

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads, examine
from langmem_ext.log.message_log import is_server

COMMAND = [sys.executable, "-m", "langmem_ext.cli"]
OLD = ("old-chat", "old-tool")

ON_A_FILE = pytest.mark.parametrize("durable", ["file"], indirect=True)
"""Of a test that is about the file itself, or about a terminal and nothing of the storage."""


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands are called in the test's folder."""
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def db(place: str) -> str:
    """A database of a chat and a tool's thread of long ago, and of a chat of today with a
    secret.
    """
    with closing(DeltaSaver.open(place, synchronous="normal")) as saver:
        for thread, text in (
            ("old-chat", "Where is the lamp?"),
            ("old-tool", "Look at the lamp"),
            ("new", "my pin is 1234-pin"),
        ):
            notes: dict[str, Any] = (
                {"tool": "debug"}
                if "tool" in thread
                else {"sensitive": ["pin"]}
                if "pin" in text
                else {}
            )
            history = ThreadChatMessageHistory(thread, saver)
            for number in range(3):
                history.add_messages(
                    [
                        HumanMessage(text, additional_kwargs={"langmem_ext": notes}),
                        AIMessage(f"answer {number}\x1b[2J"),
                    ]
                )
    change(place, f"UPDATE thread SET updated_at = 0, active_at = 0 WHERE id IN {OLD}")
    return place


def run(
    db: str | Path, *words: str, code: int = 0, given: str | None = None, **settings: str
) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {
        "LANGMEM_EXT_DB": str(db),
        "XDG_CONFIG_HOME": str(Path.cwd() / "config"),
    }
    environment |= {f"LANGMEM_EXT_{name.upper()}": value for name, value in settings.items()}
    done = call(list(words), environment=environment, folder=Path.cwd(), given=given)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "\x1b" not in done.stdout + done.stderr
    return done


def data(db: str | Path, *words: str, **settings: str) -> list[Any]:
    return [json.loads(line) for line in run(db, *words, "--json", **settings).stdout.splitlines()]


def threads_of(db: str | Path) -> list[str]:
    with closing(DeltaSaver.open(str(db))) as saver:
        return sorted(thread.id for thread in Threads(saver).each(status=None))


# -- searching -------------------------------------------------------------------------------------


def test_a_search_finds_messages_and_no_secrets(db: str) -> None:
    found = data(db, "threads", "search", "lam")
    assert {hit["thread_id"] for hit in found} == set(OLD)
    assert {hit["role"] for hit in found} == {"human"}
    start, end = found[0]["highlights"][0]
    assert found[0]["snippet"][start:end] == "lamp"
    lines = [
        line.split("\t")
        for line in run(
            db, "threads", "search", "answer", "--thread", "n", "--role", "ai"
        ).stdout.splitlines()
    ]
    assert [(line[0], line[2]) for line in lines] == [("new", "ai")] * 3
    assert {line[3] for line in lines} == {f"answer {number}�[2J" for number in range(3)}
    assert len(data(db, "threads", "search", "lamp", "--limit", "1")) == 1
    assert data(db, "threads", "search", "lamp", "--since", "2100-01-01") == []
    assert "no messages found" in run(db, "threads", "search", "1234").stderr


# -- exporting and importing -----------------------------------------------------------------------


def test_what_is_exported_is_imported_elsewhere(db: str, durable: Backend, tmp_path: Path) -> None:
    other = durable.new_url(tmp_path)
    [done] = data(db, "threads", "export", "--all", "--to", "x.gz")
    assert (done["threads"], done["messages"]) == (3, 18)
    assert sorted(run(other, "threads", "import", "x.gz", "--keep-ids").stdout.splitlines()) == [
        "new",
        "old-chat",
        "old-tool",
    ]
    assert threads_of(other) == threads_of(db)
    [again] = data(other, "threads", "import", "x.gz", "--keep-ids")
    assert (again["ids"], sorted(again["skipped"])) == ({}, threads_of(db))
    [ids] = [line["ids"] for line in data(other, "threads", "import", "x.gz")]
    assert threads_of(other) == sorted([*ids, *ids.values()])


def test_an_export_goes_through_a_pipe(db: str, tmp_path: Path) -> None:
    lines = run(db, "threads", "export", "new", "old-c").stdout
    other = tmp_path / "other.db"
    imported = run(other, "threads", "import", "-", given=lines).stdout.splitlines()
    assert sorted(line.split("\t")[0] for line in imported) == ["new", "old-chat"]
    page = run(db, "threads", "export", "old-c", "--format", "markdown")
    assert page.stdout.startswith("# Where is the lamp?")
    assert "exported 1 thread, 6 messages" in page.stderr
    assert "1234-pin" not in run(db, "threads", "export", "new", "-f", "markdown").stdout
    assert (
        "1234-pin"
        in run(db, "threads", "export", "new", "-f", "markdown", "--include-sensitive").stdout
    )


# -- counting --------------------------------------------------------------------------------------


def test_conversations_are_counted_by_status_and_by_tool(db: str) -> None:
    [counts] = data(db, "threads", "stats")
    assert (counts["threads"], counts["turns"], counts["by_status"]["active"]) == (3, 9, 3)
    assert {"tool": "debug", "threads": 1} in counts["by_tool"]
    lines = dict(line.split("\t") for line in run(db, "threads", "stats").stdout.splitlines())
    assert (lines["threads"], lines["of the tool debug"], lines["of no tool"]) == ("3", "1", "2")


def test_lists_are_as_long_as_the_settings_say(db: str) -> None:
    assert len(data(db, "threads", "list", list_limit="1")) == 1
    assert len(data(db, "threads", "list", list_limit="0")) == 3
    assert len(data(db, "threads", "list", "--limit", "2", list_limit="1")) == 2
    titles = [
        line.split("\t")[4]
        for line in run(db, "threads", "list", title_length="5").stdout.splitlines()
    ]
    assert titles == ["•••", "Look…", "Wher…"]
    assert data(db, "threads", "list", owner="nobody") == []


# -- sweeping and pruning --------------------------------------------------------------------------


def test_a_sweep_deletes_what_has_expired_by_the_settings_or_by_its_options(db: str) -> None:
    [would] = data(db, "sweep", "--dry-run")
    assert "only conversations of tools expire" in run(db, "sweep", "--dry-run").stderr
    assert "no conversation expires" in run(db, "sweep", "--dry-run", "--tool-ttl", "0").stderr
    assert run(db, "sweep", "--dry-run", "--ttl", "1").stderr.count("langmem-ext: ") == 1
    assert (would["threads"], would["dry_run"], threads_of(db)) == (1, True, ["new", *OLD])
    assert data(db, "sweep", ttl_hours="0") == [dict.fromkeys(would, 0) | {"dry_run": False}]
    assert "deleted 1 thread," in run(db, "sweep").stderr
    assert threads_of(db) == ["new", "old-chat"]
    assert data(db, "sweep", auto_prune_days="30")[0]["threads"] == 1
    assert threads_of(db) == ["new"]
    assert data(db, "sweep", "--ttl", "0.5", "--tool-ttl", "1")[0]["threads"] == 0
    assert examine(db).ok


def test_pruning_in_a_pipe_is_done_only_where_it_is_meant(db: str) -> None:
    assert "--yes" in run(db, "prune", "--older-than", "30", code=2).stderr
    assert "nothing to prune" in run(db, "prune", "--yes", code=2).stderr
    assert data(db, "prune", "--older-than", "30", "--dry-run")[0]["threads"] == 2
    assert threads_of(db) == ["new", *OLD]
    [thinned] = data(db, "prune", "--keep-last", "1", "--yes", auto_prune_days="30")
    assert (thinned["threads"], thinned["checkpoints"]) == (0, 6)
    assert "deleted 2 threads" in run(db, "prune", "--yes", auto_prune_days="30").stderr
    assert threads_of(db) == ["new"]
    assert is_server(db) or b"Where is the lamp" not in b"".join(
        path.read_bytes() for path in Path.cwd().iterdir() if path.is_file()
    )
    assert examine(db).ok


@pytest.mark.process
@ON_A_FILE
def test_at_a_terminal_pruning_asks_first_and_searching_shows_where(db: str) -> None:
    environment: Any = os.environ | {"LANGMEM_EXT_DB": str(db), "TERM": "xterm", "COLUMNS": "100"}
    found = pexpect.run(
        " ".join([*COMMAND, "threads", "search", "lamp"]), env=environment, encoding="utf-8"
    )
    assert "old-chat" in found
    for answer, left in (("n", 3), ("y", 1)):
        asking = pexpect.spawn(
            COMMAND[0],
            [*COMMAND[1:], "prune", "--older-than", "7"],
            env=environment,
            encoding="utf-8",
            timeout=PATIENCE_S,
        )
        asking.expect("2 threads(?s:.*)permanently")
        asking.sendline(answer)
        asking.expect(pexpect.EOF)
        asking.close()
        assert asking.exitstatus == (1 if answer == "n" else 0)
        assert len(threads_of(db)) == left


# -- bad input -------------------------------------------------------------------------------------


@ON_A_FILE
@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["threads", "search", "x", "--role", "king"], 2, "role must be one of"),
        (["threads", "search", " "], 2, "nothing to search for"),
        (["threads", "search", "x", "--since", "tomorrow"], 2, "is not a date"),
        (["threads", "search", "x", "--thread", "zzz"], 1, "thread 'zzz' not found"),
        (["threads", "export"], 2, "--all"),
        (["threads", "export", "new", "--all"], 2, "--all"),
        (["threads", "export", "zzz"], 1, "thread 'zzz' not found"),
        (["threads", "export", "new", "--json"], 2, "--to PATH"),
        (["threads", "export", "new", "--format", "pdf"], 2, "jsonl, markdown"),
        (["threads", "export", "new", "--to", "memory.db"], 2, ""),
        (["threads", "import", "none.jsonl"], 2, "none.jsonl not found"),
        (["threads", "import", "memory.db"], 2, "nothing was imported"),
        (["threads", "list", "--owner", ""], 2, "an owner"),
        (["threads", "import", "."], 2, ". is a directory"),
        (["threads", "list", "--db", "."], 1, ". is a directory"),
        (["doctor", "."], 1, "is a directory: pass the path of a database file in it"),
        (["stats", "."], 1, "is a directory: pass the path of a database file in it"),
        (["chat", "--db", "."], 1, "is a directory: pass the path of a database file in it"),
        (["chat", "--db", "chats/new.db"], 1, "chats first"),
        (
            ["sweep", "--db", "none.db"],
            1,
            "none.db not found: pass another path (--db), or create it",
        ),
        (["sweep", "--ttl", "1e300"], 2, "--ttl"),
        (["prune", "--older-than", "1e300", "--yes"], 2, "--older-than"),
        (["prune", "--older-than", "0", "--dry-run"], 2, "--older-than must be above 0 days"),
        (["stats", "a.db", "--db", "b.db"], 2, "pass only one"),
        (["config", "show", "ttl_hour"], 2, "did you mean ttl_hours?"),
    ],
)
def test_bad_input_is_one_message_and_changes_nothing(
    db: str, words: list[str], code: int, message: str
) -> None:
    before = Path(db).read_bytes()
    done = run(db, *words, code=code)
    assert (done.stdout, done.stderr.count("langmem-ext: ")) == ("", 1)
    assert message in done.stderr
    assert Path(db).read_bytes() == before


def test_a_database_that_is_not_there_is_made_by_an_import_alone(tmp_path: Path) -> None:
    for words in (
        ["threads", "search", "x"],
        ["threads", "export", "--all"],
        ["threads", "stats"],
        ["sweep"],
        ["prune", "--keep-last", "1", "--yes"],
    ):
        assert "none.db not found" in run(tmp_path / "none.db", *words, code=1).stderr
    assert "x not found" in run(tmp_path / "none.db", "threads", "import", "x", code=2).stderr
    assert list(tmp_path.iterdir()) == []
