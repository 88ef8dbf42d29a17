"""Promises of a retention: what is over a limit goes in small steps, what waits stays, and no put
fails for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import shake_256
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from prune_reference import assert_clean, assert_sound, everything, rows
from savers import Calls, Mode, new_schema

from langmem_ext import (
    ConversationMemory,
    DeltaSaver,
    Event,
    InvalidInput,
    Pruned,
    Retention,
    ThreadChatMessageHistory,
    Threads,
)
from langmem_ext.checkpointer import pruner
from langmem_ext.log.message_log import is_server
from langmem_ext.log.retention import STEP, run_steps
from langmem_ext.storage.operation import Operation, execute, operation
from langmem_ext.storage.sqlite import vacuum as space

DAY = 86_400_000


class Clock:
    """The saver's clock, moved by hand, in milliseconds."""

    def __init__(self) -> None:
        self.now = 1_800_000_000_000

    def __call__(self) -> int:
        return self.now

    def moment(self) -> datetime:
        return datetime.fromtimestamp(self.now / 1000, UTC)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("langmem_ext.checkpointer.saver.now_ms", clock)
    monkeypatch.setattr("langmem_ext.checkpointer.pruner.now_ms", clock)
    return clock


@pytest.fixture
def file(tmp_path: Path) -> str:
    """A database in a file."""
    return str(tmp_path / "a.db")


@pytest.fixture(params=["file", "postgres"])
def path(request: pytest.FixtureRequest, tmp_path: Path, file: str) -> str:
    """A database of each kind that outlives a saver."""
    return file if request.param == "file" else new_schema(tmp_path)


def used_bytes(saver: DeltaSaver) -> int:
    """What the pages hold that are not free."""
    return saver.log.run(space.used_bytes(), write=False)


def files(name: str, size: int) -> str:
    """A long text that no compression makes much shorter."""
    return shake_256(name.encode()).hexdigest(size // 2)


def config(thread: str = "t") -> Any:
    return {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}


def put(saver: DeltaSaver, thread: str = "t", text: str = "", **values: Any) -> Any:
    """A checkpoint on top of the newest one."""
    head = saver.get_tuple(config(thread))
    given = {"messages": [HumanMessage(text or thread, id=f"{thread} {text}")], **values}
    number = 1 if head is None else int(str(head.checkpoint["channel_versions"]["messages"])) + 1
    checkpoint: Any = {
        "v": 4,
        "id": str(uuid6()),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": given,
        "channel_versions": dict.fromkeys(given, number),
        "versions_seen": {},
    }
    at = config(thread) if head is None else head.config
    return saver.put(
        at,
        checkpoint,
        {"source": "loop", "step": number, "parents": {}},
        dict.fromkeys(given, number),
    )


def ask(saver: Any, thread: str) -> Any:
    """A thread whose graph waits for an answer."""
    builder = StateGraph(MessagesState).add_node(
        "ask", lambda state: {"messages": [("user", interrupt("which?"))]}
    )
    graph = builder.add_edge(START, "ask").compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage("hello")]}, config(thread))
    return graph


def threads(saver: DeltaSaver) -> list[str]:
    return [name for (name,) in rows(saver, "SELECT id FROM thread ORDER BY id")]


def counts(saver: DeltaSaver) -> dict[str, int]:
    return {name: sum(place[0] == name for place in everything(saver)) for name in threads(saver)}


# -- as the saver writes ---------------------------------------------------------------------------


async def test_a_thread_never_has_much_more_than_it_keeps(path: str, mode: Mode) -> None:
    with DeltaSaver.open(path, synchronous="normal", retention=Retention(keep_last=3)) as saver:
        builder = StateGraph(MessagesState).add_node(
            "answer", lambda state: {"messages": [("ai", f"{len(state['messages'])}")]}
        )
        graph = builder.add_edge(START, "answer").compile(checkpointer=saver)
        for number in range(40):
            await Calls(mode).call(
                graph,
                "invoke",
                {"messages": [HumanMessage(f"{number}")]},
                config(),
                durability="sync",
            )
            assert counts(saver)["t"] <= 3 + 2 * STEP + 3
        assert counts(saver)["t"] >= 3
        assert len(graph.get_state(config()).values["messages"]) == 80
        assert_sound(saver)
        assert saver.sweep().checkpoints > 0
        assert counts(saver) == {"t": 3}
        assert_clean(saver)


