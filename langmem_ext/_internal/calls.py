"""A run of a graph that is cancelled ends between the calls of its tools, never in one.

A sync tool goes on in its thread when the task that awaits it is cancelled, and an async one may
have done by then what it is for. If the run ended there, its result would be lost, and whoever
comes next to the thread would run the tool again, even at the same time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

T = TypeVar("T")


class _Run:
    """A run of a graph: whether it is in a call, and whether it is to end behind it."""

    calling = stopped = False


_run: ContextVar[_Run | None] = ContextVar("langmem_ext_run", default=None)


def _begun(work: Coroutine[Any, Any, T], run: _Run | None) -> asyncio.Task[T]:
    """A task of the work, as part of a run."""
    context = copy_context()
    context.run(_run.set, run)
    return asyncio.create_task(work, context=context)


async def uncut(running: Coroutine[Any, Any, T]) -> T:
    """Run a graph; cancelled in a tool's call, it goes on until the call's result is stored."""
    task = _begun(running, run := _Run())
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            if not (run.calling or run.stopped):  # once: LangGraph ends a second time unfinished
                task.cancel()
            cancelled, run.stopped = error, True
    if cancelled is not None:
        if not task.cancelled():
            task.exception()  # seen: nobody else asks for it
        raise cancelled
    return task.result()


def between_calls() -> None:
    """Say that what the run did so far is stored.

    Raises:
        asyncio.CancelledError: It is to go no further.
    """
    if (run := _run.get()) is not None:
        run.calling = False
        if run.stopped:
            raise asyncio.CancelledError


async def called(calling: Coroutine[Any, Any, T]) -> T:
    """What a tool's call returns; it is awaited to its end, whoever gives up meanwhile."""
    if (run := _run.get()) is not None:
        run.calling = True
    task = _begun(calling, None)  # a graph that the tool runs is no part of this run
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:  # the graph stores the result before it ends
            continue
    return task.result()
