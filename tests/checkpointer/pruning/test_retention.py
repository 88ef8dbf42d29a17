"""Promises of a retention: what is over a limit goes in small steps, what waits stays, and no put
fails for it.
"""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Any

import pytest
from clock import Clock
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.base.id import uuid6
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt
from prune_reference import assert_clean, assert_sound, everything, rows
from raw_tables import change
from savers import Calls, Mode

from langmem_ext import (
    ConversationMemory,
    DeltaSaver,
    Event,
    InvalidInput,
    Pruned,
    Retention,
    ThreadChatMessageHistory,
)

STEP = 32
"""So many checkpoints a step of forgetting takes at most."""


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


async def test_a_thread_never_has_much_more_than_it_keeps(url: str, mode: Mode) -> None:
    with DeltaSaver.open(url, synchronous="normal", retention=Retention(keep_last=3)) as saver:
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


def test_a_process_that_puts_once_prunes_too(url: str) -> None:
    for number in range(STEP * 2):
        with DeltaSaver.open(url, synchronous="normal", retention=Retention(keep_last=2)) as saver:
            put(saver, text=f"{number}")
    with DeltaSaver.open(url) as saver:
        assert 2 <= counts(saver)["t"] <= 2 + STEP + 1


def test_a_put_never_fails_for_what_should_be_forgotten(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with DeltaSaver.open(url) as saver:
        for number in range(5):
            at = put(saver, text=f"{number}", details={"long": "secret" * 50})
            saver.put_writes(at, [("messages", HumanMessage("secret"))], "task")
        for table in ("checkpoint", "pending_write"):
            change(url, f"UPDATE {table} SET body = ?", b"\xff")
    with (
        DeltaSaver.open(url, retention=Retention(keep_last=1)) as saver,
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


async def test_a_thread_expires_at_exactly_its_age(url: str, clock: Clock, mode: Mode) -> None:
    calls = Calls(mode)
    with DeltaSaver.open(url, synchronous="normal", retention=Retention(ttl=60)) as saver:
        put(saver, "a")
        clock.wait(milliseconds=1)
        put(saver, "b")
        clock.wait(milliseconds=59_998)
        assert await calls.call(saver, "sweep", dry_run=True) == Pruned(), "a millisecond is left"
        clock.wait(milliseconds=1)
        told = await calls.call(saver, "sweep", dry_run=True)
        assert threads(saver) == ["a", "b"]
        assert await calls.call(saver, "sweep") == told
        assert (told.threads, told.checkpoints, told.items) == (1, 1, 1)
        assert threads(saver) == ["b"]
        later = clock.now + timedelta(milliseconds=1)
        assert (await calls.call(saver, "sweep", now=later)).threads == 1
        assert threads(saver) == []


def test_a_thread_that_waits_for_an_answer_never_expires(url: str, clock: Clock) -> None:
    with DeltaSaver.open(url, synchronous="normal", retention=Retention(ttl=1)) as saver:
        graph = ask(saver, "asked")
        put(saver, "parameter", waiting_for_param="order_id")
        put(saver, "rest")
        clock.wait(days=1000)
        assert saver.sweep().threads == 1
        assert threads(saver) == ["asked", "parameter"]
        graph.invoke(Command(resume="this"), config("asked"))
        clock.wait(seconds=2)
        assert saver.sweep().threads == 1
        assert threads(saver) == ["parameter"]
        assert_sound(saver)


def test_a_thread_that_waits_does_not_expire_for_what_is_written_beside_its_graph(
    url: str, clock: Clock
) -> None:
    with DeltaSaver.open(url, synchronous="normal", retention=Retention(ttl=1)) as saver:
        graph = ask(saver, "asked")
        ask(saver, "answered").invoke(Command(resume="this"), config("answered"))
        for thread in ("asked", "answered"):
            ThreadChatMessageHistory(thread, saver).add_messages([HumanMessage("by the way")])
            ConversationMemory(saver).for_session(thread).merge({"a": 1})
        clock.wait(days=1000)
        assert saver.sweep().threads == 1
        assert threads(saver) == ["asked"]
        assert graph.get_state(config("asked")).next != ()
        graph.update_state(config("asked"), {}, as_node="ask")
        clock.wait(seconds=2)
        assert saver.sweep().threads == 1, "its graph has gone on"


def test_more_waiting_threads_than_a_step_looks_at_do_not_keep_the_others_alive(
    url: str, clock: Clock
) -> None:
    with DeltaSaver.open(url, synchronous="normal", retention=Retention(ttl=1)) as saver:
        for number in range(30):
            ask(saver, f"asked {number}")
        put(saver, "rest")
        clock.wait(days=1)
        for number in range(6 * STEP):
            put(saver, "new", f"{number}")
        assert "rest" not in threads(saver)
        assert len(threads(saver)) == 31


def test_a_dry_run_tells_what_the_sweep_then_does(url: str, clock: Clock) -> None:
    with DeltaSaver.open(url) as saver:
        for number in range(12):
            clock.wait(seconds=5)
            for text in range(4):
                put(saver, f"{number:02}", f"{text}")
        before = everything(saver)
        sweeping = DeltaSaver(
            saver.log, retention=Retention(keep_last=2, ttl=timedelta(seconds=33))
        )
        told = sweeping.sweep(dry_run=True)
        assert everything(saver) == before
        assert told.checkpoints > 10
        assert sweeping.sweep() == told
        assert len(everything(saver)) == len(before) - told.checkpoints
        assert_clean(saver)
        kept = counts(saver)
        assert list(kept) == [f"{number:02}" for number in range(12 - len(kept), 12)]
        assert set(kept.values()) == {2}
        assert sweeping.sweep() == Pruned()


def test_an_owners_sweep_forgets_its_own_threads_alone(url: str, clock: Clock) -> None:
    with DeltaSaver.open(url, synchronous="normal", retention=Retention(ttl=1)) as saver:
        put(saver.for_owner("u1"), "mine")
        put(saver.for_owner("u2"), "theirs")
        clock.wait(days=1)
        assert saver.for_owner("u1").sweep().threads == 1
        assert threads(saver) == ["theirs"]


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
    ],
    ids=str,
)
def test_a_limit_that_cannot_be_used_is_refused(limits: Any) -> None:
    with pytest.raises(InvalidInput):
        Retention(**limits)


