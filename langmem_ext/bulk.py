"""The half of a saver that moves many checkpoints at once: stores them in their order, all or none, and reads them page by page."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from functools import partial
from typing import Any, Final, Literal, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple

from langmem_ext.checkpoint_pages import NamedCheckpoints
from langmem_ext.errors import DamagedRow
from langmem_ext.forgetting import ForgettingSaver
from langmem_ext.log import thread_key
from langmem_ext.packing import config_of
from langmem_ext.saver_terms import several
from langmem_ext.stepping import aperform, perform
from langmem_ext.storage import transfer_ops, transit_ops
from langmem_ext.storage.clock import Times
from langmem_ext.storage.effects import Operation
from langmem_ext.storage.listing_ops import ThreadFilter
from langmem_ext.storage.many_ops import Wanted
from langmem_ext.types import StoredCheckpoint, ThreadKey

Put: TypeAlias = tuple[Literal["put", "put_writes"], tuple[Any, ...]]
"""A saver's method that writes, and what it is given."""

Outline: TypeAlias = list[tuple[RunnableConfig, list[tuple[str, str]]]]
"""What names each checkpoint, and the task and channel of each of its pending writes, in their order."""

THREADS: Final = 64
"""Threads that are outlined together."""


class BulkSaver(ForgettingSaver):
    """What `DeltaSaver` is moved into and out of with."""

    @abstractmethod
    def _put(self, *given: Any, **options: Any) -> tuple[Operation[None], RunnableConfig]:
        """The operation of a `put`, and what that returns."""

    @abstractmethod
    def _put_writes(self, *given: Any, **options: Any) -> Operation[None]:
        """The operation of a `put_writes`."""

    @abstractmethod
    def _wanted(self, config: RunnableConfig) -> Wanted | None:
        """What a config asks for; None where it names what nobody may see."""

    @abstractmethod
    def _load(self, config: RunnableConfig, stored: StoredCheckpoint | None) -> CheckpointTuple | None:
        """The objects of what was read."""

    @abstractmethod
    async def _aload(self, config: RunnableConfig, stored: StoredCheckpoint | None) -> CheckpointTuple | None:
        """The objects of what was read, made in a thread where that takes a while."""

    # -- in ------------------------------------------------------------------------------------------------------------------------------

    def put_all(self, puts: Sequence[Put], times: Sequence[Times] | None = None) -> None:
        """Store what these calls would, one after the other; all of it is stored when this returns, or nothing when it raises.

        Args:
            puts: Calls of `put` and `put_writes`, of one thread or of several. All that they hold is in memory at once.
            times: For each of them, when what it stores was made; now, if not given.

        Raises:
            LangmemExtError: What any of them would raise.
        """
        self.log.run(self._put_all(puts, times), write=True)
        for config in _checkpoints(puts):
            if (work := self._after_put(config)) is not None:
                work()

    async def aput_all(self, puts: Sequence[Put], times: Sequence[Times] | None = None) -> None:
        """Async twin of `put_all`."""
        op = await self.log.driver.acall(lambda: self._put_all(puts, times))  # which may take a while, so not on the event loop
        await self.log.arun(op, write=True)
        for config in _checkpoints(puts):
            if (work := self._after_put(config)) is not None:
                await self.log.driver.acall(work)

    def _put_all(self, puts: Sequence[Put], times: Sequence[Times] | None) -> Operation[None]:
        ops = [self._put(*given)[0] if method == "put" else self._put_writes(*given) for method, given in puts]
        if times is not None:
            ops = [op.given(times=one) for op, one in zip(ops, times, strict=True)]
        # As the drivers sort what goes together: so two processes take the rows of two threads in the same order.
        ops.sort(key=lambda op: op.thread or "")
        threads = {op.thread for op in ops}
        only = threads.pop() if len(threads) == 1 else None
        together = transfer_ops.store_puts(None if only is None else ThreadKey(only, self.owner), ops)
        together.heavy = any(op.heavy for op in ops)
        return together

    # -- out -----------------------------------------------------------------------------------------------------------------------------

    def get_all(self, configs: Sequence[RunnableConfig]) -> Iterator[CheckpointTuple | None]:
        """What `get_tuple` gives for each of these configs, in their order.

        They are read many at a time, of whatever threads, so many need few round trips; fewer where they are large, so they do not pile up
        in memory. No lock is held while the caller works.

        Raises:
            DamagedRow: The next one is damaged; those before it were given.
            HeadConflict: A config names an `expected_head`, and another checkpoint is the newest.
        """
        pages = self._named(configs)
        while (op := pages.following()) is not None:
            try:
                page = self.log.run(op, write=False)
            except DamagedRow as error:
                pages.failed(error)
                continue
            for config, stored in pages.found(page):
                yield self._load(config, stored)

    async def aget_all(self, configs: Sequence[RunnableConfig]) -> AsyncIterator[CheckpointTuple | None]:
        """Async twin of `get_all`."""
        pages = self._named(configs)
        while (op := pages.following()) is not None:
            try:
                page = await self.log.arun(op, write=False)
            except DamagedRow as error:
                pages.failed(error)
                continue
            for config, stored in pages.found(page):
                yield await self._aload(config, stored)

    def outline(self, thread_ids: Sequence[Any] | None = None) -> Outline:
        """Which checkpoints there are, and which pending writes, without a value of any: for many threads in few round trips.

        Args:
            thread_ids: Of these threads, as far as they are there; of all, if not given.

        Raises:
            DamagedRow: A row is not as it was written.
        """
        return perform(self._outline(thread_ids), partial(self.log.run, write=False))

    async def aoutline(self, thread_ids: Sequence[Any] | None = None) -> Outline:
        """Async twin of `outline`."""
        return await aperform(self._outline(thread_ids), partial(self.log.arun, write=False))

    def _outline(self, thread_ids: Sequence[Any] | None) -> Generator[Operation[Any], Any, Outline]:
        names = [] if thread_ids is None else list(dict.fromkeys(map(thread_key, several(thread_ids, "thread ids"))))
        after = 0
        while thread_ids is None and (rows := (yield transit_ops.list_ids(ThreadFilter(owner=self.owner), after))):
            names += [name for _, name in rows]
            after = rows[-1][0]
        outline: Outline = []
        for start in range(0, len(names), THREADS):
            keys = [ThreadKey(name, self.owner) for name in names[start : start + THREADS]]
            found = yield transfer_ops.stored(keys, indexes=self.log.indexes, codec=self.codec)
            for key, places in zip(keys, found, strict=True):
                for place, writes in places.items():
                    outline.append((config_of(key.id, *place), [(task, write.channel) for task, write in writes]))
        return outline

    def thread_times(self, thread_ids: Sequence[Any]) -> dict[str, tuple[int, int]]:
        """When threads were first and last written, in Unix milliseconds, by id; without those that are not there."""
        return perform(self._thread_times(thread_ids), partial(self.log.run, write=False))

    async def athread_times(self, thread_ids: Sequence[Any]) -> dict[str, tuple[int, int]]:
        """Async twin of `thread_times`."""
        return await aperform(self._thread_times(thread_ids), partial(self.log.arun, write=False))

    def _thread_times(self, thread_ids: Sequence[Any]) -> Generator[Operation[Any], Any, dict[str, tuple[int, int]]]:
        keys = [ThreadKey(name, self.owner) for name in dict.fromkeys(map(thread_key, thread_ids))]
        times: dict[str, tuple[int, int]] = {}
        for start in range(0, len(keys), THREADS):
            times |= yield transfer_ops.read_times(keys[start : start + THREADS])
        return times

    def _named(self, configs: Sequence[RunnableConfig]) -> NamedCheckpoints:
        return NamedCheckpoints(configs, [self._wanted(config) for config in configs], indexes=self.log.indexes, codec=self.codec)


def _checkpoints(puts: Sequence[Put]) -> list[RunnableConfig]:
    """The config of each checkpoint that was put."""
    return [given[0] for method, given in puts if method == "put"]
