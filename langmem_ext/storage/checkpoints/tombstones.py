"""That threads were deleted: what runs of theirs write later is refused by these rows alone.

A tombstone is left in the transaction of the deletion, and kept for as long as a run may last.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from langmem_ext.storage.operation import Op, fetch
from langmem_ext.storage.rows.clock import now_ms
from langmem_ext.types import ThreadKey

KEPT_MS: Final = 7 * 24 * 3_600_000
"""How long a tombstone is kept: a week."""

_LEAVE: Final = (
    "INSERT INTO tombstone (thread, deleted_at, owner) SELECT :hash, :now, coalesce(owner, '') FROM"
    " thread WHERE number = :thread ON CONFLICT DO NOTHING"
)
_PURGE: Final = "DELETE FROM tombstone WHERE deleted_at < :before"
_FIND: Final = (
    "SELECT 1 FROM tombstone WHERE thread = :hash AND (coalesce(owner, '') IN (:owner, '') OR"
    " CAST(:owner AS TEXT) IS NULL) LIMIT 1"
)


def leave_tombstone(thread_id: str, number: int) -> Op[None]:
    """Note that a thread is being deleted, or given away; its row still says whose it was."""
    now = now_ms()
    yield from fetch(_PURGE, before=now - KEPT_MS)
    yield from fetch(_LEAVE, hash=_hash_of(thread_id), thread=number, now=now)


def was_deleted(key: ThreadKey) -> Op[bool]:
    """Whether a thread of this id was deleted lately that was the caller's, or nobody's.

    What others say of threads is not believed: a role of PostgreSQL can note any id.
    """
    return bool((yield from fetch(_FIND, hash=_hash_of(key.id), owner=key.owner)))


def _hash_of(thread_id: str) -> bytes:
    return blake2b(thread_id.encode("utf-8", "surrogatepass"), digest_size=16).digest()
