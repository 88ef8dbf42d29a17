"""Questions of one event loop that share a trip: what many readers ask at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import chain, islice
from typing import Final, TypeAlias

import psycopg

from langmem_ext.errors import StorageUnavailable
from langmem_ext.storage.commands import Command, one_snapshot
from langmem_ext.storage.effects import Rows
from langmem_ext.storage.postgres.exchange import failure
from langmem_ext.storage.postgres.tasks import start_held

TOGETHER: Final = 32
"""Readers that share a trip, at most."""

_Answer: TypeAlias = "asyncio.Future[Sequence[Rows]]"


class _Trip:
    """What goes together: what was asked, by whom, and the task that carries it."""

    __slots__ = ("asked", "task")

    task: asyncio.Task[None]

    def __init__(self) -> None:
        self.asked: list[tuple[Sequence[Command], _Answer]] = []

    @property
    def is_wanted(self) -> bool:
        """Whether anybody waits for it; not those whose tasks were cancelled."""
        return not all(answer.cancelled() for _, answer in self.asked)


class Questions:
    """What readers ask for in a transaction of their own, and what needs no other: they see one snapshot, and it may be the same.

    Where a trip fails, it does for all that share it, and nobody knows whose fault it was: each is to ask again by itself. One that nobody
    waits for any more is stopped.

    Args:
        loop: The event loop.
        exchange: Makes a trip: sends commands, and receives the rows of each.

    Attributes:
        trips: Those under way.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, exchange: Callable[[list[Command]], Awaitable[Sequence[Rows]]]) -> None:
        self._loop = loop
        self._exchange = exchange
        self._planned: _Trip | None = None  # that which was planned last, until it begins
        self.trips: set[asyncio.Task[None]] = set()

    async def ask(self, commands: Sequence[Command]) -> Sequence[Rows]:
        """The rows of each command, which are sent with those that others bring in the same turn of the event loop.

        Raises:
            ExchangeFailed: The server has refused, or the connection has ended.
            StorageUnavailable: There was no connection, or the trip was stopped.
        """
        answer: _Answer = self._loop.create_future()
        trip = self._planned
        if trip is None or len(trip.asked) >= TOGETHER:
            trip = self._planned = self._plan()
        trip.asked.append((commands, answer))
        try:
            return await answer
        except asyncio.CancelledError:
            # It has begun, so nobody joins it any more: its turn comes before this. One that is being stopped has to tell the server yet.
            if not trip.is_wanted and not trip.task.cancelling():
                trip.task.cancel()
            raise

    def _plan(self) -> _Trip:
        trip = _Trip()
        trip.task = start_held(self._loop, self._go(trip), self.trips)
        trip.task.add_done_callback(lambda _: self._end(trip))
        return trip

    def _end(self, trip: _Trip) -> None:
        """A trip that was cancelled may not even have begun: nobody is to wait for it, or to join it."""
        self._close(trip)
        for _, answer in trip.asked:
            if not answer.done():
                answer.set_exception(StorageUnavailable("the reading was interrupted before there was an answer: try again"))

    def _close(self, trip: _Trip) -> None:
        """Who comes from here on goes with another trip."""
        if self._planned is trip:
            self._planned = None

    async def _go(self, trip: _Trip) -> None:
        self._close(trip)
        asked = trip.asked = [
            (commands, answer) for commands, answer in trip.asked if not answer.done()
        ]  # the others' tasks were cancelled
        if not asked:
            return
        try:
            rows = await self._exchange(one_snapshot(chain.from_iterable(commands for commands, _ in asked)))
        except Exception as error:
            for _, answer in asked:
                if not answer.done():
                    answer.set_exception(failure(error, shared=len(asked) > 1) if isinstance(error, psycopg.Error) else error)
            return
        found = iter(rows[1:-1])
        for commands, answer in asked:
            own = list(islice(found, len(commands)))
            if not answer.done():
                answer.set_result(own)
