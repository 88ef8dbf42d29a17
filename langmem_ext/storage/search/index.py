"""Operations that make the search index when it is first used, fill it, and keep it up to date.

Invariants:
- The index holds what may be shown of a message (`Codec.shown_of`), by the item's key; a sensitive
  value was never in it.
- Of items with one message id, the newest is indexed, or the newest marked one if both have the
  same text (`indexed_number`). So a user's message that a graph has stored is indexed only when
  there is a later message, or the graph has no work left (`pending_work`): until then a node may
  replace it by a copy that marks what is sensitive. For the same reason a thread is filled from its
  end.
- `thread.indexed` says up to which item a thread is indexed; NULL: not at all, and its writers do
  nothing for it. It is read and written in the transaction of the items, so each writer knows what
  to do, whichever process has made the index.
- While `search_backfill` is set, threads are being filled: those with NULL, and the one that it
  names, below the number in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from langmem_ext.errors import DamagedRow
from langmem_ext.messages.packed import is_text
from langmem_ext.storage.cache import ThreadCache
from langmem_ext.storage.checkpoints.lookup import read_word
from langmem_ext.storage.checkpoints.messages import load_items
from langmem_ext.storage.checkpoints.writer import Writer
from langmem_ext.storage.operation import PAUSE, PAUSE_EVERY, Op, Row, Rows, fetch, operation
from langmem_ext.storage.rows.message import decode_item, require_item
from langmem_ext.storage.rows.pending_work import has_item
from langmem_ext.storage.schema.dialect import NUMBER
from langmem_ext.storage.schema.search_dialect import HOLD_THREADS, MARK_STALE
from langmem_ext.storage.search import sql
from langmem_ext.storage.search.indexer import Indexer, Item, item_of
from langmem_ext.types import Codec, Snapshot

PAGES_AT_ONCE: Final = 250
"""How many pages of the index one step rewrites."""


# -- with a write ----------------------------------------------------------------------------------


def keep_indexed(writer: Writer) -> Op[Indexer]:
    """Index what a write has added to a thread, and move the thread's mark.

    Returns:
        What must be written after the items: PostgreSQL reads from them when they were stored.
    """
    thread, cache = writer.thread, writer.cache
    assert thread.indexed is not None
    first, end = thread.indexed, thread.next_item
    earlier = sorted(number for number in {*writer.named, *writer.completed} if number < first)
    missing = [number for number in range(first, end) if number not in cache.content]
    if missing:
        # Another process has stored them; damaged ones stay out, and the doctor reports them.
        yield from load_items(cache, writer.codec, missing[0], missing[-1] + 1, damaged=True)
    items = [
        item_of(cache, number, writer.codec)
        for number in (*earlier, *range(first, end))
        if number in cache.content
    ]
    waiting = yield from _find_waiting(writer, items, first)
    indexer = Indexer(cache, writer.codec, remembers=writer.caches.remote)
    for item in (yield from indexer.pick_indexed(items)):
        if item.number not in waiting and (item.number >= first or item.number in writer.completed):
            indexer.add(item.number, item.shown)
    thread.indexed = min(waiting, default=end)
    return indexer


def _find_waiting(writer: Writer, items: Sequence[Item], first: int) -> Op[set[int]]:
    """A write's messages, from `first` on, that a node may yet mark as sensitive."""
    waiting: set[int] = set()
    if writer.by_task:
        # Its id comes with a checkpoint, which may be stored after the task's writes; a mark names
        # that id.
        waiting = {item.number for item in items if item.is_unnamed and item.number >= first}
    held = yield from _held(writer, [item.number for item in items])
    return waiting if held is None else waiting | {held}


def _held(writer: Writer, numbers: Iterable[int]) -> Op[int | None]:
    """The thread's last message, if a node has yet to say whether it is sensitive."""
    thread, cache = writer.thread, writer.cache
    assert thread.indexed is not None
    last = max((number for number in numbers if not is_text(cache.content[number])), default=None)
    if last is None or (last < thread.indexed and last not in writer.completed):
        return None
    if writer.settled and (last >= writer.began or last in writer.completed):
        return None
    if writer.final is not None and has_item(writer.final, last):
        return None
    shown = writer.codec.shown_of(cache.content[last])
    if shown is None or not shown.open:
        return None
    # A text that was skipped and is a message now: others may have come after it.
    low, high = last + 1, thread.indexed
    return (
        last
        if low >= high
        or not (yield from fetch(sql.HAS_MESSAGES, thread=thread.number, low=low, high=high))
        else None
    )


# -- parts -----------------------------------------------------------------------------------------


