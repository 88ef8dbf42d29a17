"""Promise: one truth. What is derived is what it is derived from; the doctor computes it again, and puts right what has drifted."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from hypothesis import given
from programs import Program, programs
from puts import Branch, Call, call_lists, new_ids
from savers import BACKENDS, Shelf, run_without_loop
from sessions import Session

from langmem_ext import examine

[FILE] = [backend for backend in BACKENDS if backend.survives_close]


def findings(source: Any, **options: Any) -> list[str]:
    """What is not a note."""
    return [f"{finding.place}: {finding.message}" for finding in examine(source, **options).findings if finding.severity != "note"]


async def _play(steps: Any, subject: Any, shelf: Shelf) -> None:
    try:
        for number, step in enumerate(steps):
            await subject.carry_out(step, last=number == len(steps) - 1)
        assert findings(shelf.saver) == []
        await shelf.reopen()
        assert findings(shelf.url) == []
    finally:
        await shelf.close()


@given(program=programs)
def test_nothing_is_found_after_random_programs(program: Program, folder: Path) -> None:
    shelf = Shelf(FILE, "sync", folder)
    run_without_loop(_play(program.steps, Session(shelf, "sync", program), shelf))


@given(calls=call_lists)
def test_nothing_is_found_after_random_calls(calls: list[Call], folder: Path) -> None:
    shelf = Shelf(FILE, "sync", folder)
    run_without_loop(_play(calls, Branch(shelf, "sync", new_ids(len(calls) + 1)), shelf))
