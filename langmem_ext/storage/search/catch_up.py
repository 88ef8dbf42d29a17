"""Operations that fill the search index with messages stored before it was made.

Messages that have become the newest of their id again are added, too.

A thread is filled from its end, so an earlier message with the id of a later one is never indexed.
What is written meanwhile is indexed with its write (`storage.search.index.keep_indexed`). A step
indexes some messages and notes its position, in one transaction: if the process is killed, nothing
is lost, and the next one goes on.
"""

from __future__ import annotations

from typing import Final

from langmem_ext.errors import DamagedRow, SearchUnavailable
from langmem_ext.messages.manifest import numbers_of
from langmem_ext.storage.cache import ThreadCache
from langmem_ext.storage.checkpoints.lookup import (
    find_checkpoint,
    find_namespace,
    header_of,
    read_word,
)
from langmem_ext.storage.checkpoints.sql import LOCK_NUMBER, SELECT_ITEM, SELECT_LATEST_CHECKPOINT
from langmem_ext.storage.driver import Steps
from langmem_ext.storage.operation import PAUSE, Op, Row, fetch, fetch_one, operation
from langmem_ext.storage.prune.clear import ASIDE
from langmem_ext.storage.rows.pending_work import INPUT, has_item, is_at_rest, work_of
from langmem_ext.storage.schema.dialect import NUMBER
from langmem_ext.storage.schema.search_dialect import HINDRANCE, HOLD_THREADS
from langmem_ext.storage.search import sql
from langmem_ext.storage.search.index import (
    drop_index,
    forget_thread,
    index_down,
    lock_state,
    read_items_of,
    read_state,
)
from langmem_ext.storage.search.indexer import Indexer
from langmem_ext.storage.threads.edit import EDIT
from langmem_ext.types import Codec

AT_ONCE: Final = 256
"""Items that one step indexes."""

BEFORE_ALL: Final = -1
"""Below every thread's number."""

EDITS: Final = 100
"""Checkpoints that are looked at for the one that a message came with."""


def build_steps(codec: Codec) -> Steps[None]:
    """Make the index if there is none, and fill it; restartable at any point."""
    yield open_index(), True
    while (yield fill_some(codec), True):
        pass


@operation
def open_index() -> Op[None]:
    """Make the index if it is not there: empty, and every thread is still to be filled in.

    Raises:
        SearchUnavailable: The database cannot be searched.
    """
    if "search" in (yield from read_state()):
        return
    yield from require_maker()
    # Otherwise a process that writes meanwhile, even a new thread, would not know of the index.
    yield from lock_state()
    yield from fetch(HOLD_THREADS)
    if "search" in (yield from lock_state()):
        return  # another process has made it meanwhile
    yield from drop_index()
    for statement in sql.CREATE:
        yield from fetch(statement)
    for name, value in (("search", ""), ("search_backfill", f"{BEFORE_ALL}:0")):
        yield from fetch(sql.SET_STATE, name=name, value=value)


@operation
def require_maker() -> Op[None]:
    """Require that the index can be made here.

    Raises:
        SearchUnavailable: It cannot.
    """
    row = yield from fetch_one(HINDRANCE)
    if row is not None:
        raise SearchUnavailable(
            f"this database has no search index, and none can be created here: {row[0]}"
        )


@operation
def fill_some(codec: Codec) -> Op[bool]:
    """Index some of the messages that are not indexed yet; whether there are more."""
    state = yield from lock_state()
    if "search_backfill" not in state:
        return False
    thread, below = map(int, state["search_backfill"].split(":"))
    left, waits = AT_ONCE, True
    if below > 0:
        waits = not (yield from fetch(LOCK_NUMBER, thread=thread))
    while left > 0:
        if below <= 0:
            # This may wait for one thread. Holding one while waiting for another would block
            # processes that write to several.
            row = yield from fetch_one(
                sql.SELECT_UNINDEXED if waits else sql.SELECT_FREE, after=thread
            )
            if row is None and not waits:
                break
            if row is None and not (yield from _is_left(thread)):
                yield from fetch(sql.CLEAR_STATE, name="search_backfill", value=None)
                return False
            if row is None:
                thread = BEFORE_ALL
                break
            thread, waits = row[0], False
            below = yield from begin_thread(thread, row[1], codec)
        rows = yield from fetch(sql.SELECT_ITEMS_DOWN, thread=thread, low=0, high=below, limit=left)
        yield from index_down(ThreadCache(thread), rows, codec)
        below = rows[-1][0] & NUMBER if len(rows) == left else 0
        left -= len(rows) + 1
    yield from fetch(sql.SET_STATE, name="search_backfill", value=f"{thread}:{below}")
    return True


def _is_left(thread: int) -> Op[bool]:
    """Whether a thread is still to be filled: one that was locked, or a copy of an unfilled one."""
    if thread > BEFORE_ALL and (yield from fetch(sql.SELECT_UNINDEXED, after=BEFORE_ALL)):
        return True
    yield from fetch(HOLD_THREADS)  # nobody is copying one now
    return bool((yield from fetch(sql.SELECT_UNINDEXED, after=BEFORE_ALL)))


