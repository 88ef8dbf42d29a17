"""Tasks of an event loop's connections, which finish or clean up if their caller is cancelled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextvars import Context
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


def start(loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start work in a task of its own at a later turn of the event loop; the caller holds the task.

    An event loop keeps no reference to its tasks.

    `create_task` is not used: with an eager task factory it would run the first steps itself,
    before anybody has noted the task or its work. The task has a context of its own: a caller's
    context must not be shared with others, nor kept.
    """
    return asyncio.Task(work, loop=loop, context=Context())


def start_held(
    loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, T], held: set[asyncio.Task[Any]]
) -> asyncio.Task[T]:
    """`start`, holding the task until it ends."""
    task = start(loop, work)
    held.add(task)
    task.add_done_callback(held.discard)
    return task


async def obtain(
    work: Coroutine[Any, Any, T],
    let_go: Callable[[T], Coroutine[Any, Any, object]],
    held: set[asyncio.Task[Any]],
) -> T:
    """The result of work; a cancelled caller does not wait for it, and its result is disposed of.

    psycopg uses `asyncio.wait_for` in places. Before Python 3.12 that swallows a cancellation if
    the awaited result arrives at that moment. Raising another one instead would not help: anyio
    recognises its own by their messages.

    Args:
        work: The awaited work.
        let_go: Disposes of a result that nobody waits for any more.
        held: Holds the tasks that do that until they end.
    """
    loop = asyncio.get_running_loop()
    task = start(loop, work)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        task.cancel()
        held.add(task)
        task.add_done_callback(partial(_dispose, loop, let_go, held))
        raise
    return task.result()


def _dispose(
    loop: asyncio.AbstractEventLoop,
    let_go: Callable[[T], Coroutine[Any, Any, object]],
    held: set[asyncio.Task[Any]],
    task: asyncio.Task[T],
) -> None:
    held.discard(task)
    if not task.cancelled() and task.exception() is None:
        start_held(loop, let_go(task.result()), held)
