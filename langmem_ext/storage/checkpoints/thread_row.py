"""Operations on a thread's own row: find it, make it at its first write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from operator import attrgetter
from typing import Final

from langmem_ext.errors import DamagedRow, LangmemExtError, StorageError, ThreadNotFound
from langmem_ext.messages.manifest import NUMBERS
from langmem_ext.storage.cache import ThreadCache, ThreadCaches
from langmem_ext.storage.checkpoints import sql
from langmem_ext.storage.checkpoints.late_writes import Buried, LateWrites, Origin
from langmem_ext.storage.checkpoints.lookup import find_namespace
from langmem_ext.storage.checkpoints.tombstones import was_deleted
from langmem_ext.storage.operation import Op, Row, fetch, fetch_one
from langmem_ext.storage.rows.clock import MINUTE_MS
from langmem_ext.storage.rows.ids import first_id_at, new_generation, new_version
from langmem_ext.types import ThreadKey


@dataclass(slots=True)
class ThreadRow:
    """A thread's number, owner and counters, which operations that add rows write back.

    Attributes:
        born: The lowest id of a checkpoint of it, unless a clock was behind; None if that is not
            known (`storage.checkpoints.late_writes`).
        version: A new one after every write.
        active_at: When it was last written, in Unix minutes.
        untitled: Whether it has no title yet.
        epoch: The Unix second from which its messages' times count.
        titled: One more than the number of the item that gave the title; 0 if a caller gave it, or
            there is none.
        indexed: Items below this number are in the search index; None if the thread is not indexed.
    """

    number: int
    owner: str | None
    born: bytes | None
    generation: int
    version: int
    next_item: int
    next_value: int
    next_word: int
    next_namespace: int
    active_at: int
    untitled: int
    epoch: int
    titled: int
    indexed: int | None

    def row(self) -> Row:
        """The thread's row as it is read (`sql.SELECT_THREAD`)."""
        return row_of(self)


row_of: Final[Callable[[ThreadRow], Row]] = attrgetter(*(field.name for field in fields(ThreadRow)))


def _thread_of(row: Row, key: ThreadKey) -> ThreadRow:
    """The thread that a row describes.

    Raises:
        DamagedRow: A column is invalid.
    """
    counters = (row[3], *row[5:]) if row[-1] is not None else (row[3], *row[5:-1])
    if set(map(type, (*counters, row[4]))) != {int} or min(counters) < 0 or max(counters) > NUMBERS:
        raise DamagedRow(
            f"the row of thread {key.id!r} is damaged: `langmem-ext doctor --fix` repairs it"
        )
    return ThreadRow(*row)


THREAD_WIDTH: Final = len(fields(ThreadRow))
WORDS_AT: Final = next(
    at for at, field in enumerate(fields(ThreadRow)) if field.name == "next_word"
)
"""How many columns a thread's row has (`sql.SELECT_THREAD`), and which of them counts its words."""

require_row = _thread_of


def find_thread(
    key: ThreadKey, caches: ThreadCaches | None = None, *, lock: bool = False
) -> Op[ThreadRow | None]:
    """The thread; None if it does not exist, or is not the caller's.

    Args:
        key: The thread.
        caches: If given, they note that there is no such thread.
        lock: Whether to keep others from writing to it until the operation has ended.
    """
    row = yield from fetch_one(
        sql.LOCK_OWN_THREAD if lock else sql.SELECT_OWN_THREAD, id=key.id, owner=key.owner
    )
    if row is None:
        if caches is not None:
            caches.note_missing(key.id)
        return None
    return _thread_of(row, key)


def find_number(key: ThreadKey, *, lock: bool = False) -> Op[int | None]:
    """`find_thread` for the number alone, even if the rest of the thread's row is damaged."""
    row = yield from fetch_one(
        sql.LOCK_OWN_THREAD if lock else sql.SELECT_OWN_THREAD, id=key.id, owner=key.owner
    )
    return None if row is None else int(row[0])


def hold_thread(key: ThreadKey) -> Op[None]:
    """Lock a thread until the operation ends: nobody else makes it, or writes to it.

    For operations that read and then write.
    """
    rows = yield from fetch(sql.LOCK_THREAD, id=key.id)
    if not rows:
        yield from fetch(sql.HOLD_ID, id=key.id)
        yield from fetch(sql.LOCK_THREAD, id=key.id)  # the last holder may have made it


