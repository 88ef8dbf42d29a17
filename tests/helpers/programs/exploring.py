"""Random programs, carried out on a saver and on the in-memory one beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any
from zlib import crc32

from comparison import assert_same
from hypothesis import given, seed, settings
from hypothesis.strategies import SearchStrategy
from programs import Program
from puts import Branch, Call, new_ids
from savers import Backend, Mode, ReferenceShelf, Shelf, run_without_loop
from sessions import Session


async def compare(program: Program, backend: Backend, mode: Mode, folder: Path) -> None:
    """Run a program on both savers, step by step, and compare all that can be read after each
    step.
    """
    shelf = Shelf(backend, mode, folder)
    try:
        reference, subject = (Session(place, mode, program) for place in (ReferenceShelf(), shelf))
        for number, step in enumerate(program.steps):
            last = number == len(program.steps) - 1
            expected = await reference.carry_out(step, last=last)
            found = await subject.carry_out(step, last=last)
            for (what, form), (_, other) in zip(expected, found, strict=True):
                assert_same(form, other, f"step {number} ({type(step).__name__}), {what}")
        reference.check_held()
        subject.check_held()
    finally:
        await shelf.close()


async def compare_calls(calls: list[Call], backend: Backend, mode: Mode, folder: Path) -> None:
    """Make the same calls on both savers and compare all that can be read after each, ids and
    moments included.
    """
    shelf, ids = Shelf(backend, mode, folder), new_ids(len(calls) + 1)
    try:
        reference, subject = (Branch(place, mode, ids) for place in (ReferenceShelf(), shelf))
        for number, call in enumerate(calls):
            last = number == len(calls) - 1
            expected = await reference.carry_out(call, last=last)
            found = await subject.carry_out(call, last=last)
            for (what, form), (_, other) in zip(expected, found, strict=True):
                assert_same(form, other, f"call {number} ({type(call).__name__}), {what}")
    finally:
        await shelf.close()


def carry_out(work: Coroutine[Any, Any, None], mode: Mode) -> None:
    """Run a comparison on an event loop or, in mode "sync", without one."""
    if mode == "async":
        asyncio.run(work)
    else:
        run_without_loop(work)


def explore(
    strategy: SearchStrategy[Any],
    work: Callable[..., Coroutine[Any, Any, None]],
    backend: Backend,
    mode: Mode,
    folder: Path,
    *,
    part: int = 1,
) -> None:
    """Draw examples and compare each; each kind of database and mode draws its own, always the same
    unless soaking.

    With a `part` there are so many times fewer of them, unless soaking: where the same is drawn for
    other kinds of databases too, which differ little in it.
    """

    @settings(
        max_examples=(
            max(1, settings().max_examples // part)
            if settings().derandomize
            else settings().max_examples
        )
    )
    @given(drawn=strategy)
    def compare_one(drawn: Any) -> None:
        carry_out(work(drawn, backend, mode, folder), mode)

    if settings().derandomize:
        compare_one = seed(crc32(f"{backend.name} {mode}".encode()))(compare_one)
    compare_one()
