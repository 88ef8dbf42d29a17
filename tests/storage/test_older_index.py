"""Promise: a database whose search index another release made otherwise is written and searched by this one."""

from __future__ import annotations

from pathlib import Path

import pytest
from forgotten import assert_sound
from langchain_core.messages import HumanMessage
from savers import BACKENDS, Backend
from searched import assert_found, has_index, spoil

from langmem_ext import DeltaSaver, StorageError, StorageUnavailable, ThreadChatMessageHistory, Threads
from langmem_ext.storage.schema import MIGRATIONS
from langmem_ext.storage.search_dialect import UNMAKE_LEAVING

KEPT = [backend for backend in BACKENDS if backend.survives_close]


def say(saver: DeltaSaver, *texts: str) -> None:
    ThreadChatMessageHistory("t", saver).add_messages([HumanMessage(text) for text in texts])


def make_old(saver: DeltaSaver) -> None:
    """Leave the index as it was before it knew of marked messages."""
    for statement in (UNMAKE_LEAVING, "ALTER TABLE search_message DROP COLUMN marked"):
        spoil(saver, statement)
    spoil(saver, f"DELETE FROM langmem_migration WHERE name = '{MIGRATIONS[1].name}'")


@pytest.mark.parametrize("backend", KEPT, ids=lambda backend: backend.name)
def test_an_index_of_an_older_release_is_dropped_at_opening_and_made_anew_by_the_next_search(backend: Backend, tmp_path: Path) -> None:
    url = backend.new_url(tmp_path)
    with DeltaSaver.open(url) as saver:
        say(saver, "the first apple", "an orange")
        assert_found(saver, Threads(saver), "apple")
        make_old(saver)
        with pytest.raises(StorageError):
            say(saver, "not written")
    with pytest.raises(StorageUnavailable, match="older"):
        DeltaSaver.open(f"{url}&mode=ro" if "://" in url else f"sqlite:///{url}?mode=ro")
    for round in range(2):
        with DeltaSaver.open(url) as saver:
            assert has_index(saver) is bool(round)
            say(saver, f"apple {round}")
            assert len(Threads(saver).search("apple")) == 2 + round
            assert_sound(saver)
