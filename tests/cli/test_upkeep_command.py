"""Promise: conversations are searched, moved, counted, swept, pruned and deleted from the command
line, and nothing goes that was not meant.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pexpect
import pytest
from commands import data, run
from langchain_core.messages import AIMessage, HumanMessage
from prune_reference import change
from savers import Backend

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads, examine

OLD = ("old-chat", "old-tool")

ON_A_FILE = pytest.mark.parametrize("durable", ["file"], indirect=True)
"""Of a test that is about the file itself, or about a terminal and nothing of the storage."""


@pytest.fixture
def db(place: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A database of a chat and a tool's thread of long ago, and of a chat of today with a
    secret.
    """
    secret, tool = {"sensitive": ["pin"]}, {"tool": "debug"}
    with DeltaSaver.open(place, synchronous="normal") as saver:
        for thread, text, notes in (
            ("old-chat", "Where is the lamp?", {}),
            ("old-tool", "Look at the lamp", tool),
            ("new", "my pin is 1234-pin", secret),
        ):
            marked: dict[str, Any] = {"langmem_ext": notes}
            for number in range(3):
                ThreadChatMessageHistory(thread, saver).add_messages(
                    [
                        HumanMessage(text, additional_kwargs=marked),
                        AIMessage(f"answer {number}\x1b[2J"),
                    ]
                )
    change(place, f"UPDATE thread SET updated_at = 0, active_at = 0 WHERE id IN {OLD}")
    monkeypatch.setenv("LANGMEM_EXT_DB", place)
    return place


def threads_of(db: str | Path) -> list[str]:
    with Threads(str(db)) as threads:
        return sorted(thread.id for thread in threads.each(status=None))


def assert_forgotten(db: str, text: str) -> None:
    """No file has the text; what a server's tables keep is not ours to see."""
    files = Path(db).parent.glob("memory.db*") if "://" not in db else ()
    assert text.encode() not in b"".join(path.read_bytes() for path in files)


# -- searching, counting, moving -------------------------------------------------------------------


def test_a_search_finds_messages_and_no_secrets(db: str) -> None:
    found = data("threads", "search", "lam")
    assert {hit["thread_id"] for hit in found} == {*OLD}
    assert {hit["role"] for hit in found} == {"human"}
    start, end = found[0]["highlights"][0]
    assert found[0]["snippet"][start:end] == "lamp"
    asked = ["threads", "search", "answer", "--thread", "n", "--role", "ai"]
    lines = [line.split("\t") for line in run(*asked).stdout.splitlines()]
    assert [(line[0], line[2]) for line in lines] == [("new", "ai")] * 3
    assert {line[3] for line in lines} == {f"answer {number}�[2J" for number in range(3)}
    assert len(data("threads", "search", "lamp", "--limit", "1")) == 1
    assert data("threads", "search", "lamp", "--since", "2100-01-01") == []
    assert "no messages found" in run("threads", "search", "1234").stderr


def test_conversations_are_counted_by_status_and_by_tool(db: str) -> None:
    [counts] = data("threads", "stats")
    assert (counts["threads"], counts["turns"], counts["by_status"]["active"]) == (3, 9, 3)
    assert {"tool": "debug", "threads": 1} in counts["by_tool"]
    lines = dict(line.split("\t") for line in run("threads", "stats").stdout.splitlines())
    assert (lines["threads"], lines["of the tool debug"], lines["of no tool"]) == ("3", "1", "2")


def test_what_is_exported_is_imported_elsewhere(db: str, durable: Backend, tmp_path: Path) -> None:
    other = durable.new_url(tmp_path)
    [done] = data("threads", "export", "--all", "--to", "x.gz")
    assert (done["threads"], done["messages"]) == (3, 18)
    into = ["threads", "import", "x.gz", "--db", other]
    assert sorted(run(*into, "--keep-ids").stdout.splitlines()) == threads_of(db)
    assert threads_of(other) == threads_of(db)
    [again] = data(*into, "--keep-ids")
    assert (again["ids"], sorted(again["skipped"])) == ({}, threads_of(db))
    [ids] = [line["ids"] for line in data(*into)]
    assert threads_of(other) == sorted([*ids, *ids.values()])


