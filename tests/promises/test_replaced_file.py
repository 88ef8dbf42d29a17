"""Promise: nothing is acknowledged that goes into a file which is no longer the one at its path."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from savers import Calls

from langmem_ext import (
    DeltaSaver,
    DeltaStore,
    StorageError,
    StorageUnavailable,
    ThreadChatMessageHistory,
    Threads,
    copy_saver,
    examine,
)

posix = pytest.mark.skipif(sys.platform == "win32", reason="an open file cannot be replaced there")


def say(saver: DeltaSaver, text: str, thread: str = "t") -> None:
    ThreadChatMessageHistory(thread, saver).add_messages([HumanMessage(text)])


def said(saver: DeltaSaver, thread: str = "t") -> list[Any]:
    return [message.content for message in ThreadChatMessageHistory(thread, saver).messages]


def in_sqlite(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(statement)


def back_up(path: Path) -> None:
    in_sqlite(path, f"VACUUM INTO '{path.with_suffix('.bak')}'")


def remove(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        os.remove(f"{path}{end}")


def restore(path: Path) -> None:
    remove(path)
    os.replace(path.with_suffix(".bak"), path)


CHANGES: dict[str, Callable[[Path], object]] = {
    "it was deleted": remove,
    "a backup was put in its place": restore,
    "a backup replaced it, not its log": lambda path: path.with_suffix(".bak").replace(path),
    "it was renamed": lambda path: path.rename(path.with_name("elsewhere.db")),
    "its log was deleted": lambda path: os.remove(f"{path}-wal"),
    "its index was deleted": lambda path: os.remove(f"{path}-shm"),
    "another may hold its lease": lambda path: os.remove(f"{path}-lock"),
}


@posix
@pytest.mark.parametrize("change", CHANGES)
async def test_every_call_says_that_the_file_is_another(
    change: str, tmp_path: Path, calls: Calls
) -> None:
    path = tmp_path / "memory.db"
    with DeltaSaver.open(path) as saver, saver.lease("t"):
        say(saver, "before")
        back_up(path)
        CHANGES[change](path)
        history = ThreadChatMessageHistory("t", saver)
        for target, name, *given in (
            (history, "add_messages", [HumanMessage("lost")]),
            (saver.store, "put", ("a",), "k", {}),
            (saver.store, "get", ("a",), "k"),
            (saver, "compact"),
        ):
            with pytest.raises(StorageUnavailable, match="no longer the file.* open memory.db ag"):
                await calls.call(target, name, *given)
        with pytest.raises(StorageUnavailable, match="no longer the file.* open memory.db ag"):
            said(saver)
        report = examine(saver)
        assert not report.ok
        assert "no longer the file" in str(report.findings)
    if path.exists():  # what is there now was not changed by closing the old one
        with DeltaSaver.open(path) as anew:
            assert said(anew) == ["before"]
            assert examine(anew).ok


@posix
def test_what_others_were_acknowledged_stays_though_an_index_was_deleted(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with DeltaSaver.open(path) as saver:
        say(saver, "before")
        os.remove(f"{path}-shm")
        code = (
            "import sys; from langmem_ext import *; saver = DeltaSaver.open(sys.argv[1])\n"
            "ThreadChatMessageHistory('t', saver).add_user_message('of another process')"
        )
        subprocess.run([sys.executable, "-c", code, str(path)], check=True)
        with pytest.raises(StorageUnavailable):
            say(saver, "lost")
    with DeltaSaver.open(path) as anew:
        assert said(anew) == ["before", "of another process"]


@posix
def test_a_commit_is_not_acknowledged_if_the_file_went_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    connection = sqlite3.connect(path, check_same_thread=False)
    with DeltaSaver(connection) as saver:
        say(saver, "before")
        connection.set_trace_callback(
            lambda statement: remove(path) if statement == "COMMIT" and path.exists() else None
        )
        with pytest.raises(StorageUnavailable, match="no longer the file"):
            say(saver, "lost")
    connection.close()


@posix
def test_of_many_writers_none_is_told_that_a_lost_write_is_stored(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with DeltaSaver.open(path) as saver, ThreadPoolExecutor(8) as pool:

        def write(at: int) -> str | None:
            if at == 100:
                path.rename(tmp_path / "kept.db")
                os.rename(f"{path}-wal", tmp_path / "kept.db-wal")
            try:
                say(saver, "hello", thread=f"t{at}")
            except StorageError:
                return None
            return f"t{at}"

        acknowledged = [thread for thread in pool.map(write, range(200)) if thread]
        assert len(acknowledged) < 200
        with DeltaSaver.open(tmp_path / "kept.db") as kept:
            assert set(acknowledged) <= {found.id for found in Threads(kept).list(limit=500)}


def test_what_leaves_the_file_in_place_raises_nothing(tmp_path: Path) -> None:
    path, other = tmp_path / "memory.db", tmp_path / "other.db"
    with DeltaSaver.open(path) as saver, DeltaSaver.open(other) as copied:
        say(saver, "one")
        saver.compact(full=True)
        back_up(path)
        in_sqlite(path, "VACUUM")
        in_sqlite(path, "PRAGMA wal_checkpoint(TRUNCATE)")
        copy_saver(saver, copied)
        exported = tmp_path / "threads.jsonl"
        Threads(saver).export_to(exported, "t")
        Threads(copied).delete("t")
        Threads(copied).import_from(exported, keep_ids=True)
        program = (
            f"from langmem_ext import *; s = DeltaSaver.open({str(path)!r});"
            " ThreadChatMessageHistory('t', s).add_user_message('two'); s.close()"
        )
        subprocess.run([sys.executable, "-c", program], check=True)
        say(saver, "three")
        assert said(saver) == ["one", "two", "three"]
        assert said(copied) == ["one"]


def test_memory_and_files_that_are_only_read_have_no_place_to_watch(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with DeltaSaver(":memory:") as saver:
        say(saver, "one")
        assert said(saver) == ["one"]
    with DeltaSaver(sqlite3.connect("", check_same_thread=False)) as saver:
        say(saver, "one")
    with DeltaSaver.open(path) as saver:
        say(saver, "one")
    with DeltaSaver.open(f"sqlite:///{path}?mode=ro") as reader:
        assert said(reader) == ["one"]
        with DeltaSaver.open(path) as saver:
            say(saver, "two")
        assert said(reader) == ["one", "two"]
        assert DeltaStore(reader).get(("a",), "k") is None
