"""Promise: a program may fork (a preloading server, a pool of workers): parent and children go on,
each on connections of its own.
"""

from __future__ import annotations

import asyncio
import os
import time
import traceback
from collections.abc import Callable

import pytest
from langchain_core.messages import HumanMessage
from patience import PATIENCE_S

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, examine
from postgres.server import SHARED, Database

pytestmark = pytest.mark.filterwarnings(
    "ignore:This process:DeprecationWarning"
)  # of a fork with threads about, since 3.12

TURNS = 8


@pytest.fixture
def url(database: Database) -> str:
    return f"{database.url}?schema={SHARED.tables()}&deadline=240"


class Child:
    """A forked process that does some work, and ends without what a test has opened being closed in
    it.
    """

    def __init__(self, work: Callable[[], None]) -> None:
        self._reading, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            told = b""
            try:
                work()
            except BaseException:
                told = traceback.format_exc().encode()
            finally:
                os.write(writing, told[-4000:])
                os._exit(bool(told))
        os.close(writing)

    def join(self) -> None:
        """Wait for its end, which must come and be a good one."""
        until = time.monotonic() + PATIENCE_S
        while os.waitpid(self.pid, os.WNOHANG) == (0, 0):
            if time.monotonic() > until:
                os.kill(self.pid, 9)
                os.waitpid(self.pid, 0)
                raise AssertionError("a child hangs")
            time.sleep(0.01)
        with open(self._reading, "rb") as told:
            if said := told.read().decode():
                pytest.fail(said)


def take_turns(saver: DeltaSaver, name: str, own: str) -> None:
    """Add to a thread, and see that everything of one's own is there, in order."""
    history = ThreadChatMessageHistory(name, saver)
    for number in range(TURNS):
        history.add_messages([HumanMessage(f"{own} {number}", id=f"{own}-{number}")])
        said = [message.text for message in history.messages if message.text.startswith(f"{own} ")]
        assert said == [f"{own} {one}" for one in range(number + 1)]


async def atake_turns(saver: DeltaSaver, name: str, own: str) -> None:
    history = ThreadChatMessageHistory(name, saver)
    for number in range(TURNS):
        await history.aadd_messages([HumanMessage(f"{own} {number}", id=f"{own}-{number}")])
        said = [
            message.text
            for message in await history.aget_messages()
            if message.text.startswith(f"{own} ")
        ]
        assert said == [f"{own} {one}" for one in range(number + 1)]


def all_said(url: str, name: str) -> set[str]:
    with DeltaSaver.open(url) as saver:
        return {message.text for message in ThreadChatMessageHistory(name, saver).messages}


def expected(*speakers: str) -> set[str]:
    return {f"{own} {number}" for own in speakers for number in range(TURNS)}


@pytest.mark.parametrize("pool_size", [1, None])
@pytest.mark.parametrize("way", ["sync", "async"])
def test_a_parent_and_its_children_go_on_with_the_same_threads_and_with_others(
    url: str, pool_size: int | None, way: str
) -> None:
    url += f"&pool_size={pool_size}" if pool_size else ""
    with DeltaSaver.open(url) as saver:
        take_turns(saver, "all", "before")
        asyncio.run(atake_turns(saver, "all", "asynchronously before"))

        def work(own: str) -> None:
            for name in ("all", own):
                if way == "sync":
                    take_turns(saver, name, own)
                else:
                    asyncio.run(atake_turns(saver, name, own))

        children = [Child(lambda own=own: work(own)) for own in ("one", "two")]  # type: ignore[misc]
        work("parent")
        for child in children:
            child.join()
        take_turns(saver, "all", "after")
    assert all_said(url, "all") == expected(
        "before", "asynchronously before", "one", "two", "parent", "after"
    )
    assert all(all_said(url, own) == expected(own) for own in ("one", "two", "parent"))
    assert examine(url).findings == ()
