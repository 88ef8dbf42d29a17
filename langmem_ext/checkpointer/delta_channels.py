"""What pruning must know of LangGraph's checkpoints: which belong together, and which wait."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import Final

from langgraph.checkpoint.serde.types import INTERRUPT

from langmem_ext.checkpointer.values import WAITING_CHANNEL
from langmem_ext.log.codec import MessageCodec
from langmem_ext.messages.text import column_name

DELTA_COUNTERS: Final = "counters_since_delta_snapshot"
"""The key of LangGraph's metadata that says, for each `DeltaChannel`, how long ago its value was
stored whole."""

_REMEMBERED: Final = 256


class LangGraphFacts:
    """Reads from a checkpoint's own bytes what they mean to LangGraph.

    Args:
        codec: Loads them, and messages.
    """

    waiting_channel: str = WAITING_CHANNEL
    interrupt_channel: str = INTERRUPT

    def __init__(self, codec: MessageCodec) -> None:
        self.codec = codec
        self._known: OrderedDict[bytes, Collection[str]] = OrderedDict()

    def rebuilt(self, details: bytes | None) -> Collection[str]:
        """The `DeltaChannel`s of the checkpoint's graph, except those whose value it holds."""
        if details is None:
            return ()
        if details not in self._known:
            # Most checkpoints of a thread have the same: an empty `parents`.
            self._known[details] = tuple(self.codec.load_plain(details).get(DELTA_COUNTERS) or ())
            if len(self._known) > _REMEMBERED:
                self._known.popitem(last=False)
        return self._known[details]

    def name_in(self, body: bytes) -> str | None:
        """The text that a value is, as a column shows it; None for any other value."""
        try:
            value = self.codec.load_plain(body)
        except Exception:  # not a text, so it does not matter to pruning
            return None
        return column_name(value)
