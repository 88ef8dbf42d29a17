"""Questions of one event loop that share a trip: what many readers ask at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain, islice
from typing import Final, TypeAlias

from langmem_ext.errors import StorageUnavailable
from langmem_ext.storage.commands import Command, one_snapshot
from langmem_ext.storage.effects import Rows
from langmem_ext.storage.postgres.tasks import start_held

TOGETHER: Final = 32
"""Readers that share a trip, at most."""

_Answer: TypeAlias = "asyncio.Future[Sequence[Rows]]"
_Asked: TypeAlias = list[tuple[Sequence[Command], _Answer]]


class Questions:
    """What readers ask for in a transaction of their own, and what needs no other: they see one snapshot, and it may be the same.

    Where a trip fails, it does for all that share it, and nobody knows whose fault it was: each is to ask again by itself.

    Args:
        loop: The event loop.
        exchange: Makes a trip: sends commands, and receives the rows of each.

    Attributes:
        trips: Those under way.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, exchange: Callable[[list[Command]], Awaitable[Sequence[Rows]]]) -> None:
        self._loop = loop
        self._exchange = exchange
        self._gathering: _Asked = []  # what the trip takes along that was planned last, until it begins
        self.trips: set[asyncio.Task[None]] = set()

    async def ask(self, commands: Sequence[Command]) -> Sequence[Rows]:
        """The rows of each command, which are sent with those that others bring in the same turn of the event loop.

        Raises:
            Exception: What the trip has raised.
        """
        answer: _Answer = self._loop.create_future()
        if not 0 < len(self._gathering) < TOGETHER:
            asked = self._gathering = []
            trip = start_held(self._loop, self._go(asked), self.trips)
            trip.add_done_callback(lambda _: self._end(asked))
        self._gathering.append((commands, answer))
        return await answer

    def _end(self, asked: _Asked) -> None:
        """A trip that was cancelled may not even have begun: nobody is to wait for it, or to join it."""
        self._close(asked)
        for _, answer in asked:
            if not answer.done():
                answer.set_exception(StorageUnavailable("the reading was interrupted before there was an answer: try again"))

    def _close(self, asked: _Asked) -> None:
        """Who comes from here on goes with another trip."""
        if self._gathering is asked:
            self._gathering = []

    async def _go(self, asked: _Asked) -> None:
        self._close(asked)
        asked[:] = [(commands, answer) for commands, answer in asked if not answer.done()]  # the others' tasks were cancelled
        if not asked:
            return
        try:
            rows = await self._exchange(one_snapshot(chain.from_iterable(commands for commands, _ in asked)))
        except Exception as error:
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(error)
            return
        found = iter(rows[1:-1])
        for commands, answer in asked:
            own = list(islice(found, len(commands)))
            if not answer.done():
                answer.set_result(own)
