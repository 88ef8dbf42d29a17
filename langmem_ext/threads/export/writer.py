"""The export of threads: as JSON lines, or as Markdown for people.

A thread is copied, in one read transaction, into a database of the export's own, and written from
there: it is consistent, no lock is held while a slow reader takes it, and it may be larger than the
memory.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Final, Literal, TypeAlias

from langmem_ext.errors import ThreadNotFound
from langmem_ext.log.codec import ForeignCodec, MessageCodec
from langmem_ext.log.message_log import MessageLog
from langmem_ext.log.restore import RestorePolicy
from langmem_ext.messages.manifest import ranges_of
from langmem_ext.messages.packed import fields_of, is_foreign
from langmem_ext.storage.cache import ThreadCache
from langmem_ext.storage.checkpoints import sql as statements
from langmem_ext.storage.checkpoints.lookup import read_word
from langmem_ext.storage.operation import Op, Row, Rows, fetch, operation
from langmem_ext.storage.rows.compression import expand
from langmem_ext.storage.rows.message import decode_item, require_item
from langmem_ext.storage.sqlite.driver import SqliteDriver
from langmem_ext.storage.threads import rows_in_out as transit_ops
from langmem_ext.storage.threads.list import ThreadFilter
from langmem_ext.storage.threads.rows_sql import Table
from langmem_ext.threads.export import markdown as thread_markdown
from langmem_ext.threads.export.fields import dumps
from langmem_ext.threads.export.files import Place, written
from langmem_ext.threads.export.lines import FORMAT, KINDS, VERSION, ThreadLines, thread_line
from langmem_ext.types import ExportedThreads, ThreadKey

Format: TypeAlias = Literal["jsonl", "markdown"]
FORMATS: Final[tuple[Format, ...]] = ("jsonl", "markdown")

Texts: TypeAlias = list[str]
"""Lines with their ends, a page of them."""


def open_scratch() -> SqliteDriver:
    """A private database that is deleted when it is closed or its process ends.

    Large data goes to a file.
    """
    return SqliteDriver("", synchronous="normal")


@dataclass(frozen=True, slots=True)
class Selection:
    """Which threads to export.

    Attributes:
        owner: Only this owner's threads; None for everybody's.
        ids: These threads, in this order; None for all that match `wanted`.
        wanted: The filter, if there are no ids.
    """

    owner: str | None
    ids: Sequence[str] | None
    wanted: ThreadFilter


class Export:
    """An export of threads.

    Args:
        log: The database.
        which: The threads.
        form: The format.
        codec: Reads what a custom serializer has written, for people.
        include_sensitive: Whether Markdown shows sensitive values. JSON lines always have them.
    """

    def __init__(
        self,
        log: MessageLog,
        which: Selection,
        form: Format,
        codec: MessageCodec,
        *,
        include_sensitive: bool,
    ) -> None:
        self._log = log
        self._which = which
        self._form = form
        self._codec = codec
        self._include_sensitive = include_sensitive
        self._threads = self._messages = self._checkpoints = 0

    def steps(self, place: Place) -> Generator[None, None, ExportedThreads]:
        """Write it to a place; what has been exported.

        Raises:
            InvalidInput: The place cannot be written; also what `pages` raises.
        """
        with written(place) as write:
            for page in self.pages():
                write("".join(page).encode())
                yield
        return ExportedThreads(self._threads, self._messages, self._checkpoints)

    def pages(self) -> Generator[Texts, None, None]:
        """Its lines, a page at a time.

        Raises:
            ThreadNotFound: A thread that was named is not there.
            DamagedRow: The checksum of a row does not match.
            MissingExtra: Something is compressed, and zstd is not installed.
        """
        tell = self._jsonl if self._form == "jsonl" else self._markdown
        with closing(open_scratch()) as scratch:
            if self._form == "jsonl":
                created = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
                yield [dumps({"format": FORMAT, "version": VERSION, "created_at": created}) + "\n"]
            for thread_id in self._ids():
                thread = self._copy(thread_id, scratch)
                if thread is not None:
                    self._threads += 1
                    yield from tell(thread, scratch)
                    scratch.run(transit_ops.drop(thread["number"]), write=True)
            if self._form == "jsonl":
                yield [dumps({"kind": "total", "threads": self._threads}) + "\n"]

    def _ids(self) -> Iterator[str]:
        if self._which.ids is not None:
            yield from dict.fromkeys(self._which.ids)
            return
        after = 0
        while rows := self._log.run(transit_ops.list_ids(self._which.wanted, after), write=False):
            for after, thread_id in rows:  # noqa: B007 - the next page begins after the last one
                yield thread_id

    def _copy(self, thread_id: str, scratch: SqliteDriver) -> dict[str, Any] | None:
        """Copy a thread; None if one that was not named has gone meanwhile."""

        def take(table: Table, rows: Rows) -> None:
            scratch.run(transit_ops.store_rows(table, rows), write=True)

        thread = self._log.run(
            transit_ops.copy_out(ThreadKey(thread_id, self._which.owner), take), write=False
        )
        if thread is None and self._which.ids is not None:
            raise ThreadNotFound(f"thread {thread_id!r} not found; see `langmem-ext threads list`")
        return thread

    # -- JSON lines --------------------------------------------------------------------------------

    def _jsonl(self, thread: dict[str, Any], scratch: SqliteDriver) -> Iterator[Texts]:
        lines, digest, counts = (
            ThreadLines(thread["number"], thread["epoch"]),
            sha256(),
            dict.fromkeys(KINDS, 0),
        )
        page = [dumps(thread_line(thread)) + "\n"]
        for kind, table in KINDS.items():
            for rows in pages_of(scratch, thread["number"], table):
                digest.update("".join(page).encode())
                yield page
                page = [lines.write(table, row) + "\n" for row in rows]
                counts[kind] += len(rows)
        digest.update("".join(page).encode())
        yield page
        self._messages += counts["message"]
        self._checkpoints += counts["checkpoint"]
        yield [dumps({"kind": "end", "rows": counts, "sha256": digest.hexdigest()}) + "\n"]

    # -- Markdown ----------------------------------------------------------------------------------

    def _markdown(self, thread: dict[str, Any], scratch: SqliteDriver) -> Iterator[Texts]:
        yield [("\n" if self._threads > 1 else "") + thread_markdown.heading(thread_line(thread))]
        number, cache = thread["number"], ThreadCache(thread["number"])
        native = MessageCodec(RestorePolicy(strict=True))
        for start, end in ranges_of(
            scratch.run(transit_ops.read_runs(number, native), write=False)
        ):
            for first in range(start, end, transit_ops.PAGE):
                last = min(first + transit_ops.PAGE, end)
                rows = scratch.run(_read_items(cache, first, last), write=False)
                yield [self._text_of(thread, row, keys, native) for row, keys in rows]
                self._messages += len(rows)

    def _text_of(
        self, thread: dict[str, Any], row: Row, keys: bytes | None, native: MessageCodec
    ) -> str:
        require_item(thread["number"], row)
        codec, seconds = native, thread["epoch"] + row[6]
        if row[2] is None and row[7] is not None and is_foreign(expand(row[7])):
            if not isinstance(self._codec, ForeignCodec):
                return thread_markdown.hidden(seconds)
            codec = self._codec
        packed, _ = decode_item(thread["number"], row, keys, codec)
        return thread_markdown.message(
            fields_of(packed), seconds, include_sensitive=self._include_sensitive
        )


def pages_of(scratch: SqliteDriver, number: int, table: Table) -> Iterator[Rows]:
    """The rows of a thread, a page at a time."""
    after: Row | None = None
    while rows := scratch.run(transit_ops.read_page(number, table, after), write=False):
        yield rows
        after = rows[-1]


@operation
def _read_items(cache: ThreadCache, first: int, last: int) -> Op[list[tuple[Row, bytes | None]]]:
    """Rows of messages, each with the word that its shape names."""
    items: list[tuple[Row, bytes | None]] = []
    for row in (
        yield from fetch(statements.SELECT_ITEMS, thread=cache.number, low=first, high=last)
    ):
        items.append((row, None if row[8] is None else (yield from read_word(cache, row[8]))))
    return items