@operation
def drop_index() -> Op[None]:
    """Take the index away."""
    yield from lock_state()
    yield from fetch(HOLD_THREADS)
    for statement in sql.DROP:
        yield from fetch(statement)


@operation
def read_state() -> Op[dict[str, str]]:
    """The index's state: `search` if there is one, `search_backfill` while it is filled."""
    return dict((yield from fetch(sql.SELECT_STATE)))


def lock_state() -> Op[dict[str, str]]:
    """`read_state`, keeping others from working on the index until the operation has ended."""
    return dict((yield from fetch(sql.LOCK_STATE)))


@operation
def forget_thread(thread: int) -> Op[None]:
    """Take all of a thread out of the index."""
    for statement in sql.DELETE_THREAD:
        yield from fetch(statement, thread=thread)
    yield from fetch(MARK_STALE, thread=thread)


def leave_open(thread: int, number: int, raw: bytes | None, indexed: int) -> Op[int]:
    """Remove an item that will get another id from the index; the new end of the indexed part.

    Args:
        thread: The thread's number.
        number: The item's number.
        raw: The id that it had.
        indexed: The end of the thread's indexed part (`thread.indexed`).
    """
    yield from fetch(sql.DELETE_WORDS, thread=thread, number=number)
    yield from fetch(MARK_STALE, thread=thread)
    if raw is not None:
        yield from fetch(sql.FORGET_NEWEST, thread=thread, id=raw, number=number)
    yield from fetch(sql.SET_INDEXED, thread=thread, indexed=min(number, indexed))
    return min(number, indexed)


def index_down(cache: ThreadCache, rows: Rows, codec: Codec) -> Op[None]:
    """Index items from the latest to the earliest; writers' caches of the index become void."""
    yield from fetch(sql.MOVE_VERSION, thread=cache.number)
    indexer = Indexer(cache, codec)
    for item in (yield from indexer.pick_indexed((yield from read_items_of(cache, rows, codec)))):
        indexer.add(item.number, item.shown)
    yield from indexer.finish()


def read_items_of(cache: ThreadCache, rows: Rows, codec: Codec) -> Op[list[Item]]:
    """The items of rows, without damaged ones."""
    items: list[Item] = []
    for count, row in enumerate(rows, start=1):
        try:
            packed = yield from read_packed_item(cache, row, codec)
        except DamagedRow:
            continue
        items.append(Item.of(row[0] & NUMBER, row[1], packed, codec))
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    return items


def read_packed_item(cache: ThreadCache, row: Row, codec: Codec) -> Op[Snapshot]:
    """An item's exact bytes, from its row.

    Raises:
        DamagedRow: It has changed since it was written.
    """
    require_item(cache.number, row)
    keys = None if row[8] is None else (yield from read_word(cache, row[8]))
    return decode_item(cache.number, row, keys, codec)[0]


# -- copies, and what is forgotten -----------------------------------------------------------------


def copy_indexed(source: int, target: int) -> Op[None]:
    """Index a copy of a thread as the thread is indexed."""
    [(indexed,)] = yield from fetch(sql.SELECT_INDEXED, thread=source)
    [(on,)] = yield from fetch(sql.SELECT_INDEXED, thread=target)
    if on is None:
        return  # there is no index, or it is being filled, and the copy will be
    state = yield from read_state()
    if indexed is None or state.get("search_backfill", "").startswith(f"{source}:"):
        yield from fetch(sql.SET_INDEXED, thread=target, indexed=None)
        return
    for statement in sql.COPY:
        yield from fetch(statement, source=source, target=target)
    yield from fetch(sql.SET_INDEXED, thread=target, indexed=indexed)


@operation
def needs_merge() -> Op[bool]:
    """Whether words of deleted messages may still be in the index."""
    return "search_stale" in (yield from read_state())


@operation
def merge_some(*, first: bool) -> Op[bool]:
    """Merge FTS5's segments a few pages at a time, which removes the words of deleted messages.

    Args:
        first: Whether this is the first step: then all segments become one, however old they are.

    Returns:
        Whether there is more to do.
    """
    if not (yield from needs_merge()):
        return False
    if first:
        yield from fetch(sql.SET_STATE, name="search_stale", value="merging")
    [(before,)] = yield from fetch(sql.TOTAL_CHANGES)
    yield from fetch(sql.MERGE, pages=-PAGES_AT_ONCE if first else PAGES_AT_ONCE)
    [(after,)] = yield from fetch(sql.TOTAL_CHANGES)
    if after - before >= 2:
        return True
    # Unless more was deleted meanwhile: then the next time.
    yield from fetch(sql.CLEAR_STATE, name="search_stale", value="merging")
    return False
