"""Promise: a thread that is copied was written when its checkpoints were made, so it is listed,
found and forgotten as it was before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest
from clock import EARLY, Clock
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from move_checks import Saver, SqliteShelf
from prune_reference import assert_sound, everything

from langmem_ext import CopyProgress, DeltaSaver, Threads, acopy_saver, copy_saver

LONG_AGO: Final = datetime(2024, 5, 17, 9, 30, 15, 250_000, tzinfo=UTC)
DAY: Final = timedelta(days=1)


def config_of(thread: str, checkpoint_id: str | None = None) -> RunnableConfig:
    named = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": "", **named}}


def keep(saver: Saver, thread: str, moments: Sequence[Any]) -> list[RunnableConfig]:
    """Put checkpoints that say they were made at these moments, each with a message more and a
    pending write; what names them.
    """
    kept: list[RunnableConfig] = []
    for number, moment in enumerate(moments):
        said = [HumanMessage(f"turn {at}", id=f"h{at}") for at in range(number + 1)]
        versions: dict[str, str | int | float] = {"messages": f"{number + 1:032}.0"}
        checkpoint: Any = empty_checkpoint() | {
            "channel_values": {"messages": said},
            "channel_versions": versions,
        }
        if moment is None:
            del checkpoint["ts"]
        else:
            checkpoint["ts"] = moment.isoformat() if isinstance(moment, datetime) else moment
        kept.append(
            saver.put(
                kept[-1] if kept else config_of(thread), checkpoint, {"step": number}, versions
            )
        )
        saver.put_writes(
            kept[-1], [("messages", AIMessage(f"answer {number}", id=f"a{number}"))], "task"
        )
    return kept


def times_of(saver: DeltaSaver, thread: str) -> tuple[datetime, datetime]:
    """When a thread was first and last written."""
    found = Threads(saver).get(thread)
    return found.created_at, found.updated_at


def copy(source: Saver, target: Saver, mode: str) -> None:
    if mode == "async":
        asyncio.run(acopy_saver(source, target))
    else:
        copy_saver(source, target)


# -- from any other --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_thread_was_written_when_its_checkpoints_were_made(
    kind: str, url: str, tmp_path: Path, mode: str
) -> None:
    with ExitStack() as closing:
        source: Saver = InMemorySaver()
        if kind == "sqlite":
            shelf = SqliteShelf(tmp_path / "other.sqlite")
            closing.callback(shelf.saver.conn.close)
            source = shelf.saver
        for number, thread in enumerate(("b", "a", "c")):
            keep(source, thread, [LONG_AGO + DAY * (number * 10 + at) for at in range(3)])
        target = closing.enter_context(DeltaSaver.open(url))
        copy(source, target, mode)
        assert [found.id for found in Threads(target).list()] == ["c", "a", "b"]
        assert [times_of(target, thread) for thread in "bac"] == [
            (LONG_AGO + DAY * at, LONG_AGO + DAY * (at + 2)) for at in (0, 10, 20)
        ]
        assert [found.id for found in Threads(target).list(since=LONG_AGO + DAY * 12)] == ["c", "a"]
        assert [found.id for found in Threads(target).list(until=LONG_AGO + DAY * 12)] == ["b"]
        dated = Threads(target).dated_messages("a")
        assert [moment for _, moment in dated] == [
            (LONG_AGO + DAY * (10 + at)).replace(microsecond=0) for at in range(3)
        ]
        assert_sound(target)


def test_what_a_thread_gives_no_time_for_was_written_as_it_was_copied(
    url: str, clock: Clock
) -> None:
    senseless = [
        *(None, "", "yesterday", "2024-05-17T09:30:15", "2024-05-17"),
        *("0001-01-01T00:00:00+00:00", "9999-12-31T23:59:59+00:00"),
    ]
    source = InMemorySaver()
    for number, moment in enumerate(senseless):
        keep(source, f"t{number}", [moment, moment])
    keep(source, "some", [None, LONG_AGO, "?", LONG_AGO + DAY, None])
    keep(source, "zones", ["2024-05-17T11:30:15.250+02:00", "2024-05-17T04:30:15.250-05:00"])
    with DeltaSaver.open(url) as target:
        copy_saver(source, target)
        for number in range(len(senseless)):
            assert times_of(target, f"t{number}") == (EARLY, EARLY)
        assert times_of(target, "zones") == (LONG_AGO, LONG_AGO)
        # What one checkpoint tells is nearer than a guess for the others.
        assert times_of(target, "some") == (LONG_AGO, LONG_AGO + DAY)
        clock.wait(days=3)
        before = Threads(target).list()
        copy_saver(source, target)
        assert Threads(target).list() == before
        last = everything(target, ["some"]).popitem()[0][2]
        # It is written to, as any other thread.
        target.put_writes(config_of("some", last), [("messages", "more")], "later")
        assert times_of(target, "some") == (LONG_AGO, EARLY + DAY * 3)
        assert Threads(target, ttl=DAY * 30).sweep().threads == 1, "what has expired"
        assert "zones" not in [found.id for found in Threads(target).list()]
        assert_sound(target)


# -- from one of this package ----------------------------------------------------------------------


def test_a_thread_has_its_own_times_wherever_it_is_moved_and_when_it_comes_back(
    url: str, tmp_path: Path, mode: str, clock: Clock
) -> None:
    with (
        DeltaSaver.open(str(tmp_path / "here.db")) as here,
        DeltaSaver.open(url) as there,
        DeltaSaver.open(str(tmp_path / "back.db")) as back,
    ):
        for thread in ("a", "b"):
            clock.wait(days=2, milliseconds=7)
            kept = keep(here, thread, [EARLY, EARLY + DAY])
            clock.wait(hours=30)
            here.put_writes(kept[-1], [("messages", AIMessage("later", id="n"))], "task 2")
        clock.wait(days=90)
        here.prune(["a"])  # which leaves of the thread's first day its row alone
        copy(here, there, mode)
        copy(there, back, mode)
        for thread in ("a", "b"):
            began = (
                EARLY
                + (DAY * 2 + timedelta(milliseconds=7)) * (1 if thread == "a" else 2)
                + timedelta(hours=0 if thread == "a" else 30)
            )
            for saver in (here, there, back):
                assert times_of(saver, thread) == (began, began + timedelta(hours=30))
                assert_sound(saver)
        assert [[found.id for found in Threads(saver).list()] for saver in (there, back)] == [
            ["b", "a"]
        ] * 2
        assert everything(here) == everything(there) == everything(back)


# -- again, and beside what is there ---------------------------------------------------------------


def test_a_thread_that_is_there_keeps_its_times_or_was_written_at_the_later_of_both(
    url: str, mode: str, clock: Clock
) -> None:
    source = InMemorySaver()
    kept = {
        thread: keep(source, thread, [LONG_AGO, LONG_AGO + DAY])
        for thread in ("same", "older", "newer")
    }
    with DeltaSaver.open(url) as target:
        copy(source, target, mode)
        clock.wait(days=1)
        for thread in ("same", "older"):
            head = everything(target, [thread]).popitem()[0]
            target.put_writes(config_of(thread, head[2]), [("messages", "went on")], "here")
        clock.wait(days=1)
        for thread, moment in (("older", LONG_AGO + DAY * 2), ("newer", LONG_AGO + DAY * 3)):
            checkpoint: Any = empty_checkpoint() | {"ts": moment.isoformat()}
            source.put(kept[thread][-1], checkpoint, {"step": 2}, {})
        for _ in range(2):
            copy(source, target, mode)
            assert times_of(target, "same") == times_of(target, "older") == (LONG_AGO, EARLY + DAY)
            assert times_of(target, "newer") == (LONG_AGO, LONG_AGO + DAY * 3)
            assert_sound(target)
            clock.wait(days=1)


def test_a_copy_that_is_stopped_leaves_no_thread_that_looks_older_than_it_is(
    url: str, clock: Clock
) -> None:
    source, ends = InMemorySaver(), LONG_AGO + DAY * 99

    def stop(at: CopyProgress) -> None:
        raise InterruptedError

    keep(source, "t", [LONG_AGO + DAY * at for at in range(100)])
    with DeltaSaver.open(url) as target:
        with pytest.raises(InterruptedError):
            copy_saver(source, target, progress=stop)
        assert len(everything(target)) == 64
        assert times_of(target, "t") == (LONG_AGO, ends)
        copy_saver(source, target)
        assert len(everything(target)) == 100
        assert times_of(target, "t") == (LONG_AGO, ends)
        assert_sound(target)
