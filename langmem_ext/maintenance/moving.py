"""Moves a thread from a `SaverFile` into a log: what is there is skipped, the rest is batched."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Final, TypeAlias

from langmem_ext.checkpointer.values import INPUT_CHANNEL
from langmem_ext.errors import DamagedRow, InvalidThreadId
from langmem_ext.log.message_log import MessageLog, thread_key
from langmem_ext.maintenance.transcoding import Ancestor, Transcoder, moment
from langmem_ext.storage.checkpoints import bulk as transfer_ops
from langmem_ext.storage.checkpoints import get as read_ops
from langmem_ext.storage.checkpoints.bulk import Moved, Places, TaskWrites
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.rows.clock import now_ms
from langmem_ext.storage.sqlite.saver_file import SaverFile
from langmem_ext.types import PackedValue, PackedWrite, StoredWrite, ThreadKey

BATCH: Final = 64
"""Checkpoints that are stored in one transaction, at most."""

BATCH_BYTES: Final = 16 * 1024 * 1024
"""Bytes of the source that are read for one transaction, about."""

TOGETHER: Final = 64
"""Threads that share round trips, at most."""

TOGETHER_ROWS: Final = 1024
"""Rows that they have, at most, where they are several."""

ANCESTORS: Final = 8
"""Of how many checkpoints the values are kept, to tell what a later one carries on; a missing one,
as at a fork, is read again."""

Place: TypeAlias = tuple[str, str]
"""A checkpoint's namespace and id."""


@dataclass(slots=True)
class Tally:
    """What has been done so far.

    Attributes:
        checkpoints, writes: What was stored.
        skipped: Checkpoints that were there.
        new, extended, there: Threads of which nothing was there, that got more, and that had all.
        damaged: What was left out, by name.
        left_out: Checkpoints that were left out whole or in part: thread, namespace and id.
    """

    checkpoints: int = 0
    writes: int = 0
    skipped: int = 0
    new: int = 0
    extended: int = 0
    there: int = 0
    damaged: list[str] = field(default_factory=list)
    left_out: set[tuple[str, str, str]] = field(default_factory=set)

    @contextmanager
    def thread(self) -> Iterator[None]:
        """Count the thread that is moved meanwhile; one of which all was left out is of no kind."""
        stored, skipped = self.checkpoints + self.writes, self.skipped
        yield
        if self.checkpoints + self.writes > stored:
            self.extended += self.skipped > skipped
            self.new += self.skipped == skipped
        else:
            self.there += self.skipped > skipped


def groups_of(names: Iterable[str], weigh: Callable[[str], int]) -> Iterator[list[str]]:
    """Threads that share round trips, in their order: few, or one, where they have much."""
    group: list[str] = []
    weight = 0
    for name in names:
        if group and (len(group) == TOGETHER or weight + weigh(name) > TOGETHER_ROWS):
            yield group
            group, weight = [], 0
        group.append(name)
        weight += weigh(name)
    if group:
        yield group


