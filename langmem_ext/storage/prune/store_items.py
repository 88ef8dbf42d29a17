"""Operations that delete expired items of the long-term store, with all that they hold."""

from __future__ import annotations

from typing import Final

from langmem_ext.storage.driver import Steps
from langmem_ext.storage.operation import Batch, Op, Rows, fetch, operation
from langmem_ext.storage.schema.dialect import OWNER_VALUE

SWEPT: Final = 64
"""How many items a transaction deletes at most."""

# An empty `:owner` is nobody's, or that of a role that is bound to an owner.
OWNED: Final = (
    "(owner = :owner OR CAST(:owner AS TEXT) IS NULL OR CAST(:owner AS TEXT) = '' AND"
    f" coalesce(owner, '') = coalesce({OWNER_VALUE}, ''))"
)
DELETE_EXPIRED = (
    "DELETE FROM store_item WHERE number IN (SELECT number FROM store_item"
    f" WHERE expires_at <= :now AND {OWNED} ORDER BY expires_at LIMIT :limit) RETURNING number"
)
COUNT_EXPIRED = f"SELECT count(*) FROM store_item WHERE expires_at <= :now AND {OWNED}"
DELETE_SOURCES = "DELETE FROM store_thread WHERE item = :item"
DELETE_VECTORS = "DELETE FROM store_vector WHERE item = :item"


@operation
def count_expired(owner: str | None, now: int) -> Op[int]:
    """How many items have expired and are not deleted yet.

    Args:
        owner: Only this owner's items; None for all.
        now: The current time, in Unix milliseconds.
    """
    [(count,)] = yield from fetch(COUNT_EXPIRED, now=now, owner=owner)
    return int(count)


@operation
def delete_expired(owner: str | None, now: int) -> Op[int]:
    """Delete some expired items; how many."""
    rows = yield from fetch(DELETE_EXPIRED, now=now, owner=owner, limit=SWEPT)
    return (yield from delete_held(rows))


def delete_held(gone: Rows) -> Op[int]:
    """Delete all else that deleted items, by their numbers, had; how many items."""
    if gone:
        items = [{"item": number} for (number,) in gone]
        yield Batch(DELETE_VECTORS, items)
        yield Batch(DELETE_SOURCES, items)
    return len(gone)


def expiring(
    owner: str | None, now: int, *, dry_run: bool = False, once: bool = False
) -> Steps[int]:
    """Delete all expired items, or some; how many.

    Args:
        owner: Only this owner's items; None for all.
        now: The current time, in Unix milliseconds.
        dry_run: Only count them.
        once: Delete only some.
    """
    swept, due = 0, (yield count_expired(owner, now), False)
    while due and not dry_run and (count := (yield delete_expired(owner, now), True)):
        swept += count
        due = not once
    return due if dry_run else swept
