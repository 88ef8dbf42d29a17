"""Opening a saver for the length of a `with` or an `async with`; a step that is done already."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Generator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Generic, Protocol, TypedDict, TypeVar

from langgraph.checkpoint.serde.base import SerializerProtocol

from langmem_ext.log.retention import Retention
from langmem_ext.storage.sqlite.driver import Synchronous
from langmem_ext.telemetry import Sink


class SaverOptions(TypedDict, total=False):
    """The options of `DeltaSaver.open`."""

    serde: SerializerProtocol | None
    synchronous: Synchronous
    owner: str | None
    retention: Retention | None
    metadata_keys: Collection[str] | None
    telemetry: Sequence[Sink]
    compress: bool


class Closing(Protocol):
    """Something that can be closed, on an event loop and without."""

    def close(self) -> None:
        """Close it; idempotent."""

    async def aclose(self) -> None:
        """Async twin of `close`."""


T = TypeVar("T", bound=Closing)


class Opening(AbstractContextManager[T], AbstractAsyncContextManager[T], Generic[T]):
    """A context manager that opens something, off the event loop if there is one.

    Args:
        open_it: Opens it.
    """

    def __init__(self, open_it: Callable[[], T]) -> None:
        self._open = open_it
        self._opened: T | None = None

    def __enter__(self) -> T:
        self._opened = self._open()
        return self._opened

    def __exit__(self, *exc_info: object) -> None:
        if self._opened is not None:
            self._opened.close()

    async def __aenter__(self) -> T:
        self._opened = await asyncio.to_thread(self._open)
        return self._opened

    async def __aexit__(self, *exc_info: object) -> None:
        if self._opened is not None:
            await self._opened.aclose()


class Done(Coroutine[None, None, None]):
    """Something that is done already, whether callers await it, make it a task, or neither."""

    def __await__(self) -> Generator[None, None, None]:
        return
        yield

    def send(self, value: object) -> None:
        """It is at its end."""
        raise StopIteration

    def throw(self, *error: Any) -> None:
        """The error, as there is nothing that could take it."""
        raise error[1] if len(error) > 1 and error[1] is not None else error[0]

    def close(self) -> None:
        """Nothing is left to be closed."""
