"""Promise: what people do with conversations is done from the command line, by a person at a
terminal or by a program in a pipe.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from pathlib import Path
from uuid import uuid4

import pexpect
import pytest
from commands import data, run
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from prune_reference import change
from repository import ROOT

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads

COMMAND = [sys.executable, "-m", "langmem_ext.cli", "threads"]

ON_A_FILE = pytest.mark.parametrize("durable", ["file"], indirect=True)
"""Of a test that is about the file itself, or about a terminal and nothing of the storage."""


@pytest.fixture
def db(place: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database of three conversations: an order that waits, a secret, an empty joke."""
    with DeltaSaver.open(place, synchronous="normal") as saver:
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
                AIMessage(f"answer to {thread}"),
            ]
            ThreadChatMessageHistory(thread, saver).add_messages(said)
    monkeypatch.setenv("LANGMEM_EXT_DB", place)
    return place


def ids(*words: str) -> list[str]:
    return [thread["id"] for thread in data("threads", "list", *words)]


def count(db: str) -> int:
    with Threads(db) as threads:
        return threads.count(status=None)


def test_a_list_shows_the_newest_first_and_hides_what_is_sensitive(db: str) -> None:
    lines = [line.split("\t") for line in run("threads", "list").stdout.splitlines()]
    assert [(line[0], line[2], line[4]) for line in lines] == [
        ("bbb-joke", "4", "Tell me a joke�[31m"),
        ("aab-pin", "4", "•••"),
        ("aaa-order", "4", "Where is my order?"),
    ]
    assert ids("--title", "order") == ["aaa-order"]
    few = run("threads", "list", "--limit", "1", "--json")
    assert [json.loads(line)["id"] for line in few.stdout.splitlines()] == ["bbb-joke"]
    assert "2 more" in few.stderr
    none = run("threads", "list", "--waiting")
    assert (none.stdout, none.stderr.count("\n")) == ("", 1)


def test_lists_are_as_long_as_the_settings_say(db: str) -> None:
    for limit, options, shown in (("1", [], 1), ("0", [], 3), ("1", ["--limit", "2"], 2)):
        lines = data("threads", "list", *options, LANGMEM_EXT_LIST_LIMIT=limit)
        assert len(lines) == shown
    short = run("threads", "list", LANGMEM_EXT_TITLE_LENGTH="5").stdout.splitlines()
    assert [line.split("\t")[4] for line in short] == ["Tell…", "•••", "Wher…"]
    assert data("threads", "list", LANGMEM_EXT_OWNER="nobody") == []


def test_a_thread_is_named_by_its_title_or_the_beginning_of_its_id_if_no_other_is(db: str) -> None:
    [shown] = data("threads", "show", "b")
    assert (shown["id"], shown["messages"], shown["status"]) == ("bbb-joke", 4, "active")
    assert "title            Where is my order?" in run("threads", "show", "aaa").stdout
    assert data("threads", "show", "Where is my order?")[0]["id"] == "aaa-order"
    run("threads", "rename", "bbb", "Where is my order?")
    for words, code, told in (
        (["show", "aa"], 2, "several threads begin with 'aa'"),
        (["show", "zzz"], 1, "thread 'zzz' not found"),
        (["show", "Where is my order?"], 2, "are called 'Where is my order?': bbb-joke, aaa-order"),
        (["delete", "is my order", "--yes"], 1, "thread 'is my order' not found"),
    ):
        assert told in run("threads", *words, code=code).stderr


def test_yesterdays_conversations_are_found(db: str) -> None:
    noon = int(datetime.combine(date.today() - timedelta(days=1), time(12)).timestamp())
    moments = f"updated_at = {noon * 1000}, active_at = {noon // 60}"
    change(db, f"UPDATE thread SET {moments} WHERE id = 'aaa-order'")
    assert ids("--since", "yesterday", "--until", "today") == ["aaa-order"]
    assert ids("--since", "2100-01-01") == []
    assert "no matching threads" in run("threads", "list", "--until", "2000-01-01").stderr
    refused = run("threads", "list", "--until", "soon", code=2)
    assert "--until 'soon' is not a date: write 2026-01-31" in refused.stderr


