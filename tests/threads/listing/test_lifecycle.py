"""Promises of a thread's life: it expires at one moment for everybody who asks, what waits does
not, and what sweeps can be stopped.
"""

from __future__ import annotations

import io
import logging
import threading
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from clock import Clock
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import interrupt
from patience import until
from prune_reference import assert_clean, assert_sound, change
from savers import Backend, Calls, Mode, brief_saver

from langmem_ext import (
    DeltaSaver,
    InvalidInput,
    MessageLog,
    Pruned,
    Retention,
    StorageUnavailable,
    ThreadChatMessageHistory,
    ThreadExpired,
    ThreadNotFound,
    Threads,
)

THREAD_NAME = "langmem-ext-sweeper"
HOUR = timedelta(hours=1)
MS = timedelta(milliseconds=1)


@pytest.fixture
def log(url: str) -> Iterator[MessageLog]:
    with closing(MessageLog.open(url, synchronous="normal")) as log:
        yield log


@pytest.fixture
def calls(mode: Mode) -> Calls:
    return Calls(mode)


def say(
    log: MessageLog,
    thread: str,
    text: str = "hello",
    *,
    tool: str | None = None,
    owner: str | None = None,
) -> None:
    notes = {} if tool is None else {"langmem_ext": {"tool": tool}}
    ThreadChatMessageHistory(thread, log, owner=owner).add_messages(
        [HumanMessage(text, additional_kwargs=notes)]
    )


def ask(log: MessageLog, thread: str) -> Any:
    """A thread of a tool whose graph waits for an answer."""
    builder = StateGraph(MessagesState).add_node(
        "ask", lambda state: {"messages": [("user", interrupt("which?"))]}
    )
    graph: Any = builder.add_edge(START, "ask").compile(checkpointer=DeltaSaver(log))
    said = HumanMessage("hello", additional_kwargs={"langmem_ext": {"tool": "desk"}})
    graph.invoke({"messages": [said]}, {"configurable": {"thread_id": thread}})
    return graph


def ids(log: MessageLog) -> list[str]:
    return sorted(thread.id for thread in Threads(log).each(status=None))


# -- expiry ----------------------------------------------------------------------------------------


@given(st.integers(1, 10**10), st.integers(-2, 2) | st.integers(-(10**6), 10**6), st.booleans())
def test_a_thread_expires_at_one_moment_for_whoever_asks(
    backend: Backend, folder: Path, clock: Clock, lives: int, past: int, tool: bool
) -> None:
    ttl = timedelta(milliseconds=lives)
    with brief_saver(backend, folder) as saver:
        log = saver.log
        say(log, "t", tool="debug" if tool else None)
        threads = Threads(log, ttl=None if tool else ttl, tool_ttl=ttl if tool else None)
        written = clock.now
        clock.now += max(ttl + past * MS, timedelta())
        expired = clock.now >= written + ttl
        if expired:
            with pytest.raises(ThreadExpired):
                threads.get("t")
        else:
            assert threads.get("t").id == "t"
        assert threads.sweep(dry_run=True).threads == expired
        assert threads.sweep(now=written + ttl - MS, dry_run=True) == Pruned()
        assert DeltaSaver(log, retention=threads.retention).sweep(dry_run=True).threads == expired
        assert threads.sweep().threads == expired
        clock.now = written


async def test_a_tool_thread_lives_three_hours_after_its_last_turn_and_a_chat_for_ever(
    log: MessageLog, clock: Clock, calls: Calls
) -> None:
    threads = Threads(log)
    say(log, "chat")
    say(log, "tool", tool="debug")
    clock.now += 3 * HOUR - MS
    assert (await calls.call(threads, "get", "tool")).tool == "debug"
    say(log, "tool", "and then?")
    clock.now += 3 * HOUR - MS
    assert (await calls.call(threads, "get", "tool")).messages == 2, (
        "each write begins its time anew"
    )
    clock.now += MS
    with pytest.raises(
        ThreadExpired,
        match="'tool' has expired: it was last written at 2026-03-01 14:59:59 UTC; start a new one",
    ):
        await calls.call(threads, "get", "tool")
    clock.now += 10_000 * HOUR
    assert (await calls.call(threads, "get", "chat")).id == "chat"
    told = await calls.call(threads, "sweep", dry_run=True)
    assert (told.threads, told.items) == (1, 2)
    assert ids(log) == ["chat", "tool"]
    assert await calls.call(threads, "sweep") == told
    assert ids(log) == ["chat"]
    with pytest.raises(ThreadNotFound, match="thread 'tool' not found") as missing:
        await calls.call(threads, "get", "tool")
    assert not isinstance(missing.value, ThreadExpired)
    assert_clean(DeltaSaver(log))


def test_a_time_in_seconds_is_as_exact_as_one_in_milliseconds(
    log: MessageLog, clock: Clock
) -> None:
    say(log, "t")
    for seconds in (0.1, 1.1, 2.3, 4.35, 8.2, 0.0005, 7):
        threads, lives = Threads(log, ttl=seconds), max(round(seconds * 1000), 1) * MS
        assert threads.sweep(now=clock.now + lives - MS, dry_run=True).threads == 0, seconds
        assert threads.sweep(now=clock.now + lives, dry_run=True).threads == 1, seconds


