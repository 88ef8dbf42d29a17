"""What a process expects of those rows of a thread that change: they are as it left them, unless another process has written meanwhile.

A runner whose database is far away goes on with what a statement is expected to return (`Statement.expected`), and runs the operation again
where that was wrong. So what is remembered here may be out of date, unlike what an index knows: it is used for expectations alone.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Final, final

from langmem_ext.storage.effects import Row, Rows

STORED: Final[Rows] = ((1,),)
"""What a statement returns that stores one row and says so."""

NONE: Final[Rows] = ()
"""What a statement returns that finds nothing, or changes rows and returns none of them."""

NAMESPACES: Final = 256
"""Of how many namespaces of a thread the newest checkpoint is remembered."""

CHECKPOINTS: Final = 64
"""Of how many checkpoints the pending writes are remembered."""

MISSING: Final = 1024
"""How many threads are remembered that were not found."""

ITEMS: Final = 256
"""How many items are remembered that may still change."""

NOTED: Final = 256
"""Of how many message ids the newest item is remembered, as the search index has it."""

NOTED_BYTES: Final = 150
"""What such an id costs, about."""

EXPECTATIONS_BYTES: Final = 2000
"""What a thread's expectations cost that hold nothing, about."""

ROW_BYTES: Final = 250
"""What a row costs in memory beyond its columns, about."""


