"""Operations that compare the search index with the messages, one page per transaction."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from langmem_ext.errors import StorageError
from langmem_ext.messages.search.words import list_words
from langmem_ext.storage.checkpoints.sql import LOCK_NUMBER
from langmem_ext.storage.driver import Steps
from langmem_ext.storage.inspect import sql as inspect_statements
from langmem_ext.storage.inspect.findings import Finding, Findings
from langmem_ext.storage.inspect.read import Examined
from langmem_ext.storage.operation import (
    PAUSE,
    PAUSE_EVERY,
    Op,
    Row,
    fetch,
    fetch_one,
    operation,
    operation_once,
)
from langmem_ext.storage.schema.dialect import NUMBER
from langmem_ext.storage.schema.search_dialect import CHECK_WORDS
from langmem_ext.storage.search import catch_up as fill_ops
from langmem_ext.storage.search import index as search_ops
from langmem_ext.storage.search import indexer, sql
from langmem_ext.types import Codec

PAGE: Final = 256
"""Items that one step compares."""

THREADS: Final = 256
"""How many threads one step looks up."""

KIND: Final = "search"


# -- the index as a whole --------------------------------------------------------------------------


def examine_index(codec: Codec, *, fix: bool) -> Steps[Iterable[Finding]]:
    """Examine whether the index can be read, and its rows belong to threads.

    What cannot be repaired in place is rebuilt.

    Args:
        codec: Reads items.
        fix: Repair it. Only then does FTS5 compare its own tables, in one transaction that writers
            wait for.
    """
    findings = Findings(None)
    try:
        yield from _look(findings, fix)
    except StorageError as error:
        findings.add(
            KIND,
            "wrong",
            "search",
            f"the search index is unusable ({error}): it can be rebuilt",
            fixable=True,
        )
        if fix:
            yield search_ops.drop_index(), True
            yield from fill_ops.build_steps(codec)
    return findings.reported(fixed=fix)


def _look(findings: Findings, fix: bool) -> Steps[None]:
    state = yield search_ops.read_state(), False
    if "search" not in state:
        return
    if fix:
        yield operation(fetch)(CHECK_WORDS), True
    first: int | None = -(1 << 62)
    while first is not None:
        rows = yield operation(fetch)(sql.NEXT_THREADS, first=first, limit=THREADS), False
        first = rows[-1][0] + 1 if len(rows) == THREADS else None
        for lost in [thread for thread, row in rows if row is None]:
            findings.add(
                KIND,
                "wrong",
                f"search {lost}",
                f"words of thread number {lost}, which has no row: they can be deleted",
                fixable=True,
            )
            if fix:
                yield search_ops.forget_thread(lost), True


# -- one thread ------------------------------------------------------------------------------------


def examine_words(thread: Examined, codec: Codec) -> Steps[None]:
    """Compare what is found of a thread with what may be shown of it."""
    after: int | None = -1
    while after is not None:
        try:
            after = yield _compare_page(thread, codec, after), False
        except StorageError as error:
            _report(thread, f"search {thread.number}", f"its words cannot be read ({error})")
            return


@operation
def repair_words(number: int, codec: Codec) -> Op[None]:
    """Reindex a thread."""
    yield from fetch(LOCK_NUMBER, thread=number)
    row = yield from fetch_one(sql.SELECT_PROGRESS, thread=number)
    if row is not None:
        yield from fill_ops.index_thread(number, row[0], codec)


def _report(thread: Examined, place: str, message: str) -> None:
    thread.findings.add(
        KIND, "wrong", place, f"{message}: the thread can be reindexed", fixable=True
    )


@operation_once
def _compare_page(thread: Examined, codec: Codec, after: int) -> Op[int | None]:
    state = yield from search_ops.read_state()
    row = yield from fetch_one(sql.SELECT_PROGRESS, thread=thread.number)
    if "search" not in state or row is None:
        return None
    filling, _, below = state.get("search_backfill", "").partition(":")
    if row[1] is None:
        if not filling:
            _report(thread, f"thread {thread.number}", "it is not in the search index")
        return None
    first = int(below) if filling == str(thread.number) else 0
    items = yield from fetch(
        inspect_statements.SELECT_ITEM_PAGE, thread=thread.number, after=after, limit=PAGE
    )
    last = items[-1][0] & NUMBER if len(items) == PAGE else None
    high = NUMBER + 1 if last is None else last + 1
    words: dict[int, str] = dict(
        (yield from fetch(sql.SELECT_WORDS, thread=thread.number, low=after + 1, high=high))
    )
    for count, item in enumerate(items, start=1):
        indexed_words = words.pop(item[0] & NUMBER, "")
        if item[0] & NUMBER >= first:
            yield from _compare(thread, codec, item[:-1], indexed_words, row[1])
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    for number in words:
        _report(thread, f"search {thread.number}:{number}", "it has words of a missing message")
    return last


def _compare(
    thread: Examined, codec: Codec, row: Row, indexed_words: str, indexed: int
) -> Op[None]:
    number = row[0] & NUMBER
    item = next(iter((yield from search_ops.read_items_of(thread.cache, (row,), codec))), None)
    if item is None:
        return  # it is damaged, which is reported elsewhere
    expected = "" if item.shown is None else list_words(item.shown.text)
    note = yield from _note_of(thread.number, item)
    if (
        note is not None
        and (yield from indexer.indexed_number(thread.cache, codec, note, {number: item})) != number
    ):
        expected = ""
    elif number >= indexed and not indexed_words:
        return
    if (
        item.id is not None
        and number < indexed
        and (note is None or not indexer.is_noted(item, note))
    ):
        _report(
            thread,
            f"search {thread.number}:{number}",
            "its message id is missing from the search index",
        )
    elif indexed_words != expected:
        _report(thread, f"search {thread.number}:{number}", "it is not found by its visible text")


def _note_of(thread: int, item: indexer.Item) -> Op[Row | None]:
    """The index's note of an item's id; None if it names items that do not exist."""
    row = (
        None
        if item.id is None
        else (yield from fetch_one(sql.SELECT_NEWEST, thread=thread, id=item.id))
    )
    for number in {*(row or ())} - {None, item.number}:
        if not (yield from fetch(sql.HAS_MESSAGE, thread=thread, number=number, id=item.id)):
            return None
    return row