def begin_thread(thread: int, end: int, codec: Codec) -> Op[int]:
    """Make the thread's writers index what they write from now on.

    Returns the number below which the thread is still to be filled.
    """
    cache, held = ThreadCache(thread), None
    high = end
    while rows := (
        yield from fetch(sql.SELECT_ITEMS_DOWN, thread=thread, low=0, high=high, limit=1)
    ):
        high = rows[0][0] & NUMBER
        last = next(iter((yield from read_items_of(cache, rows, codec))), None)
        if last is None or last.is_text:
            continue
        if last.is_open and not (yield from _is_final(cache, last.number, codec)):
            held = last.number
            yield from Indexer(cache, codec).pick_indexed([last])
        break
    unnamed = yield from _find_unnamed(cache, codec)
    below = min((number for number in (held, unnamed) if number is not None), default=end)
    yield from fetch(sql.SET_INDEXED, thread=thread, indexed=below)
    return below


def index_thread(thread: int, end: int, codec: Codec) -> Op[None]:
    """Reindex a whole thread, in one transaction."""
    yield from forget_thread(thread)
    below = yield from begin_thread(thread, end, codec)
    while rows := (
        yield from fetch(sql.SELECT_ITEMS_DOWN, thread=thread, low=0, high=below, limit=AT_ONCE)
    ):
        yield from index_down(ThreadCache(thread), rows, codec)
        below = rows[-1][0] & NUMBER
        yield PAUSE


def restore_earlier(thread: int, end: int, codec: Codec) -> Op[None]:
    """Index earlier messages again, if the newest of their id was deleted from the index."""
    state = yield from read_state()
    filled, _, below = state.get("search_backfill", "").partition(":")
    low = int(below) if filled == str(thread) else 0
    rows = yield from fetch(sql.SELECT_ITEMS_LEFT, thread=thread, low=low, high=end)
    if not rows:
        return
    cache = ThreadCache(thread)
    [(last,)] = yield from fetch(sql.SELECT_LAST_MESSAGE, thread=thread, low=low, high=end)
    if rows[0][0] == last:
        newest = next(iter((yield from read_items_of(cache, rows[:1], codec))), None)
        if (
            newest is not None
            and newest.is_open
            and not (yield from _is_final(cache, newest.number, codec))
        ):
            yield from Indexer(cache, codec).pick_indexed([newest])
            yield from fetch(sql.SET_INDEXED, thread=thread, indexed=newest.number)
            rows = rows[1:]
    yield from index_down(cache, rows, codec)


def _find_unnamed(cache: ThreadCache, codec: Codec) -> Op[int | None]:
    """The first message of an input that has no id yet.

    A node's mark names the id that it will get (`Writer.by_task`).
    """
    try:
        row = yield from fetch_one(SELECT_LATEST_CHECKPOINT, thread=cache.number, namespace=0)
        header = None if row is None else (yield from header_of(cache, 0, row))
        ref = None if header is None else header.values.get(INPUT)
        for number in () if ref is None or not ref.nameless else numbers_of(ref.runs):
            rows = yield from fetch(SELECT_ITEM, thread=cache.number, number=number)
            if any(item.is_unnamed for item in (yield from read_items_of(cache, rows, codec))):
                return number
    except DamagedRow:
        pass
    return None


def _is_final(cache: ThreadCache, number: int, codec: Codec) -> Op[bool]:
    """Whether a thread's last message is final.

    Its graph has no work left, the message was set aside, or an edit without the graph added it.
    """
    try:
        row = yield from fetch_one(SELECT_LATEST_CHECKPOINT, thread=cache.number, namespace=0)
        header = None if row is None else (yield from header_of(cache, 0, row))
        if header is not None and has_item(header, number) and is_at_rest(header, codec):
            return True
        space = yield from find_namespace(cache, ASIDE)
        aside = (
            None
            if space is None
            else (
                yield from fetch_one(SELECT_LATEST_CHECKPOINT, thread=cache.number, namespace=space)
            )
        )
        if (
            space is not None
            and aside is not None
            and has_item((yield from header_of(cache, space, aside)), number)
        ):
            return True
        return (yield from _is_edited(cache, number, row, codec))
    except DamagedRow:
        return False


def _is_edited(cache: ThreadCache, number: int, row: Row | None, codec: Codec) -> Op[bool]:
    """Whether a message was added by an edit without the graph.

    The checkpoints are read from the newest (`row`) on.
    """
    work: frozenset[str] | None = None
    for _ in range(EDITS):
        if row is None:
            return False  # it is not known what was before: it has been pruned
        header = yield from header_of(cache, 0, row)
        if work not in (None, work_of(header, codec)):
            # LangGraph's `update_state` is labelled like an edit, and can give a graph something to
            # do
            return False
        if not has_item(header, number):
            return work is not None
        if (yield from read_word(cache, row[3])) != EDIT:
            return False
        work = work_of(header, codec)
        if row[1] is None:
            return not work
        row = yield from find_checkpoint(cache, 0, row[1])
    return False
