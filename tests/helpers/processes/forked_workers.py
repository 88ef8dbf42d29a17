"""Forks test processes from one with everything imported, so that they start in milliseconds.

What they do is in modules that import little: each process imports the module of its function anew.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from typing import Any

from langchain_core.messages import HumanMessage
from patience import PATIENCE_S

from langmem_ext import DeltaSaver, ThreadChatMessageHistory, Threads

PRELOADED = [
    "apart",
    "turns",
    "langmem_ext.checkpointer.saver",
    "langmem_ext.threads.session.memory",
    "langmem_ext.storage.postgres.driver",
]

_begin: Any = None


def forks() -> Any:
    """The context that makes them."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    return context


def at_once(work: Callable[..., Any], calls: list[tuple[Any, ...]]) -> list[Any]:
    """Have each call done by a process of its own, all at the same moment; what each gave."""
    context = forks()
    with context.Pool(len(calls), _prepare, (context.Barrier(len(calls)),)) as pool:
        found = pool.starmap(_together, [(work, *call) for call in calls], chunksize=1)
        pool.close()
        pool.join()
    return list(found)


def _prepare(barrier: Any) -> None:
    global _begin
    _begin = barrier


def _together(work: Callable[..., Any], *arguments: Any) -> Any:
    _begin.wait(PATIENCE_S)
    return work(*arguments)


# -- what they do ----------------------------------------------------------------------------------


def open_and_close(url: str) -> bool:
    """Open a database that others are making."""
    DeltaSaver.open(url).close()
    return True


def search_meanwhile(url: str, name: str) -> int:
    """Write, copy and search threads repeatedly; return how many own words are found last."""
    with DeltaSaver.open(url) as saver:
        for number in range(12):
            ThreadChatMessageHistory(f"{name}{number}", saver).add_messages(
                [HumanMessage(f"word of {name}")]
            )
            if number % 4 == 0:
                saver.copy_thread("old1", f"copy {name}{number}")
                Threads(saver).search("word")
        return len(Threads(saver).search(f"word {name}", limit=100))
