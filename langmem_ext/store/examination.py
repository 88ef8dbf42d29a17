"""The doctor's examination of the store: each item's row, and rows that belong to no item."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from langmem_ext.errors import DamagedRow, StorageError, safe_text
from langmem_ext.storage.driver import Steps
from langmem_ext.storage.inspect.findings import Finding, Findings
from langmem_ext.storage.operation import PAUSE, Op, Row, execute, fetch, operation
from langmem_ext.storage.rows.checksum import check_of
from langmem_ext.store import statements as sql
from langmem_ext.store.names import labels_of, text_of
from langmem_ext.store.values import is_plain, load_value

PAGE: Final = 256
"""How many items one step reads."""

_NEXT: Final = "put the item anew, delete it, or restore the file from a copy"


@dataclass(slots=True)
class ExaminedStore:
    """What an examination found in the store.

    Attributes:
        items: How many items can be read.
        findings: What is damaged or wrong.
    """

    items: int
    findings: list[Finding]


def examine_store(*, fix: bool) -> Steps[ExaminedStore]:
    """Examine all items, in pages.

    Args:
        fix: Repair what follows from other rows, and delete vectors of no item.
    """
    findings, orphaned, items, fixed = Findings(None), Findings(None), 0, fix
    after = -1
    try:
        while rows := (yield _read_page(after), False):
            items += sum(_examine_item(row, findings) for row in rows)
            after = rows[-1][0]
        orphans = yield _count_orphans(), False
        for table, count in zip(("store_vector", "store_thread"), orphans, strict=True):
            if count:
                message = f"{count} rows belong to no item: they mean nothing and can be deleted"
                orphaned.add("orphan", "wrong", table, message, fixable=True)
        if fix and (orphaned.fixable or findings.fixable):
            yield _repair(), True
    except StorageError as error:
        fixed = False
        message = f"the store's items cannot be read ({error}): restore the file from a copy"
        findings.add("store", "damaged", "store_item", message)
    findings.take(orphaned)
    return ExaminedStore(items, list(findings.reported(fixed=fixed)))


def _examine_item(row: Row, findings: Findings) -> bool:
    """Whether an item can be read; adds what is damaged or wrong to the findings."""
    number, path, key, value, plain, crc = row
    place = f"store_item {number}"
    try:
        if crc != check_of(0, path, key, value):
            raise DamagedRow("it is not as it was written")
        load_value(value)
        name = f"{text_of(key)!r} in {labels_of(path)!r}"
    except (DamagedRow, ValueError, TypeError) as error:
        findings.add("store", "damaged", place, f"an item is damaged ({safe_text(error)}): {_NEXT}")
        return False
    if plain != is_plain(value):
        message = f"item {name} says wrongly whether SQL can read it: filters may miss it"
        findings.add("store", "wrong", place, message, fixable=True)
    return True


@operation
def _read_page(after: int) -> Op[list[Row]]:
    return list((yield from fetch(sql.SELECT_EXAMINED, after=after, limit=PAGE)))


@operation
def _count_orphans() -> Op[Row]:
    [counts] = yield from fetch(sql.COUNT_ORPHANS)
    return tuple(counts)


@operation
def _repair() -> Op[None]:
    """Delete rows of no item, and mark for each item whether SQL can read it."""
    for statement in sql.DELETE_ORPHANS:
        yield from execute(statement)
    after = -1
    while rows := (yield from fetch(sql.SELECT_EXAMINED, after=after, limit=PAGE)):
        for number, _, _, value, plain, _ in rows:
            if isinstance(value, str) and plain != is_plain(value):
                yield from execute(sql.SET_PLAIN, number=number, plain=int(is_plain(value)))
        after = rows[-1][0]
        yield PAUSE
