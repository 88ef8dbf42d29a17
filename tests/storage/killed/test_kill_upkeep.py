"""Promise: killed in the middle of forgetting, copying or compacting, a database is sound, what
stays reads as before, and it can go on.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from comparison import Form, Names, assert_same
from database_copies import Original, Sessions
from killed_upkeep import RETENTION, THREADS, carry_out
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from nursery import Nursery
from prune_reference import Place, assert_clean, assert_sound, everything, newest, rows
from savers import Backend
from search_reference import assert_found

from langmem_ext import DeltaSaver, Threads

pytestmark = pytest.mark.process


SOAK = os.environ.get("LANGMEM_EXT_SOAK") == "1"
KILLS = 200 if SOAK else 4

UPKEEP = ("prune", "sweep", "copy", "delete", "compact", "compact fully", "search")
INDEXED = ("prune", "copy", "delete", "compact", "search anew")
"""Of a database that has a search index."""

CASES = [
    *(("file", what, False) for what in UPKEEP),
    *(("file", what, True) for what in INDEXED),
    # What vacuums and copies there has nothing to do with the index.
    *(
        ("postgres", what, False)
        for what in ("sweep", "copy", "compact", "compact fully", "search")
    ),
    *(("postgres", what, True) for what in ("prune", "delete", "search anew")),
]
"""Kind of database, work, whether it has a search index."""


@pytest.fixture(scope="module")
def mortal() -> Iterator[Nursery]:
    mortal = Nursery(Path(__file__).with_name("killed_upkeep.py"))
    yield mortal
    mortal.close()


def answer(state: MessagesState) -> Any:
    number = len(state["messages"])
    if number % 9 == 8:  # a message that later checkpoints hold otherwise
        return {
            "messages": [
                HumanMessage("replaced", id=state["messages"][0].id),
                AIMessage("noted", id=f"a{number}"),
            ]
        }
    return {"messages": [AIMessage(f"answer {number} " * 40, id=f"a{number}")]}


def make(url: str) -> None:
    """A database with six threads, forks among them, and room for compaction to give back."""
    with DeltaSaver.from_conn_string(url) as saver:
        graph = (
            StateGraph(MessagesState)
            .add_node("answer", answer)
            .add_edge(START, "answer")
            .compile(checkpointer=saver)
        )
        for thread in [*THREADS, "gone"]:
            config: Any = {"configurable": {"thread_id": thread}}
            for number in range(8):
                graph.invoke(
                    {
                        "messages": [
                            HumanMessage(f"turn {number} of {thread} " * 20, id=f"h{number}")
                        ]
                    },
                    config,
                )
            fork = list(saver.list(config))[9].config
            graph.invoke({"messages": [HumanMessage("on a fork", id="f")]}, fork)
        saver.delete_thread("gone")


def forms(url: str) -> dict[Place, Form | None]:
    """All that can be read of a database, by a saver that has seen none of it; the doctor finds
    nothing wrong.
    """
    with DeltaSaver.from_conn_string(url) as saver:
        assert_sound(saver)
        return {
            place: Names(keep=True).checkpoint(found) for place, found in everything(saver).items()
        }


@pytest.fixture(scope="module")
def whole(durable: Backend, tmp_path_factory: pytest.TempPathFactory) -> Original:
    """The database that all of these tests begin with."""
    original = Original(durable, tmp_path_factory.mktemp("whole"))
    make(original.url)
    return original


@pytest.fixture(scope="module")
def indexed(durable: Backend, tmp_path_factory: pytest.TempPathFactory) -> Original:
    """The same with a search index, and words of deleted messages in it."""
    original = Original(durable, tmp_path_factory.mktemp("indexed"), indexed=True)
    make(original.url)
    with DeltaSaver.from_conn_string(original.url) as saver:
        Threads(saver).enable_search()
        saver.copy_thread(THREADS[0], "gone again")
        saver.delete_thread("gone again")
    return original


def expected(what: str, before: dict[Place, Form | None]) -> set[Place]:
    """The checkpoints that stay when the work is done; copies come to them."""
    match what:
        case "prune":
            return newest(dict(before), 3)  # type: ignore[arg-type]
        case "sweep":
            return newest(dict(before), RETENTION.keep_last or 0)  # type: ignore[arg-type]
        case "delete":
            return {place for place in before if place[0] not in THREADS[:3]}
    return set(before)


def assert_what_stays_is_whole(
    what: str, url: str, before: dict[Place, Form | None], note: str
) -> None:
    """Check a database whose process was killed, and let the work be done to its end."""
    found = forms(url)
    staying = expected(what, before)
    by_thread = {
        thread: {place for place in found if place[0] == thread}
        for thread in {place[0] for place in [*found, *before]}
    }
    for thread, places in by_thread.items():
        source = thread.removesuffix(" copied")
        was = {place for place in before if place[0] == source}
        if source != thread:
            assert {place[1:] for place in places} == {place[1:] for place in was}, (
                f"{note}: half a copy"
            )
        else:
            # Each thread is forgotten from in a transaction of its own.
            assert places in (was, was & staying), f"{note}: half of thread {thread} has gone"
    for place in found.keys() & before.keys():
        assert_same(before[place], found[place], f"{note}: {place}")
    with DeltaSaver.from_conn_string(url, serde=None) as saver:
        saver = DeltaSaver(saver.log, retention=RETENTION)
        if what == "copy":
            for thread in THREADS:
                if not by_thread.get(f"{thread} copied"):
                    saver.copy_thread(thread, f"{thread} copied")
        else:
            carry_out(saver, what)
        assert_clean(saver)
        if rows(saver, "SELECT 1 FROM setting WHERE name = 'search'"):
            for word in ("turn", "answer 3", "replaced"):
                assert_found(saver, Threads(saver), word)
        after = {place for place in everything(saver) if not place[0].endswith(" copied")}
        assert after == staying, note


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("durable", "what", "searched"), CASES, indirect=["durable"])
def test_killed_in_the_middle_of_upkeep_a_database_is_whole_and_can_go_on(
    what: str,
    searched: bool,
    durable: Backend,
    mortal: Nursery,
    whole: Original,
    indexed: Original,
    tmp_path: Path,
) -> None:
    source = indexed if searched else whole
    before, sessions = forms(source.url), Sessions(durable)
    undisturbed = mortal.run(what=what, path=(url := source.copy(tmp_path)))
    assert undisturbed["died"] == 0
    assert_what_stays_is_whole(what, url, before, "not killed")
    chance = random.Random(None if SOAK else 20260102)
    died = 0
    kills = KILLS if durable.name == "file" else max(2, KILLS // 2)
    for number in range(kills):
        # Half of them at a statement or a COMMIT, half of them anywhere; opening is not counted to
        # the length of the work.
        where: dict[str, Any] = {"dies_at": chance.randrange(undisturbed["steps"] or 1)}
        if number % 2 or not undisturbed["steps"]:
            where = {"after_s": chance.uniform(0, undisturbed["seconds"] * 1.2 + 0.01)}
        found = mortal.run(what=what, path=(url := source.copy(tmp_path)), **where)
        assert found["died"] in (0, -9)
        died += found["died"] == -9
        sessions.wait()
        assert_what_stays_is_whole(what, url, before, f"kill {number} of {what}, {where}")
    assert died >= kills / 4


def test_killed_while_threads_expire_it_has_told_of_none_that_is_still_there(
    durable: Backend, mortal: Nursery, whole: Original, tmp_path: Path
) -> None:
    beside, telling = tmp_path / "beside", tmp_path / "beside-told"
    (folder := tmp_path / "folder").mkdir()
    sessions = Sessions(durable)

    def run(**where: Any) -> tuple[Any, int, int]:
        """What came of it, how many threads have gone, and how many were told of."""
        telling.unlink(missing_ok=True)
        found = mortal.run(
            what="expire", path=(url := whole.copy(folder)), beside=str(beside), **where
        )
        sessions.wait()
        with DeltaSaver.from_conn_string(url) as saver:
            gone = len(THREADS) - Threads(saver).count()
        return found, gone, sum(map(int, telling.read_text().split())) if telling.exists() else 0

    undisturbed, gone, told = run()
    assert (undisturbed["died"], gone, told) == (0, len(THREADS), len(THREADS))
    stride = 1 if SOAK else max(1, undisturbed["steps"] // (8 if durable.name == "file" else 4))
    for step in range(0, undisturbed["steps"], stride):
        found, gone, told = run(dies_at=step)
        assert found["died"] == -9
        assert 0 <= told <= gone, f"killed at step {step}"
