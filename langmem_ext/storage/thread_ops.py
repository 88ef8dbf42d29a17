"""Operations on a thread's own row: find it, make it at its first write; what it is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, islice, starmap
from typing import Final

from langmem_ext.errors import DamagedRow, ThreadNotFound
from langmem_ext.messages.manifest import NUMBERS, length_of, ranges_of
from langmem_ext.storage import statements as sql
from langmem_ext.storage.effects import Op, Row, fetch, fetch_one
from langmem_ext.storage.header import ValueRef
from langmem_ext.storage.index import ThreadIndex
from langmem_ext.types import Codec, ThreadKey

FIRST: Final = 16
"""Messages at the beginning of a list among which a thread's first prompt is looked for."""


@dataclass(slots=True)
class ThreadRow:
    """A thread's number, owner and counters; an operation that adds rows moves the counters and writes them back.

    Attributes:
        active_at: The minute in which it was last written, in Unix minutes.
        untitled: Whether it has no title yet.
        epoch: The Unix second from which its messages' times count.
        indexed: Items below it are in the search index; None: the thread is not.
    """

    number: int
    owner: str | None
    generation: int
    next_item: int
    next_value: int
    next_word: int
    next_namespace: int
    active_at: int
    untitled: int
    epoch: int
    indexed: int | None


def _thread_of(row: Row, key: ThreadKey) -> ThreadRow:
    """The thread that a row describes.

    Raises:
        DamagedRow: It describes none.
    """
    counters = row[2:] if row[-1] is not None else row[2:-1]
    if set(map(type, counters)) != {int} or min(counters) < 0 or max(counters) > NUMBERS:
        raise DamagedRow(f"the row of thread {key.id!r} is damaged: `langmem-ext doctor --fix` counts again what the thread has")
    return ThreadRow(*row)


def find_thread(key: ThreadKey) -> Op[ThreadRow | None]:
    """The thread; None where there is none, or it is not the caller's."""
    row = yield from fetch_one(sql.SELECT_OWN_THREAD, id=key.id, owner=key.owner)
    return None if row is None else _thread_of(row, key)


def ensure_thread(key: ThreadKey, *, now: int) -> Op[ThreadRow]:
    """The thread, made if there is none.

    Raises:
        ThreadNotFound: It belongs to another owner.
    """
    row = yield from fetch_one(sql.SELECT_THREAD, id=key.id)
    if row is None:
        [row] = yield from fetch(sql.INSERT_THREAD, id=key.id, owner=key.owner, now=now)
    elif key.owner is not None and row[1] != key.owner:
        raise ThreadNotFound(f"there is no thread {key.id!r} for this owner: use an id of the owner's own")
    return _thread_of(row, key)


def title_of(index: ThreadIndex, codec: Codec, values: Mapping[str, ValueRef]) -> tuple[str | None, int | None]:
    """A title for a thread with these values, and the item that gives it: from the first prompt of its longest list of messages.

    Only what this process knows is looked at: at the beginning of a conversation it knows it all, and the next checkpoint comes soon.
    """
    lists = [ref.runs for ref in values.values() if ref.body is None and ref.row is None]
    numbers = chain.from_iterable(starmap(range, ranges_of(max(lists, key=length_of, default=()))))
    for number in islice(numbers, FIRST):
        packed = index.content.get(number)
        title = None if packed is None else codec.title_of(packed)
        if title is not None:
            return title, number
    return None, None
