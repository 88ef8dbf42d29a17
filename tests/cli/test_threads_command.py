"""Promise: what people do with conversations is done from the command line, by a person at a
terminal or by a program in a pipe.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pexpect
import pytest
from commands import call
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from patience import PATIENCE_S
from prune_reference import change
from repository import ROOT
from rich.console import Console

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, ThreadInfo, Threads
from langmem_ext.cli.commands.threads.listing import table_of
from langmem_ext.log.message_log import is_server

COMMAND = [sys.executable, "-m", "langmem_ext.cli", "threads"]

ON_A_FILE = pytest.mark.parametrize("durable", ["file"], indirect=True)
"""Of a test that is about the file itself, or about a terminal and nothing of the storage."""


@pytest.fixture
def db(place: str) -> str:
    """A database of three conversations: an order that waits, a secret, an empty joke."""
    with closing(DeltaSaver.open(place, synchronous="normal")) as saver:
        for thread, text in (
            ("aaa-order", "Where is my order?"),
            ("aab-pin", "my pin is 1234-pin"),
            ("bbb-joke", "Tell me a joke\x1b[31m"),
        ):
            notes = {"langmem_ext": {"sensitive": ["pin"]}} if "pin" in text else {}
            call = {"name": "look_up", "args": {}, "id": "c1"}
            said = [
                HumanMessage(text, additional_kwargs=notes, id=f"{thread}-1"),
                AIMessage("", tool_calls=[call]),
                ToolMessage("found", tool_call_id="c1"),
            ]
            ThreadChatMessageHistory(thread, saver).add_messages(
                [*said, AIMessage(f"answer to {thread}")]
            )
    return place


def run(db: str | Path, *words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = call(
        ["threads", *words], environment=os.environ | {"LANGMEM_EXT_DB": str(db)}, folder=Path.cwd()
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done


def data(db: str | Path, *words: str) -> list[Any]:
    return [json.loads(line) for line in run(db, *words, "--json").stdout.splitlines()]


def test_a_list_shows_the_newest_first_and_hides_what_is_sensitive(db: str) -> None:
    lines = [line.split("\t") for line in run(db, "list").stdout.splitlines()]
    assert [(line[0], line[2], line[4]) for line in lines] == [
        ("bbb-joke", "4", "Tell me a joke�[31m"),
        ("aab-pin", "4", "•••"),
        ("aaa-order", "4", "Where is my order?"),
    ]
    assert [thread["id"] for thread in data(db, "list", "--title", "order")] == ["aaa-order"]
    few = run(db, "list", "--limit", "1", "--json")
    assert [json.loads(line)["id"] for line in few.stdout.splitlines()] == ["bbb-joke"]
    assert "2 more" in few.stderr
    none = run(db, "list", "--waiting")
    assert (none.stdout, none.stderr.count("\n")) == ("", 1)


def test_a_thread_is_named_by_the_beginning_of_its_id_if_no_other_begins_so(db: str) -> None:
    [shown] = data(db, "show", "b")
    assert (shown["id"], shown["messages"], shown["status"]) == ("bbb-joke", 4, "active")
    assert "title            Where is my order?" in run(db, "show", "aaa").stdout
    assert "several threads begin with 'aa'" in run(db, "show", "aa", code=2).stderr
    assert "thread 'zzz' not found" in run(db, "show", "zzz", code=1).stderr


def test_a_thread_is_named_by_its_title_if_no_other_is_called_so(db: str) -> None:
    assert data(db, "show", "Where is my order?")[0]["id"] == "aaa-order"
    run(db, "rename", "bbb", "Where is my order?")
    assert (
        "several threads are called 'Where is my order?': bbb-joke, aaa-order: give more"
        in run(db, "show", "Where is my order?", code=2).stderr
    )
    assert (
        "thread 'is my order' not found" in run(db, "delete", "is my order", "--yes", code=1).stderr
    )


def test_yesterdays_conversations_are_found(db: str) -> None:
    noon = int(datetime.combine(date.today() - timedelta(days=1), time(12)).timestamp())
    change(
        db,
        f"UPDATE thread SET updated_at = {noon * 1000}, active_at = {noon // 60} WHERE id ="
        " 'aaa-order'",
    )
    assert [
        thread["id"] for thread in data(db, "list", "--since", "yesterday", "--until", "today")
    ] == ["aaa-order"]
    assert [thread["id"] for thread in data(db, "list", "--since", "2100-01-01")] == []
    assert "no matching threads" in run(db, "list", "--until", "2000-01-01").stderr
    assert (
        "--until 'soon' is not a date: write 2026-01-31"
        in run(db, "list", "--until", "soon", code=2).stderr
    )


def test_a_history_is_read_without_what_is_sensitive(db: str) -> None:
    assert run(db, "history", "aaa").stdout.splitlines() == [
        "you: Where is my order?",
        "agent: calls look_up",
        "tool: found",
        "agent: answer to aaa-order",
    ]
    said = data(db, "history", "aab")
    assert "1234-pin" not in json.dumps(said)
    assert [message["role"] for message in said] == ["human", "ai", "tool", "ai"]
    assert (said[1]["text"], said[1]["calls"], said[2]["tool_call_id"]) == ("", ["look_up"], "c1")
    assert [message["text"] for message in data(db, "history", "b", "--last", "1")] == [
        "answer to bbb-joke"
    ]


def test_a_history_says_when_each_message_was_stored(db: str) -> None:
    with DeltaSaver.open(db) as saver:
        stored = [moment for _, moment in Threads(saver).dated_messages("aaa-order")]
    assert [
        datetime.fromisoformat(message["created_at"]) for message in data(db, "history", "aaa")
    ] == stored
    lines = run(db, "history", "aaa", "--times").stdout.splitlines()
    assert lines[0] == f"{stored[0].astimezone():%Y-%m-%d %H:%M:%S}  you: Where is my order?"
    assert run(db, "history", "aaa", "-t", "-n", "1").stdout == f"{lines[-1]}\n"


def test_threads_are_named_tagged_put_away_and_taken_back(db: str) -> None:
    assert data(db, "rename", "aaa", "The lamp")[0]["title"] == "The lamp"
    assert data(db, "tag", "aaa", "vip", "late")[0]["tags"] == ["late", "vip"]
    assert data(db, "tag", "aaa", "--remove", "late")[0]["tags"] == ["vip"]
    assert [thread["id"] for thread in data(db, "list", "--tag", "vip")] == ["aaa-order"]
    assert run(db, "archive", "aaa", "bbb").stdout.split() == ["aaa-order", "bbb-joke"]
    assert [thread["id"] for thread in data(db, "list")] == ["aab-pin"]
    assert {thread["id"] for thread in data(db, "list", "--archived")} == {"aaa-order", "bbb-joke"}
    assert data(db, "archive", "--undo", "aaa")[0]["status"] == "active"
    assert data(db, "unarchive", "bbb")[0]["status"] == "active"
    assert len(data(db, "list", "--all")) == 3
    run(db, "archive", "bbb", "nobody", code=1)
    assert "next message" in run(db, "rename", "aaa", "").stderr


def test_a_fork_prints_the_id_of_the_copy(db: str) -> None:
    copy = run(db, "fork", "aaa", "--to", "copy").stdout.strip()
    assert [message["text"] for message in data(db, "history", copy)] == [
        message["text"] for message in data(db, "history", "aaa")
    ]
    assert data(db, "show", copy)[0]["forked_from"] == "aaa-order"
    assert (
        "a message 'nope': `threads history --json` shows the ids"
        in run(db, "fork", "aaa", "--at", "nope", code=2).stderr
    )


def test_deleting_asks_first_and_leaves_no_word_in_the_file(db: str) -> None:
    assert "--yes" in run(db, "delete", "aaa", code=2).stderr
    assert is_server(db) or b"Where is my order" in Path(db).read_bytes()
    [done] = data(db, "delete", "aaa", "bbb", "--yes")
    assert done["threads"] == 2
    assert is_server(db) or b"Where is my order" not in b"".join(
        path.read_bytes() for path in Path(db).parent.iterdir()
    )
    assert [thread["id"] for thread in data(db, "list", "--all")] == ["aab-pin"]


@pytest.mark.process
@ON_A_FILE
def test_at_a_terminal_a_table_is_shown_and_deleting_asks(db: str) -> None:
    environment: Any = os.environ | {"LANGMEM_EXT_DB": str(db), "TERM": "xterm", "COLUMNS": "100"}
    listing = pexpect.run(" ".join([*COMMAND, "list"]), env=environment, encoding="utf-8")
    assert "Where is my order?" in listing
    assert "now" in listing
    counts = pexpect.run(
        " ".join([*COMMAND, "stats"]), env=environment, encoding="utf-8"
    ).splitlines()
    assert len({len(line.rstrip()) for line in counts if line.strip()}) == 1, (
        "the numbers stand below each other"
    )
    for answer, told, code, left in (
        ("\x03", "stopped", 130, 3),
        ("n\n", "nothing was deleted", 1, 3),
        ("y\n", "deleted 1 thread", 0, 2),
    ):
        asking = pexpect.spawn(
            COMMAND[0],
            [*COMMAND[1:], "delete", "aaa"],
            env=environment,
            encoding="utf-8",
            timeout=PATIENCE_S,
        )
        asking.expect("permanently")
        asking.send(answer)
        asking.expect(told)
        asking.expect(pexpect.EOF)
        asking.close()
        assert asking.exitstatus == code
        with closing(DeltaSaver.open(db)) as saver:
            assert Threads(saver).count(status=None) == left


def test_in_a_narrow_window_ids_are_whole_and_can_be_typed() -> None:
    made, now = str(uuid4()), datetime.now(UTC)
    common: Any = {
        "created_at": now,
        "updated_at": now,
        "messages": 3,
        "stored_messages": 3,
        "tokens": 9,
        "number": 1,
        "metadata": {},
    }
    rest: Any = common | {
        "owner": None,
        "status": "active",
        "tool": None,
        "forked_from": None,
        "tags": ("vip",),
        "waiting_for": "order_id",
    }
    threads = [
        ThreadInfo(id=made, title="Where is my order?", **rest),
        ThreadInfo(id="order-17", title="A long title " * 9, **rest),
    ]
    for columns in (40, 80, 120):
        console = Console(width=columns, highlight=False)
        with console.capture() as captured, mock_columns(columns):
            console.print(table_of(threads, now, 0))
        lines = captured.get().splitlines()
        assert max(map(len, lines)) <= columns
        assert [line.split()[0] for line in lines if line[0] != " "] == ["id", made[:8], "order-17"]
        assert sum("waits for" in line for line in lines) == 2


@contextmanager
def mock_columns(columns: int) -> Iterator[None]:
    """A window of so many columns."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", str(columns))
        yield


