"""Space in a SQLite file: how much of it is used, and returning the rest to the file system.

Deleted rows leave free space inside the file. It is returned in short steps, each a transaction of
its own, so that others can write in between. Deleted content is overwritten in place
(`secure_delete = FAST`), or is gone with the pages that are returned.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

from langmem_ext.storage.operation import Op, Operation, Rows, fetch, operation
from langmem_ext.storage.search.index import merge_some, needs_merge

T = TypeVar("T")

PAGES_AT_ONCE: Final = 256
"""How many pages one step returns: mostly a megabyte."""

FORGET_BYTES: Final = "PRAGMA secure_delete = FAST"
"""Overwrites deleted content wherever its page is written anyway. A setting of the connection, not
of the file."""

_INCREMENTAL: Final = 2


class Runner(Protocol):
    """Runs operations, as a driver does."""

    def run(self, op: Operation[T], *, write: bool) -> T:
        """Run an operation as one transaction."""


@dataclass(frozen=True, slots=True)
class Space:
    """A file's size.

    Attributes:
        page_size: Bytes of a page.
        pages: Pages of the database.
        free: Pages that hold nothing.
        incremental: Whether they can be returned without rewriting the file.
    """

    page_size: int
    pages: int
    free: int
    incremental: bool

    @property
    def used_bytes(self) -> int:
        """Bytes of the pages that hold something."""
        return (self.pages - self.free) * self.page_size


@operation
def measure() -> Op[Space]:
    """The file's size now."""
    [(page_size,)] = yield from fetch("PRAGMA page_size")
    [(pages,)] = yield from fetch("PRAGMA page_count")
    [(free,)] = yield from fetch("PRAGMA freelist_count")
    [(vacuum,)] = yield from fetch("PRAGMA auto_vacuum")
    return Space(page_size, pages, free, vacuum == _INCREMENTAL)


@operation
def used_bytes() -> Op[int]:
    """Bytes of the pages that hold something."""
    return (yield from measure()).used_bytes


@operation
def _release() -> Op[bool]:
    """Give some free pages back; whether there are more."""
    space = yield from measure()
    if not space.incremental or not space.free:
        return False
    for _ in range(min(space.free, PAGES_AT_ONCE)):
        # One at a time: Python's module runs a pragma without columns to its first page only.
        yield from fetch("PRAGMA incremental_vacuum(1)")
    return space.free > PAGES_AT_ONCE


def compaction(
    driver: Runner, alone: Callable[[str], Rows], *, full: bool
) -> Generator[None, None, int]:
    """Return free space to the file system, in steps; returns how many bytes.

    Args:
        driver: Runs operations.
        alone: Runs one statement outside any transaction.
        full: Rewrite the whole file.
    """
    if driver.run(needs_merge(), write=False):
        first = True
        while driver.run(merge_some(first=first), write=True):
            first = False
            yield
    before = driver.run(measure(), write=False)
    if full:
        alone("PRAGMA auto_vacuum = INCREMENTAL")
        alone("VACUUM")
        yield
    else:
        # Checked first: a database without free space is not locked for it.
        while before.free and driver.run(_release(), write=True):
            yield
    after = driver.run(measure(), write=False)
    _truncate_log(alone)
    return max(0, before.pages * before.page_size - after.pages * after.page_size)


def _truncate_log(alone: Callable[[str], Rows]) -> None:
    """Empty the write-ahead log, unless a reader still needs it.

    Then nobody waits, and it is emptied another time.
    """
    [(timeout,)] = alone("PRAGMA busy_timeout")
    alone("PRAGMA busy_timeout = 0")
    try:
        alone("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        alone(f"PRAGMA busy_timeout = {timeout}")
