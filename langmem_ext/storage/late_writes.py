"""What runs write after their thread was deleted: it is refused, so nothing of it comes back.

LangGraph names the checkpoint that a write builds on. A write is late where that checkpoint, or one that it follows, was made
before the thread, and is not in it:

- A checkpoint names its parent, which was stored before it. So where there is no thread, it is late.
- A task's writes name their checkpoint, and a subgraph's first checkpoint names that of the root. Those may still be on their
  way: LangGraph stores them in the background, in any order. So where there is no thread, they are late, unless their
  checkpoint follows no other, and this process asked for the thread before it was made, and found none.

Where the thread has begun again, `thread.born` tells: the lowest id that a checkpoint of it can have, unless its clock was
behind. What a run that goes on makes then has higher ids; of those that this process has put, it knows what they follow. A
run is of one process. So where the thread was deleted since this process wrote to it, a checkpoint of which nothing is known
is on its way, or late: such a write is tried again until that is known (`Buried`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from langmem_ext.errors import ThreadDeleted
from langmem_ext.storage.ids import encode_id, is_uuid

ROOT: Final = ""

BEGUN: Final = 16_384
"""Of how many threads it is remembered that a run was to begin them."""

BURIED: Final = 4096
"""Of how many threads it is remembered when they began, and that they have begun again."""

FOLLOWED: Final = 16_384
"""Of how many checkpoints it is remembered what they follow."""


class Buried(ThreadDeleted):
    """A write may be late: nothing is known of its checkpoint, which may still come. It is tried again."""


@contextmanager
def certain() -> Iterator[None]:
    """What has not come until now is late."""
    try:
        yield
    except Buried as error:
        raise ThreadDeleted(error.thread_id) from None


PATIENCE: Final = (0.001, 0.01, 0.05, 0.2, 0.5, 1.0)
"""Seconds to wait before each further attempt: a checkpoint that is on its way has come long before that."""


@dataclass(frozen=True, slots=True)
class Origin:
    """The checkpoint that a write of a run builds on.

    Attributes:
        namespace, id: What names it within its thread.
        stored: Whether it was stored before the write; else it may still be on its way.
    """

    namespace: str
    id: bytes
    stored: bool


def origin_of(configurable: Mapping[str, Any], namespace: str, checkpoint_id: str | None, *, writes: bool) -> Origin | None:
    """What a write's config says of where it comes from; None where it may begin a thread.

    LangGraph names its checkpoints by UUIDs; what is called otherwise was made by hand, and belongs to no run.

    Args:
        configurable: The config's.
        namespace: The namespace that it names.
        checkpoint_id: The checkpoint that it names.
        writes: Whether it is a task's writes that are to be stored, not a checkpoint.
    """
    if checkpoint_id is not None:
        raw = encode_id(checkpoint_id)
        return Origin(namespace, raw, not writes) if is_uuid(raw) else None
    parents = configurable.get("checkpoint_map") if namespace else None
    root = parents.get(ROOT) if isinstance(parents, Mapping) else None
    return Origin(ROOT, raw, False) if isinstance(root, str) and is_uuid(raw := encode_id(root)) else None


class LateWrites:
    """What this process knows of runs: which threads they are to begin, and what the checkpoints follow that they put."""

    def __init__(self) -> None:
        self._begun: OrderedDict[str, bytes] = OrderedDict()
        self._followed: OrderedDict[bytes, Origin] = OrderedDict()
        self._born: OrderedDict[str, bytes | None] = OrderedDict()
        self._buried: OrderedDict[str, None] = OrderedDict()

    def begin(self, thread_id: str, moment: bytes) -> None:
        """A run was told that there is no such thread.

        Args:
            thread_id: The thread.
            moment: An id that was made then.
        """
        self._begun.setdefault(thread_id, moment)
        if len(self._begun) > BEGUN:
            self._begun.popitem(last=False)

    def met(self, thread_id: str, born: bytes | None) -> None:
        """There is such a thread now; `born` tells it from others of its id."""
        if self._begun:
            self._begun.pop(thread_id, None)
        if self._born.get(thread_id, born) != born:
            self.bury(thread_id)
        self._born[thread_id] = born
        if len(self._born) > BURIED:
            self._born.popitem(last=False)

    def may_begin(self, thread_id: str, origin: Origin) -> bool:
        """Whether a write may come before the checkpoint that begins the thread."""
        moment = self._begun.get(thread_id)
        return moment is not None and moment < origin.id and not origin.stored and origin.id not in self._followed

    def follow(self, checkpoint_id: str, origin: Origin) -> None:
        """A run puts a checkpoint that follows another."""
        self._followed[encode_id(checkpoint_id)] = origin
        if len(self._followed) > FOLLOWED:
            self._followed.popitem(last=False)

    def bury(self, thread_id: str) -> ThreadDeleted:
        """The error that a write to a thread is late; a run of the thread may go on in this process."""
        self._buried[thread_id] = None
        if len(self._buried) > BURIED:
            self._buried.popitem(last=False)
        return ThreadDeleted(thread_id)

    def is_buried(self, thread_id: str) -> bool:
        """Whether a thread was deleted, or has begun again, since this process wrote to it."""
        return thread_id in self._buried

    def before(self, origin: Origin) -> Origin | None:
        """What a checkpoint follows that this process has put, or is about to; None where it has not begun to put it."""
        before = self._followed.get(origin.id)
        return before if before != origin else None
