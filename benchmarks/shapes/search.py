"""Searches in one thread, in a very long one and in all, and what the index costs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contenders import CONTENDERS
from benchmarks.graph import Talk, conversation
from benchmarks.lanes import Step, Work
from benchmarks.shape import Aim, Shape
from benchmarks.text import SHORT, dialogue, replies
from langmem_ext import Threads
from langmem_ext.storage.operation import Op, fetch, operation

QUERIES = (
    "return value",
    "the file",
    "optional arg",
    '"of the"',
    "iter",
    "exception raised when the",
    "the",
    "nothingofthekind",
)
"""Common words and rare ones, whole ones and beginnings, one and several."""

KINDS = 4
"""Threads whose copies fill the database: what is said is alike in all, as what people ask a shop
is."""


def searching(
    contender: str, folder: Path, *, messages: int, thread: int, long: int, samples: int
) -> Work:
    """Search a thread, the newest one, a long one and all, among few threads and among many."""
    with CONTENDERS[contender](folder) as opened:
        graph = conversation(opened, replies(SHORT, rich=False))
        for number in range(KINDS):
            Talk(opened, graph, f"kind {number}", begin=dialogue(thread))
        Talk(opened, graph, "long", begin=dialogue(long))
        threads = Threads(opened.saver)
        yield Step("fill", threads.enable_search)
        yield from _searches(threads, samples, "@few")
        for number in range((messages - KINDS * thread - long) // thread):
            opened.saver.copy_thread(f"kind {number % KINDS}", f"copy {number}")
        yield from _searches(threads, samples, "@many")
        share = opened.saver.log.run(_share(), write=False)
        yield Step("delete_long", partial(threads.delete, "long"))
        yield Step("compact", opened.saver.log.compact)
        return {"index_per_text": share, "bytes": opened.bytes()}


def _searches(threads: Threads, samples: int, mark: str) -> Iterator[Step]:
    newest = threads.list(limit=1)[0].id
    for query in QUERIES:
        for _ in range(samples):
            yield Step(f"thread{mark}", partial(threads.search, query, thread="kind 2"))
            yield Step(f"newest{mark}", partial(threads.search, query, thread=newest))
            yield Step(f"long{mark}", partial(threads.search, query, thread="long"))
            yield Step(f"all{mark}", partial(threads.search, query))


@operation
def _share() -> Op[float]:
    """Bytes of the index by bytes of the messages' texts."""
    [(text,)] = yield from fetch("SELECT sum(length(CAST(text AS BLOB))) FROM item")
    sizes: Any = yield from fetch(
        "SELECT name, sum(pgsize) FROM dbstat WHERE aggregate = TRUE GROUP BY name"
    )
    return sum(size for name, size in sizes if name.startswith("search")) / (text or 1)


SHAPES = (
    Shape(
        "search",
        "search a thread of 1,000 messages, and one of 100,000, among 1,000,000",
        searching,
        ("delta",),
        {"messages": 1_000_000, "thread": 1000, "long": 100_000, "samples": 3},
        {"messages": 60, "thread": 10, "long": 20, "samples": 1},
        (
            Aim(
                "CPU ms, one thread of 1,000 messages among 1,000,000",
                "thread_cpu_ms@many",
                at_most=10,
            ),
            Aim(
                "CPU ms, the newest thread among 1,000,000 messages",
                "newest_cpu_ms@many",
                at_most=10,
            ),
            Aim(
                "CPU ms, one thread of 100,000 messages among 1,000,000",
                "long_cpu_ms@many",
                at_most=30,
            ),
            Aim("CPU ms, all of 1,000,000 messages", "all_cpu_ms@many"),
            Aim("bytes of the index by those of the texts", "index_per_text"),
        ),
        slow=True,
        burst=50,
    ),
)
