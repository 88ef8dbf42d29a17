"""How many bytes the rows of a database take, while others write: threads are measured one by one, and again when they have changed.

What the tables take does not lessen with what is deleted, until they are vacuumed, so it says nothing of what is there. A thread's size is
what its rows take when they have just been written anew, with their entries in indexes (`dialect.ITEM_SIZE` and others); what was measured
stands in `thread_size`, and the sum in `size_total`, both written in the transaction that measures or deletes.

Invariants:
- Nothing of this is on a put's way. While the tables are no larger than is allowed, nothing is measured at all.
- The total never says more than there is: a thread that has lost rows is measured in the same transaction, one that has got some later.
"""

from __future__ import annotations

from typing import Final

from langmem_ext.storage.clock import MINUTE_MS
from langmem_ext.storage.dialect import SIZE
from langmem_ext.storage.driver import Sizing
from langmem_ext.storage.effects import Op, Row, fetch, operation

PAGE: Final = 32
"""Threads that are measured in one transaction: as many as a saver writes between two looks, at most."""

APART_MIN: Final = 5
"""Minutes by which the clocks of those who write may differ."""

_BEGINNING: Final = (-1, -1)

# Those that were written since a minute, by the index of activity. As threads are written they come again and again, but a large one
# seldom: a megabyte takes a millisecond or so to measure, and is measured after a tenth of a second at the earliest.
_SELECT_CHANGED = (
    "SELECT thread.active_at, thread.number FROM thread LEFT JOIN thread_size AS known ON known.thread = thread.number"
    " WHERE thread.status IN ('active', 'archived') AND thread.active_at >= :minute"
    " AND (thread.active_at, thread.number) > (:minute, :after) AND (known.thread IS NULL"
    " OR (known.version <> thread.xmin OR known.written_at <> thread.updated_at)"
    " AND (:wholly OR known.bytes < 100000 OR thread.updated_at - known.written_at >= known.bytes / 10000))"
    " ORDER BY thread.active_at, thread.number LIMIT :limit"
)
_MEASURE = "SELECT 1 FROM [schema].measure(CAST(:numbers AS bigint[]))"
_SELECT_TOTAL = "SELECT bytes FROM size_total"
# For a role that sees one owner's threads alone: these are all that there are for it.
_SUM_SIZES = "SELECT coalesce(sum(known.bytes), 0)::bigint FROM thread JOIN thread_size AS known ON known.thread = thread.number"


@operation
def _read_taken() -> Op[int]:
    [(taken,)] = yield from fetch(SIZE)
    return int(taken)


@operation
def _find_changed(after: Row, *, wholly: bool) -> Op[list[Row]]:
    return list((yield from fetch(_SELECT_CHANGED, minute=after[0], after=after[1], wholly=wholly, limit=PAGE)))


@operation
def _measure(numbers: list[int]) -> Op[None]:
    yield from fetch(_MEASURE, numbers=numbers)


@operation
def _read_total() -> Op[int]:
    rows = yield from fetch(_SELECT_TOTAL)
    [(total,)] = rows or (yield from fetch(_SUM_SIZES))
    return int(total)


class Sizes:
    """Measures what has changed since it last did."""

    def __init__(self) -> None:
        self._after: Row = _BEGINNING

    def used_bytes(self, limit: int, now: int, *, wholly: bool) -> Sizing:
        """`Driver.used_bytes`."""
        taken: int = yield _read_taken(), False
        if taken <= limit:
            return taken
        if wholly:
            after: Row = _BEGINNING
            while changed := (yield _find_changed(after, wholly=True), False):
                yield _measure(sorted(number for _, number in changed)), True
                after = changed[-1]
        elif changed := (yield _find_changed(self._after, wholly=False), False):
            yield _measure(sorted(number for _, number in changed)), True
        if not wholly:
            self._after = changed[-1] if len(changed) == PAGE else (now // MINUTE_MS - APART_MIN, -1)
        total: int = yield _read_total(), False
        return min(taken, total)
