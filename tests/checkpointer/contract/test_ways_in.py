"""Promise: a `str` or a `pathlib.Path` names a database; `aopen` never blocks a loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path, PurePath
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from move_checks import sqlite_saver
from savers import Backend, new_schema

from langmem_ext import (
    ConversationMemory,
    DeltaSaver,
    InMemoryConversationMemory,
    InvalidInput,
    Message,
    MessageLog,
    Settings,
    StorageUnavailable,
    ThreadChatMessageHistory,
    Threads,
    aexamine,
    aimport_checkpoints,
    astats,
    examine,
    import_checkpoints,
    stats,
)

# -- paths -----------------------------------------------------------------------------------------


def keep(path: Path) -> None:
    """A database with one message in it."""
    with ThreadChatMessageHistory("t", str(path)) as history:
        history.add_messages([HumanMessage("hello")])


READERS: dict[str, Callable[[Any], object]] = {
    "MessageLog.open": lambda path: Threads(MessageLog.open(path)).messages("t"),
    "DeltaSaver": lambda path: Threads(DeltaSaver(path)).messages("t"),
    "DeltaSaver.open": lambda path: Threads(DeltaSaver.open(path)).messages("t"),
    "Threads": lambda path: Threads(path).messages("t"),
    "ThreadChatMessageHistory": lambda path: ThreadChatMessageHistory("t", path).messages,
    "ConversationMemory": lambda path: [
        message.text for message in ConversationMemory(path).for_session("t").history()
    ],
    "stats": lambda path: stats(path).messages,
    "examine": lambda path: examine(path).ok,
    "Settings": lambda path: Threads(Settings(storage_path=path).storage_path).messages("t"),
}


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize("kind", [Path, PurePath, os.fspath], ids=["Path", "PurePath", "str"])
def test_a_path_and_its_text_name_the_same_database(
    reader: str, kind: Callable[[Path], Any], tmp_path: Path
) -> None:
    keep(tmp_path / "memory.db")
    assert READERS[reader](kind(tmp_path / "memory.db"))
    assert {path.name for path in tmp_path.iterdir()} <= {
        "memory.db",
        *(f"memory.db-{end}" for end in ("wal", "shm", "lock")),
    }


async def test_a_path_opens_by_async_with_and_is_imported_into(tmp_path: Path) -> None:
    async with DeltaSaver.from_conn_string(tmp_path / "memory.db") as saver:
        await ThreadChatMessageHistory("t", saver).aadd_messages([HumanMessage("hello")])
    assert (await astats(tmp_path / "memory.db")).messages == 1
    assert (await aexamine(tmp_path / "memory.db", fix=True)).ok
    with sqlite_saver(tmp_path / "old.sqlite"):
        pass
    for number in range(2):
        import_checkpoints(tmp_path / "old.sqlite", tmp_path / f"{number}.db")
        assert (
            await aimport_checkpoints(tmp_path / "old.sqlite", tmp_path / f"{number}.db")
        ).threads == 0


def test_an_import_into_its_own_source_is_refused_for_a_path_too(tmp_path: Path) -> None:
    with sqlite_saver(tmp_path / "old.sqlite"):
        pass
    with pytest.raises(InvalidInput, match="the same file"):
        import_checkpoints(tmp_path / "old.sqlite", tmp_path / "old.sqlite")


def test_a_url_that_was_made_a_path_is_refused_without_its_password(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for url in ("postgresql://me:hidden@host/name", "sqlite:///memory.db"):
        with pytest.raises(InvalidInput, match="neither a path nor a supported URL") as refused:
            DeltaSaver.open(Path(url))
        assert "hidden" not in str(refused.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("wrong", [b"memory.db", 7, None])
def test_what_names_no_database_is_refused_with_what_does(wrong: Any) -> None:
    for open_it in (DeltaSaver.open, DeltaSaver, Threads):
        with pytest.raises(InvalidInput, match="path"):
            open_it(wrong)


def test_a_history_closes_what_its_path_has_opened_and_nothing_else(tmp_path: Path) -> None:
    with ThreadChatMessageHistory("t", tmp_path / "memory.db") as history:
        history.add_messages([HumanMessage("hello")])
    with pytest.raises(StorageUnavailable, match="closed"):
        _ = history.messages
    with DeltaSaver.open(tmp_path / "memory.db") as saver:
        with ThreadChatMessageHistory("t", saver):
            pass
        assert len(Threads(saver).messages("t")) == 1


# -- event loops -----------------------------------------------------------------------------------

OPENERS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "MessageLog": lambda url: MessageLog.aopen(
        url, synchronous="normal", cache_bytes=1 << 20, compress=False, own=True
    ),
    "DeltaSaver": lambda url: DeltaSaver.aopen(url, owner="u1"),
    "Threads": lambda url: Threads.aopen(url, owner="u1", max_turns=3),
    "ThreadChatMessageHistory": lambda url: ThreadChatMessageHistory.aopen(
        "t", url, channel="said", owner="u1"
    ),
    "ConversationMemory": lambda url: ConversationMemory.aopen(
        url, owner="u1", channels={"params": "known"}
    ),
}
"""Opens by `aopen`; blocking calls raise here (`tests.conftest`)."""


@pytest.mark.parametrize("name", OPENERS)
async def test_a_database_is_made_and_opened_again_off_the_event_loop(
    name: str, durable: Backend, tmp_path: Path
) -> None:
    """The first time its tables are made, too: what `aopen` does on the loop itself would raise."""
    url = new_schema(tmp_path) if durable.name == "postgres" else str(tmp_path / "memory.db")
    for _ in range(2):
        opened = await OPENERS[name](url)
        assert type(opened).__name__ == name
        await opened.aclose()
    assert (await astats(url)).threads == 0


async def test_what_was_opened_on_an_event_loop_works_there_and_closes(
    durable: Backend, tmp_path: Path
) -> None:
    url = durable.new_url(tmp_path)
    async with await ThreadChatMessageHistory.aopen("t", url, owner="u1") as history:
        await history.aadd_messages([HumanMessage("hello")])
    async with await Threads.aopen(url, owner="u1") as threads:
        assert [thread.id for thread in await threads.alist()] == ["t"]
    async with await Threads.aopen(url, owner="u2") as threads:
        assert await threads.alist() == []
    async with await DeltaSaver.aopen(url, owner="u1") as saver:
        assert saver.owner == "u1"
        [found] = [found async for found in saver.alist(None)]
        assert [message.text for message in found.checkpoint["channel_values"]["messages"]] == [
            "hello"
        ]
    with pytest.raises(StorageUnavailable, match="closed"):
        await saver.aget_tuple({"configurable": {"thread_id": "t"}})


async def test_sessions_in_memory_open_off_the_event_loop() -> None:
    async with await InMemoryConversationMemory.aopen() as memory:
        await memory.for_session("s").aappend(Message("user", "hello"))
        assert [message.text for message in await memory.for_session("s").ahistory()] == ["hello"]


@pytest.mark.parametrize("name", OPENERS)
async def test_what_cannot_be_opened_is_refused_as_without_an_event_loop(
    name: str, tmp_path: Path
) -> None:
    with pytest.raises(StorageUnavailable, match="is a directory"):
        await OPENERS[name](tmp_path)


async def test_an_opening_that_is_cancelled_leaves_nothing_open(tmp_path: Path) -> None:
    opening = asyncio.create_task(DeltaSaver.aopen(tmp_path / "memory.db"))
    await asyncio.sleep(0)
    opening.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening
    await asyncio.get_running_loop().shutdown_default_executor()
    assert [path.name for path in tmp_path.iterdir() if path.name.endswith("-wal")] == []
