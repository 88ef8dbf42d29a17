"""Operations that export a thread from a database or import it: whole rows, page by page.

A thread is exported in one read transaction, so it is consistent, even if others write. It is
imported in one write transaction, perhaps with others, so it is stored whole or not at all. In
between it is in a database of its own, which nobody else sees: work on it there blocks nobody, and
it may be larger than the memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langmem_ext.errors import ThreadNotFound
from langmem_ext.messages.manifest import Runs, length_of, merged, ranges_of
from langmem_ext.messages.token_costs.stored_tokens import implied_tokens
from langmem_ext.storage.cache import ThreadCache, ThreadCaches
from langmem_ext.storage.checkpoints.lookup import header_of
from langmem_ext.storage.checkpoints.messages import read_messages
from langmem_ext.storage.checkpoints.sql import DELETE_THREAD, SELECT_LATEST_CHECKPOINT
from langmem_ext.storage.checkpoints.thread_row import is_taken
from langmem_ext.storage.operation import (
    PAUSE,
    Batch,
    Op,
    Row,
    Rows,
    fetch,
    fetch_one,
    operation,
    operation_once,
    side_by_side,
)
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.rows.checkpoint import longest_runs
from langmem_ext.storage.rows.compression import shrink, shrink_text
from langmem_ext.storage.rows.ids import first_id_at, new_generation
from langmem_ext.storage.search import catch_up as fill_ops
from langmem_ext.storage.search import index as search_ops
from langmem_ext.storage.threads import rows_sql as sql
from langmem_ext.storage.threads.copy import rename_labels
from langmem_ext.storage.threads.list import ThreadFilter
from langmem_ext.storage.threads.rows_sql import ITEM, TABLES, VALUE, Table
from langmem_ext.storage.threads.sql import STATUS
from langmem_ext.types import Codec, ThreadKey

PAGE: Final = 64
"""Rows that are held at once: some are large."""

SMALL: Final = (1 << 31) - 1
"""The highest number that a thread can have in every database."""

IDS: Final = 256
"""Threads whose ids are held at once."""


@operation
def list_ids(wanted: ThreadFilter, after: int) -> Op[Rows]:
    """Numbers and ids of threads after a number.

    In this order, a thread that is written meanwhile is not passed over.
    """
    conditions, params = wanted.conditions()
    if wanted.status is not None:
        conditions.append(STATUS)
        params["status"] = wanted.status
    where = f" WHERE {' AND '.join([*conditions, sql.AFTER])}"
    return (yield from fetch(sql.SELECT_IDS.format(where=where), **params, after=after, limit=IDS))


@operation
def read_page(number: int, table: Table, after: Row | None) -> Op[Rows]:
    """A page of a thread's rows, after a row."""
    return (yield from fetch(table.page(), **table.position(number, after), limit=PAGE))


@operation_once
def copy_out(key: ThreadKey, take: Callable[[Table, Rows], None]) -> Op[dict[str, Any] | None]:
    """Read all of a thread; its own row by column, or None if there is no such thread.

    Its number is one that SQLite can hold.

    Args:
        key: The thread.
        take: Called with each page of its rows; it must not use this database.
    """
    row = yield from fetch_one(sql.SELECT_THREAD, id=key.id, owner=key.owner)
    if row is None:
        return None
    number: int = row[0]
    fitting = number if number <= SMALL else 1
    for table in TABLES:
        after: Row | None = None
        while rows := (yield from read_page(number, table, after)):
            take(table, rows if fitting == number else moved(table, rows, number, fitting))
            after = rows[-1]
            yield PAUSE
    return dict(zip(("number", *sql.THREAD_COLUMNS), (fitting, *row[1:]), strict=True))


@operation
def store_rows(table: Table, rows: Rows) -> Op[None]:
    """Add rows as they are."""
    yield Batch(table.insert(), [dict(zip(table.columns, row, strict=True)) for row in rows])


@operation
def store_thread(thread: Mapping[str, Any]) -> Op[None]:
    """Add a thread's own row, with its number."""
    yield from fetch(sql.INSERT_COPY, **thread)


@operation
def drop(number: int) -> Op[None]:
    """Delete what there is of a thread."""
    for statement in DELETE_THREAD:
        yield from fetch(statement, thread=number)


@operation
def read_thread(thread_id: str) -> Op[dict[str, Any]]:
    """The row of an existing thread, by column."""
    [row] = yield from fetch(sql.SELECT_THREAD, id=thread_id, owner=None)
    return dict(zip(("number", *sql.THREAD_COLUMNS), row, strict=True))


