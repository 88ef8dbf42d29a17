"""Threads on their way in, from JSON lines.

Everything is read and looked at before anything is stored: each line must be as an export writes
it, and each thread must be one in which the doctor finds nothing that does not hold. Meanwhile the
threads are in a database of the import's own. Then each is stored in one transaction, and small
ones together. Nothing is built that the file names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, Final, NoReturn
from uuid import uuid4

from langmem_ext.checkpointer.values import WAITING_CHANNEL
from langmem_ext.errors import DamagedRow, LangmemExtError, MalformedExport, StorageUnavailable
from langmem_ext.log.codec import MessageCodec
from langmem_ext.log.message_log import MessageLog
from langmem_ext.maintenance.moving import groups_of
from langmem_ext.maintenance.row_reader import Contents
from langmem_ext.messages.token_costs.stored_tokens import COUNTER
from langmem_ext.storage.driver import Running
from langmem_ext.storage.inspect.examine import Examination
from langmem_ext.storage.inspect.read import NEXT_STEP
from langmem_ext.storage.inspect.size_limits import LARGE
from langmem_ext.storage.operation import Row, Rows
from langmem_ext.storage.rows.clock import now_ms
from langmem_ext.storage.sqlite.driver import SqliteDriver
from langmem_ext.storage.threads import rows_in_out as transit_ops
from langmem_ext.storage.threads.rows_in_out import Arrival
from langmem_ext.storage.threads.rows_sql import TABLES, Table
from langmem_ext.threads.export.fields import Line, count_of, dumps, take, text_of
from langmem_ext.threads.export.files import GZIP, GZIP_MAGIC, Place, read_lines
from langmem_ext.threads.export.lines import (
    FORMAT,
    KINDS,
    VERSION,
    ThreadLines,
    read_thread,
    thread_line,
)
from langmem_ext.threads.export.writer import open_scratch, pages_of
from langmem_ext.types import ImportedThreads, ThreadKey

MAX_BYTES: Final = 1024**3
"""The default maximum size of a file, decompressed."""

MAX_LINE: Final = 64 * 1024**2
"""Bytes that a line may have, unless more are allowed."""

TOLD_EVERY: Final = 64
"""Lines between two steps."""


MAX_STRUCTURE: Final = 4 * 1024**2
"""The maximum number of a line's characters outside its texts: a list of empty lists takes 24 times
as much memory as it has characters."""

_TEXTS: Final = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')


@dataclass(slots=True)
class Arriving:
    """The thread whose lines are being read.

    Attributes:
        thread: Its own row by column.
        lines: Reads its lines.
        first: Number of its first line.
        digest: The digest of its lines so far.
        counts: Its rows so far, by their kind.
        table, rows: The table whose rows were read last, and the rows that are not stored yet.
        last: The position of the last row: the rank of its table, and its key.
    """

    thread: dict[str, Any]
    lines: ThreadLines
    first: int
    digest: Any
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    table: Table | None = None
    rows: list[Row] = field(default_factory=list)
    last: tuple[Any, ...] = (-1,)


class Import:
    """An import of threads.

    Args:
        log: The target database.
        owner: Their new owner; None for none, or with `keep_owners` for the file's.
        codec: Decides what a search may find of them.
        source: The file.
        keep_ids: Whether they keep their ids.
        keep_owners: Whether they keep their owners.
        max_bytes: The maximum size of the file, decompressed.
        max_line: The maximum bytes of a line.
    """

    def __init__(
        self,
        log: MessageLog,
        owner: str | None,
        codec: MessageCodec,
        source: Place,
        *,
        keep_ids: bool,
        keep_owners: bool,
        max_bytes: int,
        max_line: int,
    ) -> None:
        self._log = log
        self._owner = owner
        self._codec = codec
        self._source = source
        self._keep_ids = keep_ids
        self._keep_owners = keep_owners
        self._max_bytes = max_bytes
        self._max_line = max_line
        self._threads: dict[str, dict[str, int]] = {}  # their rows, by their kind
        self._arriving: Arriving | None = None
        self._ended = False

    def steps(self) -> Generator[None, None, ImportedThreads]:
        """Carry it out; it may be stopped between any two steps, and has stored whole threads then.

        Raises:
            MalformedExport: The file is invalid, or larger than is allowed; nothing was stored.
            ThreadNotFound: With `keep_ids`, a thread of one of these ids is another owner's;
                nothing was stored.
        """
        with closing(open_scratch()) as scratch:
            with read_lines(
                self._source, max_bytes=self._max_bytes, max_line=self._max_line
            ) as lines:
                yield from self._read(lines, scratch)
            return (yield from self._store(scratch))

    # -- reading -----------------------------------------------------------------------------------

    def _read(self, lines: Iterator[bytes], scratch: SqliteDriver) -> Iterator[None]:
        number = 0
        for number, body in enumerate(lines, start=1):
            try:
                text = body.decode()
                if len(text) > MAX_STRUCTURE and len(_TEXTS.sub("", text)) > MAX_STRUCTURE:
                    raise ValueError(
                        f"it has more than {MAX_STRUCTURE} characters besides its texts"
                    )
                line = json.loads(text, parse_constant=_refuse)
                if not isinstance(line, dict):
                    raise ValueError("it is not an object")
                if self._read_line(number, line, text, scratch) != text:
                    raise ValueError("it was not written by an export")
            except MalformedExport:
                raise
            except (
                ValueError,
                TypeError,
                KeyError,
                IndexError,
                OverflowError,
                RecursionError,
                DamagedRow,
            ) as error:
                raise MalformedExport(number, _reason(error, number)) from error
            if number % TOLD_EVERY == 0:
                yield
        if not self._ended:
            raise MalformedExport(number + 1, "the file ends too early: export again")

    def _read_line(self, number: int, line: Line, text: str, scratch: SqliteDriver) -> str:
        """Take a line; how an export would write it."""
        if self._ended:
            raise ValueError("there is data after the last line")
        if number == 1:
            return _read_header(line)
        match take(line, "kind", text_of):
            case "thread":
                return self._begin(number, line, text)
            case "end":
                return self._end(number, line, scratch)
            case "total":
                if self._arriving is not None or line.get("threads") != len(self._threads):
                    raise ValueError(
                        f"the file has {len(self._threads)} complete threads, but its last line"
                        " says otherwise"
                    )
                self._ended = True
                return dumps({"kind": "total", "threads": len(self._threads)})
        return self._take(line, text, scratch)

    def _begin(self, number: int, line: Line, text: str) -> str:
        if self._arriving is not None:
            raise ValueError("a thread starts before the previous one has ended")
        thread = read_thread(line)
        if thread["id"] in self._threads:
            raise ValueError(f"thread {thread['id']!r} appears twice")
        thread["number"] = len(self._threads) + 1
        self._arriving = Arriving(
            thread,
            ThreadLines(thread["number"], thread["epoch"]),
            number,
            sha256(f"{text}\n".encode()),
        )
        self._threads[thread["id"]] = self._arriving.counts
        return dumps(thread_line(thread))

    def _take(self, line: Line, text: str, scratch: SqliteDriver) -> str:
        """Take a row."""
        arriving = self._arriving
        if arriving is None:
            raise ValueError("it is outside of any thread")
        table, row = arriving.lines.read(line)
        place = (list(KINDS.values()).index(table), *row[1 : 1 + table.keys])
        if place <= arriving.last:
            raise ValueError("it is out of order")
        if table is not arriving.table or len(arriving.rows) >= transit_ops.PAGE:
            _flush(arriving, scratch)
        arriving.last, arriving.table = place, table
        arriving.rows.append(row)
        arriving.counts[line["kind"]] += 1
        arriving.digest.update(f"{text}\n".encode())
        return arriving.lines.write(table, row)

    def _end(self, number: int, line: Line, scratch: SqliteDriver) -> str:
        arriving = self._arriving
        if arriving is None:
            raise ValueError("it is outside of any thread")
        if line.get("rows") != arriving.counts or line.get("sha256") != arriving.digest.hexdigest():
            raise ValueError(
                "the checksum of the thread does not match: the file was changed or damaged"
            )
        _flush(arriving, scratch)
        scratch.run(transit_ops.store_thread(arriving.thread), write=True)
        _examine(arriving, number, scratch)
        self._arriving = None
        return dumps(
            {"kind": "end", "rows": arriving.counts, "sha256": arriving.digest.hexdigest()}
        )

    # -- storing -----------------------------------------------------------------------------------

    def _store(self, scratch: SqliteDriver) -> Generator[None, None, ImportedThreads]:
        ids = {name: name if self._keep_ids else str(uuid4()) for name in self._threads}
        new = (yield from self._missing(ids)) if self._keep_ids else list(ids)
        stored: dict[str, dict[str, int]] = {}
        for names in groups_of(new, lambda name: sum(self._threads[name].values())):
            stored |= {
                name: self._threads[name] for name in self._store_together(scratch, names, ids)
            }
            yield
        return ImportedThreads(
            ids={name: ids[name] for name in stored},
            skipped=tuple(name for name in ids if name not in stored),
            messages=sum(counts["message"] for counts in stored.values()),
            checkpoints=sum(counts["checkpoint"] for counts in stored.values()),
        )

    def _missing(self, ids: Iterable[str]) -> Generator[None, None, list[str]]:
        """The ids without a thread."""
        names, missing = list(ids), list[str]()
        for start in range(0, len(names), transit_ops.IDS):
            asked = names[start : start + transit_ops.IDS]
            there = self._log.run(
                transit_ops.find([ThreadKey(name, self._owner) for name in asked]), write=False
            )
            missing += [name for name, is_there in zip(asked, there, strict=True) if not is_there]
            yield
        return missing

    def _store_together(
        self, scratch: SqliteDriver, names: Sequence[str], ids: Mapping[str, str]
    ) -> list[str]:
        """Store threads in one transaction, or each by itself if that fails.

        So the threads before a refused one are stored.
        """
        arrivals = {name: self._arrival(scratch, name, ids) for name in names}
        try:
            return self._add(arrivals)
        except StorageUnavailable:
            raise  # each by itself would wait as long for the same
        except LangmemExtError:
            if len(names) == 1:
                raise
            return [
                stored
                for name, arrival in arrivals.items()
                for stored in self._add({name: arrival})
            ]

    def _add(self, arrivals: Mapping[str, Arrival]) -> list[str]:
        op = transit_ops.copy_in(
            list(arrivals.values()), now=now_ms(), caches=self._log.caches, codec=self._codec
        )
        return [
            name
            for name, added in zip(arrivals, self._log.run(op, write=True), strict=True)
            if added
        ]

    def _arrival(self, scratch: SqliteDriver, name: str, ids: Mapping[str, str]) -> Arrival:
        """A thread in the form in which it will be stored."""
        thread = scratch.run(transit_ops.read_thread(name), write=False)
        if ids[name] != name:
            scratch.run(transit_ops.rename(thread["number"], name, ids[name]), write=True)
        thread |= {
            "owner": thread["owner"] if self._keep_owners else self._owner,
            "forked_from": ids.get(thread["forked_from"], thread["forked_from"]),
        }
        return Arrival(
            ThreadKey(ids[name], self._owner), thread, partial(_rows, scratch, thread["number"])
        )


def _rows(scratch: SqliteDriver, number: int) -> Iterator[tuple[Table, Rows]]:
    for table in TABLES:
        for rows in pages_of(scratch, number, table):
            yield table, rows


def _read_header(line: Line) -> str:
    if line.get("format") != FORMAT:
        raise ValueError("this is not an export of threads")
    version = take(line, "version", count_of)
    if version > VERSION:
        raise ValueError("it was written by a newer release: upgrade langmem-ext to import it")
    return dumps(
        {"format": FORMAT, "version": version, "created_at": take(line, "created_at", text_of)}
    )


def _flush(arriving: Arriving, scratch: SqliteDriver) -> None:
    if arriving.table is not None and arriving.rows:
        scratch.run(transit_ops.store_rows(arriving.table, arriving.rows), write=True)
        arriving.rows = []


def _examine(arriving: Arriving, number: int, scratch: SqliteDriver) -> None:
    """Examine a thread as the doctor does; what follows from other rows is computed, not trusted.

    Raises:
        MalformedExport: The thread is inconsistent.
    """
    examination = Examination(
        Contents(), counter=COUNTER, waiting_channel=WAITING_CHANNEL, now=now_ms()
    )
    findings = Running(
        scratch, examination.thread_steps(arriving.thread["number"], fix=True)
    ).finish()
    for finding in findings:
        if (finding.severity != "note" or finding.kind == LARGE) and not finding.fixed:
            what = f"{finding.place} {finding.message.removesuffix(f': {NEXT_STEP}')}"
            raise MalformedExport(
                number, f"the thread starting in line {arriving.first} is inconsistent: {what}"
            )


def _reason(error: Exception, number: int) -> str:
    if isinstance(error, UnicodeDecodeError | json.JSONDecodeError):
        if number > 1:
            return "it is not JSON: the file was changed or damaged"
        packed = isinstance(error, UnicodeDecodeError) and error.object.startswith(GZIP_MAGIC)
        return (
            "this is not an export of"
            f" threads{f', or a compressed one, whose name ends in {GZIP}' if packed else ''}"
        )
    if isinstance(error, KeyError | IndexError | RecursionError):
        return "it is not a line of an export"
    if isinstance(error, DamagedRow):
        return f"it does not decode ({error.__cause__ or error})"
    return str(error) or "it is not a line of an export"


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