@final
@dataclass(slots=True)
class Expectations:
    """What is expected of one thread's rows.

    Attributes:
        id, number, generation: The thread's.
        row: Its own row (`statements.SELECT_THREAD`).
        waiting: The parameter that its row says it waits for, in a tuple; None where that is not known.
        newest: The newest checkpoint's row (`statements.CHECKPOINT_COLUMNS`) by namespace; None for one that has no checkpoint.
        written: Rows of pending writes (`statements.WRITE_COLUMNS`) by task, by namespace and checkpoint; all that there are.
        items: Rows (`statements.ITEM_BODY`) of items that may still get an id, or become a message, by number.
        noted: What the search index has noted (`search_statements.SELECT_NEWEST`), by message id.
        size: Bytes held, about; `accounted` is the part that the bound of all threads knows of.
        forgotten: Whether whoever still works with them is the last to do so.
    """

    id: str
    number: int
    generation: int
    row: Row
    waiting: tuple[str | None] | None = None
    newest: OrderedDict[int, Row | None] = field(default_factory=OrderedDict)
    written: OrderedDict[tuple[int, bytes], dict[bytes, Row]] = field(default_factory=OrderedDict)
    items: OrderedDict[int, Row] = field(default_factory=OrderedDict)
    noted: OrderedDict[bytes, Row] = field(default_factory=OrderedDict)
    size: int = EXPECTATIONS_BYTES
    accounted: int = 0
    forgotten: bool = False

    def reset(self, generation: int) -> None:
        """Forget all but the thread's own row: other rows were replaced or deleted."""
        self.generation = generation
        self.waiting = None
        self.newest.clear()
        self.written.clear()
        self.items.clear()
        self.noted.clear()
        self.size = EXPECTATIONS_BYTES

    # -- checkpoints ---------------------------------------------------------------------------------------------------------------------

    def newest_row(self, space: int) -> Rows | None:
        """The newest checkpoint of a namespace, as a statement returns it; None where nothing is expected."""
        if space not in self.newest:
            return None
        row = self.newest[space]
        return NONE if row is None else (row,)

    def checkpoint_row(self, space: int, checkpoint: bytes) -> Rows | None:
        """A checkpoint, as a statement returns it, if it is its namespace's newest; None where nothing is expected."""
        row = self.newest.get(space)
        return (row,) if row is not None and row[0] == checkpoint else None

    def newest_id(self, space: int) -> Rows | None:
        """The id and the key alone."""
        if space not in self.newest:
            return None
        row = self.newest[space]
        return NONE if row is None else ((row[0], row[-2]),)

    def learn_newest(self, space: int, row: Row | None) -> None:
        """Expect this row to be the newest checkpoint of a namespace, or that it has none."""
        self.size += _size_of(row) - _size_of(self.newest.pop(space, None))
        self.newest[space] = row
        if len(self.newest) > NAMESPACES:
            self.size -= _size_of(self.newest.popitem(last=False)[1])

    # -- pending writes ------------------------------------------------------------------------------------------------------------------

    def written_by(self, space: int, checkpoint: bytes, task: bytes) -> Rows | None:
        """A task's pending writes, as a statement returns them; None where nothing is expected."""
        row = self.written.get((space, checkpoint), {}).get(task)
        return None if row is None else (row,)

    def storing_writes(self, space: int, checkpoint: bytes, task: bytes) -> Rows | None:
        """What comes of storing a task's pending writes where it has none; None where nothing is expected."""
        known = self.written.get((space, checkpoint))
        if known is not None:
            return NONE if task in known else STORED
        return STORED if self._is_ahead(space, checkpoint) else None

    def learn_written(self, row: Row) -> None:
        """Expect a task's pending writes to be this row."""
        space, checkpoint, task, *_ = row
        known = self.written.get((space, checkpoint))
        if known is None:
            if not self._is_ahead(space, checkpoint):
                return
            known = self.begin_writes(space, checkpoint)
        self.size += _size_of(row) - _size_of(known.get(task))
        known[task] = row

    def learn_all_written(self, space: int, checkpoint: bytes, rows: Rows) -> None:
        """Expect these rows to be all pending writes of a checkpoint."""
        known = self.begin_writes(space, checkpoint)
        self.size += sum(map(_size_of, rows)) - sum(map(_size_of, known.values()))
        known.clear()
        known.update((row[2], row) for row in rows)

    def _is_ahead(self, space: int, checkpoint: bytes) -> bool:
        """Whether a checkpoint is newer than all that are stored: only those who are about to store it can have written to it."""
        newest = self.newest.get(space)
        return space in self.newest if newest is None else (newest[-2] or newest[0]) < checkpoint

    def begin_writes(self, space: int, checkpoint: bytes) -> dict[bytes, Row]:
        """Expect a checkpoint to have no pending writes but those that are known; they are, by task."""
        known = self.written.setdefault((space, checkpoint), {})
        self.written.move_to_end((space, checkpoint))
        if len(self.written) > CHECKPOINTS:
            self.size -= sum(map(_size_of, self.written.popitem(last=False)[1].values()))
        return known

    # -- items ---------------------------------------------------------------------------------------------------------------------------

    def item(self, number: int) -> Rows | None:
        """An item that may still change, as a statement returns it; None where nothing is expected."""
        row = self.items.get(number)
        return None if row is None else (row,)

    def learn_item(self, number: int, row: Row | None) -> None:
        """Expect an item's row to be this; None for one that changes no more."""
        self.size += _size_of(row) - _size_of(self.items.pop(number, None))
        if row is not None:
            self.items[number] = row
            if len(self.items) > ITEMS:
                self.size -= _size_of(self.items.popitem(last=False)[1])

    # -- the search index ------------------------------------------------------------------------------------------------------------------

    def note(self, message_id: bytes, note: Row) -> None:
        """Expect the search index to have this noted of a message id."""
        self.size += NOTED_BYTES * (message_id not in self.noted)
        self.noted[message_id] = note
        self.noted.move_to_end(message_id)
        if len(self.noted) > NOTED:
            self.noted.popitem(last=False)
            self.size -= NOTED_BYTES


@final
class MissingThreads:
    """Threads that were looked for, and not found, and what the row of a new one is expected to say.

    Attributes:
        indexed: What the row of the thread that was made last said of the search index.
    """

    def __init__(self) -> None:
        self.indexed: int | None = None
        self._ids: OrderedDict[str, None] = OrderedDict()

    def __contains__(self, thread_id: str) -> bool:
        return thread_id in self._ids

    def add(self, thread_id: str) -> None:
        """Expect that there is no such thread."""
        self._ids[thread_id] = None
        if len(self._ids) > MISSING:
            self._ids.popitem(last=False)

    def discard(self, thread_id: str) -> None:
        """There is such a thread."""
        self._ids.pop(thread_id, None)


def _size_of(row: Row | None) -> int:
    """Bytes that a row holds, about."""
    return 0 if row is None else ROW_BYTES + sum(map(getsizeof, row))
