"""Operations that look up what rows refer to by number: values, words, namespaces. Every row is compared with its check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from langmem_ext.errors import DamagedRow, MissingExtra, cause, told
from langmem_ext.interruption import pass_on
from langmem_ext.storage import checks
from langmem_ext.storage import statements as sql
from langmem_ext.storage.compounds import read_compound
from langmem_ext.storage.compression import expand
from langmem_ext.storage.effects import Op, Row, Rows, fetch_one, side_by_side
from langmem_ext.storage.header import PATTERN_BYTES, ValueRef
from langmem_ext.storage.index import ThreadIndex

NO_ROWS: Final[Mapping[int, bytes]] = {}


def read_value(
    index: ThreadIndex, ref: ValueRef, place: tuple[int, str] | None = None, ahead: Mapping[int, bytes] = NO_ROWS
) -> Op[bytes | None]:
    """A value's body, wherever it stands; None for a plain list of messages.

    Args:
        index: The thread's.
        ref: Where it stands.
        place: The namespace and channel whose value it is.
        ahead: Bodies of value rows that were read already.

    Raises:
        DamagedRow: A row is missing, or its rows do not belong together.
    """
    if ref.row is None:
        return ref.body
    if ref.deltas is None:
        return (yield from read_body(index, ref.row, ahead))
    known = index.compounds.get(place) if place is not None else None
    if known is not None and known.rows() == ref.rows():
        return known.body
    bodies = yield from side_by_side([read_body(index, number, ahead) for number in ref.rows()])
    rows = list(zip(ref.rows(), bodies, strict=True))
    try:
        compound = read_compound(rows)
    except Exception as error:
        pass_on(error)
        raise DamagedRow(
            f"the values {ref.rows()} of thread number {index.number} are damaged ({told(error)}): other threads stay readable;"
            " fork from an earlier checkpoint, or delete the thread"
        ) from cause(error)
    if place is not None:
        index.learn_compound(place, compound)
    return compound.body


def read_body(index: ThreadIndex, number: int, ahead: Mapping[int, bytes] = NO_ROWS) -> Op[bytes]:
    """A value row's body, where it is not among those that were read already (`ahead`).

    Raises:
        DamagedRow: It is missing, not as it was written, or does not decompress.
        MissingExtra: It is compressed, and there is no zstd.
    """
    if number in ahead:
        return ahead[number]
    held = index.held.get(number)
    if held is not None:
        index.held.move_to_end(number)
        return held
    row = yield from fetch_one(sql.SELECT_VALUE, thread=index.number, number=number)
    if row is None or not isinstance(row[0], bytes):
        raise DamagedRow(f"value {number} of thread number {index.number} is missing: restore the thread from a copy, or delete it")
    body, check = row
    try:
        checks.verify(check, index.number, number, body)
        whole = expand(body)
    except MissingExtra:
        raise
    except Exception as error:
        pass_on(error)
        raise DamagedRow(
            f"value {number} of thread number {index.number} is damaged ({told(error)}): other threads stay readable;"
            " fork from an earlier checkpoint, or delete the thread"
        ) from cause(error)
    index.learn_body(number, whole)
    return whole


def read_word(index: ThreadIndex, number: int) -> Op[bytes]:
    """A word's body.

    Raises:
        DamagedRow: It is missing, or not as it was written.
    """
    body = index.bodies.get(number)
    if body is None:
        row = yield from fetch_one(sql.SELECT_WORD, thread=index.number, number=number)
        if row is None or not isinstance(row[0], bytes):
            raise DamagedRow(f"word {number} of thread number {index.number} is missing: restore the thread from a copy, or delete it")
        body, check = row
        if check != checks.check_of(index.number, number, body):
            raise DamagedRow(
                f"word {number} of thread number {index.number} is damaged ({checks.CHANGED}): other threads stay readable;"
                " restore this one from a copy, or delete it"
            )
        index.learn_word(number, body)
    return body


def read_pattern(index: ThreadIndex, number: int) -> Op[bytes]:
    """`read_word` for the form of a checkpoint, or of what a task wrote.

    Raises:
        DamagedRow: It is missing, not as it was written, or too large for a pattern.
    """
    body = yield from read_word(index, number)
    if len(body) > PATTERN_BYTES:
        raise DamagedRow(
            f"word {number} of thread number {index.number} is damaged (it is too large for a pattern): other threads stay"
            " readable; restore this one from a copy, or delete it"
        )
    return body


def learn_words(index: ThreadIndex, rows: Rows) -> None:
    """Remember words, by their rows; a damaged one is passed over, and named where it is needed."""
    for number, body, check in rows:
        if isinstance(body, bytes) and check == checks.check_of(index.number, number, body):
            index.learn_word(number, body)


def find_checkpoint(index: ThreadIndex, space: int, checkpoint: bytes) -> Op[Row | None]:
    """A checkpoint's row (`statements.CHECKPOINT_COLUMNS`); None if there is none."""
    return (yield from fetch_one(sql.SELECT_CHECKPOINT, thread=index.number, namespace=space, id=checkpoint))


def read_waiting(index: ThreadIndex) -> Op[str | None]:
    """The parameter that the thread waits for, as its row says."""
    row = yield from fetch_one(sql.SELECT_WAITING, thread=index.number)
    return None if row is None else row[0]


def find_newest(index: ThreadIndex, space: int) -> Op[Row | None]:
    """The row of a namespace's newest checkpoint (`statements.CHECKPOINT_COLUMNS`); None if it has none."""
    return (yield from fetch_one(sql.SELECT_LATEST_CHECKPOINT, thread=index.number, namespace=space))


def find_newest_id(index: ThreadIndex, space: int) -> Op[tuple[bytes, bytes] | None]:
    """Its id, and its key, which may be another (`ids.key_behind`)."""
    if space not in index.newest:
        row = yield from fetch_one(sql.SELECT_LATEST_ID, thread=index.number, namespace=space)
        newest = None if row is None else (row[0], row[1] or row[0])
        if index.row is None:
            return newest
        index.newest[space] = newest
    return index.newest[space]


def find_writes(index: ThreadIndex, space: int, checkpoint: bytes) -> Op[Rows]:
    """The rows of a checkpoint's pending writes (`statements.WRITE_COLUMNS`)."""
    rows: Rows = yield sql.SELECT_WRITES, (index.number, space, checkpoint)
    return rows


def find_namespace(index: ThreadIndex, name: str) -> Op[int | None]:
    """A namespace's number within its thread; None if there is none.

    Args:
        index: The thread's.
        name: The namespace.

    Raises:
        DamagedRow: Its row is not as it was written.
    """
    if name not in index.namespaces:
        row = yield from fetch_one(sql.SELECT_NAMESPACE, thread=index.number, name=name)
        if row is None:
            return None
        learn_namespaces(index, [row])
    return index.namespaces[name]


def learn_namespaces(index: ThreadIndex, rows: Rows) -> None:
    """Remember namespaces, by their rows.

    Raises:
        DamagedRow: A row is not as it was written.
    """
    for number, name, check in rows:
        if name not in index.namespaces:
            if check != checks.check_of(index.number, number, name):
                raise DamagedRow(
                    f"namespace {number} of thread number {index.number} is damaged ({checks.CHANGED}): other threads stay readable;"
                    " restore this one from a copy, or delete it"
                )
            index.learn_namespace(name, number)