def test_an_export_goes_through_a_pipe(db: str, tmp_path: Path) -> None:
    lines = run("threads", "export", "new", "old-c").stdout
    done = run("threads", "import", "-", "--db", tmp_path / "other.db", given=lines)
    assert sorted(line.split("\t")[0] for line in done.stdout.splitlines()) == ["new", "old-chat"]
    page = run("threads", "export", "old-c", "--format", "markdown")
    assert page.stdout.startswith("# Where is the lamp?")
    assert "exported 1 thread, 6 messages" in page.stderr
    page = run("threads", "export", "new", "-f", "markdown")
    assert "1234-pin" not in page.stdout
    page = run("threads", "export", "new", "-f", "markdown", "--include-sensitive")
    assert "1234-pin" in page.stdout


# -- deleting --------------------------------------------------------------------------------------


def test_deleting_in_a_pipe_is_done_only_where_it_is_meant_and_leaves_no_word(db: str) -> None:
    assert "--yes" in run("threads", "delete", "old-c", code=2).stderr
    [done] = data("threads", "delete", "old-c", "old-t", "--yes")
    assert (done["threads"], threads_of(db)) == (2, ["new"])
    assert_forgotten(db, "Where is the lamp")


def test_a_sweep_deletes_what_has_expired_by_the_settings_or_by_its_options(db: str) -> None:
    [would] = data("sweep", "--dry-run")
    assert "only conversations of tools expire" in run("sweep", "--dry-run").stderr
    assert "no conversation expires" in run("sweep", "--dry-run", "--tool-ttl", "0").stderr
    assert run("sweep", "--dry-run", "--ttl", "1").stderr.count("langmem-ext: ") == 1
    assert (would["threads"], would["dry_run"], threads_of(db)) == (1, True, ["new", *OLD])
    assert data("sweep", LANGMEM_EXT_TTL_HOURS="0") == [
        dict.fromkeys(would, 0) | {"dry_run": False}
    ]
    assert "deleted 1 thread," in run("sweep").stderr
    assert threads_of(db) == ["new", "old-chat"]
    assert data("sweep", LANGMEM_EXT_AUTO_PRUNE_DAYS="30")[0]["threads"] == 1
    assert threads_of(db) == ["new"]
    assert data("sweep", "--ttl", "0.5", "--tool-ttl", "1")[0]["threads"] == 0
    assert examine(db).ok


def test_pruning_in_a_pipe_is_done_only_where_it_is_meant(db: str) -> None:
    assert "--yes" in run("prune", "--older-than", "30", code=2).stderr
    assert "nothing to prune" in run("prune", "--yes", code=2).stderr
    assert data("prune", "--older-than", "30", "--dry-run")[0]["threads"] == 2
    assert threads_of(db) == ["new", *OLD]
    month = {"LANGMEM_EXT_AUTO_PRUNE_DAYS": "30"}
    [thinned] = data("prune", "--keep-last", "1", "--yes", **month)
    assert (thinned["threads"], thinned["checkpoints"]) == (0, 6)
    assert "deleted 2 threads" in run("prune", "--yes", **month).stderr
    assert threads_of(db) == ["new"]
    assert_forgotten(db, "Where is the lamp")
    assert examine(db).ok


@pytest.mark.process
@ON_A_FILE
def test_at_a_terminal_pruning_asks_first_and_searching_shows_where(
    db: str, terminal: Callable[..., pexpect.spawn]
) -> None:
    assert "old-chat" in terminal("threads", "search", "lamp").read()
    for answer, code, left in (("n", 1, 3), ("y", 0, 1)):
        asking = terminal("prune", "--older-than", "7")
        asking.expect("2 threads(?s:.*)permanently")
        asking.sendline(answer)
        asking.expect(pexpect.EOF)
        asking.close()
        assert (asking.exitstatus, len(threads_of(db))) == (code, left)
