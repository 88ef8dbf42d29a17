"""Promise: each column of a thread's own row is copied, exported and imported; or it has a reason
not to be.

The lines of an export name the columns by hand, and so does what a copy leaves out: a new column
would be lost without an error.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest
from carried import bring_in, exported
from langchain_core.messages import HumanMessage
from prune_reference import rows
from search_reference import spoil

from langmem_ext import DeltaSaver, ThreadChatMessageHistory
from langmem_ext.storage.threads.list import TAG_END
from langmem_ext.storage.threads.rows_sql import THREAD_COLUMNS

OF_ONE_DATABASE: Final = {
    "number": "is given by the database",
    "version": "moves with every write, from a random beginning",
    "generation": "tells a thread from others that had its id",
    "indexed": "how far the search index of this database has come",
    "born": "since when this database knows the thread",
}
NOT_COPIED: Final = OF_ONE_DATABASE | {
    "id": "the copy's own",
    "status": "a copy is in use, whatever became of its source",
    "created_at": "when it was copied",
    "updated_at": "when it was copied",
    "active_at": "when it was copied",
    "forked_from": "the source",
}
NOT_EXPORTED: Final = OF_ONE_DATABASE | {"key_id": "nothing is stored in it yet"}
READ_ANEW: Final = {"waiting_for": "an import reads it in the newest checkpoint"}

SET: Final = {
    "owner": "'ann'",
    "title": "'a title'",
    "titled_by": "0",
    "status": "'archived'",
    "head_messages": "1",
    "forked_from": "'other'",
    "waiting_for": "'city'",
    "tool": "'writer'",
    "tags": f"'{TAG_END}new{TAG_END}'",
    "metadata": """'{"a":1}'""",
    "indexed": "1",
    "key_id": "'key'",
}
"""Values for the columns that have none in a thread of one message."""


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(tmp_path / "memory.db") as saver:
        ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("hello", id="h")])
        columns = ", ".join(f"{name} = {value}" for name, value in SET.items())
        times = "created_at = 1, updated_at = 60000, active_at = 1"
        spoil(saver, f"UPDATE thread SET {columns}, {times}")
        yield saver


def row_of(saver: DeltaSaver, thread: str) -> dict[str, Any]:
    """A thread's row, by column: of all that the table has."""
    names = [name for (name,) in rows(saver, "SELECT name FROM pragma_table_info('thread')")]
    [row] = rows(saver, f"SELECT {', '.join(names)} FROM thread WHERE id = '{thread}'")
    return dict(zip(names, row, strict=True))


def test_every_column_is_copied(saver: DeltaSaver) -> None:
    saver.copy_thread("t", "copy")
    source, copy = row_of(saver, "t"), row_of(saver, "copy")
    assert None not in source.values()  # a column without a value would show nothing
    assert {name for name in source if source[name] != copy[name]} == NOT_COPIED.keys()


def test_every_column_is_exported_and_imported(saver: DeltaSaver, tmp_path: Path) -> None:
    source = row_of(saver, "t")
    assert source.keys() - THREAD_COLUMNS == NOT_EXPORTED.keys()
    with DeltaSaver.open(tmp_path / "other.db") as other:
        bring_in(other, exported(saver, "t"), keep_ids=True, keep_owners=True)
        there = row_of(other, "t")
    kept = [name for name in THREAD_COLUMNS if name not in READ_ANEW]
    assert {name: there[name] for name in kept} == {name: source[name] for name in kept}
