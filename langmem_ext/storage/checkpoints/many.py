"""The operation that reads many checkpoints in a few round trips and in bounded memory.

Where a round trip costs something, what all of them need is read together: their rows, then the
sizes of the values and messages that are not cached, then these. A value that several checkpoints
hold is read once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from langmem_ext.messages.manifest import ranges_of, runs_of
from langmem_ext.storage.cache import ThreadCaches
from langmem_ext.storage.checkpoints import sql
from langmem_ext.storage.checkpoints.get import Reader, assemble, read_entries
from langmem_ext.storage.checkpoints.lookup import (
    find_checkpoint,
    find_newest,
    find_writes,
    header_of,
    learn_all_namespaces,
    read_body,
    read_word,
)
from langmem_ext.storage.checkpoints.messages import catch_up_words, load_items, missing_items
from langmem_ext.storage.checkpoints.thread_row import find_thread
from langmem_ext.storage.operation import (
    PAUSE,
    PAUSE_EVERY,
    Op,
    Row,
    Rows,
    Statement,
    Together,
    both,
    operation,
    side_by_side,
)
from langmem_ext.storage.rows.checkpoint import ValueRef
from langmem_ext.storage.rows.ids import encode_id
from langmem_ext.storage.schema.dialect import NUMBER
from langmem_ext.types import Codec, StoredCheckpoint, ThreadKey

PAGE_BYTES: Final = 4 * 1024 * 1024
"""About how many bytes the checkpoints of one page hold; what several hold counts once."""

GAP: Final = 64
"""So many rows between two are looked at, too, so that one statement reads both."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A requested checkpoint: the one with this id, or the newest."""

    key: ThreadKey
    namespace: str
    id: str | None


@dataclass(frozen=True, slots=True)
class _Found:
    """A requested checkpoint's row, and those of its pending writes."""

    reader: Reader
    namespace: str
    space: int
    row: Row
    writes: Rows


Page: TypeAlias = list[StoredCheckpoint | None]
"""The first requested checkpoints, in that order, at least one; None for one that is not found."""

_Need: TypeAlias = tuple[int, str, int]
"""A row of values or items: its thread's number, its table, its own number."""


@operation
def get_checkpoints(
    wanted: Sequence[Wanted | None], *, caches: ThreadCaches, codec: Codec
) -> Op[Page]:
    """What `get_checkpoint` returns for each, from the first on, as many as fit in memory.

    A `None` requests nothing.
    """
    requests = [request for request in wanted if request is not None]
    keys = list(dict.fromkeys(request.key for request in requests))
    named = {request.key for request in requests if request.namespace}
    opened = yield from side_by_side(
        [_open(key, caches, codec, names=key in named) for key in keys]
    )
    readers = dict(zip(keys, opened, strict=True))
    checkpoints = yield from side_by_side(
        [_find(None if request is None else readers[request.key], request) for request in wanted]
    )
    if caches.remote and len(checkpoints) > 1:
        checkpoints = yield from _read_ahead(checkpoints)
    page: Page = []
    size, seen = 0, set[int]()
    for checkpoint in checkpoints:
        if size > PAGE_BYTES:
            break
        page.append(
            None
            if checkpoint is None
            else (
                yield from assemble(
                    checkpoint.reader,
                    checkpoint.namespace,
                    checkpoint.space,
                    checkpoint.row,
                    checkpoint.writes,
                )
            )
        )
        size += _size_of(page[-1], seen)
        if len(page) % PAUSE_EVERY == 0:
            yield PAUSE
    for reader in filter(None, opened):
        caches.keep(reader.cache)
    return page


def _size_of(stored: StoredCheckpoint | None, seen: set[int]) -> int:
    """Bytes of a checkpoint's values that none before it holds (`seen`, by their objects)."""
    values = (
        ()
        if stored is None
        else (*stored.values.values(), *(write.value for write in stored.writes))
    )
    bodies = {
        id(value.body): len(value.body)
        for value in values
        if value.body is not None and id(value.body) not in seen
    }
    seen.update(bodies)
    return sum(bodies.values())


def _open(key: ThreadKey, caches: ThreadCaches, codec: Codec, *, names: bool) -> Op[Reader | None]:
    """A reader that knows a thread's newest words and (`names`) namespaces; None if not found."""
    thread = yield from find_thread(key, caches)
    if thread is None:
        return None
    reader = Reader(key.id, caches.of(key.id, thread.row(), codec), codec)
    words = catch_up_words(reader.cache, thread.number, thread.next_word)
    yield from both(learn_all_namespaces(reader.cache), words) if names else words
    return reader


