"""Pending work: what a graph has left to do after a checkpoint; without any it is idle.

LangGraph's channels say what comes next: the input, a branch to a node, tasks that were sent, nodes
that wait for several others. An unknown channel counts as no work, an unreadable value as work.
"""

from __future__ import annotations

from typing import Final

from langmem_ext.messages.manifest import ranges_of
from langmem_ext.storage.rows.checkpoint import Entry, Header
from langmem_ext.types import Codec

INPUT: Final = "__start__"
"""The channel of an input that LangGraph has not read yet."""

_WORK: Final = (INPUT, "branch:to:")
"""Prefixes of the channels whose value is work."""

_QUEUES: Final = ("__pregel_tasks", "join:")
"""Prefixes of the channels whose value is work unless it is empty."""


def is_at_rest(header: Header, codec: Codec) -> bool:
    """Whether nothing is left to do after a checkpoint."""
    return not any([_is_work(channel, entry, codec) for channel, entry in header.entries.items()])


def work_of(header: Header, codec: Codec) -> frozenset[str]:
    """The channels that hold work that is left after a checkpoint."""
    return frozenset(
        channel for channel, entry in header.entries.items() if _is_work(channel, entry, codec)
    )


def _is_work(channel: str, entry: Entry, codec: Codec) -> bool:
    if not channel.startswith(_QUEUES):
        return channel.startswith(_WORK)
    return len(entry) > 1 or type(entry[0]) is not bytes or not codec.is_empty(entry[0])


def has_item(header: Header, number: int) -> bool:
    """Whether a message is in one of a checkpoint's values."""
    return any(
        start <= number < end
        for ref in header.values.values()
        for start, end in ranges_of(ref.runs)
    )
