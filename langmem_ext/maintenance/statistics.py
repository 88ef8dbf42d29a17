"""Statistics: how much a database holds, of what, and where most of it is."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from langmem_ext.log.message_log import Database, MessageLog, existing, is_address
from langmem_ext.storage.driver import Running, Steps
from langmem_ext.storage.inspect import stats as stats_ops
from langmem_ext.storage.inspect.read import require_zstd
from langmem_ext.storage.inspect.stats import Measured
from langmem_ext.storage.schema.store import STORE_TABLES
from langmem_ext.storage.search.sql import SHADOWS
from langmem_ext.store import operations as store_operations

PAGE: Final = 64
"""Threads that one step measures."""

LARGEST: Final = 10
"""Threads that are listed individually."""

_KINDS: Final = {
    "item": "messages",
    "value": "values",
    "checkpoint": "checkpoints",
    "pending_write": "writes",
    "word": "words",
    "thread": "threads",
    "namespace": "threads",
    **dict.fromkeys(SHADOWS, "search"),
    **dict.fromkeys(STORE_TABLES, "store"),
}
_OWN: Final = frozenset({"langmem_migration", "setting", "sqlite_schema", "sqlite_sequence"})


@dataclass(frozen=True, slots=True)
class ThreadSize:
    """A thread's size: about how many bytes its rows take, its messages and its checkpoints."""

    id: str
    bytes: int
    messages: int
    checkpoints: int


@dataclass(frozen=True, slots=True)
class Statistics:
    """The rows and bytes of a database.

    Attributes:
        threads, checkpoints, writes, messages, values: Rows of each kind; a row of writes holds all
            that one task wrote.
        bytes: Bytes by kind: `texts` and `rests` of messages, and their pages beyond these
            (`messages`); `values`, `checkpoints`, `writes`, `words` and `threads`; the `search`
            index; the long-term `store`; `indexes`; `other`, which is the schema; `free` pages.
            Whole pages, where `exact`.
        file_bytes: Bytes of the database file; its write-ahead log is not counted.
        exact: Whether SQLite could tell what each page is for; else `bytes` are sums of lengths:
            `texts`, `rests`, all other `rows`, and what pages cost is `other`.
        largest: The ten largest threads, the largest first.
        bytes_per_turn: Bytes of the file, without free pages, per message of a person; None if
            there is none.
        store_items: Items of the long-term store, expired ones included.
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
    store_items: int = 0


def stats(source: Database) -> Statistics:
    """Count the rows and bytes of a database.

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
    log = await asyncio.to_thread(
        lambda: MessageLog.of(existing(source, read_only=True) if is_address(source) else source)
    )
    try:
        return await Running(log.driver, _measure()).afinish()
    finally:
        if is_address(source):
            await log.aclose()


# -- steps -----------------------------------------------------------------------------------------


def _measure() -> Steps[Statistics]:
    yield require_zstd(), False
    sizes, exact = yield stats_ops.measure_file(), False
    threads, checkpoints, writes, _, values = yield stats_ops.count_rows(), False
    store_items, _ = yield store_operations.count_rows(), False
    largest: list[tuple[int, int, ThreadSize]] = []
    text, rest, messages, human, measured = 0, 0, 0, 0, 0
    after: int | None = -(1 << 62)
    while after is not None:
        page: list[Measured] = yield stats_ops.measure_threads(after, PAGE), False
        for thread in page:
            size = ThreadSize(thread.id, thread.bytes, thread.messages, thread.checkpoints)
            heapq.heappush(largest, (thread.bytes, -thread.number, size))
            if len(largest) > LARGEST:
                heapq.heappop(largest)
            text, rest, messages = (
                text + thread.text,
                rest + thread.rest,
                messages + thread.messages,
            )
            human, measured = human + thread.human, measured + thread.bytes
        after = page[-1].number if len(page) == PAGE else None
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
        store_items=store_items,
    )


def _by_kind(
    sizes: Mapping[str, int], text: int, rest: int, measured: int, *, exact: bool
) -> dict[str, int]:
    kinds = {"texts": text, "rests": rest}
    if not exact:
        return kinds | {
            "rows": measured - text - rest,
            "other": sizes["file"] - sizes["free"] - measured,
            "free": sizes["free"],
        }
    kinds |= dict.fromkeys(("messages", *_KINDS.values(), "indexes", "other"), 0)
    for name, size in sizes.items():
        if name not in ("free", "file"):
            kinds[_KINDS.get(name, "other" if name in _OWN else "indexes")] += size
    kinds["messages"] -= text + rest
    kinds["free"] = sizes["free"]
    kinds["other"] += sizes["file"] - sum(kinds.values())
    return kinds
