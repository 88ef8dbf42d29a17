"""What is done while a database answers: the messages are built that a checkpoint will most likely have."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from langmem_ext.codec import MessageCodec
from langmem_ext.interruption import pass_on
from langmem_ext.log import MessageLog
from langmem_ext.messages.packed import Snapshot
from langmem_ext.storage.effects import Operation
from langmem_ext.template_cache import Place
from langmem_ext.types import PackedValue

T = TypeVar("T")


class Ahead:
    """A long list of messages, built before it is known whether it is what is stored.

    Args:
        place: Where the list stood.
        packed: The exact bytes of its messages.
        messages: The messages, which nobody else has.
    """

    def __init__(self, place: Place, packed: Sequence[Snapshot], messages: list[Any]) -> None:
        self._place = place
        self._packed = packed
        self._messages: list[Any] | None = messages

    def is_of(self, place: Place, value: PackedValue) -> bool:
        """Whether a value that stands there is this list, or how it begins."""
        if self._messages is None or place != self._place or value.body is not None:
            return False
        return self._packed[: len(value.messages)] == value.messages

    def take(self, place: Place, value: PackedValue) -> list[Any] | None:
        """The messages of a value, if these are they; once, for whoever takes them owns them."""
        if self._messages is None or not self.is_of(place, value):
            return None
        messages, self._messages = self._messages[: len(value.messages)], None
        return messages


Build: TypeAlias = Callable[[], Ahead | None]
"""Builds a list, or nothing where that fails."""


def plan_ahead(log: MessageLog, codec: MessageCodec, thread_id: str, namespace: str) -> Build | None:
    """A way to build a thread's messages as they were lately; None where they are few or not known, or the database answers too soon."""
    known = log.templates.long_list(thread_id, namespace) if log.driver.speculates else None
    if known is None:
        return None
    place, packed = known

    def build() -> Ahead | None:
        try:
            return Ahead(place, packed, codec.load_value(PackedValue(messages=packed), place))
        except Exception as error:  # whoever reads what is stored is told
            pass_on(error)
            return None

    return build


async def read_beside(log: MessageLog, op: Operation[T], build: Build | None) -> tuple[T, Ahead | None]:
    """Read, and meanwhile build, off the event loop."""
    if build is None:
        return await log.arun(op, write=False), None
    building = asyncio.ensure_future(log.driver.acall(build))
    try:
        found = await log.arun(op, write=False)
    except BaseException:
        building.cancel()
        raise
    return found, await building
