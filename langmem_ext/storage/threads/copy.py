"""The operation that copies a thread row by row inside the database, without decoding it."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from langmem_ext.errors import InvalidInput
from langmem_ext.storage.cache import ThreadCaches
from langmem_ext.storage.checkpoints.sql import LOCK_THREAD
from langmem_ext.storage.checkpoints.thread_row import ensure_thread, find_thread
from langmem_ext.storage.operation import Op, Trace, fetch, fetch_one, operation
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.rows.clock import MINUTE_MS
from langmem_ext.storage.search.index import copy_indexed
from langmem_ext.storage.threads import rows_sql as sql
from langmem_ext.types import ThreadKey

CHANGES: Final = 1024
"""How often a copy may have changed since it was made if its generation is still to identify it."""


@dataclass(frozen=True, slots=True)
class Copy(Trace):
    """A copy that is made.

    Attributes:
        id: Its id.
        generation: The one that its row begins with (`ids.new_generation`): no other copy's.
    """

    id: str
    generation: int

    def is_left(self, thread_id: str) -> Op[bool]:
        """Whether the copy exists and was made of this thread.

        A thread with its id that others have made is not this copy.
        """
        yield from fetch(LOCK_THREAD, id=thread_id)
        params = {"low": self.generation, "high": self.generation + CHANGES}
        return (
            yield from fetch_one(sql.HAS_COPY, id=self.id, source=thread_id, **params)
        ) is not None


@operation
def copy_thread(source: ThreadKey, target: Copy, *, now: int, caches: ThreadCaches) -> Op[bool]:
    """Copy everything of a thread under another id; whether there was anything to copy.

    The copy has rows of its own under the same numbers: ids, versions and references are the
    source's, and nothing is shared. Metadata that names the source's thread id names the copy's.

    Args:
        source: The thread; nothing happens if there is none.
        target: The copy; its owner is the source's.
        now: Unix milliseconds.
        caches: The caches of this process.

    Raises:
        InvalidInput: The target is the source, or is not empty.
        ThreadNotFound: The target belongs to another owner.
    """
    if source.id == target.id:
        raise InvalidInput(
            f"the thread {target.id!r} cannot be copied onto itself: choose another id"
        )
    thread = yield from find_thread(source, caches, lock=True)
    if thread is None:
        return False
    owned = ThreadKey(target.id, thread.owner if source.owner is None else source.owner)
    copy, _ = yield from ensure_thread(owned, now=now, caches=caches)
    [(taken,)] = yield from fetch(sql.HAS_ROWS, thread=copy.number)
    if taken:
        raise InvalidInput(
            f"thread {target.id!r} exists already: delete it first, or choose another id"
        )
    times = {"now": now, "minute": now // MINUTE_MS}
    yield from fetch(
        sql.COPY_THREAD_ROW,
        source=thread.number,
        target=copy.number,
        generation=target.generation,
        **times,
    )
    yield from copy_rows(thread.number, copy.number)
    if thread.indexed is not None or copy.indexed is not None:
        yield from copy_indexed(thread.number, copy.number)
    yield from rename_labels(copy.number, source.id, target.id)
    caches.forget_thread(target.id)
    return True


def copy_rows(source: int, target: int) -> Op[None]:
    """Copy all of a thread except its own row."""
    for statement in sql.COPY_ROWS:
        yield from fetch(
            statement, thread=source, target=target, apart=(target - source) & checks.ALL
        )


def rename_labels(number: int, source: str, target: str) -> Op[None]:
    """Rename the thread in a copy's metadata, as the agent server writes it; damaged rows stay."""
    for word, body, crc in (
        yield from fetch(sql.SELECT_LABELS, thread=number, part=b'"thread_id"')
    ):
        renamed = (
            _renamed(body, source, target) if crc == checks.check_of(number, word, body) else None
        )
        if renamed is not None:
            check = checks.check_of(number, word, renamed)
            yield from fetch(sql.RENAME_LABEL, thread=number, number=word, body=renamed, crc=check)


def _renamed(body: bytes, source: str, target: str) -> bytes | None:
    """A label that names another thread; None if it names none, or another one already."""
    with suppress(ValueError, RecursionError):
        named = json.loads(body)
        if isinstance(named, dict) and named.get("thread_id") == source:
            return json.dumps(
                named | {"thread_id": target}, separators=(",", ":"), sort_keys=True
            ).encode()
    return None
