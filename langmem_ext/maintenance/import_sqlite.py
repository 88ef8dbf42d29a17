"""Imports the threads of a `SqliteSaver`'s database, whole and unchanged.

The source is read one checkpoint at a time, oldest first, and stored in batches of one transaction
each. So an import that is killed has stored some checkpoints whole and nothing of the others; run
again, it continues from there, and imports what the source has got since.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from langgraph.checkpoint.serde.base import SerializerProtocol

from langmem_ext._internal.collector import without_collector
from langmem_ext._internal.url import Address, text_of
from langmem_ext.checkpointer.validation import several
from langmem_ext.errors import DamagedRow, InvalidInput, InvalidThreadId, ThreadNotFound
from langmem_ext.log.codec import ForeignCodec, MessageCodec, codec_of
from langmem_ext.log.message_log import (
    Database,
    MessageLog,
    bound_owner,
    is_address,
    is_server,
    sqlite_path,
    thread_key,
)
from langmem_ext.log.restore import DataSerializer
from langmem_ext.maintenance.moving import Moving, Tally, groups_of
from langmem_ext.maintenance.transcoding import (
    ObjectReader,
    Reader,
    RowReader,
    StoringPolicy,
    Transcoder,
)
from langmem_ext.maintenance.verification import Verification
from langmem_ext.storage.checkpoints import bulk as transfer_ops
from langmem_ext.storage.checkpoints.bulk import Places
from langmem_ext.storage.sqlite.saver_file import SaverFile
from langmem_ext.types import ThreadKey


@dataclass(frozen=True, slots=True)
class ImportProgress:
    """Progress of an import.

    Attributes:
        thread: The current thread.
        done, total: Checkpoints of all imported threads.
        verifying: Whether the stored checkpoints are being compared.
    """

    thread: str
    done: int
    total: int
    verifying: bool = False


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of an import.

    Attributes:
        threads: Selected threads in the source.
        threads_new: Of these, threads that were not in the target.
        threads_extended: Threads that were in the target in part, and got checkpoints or writes.
        threads_there: Threads that were in the target as they are in the source.
        total: Checkpoints of these threads in the source: stored, existing, or skipped.
        checkpoints: Checkpoints stored.
        writes: Pending writes stored.
        skipped: Checkpoints that existed already.
        damaged: Skipped checkpoints and writes that cannot be decoded, by name.
        verified: Checkpoints that were compared with the source, and are identical.
        bytes_before: Size of the source.
        bytes_after: Size of the target, with all its contents.
        seconds: Duration, without the comparison.
    """

    threads: int = 0
    threads_new: int = 0
    threads_extended: int = 0
    threads_there: int = 0
    total: int = 0
    checkpoints: int = 0
    writes: int = 0
    skipped: int = 0
    damaged: tuple[str, ...] = ()
    verified: int = 0
    bytes_before: int = 0
    bytes_after: int = 0
    seconds: float = 0.0


Progress: TypeAlias = Callable[[ImportProgress], None]
Steps: TypeAlias = Generator[ImportProgress, None, ImportReport]


