"""The operation that copies a thread: row by row inside the database, nothing is read into memory or encoded again."""

from __future__ import annotations

from langmem_ext.errors import InvalidInput
from langmem_ext.storage import checks
from langmem_ext.storage import forget_statements as sql
from langmem_ext.storage.effects import Op, fetch, operation
from langmem_ext.storage.index import Indexes
from langmem_ext.storage.search_ops import copy_indexed
from langmem_ext.storage.statements import KEY_BITS, row_key
from langmem_ext.storage.thread_ops import ensure_thread, find_thread
from langmem_ext.types import ThreadKey


@operation
def copy_thread(source: ThreadKey, target: str, *, now: int, indexes: Indexes) -> Op[bool]:
    """Copy everything that a thread has under another id; whether there was anything to copy.

    The copy has rows of its own under the same numbers: ids, versions and references are the source's, and nothing is shared. Metadata that
    names the source's thread id names the copy's.

    Args:
        source: The thread; nothing happens if there is none.
        target: The copy's id; its owner is the source's.
        now: Unix milliseconds.
        indexes: What this process knows.

    Raises:
        InvalidInput: The target is the source, or has something already.
        ThreadNotFound: The target belongs to another owner.
    """
    if source.id == target:
        raise InvalidInput(f"the thread {target!r} cannot be copied onto itself: give the copy another id")
    thread = yield from find_thread(source)
    if thread is None:
        return False
    copy = yield from ensure_thread(ThreadKey(target, thread.owner if source.owner is None else source.owner), now=now)
    [(taken,)] = yield from fetch(sql.HAS_ROWS, thread=copy.number, low=row_key(copy.number, 0), high=row_key(copy.number + 1, 0))
    if taken:
        raise InvalidInput(f"there is a thread {target!r} already: delete it first, or give the copy another id")
    params = {
        "source": thread.number,
        "target": copy.number,
        "low": row_key(thread.number, 0),
        "high": row_key(thread.number + 1, 0),
        "shift": (copy.number - thread.number) << KEY_BITS,
        "apart": copy.number - thread.number,
        "now": now,
    }
    for statement in (sql.COPY_THREAD_ROW, *sql.COPY_ROWS):
        yield from fetch(statement, **{name: value for name, value in params.items() if f":{name}" in statement})
    if thread.indexed is not None or copy.indexed is not None:
        yield from copy_indexed(thread.number, copy.number)
    yield from rename_labels(copy.number, source.id, target)
    indexes.forget_thread(copy.number)
    return True


def rename_labels(number: int, source: str, target: str) -> Op[None]:
    """Have metadata that names the source's thread name the copy's; what is damaged stays so."""
    for word, body, crc, renamed in (yield from fetch(sql.SELECT_LABELS_OF, target=number, source_id=source, target_id=target)):
        if crc == checks.check_of(number, word, body):
            check = checks.check_of(number, word, renamed)
            yield from fetch(sql.RENAME_LABEL, thread=number, number=word, body=renamed, crc=check)
