"""Operations that look up values, words, namespaces and headers, and compare every checksum."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from langmem_ext._internal.interruption import pass_on
from langmem_ext.errors import DamagedRow, MissingExtra, cause, safe_text
from langmem_ext.messages.manifest import Runs
from langmem_ext.messages.packed import unpack
from langmem_ext.storage.cache import ThreadCache
from langmem_ext.storage.checkpoints import sql
from langmem_ext.storage.operation import Op, Row, Rows, fetch, fetch_one, side_by_side
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.rows.checkpoint import (
    PATTERN_BYTES,
    Header,
    ValueRef,
    decode_header,
    require_countable,
    value_ref,
)
from langmem_ext.storage.rows.compression import expand
from langmem_ext.storage.rows.delta import read_compound
from langmem_ext.storage.rows.ids import readable
from langmem_ext.storage.rows.manifest import decode_runs

NO_ROWS: Final[Mapping[int, bytes]] = {}


def read_value(
    cache: ThreadCache,
    ref: ValueRef,
    place: tuple[int, str] | None = None,
    ahead: Mapping[int, bytes] = NO_ROWS,
) -> Op[bytes | None]:
    """A value's body, wherever it is stored; None for a plain list of messages.

    Args:
        cache: The thread's cache.
        ref: The reference to the value.
        place: The value's namespace and channel.
        ahead: Bodies of value rows that were read already.

    Raises:
        DamagedRow: A row is missing, or its rows do not belong together.
    """
    if ref.row is None:
        return ref.body
    if ref.deltas is None:
        return (yield from read_body(cache, ref.row, ahead))
    known = cache.compounds.get(place) if place is not None else None
    if known is not None and known.rows() == ref.rows():
        return known.body
    bodies = yield from side_by_side([read_body(cache, number, ahead) for number in ref.rows()])
    rows = list(zip(ref.rows(), bodies, strict=True))
    try:
        compound = read_compound(rows)
    except Exception as error:
        pass_on(error)
        raise DamagedRow(
            f"the values {ref.rows()} of thread number {cache.number} are damaged"
            f" ({safe_text(error)}): other threads stay readable; fork from an earlier checkpoint,"
            " or delete the thread"
        ) from cause(error)
    if place is not None:
        cache.learn_compound(place, compound)
    return compound.body


def read_body(cache: ThreadCache, number: int, ahead: Mapping[int, bytes] = NO_ROWS) -> Op[bytes]:
    """A value row's body; `ahead` are the bodies that were read already.

    Raises:
        DamagedRow: It is missing, has changed since it was written, or does not decompress.
        MissingExtra: It is compressed, and there is no zstd.
    """
    if number in ahead:
        return ahead[number]
    held = cache.held.get(number)
    if held is not None:
        cache.held.move_to_end(number)
        return held
    row = yield from fetch_one(sql.SELECT_VALUE, thread=cache.number, number=number)
    if row is None or not isinstance(row[0], bytes):
        raise DamagedRow(
            f"value {number} of thread number {cache.number} is missing: restore the thread from a"
            " copy, or delete it"
        )
    body, check = row
    try:
        checks.verify(check, cache.number, number, body)
        whole = expand(body)
    except MissingExtra:
        raise
    except Exception as error:
        pass_on(error)
        raise DamagedRow(
            f"value {number} of thread number {cache.number} is damaged ({safe_text(error)}): other"
            " threads stay readable; fork from an earlier checkpoint, or delete the thread"
        ) from cause(error)
    cache.learn_body(number, whole)
    return whole


def read_word(cache: ThreadCache, number: int) -> Op[bytes]:
    """A word's body.

    Raises:
        DamagedRow: It is missing, or has changed since it was written.
    """
    body = cache.bodies.get(number)
    if body is None:
        row = yield from fetch_one(sql.SELECT_WORD, thread=cache.number, number=number)
        if row is None or not isinstance(row[0], bytes):
            raise DamagedRow(
                f"word {number} of thread number {cache.number} is missing: restore the thread from"
                " a copy, or delete it"
            )
        body, check = row
        if check != checks.check_of(cache.number, number, body):
            raise DamagedRow(
                f"word {number} of thread number {cache.number} is damaged ({checks.CHANGED}):"
                " other threads stay readable; restore this one from a copy, or delete it"
            )
        cache.learn_word(number, body)
    return body


def read_pattern(cache: ThreadCache, number: int) -> Op[bytes]:
    """`read_word` for the form of a checkpoint, or of a task's writes.

    Raises:
        DamagedRow: It is missing, has changed since it was written, or is too large for a pattern.
    """
    body = yield from read_word(cache, number)
    if len(body) > PATTERN_BYTES:
        raise DamagedRow(
            f"word {number} of thread number {cache.number} is damaged (it is too large for a"
            " pattern): other threads stay readable; restore this one from a copy, or delete it"
        )
    return body


def learn_words(cache: ThreadCache, rows: Rows) -> None:
    """Cache words, from their rows; a damaged one is skipped, and reported when it is needed."""
    for number, body, check in rows:
        if isinstance(body, bytes) and check == checks.check_of(cache.number, number, body):
            cache.learn_word(number, body)


def find_checkpoint(cache: ThreadCache, space: int, checkpoint: bytes) -> Op[Row | None]:
    """A checkpoint's row (`sql.CHECKPOINT_COLUMNS`); None if there is none."""
    return (
        yield from fetch_one(
            sql.SELECT_CHECKPOINT, thread=cache.number, namespace=space, id=checkpoint
        )
    )


def read_waiting(cache: ThreadCache) -> Op[str | None]:
    """The parameter that the thread waits for, as its row says."""
    row = yield from fetch_one(sql.SELECT_WAITING, thread=cache.number)
    return None if row is None else row[0]