def import_checkpoints(
    source: Address,
    target: Database,
    *,
    owner: str | None = None,
    threads: Sequence[str] | None = None,
    serde: SerializerProtocol | None = None,
    skip_damaged: bool = False,
    verify: bool = False,
    compress: bool = False,
    own: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Import the threads of a `SqliteSaver` or `AsyncSqliteSaver`; every state reads as before.

    The source is opened for reading alone, and nothing about it changes. An interrupted import
    continues when it is run again; a repeated one imports what the source has got since. No class
    that the source names is built or needed: what a reader of the target may build is decided when
    it reads.

    Args:
        source: The path of the database.
        target: Where to; a URL or path names a database that is made if there is none.
        owner: Whose the threads will be. Default: the owner that the target is bound to, or nobody.
        threads: The ids of the threads to import; all, if not given.
        serde: The serializer that wrote the source, if it was a custom one.
        skip_damaged: Leave out what does not decode, and name it in the report, instead of ending
            with an error.
        verify: Compare every checkpoint in both databases afterwards.
        compress: Compress what is stored, where that saves a tenth (`MessageLog.open`). A log or
            saver has been opened with or without.
        own: A target that is named is this package's alone (`MessageLog.open`).
        progress: Called after each step.

    Raises:
        StorageUnavailable: The source is not there, or one of the two cannot be opened.
        NotADatabase: The source is not a database of langgraph-checkpoint-sqlite.
        InvalidInput: Source and target are the same, the source needs a `serde`, or `compress`
            comes with a target that is open.
        MissingExtra: Compression needs zstd, which is not installed.
        ThreadNotFound: A thread that was asked for is not in the source, or belongs to another
            owner in the target.
        DamagedRow: A row of the source does not decode. Whole checkpoints before it were stored.
        StorageError: The comparison has found a difference; the message says where.
    """
    steps = _Import(
        source,
        target,
        bound_owner(target, owner),
        threads,
        serde,
        skip_damaged=skip_damaged,
        verify=verify,
        compress=compress,
        own=own,
    ).steps()
    try:
        while isinstance(at := _advance(steps), ImportProgress):
            if progress is not None:
                progress(at)
        return at
    finally:
        steps.close()


async def aimport_checkpoints(
    source: Address,
    target: Database,
    *,
    owner: str | None = None,
    threads: Sequence[str] | None = None,
    serde: SerializerProtocol | None = None,
    skip_damaged: bool = False,
    verify: bool = False,
    compress: bool = False,
    own: bool = False,
    progress: Progress | None = None,
) -> ImportReport:
    """Async twin of `import_checkpoints`.

    It runs step by step in a worker thread; cancelling ends it after the current step.
    """
    steps = _Import(
        source,
        target,
        bound_owner(target, owner),
        threads,
        serde,
        skip_damaged=skip_damaged,
        verify=verify,
        compress=compress,
        own=own,
    ).steps()
    step: asyncio.Future[ImportProgress | ImportReport] | None = None
    try:
        while True:
            step = asyncio.ensure_future(asyncio.to_thread(_advance, steps))
            at = await asyncio.shield(step)
            if isinstance(at, ImportReport):
                return at
            if progress is not None:
                progress(at)
    finally:
        if step is not None:
            await asyncio.wait([step])
        await asyncio.to_thread(steps.close)


def _advance(steps: Steps) -> ImportProgress | ImportReport:
    try:
        return without_collector(next, steps)
    except StopIteration as done:
        report: ImportReport = done.value
        return report


class _Import:
    """One import."""

    def __init__(
        self,
        source: Address,
        target: Database,
        owner: str | None,
        threads: Sequence[str] | None,
        serde: SerializerProtocol | None,
        *,
        skip_damaged: bool,
        verify: bool,
        compress: bool,
        own: bool,
    ) -> None:
        self._source = source
        self._target = text_of(target) if is_address(target) else target
        self._owner = owner
        self._threads = threads
        self._serde = serde
        self._skip_damaged = skip_damaged
        self._verify = verify
        self._compress = compress
        self._own = own

    def steps(self) -> Steps:
        """Carry it out; it may be interrupted between any two steps."""
        began = time.monotonic()
        file = SaverFile(self._source)
        try:
            threads = self._chosen(file)
            log = self._open(file)
            try:
                return (yield from self._move(file, log, threads, began))
            finally:
                if is_address(self._target):
                    log.close()
        finally:
            file.close()

    def _move(self, file: SaverFile, log: MessageLog, threads: list[str], began: float) -> Steps:
        total, done, tally = sum(file.threads[thread] for thread in threads), 0, Tally()
        transcoder, owner = self._transcoder(), self._owner
        for group in groups_of(threads, file.threads.__getitem__):
            there = self._stored(log, transcoder, group, owner)
            for thread in group:
                moving = Moving(
                    file,
                    log,
                    transcoder,
                    thread,
                    owner,
                    tally,
                    there.get(thread),
                    skip_damaged=self._skip_damaged,
                )
                with tally.thread():
                    for count in moving.steps():
                        done += count
                        yield ImportProgress(thread, done, total)
        seconds, verified = time.monotonic() - began, 0
        for thread in threads if self._verify else ():
            for count in Verification(
                file, log, self._reader(), self._codec(), thread, owner
            ).steps(tally.left_out):
                verified += count
                yield ImportProgress(thread, verified, total, verifying=True)
        return ImportReport(
            threads=len(threads),
            threads_new=tally.new,
            threads_extended=tally.extended,
            threads_there=tally.there,
            total=total,
            checkpoints=tally.checkpoints,
            writes=tally.writes,
            skipped=tally.skipped,
            damaged=tuple(tally.damaged),
            verified=verified,
            bytes_before=file.size,
            bytes_after=log.run(transfer_ops.size(), write=False),
            seconds=seconds,
        )

    def _stored(
        self, log: MessageLog, transcoder: Transcoder, threads: list[str], owner: str | None
    ) -> dict[str, Places]:
        """What the target has of some threads; empty if one of them cannot be listed.

        Each is then read by itself.
        """
        try:
            keys = [ThreadKey(thread_key(thread), owner) for thread in threads]
            stored = log.run(
                transfer_ops.stored(keys, caches=log.caches, codec=transcoder.codec), write=False
            )
        except (InvalidThreadId, DamagedRow):
            return {}
        return dict(zip(threads, stored, strict=True))

    def _chosen(self, file: SaverFile) -> list[str]:
        if self._threads is None:
            chosen = list(file.threads)
        else:
            chosen = list(
                dict.fromkeys(several(self._threads, "thread ids", "threads=[thread_id]"))
            )
        if missing := [thread for thread in chosen if thread not in file.threads]:
            raise ThreadNotFound(
                f"thread {missing[0]!r} not found in {file.path}, which has {len(file.threads)},"
                " and nothing was imported"
            )
        return chosen

    def _open(self, file: SaverFile) -> MessageLog:
        if self._compress and not is_address(self._target):
            raise InvalidInput(
                "the target is open already: open it with compress=True instead of passing compress"
            )
        same = "source and target are the same file: pass another target"
        if is_address(self._target):
            if not is_server(self._target) and str(
                Path(sqlite_path(self._target)[0]).resolve()
            ) == str(file.path):
                raise InvalidInput(same)
            return MessageLog.open(self._target, compress=self._compress, own=self._own)
        log = MessageLog.of(self._target)
        if getattr(log.driver, "path", None) == str(file.path):
            raise InvalidInput(same)
        return log

    def _transcoder(self) -> Transcoder:
        codec = self._codec()
        return Transcoder(
            self._reader(),
            codec if isinstance(codec, ForeignCodec) else MessageCodec(StoringPolicy()),
        )

    def _codec(self) -> MessageCodec:
        """The target's."""
        codec = getattr(self._target, "codec", None)
        return codec if isinstance(codec, MessageCodec) else codec_of(DataSerializer())

    def _reader(self) -> Reader:
        """The reader of the source's rows.

        It builds objects only if a serializer other than LangGraph's takes part.
        """
        own = self._serde is None or isinstance(self._serde, DataSerializer)
        if own and not isinstance(self._codec(), ForeignCodec):
            return RowReader()
        return ObjectReader(self._serde or DataSerializer())
