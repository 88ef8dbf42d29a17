"""What runs write after their thread was deleted: it is refused, so nothing of it comes back.

LangGraph names the checkpoint that a write builds on. A write is late where that checkpoint was made before the thread, and is
not in it:

- A checkpoint names its parent, which was stored before it. So where there is no thread, it is late.
- A task's writes name their checkpoint, and a subgraph's first checkpoint names that of the root. Those may still be on their
  way: LangGraph stores them in the background, in any order. So where there is no thread, they are late, unless this process
  asked for the thread before the checkpoint was made, and found none (`LateWrites.begin`).

Where the thread has begun again, `thread.born` tells: the lowest id that a checkpoint of it can have, unless its clock was
behind. A run whose checkpoint was refused is known by its id for as long as its process lives.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from langmem_ext.storage.ids import encode_id, is_uuid

ROOT: Final = ""

BEGUN: Final = 16_384
"""Of how many threads it is remembered that a run was to begin them."""

REFUSED: Final = 4096
"""How many refused checkpoints are remembered."""


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
    """What this process knows of runs: which threads they are to begin, and which of their checkpoints were refused."""

    def __init__(self) -> None:
        self.refused: OrderedDict[bytes, None] = OrderedDict()
        self._begun: OrderedDict[str, bytes] = OrderedDict()

    def begin(self, thread_id: str, moment: bytes) -> None:
        """A run was told that there is no such thread.

        Args:
            thread_id: The thread.
            moment: An id that was made then.
        """
        self._begun.setdefault(thread_id, moment)
        if len(self._begun) > BEGUN:
            self._begun.popitem(last=False)

    def met(self, thread_id: str) -> None:
        """There is such a thread now."""
        if self._begun:
            self._begun.pop(thread_id, None)

    def may_begin(self, thread_id: str, origin: Origin) -> bool:
        """Whether a write may come before the checkpoint that begins the thread."""
        moment = self._begun.get(thread_id)
        return not origin.stored and moment is not None and moment < origin.id and origin.id not in self.refused

    def refuse(self, checkpoint_id: str) -> None:
        """A checkpoint was refused: what builds on it is late, too."""
        self.refused[encode_id(checkpoint_id)] = None
        if len(self.refused) > REFUSED:
            self.refused.popitem(last=False)
