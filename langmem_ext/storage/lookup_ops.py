"""Operations that look up what rows refer to by number: values, words, namespaces. Every row is compared with its check."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from langmem_ext.errors import DamagedRow, MissingExtra, cause, told
from langmem_ext.interruption import pass_on
from langmem_ext.messages.manifest import NUMBERS
from langmem_ext.storage import checks
from langmem_ext.storage import statements as sql
from langmem_ext.storage.compounds import read_compound
from langmem_ext.storage.compression import expand
from langmem_ext.storage.effects import Op, Row, Rows, fetch, fetch_one, side_by_side
from langmem_ext.storage.expectations import NONE
from langmem_ext.storage.header import PATTERN_BYTES, ValueRef
from langmem_ext.storage.ids import readable
from langmem_ext.storage.index import ThreadIndex

AROUND: Final = 3
"""Rows of pending writes that are read from each side, with what stands beside them: most checkpoints have one or two."""


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
    """`read_word` for the pattern of a step, or of what a task wrote.

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
    """A checkpoint's row (`statements.CHECKPOINT_COLUMNS`); None if there is none.

    Raises:
        DamagedRow: It is not found where a damaged row stands, which may be it.
    """
    where = {"thread": index.number, "namespace": space, "id": checkpoint}
    known = index.expected and index.expected.checkpoint_row(space, checkpoint)
    row = yield from fetch_one(sql.SELECT_CHECKPOINT, known, **where)
    if row is None:
        for beside in (yield from fetch(sql.SELECT_BESIDE_CHECKPOINT, **where)):
            if beside[-1] != checks.checkpoint_check(index.number, (space, *beside[:-1])):
                raise DamagedRow(
                    f"checkpoint {readable(checkpoint)} of thread number {index.number} is not found, and where it would stand a row is"
                    " damaged: `langmem-ext doctor` names it; fork from another checkpoint, or delete the thread"
                )
    return row


def read_waiting(index: ThreadIndex) -> Op[str | None]:
    """The parameter that the thread waits for, as its row says."""
    expected = index.expected
    known = None if expected is None or expected.waiting is None else (expected.waiting,)
    row = yield from fetch_one(sql.SELECT_WAITING, known, thread=index.number)
    waiting: str | None = None if row is None else row[0]
    if expected is not None:
        expected.waiting = (waiting,)
    return waiting


def find_newest(index: ThreadIndex, space: int) -> Op[Row | None]:
    """The row of a namespace's newest checkpoint (`statements.CHECKPOINT_COLUMNS`); None if it has none."""
    expected = index.expected
    known = expected and expected.newest_row(space)
    row = yield from fetch_one(sql.SELECT_LATEST_CHECKPOINT, known, thread=index.number, namespace=space)
    if expected is not None and known is None:
        expected.learn_newest(space, row)
    return row


class Newest(NamedTuple):
    """The newest checkpoint of a namespace: its id, and its key, which may be another."""

    id: bytes
    key: bytes


def find_newest_id(index: ThreadIndex, space: int) -> Op[Newest | None]:
    """Its id and key alone."""
    known = index.expected and index.expected.newest_id(space)
    row = yield from fetch_one(sql.SELECT_LATEST_ID, known, thread=index.number, namespace=space)
    return None if row is None else Newest(row[0], row[1] or row[0])


def find_writes(index: ThreadIndex, space: int, checkpoint: bytes, *, foreseen: bool = False) -> Op[Rows]:
    """The rows of a checkpoint's pending writes (`statements.WRITE_COLUMNS`); `foreseen`, where it was found as its namespace's newest.

    Nothing refers to them: they are found by their keys, and a flipped bit in a key hides its row, or leads the search for another astray.
    Wherever that happens the row stands beside what is found, or a search from the other side finds something else.

    Raises:
        DamagedRow: A row of them is not where it should be, or one beside them could be theirs.
    """
    place = (index.number, space, checkpoint)
    where = {"thread": index.number, "namespace": space, "checkpoint": checkpoint}
    search = partial(fetch, sql.SELECT_WRITES, **where)
    if foreseen:
        search = partial(fetch, sql.SELECT_NEWEST_WRITES, thread=index.number, namespace=space)
    expected = index.expected
    limit = AROUND if expected is None else max(AROUND, len(expected.written.get((space, checkpoint), ())) + 1)
    while True:
        rows = yield from search(limit=limit)
        own, after = _until_another([row for row in rows if row[0]], place)
        again, before = _until_another([row for row in rows if not row[0]], place)
        if max(len(own), len(again)) < limit:
            break
        limit *= 16
    astray = [row[1:] for row in (after, before) if row is not None and not checks.holds(row[-1], *row[1:-1])]
    if not astray and own == again[::-1]:
        if expected is not None and (newest := expected.newest.get(space)) is not None and newest[0] == checkpoint:
            expected.learn_all_written(space, checkpoint, own)
        return own
    for row in astray:
        if checks.holds(row[-1], *place, *row[3:-1]) or not (yield from _is_of_a_checkpoint(row)):
            raise DamagedRow(
                f"the pending writes of checkpoint {readable(checkpoint)} of thread number {index.number}, or a row beside them, are"
                " damaged: fork from another checkpoint, or delete the thread; `langmem-ext doctor` names the row"
            )
    return (yield from fetch(sql.SCAN_WRITES, **where))


def _until_another(rows: Rows, place: tuple[int, int, bytes]) -> tuple[list[Row], Row | None]:
    """The rows that are a checkpoint's, and the first that is not."""
    own: list[Row] = []
    for row in rows:
        if row[1:4] != place:
            return own, row
        own.append(row[2:])
    return own, None


def _is_of_a_checkpoint(row: Row) -> Op[bool]:
    """Whether a damaged row of pending writes belongs to a checkpoint that is stored: its key is whole then."""
    thread, space, checkpoint = row[:3]
    return (yield from fetch_one(sql.HAS_CHECKPOINT, thread=thread, namespace=space, checkpoint=checkpoint)) is not None


def find_namespace(index: ThreadIndex, name: str, *, end: int = NUMBERS) -> Op[int | None]:
    """A namespace's number within its thread; None if there is none.

    Args:
        index: The thread's.
        name: The namespace.
        end: The number behind the thread's last, if that is known.

    Raises:
        DamagedRow: Its row is not as it was written.
    """
    if name not in index.namespaces:
        all_known = index.expected is not None and len(index.namespaces) >= end
        row = yield from fetch_one(sql.SELECT_NAMESPACE, NONE if all_known else None, thread=index.number, name=name)
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
