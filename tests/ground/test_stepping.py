"""Promises of work in steps: its result, its questions' answers, and that it is closed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Generator

import pytest
from patience import PATIENCE_S

from langmem_ext._internal.stepping import aeach, afinish, aperform, finish, perform


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
            self.go_on.wait(PATIENCE_S)
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
            assert (
                finish(work.run(), told.append)
                if way == "sync"
                else await afinish(work.run(), told.append)
            ) == "done"
        assert told == [1, 2]
        assert work.steps == ["first", "second", "third", "closed"]


async def test_who_is_cancelled_waits_for_the_step_and_the_rest_is_closed() -> None:
    work = Work()
    task = asyncio.ensure_future(afinish(work.run()))
    await asyncio.to_thread(work.begun.wait, PATIENCE_S)
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


def double_all(asked: list[int], closed: list[bool]) -> Generator[int, int, list[object]]:
    """Asks for what each is when it is doubled; takes a refusal as it comes."""
    answers: list[object] = []
    try:
        for number in asked:
            try:
                answers.append((yield number))
            except ValueError as error:
                answers.append(str(error))
        return answers
    finally:
        closed.append(True)


def doubled(number: int) -> int:
    if number < 0:
        raise ValueError(f"{number} is negative")
    if number > 100:
        raise KeyboardInterrupt
    return 2 * number


async def adoubled(number: int) -> int:
    await asyncio.sleep(0)
    return doubled(number)


async def test_work_that_asks_is_told_what_answering_has_raised() -> None:
    for asked, answers in (([], []), ([1, 2], [2, 4]), ([1, -2, 3], [2, "-2 is negative", 6])):
        closed: list[bool] = []
        assert perform(double_all(asked, closed), doubled) == answers
        assert await aperform(double_all(asked, closed), adoubled) == answers
        assert closed == [True, True]


def test_work_that_is_interrupted_while_it_asks_is_closed() -> None:
    closed: list[bool] = []
    work = double_all([1, 101, 2], closed)
    with pytest.raises(KeyboardInterrupt):
        perform(work, doubled)
    assert closed == [True]


async def test_work_that_is_cancelled_while_it_asks_is_closed() -> None:
    closed: list[bool] = []
    asked = asyncio.Event()

    async def silent(number: int) -> int:
        asked.set()
        await asyncio.Event().wait()
        return number

    task = asyncio.create_task(aperform(double_all([1], closed), silent))
    await asked.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed == [True]
