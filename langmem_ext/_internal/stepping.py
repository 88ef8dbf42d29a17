"""Work as a generator, run at once in the calling thread or step by step in worker threads.

Some work yields questions.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from typing import Any, Final, TypeVar

S = TypeVar("S")
T = TypeVar("T")
R = TypeVar("R")
A = TypeVar("A")

_DONE: Final = object()


def finish(steps: Generator[S, None, T], tell: Callable[[S], object] | None = None) -> T:
    """Run all steps in the calling thread; returns their result.

    Args:
        steps: The work; it is closed in any case.
        tell: Called with what each step yields.
    """
    try:
        while True:
            step = next(steps)
            if tell is not None:
                tell(step)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        steps.close()


async def afinish(steps: Generator[S, None, T], tell: Callable[[S], object] | None = None) -> T:
    """Async twin of `finish`; cancelled, it ends with the step that runs."""
    try:
        while True:
            step, result = await _next(steps)
            if step is _DONE:
                return result  # type: ignore[no-any-return]
            if tell is not None:
                tell(step)
    finally:
        await asyncio.to_thread(steps.close)


async def aeach(steps: Generator[S, None, Any]) -> AsyncGenerator[S, None]:
    """What the steps yield, each on demand."""
    try:
        while (step := (await _next(steps))[0]) is not _DONE:
            yield step
    finally:
        await asyncio.to_thread(steps.close)


async def _next(steps: Generator[Any, None, Any]) -> tuple[Any, Any]:
    step = asyncio.ensure_future(asyncio.to_thread(_advance, steps))
    try:
        return await asyncio.shield(step)
    finally:
        # A cancelled caller waits for the step: a running generator cannot be closed.
        await asyncio.wait([step])


def _advance(steps: Generator[Any, None, Any]) -> tuple[Any, Any]:
    try:
        return next(steps), None
    except StopIteration as done:
        return _DONE, done.value


def perform(steps: Generator[R, A, T], answer: Callable[[R], A]) -> T:
    """Carry out work that asks for something at each step; what the last one returned.

    Args:
        steps: The work: it yields a request and receives the answer; what answering has raised is
            raised there. It is closed in the end.
        answer: Answers a request.
    """
    try:
        request = next(steps)
        while True:
            try:
                answered = answer(request)
            except Exception as error:
                request = steps.throw(error)
            else:
                request = steps.send(answered)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        steps.close()


async def aperform(steps: Generator[R, A, T], answer: Callable[[R], Awaitable[A]]) -> T:
    """Async twin of `perform`; the steps themselves run on the event loop."""
    try:
        request = next(steps)
        while True:
            try:
                answered = await answer(request)
            except Exception as error:
                request = steps.throw(error)
            else:
                request = steps.send(answered)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        steps.close()
