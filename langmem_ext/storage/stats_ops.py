"""Operations that count what a database holds, and estimate what a SqliteSaver would have needed for it. No content is decoded.

A SqliteSaver writes every channel's value into every checkpoint, whole. Its row is therefore the sum of what the checkpoint refers to: the
serialised size of each message of each list, by the lengths in the item's row and a constant for its class; of each other value, by the
length of its rows; the names and versions of the channels; and the metadata as JSON. Pending writes are rows of their own, by the same
rule.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final, TypeAlias

from langmem_ext.errors import LangmemExtError
from langmem_ext.interruption import pass_on
from langmem_ext.messages.manifest import ranges_of
from langmem_ext.storage import stats_statements as sql
from langmem_ext.storage.checkpoint_ops import header_of, key_of
from langmem_ext.storage.compression import MARK, original_length
from langmem_ext.storage.dialect import NUMBER
from langmem_ext.storage.effects import PAUSE, PAUSE_EVERY, Op, fetch, fetch_one, operation, operation_once
from langmem_ext.storage.header import Header, ValueRef, Versions
from langmem_ext.storage.index import ThreadIndex
from langmem_ext.storage.lookup_ops import read_value, read_word
from langmem_ext.storage.write_ops import read_writes

Place: TypeAlias = tuple[int, bytes, bytes]
"""Namespace, checkpoint and task of a row of pending writes."""

ROW: Final = 12
"""Bytes of a row beyond its columns, about."""

CHECKPOINT: Final = 240
"""Bytes of a SqliteSaver's checkpoint beyond values, channels and metadata: its fixed keys, times and ids, in its row and its index."""

WRITE: Final = 190
"""The same of one of its pending writes: five columns stand in the row and in its index."""

PAGE_BYTES: Final = 4096
SPILL_BYTES: Final = PAGE_BYTES - 35
"""A row up to this size stands in one page; a longer one fills whole pages of its own."""

UUID_TEXT: Final = 20
"""Bytes by which an id as text is longer than as stored."""


@dataclass(slots=True)
class Measured:
    """What is counted of one thread.

    Attributes:
        number, id: The thread's.
        weights: Bytes that a SqliteSaver's form of a message adds to its row's, by its class's code.
        index: Reads headers and words; of this thread alone.
        bytes: Bytes of the thread's rows.
        text, rest: Bytes of its messages' texts, and of what the columns do not hold.
        messages, human: Its messages, and those of a person.
        checkpoints: How many it has.
        classic: Bytes that a SqliteSaver would have needed, about.
        numbers, sizes: Numbers of its items in order, and their sizes as a SqliteSaver has them, summed up to each.
        values: Length of a value by its number.
        wholes: Length of a value of several rows, by these.
    """

    number: int
    id: str
    weights: Mapping[int | None, int]
    index: ThreadIndex
    bytes: int = 0
    text: int = 0
    rest: int = 0
    messages: int = 0
    human: int = 0
    checkpoints: int = 0
    classic: int = 0
    numbers: list[int] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    values: dict[int, int] = field(default_factory=dict)
    wholes: dict[tuple[int, ...], int] = field(default_factory=dict)

    def size_of(self, ref: ValueRef) -> int:
        """The serialised size of a value; its rows must have been measured."""
        total = len(ref.body or b"") if ref.deltas is None else self.wholes.get(ref.rows(), 0)
        if ref.deltas is None and ref.row is not None:
            total = self.values.get(ref.row, 0)
        sums = self.sizes
        for start, end in ranges_of(ref.runs):
            total += sums[bisect_left(self.numbers, end)] - sums[bisect_left(self.numbers, start)]
        return total


# -- the database ------------------------------------------------------------------------------------------------------------------------


@operation
def measure_file() -> Op[tuple[dict[str, int], bool]]:
    """Bytes by table and index, `free` and all of the `file`; and whether they are pages (else only the last two are there)."""
    [(page, pages, free)] = yield from fetch(sql.SELECT_PAGES)
    sizes = {"free": page * free, "file": page * pages}
    if (yield from fetch_one(sql.HAS_PAGE_TABLE)) is None:
        return sizes, False
    return sizes | {name: size for name, size in (yield from fetch(sql.SUM_PAGES))}, True


@operation
def count_rows() -> Op[tuple[int, int, int, int, int]]:
    """How many threads, checkpoints, rows of pending writes, items and values there are."""
    threads, checkpoints, writes, items, values = (yield from fetch(sql.COUNT_ROWS))[0]
    return threads, checkpoints, writes, items, values


# -- a thread ----------------------------------------------------------------------------------------------------------------------------