def test_a_history_is_read_without_what_is_sensitive_and_says_when_each_was_stored(db: str) -> None:
    lines = [
        "you: Where is my order?",
        "agent: calls look_up",
        "tool: found",
        "agent: answer to aaa-order",
    ]
    assert run("threads", "history", "aaa").stdout.splitlines() == lines
    with Threads(db) as threads:
        stored = [moment for _, moment in threads.dated_messages("aaa-order")]
    dated = [
        f"{moment.astimezone():%Y-%m-%d %H:%M:%S}  {line}"
        for moment, line in zip(stored, lines, strict=True)
    ]
    assert run("threads", "history", "aaa", "--times").stdout.splitlines() == dated
    assert run("threads", "history", "aaa", "-t", "-n", "1").stdout == f"{dated[-1]}\n"
    said = data("threads", "history", "aaa")
    assert [datetime.fromisoformat(message["created_at"]) for message in said] == stored
    said = data("threads", "history", "aab")
    assert "1234-pin" not in json.dumps(said)
    assert [message["role"] for message in said] == ["human", "ai", "tool", "ai"]
    assert (said[1]["text"], said[1]["calls"], said[2]["tool_call_id"]) == ("", ["look_up"], "c1")


def test_threads_are_named_tagged_put_away_and_taken_back(db: str) -> None:
    assert data("threads", "rename", "aaa", "The lamp")[0]["title"] == "The lamp"
    assert data("threads", "tag", "aaa", "vip", "late")[0]["tags"] == ["late", "vip"]
    assert data("threads", "tag", "aaa", "--remove", "late")[0]["tags"] == ["vip"]
    assert ids("--tag", "vip") == ["aaa-order"]
    assert run("threads", "archive", "aaa", "bbb").stdout.split() == ["aaa-order", "bbb-joke"]
    assert ids() == ["aab-pin"]
    assert {*ids("--archived")} == {"aaa-order", "bbb-joke"}
    assert data("threads", "archive", "--undo", "aaa")[0]["status"] == "active"
    assert data("threads", "unarchive", "bbb")[0]["status"] == "active"
    assert len(ids("--all")) == 3
    run("threads", "archive", "bbb", "nobody", code=1)
    assert "next message" in run("threads", "rename", "aaa", "").stderr


def test_a_fork_prints_the_id_of_the_copy(db: str) -> None:
    copy = run("threads", "fork", "aaa", "--to", "copy").stdout.strip()
    with Threads(db) as threads:
        assert threads.messages(copy) == threads.messages("aaa-order")
    assert data("threads", "show", copy)[0]["forked_from"] == "aaa-order"
    refused = run("threads", "fork", "aaa", "--at", "nope", code=2).stderr
    assert "a message 'nope': `threads history --json` shows the ids" in refused


def test_threads_of_others_are_not_there_for_an_owner(db: str) -> None:
    with DeltaSaver.open(db) as saver:
        ThreadChatMessageHistory("ccc", saver, owner="alice").add_messages([HumanMessage("mine")])
    assert ids("--owner", "alice") == ["ccc"]
    assert "not found" in run("threads", "show", "aaa", "--owner", "alice", code=1).stderr


def test_a_thread_that_has_expired_is_shown_until_it_is_deleted(db: str) -> None:
    notes = {"langmem_ext": {"tool": "debug"}}
    with DeltaSaver.open(db) as saver:
        for thread in ("tool", "tool-2"):
            said = [HumanMessage("look", additional_kwargs=notes)]
            ThreadChatMessageHistory(thread, saver).add_messages(said)
    change(db, "UPDATE thread SET updated_at = 0, active_at = 0 WHERE id = 'tool'")
    [shown] = data("threads", "show", "tool")
    assert (shown["id"], shown["tool"]) == ("tool", "debug")


# -- at a terminal ---------------------------------------------------------------------------------


