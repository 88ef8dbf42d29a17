"""Promise: what is opened is closed.

No connection, file handle or thread is left behind, and no warning, whoever forgets to close.
"""

from __future__ import annotations

import asyncio
import gc
import os
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import psutil
import pytest
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from move_checks import sqlite_saver
from patience import PATIENCE_S, until
from repository import ROOT
from savers import Backend

from langmem_ext import (
    DeltaSaver,
    MessageLog,
    Retention,
    StorageError,
    ThreadChatMessageHistory,
    acopy_saver,
    aexamine,
    aimport_checkpoints,
    astats,
    copy_saver,
    examine,
    import_checkpoints,
    stats,
)

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def answer(state: MessagesState) -> Any:
    return {"messages": [("ai", f"{len(state['messages'])} read")]}


def graph_on(saver: Any) -> Any:
    return (
        StateGraph(MessagesState)
        .add_node("answer", answer)
        .add_edge(START, "answer")
        .compile(checkpointer=saver)
    )


def use(path: str, new: str, folder: Path) -> None:
    """Use all that there is, sync and async, and close it."""
    with DeltaSaver.from_conn_string(path) as saver, saver.lease("t"):
        graph_on(saver).invoke({"messages": [HumanMessage("hello")]}, CONFIG)
        next(iter(saver.list(CONFIG)))  # left early
        examine(saver)
        copy_saver(saver, InMemorySaver())
    history = ThreadChatMessageHistory("t", path)
    assert history.messages
    history.log.close()
    with sqlite_saver(folder / "old.sqlite") as old:
        graph_on(old).invoke({"messages": [HumanMessage("hello")]}, CONFIG)
    import_checkpoints(folder / "old.sqlite", new, verify=True)
    examine(path)
    stats(path)
    asyncio.run(ause(path, new, folder))
    for wrong in (
        str(folder / "no" / "such.db"),
        str(folder / "notes.txt"),
        "postgresql://postgres@127.0.0.1:1/none",
    ):
        with pytest.raises(StorageError):
            DeltaSaver.open(wrong)


async def ause(path: str, new: str, folder: Path) -> None:
    """The async half of it."""
    saver = DeltaSaver.open(path, retention=Retention(keep_last=2))
    async with saver.alease("t"):
        await graph_on(saver).ainvoke({"messages": [HumanMessage("hello")]}, CONFIG)
    async for _ in saver.alist(CONFIG):
        break
    cut = asyncio.ensure_future(saver.aget_tuple(CONFIG))
    await asyncio.sleep(0)
    cut.cancel()
    await asyncio.gather(cut, return_exceptions=True)
    await saver.aprune(["t"])
    await saver.acompact(full=True)
    await acopy_saver(saver, InMemorySaver())
    await saver.aclose()
    await aexamine(path)
    await astats(path)
    await aimport_checkpoints(folder / "old.sqlite", new)
    log = await asyncio.to_thread(MessageLog.open, path)
    await log.aclose()


def held() -> tuple[list[str], list[str]]:
    """The files that this process has open, and its threads."""
    gc.collect()
    folder = Path("/proc/self/fd")
    if not folder.exists():
        return [""] * psutil.Process().num_fds(), sorted(one.name for one in threading.enumerate())
    names: list[str] = []
    for descriptor in folder.iterdir():
        try:
            names.append(
                os.readlink(descriptor).partition("[")[0]
            )  # each socket and pipe has a number of its own
        except FileNotFoundError:  # the one that lists the folder
            continue
    return sorted(names), sorted(one.name for one in threading.enumerate())


def test_what_was_used_and_closed_leaves_no_file_no_connection_and_no_thread(
    durable: Backend, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("no database " * 1000)
    path, new = durable.new_url(tmp_path), durable.new_url(tmp_path)
    use(path, new, tmp_path)  # whatever is loaded for good
    before = held()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(3):
            use(path, new, tmp_path)
    until(
        lambda: held() == before, "something is still open"
    )  # threads end a moment after they are told to


FORGOTTEN = """
import asyncio, gc, sys
from langmem_ext import DeltaSaver, ThreadChatMessageHistory

saver = DeltaSaver.open(sys.argv[1])
history = ThreadChatMessageHistory("t", saver)
history.add_user_message("hello")

async def main():
    # A slow machine is no fault; development mode would tell of it.
    asyncio.get_running_loop().slow_callback_duration = 3600
    async with saver.alease("t"):
        print(len(await history.aget_messages()))

def local():
    DeltaSaver.open(sys.argv[1]).get_tuple({"configurable": {"thread_id": "t"}})
    DeltaSaver.open(":memory:")

asyncio.run(main())
local()
gc.collect()
"""


@pytest.mark.process
def test_whoever_forgets_to_close_gets_no_warning_and_leaves_a_whole_database(
    url: str, tmp_path: Path
) -> None:
    # From Python 3.13 on, sqlite3 warns of connections that nobody has closed.
    command = [sys.executable, "-X", "dev", "-W", "error::ResourceWarning", "-c", FORGOTTEN, url]
    ended = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=PATIENCE_S)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "1\n", "")
    if "://" not in url:
        assert sorted(file.name for file in tmp_path.iterdir()) == [
            Path(url).name,
            f"{Path(url).name}-lock",
        ]
    assert examine(url).findings == ()