def test_a_thread_that_is_written_while_a_sweep_works_stays(
    log: MessageLog, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, run, steps = Threads(log), log.run, []
    for thread in ("a", "b", "c"):
        say(log, thread, tool="debug")
    clock.now += 4 * HOUR

    def meanwhile(op: Any, *, write: bool) -> Any:
        found = run(op, write=write)
        steps.append(op)
        if len(steps) == 1:  # those that have expired were looked up, and none is deleted
            say(log, "b", "still here")
        return found

    monkeypatch.setattr(log, "run", meanwhile)
    assert threads.sweep().threads == 2
    assert ids(log) == ["b"]
    assert threads.get("b").messages == 2


def test_a_limit_of_nothing_is_none_and_the_longest_time_there_is_a_time(
    log: MessageLog, clock: Clock
) -> None:
    say(log, "tool", tool="debug")
    longest = Threads(log, ttl=timedelta.max)
    assert longest.get("tool").id == "tool"
    assert longest.sweep(now=datetime.max.replace(tzinfo=UTC)).threads == 1, "of a tool"
    say(log, "tool", tool="debug")
    clock.now += 1_000_000 * HOUR
    assert longest.prune(older_than=timedelta.max) == Pruned()
    for never in (0, None, timedelta()):
        threads = Threads(log, ttl=never, tool_ttl=never)
        assert threads.get("tool").id == "tool"
        assert threads.sweep() == Pruned()
        with pytest.raises(ThreadExpired):
            Threads(log, ttl=HOUR, tool_ttl=never).get("tool")
    say(log, "tool", tool="debug")
    assert Threads(log).get("tool").messages == 2, "what is written lives again"


async def test_a_thread_that_waits_does_not_expire(
    log: MessageLog, clock: Clock, calls: Calls
) -> None:
    threads = Threads(log, ttl=60)
    ask(log, "asked")
    clock.now += 1000 * HOUR
    assert (await calls.call(threads, "get", "asked")).tool == "desk"
    assert await calls.call(threads, "sweep") == Pruned()
    assert await calls.call(threads, "prune") == Pruned()


async def test_an_expired_thread_can_be_looked_at_and_put_away_until_it_is_deleted(
    log: MessageLog, clock: Clock, calls: Calls
) -> None:
    say(log, "t", "some words", tool="debug")
    threads = Threads(log)
    clock.now += 3 * HOUR
    assert [thread.id for thread in await calls.call(threads, "list")] == ["t"]
    assert [message.text for message in await calls.call(threads, "messages", "t")] == [
        "some words"
    ]
    assert [hit.thread_id for hit in await calls.call(threads, "search", "words", thread="t")] == [
        "t"
    ]
    assert (await calls.call(threads, "usage", "t")).total.messages == 0
    assert (await calls.call(threads, "rename", "t", "old")).title == "old"
    assert (await calls.call(threads, "tag", "t", "kept")).tags == ("kept",)
    assert (await calls.call(threads, "archive", "t")).status == "archived"
    fork = await calls.call(threads, "fork", "t")
    assert (await calls.call(threads, "get", fork.id)).tool == "debug", "the copy lives"
    for name in ("get", "turns", "continue_"):
        with pytest.raises(ThreadExpired):
            await calls.call(threads, name, "t")
    elsewhere = Threads(":memory:")
    lines = io.StringIO("".join(await calls.collect(threads, "export_lines", "t")))
    await calls.call(elsewhere, "import_from", lines, keep_ids=True)
    with pytest.raises(ThreadExpired):
        await calls.call(elsewhere, "get", "t")
    await elsewhere.aclose()
    assert await calls.call(threads, "clear", "t") == 1
    assert (await calls.call(threads, "get", "t")).messages == 0, "what is written lives"


async def test_what_was_not_written_for_a_month_is_pruned(
    log: MessageLog, clock: Clock, calls: Calls
) -> None:
    threads = Threads(log)
    say(log, "old")
    clock.now += timedelta(days=20)
    say(log, "new")
    clock.now += timedelta(days=10) - MS
    assert await calls.call(threads, "prune") == Pruned()
    clock.now += MS
    assert (await calls.call(threads, "prune", dry_run=True)).threads == 1
    assert (await calls.call(threads, "prune")).threads == 1
    assert ids(log) == ["new"]
    assert (
        await calls.call(threads, "prune", older_than=timedelta(days=10), now=clock.now - MS)
    ).threads == 0
    assert (await calls.call(threads, "prune", older_than=timedelta(days=10))).threads == 1
    for wrong in (timedelta(), timedelta(-1), 30, None):
        with pytest.raises(InvalidInput, match="older_than"):
            await calls.call(threads, "prune", older_than=wrong)


async def test_an_owner_finds_and_forgets_no_other_owners_threads(
    log: MessageLog, clock: Clock, calls: Calls
) -> None:
    say(log, "mine", owner="u1", tool="debug")
    say(log, "theirs", owner="u2", tool="debug")
    say(log, "nobodys", tool="debug")
    mine = Threads(log, owner="u1")
    for other in ("theirs", "nobodys", "missing"):
        with pytest.raises(ThreadNotFound, match=f"thread '{other}' not found"):
            await calls.call(mine, "get", other)
    clock.now += 4 * HOUR
    with pytest.raises(ThreadNotFound) as found:
        await calls.call(mine, "get", "theirs")
    assert not isinstance(found.value, ThreadExpired), (
        "nobody is told that another's thread was there"
    )
    assert (await calls.call(mine, "sweep")).threads == 1
    assert (await calls.call(mine, "prune", older_than=HOUR)).threads == 0
    assert ids(log) == ["nobodys", "theirs"]


def test_a_saver_applies_the_time_of_tool_threads_as_it_writes(url: str, clock: Clock) -> None:
    with DeltaSaver.open(url, retention=Retention(tool_ttl=HOUR)) as saver:
        say(saver.log, "chat")
        say(saver.log, "tool", tool="debug")
        clock.now += HOUR
        graph: Any = (
            StateGraph(MessagesState)
            .add_node("answer", lambda state: {"messages": [AIMessage("yes")]})
            .add_edge(START, "answer")
            .compile(checkpointer=saver)
        )
        graph.invoke({"messages": [HumanMessage("hi")]}, {"configurable": {"thread_id": "new"}})
        assert ids(saver.log) == ["chat", "new"]
        assert_sound(saver)


async def test_a_damaged_thread_keeps_no_other_from_being_swept(
    url: str, clock: Clock, calls: Calls, caplog: pytest.LogCaptureFixture
) -> None:
    with closing(MessageLog.open(url)) as log:
        for thread in ("a", "b", "c"):
            ask(log, thread) if thread == "b" else say(log, thread, tool="debug")
    change(url, "UPDATE pending_write SET body = :body", body=b"\xff")
    with closing(MessageLog.open(url)) as log, caplog.at_level(logging.WARNING):
        clock.now += 4 * HOUR
        assert (await calls.call(Threads(log), "sweep")).threads == 2
        assert ids(log) == ["b"]
    assert "'b' is damaged" in caplog.text


def test_a_limit_that_cannot_be_used_is_refused(log: MessageLog) -> None:
    wrong: list[dict[str, Any]] = [
        *({"ttl": -1}, {"tool_ttl": timedelta(-1)}, {"ttl": "1d"}),
        *({"max_turns": -1}, {"max_turns": True}, {"on_limit": "cut"}, {"on_damage": ""}),
    ]
    for limits in wrong:
        with pytest.raises(InvalidInput):
            Threads(log, **limits)
    with pytest.raises(InvalidInput, match="time zone"):
        Threads(log).sweep(now=datetime(2026, 1, 1))
    for every in (timedelta(), timedelta(-1), timedelta(days=31), 900, None):
        with pytest.raises(InvalidInput, match="every"):
            Threads(log).sweeper(every=every)  # type: ignore[arg-type]


# -- in the background -----------------------------------------------------------------------------


def sweeping() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == THREAD_NAME]