@operation_once
def measure_items(thread: Measured, after: int, limit: int) -> Op[int | None]:
    """Measure a page of items; the last one's number, or None where no more follow."""
    rows = yield from fetch(sql.SELECT_ITEM_SIZES, thread=thread.number, after=after, mark=MARK, limit=limit)
    for key, role, text, rest, names, bare, text_head, rest_head in rows:
        thread.numbers.append(key & NUMBER)
        thread.sizes.append(_whole(text, text_head) + _whole(rest, rest_head) + names + UUID_TEXT + thread.weights.get(role, 0))
        thread.bytes += text + rest + names + ROW
        thread.text, thread.rest = thread.text + text, thread.rest + rest
        thread.messages += not bare
        thread.human += role in (0, 6)
    return rows[-1][0] & NUMBER if len(rows) == limit else None


@operation_once
def measure_values(thread: Measured, after: int, limit: int) -> Op[int | None]:
    """Measure a page of values; the last one's number, or None where no more follow."""
    rows = yield from fetch(sql.SELECT_VALUE_SIZES, thread=thread.number, after=after, mark=MARK, limit=limit)
    for key, length, head in rows:
        thread.values[key & NUMBER] = _whole(length, head)
        thread.bytes += length + ROW
    return rows[-1][0] & NUMBER if len(rows) == limit else None


def _whole(length: int, head: bytes | None) -> int:
    """The length of a column before it was compressed, if it is."""
    try:
        return length if head is None else original_length(head)
    except ValueError:
        return length  # damaged: the doctor names it


@operation_once
def sum_up(thread: Measured) -> Op[None]:
    """What can be said once all items and values are measured."""
    thread.sizes = [0, *accumulate(thread.sizes)]
    [(words,)] = yield from fetch(sql.SUM_WORDS, thread=thread.number)
    thread.bytes += words


@operation_once
def measure_checkpoints(thread: Measured, after: tuple[int, bytes], limit: int) -> Op[tuple[int, bytes] | None]:
    """Measure a page of checkpoints; the last one's key, or None where no more follow."""
    rows = yield from fetch(sql.SELECT_CHECKPOINTS, thread=thread.number, namespace=after[0], after=after[1], limit=limit)
    for count, (space, *row) in enumerate(rows, start=1):
        thread.checkpoints += 1
        thread.bytes += len(row[0]) + len(row[1] or b"") // 4 + len(row[5]) + ROW
        try:
            header: Header = yield from header_of(thread.index, space, tuple(row))
            yield from _measure_wholes(thread, header.values.values())
            size = sum(len(name) + 2 + thread.size_of(ref) for name, ref in header.values.items()) + _size_of_versions(header.versions)
            size += sum(len(node) + 3 + _size_of_versions(seen) for node, seen in header.seen.items())
            size += len(header.details or b"") + len((yield from read_word(thread.index, row[3]))) + 14
            thread.classic += _row_size(size + len(header.extra or b"") + CHECKPOINT + 2 * len(thread.id))
        except LangmemExtError:
            pass  # damaged: the doctor names it
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    return (rows[-1][0], key_of(rows[-1][1:])) if len(rows) == limit else None


@operation_once
def measure_writes(thread: Measured, after: Place, limit: int) -> Op[Place | None]:
    """Measure a page of pending writes; the last one's key, or None where no more follow."""
    space, checkpoint, task = after
    where = {"thread": thread.number, "namespace": space, "after": checkpoint, "task": task}
    rows = yield from fetch(sql.SELECT_WRITES, **where, limit=limit)
    for count, row in enumerate(rows, start=1):
        thread.bytes += sum(map(len, (row[1], row[2], row[4]))) + ROW
        try:
            entries = yield from read_writes(thread.index, row)
            yield from _measure_wholes(thread, [entry.value for entry in entries])
            for entry in entries:
                own = len(entry.channel) + len(entry.path) + thread.size_of(entry.value)
                thread.classic += _row_size(own + WRITE + 2 * len(thread.id))
        except Exception as error:
            pass_on(error)
            continue  # damaged: the doctor names it
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    return (rows[-1][0], rows[-1][1], rows[-1][2]) if len(rows) == limit else None


def _measure_wholes(thread: Measured, refs: Iterable[ValueRef]) -> Op[None]:
    """Values of several rows are put together to be measured, each once."""
    for ref in refs:
        if ref.deltas is not None and ref.rows() not in thread.wholes:
            thread.wholes[ref.rows()] = len((yield from read_value(thread.index, ref)) or b"")


def _size_of_versions(versions: Versions) -> int:
    return sum(len(channel) + 2 + (len(version) + 2 if isinstance(version, str) else 9) for channel, version in versions.items())


def _row_size(size: int) -> int:
    """The bytes of a row, with the pages that it fills."""
    return size if size <= SPILL_BYTES else -(-size // (PAGE_BYTES - 4)) * PAGE_BYTES + PAGE_BYTES // 8
