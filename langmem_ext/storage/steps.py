"""Work of many operations: each is a transaction of its own, and others may run between any two."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial
from typing import Any, Generic, TypeAlias, TypeVar

from langmem_ext.errors import StorageError
from langmem_ext.storage.driver import Driver
from langmem_ext.storage.effects import Operation

T = TypeVar("T")

Steps: TypeAlias = Generator[tuple[Operation[Any], bool], Any, T]
"""Yields operations, each with whether it writes, and receives their results; a `StorageError` of one is raised there."""


class Running(Generic[T]):
    """Steps on their way.

    Args:
        driver: Runs the operations.
        steps: The steps.

    Attributes:
        result: What the steps returned, once `advance` has said that there are no more.
    """

    result: T

    def __init__(self, driver: Driver, steps: Steps[T]) -> None:
        self._driver = driver
        self._steps = steps
        self._resume: Callable[[], tuple[Operation[Any], bool]] = partial(next, steps)

    def advance(self) -> bool:
        """Carry out the next operation; False where there was none."""
        try:
            op, write = self._resume()
        except StopIteration as done:
            self.result = done.value
            return False
        try:
            self._resume = partial(self._steps.send, self._driver.run(op, write=write))
        except StorageError as error:
            self._resume = partial(self._steps.throw, error)
        return True

    def finish(self) -> T:
        """Carry out all that is left, in the calling thread."""
        while self.advance():
            pass
        return self.result

    async def afinish(self) -> T:
        """Async twin of `finish`."""
        while await self._driver.acall(self.advance):
            pass
        return self.result