def _find(reader: Reader | None, request: Wanted | None) -> Op[_Found | None]:
    if (
        reader is None
        or request is None
        or (space := reader.cache.namespaces.get(request.namespace)) is None
    ):
        return None
    if request.id is None:
        row = yield from find_newest(reader.cache, space)
        writes = () if row is None else (yield from find_writes(reader.cache, space, row[0]))
    else:
        checkpoint = encode_id(request.id)
        row, writes = yield from both(
            find_checkpoint(reader.cache, space, checkpoint),
            find_writes(reader.cache, space, checkpoint),
        )
    return None if row is None else _Found(reader, request.namespace, space, row, writes)


# -- what they hold, read ahead --------------------------------------------------------------------


def _read_ahead(checkpoints: Sequence[_Found | None]) -> Op[list[_Found | None]]:
    """Read the values and messages of the first checkpoints, as many as fit in memory.

    Returns the checkpoints whose rows were read.
    """
    needs = yield from side_by_side([_needs(checkpoint) for checkpoint in checkpoints])
    sizes = yield from _sizes(set[_Need]().union(*needs))
    end, size, chosen = 0, 0, set[_Need]()
    while end < len(checkpoints) and (end == 0 or size <= PAGE_BYTES):
        size += sum([sizes.get(need, 0) for need in needs[end] - chosen])
        chosen |= needs[end]
        end += 1
    readers = {
        checkpoint.reader.cache.number: checkpoint.reader
        for checkpoint in checkpoints
        if checkpoint is not None
    }
    yield from side_by_side(
        [_read_row(readers[thread], number) for thread, number in _numbers(chosen, "value")]
        + [
            load_items(reader.cache, reader.codec, first, behind)
            for thread, reader in readers.items()
            for first, behind in ranges_of(
                runs_of(number for of, number in _numbers(chosen, "item") if of == thread)
            )
        ]
    )
    return list(checkpoints[:end])


def _needs(checkpoint: _Found | None) -> Op[set[_Need]]:
    """The rows of values and items that a checkpoint and its pending writes need, if not cached."""
    if checkpoint is None:
        return set()
    cache, label = checkpoint.reader.cache, checkpoint.row[3]
    header = yield from header_of(cache, checkpoint.space, checkpoint.row)
    entries = yield from read_entries(checkpoint.reader, checkpoint.writes)
    yield from read_word(cache, label)
    needs: set[_Need] = set()
    for ref in (*header.values.values(), *(entry.value for _, entry in entries)):
        for number in _rows_of(ref):
            if (held := cache.held.get(number)) is not None:
                # The cache may drop it as soon as others are read.
                checkpoint.reader.ahead[number] = held
            else:
                needs.add((cache.number, "value", number))
        for numbers in (yield from missing_items(cache, checkpoint.reader.codec, ref.runs)):
            needs |= {(cache.number, "item", number) for number in numbers}
    return needs


def _rows_of(ref: ValueRef) -> tuple[int, ...]:
    """The value rows that hold a value's body."""
    return () if ref.row is None else (ref.row, *(ref.deltas or ()))


def _sizes(needs: set[_Need]) -> Op[dict[_Need, int]]:
    """Bytes of the rows that exist."""
    tables = {"value": sql.SELECT_VALUE_SIZES, "item": sql.SELECT_ITEM_SIZES}
    asked = [
        (thread, table, Statement(statement, {"thread": thread, "low": low, "high": high}))
        for table, statement in tables.items()
        for thread, low, high in _spans(_numbers(needs, table))
    ]
    answers: Sequence[Rows] = (
        (yield Together([statement for _, _, statement in asked])) if asked else ()
    )
    return {
        (thread, table, key & NUMBER): size
        for (thread, table, _), rows in zip(asked, answers, strict=True)
        for key, size in rows
    }


def _numbers(needs: set[_Need], table: str) -> list[tuple[int, int]]:
    """Threads and numbers of the rows of a table, in order."""
    return sorted((thread, number) for thread, of, number in needs if of == table)


def _spans(numbers: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Ranges of rows to look at: the thread, the first number, the number after the last."""
    spans: list[tuple[int, int, int]] = []
    for thread, number in numbers:
        if spans and spans[-1][0] == thread and number - spans[-1][2] <= GAP:
            spans[-1] = (thread, spans[-1][1], number + 1)
        else:
            spans.append((thread, number, number + 1))
    return spans


def _read_row(reader: Reader, number: int) -> Op[None]:
    reader.ahead[number] = yield from read_body(reader.cache, number)
