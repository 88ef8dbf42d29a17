"""Promise: what a call has used up is freed when it returns; none of it waits for Python's garbage
collector, which has to look for it.

A reference cycle in each call is not seen in any result, but it costs a collection every few turns,
and memory that grows until then.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any

import pytest
from savers import BACKENDS, Backend, Calls, Mode, Shelf
from writer_turns import config_of, turns

PACKAGE = "langmem_ext"


@contextmanager
def left_behind() -> Iterator[list[str]]:
    """What the collector alone would have freed of what the package has made meanwhile, once this
    is over.
    """
    found: list[str] = []
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        yield found
        gc.collect()
        found += sorted(
            {name for thing in gc.garbage if (name := origin(thing)).startswith(PACKAGE)}
        )
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def origin(thing: Any) -> str:
    """The module in which a thing, or the code that it belongs to, was written, and its name."""
    if isinstance(thing, FunctionType):
        return f"{thing.__module__}.{thing.__qualname__}"
    if isinstance(thing, FrameType):
        return f"{thing.f_globals.get('__name__', '')}.{thing.f_code.co_qualname}"
    return f"{type(thing).__module__}.{type(thing).__qualname__}"


class Knot:
    """Something that refers to itself."""

    def __init__(self) -> None:
        self.knot = self


def test_what_refers_to_itself_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Knot, "__module__", f"{PACKAGE}.knots")
    with left_behind() as found:
        Knot()
    assert found == [f"{PACKAGE}.knots.Knot"]


@pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
async def test_no_call_of_a_saver_leaves_garbage(
    backend: Backend, mode: Mode, tmp_path: Path
) -> None:
    calls, shelf = Calls(mode), Shelf(backend, mode, tmp_path)
    saver = shelf.saver

    async def all_calls(thread: str) -> None:
        for before, turn in pairwise([None, *turns("worker", thread)]):
            assert turn is not None
            await calls.call(
                saver, "put", turn.config, turn.checkpoint, turn.metadata, turn.versions
            )
            await calls.call(saver, "put_writes", turn.stored, turn.writes, turn.task, "~path")
            await calls.call(saver, "get_tuple", turn.stored)
            if before is not None:
                await calls.call(
                    saver, "put", before.config, before.checkpoint, before.metadata, before.versions
                )
        await calls.collect(saver, "list", config_of(thread))
        await calls.call(saver, "get_tuple", config_of("nowhere"))
        await calls.call(saver, "copy_thread", thread, f"copy of {thread}")
        await calls.call(saver, "delete_thread", thread)

    try:
        await all_calls("the first finds everything new")
        with left_behind() as found:
            await all_calls("t")
        assert found == []
    finally:
        await shelf.close()
