"""Calls that work makes to checkpointers, either directly or awaited as their async twins.

The work is a generator. It yields a request and receives the answer; what the request raised is
raised there.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable, Collection, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple

from langmem_ext._internal.stepping import aperform, perform
from langmem_ext.errors import StorageUnavailable
from langmem_ext.storage.rows.clock import Times

T = TypeVar("T")
Saver: TypeAlias = BaseCheckpointSaver[Any]


@dataclass(frozen=True, slots=True)
class Call:
    """A method to be called; the answer is what it returns."""

    saver: Saver
    method: str
    args: tuple[Any, ...] = ()


@dataclass(frozen=True, slots=True)
class Scan:
    """Checkpoints to be listed, all or at most some, and shown one by one: they are not kept."""

    saver: Saver
    config: RunnableConfig | None
    show: Callable[[CheckpointTuple], None]
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class Puts:
    """Calls of `put` and `put_writes` that a saver takes as one transaction, with their times.

    Where that fails they are made one after the other: so what comes before the one that cannot be
    made is stored.
    """

    saver: Saver
    calls: Sequence[Call]
    times: Sequence[Times]

    def together(self) -> Call:
        """The one call."""
        return self._call(slice(None))

    def apart(self) -> list[Call]:
        """A call for each of them."""
        return [self._call(slice(at, at + 1)) for at in range(len(self.calls))]

    def _call(self, some: slice) -> Call:
        return Call(
            self.saver,
            "put_all",
            ([(call.method, call.args) for call in self.calls[some]], self.times[some]),
        )


@dataclass(slots=True)
class Reading:
    """Checkpoints read one after the other: each request answers with the next `get_tuple`.

    A saver that can read many at once does so.
    """

    saver: Saver
    configs: Sequence[RunnableConfig]
    checkpoints: Iterator[CheckpointTuple | None] | None = None
    acheckpoints: AsyncIterator[CheckpointTuple | None] | None = None

    def following(self) -> CheckpointTuple | None:
        """The next one."""
        if self.checkpoints is None:
            many = getattr(self.saver, "get_all", None)
            self.checkpoints = (
                map(self.saver.get_tuple, self.configs)
                if many is None
                else iter(many(self.configs))
            )
        return next(self.checkpoints)

    async def afollowing(self) -> CheckpointTuple | None:
        """Async twin of `following`."""
        if self.acheckpoints is None:
            many = getattr(self.saver, "aget_all", None)
            self.acheckpoints = self._one_by_one() if many is None else aiter(many(self.configs))
        return await anext(self.acheckpoints)

    async def _one_by_one(self) -> AsyncIterator[CheckpointTuple | None]:
        for config in self.configs:
            yield await self.saver.aget_tuple(config)


Request: TypeAlias = Call | Scan | Puts | Reading
Steps: TypeAlias = Generator[Request, Any, T]


def carry_out(steps: Steps[T]) -> T:
    """Make all calls in the calling thread; what the work returned."""
    return perform(steps, _make)


async def acarry_out(steps: Steps[T], *, sync: Collection[Saver]) -> T:
    """Async twin of `carry_out`; savers without async methods (`sync`) run in a worker thread."""

    async def make(request: Request) -> Any:
        return await (
            asyncio.to_thread(_make, request) if request.saver in sync else _amake(request)
        )

    return await aperform(steps, make)


def _make(request: Request) -> Any:
    if isinstance(request, Scan):
        for checkpoint in request.saver.list(request.config, limit=request.limit):
            request.show(checkpoint)
        return None
    if isinstance(request, Reading):
        return request.following()
    if isinstance(request, Puts):
        try:
            return _make(request.together())
        except StorageUnavailable:
            raise  # the others would wait as long for the same
        except Exception:
            for call in request.apart():
                _make(call)
            return None
    method = getattr(request.saver, request.method, None)
    return None if method is None else method(*request.args)


async def _amake(request: Request) -> Any:
    if isinstance(request, Scan):
        async for checkpoint in request.saver.alist(request.config, limit=request.limit):
            request.show(checkpoint)
        return None
    if isinstance(request, Reading):
        return await request.afollowing()
    if isinstance(request, Puts):
        try:
            return await _amake(request.together())
        except StorageUnavailable:
            raise
        except Exception:
            for call in request.apart():
                await _amake(call)
            return None
    method = getattr(request.saver, f"a{request.method}", None) or getattr(
        request.saver, request.method, None
    )
    answer = None if method is None else method(*request.args)
    return await answer if inspect.isawaitable(answer) else answer


def must_be_awaited(saver: Saver) -> bool:
    """Whether a saver is one of those that belong to an event loop."""
    return inspect.iscoroutinefunction(getattr(saver, "setup", None))


async def is_async(saver: Saver) -> bool:
    """Whether a saver has async methods: one that has none says so when it is called."""
    if must_be_awaited(saver) or outlines(saver):
        return True
    try:
        async for _ in saver.alist(None, limit=1):
            break
    except NotImplementedError:
        return False
    return True


def takes_many(saver: Saver) -> bool:
    """Whether a saver takes many puts as one transaction."""
    return hasattr(saver, "put_all")


def tells_times(saver: Saver) -> bool:
    """Whether a saver tells when its threads were first and last written."""
    return hasattr(saver, "thread_times")


def outlines(saver: Saver) -> bool:
    """Whether a saver tells which checkpoints it has without reading them."""
    return hasattr(saver, "outline")