def find_newest(cache: ThreadCache, space: int) -> Op[Row | None]:
    """The row of a namespace's newest checkpoint; None if it has none.

    The row has the columns of `sql.CHECKPOINT_COLUMNS`.
    """
    return (
        yield from fetch_one(sql.SELECT_LATEST_CHECKPOINT, thread=cache.number, namespace=space)
    )


def find_newest_id(cache: ThreadCache, space: int) -> Op[tuple[bytes, bytes] | None]:
    """The newest checkpoint's id in a namespace, and its key, which may differ (`key_behind`)."""
    if space not in cache.newest:
        row = yield from fetch_one(sql.SELECT_LATEST_ID, thread=cache.number, namespace=space)
        newest = None if row is None else (row[0], row[1] or row[0])
        if cache.row is None:
            return newest
        cache.newest[space] = newest
    return cache.newest[space]


def find_writes(cache: ThreadCache, space: int, checkpoint: bytes) -> Op[Rows]:
    """The rows of a checkpoint's pending writes (`sql.WRITE_COLUMNS`)."""
    rows: Rows = yield sql.SELECT_WRITES, (cache.number, space, checkpoint)
    return rows


def find_namespace(cache: ThreadCache, name: str) -> Op[int | None]:
    """A namespace's number within its thread; None if there is none.

    Args:
        cache: The thread's cache.
        name: The namespace.

    Raises:
        DamagedRow: Its row has changed since it was written.
    """
    if name not in cache.namespaces:
        row = yield from fetch_one(sql.SELECT_NAMESPACE, thread=cache.number, name=name)
        if row is None:
            return None
        _learn_namespaces(cache, [row])
    return cache.namespaces[name]


def learn_all_namespaces(cache: ThreadCache) -> Op[None]:
    """Cache all namespaces of a thread.

    Raises:
        DamagedRow: A row has changed since it was written.
    """
    _learn_namespaces(cache, (yield from fetch(sql.SELECT_NAMESPACES, thread=cache.number)))


def _learn_namespaces(cache: ThreadCache, rows: Rows) -> None:
    """Cache namespaces, from their rows.

    Raises:
        DamagedRow: The checksum of a row does not match.
    """
    for number, name, check in rows:
        if name not in cache.namespaces:
            if check != checks.check_of(cache.number, number, name):
                raise DamagedRow(
                    f"namespace {number} of thread number {cache.number} is damaged"
                    f" ({checks.CHANGED}): other threads stay readable; restore this one from a"
                    " copy, or delete it"
                )
            cache.learn_namespace(name, number)


def read_header(cache: ThreadCache, space: int, checkpoint: bytes) -> Op[Header | None]:
    """A checkpoint's header; None if there is no such checkpoint."""
    known = cache.headers.get((space, checkpoint))
    if known is not None:
        return known
    row = yield from fetch_one(
        sql.SELECT_CHECKPOINT, thread=cache.number, namespace=space, id=checkpoint
    )
    if row is None:
        return None
    return (yield from header_of(cache, space, row))


def header_of(cache: ThreadCache, space: int, row: Row) -> Op[Header]:
    """The header that a checkpoint row (`CHECKPOINT_COLUMNS`) holds.

    Raises:
        DamagedRow: It has changed since it was written, or does not decode.
    """
    checkpoint, _, _, _, form_number, body, _, check = row
    known = cache.headers.get((space, checkpoint))
    if known is not None and known.row == row:
        return known
    try:
        if check != checks.checkpoint_check(cache.number, (space, *row[:-1])):
            raise ValueError(checks.CHANGED)
        form = None if form_number is None else (yield from read_pattern(cache, form_number))
        fields = unpack(body)
        if form is None:
            form, *fields = fields
        header = decode_header(form, fields, checkpoint)
        for channel, entry in header.entries.items():
            if len(entry) > 1 and type(entry[1]) is dict:
                ref = value_ref(entry)
                assert ref.manifest is not None
                header.whole[channel] = ref.with_beginning(
                    (yield from _read_manifest(cache, (space, channel), ref.manifest[0]))
                )
        header.row = row
        require_countable(header.values.values())
    except DamagedRow:
        raise
    except Exception as error:
        pass_on(error)
        raise damaged_checkpoint(cache.number, checkpoint, safe_text(error)) from cause(error)
    cache.learn_header(space, checkpoint, header)
    return header


def damaged_checkpoint(thread: int, checkpoint: bytes, what: str) -> DamagedRow:
    """The error that a checkpoint's row has changed since it was written, or does not decode."""
    return DamagedRow(
        f"checkpoint {readable(checkpoint)} of thread number {thread} is damaged ({what}): other"
        " threads and checkpoints stay readable; fork from an earlier one, or delete the thread"
    )


def _read_manifest(cache: ThreadCache, place: tuple[int, str], row: int) -> Op[Runs]:
    known, runs = cache.manifests.get(place, (None, ()))
    if known != row:
        runs = decode_runs((yield from read_body(cache, row)))
        cache.learn_manifest(place, row, runs)
    return runs


def key_of(row: Row) -> bytes:
    """The key that orders a thread's checkpoints, from a row of `sql.CHECKPOINT_COLUMNS`."""
    key: bytes = row[0] if row[-2] is None else row[-2]
    return key


def missing_namespace(thread_id: str, space: int) -> DamagedRow:
    """The error that rows belong to a namespace that does not exist."""
    return DamagedRow(
        f"namespace {space} of thread {thread_id!r} is missing: restore the thread from a copy, or"
        " delete it"
    )
