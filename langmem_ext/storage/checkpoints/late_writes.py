"""Late writes: what runs write after their thread was deleted is refused, so that none comes back.

Only where a deletion is known (`tombstones`): any other write may come in any order, as those of a
migration do. What follows says which writes are late then.

LangGraph names the checkpoint that a write builds on. A write is late if that checkpoint, or one
that it follows, was made before the thread, and is not in it:

- A checkpoint names its parent, which was stored before it. So if there is no thread, it is late.
- A task's writes name their checkpoint, and a subgraph's first checkpoint names that of the root.
  Those may not be stored yet: LangGraph stores them in the background, in any order. So if there is
  no thread, such writes are late, unless their checkpoint follows no other, and this process asked
  for the thread before that checkpoint was made, found none, and has neither made nor found it
  since. If the thread was deleted since this process met it, that is not enough: LangGraph does not
  store what follows a checkpoint that was refused, so nothing is known of later checkpoints of an
  old run. Then the write does not begin the thread, but waits for what does (`Buried`).

If the thread has begun again, `thread.born` decides: the lowest id that a checkpoint of it can
have, unless a clock was behind that of the process that began it. A run is of one process, and
begins by asking for its thread. So its checkpoints also have higher ids than those made in its
process before that process first met the thread (`LateWrites.lowest`). A process knows what the
checkpoints that it has put follow. If the thread was deleted since this process met it, an unknown
checkpoint is either not stored yet, or late: such a write is tried again until that is known
(`Buried`). With `durability="exit"` the checkpoint comes at the end of its run, however long after
a subgraph's that names it: then a write is late only if the checkpoint is older than the thread.
So it is with what a run is given for a thread that it did not find (`NULL_TASK`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from langmem_ext.errors import ThreadDeleted
from langmem_ext.storage.rows.ids import UUID_LENGTH, encode_id

ROOT: Final = ""

DURABILITY: Final = "__pregel_durability"
"""The key of a config under which LangGraph says when its run stores checkpoints."""

NULL_TASK: Final = "00000000-0000-0000-0000-000000000000"
"""The task of what a run is given before its first step, as an answer. In a thread that does not
exist, its checkpoint is one that LangGraph made up, and never stores."""

BEGUN: Final = 16_384
"""How many threads are remembered that a run was to begin."""

BURIED: Final = 4096
"""How many threads are remembered with when they began, and how many that have begun again."""

FOLLOWED: Final = 16_384
"""How many checkpoints are remembered with what they follow."""

READ: Final = 4096
"""How many checkpoints are remembered with the thread of which a run has read them."""


class Buried(ThreadDeleted):
    """A write may be late: its checkpoint is unknown, but may still come. It is tried again."""


@contextmanager
def certain() -> Iterator[None]:
    """Within this context, a checkpoint that has not come is late."""
    try:
        yield
    except Buried as error:
        raise ThreadDeleted(error.thread_id) from None


PATIENCE: Final = (0.001, 0.01, 0.05, 0.2, 0.5, 1.0)
"""Seconds to wait before each further attempt. A checkpoint that comes at all comes long before the
last."""


@dataclass(frozen=True, slots=True)
class Life:
    """A thread, from when it began to its deletion.

    Attributes:
        born: Distinguishes it from other threads with its id.
        since: An id that was made when a run of this process first asked for it, or for a thread
            that did not exist yet; None if none has asked.
    """

    born: bytes | None
    since: bytes | None


@dataclass(slots=True)  # not frozen: that takes several times as long to make
class Origin:
    """The checkpoint that a write of a run builds on.

    Attributes:
        namespace, id: The checkpoint's namespace, and its id.
        stored: Whether it was stored before the write; else it may not be stored yet.
        at_end: Whether its run puts it only at the run's end, or never.
    """

    namespace: str
    id: bytes
    stored: bool
    at_end: bool = False


def origin_of(
    configurable: Mapping[str, Any], namespace: str, checkpoint_id: str | None, *, task: str | None
) -> Origin | None:
    """The checkpoint that a write builds on, by its config; None if the write may begin a thread.

    LangGraph names its checkpoints by UUIDs. A checkpoint with another id was made by hand, and
    belongs to no run.

    Args:
        configurable: The config's `configurable`.
        namespace: The namespace that the config names.
        checkpoint_id: The checkpoint that the config names.
        task: The task whose writes are to be stored; None: a checkpoint is.
    """
    if checkpoint_id is not None:
        raw = encode_id(checkpoint_id)
        known = len(raw) == UUID_LENGTH
        return Origin(namespace, raw, task is None, task == NULL_TASK) if known else None
    parents = configurable.get("checkpoint_map") if namespace else None
    root = parents.get(ROOT) if isinstance(parents, Mapping) else None
    if not isinstance(root, str) or len(raw := encode_id(root)) != UUID_LENGTH:
        return None
    return Origin(ROOT, raw, False, at_end=configurable.get(DURABILITY) == "exit")


class LateWrites:
    """What this process knows of runs: the threads they begin, and their checkpoints' parents."""

    def __init__(self) -> None:
        self.begun: OrderedDict[str, bytes] = OrderedDict()
        self._followed: OrderedDict[bytes, Origin] = OrderedDict()
        self._lives: OrderedDict[str, Life] = OrderedDict()
        self._read: OrderedDict[tuple[str, bytes], bytes | None] = OrderedDict()
        self._buried: OrderedDict[str, None] = OrderedDict()

    def begin(self, thread_id: str, moment: bytes) -> None:
        """Note that a run has asked for a thread, and that there is none.

        Args:
            thread_id: The thread.
            moment: An id that was made then.
        """
        if self._lives.pop(thread_id, None) is not None:
            self.bury(thread_id)
        self.begun[thread_id] = min(moment, self.begun.get(thread_id, moment))
        if len(self.begun) > BEGUN:
            self.begun.popitem(last=False)

    def met(self, thread_id: str, born: bytes | None, moment: bytes | None = None) -> None:
        """Note that a thread exists, or is being made.

        Making it may fail; then a run may yet have to begin it (`note_found`).

        Args:
            thread_id: The thread.
            born: Distinguishes it from other threads with its id.
            moment: If a run asked for it, an id that was made before.
        """
        life = self._lives.get(thread_id)
        if life is not None and life.born != born:
            self.bury(thread_id)
            life = None
        known = None if life is None else life.since, self.begun.get(thread_id), moment
        since = min([earlier for earlier in known if earlier is not None], default=None)
        if life is None or life.since != since:
            self._lives[thread_id] = Life(born, since)
            if len(self._lives) > BURIED:
                self._lives.popitem(last=False)

    def lowest(self, thread_id: str, born: bytes) -> bytes:
        """The lowest id of a thread's checkpoints that this process's runs made.

        `born` is the thread's own lowest id, and the result if another process began the thread.
        """
        life = self._lives.get(thread_id)
        return (
            born
            if life is None or life.born != born or life.since is None
            else min(born, life.since)
        )

    def note_found(self, thread_id: str | None) -> None:
        """Note that a run has asked for a thread and found it, so the run does not begin it."""
        if self.begun:
            self.begun.pop(thread_id or "", None)

    def read(self, thread_id: str, born: bytes | None, checkpoint: bytes) -> None:
        """Note that a run has read a checkpoint, and may go on from it.

        If the thread is a copy, the checkpoint may be older than the thread.
        """
        self._read.pop((thread_id, checkpoint), None)
        self._read[thread_id, checkpoint] = born
        if len(self._read) > READ:
            self._read.popitem(last=False)

    def has_read(self, thread_id: str, born: bytes, checkpoint: bytes) -> bool:
        """Whether a run of this process has read a checkpoint, which may since be pruned."""
        return self._read.get((thread_id, checkpoint)) == born

    def may_begin(self, thread_id: str, origin: Origin) -> bool:
        """Whether a write may come before the checkpoint that begins the thread."""
        moment = self.begun.get(thread_id)
        return (
            moment is not None
            and moment < origin.id
            and not origin.stored
            and origin.id not in self._followed
        )

    def follow(self, checkpoint_id: str, origin: Origin) -> None:
        """Note that a run puts a checkpoint that follows another."""
        self._followed[encode_id(checkpoint_id)] = origin
        if len(self._followed) > FOLLOWED:
            self._followed.popitem(last=False)

    def bury(self, thread_id: str) -> ThreadDeleted:
        """Note that an old run of a thread may go on here; the error of its late write."""
        self._buried[thread_id] = None
        if len(self._buried) > BURIED:
            self._buried.popitem(last=False)
        return ThreadDeleted(thread_id)

    def require_beginning(self, thread_id: str, origin: Origin, *, may_begin: bool) -> None:
        """Refuse a run's write to a thread that does not exist, unless the write may begin it.

        Args:
            thread_id: The thread.
            origin: The checkpoint that the write builds on.
            may_begin: What `may_begin` returned before the thread was looked for: another write may
                begin it meanwhile.

        Raises:
            ThreadDeleted: The write is from before the thread was deleted, or may be (`Buried`).
        """
        if not may_begin:
            raise self.bury(thread_id)
        if not origin.at_end and self.is_buried(thread_id):
            raise Buried(thread_id)

    def is_buried(self, thread_id: str) -> bool:
        """Whether a thread was deleted, or has begun again, since this process met it."""
        return thread_id in self._buried

    def is_timely(self, thread_id: str, born: bytes | None, origin: Origin) -> bool:
        """Whether the checkpoint that a write builds on surely belongs to the thread as it is now.

        The checkpoint may not be stored yet.
        """
        if born is None or born == origin.id:
            return True
        return origin.id >= self.lowest(thread_id, born) and (
            origin.at_end or thread_id not in self._buried
        )

    def before(self, origin: Origin) -> Origin | None:
        """The checkpoint that another follows, if this process has begun to put that; else None."""
        return self._followed.get(origin.id)
