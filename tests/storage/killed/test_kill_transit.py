"""Promises: an import that is killed has stored whole threads and is run again for the rest; an
export that is killed leaves no half file; and whoever chats meanwhile loses nothing, in this
process or another.
"""

from __future__ import annotations

import io
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from carried import exported, ids_of, rows_of, threads_in
from comparison import assert_same
from database_copies import Sessions
from forked_workers import forks
from killed_upkeep import THREADS
from nursery import Nursery
from patience import PATIENCE_S
from prune_reference import assert_sound
from savers import Backend, open_saver
from test_kill_upkeep import make

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads

pytestmark = pytest.mark.process


SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
KILLS = 200 if SOAK else 10
TURNS = 400 if SOAK else 60


@pytest.fixture(scope="module")
def mortal() -> Iterator[Nursery]:
    mortal = Nursery(Path(__file__).with_name("killed_upkeep.py"))
    yield mortal
    mortal.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database that is exported."""
    path = tmp_path_factory.mktemp("whole") / "memory.db"
    make(str(path))
    return path


@pytest.mark.timeout(3600)
def test_an_import_that_is_killed_has_stored_whole_threads_and_goes_on(
    mortal: Nursery, whole: Path, durable: Backend, tmp_path: Path
) -> None:
    beside, sessions = str(tmp_path / "beside"), Sessions(durable)
    with DeltaSaver.open(str(whole)) as source:
        export = exported(source)
        expected = {thread: rows_of(source, thread) for thread in THREADS}
        Threads(source).export_to(f"{beside}-export.jsonl.gz")
        undisturbed = mortal.run(what="import", path=durable.new_url(tmp_path), beside=beside)
        assert undisturbed["died"] == 0
        chance, seen = random.Random(None if SOAK else 20260102), set()
        for number in range(KILLS):
            # One of them at the last step, when all is there: on a busy machine every other may
            # come before anything is.
            where: dict[str, Any] = {
                "dies_at": (
                    chance.randrange(undisturbed["steps"]) if number else undisturbed["steps"] - 1
                )
            }
            if number % 2:
                where = {"after_s": chance.uniform(0, undisturbed["seconds"] * 1.2 + 0.01)}
            assert mortal.run(
                what="import", path=(url := durable.new_url(tmp_path)), beside=beside, **where
            )["died"] in (0, -9)
            sessions.wait()
            with DeltaSaver.open(url) as target:
                there = sorted(ids_of(target))
                seen.add(len(there))
                assert there == THREADS[: len(there)], f"kill {number}, {where}"
                for thread in there:
                    assert_same(
                        expected[thread],
                        rows_of(target, thread),
                        f"rows of {thread}, kill {number}, {where}",
                    )
                assert_sound(target)
                again = Threads(target).import_from(f"{beside}-export.jsonl.gz", keep_ids=True)
                assert (list(again.skipped), list(again.ids)) == (there, THREADS[len(there) :])
                assert threads_in(exported(target)) == threads_in(export)
    assert len(seen) > 1


@pytest.mark.timeout(3600)
def test_an_export_that_is_killed_leaves_what_was_there(
    mortal: Nursery, whole: Path, url: str, tmp_path: Path
) -> None:
    with DeltaSaver.open(str(whole)) as source, DeltaSaver.open(url) as saver:
        Threads(saver).import_from(io.StringIO(exported(source)), keep_ids=True)
    work = {"what": "export", "path": url, "beside": str(tmp_path / "beside")}
    target = tmp_path / "beside-export.jsonl.gz"
    undisturbed = mortal.run(**work)
    finished = target.read_bytes()
    chance, kept = random.Random(None if SOAK else 20260103), 0
    for number in range(KILLS):
        target.write_bytes(b"what was there before")
        when = (
            {"after_s": chance.uniform(0, undisturbed["seconds"])}
            if number % 2
            else {"dies_at": chance.randrange(undisturbed["steps"])}
        )
        assert mortal.run(**work, **when)["died"] in (0, -9)
        assert target.read_bytes()[:4] in (b"what", finished[:4])
        if target.read_bytes() == b"what was there before":
            kept += 1
            continue
        with DeltaSaver.open(":memory:") as saver:
            assert (
                sorted(Threads(saver).import_from(target, keep_ids=True).ids) == THREADS
            )  # an export is in the order of their numbers
    assert kept


def chat(url: str, begun: Any, turns: int) -> None:
    """A process that chats in two threads by turns."""
    saver = open_saver(url)
    begun.wait(PATIENCE_S)
    for number in range(turns):
        ThreadChatMessageHistory(f"t{number % 2}", saver).add_messages([_said(number)])
    saver.close()


def _said(number: int) -> Any:
    from langchain_core.messages import (  # noqa: PLC0415
        HumanMessage,
    )

    return HumanMessage(f"message {number} " * 9, id=f"m{number}")


def test_while_one_process_chats_another_exports_and_nothing_is_lost_or_mixed(url: str) -> None:
    context = forks()
    begun = context.Event()
    with DeltaSaver.open(url) as saver:
        chatting = context.Process(target=chat, args=(url, begun, TURNS))
        chatting.start()
        begun.set()
        exports = [exported(saver)]
        while chatting.is_alive():
            exports.append(exported(saver))
        chatting.join()
        assert chatting.exitcode == 0
        exports.append(exported(saver))
        lengths = []
        for export in [*exports[:: max(1, len(exports) // 12)], exports[-1]]:
            with DeltaSaver.open(":memory:") as target:
                done = Threads(target).import_from(io.StringIO(export), keep_ids=True)
                assert_sound(target)
                lengths.append(done.messages)
                for thread in done.ids:
                    said = [
                        message.id for message in ThreadChatMessageHistory(thread, target).messages
                    ]
                    assert said == [
                        f"m{number}" for number in range(int(thread[1]), 2 * len(said), 2)
                    ]
        assert lengths == sorted(lengths)
        assert lengths[-1] == TURNS
        assert_sound(saver)