def test_a_process_that_puts_once_prunes_too(path: str) -> None:
    for number in range(STEP * 2):
        with DeltaSaver.open(path, synchronous="normal", retention=Retention(keep_last=2)) as saver:
            put(saver, text=f"{number}")
    with DeltaSaver.open(path) as saver:
        assert 2 <= counts(saver)["t"] <= 2 + STEP + 1


def test_a_put_deletes_one_thread_at_most_and_the_next_ones_go_on(
    path: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with DeltaSaver.open(path, retention=Retention(ttl=timedelta(days=1))) as saver:
        run, writes = saver.log.driver.run, 0

        def counted(op: Operation[Any], *, write: bool) -> Any:
            nonlocal writes
            writes += write
            return run(op, write=write)

        monkeypatch.setattr(saver.log.driver, "run", counted)
        for number in range(20):
            put(saver, f"old {number}")
        clock.now += 2 * DAY
        left = []
        for number in range(STEP + 25):
            before = writes
            put(saver, "new", f"{number}")
            assert writes - before <= 10
            left.append(len(threads(saver)))
        assert max(before - after for before, after in zip(left, left[1:], strict=False)) == 1
        assert threads(saver) == ["new"]
        assert_sound(saver)


@pytest.mark.parametrize(("limit", "drops"), [(420_000, False), (200_000, True)])
def test_too_large_a_database_loses_old_checkpoints_first_and_then_the_oldest_threads(
    file: str, clock: Clock, limit: int, drops: bool
) -> None:
    with DeltaSaver.open(file, synchronous="normal", retention=Retention(max_bytes=limit)) as saver:
        ask(saver, "waiting")
        for number in range(30):
            clock.now += 1000
            for text in range(3):
                put(saver, f"{number:02}", f"{text}", files=files(f"{number} {text}", 6000))
        assert {"waiting", "29"} <= set(counts(saver))
        for number in range(2 * STEP):
            put(saver, "29", f"more {number}")
        assert used_bytes(saver) <= limit + 10_000
        assert {"waiting", "29"} <= set(counts(saver))
        left = counts(saver)
        gone = [f"{number:02}" for number in range(30) if f"{number:02}" not in left]
        assert bool(gone) is drops
        if not drops:
            kept = [left[f"{number:02}"] for number in range(29)]
            assert kept == sorted(kept)
            assert kept[0] == 1, "those that were written longest ago first"
        assert gone == sorted(gone) == [f"{number:02}" for number in range(len(gone))], (
            "the ones that were written longest ago"
        )
        assert_sound(saver)


def test_a_thread_that_is_written_on_and_on_does_not_keep_the_others_alive(
    file: str, clock: Clock
) -> None:
    limit = 150_000
    with DeltaSaver.open(file, synchronous="normal", retention=Retention(max_bytes=limit)) as saver:
        for number in range(20):
            clock.now += 1000
            put(saver, f"{number:02}", files=files(f"{number}", 9000))
        for number in range(3 * STEP):
            clock.now += 1000
            put(saver, "busy", f"{number}")
        left = threads(saver)
        assert left == [f"{number:02}" for number in range(21 - len(left), 20)] + ["busy"]
        assert 2 < len(left) < 20
        assert used_bytes(saver) <= limit + 10_000


def _harsh(path: str, **limits: Any) -> Retention:
    """A retention that has everything go that may, on a file for its size, too."""
    return Retention(**limits, max_bytes=None if is_server(path) else 1)


DAMAGES = (
    (
        "UPDATE checkpoint SET body = :body WHERE id = (SELECT id FROM checkpoint ORDER BY id DESC"
        " LIMIT 1)"
    ),
    "UPDATE pending_write SET body = :body",
    "UPDATE word SET body = :body WHERE number IN (SELECT label FROM checkpoint)",
    "UPDATE word SET body = :body WHERE number IN (SELECT shape FROM checkpoint)",
)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_put_never_fails_for_what_should_be_forgotten(
    path: str, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    with DeltaSaver.open(path) as saver:
        for number in range(5):
            at = put(saver, text=f"{number}", details={"long": "secret" * 50})
            saver.put_writes(at, [("messages", HumanMessage("secret"))], "task")
        saver.log.run(
            operation(execute)(damage, body=b"{\xff" if "label" in damage else b"\xff"), write=True
        )
    with (
        DeltaSaver.open(path, retention=_harsh(path, keep_last=1)) as saver,
        caplog.at_level(logging.WARNING),
    ):
        put(saver, "u")
        put(saver, "u", "next")
        assert "u" in threads(saver)
        saver.delete_thread("t")
        assert threads(saver) == ["u"]
        assert_sound(saver)
    assert "secret" not in caplog.text


# -- sweeps ----------------------------------------------------------------------------------------


async def test_a_thread_expires_at_exactly_its_age(path: str, clock: Clock, mode: Mode) -> None:
    calls = Calls(mode)
    with DeltaSaver.open(path, synchronous="normal", retention=Retention(ttl=60)) as saver:
        put(saver, "a")
        clock.now += 1
        put(saver, "b")
        clock.now += 59_998
        assert await calls.call(saver, "sweep", dry_run=True) == Pruned(), "a millisecond is left"
        clock.now += 1
        told = await calls.call(saver, "sweep", dry_run=True)
        assert threads(saver) == ["a", "b"]
        assert await calls.call(saver, "sweep") == told
        assert (told.threads, told.checkpoints, told.items) == (1, 1, 1)
        assert threads(saver) == ["b"]
        later = clock.moment() + timedelta(milliseconds=1)
        assert (await calls.call(saver, "sweep", now=later)).threads == 1
        assert threads(saver) == []


def test_a_thread_that_waits_for_an_answer_never_expires(path: str, clock: Clock) -> None:
    with DeltaSaver.open(path, synchronous="normal", retention=_harsh(path, ttl=1)) as saver:
        graph = ask(saver, "asked")
        put(saver, "parameter", waiting_for_param="order_id")
        put(saver, "rest")
        clock.now += 1000 * DAY
        assert saver.sweep().threads == 1
        assert threads(saver) == ["asked", "parameter"]
        graph.invoke(Command(resume="this"), config("asked"))
        clock.now += 2000
        assert saver.sweep().threads == 1
        assert threads(saver) == ["parameter"]
        assert_sound(saver)


def test_a_thread_that_waits_does_not_expire_for_what_is_written_beside_its_graph(
    path: str, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("langmem_ext.log.scope.now_ms", clock)
    with DeltaSaver.open(path, synchronous="normal", retention=Retention(ttl=1)) as saver:
        graph = ask(saver, "asked")
        ask(saver, "answered").invoke(Command(resume="this"), config("answered"))
        for thread in ("asked", "answered"):
            ThreadChatMessageHistory(thread, saver).add_messages([HumanMessage("by the way")])
            ConversationMemory(saver).for_session(thread).merge({"a": 1})
        clock.now += 1000 * DAY
        assert saver.sweep().threads == 1
        assert threads(saver) == ["asked"]
        assert graph.get_state(config("asked")).next != ()
        graph.update_state(config("asked"), {}, as_node="ask")
        clock.now += 2000
        assert saver.sweep().threads == 1, "its graph has gone on"


def test_more_waiting_threads_than_a_step_looks_at_do_not_keep_the_others_alive(
    path: str, clock: Clock
) -> None:
    with DeltaSaver.open(path, synchronous="normal", retention=Retention(ttl=1)) as saver:
        for number in range(30):
            ask(saver, f"asked {number}")
        put(saver, "rest")
        clock.now += DAY
        for number in range(6 * STEP):
            put(saver, "new", f"{number}")
        assert "rest" not in threads(saver)
        assert len(threads(saver)) == 31


@pytest.mark.parametrize(
    "limits",
    [{"keep_last": 2}, {"max_bytes": 100_000}, {"keep_last": 2, "ttl": 30, "max_bytes": 60_000}],
    ids=str,
)
def test_a_dry_run_tells_what_the_sweep_then_does(path: str, clock: Clock, limits: Any) -> None:
    if is_server(path):
        limits = {"keep_last": 2}
    with DeltaSaver.open(path) as saver:
        for number in range(12):
            clock.now += 5000
            for text in range(4):
                put(saver, f"{number:02}", f"{text}", files=files(f"{number} {text}", 4000))
        before = everything(saver)
        sweeping = DeltaSaver(saver.log, retention=Retention(**limits))
        told = sweeping.sweep(dry_run=True)
        assert everything(saver) == before
        assert told.checkpoints > 10
        swept = sweeping.sweep()
        if "max_bytes" in limits:  # which pages of a file will be free is told about
            assert told.threads == pytest.approx(swept.threads, abs=2)
        else:
            assert swept == told
        assert len(everything(saver)) == len(before) - swept.checkpoints
        assert_clean(saver)
        kept = counts(saver)
        assert list(kept) == [f"{number:02}" for number in range(12 - len(kept), 12)]
        if limits == {"keep_last": 2}:
            assert sweeping.sweep() == Pruned()
            assert set(kept.values()) == {2}


@pytest.mark.parametrize(("count", "size"), [(300, 20), (150, 400), (40, 20_000)])
def test_a_sweep_for_a_size_forgets_what_it_must_and_no_more(
    file: str, clock: Clock, count: int, size: int
) -> None:
    with DeltaSaver.open(file, synchronous="normal") as saver:
        for number in range(count):
            clock.now += 1000
            put(saver, f"{number:03}", files=files(f"{number}", size))
        limit = used_bytes(saver) * 2 // 3
        sweeping = DeltaSaver(saver.log, retention=Retention(max_bytes=limit))
        told, swept = sweeping.sweep(dry_run=True), sweeping.sweep()
        left = used_bytes(saver)
        assert limit - swept.bytes / swept.threads - 4 * 4096 <= left <= limit, (
            "pages are free when all that was in them is gone"
        )
        assert told.threads == pytest.approx(swept.threads, rel=0.35)
        assert sweeping.sweep() == Pruned()


def test_an_owners_sweep_forgets_its_own_threads_alone(path: str, clock: Clock) -> None:
    with DeltaSaver.open(path, synchronous="normal", retention=Retention(ttl=1)) as saver:
        put(saver.for_owner("u1"), "mine")
        put(saver.for_owner("u2"), "theirs")
        clock.now += DAY
        assert saver.for_owner("u1").sweep().threads == 1
        assert threads(saver) == ["theirs"]


def test_a_sweep_lets_other_tasks_work(path: str, clock: Clock) -> None:
    with DeltaSaver.open(path, synchronous="normal", retention=Retention(ttl=1)) as saver:
        for number in range(100):
            put(saver, f"{number:03}")
        clock.now += DAY

        async def both() -> int:
            sweeping = asyncio.create_task(saver.asweep())
            found = 0
            while not sweeping.done():
                found += (await saver.aget_tuple(config("099"))) is not None
            assert (await sweeping).threads == 100
            return found

        assert asyncio.run(both()) > 0


# -- arguments -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "limits",
    [
        {"keep_last": 0},
        {"keep_last": True},
        {"ttl": -1},
        {"ttl": timedelta(-1)},
        {"ttl": "1d"},
        {"ttl": float("nan")},
        {"max_bytes": 0},
    ],
    ids=str,
)
def test_a_limit_that_cannot_be_used_is_refused(limits: Any) -> None:
    with pytest.raises(InvalidInput):
        Retention(**limits)


def test_a_bound_for_a_file_is_refused_for_a_server(tmp_path: Path) -> None:
    url = new_schema(tmp_path)
    with pytest.raises(InvalidInput, match="keep_last and ttl"):
        DeltaSaver.open(url, retention=Retention(max_bytes=1000))
    with DeltaSaver.open(url) as saver, pytest.raises(InvalidInput, match="keep_last and ttl"):
        DeltaSaver(saver.log, retention=Retention(max_bytes=1000))


@pytest.fixture
def plain(path: str) -> Iterator[DeltaSaver]:
    with DeltaSaver.open(path) as saver:
        yield saver


def test_a_sweep_needs_a_retention_and_a_moment_with_its_zone(plain: DeltaSaver) -> None:
    with pytest.raises(InvalidInput, match="retention="):
        plain.sweep()
    with pytest.raises(InvalidInput, match="time zone"):
        DeltaSaver(plain.log, retention=Retention(ttl=1)).sweep(now=datetime(2026, 1, 1))


def test_without_limits_nothing_goes(plain: DeltaSaver) -> None:
    saver = DeltaSaver(plain.log, retention=Retention())
    for number in range(2 * STEP):
        put(saver, text=f"{number}")
    assert saver.sweep() == Pruned()
    assert counts(saver) == {"t": 2 * STEP}


# -- what is told of it ----------------------------------------------------------------------------


class Told:
    """A sink that keeps how many threads have expired."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def emit(self, event: Event) -> None:
        assert event.name == "expired"
        self.counts.append(event.as_dict()["threads"])


def test_what_a_saver_deletes_as_it_writes_and_sweeps_is_told(path: str, clock: Clock) -> None:
    told = Told()
    with DeltaSaver.open(path, retention=Retention(ttl=60), telemetry=[told]) as opened:
        saver = opened.for_owner("u1")
        for number in range(3):
            put(saver, f"old {number}")
        clock.now += 60_000
        for number in range(2 * STEP):
            put(saver, "new", str(number))
        assert told.counts == [1, 1, 1], "each as it goes"
        put(saver, "newer")
        clock.now += 60_000
        saver.sweep(now=clock.moment(), dry_run=True)
        assert told.counts == [1, 1, 1]
        assert saver.sweep(now=clock.moment()).threads == 2
        saver.sweep(now=clock.moment())
        assert told.counts == [1, 1, 1, 2]


@pytest.mark.parametrize("how", ["stopped", "failed"])
@pytest.mark.parametrize("after", range(8))
def test_a_sweep_that_does_not_reach_its_end_tells_what_it_has_deleted(
    path: str, how: str, after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, left = Told(), iter(range(after))

    def over() -> bool:
        return next(left, None) is None

    with DeltaSaver.open(path, retention=Retention(ttl=60), telemetry=[told]) as saver:
        for number in range(5):
            put(saver, f"old {number}")
        run, threads = saver.log.run, Threads(saver)

        def failing(op: Operation[Any], *, write: bool) -> Any:
            if over():
                raise OSError("no")
            return run(op, write=write)

        later = datetime.now(UTC) + timedelta(hours=1)
        steps = pruner.sweep_steps(saver._keeper, later, dry_run=False)
        if how == "stopped":
            run_steps(saver.log, steps, over)
        else:
            with monkeypatch.context() as patch, suppress(OSError):
                patch.setattr(saver.log, "run", failing)
                run_steps(saver.log, steps)
        assert sum(told.counts) == 5 - threads.count()
        assert len(told.counts) <= 1
        assert threads.count() == max(0, 5 - max(0, after - 1))
