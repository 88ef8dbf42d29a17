"""Whether a graph has come to rest: at a checkpoint after which no node has anything left to do.

LangGraph says by its channels what is to be done next: the input, a branch to a node, tasks that
were sent, nodes that wait for several others. A name that is not known here means nothing to be
done, and a value that cannot be read means something.
"""

from __future__ import annotations

from typing import Final

from langmem_ext.messages.manifest import ranges_of
from langmem_ext.storage.rows.checkpoint import Entry, Header
from langmem_ext.types import Codec

INPUT: Final = "__start__"
"""The channel of an input that LangGraph has not taken in yet."""

_WORK: Final = (INPUT, "branch:to:")
"""How the channels begin whose value is work."""

_QUEUES: Final = ("__pregel_tasks", "join:")
"""How the channels begin whose value is work unless it is empty."""


def is_at_rest(header: Header, codec: Codec) -> bool:
    """Whether nothing is left to be done after a checkpoint."""
    return not any([_is_work(channel, entry, codec) for channel, entry in header.entries.items()])


def work_of(header: Header, codec: Codec) -> frozenset[str]:
    """The channels that say what is to be done after a checkpoint."""
    return frozenset(
        channel for channel, entry in header.entries.items() if _is_work(channel, entry, codec)
    )


def _is_work(channel: str, entry: Entry, codec: Codec) -> bool:
    if not channel.startswith(_QUEUES):
        return channel.startswith(_WORK)
    return len(entry) > 1 or type(entry[0]) is not bytes or not codec.is_empty(entry[0])


def has_item(header: Header, number: int) -> bool:
    """Whether one of a checkpoint's values has a message."""
    return any(
        start <= number < end
        for ref in header.values.values()
        for start, end in ranges_of(ref.runs)
    )
