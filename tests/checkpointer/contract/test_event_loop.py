"""Promise: nothing async blocks its event loop.

Each async method and function of the storage runs where a blocking call raises.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.base import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from move_checks import sqlite_saver
from savers import Backend

import langmem_ext
from langmem_ext import (
    ApproximateCounter,
    DeltaSaver,
    MessageLog,
    Retention,
    ThreadChatMessageHistory,
    acopy_saver,
    aexamine,
    aimport_checkpoints,
    astats,
)
from langmem_ext.log.codec import MessageCodec

pytestmark = pytest.mark.contract


CONFIG: Any = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}


def checkpoint(number: int) -> Any:
    return {
        "v": 4,
        "id": str(uuid6()),
        "ts": "2026-01-01T00:00:00+00:00",
        "channel_values": {
            "messages": [HumanMessage(f"text {n} " * 50, id=f"m{n}") for n in range(number)],
            "table": {"n": number},
        },
        "channel_versions": {"messages": f"{number:032}.0.1", "table": f"{number:032}.0.1"},
        "versions_seen": {},
        "updated_channels": None,
    }


def filled(saver: Any, count: int = 40) -> Any:
    """A saver with a thread of a few pages; the config of its newest checkpoint."""
    at = CONFIG
    for number in range(count):
        one = checkpoint(number)
        at = saver.put(
            at,
            one,
            {"source": "loop", "step": number, "parents": {}, "run_id": f"r{number}"},
            one["channel_versions"],
        )
        saver.put_writes(at, [("messages", [AIMessage(f"answer {number}")])], str(uuid6()))
    return at


class Place:
    """A database with a thread in it, and what is at hand to work on it."""

    def __init__(self, new_url: Callable[[], str], folder: Path) -> None:
        self.new_url = new_url
        self.url = new_url()
        self.old = folder / "old.sqlite"
        self.saver = DeltaSaver.open(
            self.url, retention=Retention(keep_last=3, ttl=timedelta(days=1))
        )
        self.head = filled(self.saver)
        self.history = ThreadChatMessageHistory("h", self.saver)
        self.history.add_messages([HumanMessage("one"), AIMessage("two")])
        with sqlite_saver(self.old) as old:
            filled(old, 8)


async def listed(place: Place) -> None:
    assert [one async for one in place.saver.alist(CONFIG)]
    assert [one async for one in place.saver.alist(None, filter={"step": 39})]


async def put(place: Place) -> None:
    for number in range(40):  # the retention has its turn
        one = checkpoint(number)
        await place.saver.aput(
            CONFIG, one, {"source": "loop", "step": number, "parents": {}}, one["channel_versions"]
        )


async def leased(place: Place) -> None:
    async with place.saver.alease("t"):
        with pytest.raises(langmem_ext.ThreadBusy):
            async with place.saver.alease("t", wait=0.05):
                pass


async def opened(place: Place) -> None:
    async with DeltaSaver.from_conn_string(place.url) as saver:
        await saver.setup()
        assert await saver.aget_tuple(CONFIG)


async def aopened(place: Place) -> None:
    for opened in (
        await DeltaSaver.aopen(place.new_url()),
        await MessageLog.aopen(place.url),
        await ThreadChatMessageHistory.aopen("t", place.url),
    ):
        await opened.aclose()


async def imported(place: Place) -> None:
    assert (await aimport_checkpoints(place.old, place.new_url(), verify=True)).checkpoints == 8
    assert (await aimport_checkpoints(place.old, place.saver, threads=[])).checkpoints == 0


async def copied(place: Place) -> None:
    await acopy_saver(place.saver, target := InMemorySaver())
    await acopy_saver(target, other := DeltaSaver(":memory:"))
    await other.aclose()
    with sqlite_saver(place.old) as old:
        await acopy_saver(old, InMemorySaver())


async def examined(place: Place) -> None:
    for source in (place.saver, place.saver.log, place.url):
        assert (await aexamine(source)).ok
    assert (await aexamine(place.url, fix=True)).ok


async def measured(place: Place) -> None:
    for source in (place.saver, place.url):
        assert (await astats(source)).threads == 2


async def remembered(place: Place) -> None:
    await place.history.aadd_messages([HumanMessage("three")])
    assert len(await place.history.aget_messages()) == 3
    assert len(await place.history.awindow(1_000, counter=ApproximateCounter())) == 3
    await place.history.aclear()


async def put_together(place: Place) -> None:
    one = checkpoint(40)
    config: Any = {"configurable": {**CONFIG["configurable"], "checkpoint_id": one["id"]}}
    await place.saver.aput_all(
        [
            ("put_writes", (config, [("messages", "hi")], "task")),
            ("put", (CONFIG, one, {"step": 1}, {})),
        ]
    )
    assert (await place.saver.aget_tuple(config)).pending_writes == [("task", "messages", "hi")]


async def read_together(place: Place) -> None:
    [one, newest] = [found async for found in place.saver.aget_all([place.head, CONFIG])]
    assert one is not None
    assert newest is not None
    assert one.checkpoint == newest.checkpoint


async def outlined(place: Place) -> None:
    assert place.head in [config for config, _ in await place.saver.aoutline()]
    assert not await place.saver.aoutline(["nobody"])


async def dated(place: Place) -> None:
    [(began, ended)] = (await place.saver.athread_times(["t", "nobody"])).values()
    assert began <= ended


CALLS: dict[str, Callable[[Place], Awaitable[Any]]] = {
    "DeltaSaver.aput": put,
    "DeltaSaver.aput_all": put_together,
    "DeltaSaver.aget_all": read_together,
    "DeltaSaver.aoutline": outlined,
    "DeltaSaver.athread_times": dated,
    "DeltaSaver.aput_writes": lambda place: place.saver.aput_writes(
        place.head, [("messages", [HumanMessage("late")])], str(uuid6())
    ),
    "DeltaSaver.aget_tuple": lambda place: place.saver.aget_tuple(CONFIG),
    "DeltaSaver.alist": listed,
    "DeltaSaver.aget_delta_channel_history": lambda place: place.saver.aget_delta_channel_history(
        config=place.head, channels=["messages"]
    ),
    "DeltaSaver.adelete_thread": lambda place: place.saver.adelete_thread("t"),
    "DeltaSaver.adelete_for_runs": lambda place: place.saver.adelete_for_runs(["r1", "r39"]),
    "DeltaSaver.acopy_thread": lambda place: place.saver.acopy_thread("t", "copy"),
    "DeltaSaver.aprune": lambda place: place.saver.aprune(["t"], keep_last=2),
    "DeltaSaver.asweep": lambda place: place.saver.asweep(),
    "DeltaSaver.acompact": lambda place: place.saver.acompact(full=True),
    "DeltaSaver.aclose": lambda place: place.saver.aclose(),
    "DeltaSaver.alease": leased,
    "DeltaSaver.from_conn_string": opened,
    "DeltaSaver.aopen": aopened,
    "MessageLog.aopen": aopened,
    "ThreadChatMessageHistory.aopen": aopened,
    "ThreadChatMessageHistory.aclose": aopened,
    "MessageLog.acompact": lambda place: place.saver.log.acompact(),
    "MessageLog.aclose": lambda place: place.saver.log.aclose(),
    "ThreadChatMessageHistory.aget_messages": remembered,
    "ThreadChatMessageHistory.aadd_messages": remembered,
    "ThreadChatMessageHistory.aclear": remembered,
    "ThreadChatMessageHistory.awindow": remembered,
    "acopy_saver": copied,
    "aexamine": examined,
    "aimport_checkpoints": imported,
    "astats": measured,
}


@pytest.mark.parametrize("name", CALLS)
async def test_it_never_blocks_its_event_loop(name: str, durable: Backend, tmp_path: Path) -> None:
    place = Place(lambda: durable.new_url(tmp_path), tmp_path)
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    await CALLS[name](place)
    ticking.cancel()
    await place.saver.aclose()
    assert ticks > 1, "the event loop stood still"


def test_everything_async_of_the_storage_is_called_here() -> None:
    there = {
        f"{owner.__name__}.{name}"
        for owner in (DeltaSaver, MessageLog, ThreadChatMessageHistory)
        for name, member in inspect.getmembers(owner)
        if (inspect.iscoroutinefunction(member) or inspect.isasyncgenfunction(member))
        and member.__module__.startswith("langmem_ext.")
    }
    # One is called in the tests of conversations.
    functions = {
        name
        for name in langmem_ext.__all__
        if inspect.iscoroutinefunction(getattr(langmem_ext, name))
    } - {"aconverse"}
    internal = {"MessageLog.arun", "MessageLog.awrite_of_run"}
    public = {name for name in there | functions if "._" not in name} - internal
    assert public - CALLS.keys() == set()


MANY = 500
"""More messages than are packed on the event loop."""


def large(count: int = MANY) -> dict[str, Any]:
    """Channels whose values take a while to store."""
    return {
        "messages": [HumanMessage(f"text {n}") for n in range(count)],
        "table": {f"key {n}": "x" * 100 for n in range(10 * count)},
    }


def large_checkpoint(values: dict[str, Any]) -> Any:
    versions = dict.fromkeys(values, f"{1:032}.0.1")
    return checkpoint(0) | {"channel_values": values, "channel_versions": versions}


async def test_what_is_large_is_stored_off_the_event_loop(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, ready_row = set[int](), MessageCodec.ready_row

    def watched(*given: Any, **options: Any) -> Any:
        threads.add(threading.get_ident())
        return ready_row(*given, **options)

    monkeypatch.setattr(MessageCodec, "ready_row", watched)
    one = large_checkpoint(large())
    async with DeltaSaver.from_conn_string(url) as saver:
        begun = await saver.aput(CONFIG, large_checkpoint({}), {"step": -1}, {})
        await saver.aput_writes(begun, list(large().items()), "task")
        await saver.aput(begun, one, {"step": 0}, one["channel_versions"])
    assert threads
    assert threading.get_ident() not in threads


async def test_what_is_large_is_stored_as_it_was_when_it_was_passed(url: str) -> None:
    values, told = large(), large()
    async with DeltaSaver.from_conn_string(url) as saver:
        begun = await saver.aput(CONFIG, large_checkpoint({}), {"step": -1}, {})
        one = large_checkpoint(values)
        calls = (
            saver.aput(begun, one, {"step": 0}, one["channel_versions"]),
            saver.aput_writes(begun, list(told.items()), "task"),
        )
        storing = [asyncio.create_task(call) for call in calls]
        await asyncio.sleep(0)  # the calls have arrived
        for changed in (values, told):
            for number, message in enumerate(changed["messages"]):
                message.id, message.content = f"late {number}", "something else"
            changed["table"].clear()
        await asyncio.gather(*storing)
    async with DeltaSaver.from_conn_string(url) as saver:
        stored, before = await saver.aget_tuple(CONFIG), await saver.aget_tuple(begun)
    assert stored is not None
    assert before is not None
    assert stored.checkpoint["channel_values"] == large()
    assert before.pending_writes == [("task", channel, value) for channel, value in large().items()]


async def test_a_list_gives_way_after_each_state_that_was_built(url: str) -> None:
    with DeltaSaver.open(url) as saver:
        filled(saver, 8)
        ticks, seen = 0, []

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        async for found in saver.alist(CONFIG):
            assert found.checkpoint["channel_values"]
            seen.append(ticks)
        ticking.cancel()
    assert len(seen) == len(set(seen)) == 8
