"""A task factory whose tasks begin as they are made: Python's own, which came with 3.12, or what
does the same.
"""

from __future__ import annotations

import asyncio
import types
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context, copy_context
from functools import partial
from typing import Any


def _emulated(
    loop: asyncio.AbstractEventLoop,
    coroutine: Coroutine[Any, Any, Any],
    context: Context | None = None,
    **options: Any,
) -> Any:
    context = context or copy_context()
    if not loop.is_running():
        return asyncio.Task(coroutine, loop=loop, context=context, **options)
    first: list[Callable[[], Any]] = []
    task: asyncio.Task[Any] = asyncio.Task(
        _rest(coroutine, first), loop=loop, context=context, **options
    )
    outer = asyncio.current_task(loop)
    if outer is not None:
        asyncio.tasks._leave_task(loop, outer)
    asyncio.tasks._enter_task(loop, task)
    try:
        first.append(partial(_same, context.run(coroutine.send, None)))
    except BaseException as error:
        first.append(partial(_raise, error))
    finally:
        asyncio.tasks._leave_task(loop, task)
        if outer is not None:
            asyncio.tasks._enter_task(loop, outer)
    return task


@types.coroutine
def _rest(
    coroutine: Coroutine[Any, Any, Any], first: list[Callable[[], Any]]
) -> Generator[Any, Any, Any]:
    """A coroutine from behind what its first step came to."""
    step = first[0]
    while True:
        try:
            awaited = step()
        except StopIteration as end:
            return end.value
        try:
            step = partial(coroutine.send, (yield awaited))
        except BaseException as error:
            step = partial(coroutine.throw, error)


def _same(awaited: Any) -> Any:
    return awaited


def _raise(error: BaseException) -> None:
    raise error


EAGER: Any = getattr(asyncio, "eager_task_factory", _emulated)
