"""The half of a saver that stores many puts at once: in their order, as one transaction, all or none."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from langchain_core.runnables import RunnableConfig

from langmem_ext.forgetting import ForgettingSaver
from langmem_ext.storage.effects import Operation
from langmem_ext.storage.transfer_ops import store_puts
from langmem_ext.types import ThreadKey

Put: TypeAlias = tuple[Literal["put", "put_writes"], tuple[Any, ...]]
"""A saver's method that writes, and what it is given."""


class BulkSaver(ForgettingSaver):
    """What `DeltaSaver` is moved into with."""

    @abstractmethod
    def _put(self, *given: Any) -> tuple[Operation[None], RunnableConfig]:
        """The operation of a `put`, and what that returns."""

    @abstractmethod
    def _put_writes(self, *given: Any) -> Operation[None]:
        """The operation of a `put_writes`."""

    def put_all(self, puts: Sequence[Put]) -> None:
        """Store what these calls would, one after the other; all of it is stored when this returns, or nothing when it raises.

        Args:
            puts: Calls of `put` and `put_writes`, of one thread or of several. All that they hold is in memory at once.

        Raises:
            LangmemExtError: What any of them would raise.
        """
        self.log.run(self._put_all(puts), write=True)
        for config in _checkpoints(puts):
            if (work := self._after_put(config)) is not None:
                work()

    async def aput_all(self, puts: Sequence[Put]) -> None:
        """Async twin of `put_all`."""
        op = await self.log.driver.acall(lambda: self._put_all(puts))  # which may take a while, so not on the event loop
        await self.log.arun(op, write=True)
        for config in _checkpoints(puts):
            if (work := self._after_put(config)) is not None:
                await self.log.driver.acall(work)

    def _put_all(self, puts: Sequence[Put]) -> Operation[None]:
        ops = [self._put(*given)[0] if method == "put" else self._put_writes(*given) for method, given in puts]
        # As the drivers sort what goes together: so two processes take the rows of two threads in the same order.
        ops.sort(key=lambda op: op.thread or "")
        threads = {op.thread for op in ops}
        only = threads.pop() if len(threads) == 1 else None
        return store_puts(None if only is None else ThreadKey(only, self.owner), ops, indexes=self.log.indexes)


def _checkpoints(puts: Sequence[Put]) -> list[RunnableConfig]:
    """The config of each checkpoint that was put."""
    return [given[0] for method, given in puts if method == "put"]
