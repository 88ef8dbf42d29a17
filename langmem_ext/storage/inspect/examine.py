"""The steps of an examination: which operations run, in which order, and how failures are handled.

Like an operation it is a generator and does no I/O; unlike one it takes many transactions, each
short, so that others go on working.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langmem_ext.errors import StorageError
from langmem_ext.storage.cache import ThreadCache
from langmem_ext.storage.driver import Steps
from langmem_ext.storage.inspect import derive as derive_ops
from langmem_ext.storage.inspect import read as inspect_ops
from langmem_ext.storage.inspect import sql
from langmem_ext.storage.inspect.findings import MOST, Finding, Findings
from langmem_ext.storage.inspect.read import Contents, Cursor, Examined, Table
from langmem_ext.storage.inspect.search import KIND, examine_index, examine_words, repair_words
from langmem_ext.storage.inspect.size_limits import find_large, read_together
from langmem_ext.storage.operation import fetch, fetch_one, operation

Progress: TypeAlias = Callable[[int, int], None]
PAGE: Final = 256
"""Rows that one step reads."""

NEEDS: Final = 16
"""Values that one step puts together."""

TRIES: Final = 3
"""How often a thread is looked at from which others delete meanwhile."""

BEFORE_ALL: Final = -(1 << 62)

RESTORE: Final = "restore the file from a copy"


@dataclass(frozen=True, slots=True)
class Report:
    """The result of an examination.

    Attributes:
        findings: All findings: of the file first, then thread by thread.
        threads: How many threads were examined.
        checkpoints, items: How many checkpoints and messages they have that can be read.
        store_items: How many items of the long-term store can be read.
    """

    findings: tuple[Finding, ...]
    threads: int
    checkpoints: int
    items: int
    store_items: int = 0

    @property
    def ok(self) -> bool:
        """Whether nothing is damaged, and nothing wrong is left unrepaired."""
        return all(finding.severity == "note" or finding.fixed for finding in self.findings)


@dataclass(frozen=True, slots=True)
class Examination:
    """One examination of a database.

    Args:
        contents: Decodes rows.
        counter: Name of the counter that token counts can be compared with.
        waiting_channel: The channel whose value, a name, a thread's row shows.
        now: Unix milliseconds.
    """

    contents: Contents
    counter: str
    waiting_channel: str
    now: int

    def steps(self, *, fix: bool, progress: Progress | None) -> Steps[Report]:
        """Examine the whole database.

        Args:
            fix: Repair what follows from other rows.
            progress: Called with the number of examined threads, and of all threads.

        Raises:
            MissingExtra: Something is compressed, and there is no zstd.
        """
        with suppress(StorageError):
            yield inspect_ops.require_zstd(), False
        findings = [*(yield from _examine_file())]
        fix = fix and not findings  # writing into damaged pages may damage more
        findings += yield from self._examine_orphans(fix)
        findings += yield from examine_index(self.contents.codec, fix=fix)
        counted = False
        with suppress(StorageError):
            counted = (yield operation(fetch_one)(sql.SELECT_COUNTER_NAME), False) == (
                self.counter,
            )
        threads, checkpoints, items = 0, 0, 0
        numbers = yield from _thread_numbers(findings)
        for number in numbers:
            thread = yield from self._examine_thread(number, counted)
            if thread is not None:
                findings += yield from self._conclude(thread, fix)
                checkpoints, items = checkpoints + len(thread.parents), items + len(thread.items)
            threads += 1
            if progress is not None:
                progress(threads, len(numbers))
        return Report(tuple(findings), threads, checkpoints, items)

    def thread_steps(self, number: int, *, fix: bool) -> Steps[tuple[Finding, ...]]:
        """Examine one thread; its findings.

        Args:
            number: The thread's number.
            fix: Repair what follows from other rows.
        """
        thread = yield from self._examine_thread(number, True)
        return () if thread is None else tuple((yield from self._conclude(thread, fix)))

    def _conclude(self, thread: Examined, fix: bool) -> Steps[Iterable[Finding]]:
        """A thread's findings, after the repair if `fix` is set."""
        fixed = False
        if fix and thread.findings.fixable:
            try:
                yield (
                    derive_ops.repair_thread(
                        thread.number, thread.repairs, self.contents, self.waiting_channel
                    ),
                    True,
                )
                if thread.findings.has(KIND):
                    yield repair_words(thread.number, self.contents.codec), True
                fixed = True
            except StorageError as error:
                thread.findings.add(
                    "thread",
                    "damaged",
                    f"thread {thread.number}",
                    f"cannot be repaired ({error}): {RESTORE}",
                )
        return thread.findings.reported(fixed=fixed)

    def _examine_orphans(self, fix: bool) -> Steps[Iterable[Finding]]:
        """Rows that belong to no thread.

        With `fix`, a conversation among them gets a thread again, and other rows are deleted.
        """
        tables: dict[int, list[str]] = {}
        findings = Findings(None)
        last = 0
        for table in sql.NEXT_OWNERS:
            first: int | None = BEFORE_ALL
            try:
                last = yield derive_ops.last_number(), False
                while first is not None:
                    orphans, first = yield derive_ops.find_orphans(table, first, last), False
                    for number in orphans:
                        tables.setdefault(number, []).append(table)
            except StorageError as error:
                findings.add(
                    "orphan",
                    "damaged",
                    table,
                    f"rows without a thread cannot be listed ({error}): {RESTORE}",
                )
        for number, names in sorted(tables.items()):
            possible = 0 < number <= last
            kept = not {"item", "checkpoint"}.isdisjoint(names)
            if fix and possible:
                yield (
                    (
                        derive_ops.adopt(number, self.now)
                        if kept
                        else derive_ops.delete_orphans(number)
                    ),
                    True,
                )
            remedy = (
                f"they can be recovered as the thread 'recovered-{number}'"
                if kept
                else "they are useless without it and can be deleted"
            )
            message = (
                f"rows of {', '.join(names)} belong to thread number {number}, which has no row:"
                f" {remedy}"
            )
            findings.add(
                "orphan",
                "wrong" if possible else "damaged",
                f"{names[0]} {number}",
                message,
                fixable=possible,
            )
        return findings.reported(fixed=fix)

    def _examine_thread(self, number: int, counted: bool) -> Steps[Examined | None]:
        """One thread; None if it is gone."""
        thread: Examined | None = None
        for _ in range(TRIES):
            try:
                row = yield derive_ops.read_thread(number), False
                if row is None:
                    return None
                thread = _new(number, row, counted)
                yield from self._examine_tables(thread)
                yield from examine_words(thread, self.contents.codec)
                generation = yield (
                    derive_ops.compare_thread(thread, self.contents, self.waiting_channel),
                    False,
                )
            except StorageError as error:
                thread = thread if thread is not None else _new(number, {}, counted)
                thread.findings.add(
                    "thread", "damaged", f"thread {number}", f"cannot be read ({error}): {RESTORE}"
                )
                return thread
            if generation is None:
                return None
            if generation == thread.generation:
                break
        return thread

    def _examine_tables(self, thread: Examined) -> Steps[None]:
        """All that a thread has: first what refers, then what is referred to."""
        hidden = self.contents.hidden
        for table in inspect_ops.TABLES:
            at: Cursor | None = table.start(thread)
            limit = PAGE
            while at is not None:
                try:
                    at = yield table.page(thread, self.contents, at, limit), False
                except StorageError as error:
                    # One by one, to find the row; then past it, if its key at least can be read.
                    at = at if limit > 1 else (yield from _skip(table, thread, at, error))
                    limit = 1 if limit > 1 else PAGE
        needs = [need for need in thread.uses if need.rows]
        for start in range(0, len(needs), NEEDS):
            yield inspect_ops.read_needs(thread, self.contents, needs[start : start + NEEDS]), False
        left = MOST
        for place in find_large(thread):
            if left:
                left -= yield read_together(thread, self.contents, *place), False
        derive_ops.conclude(thread)
        if self.contents.hidden > hidden:
            message = (
                f"{self.contents.hidden - hidden} rows were written by a custom serializer: pass it"
                " to check them, too"
            )
            thread.findings.add("foreign", "note", f"thread {thread.number}", message)


