"""Where tests get savers: one place to open the subject, one list of its databases."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeVar
from uuid import uuid4

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from postgres.server import SHARED

from langmem_ext import DeltaSaver

Mode = Literal["sync", "async"]
MODES: tuple[Mode, ...] = ("sync", "async")
Saver = BaseCheckpointSaver[Any]
T = TypeVar("T")


def open_saver(url: str, *, compress: bool = False) -> Any:
    """Open the saver under test: the one line to change for another subject."""
    return DeltaSaver.open(url, compress=compress)


@dataclass(frozen=True)
class Backend:
    """A kind of database that the subject runs on."""

    name: str
    survives_close: bool
    new_url: Callable[[Path], str]
    compress: bool = False


def new_schema(folder: Path) -> str:
    """An empty PostgreSQL database of the test's own; skips the test without a server."""
    return f"{SHARED.database().url}?schema={SHARED.new_schema()}"


def empty_tables(folder: Path) -> str:
    """The same with empty tables, which other tests have used."""
    return f"{SHARED.database().url}?schema={SHARED.tables()}"


BACKENDS = (
    Backend("memory", survives_close=False, new_url=lambda folder: ":memory:"),
    Backend("file", survives_close=True, new_url=lambda folder: str(folder / f"{uuid4().hex}.db")),
    Backend("postgres", survives_close=True, new_url=empty_tables),
)
COMPRESSED = tuple(
    replace(backend, name=f"{backend.name} compressed", compress=True) for backend in BACKENDS
)
SAMPLED = tuple(
    backend if backend.survives_close else pytest.param(backend, marks=pytest.mark.soak)
    for backend in COMPRESSED
)
"""The same for random tests: a database in memory is SQLite's, as a file is, which is closed and
opened too."""


@contextmanager
def brief_saver(backend: Backend, folder: Path) -> Iterator[DeltaSaver]:
    """A saver on a database that lasts as long as the block, for tests that need several."""
    with (
        SHARED.own_schemas(),
        DeltaSaver.open(backend.new_url(folder), synchronous="normal") as saver,
    ):
        yield saver


def _by_the_sync_one(name: str) -> Any:
    """An async method that calls the sync one of the saver behind it."""

    async def call(self: SyncAsAsync, *args: Any, **kwargs: Any) -> Any:
        return getattr(self.saver, name)(*args, **kwargs)

    return call


class SyncAsAsync(BaseCheckpointSaver[Any]):
    """Serves async methods by the sync ones of another saver, so that async suites test both."""

    def __init__(self, saver: Saver) -> None:
        super().__init__(serde=saver.serde)
        self.saver = saver

    async def alist(
        self, config: RunnableConfig | None, **wanted: Any
    ) -> AsyncIterator[CheckpointTuple]:
        for found in self.saver.list(config, **wanted):
            yield found

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self.saver.get_next_version(current, channel)

    aget_tuple, aput, aput_writes = map(_by_the_sync_one, ("get_tuple", "put", "put_writes"))
    adelete_thread, adelete_for_runs = map(_by_the_sync_one, ("delete_thread", "delete_for_runs"))
    acopy_thread, aprune = map(_by_the_sync_one, ("copy_thread", "prune"))
    aget_delta_channel_history = _by_the_sync_one("get_delta_channel_history")


class Calls:
    """Calls a saver's or a graph's methods in one mode, so that a test is written once for both.

    In mode "sync" nothing is ever awaited, and `run` needs no event loop.
    """

    def __init__(self, mode: Mode) -> None:
        self.mode = mode

    async def call(self, target: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call `target.name`, or in mode "async" await its twin `target.aname`."""
        if self.mode == "sync":
            return getattr(target, name)(*args, **kwargs)
        return await getattr(target, f"a{name}")(*args, **kwargs)

    async def collect(self, target: Any, name: str, *args: Any, **kwargs: Any) -> list[Any]:
        """Give all that the iterator `target.name` yields, or its async twin."""
        if self.mode == "sync":
            return list(getattr(target, name)(*args, **kwargs))
        return [item async for item in getattr(target, f"a{name}")(*args, **kwargs)]


def run_without_loop(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine that never really waits, without an event loop."""
    try:
        work.send(None)
    except StopIteration as finished:
        result: T = finished.value
        return result
    raise AssertionError("a step of mode 'sync' has waited for something")


class Shelf:
    """A database on which the subject is opened repeatedly; an in-memory one keeps its saver."""

    def __init__(self, backend: Backend, mode: Mode, folder: Path) -> None:
        self.backend = backend
        self.mode = mode
        self.url = backend.new_url(folder)
        self.saver = self._open()

    def _open(self) -> Saver:
        saver: Saver = open_saver(self.url, compress=self.backend.compress)
        return saver

    async def reopen(self) -> Saver:
        """Give a cold saver on the same database, where the database outlives its connection."""
        if self.backend.survives_close:
            await self.close()
            self.saver = self._open()
        return self.saver

    async def close(self) -> None:
        """Close the saver by the way of closing that fits the mode."""
        saver: Any = self.saver
        if self.mode == "async" and hasattr(saver, "aclose"):
            await saver.aclose()
        else:
            saver.close()