def find_settled(thread_id: str, *, now: int) -> Op[ThreadRow | None]:
    """A thread, locked; None if there is none and none is being stored.

    If another transaction is making the thread, this waits for it.
    """
    key = ThreadKey(thread_id)
    thread = yield from find_thread(key, lock=True)
    if thread is not None:
        return thread
    times = {"now": now, "minute": now // MINUTE_MS, "second": now // 1000}
    new = {"born": None, "new_generation": new_generation(), "version": new_version()}
    made = yield from fetch_one(sql.INSERT_THREAD, id=thread_id, owner=None, **new, **times)
    if made is None:
        return (yield from find_thread(key, lock=True))
    yield from fetch(sql.DELETE_THREAD[-1], thread=made[0])
    return None


def ensure_thread(
    key: ThreadKey,
    *,
    now: int,
    caches: ThreadCaches,
    born: bytes | None = None,
    origin: Origin | None = None,
) -> Op[tuple[ThreadRow, bool]]:
    """The thread, locked, and whether it was made, because there was none.

    Args:
        key: The thread.
        now: Unix milliseconds.
        caches: The caches of this process.
        born: If it is made, the lowest id of a checkpoint of it; by default that of now.
        origin: The checkpoint that a write of a run builds on.

    Raises:
        ThreadDeleted: There is none, and the run is from before its deletion.
        ThreadNotFound: It belongs to another owner.
        StorageError: Another thread has its number.
    """
    row: Row | None = None
    made = False
    late = origin is not None and not caches.late_writes.may_begin(key.id, origin)
    # The note that there is none may be from before another write of the run made it.
    if late or key.id not in caches.missing:
        row = yield from fetch_one(sql.SELECT_THREAD, id=key.id)
    if row is None:
        if origin is not None and (yield from was_deleted(key)):
            caches.late_writes.require_beginning(key.id, origin, may_begin=not late)
        times = {"now": now, "minute": now // MINUTE_MS, "second": now // 1000}
        new = {
            "born": born or first_id_at(now),
            "new_generation": new_generation(),
            "version": new_version(),
        }
        row = yield from fetch_one(sql.INSERT_THREAD, id=key.id, owner=key.owner, **new, **times)
        caches.missing.pop(key.id, None)
        made = row is not None
        if row is None:
            # Another process has made it meanwhile.
            row = yield from fetch_one(sql.SELECT_THREAD, id=key.id)
    if row is None:
        raise (yield from is_taken(key.id))
    if key.owner is not None and row[1] != key.owner:
        raise _another_owners(key.id)
    return _thread_of(row, key), made


def require_origin(
    cache: ThreadCache, key: ThreadKey, born: bytes | None, origin: Origin, known: LateWrites
) -> Op[None]:
    """Refuse a write of a run to a thread that has begun again since.

    Args:
        cache: The thread's cache.
        key: The thread.
        born: The lowest id of a checkpoint of it; None if that is not known.
        origin: The checkpoint that the write builds on.
        known: What this process knows of runs.

    Raises:
        ThreadDeleted: The write is from before, or may be (`late_writes.Buried`).
    """
    before: Origin | None = origin
    passed: set[bytes] = set()  # callers may name parents that form a circle
    while before is not None and before.id not in passed:
        if born is None or known.is_timely(key.id, born, before):
            return
        passed.add(before.id)
        space = yield from find_namespace(cache, before.namespace)
        if (space, before.id) in cache.headers or known.has_read(key.id, born, before.id):
            return
        # In any namespace: a subgraph's first checkpoint follows one of the root.
        if (
            yield from fetch(sql.HAS_CHECKPOINT_ANYWHERE, thread=cache.number, checkpoint=before.id)
        ):
            return
        if not (yield from was_deleted(key)):
            return
        if before.stored:
            raise known.bury(key.id)
        before = known.before(before)
    raise Buried(key.id)


def require_run(key: ThreadKey, origin: Origin, caches: ThreadCaches) -> Op[None]:
    """Refuse what a run writes beside its thread if that was deleted; else lock the thread.

    Args:
        key: The thread.
        origin: The checkpoint that the run's task belongs to.
        caches: The caches of this process.

    Raises:
        ThreadDeleted: The thread was deleted, or may have been (`Buried`).
    """
    known = caches.late_writes
    may_begin = known.may_begin(key.id, origin)  # asked first: another may begin it meanwhile
    thread = yield from find_thread(key, lock=True)
    if thread is None:
        if (yield from was_deleted(key)):
            known.require_beginning(key.id, origin, may_begin=may_begin)
        return
    cache = ThreadCache(thread.number)
    yield from require_origin(cache, key, thread.born, origin, known)


def is_taken(thread_id: str) -> Op[LangmemExtError]:
    """The error that a thread can neither be made nor found.

    If its number follows from its id, another thread may have that number; or the database shows
    the thread to another owner alone.
    """
    if (yield from fetch(sql.HAS_NUMBER, id=thread_id)):
        return StorageError(
            f"the thread {thread_id!r} cannot be created: another thread id has the same hash, or a"
            " damaged row is in its place (see `langmem-ext doctor`): use another id"
        )
    return _another_owners(thread_id)


def _another_owners(thread_id: str) -> ThreadNotFound:
    return ThreadNotFound(
        f"thread {thread_id!r} not found for this owner: use one of the owner's ids"
    )
