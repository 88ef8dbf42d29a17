"""The doctor: reads all of a database, computes again what is derived, and says what does not hold.

It reads in small steps, so that others go on working, and builds nothing that a row names. With `fix` it writes again, thread by thread,
what follows from other rows, and never a word of a conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeAlias

from langgraph.checkpoint.serde.base import SerializerProtocol

from langmem_ext.log import Database, MessageLog, existing, is_address
from langmem_ext.maintenance.row_reader import Contents
from langmem_ext.messages.stored_tokens import COUNTER
from langmem_ext.packing import WAITING_CHANNEL
from langmem_ext.storage.clock import now_ms
from langmem_ext.storage.examination import Examination, Report
from langmem_ext.storage.steps import Running

Progress: TypeAlias = Callable[[int, int], None]


def examine(
    source: Database,
    *,
    fix: bool = False,
    serde: SerializerProtocol | None = None,
    progress: Progress | None = None,
) -> Report:
    """Read all of a database, and compare what is derived with what it is derived from.

    Args:
        source: The database. One that is named by a path or URL must be there; it is opened for
            reading alone, unless it is to be repaired.
        fix: Put right what follows from other rows: counters, totals, readable columns, rows of no thread. What is damaged stays as it is,
            and nothing is written where SQLite finds the file's own pages damaged.
        serde: The serializer that wrote the database, if it was one of the application's own; a saver's is known.
        progress: Called with how many threads were examined, and how many there are.

    Raises:
        StorageError: The database cannot be opened, or not be written although it is to be repaired.
    """
    log = _open(source, fix)
    try:
        return Running(log.driver, _examination(source, serde).steps(fix=fix, progress=progress)).finish()
    finally:
        log.indexes.forget()
        if is_address(source):
            log.close()


async def aexamine(
    source: Database,
    *,
    fix: bool = False,
    serde: SerializerProtocol | None = None,
    progress: Progress | None = None,
) -> Report:
    """Async twin of `examine`."""
    log = await asyncio.to_thread(_open, source, fix)
    try:
        return await Running(log.driver, _examination(source, serde).steps(fix=fix, progress=progress)).afinish()
    finally:
        log.indexes.forget()
        if is_address(source):
            await log.aclose()


def _open(source: Database, fix: bool) -> MessageLog:
    return MessageLog.open(existing(source, read_only=not fix), own=True) if is_address(source) else MessageLog.of(source)


def _examination(source: Database, serde: SerializerProtocol | None) -> Examination:
    contents = Contents(serde if serde is not None else getattr(source, "serde", None))
    return Examination(contents, counter=COUNTER, waiting_channel=WAITING_CHANNEL, now=now_ms())