@pytest.mark.process
@ON_A_FILE
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_cannot_be_written_is_one_message(db: str) -> None:
    environment = os.environ | {"LANGMEM_EXT_DB": str(db)}
    with Path("/dev/full").open("w") as full:
        for words in (["list"], ["export", "--all"]):
            done = subprocess.run(
                [*COMMAND, *words],
                env=environment,
                stdout=full,
                stderr=subprocess.PIPE,
                text=True,
                check=False,
            )
            assert (done.returncode, done.stderr) == (
                1,
                "langmem-ext: the output cannot be used: No space left on device\n",
            )


@pytest.mark.process
@ON_A_FILE
def test_a_reader_that_goes_away_ends_the_command_quietly(db: str) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        environment = os.environ | {"LANGMEM_EXT_DB": str(db)}
        done = subprocess.run(
            [*COMMAND, "list"],
            env=environment,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.fixture
def read_only(db: str) -> Iterator[list[str]]:
    """The database may only be read, and so may its folder; how a command is begun to which that
    applies.
    """
    # The system lets its superuser write whatever the file says.
    prefix = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    if prefix and shutil.which(prefix[0]) is None:
        pytest.skip("needs a user who is no superuser")
    run(db, "search", "order")
    path = Path(db)
    (path.parent / "memory.db-lock").unlink(missing_ok=True)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    yield [*prefix, *COMMAND]
    path.parent.chmod(0o755)


@pytest.mark.process
@ON_A_FILE
def test_a_database_that_can_only_be_read_is_searched_where_it_has_an_index(
    db: str, read_only: list[str]
) -> None:
    command = [*read_only, "search", "order", "--db", str(db)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["aaa-order", "aaa-order"]


@pytest.mark.process
@ON_A_FILE
def test_what_would_write_a_database_that_can_only_be_read_says_what_is_in_the_way(
    db: str, read_only: list[str]
) -> None:
    command = [*read_only, "rename", "aaa", "another", "--db"]
    done = subprocess.run(
        [*command, str(db)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert "check that the file and its directory are writable" in done.stderr
    assert "mode=ro" not in done.stderr
    Path(db).parent.chmod(0o755)
    Path(db).chmod(0o644)
    asked = subprocess.run(
        [*command, f"sqlite:///{db}?mode=ro"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (asked.returncode, "open it without mode=ro" in asked.stderr) == (1, True)


def test_what_is_opened_for_reading_by_its_url_is_not_written(db: str) -> None:
    url = f"{db}{'&' if '?' in db else '?'}mode=ro" if "://" in db else f"sqlite:///{db}?mode=ro"
    before = data(db, "list")
    for words in (["rename", "aaa-order", "another"], ["delete", "aaa-order", "--yes"]):
        assert "read" in run(url, *words, code=1).stderr
    assert data(url, "list") == data(db, "list") == before


def test_a_database_that_is_not_there_is_not_made(tmp_path: Path) -> None:
    for words in (["list"], ["show", "x"], ["rename", "x", "y"], ["delete", "x", "--yes"]):
        assert "none.db not found" in run(tmp_path / "none.db", *words, code=1).stderr
    assert list(tmp_path.iterdir()) == []


def test_threads_of_others_are_not_there_for_an_owner(db: str) -> None:
    with closing(DeltaSaver.open(db)) as saver:
        ThreadChatMessageHistory("ccc", saver, owner="alice").add_messages([HumanMessage("mine")])
    assert [thread["id"] for thread in data(db, "list", "--owner", "alice")] == ["ccc"]
    assert "not found" in run(db, "show", "aaa", "--owner", "alice", code=1).stderr


def test_a_thread_that_has_expired_is_shown_until_it_is_deleted(db: str) -> None:
    with closing(DeltaSaver.open(db)) as saver:
        for thread in ("tool", "tool-2"):
            notes = {"langmem_ext": {"tool": "debug"}}
            ThreadChatMessageHistory(thread, saver).add_messages(
                [HumanMessage("look", additional_kwargs=notes)]
            )
    change(db, "UPDATE thread SET updated_at = 0, active_at = 0 WHERE id = 'tool'")
    [shown] = data(db, "show", "tool")
    assert (shown["id"], shown["tool"]) == ("tool", "debug")


def test_a_file_that_is_no_export_leaves_no_database_behind(tmp_path: Path) -> None:
    (tmp_path / "notes.jsonl").write_text('{"kind": "thread"}\n')
    for target in ("new.db", "there.db"):
        if target == "there.db":
            with closing(DeltaSaver.open(str(tmp_path / target))) as saver:
                ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("hello")])
        refused = run(tmp_path / target, "import", str(tmp_path / "notes.jsonl"), code=2)
        assert "nothing was imported" in refused.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["notes.jsonl", "there.db"]
    assert [thread["id"] for thread in data(tmp_path / "there.db", "list")] == ["t"]
