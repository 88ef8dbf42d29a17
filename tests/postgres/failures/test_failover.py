"""Promise: where a standby takes over from a primary that died, all that was acknowledged is there,
and savers go on by themselves.
"""

from __future__ import annotations

import asyncio
import os
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from patience import PATIENCE_S, until
from prune_reference import assert_sound

from langmem_ext import DeltaSaver, StorageUnavailable, ThreadChatMessageHistory, Threads, stats
from postgres.cluster import Cluster
from postgres.failures.test_failures import talk

SYNC, ASYNC = ("thread0", "thread1"), ("task0", "task1", "task2")
FAILOVERS = 10 if os.environ.get("LANGMEM_EXT_SOAK") == "1" else 1


@pytest.fixture
def primary() -> Iterator[Cluster]:
    with Cluster() as made:
        yield made


@pytest.fixture
def standby(primary: Cluster) -> Iterator[Cluster]:
    with primary.standby() as made:
        yield made


class Talks:
    """Conversations, some on threads and some on an event loop's tasks, that go on until they are
    told to end.

    Attributes:
        told: Ids of the messages whose turns were answered, by conversation.
        slowest: How long the slowest turn took, in seconds.
    """

    def __init__(self, saver: DeltaSaver) -> None:
        self.told: dict[str, list[str]] = {name: [] for name in (*SYNC, *ASYNC)}
        self._graph = talk(saver)
        self._until = threading.Event()

    def begin(self, pool: ThreadPoolExecutor) -> list[Future[None]]:
        return [
            *(pool.submit(self._converse, name) for name in SYNC),
            pool.submit(asyncio.run, self._aconverse_all()),
        ]

    def end(self) -> None:
        self._until.set()

    def _turns(self, name: str) -> Iterator[tuple[Any, RunnableConfig]]:
        while not self._until.is_set():
            key = f"{name}-{len(self.told[name])}"
            yield (
                {"messages": [HumanMessage("and now?", id=key)]},
                {"configurable": {"thread_id": name}},
            )
            self.told[name].append(key)

    def _converse(self, name: str) -> None:
        for turn in self._turns(name):
            self._graph.invoke(*turn)

    async def _aconverse(self, name: str) -> None:
        for turn in self._turns(name):
            await self._graph.ainvoke(*turn)

    async def _aconverse_all(self) -> None:
        await asyncio.gather(*map(self._aconverse, ASYNC))


def of_both(primary: Cluster, standby: Cluster) -> str:
    """The one of the two that may be written."""
    return f"postgresql://postgres@127.0.0.1:{primary.port},127.0.0.1:{standby.port}/postgres?target_session_attrs=read-write&deadline=240"


@pytest.mark.parametrize("number", range(FAILOVERS))
def test_savers_go_on_where_a_standby_takes_over_and_nothing_is_lost(
    primary: Cluster, standby: Cluster, number: int
) -> None:
    with (
        DeltaSaver.open(of_both(primary, standby)) as saver,
        saver.lease("held"),
        ThreadPoolExecutor(1 + len(SYNC)) as pool,
    ):
        talks = Talks(saver)
        running = talks.begin(pool)
        try:
            until(lambda: all(len(ids) > 2 for ids in talks.told.values()), "too little is stored")
            time.sleep(random.Random(number).random())  # dies in the middle of something
            before = {name: len(ids) for name, ids in talks.told.items()}
            primary.stop("immediate")
            standby.promote()
            until(
                lambda: all(len(ids) > before[name] for name, ids in talks.told.items()),
                "a talk does not go on",
            )
        finally:
            talks.end()
        for one in running:
            one.result(PATIENCE_S)  # none has failed within its deadline
        with DeltaSaver.open(standby.url) as fresh, fresh.lease("held", wait=0):
            pass  # a lease ends with its connection
    with DeltaSaver.open(standby.url) as fresh:
        for name, ids in talks.told.items():
            assert len(ids) > before[name]
            config: RunnableConfig = {"configurable": {"thread_id": name}}
            messages = talk(fresh).get_state(config).values["messages"]
            assert [message.id for message in messages[::2]] == ids
            assert [message.text for message in messages[1::2]] == [
                f"{number} so far" for number in range(1, 2 * len(ids), 2)
            ]
            assert len(list(fresh.list(config))) == 3 * len(ids)
        assert_sound(fresh)


def test_a_standby_is_read_while_the_primary_is_written(primary: Cluster, standby: Cluster) -> None:
    with DeltaSaver.open(primary.url) as writer:
        graph = talk(writer)
        config: RunnableConfig = {"configurable": {"thread_id": "t"}}
        graph.invoke({"messages": [HumanMessage("one")]}, config)
        caught_up(primary, standby)
        with DeltaSaver.open(f"{standby.url}?mode=ro") as reader:
            for number in range(1, 4):
                found = talk(reader).get_state(config)
                assert len(found.values["messages"]) == 2 * number
                assert [thread.messages for thread in Threads(reader).list()] == [2 * number]
                assert len(list(reader.list(config))) == 3 * number
                assert len(ThreadChatMessageHistory("t", reader).messages) == 2 * number
                graph.invoke({"messages": [HumanMessage("more")]}, config)
                caught_up(primary, standby)
            with pytest.raises(StorageUnavailable, match="opened read-only"):
                talk(reader).invoke({"messages": [HumanMessage("here")]}, config)
            assert_sound(reader)
            assert stats(reader).threads == 1
        with (
            pytest.raises(StorageUnavailable, match="write to the primary"),
            DeltaSaver.open(standby.url) as mistaken,
        ):
            talk(mistaken).invoke({"messages": [HumanMessage("here")]}, config)


def caught_up(primary: Cluster, standby: Cluster) -> None:
    """Wait until the standby shows all that the primary has: a commit waits for its log alone."""
    [(end,)] = primary.execute("SELECT pg_current_wal_lsn()")
    while standby.execute(f"SELECT pg_last_wal_replay_lsn() < '{end}'") == [(True,)]:
        time.sleep(0.01)
