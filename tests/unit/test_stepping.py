"""Promises of work in steps: it gives what its last step returns, and who is cancelled waits for the step that runs and closes the rest."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import pytest

from langmem_ext.stepping import aeach, afinish, finish


class Work:
    """Three steps; the second waits until it is let go."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def run(self) -> Generator[int, None, str]:
        try:
            self.steps.append("first")
            yield 1
            self.begun.set()
            self.go_on.wait(30)
            self.steps.append("second")
            yield 2
            self.steps.append("third")
            return "done"
        finally:
            self.steps.append("closed")


async def test_all_steps_are_carried_out_and_told() -> None:
    for way in ("sync", "async", "each"):
        work, told = Work(), []
        work.go_on.set()
        if way == "each":
            told = [step async for step in aeach(work.run())]
        else:
            assert (finish(work.run(), told.append) if way == "sync" else await afinish(work.run(), told.append)) == "done"
        assert told == [1, 2]
        assert work.steps == ["first", "second", "third", "closed"]


async def test_who_is_cancelled_waits_for_the_step_and_the_rest_is_closed() -> None:
    work = Work()
    task = asyncio.ensure_future(afinish(work.run()))
    await asyncio.to_thread(work.begun.wait, 30)
    task.cancel()
    await asyncio.sleep(0)
    assert not task.done()
    work.go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert work.steps == ["first", "second", "closed"]


async def test_an_error_of_a_step_is_its_callers() -> None:
    def failing() -> Generator[int, None, None]:
        yield 1
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        finish(failing())
    with pytest.raises(ValueError, match="no"):
        await afinish(failing())
    with pytest.raises(ValueError, match="no"):
        [step async for step in aeach(failing())]