class Moving:
    """Moves one thread.

    Args:
        file: Where from.
        log: Where to.
        transcoder: Makes rows ready to be stored.
        thread: The thread's id.
        owner: The owner to set; None: no owner.
        tally: Where it is noted what was done.
        there: What is there of it already; None if it is to be asked for.
        skip_damaged: Whether what does not decode is left out, instead of being an error.
    """

    def __init__(
        self,
        file: SaverFile,
        log: MessageLog,
        transcoder: Transcoder,
        thread: str,
        owner: str | None,
        tally: Tally,
        there: Places | None = None,
        *,
        skip_damaged: bool,
    ) -> None:
        self._file = file
        self._log = log
        self._transcoder = transcoder
        self._codec = transcoder.codec
        self._thread = thread
        self._owner = owner
        self._tally = tally
        self._there = there
        self._skip_damaged = skip_damaged
        self._present: dict[Place, set[tuple[str, int]]] = {}
        self._ancestors: OrderedDict[Place, Ancestor | None] = OrderedDict()
        self._warm: set[str] = set()

    def steps(self) -> Iterator[int]:
        """Move it; gives the number of checkpoints that each step is done with.

        Raises:
            DamagedRow: A row does not decode; checkpoints before it were stored.
        """
        places = self._file.checkpoints(self._thread)
        try:
            key = ThreadKey(thread_key(self._thread), self._owner)
        except InvalidThreadId as error:
            self._leave_out(places, f"thread {self._thread!r}: {error}", error)
            yield len(places)
            return
        stored = self._there
        if stored is None:
            [stored] = self._log.run(
                transfer_ops.stored([key], caches=self._log.caches, codec=self._codec),
                write=False,
            )
        self._present = {
            place: {(task, write.index) for task, write in writes}
            for place, writes in stored.items()
        }
        wanted = self._file.places(self._thread)
        done, size, batch = 0, 0, list[Moved]()
        for place in places:
            done += 1
            try:
                moved, read = self._prepare(key, place, wanted.get(place, set()))
            except DamagedRow as error:
                self._leave_out([place], str(error), error)
                continue
            size += read
            batch += moved
            if len(batch) >= BATCH or size >= BATCH_BYTES:
                self._store(key, batch)
                yield done
                done, size, batch = 0, 0, []
        self._store(key, batch)
        yield done

    def _leave_out(self, places: Sequence[Place], what: str, error: Exception) -> None:
        if not self._skip_damaged:
            raise DamagedRow(
                f"{what}. What was imported before it stays. Import from an undamaged source, or"
                " skip such rows with skip_damaged (--skip-damaged)"
            ) from error
        self._tally.damaged.append(what)
        self._tally.left_out.update((self._thread, *place) for place in places)

    def _store(self, key: ThreadKey, batch: Sequence[Moved]) -> None:
        self._file.check_unchanged()
        if not batch:
            return
        self._log.run(
            transfer_ops.store_moved(key, batch, caches=self._log.caches, codec=self._codec),
            write=True,
        )
        self._tally.checkpoints += sum(moved.packed is not None for moved in batch)
        self._tally.writes += sum(
            len(task_writes.writes) for moved in batch for task_writes in moved.writes
        )

    # -- one checkpoint ----------------------------------------------------------------------------

    def _prepare(
        self, key: ThreadKey, place: Place, wanted: set[tuple[str, int]]
    ) -> tuple[list[Moved], int]:
        """What of a checkpoint is to be stored, and how many bytes were read for it."""
        if place in self._present:
            self._tally.skipped += 1
            return self._further_writes(key, place, wanted), 0
        row = self._file.checkpoint(self._thread, *place)
        if row is None:
            return [], 0
        packed, own = self._transcoder.checkpoint(
            row, self._ancestor(key, (row.namespace, row.parent)) if row.parent else None
        )
        self._remember(place, own)
        sent = packed.values.get(INPUT_CHANNEL)
        messages = sent.messages if isinstance(sent, PackedValue) else ()
        named = any(self._codec.id_of(message) is not None for message in messages)
        return [
            Moved(
                *place,
                packed,
                self._writes(place) if wanted else (),
                moment(packed.header.ts),
                named,
            )
        ], len(row.blob)

    def _ancestor(self, key: ThreadKey, parent: Place) -> Ancestor | None:
        """What a checkpoint's parent holds; None if there is none, or it does not decode."""
        if parent in self._present and parent[0] not in self._warm:
            # What an earlier run has stored: its messages must be known, or they would be stored
            # again.
            self._warm.add(parent[0])
            self._stored_writes(key, parent)
        if parent not in self._ancestors:
            try:
                row = self._file.checkpoint(self._thread, *parent)
                self._remember(
                    parent, None if row is None else self._transcoder.checkpoint(row, None)[1]
                )
            except DamagedRow:
                self._remember(parent, None)
        self._ancestors.move_to_end(parent)
        return self._ancestors[parent]

    def _remember(self, place: Place, ancestor: Ancestor | None) -> None:
        self._ancestors[place] = ancestor
        if len(self._ancestors) > ANCESTORS:
            self._ancestors.popitem(last=False)

    # -- pending writes ----------------------------------------------------------------------------

    def _writes(self, place: Place) -> list[TaskWrites]:
        """A checkpoint's pending writes, those of one task and path together."""
        tasks: list[TaskWrites] = []
        for (path, task), rows in groupby(
            self._file.writes(self._thread, *place), key=lambda row: (row.path, row.task)
        ):
            writes: list[PackedWrite] = []
            for row in rows:
                try:
                    writes.append(self._transcoder.write(row))
                except DamagedRow as error:
                    self._leave_out(
                        [place], f"checkpoint {place[1]} of thread {self._thread!r}: {error}", error
                    )
            if writes:
                tasks.append(TaskWrites(task, path, writes))
        return tasks

    def _further_writes(
        self, key: ThreadKey, place: Place, wanted: set[tuple[str, int]]
    ) -> list[Moved]:
        """Writes that the source has got since its checkpoint was stored.

        New ones, and special ones (of negative index) that were replaced.
        """
        there = self._present[place]
        if wanted <= there and all(index >= 0 for _, index in wanted):
            return []
        stored = (
            self._stored_writes(key, place) if any(index < 0 for _, index in wanted & there) else ()
        )
        known = {(write.task, write.channel): self._plain(write.value) for write in stored}
        tasks: list[TaskWrites] = []
        for task in self._writes(place):
            writes = [
                candidate
                for candidate in task.writes
                if (task.task, candidate.index) not in there
                or (
                    candidate.index < 0
                    and self._plain(candidate.value) != known.get((task.task, candidate.channel))
                )
            ]
            if writes:
                tasks.append(replace(task, writes=writes))
        return [Moved(*place, None, tasks, now_ms())] if tasks else []

    def _stored_writes(self, key: ThreadKey, place: Place) -> Sequence[StoredWrite]:
        op = Operation(
            read_ops.get_checkpoint, key, *place, caches=self._log.caches, codec=self._codec
        )
        stored = self._log.run(op, write=False)
        return () if stored is None else stored.writes

    def _plain(self, value: PackedValue) -> bytes:
        """A value's own bytes, wherever its texts and messages are."""
        return self._codec.pack_plain(self._codec.load_value(value))