@pytest.mark.process
@ON_A_FILE
def test_at_a_terminal_a_table_is_shown_and_deleting_asks(
    db: str, terminal: Callable[..., pexpect.spawn]
) -> None:
    made = str(uuid4())
    with DeltaSaver.open(db) as saver:
        ThreadChatMessageHistory(made, saver).add_messages([HumanMessage("A long title " * 9)])
    for columns in (40, 80, 120):
        lines = terminal("threads", "list", TERM="dumb", COLUMNS=str(columns)).read().splitlines()
        assert max(map(len, lines)) <= columns
        shown = [line.split()[0] for line in lines if line[:1].strip()]
        assert shown[:4] == ["id", made[:8], "bbb-joke", "aab-pin"], "whole, to be typed"
    assert "Where is my order?" in "".join(lines)
    assert "now" in "".join(lines)
    counts = terminal("threads", "stats", TERM="dumb").read().splitlines()
    assert len({len(line.rstrip()) for line in counts if line.strip()}) == 1, (
        "the numbers stand below each other"
    )
    for answer, told, code, left in (
        ("\x03", "stopped", 130, 4),
        ("n\n", "nothing was deleted", 1, 4),
        ("y\n", "deleted 1 thread", 0, 3),
    ):
        asking = terminal("threads", "delete", "aaa")
        asking.expect("permanently")
        asking.send(answer)
        asking.expect(told)
        asking.expect(pexpect.EOF)
        asking.close()
        assert (asking.exitstatus, count(db)) == (code, left)


# -- what is in the way ----------------------------------------------------------------------------


@pytest.mark.process
@ON_A_FILE
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_output_that_nobody_takes_ends_the_command(db: str) -> None:
    said: dict[str, object] = {"stderr": subprocess.PIPE, "text": True}
    with Path("/dev/full").open("w") as full:
        for words in (["list"], ["export", "--all"]):
            done = subprocess.run([*COMMAND, *words], stdout=full, **said)  # type: ignore[call-overload]
            told = "langmem-ext: the output cannot be used: No space left on device\n"
            assert (done.returncode, done.stderr) == (1, told)
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([*COMMAND, "list"], stdout=write, **said)  # type: ignore[call-overload]
    os.close(write)
    assert (done.returncode, done.stderr) == (141, ""), "a reader that goes away is no error"


@pytest.fixture
def read_only(db: str) -> Iterator[list[str]]:
    """The database may only be read, and so may its folder; how a command is begun to which that
    applies.
    """
    # The system lets its superuser write whatever the file says.
    prefix = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    if prefix and shutil.which(prefix[0]) is None:
        pytest.skip("needs a user who is no superuser")
    run("threads", "search", "order")
    path = Path(db)
    (path.parent / "memory.db-lock").unlink(missing_ok=True)
    path.chmod(0o444)
    path.parent.chmod(0o555)
    yield [*prefix, *COMMAND]
    path.parent.chmod(0o755)


@pytest.mark.process
@ON_A_FILE
def test_a_database_that_can_only_be_read_is_searched_and_what_would_write_says_what_to_do(
    db: str, read_only: list[str]
) -> None:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*read_only, *words], cwd=ROOT, capture_output=True, text=True)

    done = run("search", "order", "--db", db)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line.split("\t")[0] for line in done.stdout.splitlines()] == ["aaa-order", "aaa-order"]
    done = run("rename", "aaa", "another", "--db", db)
    assert (done.returncode, done.stdout) == (1, "")
    assert "check that the file and its directory are writable" in done.stderr
    assert "mode=ro" not in done.stderr
    Path(db).parent.chmod(0o755)
    Path(db).chmod(0o644)
    done = run("rename", "aaa", "another", "--db", f"sqlite:///{db}?mode=ro")
    assert (done.returncode, "open it without mode=ro" in done.stderr) == (1, True)


def test_what_is_opened_for_reading_by_its_url_is_not_written(db: str) -> None:
    url = f"{db}{'&' if '?' in db else '?'}mode=ro" if "://" in db else f"sqlite:///{db}?mode=ro"
    before = data("threads", "list")
    for words in (["rename", "aaa-order", "another"], ["delete", "aaa-order", "--yes"]):
        assert "read" in run("threads", *words, "--db", url, code=1).stderr
    assert data("threads", "list", "--db", url) == data("threads", "list") == before
