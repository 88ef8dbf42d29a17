"""One implementation for sync and async callers: steps that say what is to be called.

The steps are a generator. It yields a request and is sent what came of it; what the call raised is
raised where it was yielded. Everything that a memory needs of others has each method twice, as
LangChain names them: `invoke` and `ainvoke` of a model, `batch` and `abatch` of a store, `get` and
`aget` of threads. So a request names one of them and stands for both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any, Protocol, TypeAlias, TypeVar

from langmem_ext._internal.stepping import aperform, perform

T = TypeVar("T")

Steps: TypeAlias = Generator["Request", Any, T]
"""Steps that return a `T` in the end."""


class Request(Protocol):
    """What a step asks for."""

    def now(self) -> Any:
        """Do it in the calling thread."""

    def later(self) -> Awaitable[Any]:
        """Do it without blocking the event loop."""


class Call:
    """A call of a method that has an async twin with an `a` before its name.

    Args:
        owner: What has the method.
        name: The sync method's name.
        args: What it is called with.
        kwargs: The same, by name.
    """

    def __init__(self, owner: object, name: str, /, *args: Any, **kwargs: Any) -> None:
        self._owner, self._name, self._args, self._kwargs = owner, name, args, kwargs

    def now(self) -> Any:
        """Call the method."""
        return getattr(self._owner, self._name)(*self._args, **self._kwargs)

    def later(self) -> Awaitable[Any]:
        """Call its twin."""
        twin: Awaitable[Any] = getattr(self._owner, f"a{self._name}")(*self._args, **self._kwargs)
        return twin


class Work:
    """Work of the processor's that may take longer than an event loop can wait.

    Args:
        function: Does it.
        args: What it is called with.
    """

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self._function, self._args = function, args

    def now(self) -> Any:
        """Do it."""
        return self._function(*self._args)

    def later(self) -> Awaitable[Any]:
        """Do it in another thread."""
        return asyncio.to_thread(self._function, *self._args)


class Together:
    """Several steps run concurrently; returns their results in order.

    Args:
        steps: The steps: all run at once, so the caller limits their number.
    """

    def __init__(self, steps: Sequence[Steps[Any]]) -> None:
        self._steps = steps

    def now(self) -> list[Any]:
        """Run them, each in a thread; a single one in the calling thread."""
        if len(self._steps) < 2:
            return [run(steps) for steps in self._steps]
        with ThreadPoolExecutor(
            len(self._steps), thread_name_prefix="langmem-ext-memory"
        ) as workers:
            running = [workers.submit(copy_context().run, run, steps) for steps in self._steps]
            return [done.result() for done in running]

    async def later(self) -> list[Any]:
        """Carry them out, each in a task. If one fails, the others are cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                running = [group.create_task(arun(steps)) for steps in self._steps]
        except BaseExceptionGroup as failed:
            raise failed.exceptions[0] from None
        return [done.result() for done in running]


def run(steps: Steps[T]) -> T:
    """Carry out all steps in the calling thread; what the last one returned."""
    return perform(steps, lambda request: request.now())


async def arun(steps: Steps[T]) -> T:
    """Async twin of `run`."""
    return await aperform(steps, lambda request: request.later())
