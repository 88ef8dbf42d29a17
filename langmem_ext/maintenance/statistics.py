"""Statistics: how much a database holds, of what, where most of it is, and what a SqliteSaver would have needed for the same."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Final

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from langmem_ext.log import Database, MessageLog, existing, is_address
from langmem_ext.messages.identity import CLASSES
from langmem_ext.storage import stats_ops
from langmem_ext.storage import stats_statements as sql
from langmem_ext.storage.effects import fetch, operation
from langmem_ext.storage.index import ThreadIndex
from langmem_ext.storage.inspect_ops import require_zstd
from langmem_ext.storage.search_statements import SHADOWS
from langmem_ext.storage.stats_ops import Measured
from langmem_ext.storage.steps import Running, Steps

PAGE: Final = 512
"""Rows that one step measures."""

LARGEST: Final = 10
"""Threads that are told one by one."""

_KINDS: Final = {
    "item": "messages",
    "value": "values",
    "checkpoint": "checkpoints",
    "pending_write": "writes",
    "word": "words",
    "thread": "threads",
    "namespace": "threads",
    **dict.fromkeys(SHADOWS, "search"),
}
_OWN: Final = frozenset({"langmem_migration", "setting", "sqlite_schema", "sqlite_sequence"})


@dataclass(frozen=True, slots=True)
class ThreadSize:
    """A thread: the bytes of its rows, about, without what pages cost; its messages, and its checkpoints."""

    id: str
    bytes: int
    messages: int
    checkpoints: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """How much a database holds.

    Attributes:
        threads, checkpoints, writes, messages, values: Rows of each kind; a row of writes holds all that one task wrote.
        bytes: Bytes by kind: `texts` and `rests` of messages, and their pages beyond these (`messages`); `values`, `checkpoints`, `writes`,
            `words` and `threads`; the `search` index; `indexes`; `other`, which is the schema; `free` pages. Whole pages, where `exact`.
        file_bytes: Bytes of the database file; its write-ahead log is not counted.
        exact: Whether SQLite could tell what each page is for; else `bytes` are sums of lengths: `texts`, `rests`, all other `rows`, and
            what pages cost is `other`.
        largest: The ten largest threads, the largest first.
        bytes_per_turn: Bytes of the file, without free pages, per message of a person; None where there is none.
        sqlite_saver_bytes: What langgraph-checkpoint-sqlite would have needed for the same checkpoints and writes, about: for each
            checkpoint the serialised size of all of its channels' values and its metadata, for each write that of its value, with ids,
            index and whole pages for what does not fit into one. Computed from lengths; within some 15 % of a real one.
    """

    threads: int
    checkpoints: int
    writes: int
    messages: int
    values: int
    bytes: Mapping[str, int]
    file_bytes: int
    exact: bool
    largest: tuple[ThreadSize, ...]
    bytes_per_turn: float | None
    sqlite_saver_bytes: int


def stats(source: Database) -> Statistics:
    """Count what a database holds.

    Args:
        source: The database. One that is named by a path or URL must be there, and is opened for
            reading alone.

    Raises:
        StorageError: The database cannot be opened or read.
    """
    log = MessageLog.of(existing(source, read_only=True) if is_address(source) else source)
    try:
        return Running(log.driver, _measure()).finish()
    finally:
        if is_address(source):
            log.close()


async def astats(source: Database) -> Statistics:
    """Async twin of `stats`."""
    log = await asyncio.to_thread(lambda: MessageLog.of(existing(source, read_only=True) if is_address(source) else source))
    try:
        return await Running(log.driver, _measure()).afinish()
    finally:
        if is_address(source):
            await log.aclose()


# -- steps -------------------------------------------------------------------------------------------------------------------------------


def _measure() -> Steps[Statistics]:
    yield require_zstd(), False
    sizes, exact = yield stats_ops.measure_file(), False
    threads, checkpoints, writes, _, values = yield stats_ops.count_rows(), False
    weights = _weights()
    largest: list[tuple[int, int, ThreadSize]] = []
    text, rest, messages, human, classic, measured = 0, 0, 0, 0, 0, 0
    after: int | None = -(1 << 62)
    while after is not None:
        rows = yield operation(fetch)(sql.SELECT_THREADS, after=after, limit=PAGE), False
        for number, name in rows:
            thread = yield from _measure_thread(Measured(number, str(name), weights, ThreadIndex(number)))
            size = ThreadSize(thread.id, thread.bytes, thread.messages, thread.checkpoints)
            heapq.heappush(largest, (thread.bytes, -number, size))
            if len(largest) > LARGEST:
                heapq.heappop(largest)
            text, rest, messages = text + thread.text, rest + thread.rest, messages + thread.messages
            human, classic, measured = human + thread.human, classic + thread.classic, measured + thread.bytes
        after = rows[-1][0] if len(rows) == PAGE else None
    used = sizes["file"] - sizes["free"]
    return Statistics(
        threads=threads,
        checkpoints=checkpoints,
        writes=writes,
        messages=messages,
        values=values,
        bytes=_by_kind(sizes, text, rest, measured, exact=exact),
        file_bytes=sizes["file"],
        exact=exact,
        largest=tuple(size for _, _, size in sorted(largest, reverse=True)),
        bytes_per_turn=used / human if human else None,
        sqlite_saver_bytes=classic,
    )


def _measure_thread(thread: Measured) -> Steps[Measured]:
    """All of a thread; what is damaged counts for nothing."""
    at: int | None = -1
    while at is not None:
        at = yield stats_ops.measure_items(thread, at, PAGE), False
    at = -1
    while at is not None:
        at = yield stats_ops.measure_values(thread, at, PAGE), False
    yield stats_ops.sum_up(thread), False
    checkpoint: tuple[int, bytes] | None = (-1, b"")
    while checkpoint is not None:
        checkpoint = yield stats_ops.measure_checkpoints(thread, checkpoint, PAGE), False
    write: stats_ops.Place | None = (-1, b"", b"")
    while write is not None:
        write = yield stats_ops.measure_writes(thread, write, PAGE), False
    return thread


def _by_kind(sizes: Mapping[str, int], text: int, rest: int, measured: int, *, exact: bool) -> dict[str, int]:
    kinds = {"texts": text, "rests": rest}
    if not exact:
        return kinds | {"rows": measured - text - rest, "other": sizes["file"] - sizes["free"] - measured, "free": sizes["free"]}
    kinds |= dict.fromkeys(("messages", *_KINDS.values(), "indexes", "other"), 0)
    for name, size in sizes.items():
        if name not in ("free", "file"):
            kinds[_KINDS.get(name, "other" if name in _OWN else "indexes")] += size
    kinds["messages"] -= text + rest
    kinds["free"] = sizes["free"]
    kinds["other"] += sizes["file"] - sum(kinds.values())
    return kinds


@cache
def _weights() -> dict[int | None, int]:
    """What LangGraph's serializer adds to a message's own bytes, by the code of its class: measured on an empty one."""
    serializer = JsonPlusSerializer()
    weights: dict[int | None, int] = {None: 0}
    for code, cls in enumerate(CLASSES):
        needed = {name: "" for name, field in cls.model_fields.items() if field.is_required()}
        weights[code] = len(serializer.dumps_typed(cls(**needed))[1])
    return weights