def test_a_sweeper_sweeps_until_it_is_stopped_and_leaves_no_thread(
    log: MessageLog, clock: Clock
) -> None:
    say(log, "first", tool="debug")
    clock.now += 4 * HOUR
    sweeper = Threads(log).sweeper(every=timedelta(milliseconds=5))
    assert not sweeper.running
    assert sweeping() == []
    with sweeper:
        sweeper.start()
        assert [(thread.daemon, sweeper.running) for thread in sweeping()] == [(True, True)]
        until(lambda: ids(log) == [])
        say(log, "second", tool="debug")
        clock.now += 4 * HOUR
        until(lambda: ids(log) == [])
        until(lambda: sweeper.last == Pruned())
    assert not sweeper.running
    assert sweeping() == []
    sweeper.stop()
    say(log, "third", tool="debug")
    clock.now += 4 * HOUR
    sweeper.start()
    until(lambda: ids(log) == [])
    sweeper.stop()
    assert sweeping() == []


def test_a_sweep_that_fails_is_logged_and_tried_again(
    log: MessageLog, clock: Clock, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    say(log, "t", tool="debug")
    clock.now += 4 * HOUR
    run, failures = log.run, [StorageUnavailable("secret")]

    def sometimes(op: Any, *, write: bool) -> Any:
        if failures and threading.current_thread().name == THREAD_NAME:
            raise failures.pop()
        return run(op, write=write)

    monkeypatch.setattr(log, "run", sometimes)
    with caplog.at_level(logging.WARNING), Threads(log).sweeper(every=timedelta(milliseconds=5)):
        until(lambda: ids(log) == [])
    assert "StorageUnavailable" in caplog.text
    assert "secret" not in caplog.text
