"""Operations that count: what threads are there by their rows alone, and what a thread's answers say of themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from langmem_ext.errors import ThreadNotFound
from langmem_ext.storage import checks
from langmem_ext.storage import statements as sql
from langmem_ext.storage.dialect import BEHIND, ITEM_OF_THREAD, KEY, NUMBER, OF_ID
from langmem_ext.storage.effects import PAUSE, Op, Statement, fetch, operation
from langmem_ext.storage.index import Indexes
from langmem_ext.storage.item_rows import damaged_item, decode_item
from langmem_ext.storage.lookup_ops import read_word
from langmem_ext.storage.thread_ops import find_thread
from langmem_ext.types import Codec, Snapshot, ThreadKey, ThreadStatistics

T = TypeVar("T")

PAGE: Final = 64
"""Messages that are decoded between two pauses."""

COUNT_THREADS = (
    "SELECT status, tool, waiting_for IS NOT NULL, count(*), CAST(sum(items) AS BIGINT), CAST(sum(tokens) AS BIGINT)"
    f" FROM thread WHERE {sql.OWNED} GROUP BY 1, 2, 3"
)

# A user's message: `messages.identity.CLASSES`.
COUNT_TURNS = "SELECT count(*) FROM item WHERE role IN (0, 6)"
COUNT_TURNS_OF = f"SELECT count(*) FROM thread JOIN item ON {ITEM_OF_THREAD} WHERE thread.owner = :owner AND item.role IN (0, 6)"

# A model's message, or one that is kept whole.
SELECT_ANSWERS = (
    f"SELECT {sql.ITEM_COLUMNS} FROM item WHERE {BEHIND}"
    f" AND (role IN (1, 7) OR (role IS NULL AND rest IS NOT NULL)) ORDER BY {KEY} LIMIT :limit"
)

MOST_GLANCED: Final = 1_000
"""Threads that are counted at a glance, at most: SQLite does that in a moment."""

_GLANCE = "SELECT count(*), sum(items) FROM (SELECT items FROM thread {where} LIMIT :limit)"


def glance_at_database(owner: str | None) -> Statement:
    """Asks how many threads an owner has, or there are, and what messages they have stored."""
    # Not by `OWNED`, which no index serves.
    where = "" if owner is None else "WHERE owner = :owner"
    return Statement(_GLANCE.format(where=where), {"limit": MOST_GLANCED + 1} | ({} if owner is None else {"owner": owner}))


def glance_at_thread(key: ThreadKey) -> Statement:
    """Asks how many messages a thread's newest checkpoint has."""
    return Statement(f"SELECT head_messages FROM thread WHERE {OF_ID} AND {sql.OWNED}", {"id": key.id, "owner": key.owner})


@operation
def count_all(owner: str | None) -> Op[ThreadStatistics]:
    """What threads an owner has, or what threads there are."""
    rows = yield from fetch(COUNT_THREADS, owner=owner)
    [(turns,)] = (yield from fetch(COUNT_TURNS)) if owner is None else (yield from fetch(COUNT_TURNS_OF, owner=owner))
    by_status: dict[str, int] = {}
    by_tool: dict[str | None, int] = {}
    for status, tool, _, count, *_ in rows:
        by_status[status] = by_status.get(status, 0) + count
        by_tool[tool] = by_tool.get(tool, 0) + count
    return ThreadStatistics(
        threads=sum(row[3] for row in rows),
        turns=turns,
        messages=sum(row[4] for row in rows),
        tokens=sum(row[5] for row in rows),
        waiting=sum(row[3] for row in rows if row[2]),
        by_status=by_status,
        by_tool=by_tool,
    )


def read_answers(key: ThreadKey, pick: Callable[[Snapshot], T | None], *, indexes: Indexes, codec: Codec) -> Op[list[T]]:
    """What is picked from each model's message of a thread, in whatever branch, as they were stored.

    Raises:
        ThreadNotFound: There is no such thread, or it is another owner's.
        DamagedRow: One of them is damaged.
    """
    thread = yield from find_thread(key, indexes)
    if thread is None:
        raise ThreadNotFound(f"thread {key.id!r} not found; `langmem-ext threads list` shows those that there are")
    index = indexes.of(key.id, thread.row(), codec)
    after = -1
    found: list[T] = []
    while rows := (yield from fetch(SELECT_ANSWERS, thread=thread.number, after=after, limit=PAGE)):
        after = rows[-1][0] & NUMBER
        changed = checks.changed_items(rows, thread.number)
        for row in rows:
            if row[0] in changed:
                raise damaged_item(thread.number, row, checks.CHANGED)
            keys = None if row[8] is None else (yield from read_word(index, row[8]))
            packed, _ = decode_item(thread.number, row, keys, codec)
            picked = pick(packed)
            if picked is not None:
                found.append(picked)
        yield PAUSE
    indexes.keep(index)
    return found