@operation
def read_runs(number: int, codec: Codec) -> Op[Runs]:
    """The longest list of messages of a thread's newest checkpoint; empty if it has none.

    Raises:
        DamagedRow: The checkpoint is damaged, or the list names messages too often.
    """
    cache = ThreadCache(number)
    row = yield from fetch_one(SELECT_LATEST_CHECKPOINT, thread=number, namespace=0)
    runs = () if row is None else longest_runs((yield from header_of(cache, 0, row)).values)
    if length_of(runs) > sum(end - start for start, end in merged(ranges_of(runs))):
        yield from read_messages(cache, codec, runs, ())
    return runs


@operation
def find(keys: Sequence[ThreadKey]) -> Op[list[bool]]:
    """Which of some ids belong to threads.

    Raises:
        ThreadNotFound: One of the threads belongs to another owner.
    """
    return (yield from side_by_side([_find(key) for key in keys]))


def _find(key: ThreadKey) -> Op[bool]:
    row = yield from fetch_one(sql.SELECT_OWNER, id=key.id)
    if row is not None and key.owner is not None and row[0] != key.owner:
        raise ThreadNotFound(
            f"the id {key.id!r} belongs to another owner: import the thread under a new id"
        )
    return row is not None


@operation
def rename(number: int, source: str, target: str) -> Op[None]:
    """Change metadata that names a thread's old id to name its new one."""
    yield from rename_labels(number, source, target)


@dataclass(frozen=True, slots=True)
class Arrival:
    """A thread to add.

    Attributes:
        key: Its id here, and its owner.
        thread: Its own row by column, with its old number.
        pages: Reads its rows from another database: as they were under that number, and not
            compressed.
    """

    key: ThreadKey
    thread: Mapping[str, Any]
    pages: Callable[[], Iterable[tuple[Table, Rows]]]


@operation
def copy_in(
    arrivals: Sequence[Arrival], *, now: int, caches: ThreadCaches, codec: Codec
) -> Op[list[bool]]:
    """Add threads with everything they have, all or none; whether each was added.

    Nothing happens if a thread with that id exists.

    Args:
        arrivals: The threads.
        now: Unix milliseconds.
        caches: The caches of this process, which say whether to compress rows.
        codec: Decides what a search may find of them, if the database has an index.

    Raises:
        ThreadNotFound: A thread with one of these ids exists, and belongs to another owner.
    """
    numbers = yield from side_by_side([_make(arrival, now) for arrival in arrivals])
    for number, arrival in zip(numbers, arrivals, strict=True):
        if number is not None:
            yield from _copy_in(arrival, number, caches)
    if "search" in (yield from search_ops.read_state()):
        for number, arrival in zip(numbers, arrivals, strict=True):
            if number is not None:
                yield from fill_ops.index_thread(number, arrival.thread["next_item"], codec)
    return [number is not None for number in numbers]


def _make(arrival: Arrival, now: int) -> Op[int | None]:
    """Add a thread's own row; its number, or None if there is one with its id."""
    key, thread = arrival.key, arrival.thread
    columns = {name: thread[name] for name in sql.THREAD_COLUMNS} | {"born": first_id_at(now)}
    made = yield from fetch_one(
        sql.INSERT_THREAD, **{**columns, "id": key.id, "new_generation": new_generation()}
    )
    if made is None:
        if (yield from _find(key)):
            return None
        raise (yield from is_taken(key.id))
    return int(made[0])


def _copy_in(arrival: Arrival, own: int, caches: ThreadCaches) -> Op[None]:
    """Add all else that a thread has, under its number."""
    for table, rows in arrival.pages():
        arriving = moved(table, rows, arrival.thread["number"], own)
        yield from store_rows(
            table,
            (
                [_compressed(table, row, caches) for row in arriving]
                if caches.compress
                else arriving
            ),
        )
        yield PAUSE


def moved(table: Table, rows: Rows, source: int, target: int) -> Rows:
    """Rows as they are under another thread's number."""
    at, apart = table.columns.index("crc"), target - source
    return [(target, *row[1:at], checks.moved(row[at], apart), *row[at + 1 :]) for row in rows]


def _compressed(table: Table, row: Row, caches: ThreadCaches) -> Row:
    """A row with its texts and bytes compressed, if that saves enough."""
    if table is ITEM:
        (
            thread,
            number,
            message_id,
            role,
            name,
            text,
            tool_call_id,
            seconds,
            rest,
            shape,
            _,
            tokens,
        ) = row
        tokens = implied_tokens(role, text) if tokens is None else tokens
        text = shrink_text(text) if text is not None and caches.compress_texts else text
        rest = rest if rest is None else shrink(rest)
        stored = (number, message_id, role, name, text, tool_call_id, seconds, rest, shape)
        return (
            thread,
            *stored,
            checks.item_check(thread, stored),
            None if tokens == implied_tokens(role, text) else tokens,
        )
    if table is VALUE:
        thread, number, body, _ = row
        body = shrink(body)
        return thread, number, body, checks.check_of(thread, number, body)
    return row
