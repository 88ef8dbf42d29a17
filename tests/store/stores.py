"""Where the tests of the store get stores from: one open database, emptied for each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from langmem_ext import DeltaStore, MessageLog
from langmem_ext.storage.operation import Op, execute, operation


@operation
def empty() -> Op[None]:
    """Delete all items."""
    yield from execute("DELETE FROM store_thread")
    yield from execute("DELETE FROM store_vector")
    yield from execute("DELETE FROM store_item")


def maker(
    log: MessageLog, kind: type[DeltaStore] = DeltaStore
) -> Callable[..., AbstractContextManager[DeltaStore]]:
    """Makes stores that begin without items, one after the other, on one database."""

    @contextmanager
    def make(**options: Any) -> Iterator[DeltaStore]:
        log.run(empty(), write=True)
        yield kind(log, **options)

    return make