def _examine_file() -> Steps[Iterable[Finding]]:
    """SQLite's own check: of its pages, and of what it stores twice."""
    findings = Findings(None)
    try:
        rows = yield operation(fetch)(sql.INTEGRITY_CHECK), False
    except StorageError as error:
        rows = [(str(error),)]
    for (message,) in rows:
        if message != "ok":
            findings.add(
                "file",
                "damaged",
                "the file",
                f"{message}: {RESTORE}, or copy what can be read; nothing was repaired",
            )
    return findings.reported(fixed=False)


def _thread_numbers(findings: list[Finding]) -> Steps[list[int]]:
    numbers: list[int] = []
    last: int | None = BEFORE_ALL
    try:
        while last is not None:
            rows = yield operation(fetch)(sql.SELECT_THREAD_PAGE, after=last, limit=PAGE), False
            numbers += [number for (number,) in rows]
            last = numbers[-1] if len(rows) == PAGE else None
    except StorageError as error:
        findings.append(
            Finding(
                "thread",
                "damaged",
                None,
                (),
                "thread",
                f"the threads that follow cannot be read ({error}): {RESTORE}",
            )
        )
    return numbers


def _new(number: int, row: Mapping[str, Any], counted: bool) -> Examined:
    name, generation = row.get("id"), row.get("generation")
    items, values = row.get("next_item"), row.get("next_value")
    return Examined(
        number,
        generation if isinstance(generation, int) else 0,
        (items if isinstance(items, int) else 0, values if isinstance(values, int) else 0),
        ThreadCache(number),
        Findings(name if isinstance(name, str) else f"number {number}"),
        counted,
    )


def _skip(table: Table, thread: Examined, at: Cursor, error: StorageError) -> Steps[Cursor | None]:
    """Skip the row after `at`, which cannot be read; None if its key cannot be read either."""
    key: Cursor | None = None
    with suppress(StorageError):
        key = yield table.key(thread, at), False
    if key is None:
        thread.unread.add(table.name)
    elif table.name in ("item", "value"):
        thread.broken.add((table.name, key[0]))
    place = f"{table.name} of {thread.number}" if key is None else table.place(thread, key)
    message = f"cannot be read ({error}): {inspect_ops.NEXT_STEP}"
    thread.findings.add(
        table.name,
        "damaged",
        place,
        message,
        checkpoints=table.affected(thread, key) if key is not None else (),
    )
    return key
