"""Promise: whom a signal's handler stops is told so, and holds nobody up; one caller's fault fails
no other.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from savers import empty_tables

from langmem_ext import DeltaSaver, InvalidInput, StorageUnavailable, ThreadChatMessageHistory
from langmem_ext.storage.operation import Op, execute, operation
from langmem_ext.storage.postgres.queue import Lineup
from langmem_ext.storage.postgres.wire import exchange


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"{empty_tables(tmp_path)}&deadline=240&pool_size=1"


def say(saver: DeltaSaver, thread: str = "t") -> int:
    history = ThreadChatMessageHistory(thread, saver)
    history.add_messages([HumanMessage("hello")])
    return len(history.messages)


@pytest.mark.parametrize("write", [True, False])
def test_who_is_stopped_in_an_exchange_is_told_so_and_its_connection_is_given_up(
    write: bool, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(pgconn: Any) -> Any:
        monkeypatch.undo()
        raise KeyboardInterrupt

    with DeltaSaver.open(url) as saver:
        assert say(saver) == 1
        monkeypatch.setattr(exchange, "send", stop)
        with pytest.raises(KeyboardInterrupt):
            say(saver) if write else saver.get_tuple({"configurable": {"thread_id": "t"}})
        assert say(saver) in ((2, 3) if write else (2,)), "what was sent may be stored"


def test_who_is_stopped_before_its_work_has_begun_holds_nobody_up(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take = Lineup.take_or_wait

    def stop(*args: Any, **options: Any) -> Any:
        take(*args, **options)
        monkeypatch.undo()
        raise KeyboardInterrupt

    with DeltaSaver.open(url) as saver:
        assert say(saver) == 1
        monkeypatch.setattr(Lineup, "take_or_wait", stop)
        with pytest.raises(KeyboardInterrupt):
            say(saver)
        assert say(saver) == 2


@operation
def note(name: str, value: object) -> Op[None]:
    yield from execute(
        "INSERT INTO setting (name, value) VALUES (:name, CAST(CAST(:value AS BIGINT) AS TEXT))",
        name=name,
        value=value,
    )


async def test_a_value_that_cannot_be_sent_fails_its_own_caller_alone(url: str) -> None:
    async with DeltaSaver.from_conn_string(url) as saver:
        names = [f"n{number}" for number in range(8)]
        wanted = [note(name, 1) for name in names] + [note("large", 2**63), note("half\ud83d", 1)]
        told = await asyncio.gather(
            *(saver.log.arun(one, write=True) for one in wanted), return_exceptions=True
        )
        assert told[:8] == [None] * 8
        assert [type(one) for one in told[8:]] == [InvalidInput, InvalidInput]
        assert "64 bits" in str(told[8])


async def test_a_sync_call_does_not_wait_for_its_own_event_loop(url: str) -> None:
    async with DeltaSaver.from_conn_string(url) as saver:
        await ThreadChatMessageHistory("t", saver).aadd_messages([HumanMessage("hello")])
        writing = asyncio.create_task(
            ThreadChatMessageHistory("t", saver).aadd_messages([HumanMessage("hello")])
        )
        lane = await saver.log.driver._open_lane()  # type: ignore[attr-defined]
        while "t" not in lane.writing:
            await asyncio.sleep(0)
        with pytest.raises(StorageUnavailable, match="await the async method"):
            say(saver)
        assert say(saver, "another") == 1
        await writing
        assert say(saver) == 3
