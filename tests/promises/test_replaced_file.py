"""Promise: nothing is acknowledged that goes into a file which is no longer at its path."""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage

from langmem_ext import DeltaSaver, DeltaStore, StorageError, ThreadChatMessageHistory, Threads

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="Windows does not let an open file be deleted"
)


def delete(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)


def put_back_a_backup(path: Path) -> None:
    sqlite3.connect(path).execute(f"VACUUM INTO '{path}.bak'").close()
    delete(path)
    os.replace(f"{path}.bak", path)


def move_away(path: Path) -> None:
    os.replace(path, path.with_name("moved.db"))


@pytest.mark.parametrize("change", [delete, put_back_a_backup, move_away])
async def test_every_operation_says_so(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = tmp_path / "m.db"
    saver = DeltaSaver.open(path)
    history, store = ThreadChatMessageHistory("t", saver), DeltaStore(saver)
    history.add_messages([HumanMessage("before")])
    change(path)
    for _ in range(2):  # not only once
        with pytest.raises(StorageError, match="deleted, or replaced"):
            history.add_messages([HumanMessage("after")])
        with pytest.raises(StorageError, match="deleted, or replaced"):
            await history.aadd_messages([HumanMessage("after")])
        with pytest.raises(StorageError, match="deleted, or replaced"):
            store.put(("a",), "k", {"v": 1})
        with pytest.raises(StorageError, match="deleted, or replaced"):
            await store.aput(("a",), "k", {"v": 1})
        with pytest.raises(StorageError, match="deleted, or replaced"):
            Threads(saver).list()
    saver.close()
    with DeltaSaver.open(path) as anew:
        kept = [message.text for message in ThreadChatMessageHistory("t", anew).messages]
        assert kept == ([] if change is not put_back_a_backup else ["before"])
        ThreadChatMessageHistory("t", anew).add_messages([HumanMessage("after")])


def test_what_keeps_the_file_is_no_change(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path, target_is_directory=True)
    with DeltaSaver.open(tmp_path / "link" / "m.db") as saver:
        history = ThreadChatMessageHistory("t", saver)
        history.add_messages([HumanMessage("one")])
        saver.compact(full=True)
        sqlite3.connect(tmp_path / "m.db").execute("VACUUM").close()
        os.utime(tmp_path / "m.db")
        history.add_messages([HumanMessage("two")])
        assert len(history.messages) == 2