def test_a_sweep_needs_a_retention_and_a_moment_with_its_zone(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        with pytest.raises(InvalidInput, match="retention="):
            saver.sweep()
        with pytest.raises(InvalidInput, match="time zone"):
            DeltaSaver(saver.log, retention=Retention(ttl=1)).sweep(now=datetime(2026, 1, 1))
        unlimited = DeltaSaver(saver.log, retention=Retention())
        for number in range(2 * STEP):
            put(unlimited, text=f"{number}")
        assert unlimited.sweep() == Pruned()
        assert counts(saver) == {"t": 2 * STEP}


# -- what is told of it ----------------------------------------------------------------------------


class Told:
    """A sink that keeps how many threads have expired."""

    def __init__(self) -> None:
        self.counts: list[int] = []

    def emit(self, event: Event) -> None:
        assert event.name == "expired"
        self.counts.append(event.as_dict()["threads"])


def test_what_a_saver_deletes_as_it_writes_and_sweeps_is_told(url: str, clock: Clock) -> None:
    told = Told()
    with DeltaSaver.open(url, retention=Retention(ttl=60), telemetry=[told]) as opened:
        saver = opened.for_owner("u1")
        for number in range(3):
            put(saver, f"old {number}")
        clock.wait(minutes=1)
        for number in range(2 * STEP):
            put(saver, "new", str(number))
        assert told.counts == [1, 1, 1], "each as it goes"
        put(saver, "newer")
        clock.wait(minutes=1)
        saver.sweep(now=clock.now, dry_run=True)
        assert told.counts == [1, 1, 1]
        assert saver.sweep(now=clock.now).threads == 2
        saver.sweep(now=clock.now)
        assert told.counts == [1, 1, 1, 2]
