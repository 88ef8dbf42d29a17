"""The doctor: reads all of a database, computes again what is derived, and says what does not hold.

It reads in small steps, so that others continue working, and builds nothing that a row names. With
`fix` it writes again, thread by thread, what follows from other rows, and never a word of a
conversation.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from langgraph.checkpoint.serde.base import SerializerProtocol

from langmem_ext.checkpointer.values import WAITING_CHANNEL
from langmem_ext.log.message_log import Database, MessageLog, existing, is_address
from langmem_ext.maintenance.row_reader import Contents
from langmem_ext.messages.token_costs.stored_tokens import COUNTER
from langmem_ext.storage.driver import Running, Steps
from langmem_ext.storage.inspect.examine import Examination, Report
from langmem_ext.storage.rows.clock import now_ms
from langmem_ext.store.examination import examine_store

Progress: TypeAlias = Callable[[int, int], None]


def examine(
    source: Database,
    *,
    fix: bool = False,
    serde: SerializerProtocol | None = None,
    progress: Progress | None = None,
) -> Report:
    """Check all rows of a database, and compare derived columns with what they are derived from.

    Args:
        source: The database. One that is named by a path or URL must be there; it is opened for
            reading alone, unless it is to be repaired.
        fix: Repair what can be derived from other rows: counters, totals, readable columns, rows of
            no thread. Damaged rows are not changed, and nothing is written if SQLite finds the
            pages of the file damaged.
        serde: The custom serializer that wrote the database, if any; not needed for a saver.
        progress: Called with the numbers of examined and of all threads.

    Raises:
        StorageError: The database cannot be opened, or not be written although it is to be
            repaired.
    """
    log = _open(source, fix)
    try:
        return Running(log.driver, _steps(_examination(source, serde), fix, progress)).finish()
    finally:
        log.caches.forget()
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
        return await Running(
            log.driver, _steps(_examination(source, serde), fix, progress)
        ).afinish()
    finally:
        log.caches.forget()
        if is_address(source):
            await log.aclose()


def _steps(examination: Examination, fix: bool, progress: Progress | None) -> Steps[Report]:
    """Look at the threads, then at the store."""
    report = yield from examination.steps(fix=fix, progress=progress)
    damaged = any(finding.kind == "file" for finding in report.findings)
    store = yield from examine_store(fix=fix and not damaged)
    return replace(report, findings=(*report.findings, *store.findings), store_items=store.items)


def _open(source: Database, fix: bool) -> MessageLog:
    return (
        MessageLog.open(existing(source, read_only=not fix), own=True)
        if is_address(source)
        else MessageLog.of(source)
    )


def _examination(source: Database, serde: SerializerProtocol | None) -> Examination:
    contents = Contents(serde if serde is not None else getattr(source, "serde", None))
    return Examination(contents, counter=COUNTER, waiting_channel=WAITING_CHANNEL, now=now_ms())
