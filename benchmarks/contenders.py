"""The checkpointers that are compared, each opened on a folder of its own."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver

from langmem_ext import DeltaSaver

Synchronous = Literal["full", "normal"]


@dataclass(frozen=True)
class Opened:
    """A checkpointer that is ready.

    Attributes:
        saver: What a graph is compiled with; None for none.
        file: Its database, where it has one.
        delta_channel: Whether the graph's messages are to be a `DeltaChannel`.
    """

    saver: Any
    file: Path | None = None
    delta_channel: bool = False

    def bytes(self) -> int:
        """The database's size with everything in it that has been committed."""
        if self.file is None:
            return 0
        with closing(sqlite3.connect(self.file)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        return sum(path.stat().st_size for path in self.file.parent.glob(f"{self.file.name}*") if not path.name.endswith("-shm"))


Open = Callable[[Path], AbstractContextManager[Opened]]


@contextmanager
def _none(folder: Path) -> Iterator[Opened]:
    yield Opened(None)


@contextmanager
def _memory(folder: Path) -> Iterator[Opened]:
    yield Opened(InMemorySaver())


def _delta(synchronous: Synchronous) -> Open:
    @contextmanager
    def opening(folder: Path) -> Iterator[Opened]:
        file = folder / "delta.db"
        with closing(DeltaSaver.open(str(file), synchronous=synchronous)) as saver:
            yield Opened(saver, file)

    return opening


def _sqlite(synchronous: Synchronous, *, delta_channel: bool = False) -> Open:
    @contextmanager
    def opening(folder: Path) -> Iterator[Opened]:
        file = folder / "sqlite.db"
        with closing(sqlite3.connect(file, check_same_thread=False)) as connection:
            connection.execute(f"PRAGMA synchronous = {synchronous.upper()}")
            saver = SqliteSaver(connection)
            saver.setup()
            yield Opened(saver, file, delta_channel)

    return opening


CONTENDERS: dict[str, Open] = {
    "none": _none,
    "memory": _memory,
    "sqlite": _sqlite("normal"),
    "sqlite-full": _sqlite("full"),
    "deltachannel": _sqlite("normal", delta_channel=True),
    "delta": _delta("normal"),
    "delta-full": _delta("full"),
}
"""By name. Without a suffix `synchronous=NORMAL`, which commits cheaper: so differences are seen better."""

TITLES = {
    "none": "no saver",
    "memory": "InMemorySaver",
    "sqlite": "SqliteSaver",
    "sqlite-full": "SqliteSaver FULL",
    "deltachannel": "DeltaChannel + SqliteSaver",
    "delta": "DeltaSaver",
    "delta-full": "DeltaSaver FULL",
}
