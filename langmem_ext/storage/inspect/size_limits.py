"""Operations that find checkpoints that name rows so often that reading may fill the memory."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from itertools import accumulate
from typing import Final

from langmem_ext.errors import DamagedRow
from langmem_ext.messages.manifest import merged, ranges_of
from langmem_ext.messages.size_limits import SMALL, TIMES
from langmem_ext.storage.cache import ThreadCache
from langmem_ext.storage.checkpoints.get import Distrusted, Reader, assemble
from langmem_ext.storage.checkpoints.lookup import find_checkpoint, find_writes
from langmem_ext.storage.inspect.read import NEXT_STEP, Contents, Examined, Need
from langmem_ext.storage.operation import PAUSE, Op, operation_once
from langmem_ext.storage.rows.ids import readable

LARGE: Final = "large"
"""The kind of finding for a checkpoint that takes far more memory than its rows."""


def find_large(thread: Examined) -> list[tuple[int, bytes]]:
    """The checkpoints, by namespace and id, that may be out of proportion to the rows they name."""
    named: dict[bytes, list[tuple[Need, int]]] = {}
    numbers = sorted(thread.items)
    sums = [0, *accumulate(map(thread.items.__getitem__, numbers))]

    def size_of(ranges: Iterable[tuple[int, int]], rows: Iterable[int]) -> int:
        messages = sum(
            sums[bisect_left(numbers, end)] - sums[bisect_left(numbers, start)]
            for start, end in ranges
        )
        return messages + sum(thread.bodies.get(row, 0) for row in rows)

    for need, checkpoints in thread.uses.items():
        size = size_of(ranges_of(need.runs), need.rows)
        for checkpoint in checkpoints:
            named.setdefault(checkpoint, []).append((need, size))
    large = set()
    for checkpoint, needs in named.items():
        total = sum(size for _, size in needs)
        if total > SMALL:
            ranges = merged(pair for need, _ in needs for pair in ranges_of(need.runs))
            if total > TIMES * size_of(ranges, {row for need, _ in needs for row in need.rows}):
                large.add(checkpoint)
    return [place for place in thread.parents if place[1] in large]


@operation_once
def read_together(thread: Examined, contents: Contents, space: int, checkpoint: bytes) -> Op[bool]:
    """Read a checkpoint with distrust (`messages.size_limits`); whether there was a finding."""
    cache = ThreadCache(thread.number)
    place = f"checkpoint {thread.number}/{space}/{readable(checkpoint)}"
    row = yield from find_checkpoint(cache, space, checkpoint)
    if row is None:
        return False
    try:
        writes = yield from find_writes(cache, space, checkpoint)
        yield from assemble(
            Reader(thread.findings.thread or "", cache, contents.codec, distrusts=True),
            "",
            space,
            row,
            writes,
        )
    except Distrusted:
        message = (
            "names the same messages or values so often that it takes far more memory than its"
            " rows: what somebody else has made so may be meant to fill the memory; no import"
            " takes it"
        )
        thread.findings.add(LARGE, "note", place, message, checkpoints=(readable(checkpoint),))
        return True
    except DamagedRow as error:
        why = str(error).partition(": ")[0]
        thread.findings.add(
            "checkpoint",
            "damaged",
            place,
            f"cannot be read: {why}: {NEXT_STEP}",
            checkpoints=(readable(checkpoint),),
        )
        return True
    yield PAUSE
    return False
