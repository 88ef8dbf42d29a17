"""What tests of moves need: savers to copy from, all that can be read, what must be equal."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from comparison import Form, Names, assert_same
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple
from langgraph.checkpoint.sqlite import SqliteSaver

Saver = BaseCheckpointSaver[Any]


class SqliteShelf:
    """A `SqliteSaver` on a file: the shape of `savers.Shelf`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.saver = self._open()

    def _open(self) -> SqliteSaver:
        connection = sqlite3.connect(self.path, check_same_thread=False)
        connection.execute("PRAGMA synchronous = OFF")
        saver = SqliteSaver(connection)
        saver.setup()
        return saver

    async def reopen(self) -> Saver:
        await self.close()
        self.saver = self._open()
        return self.saver

    async def close(self) -> None:
        self.saver.conn.close()


@contextmanager
def sqlite_saver(path: Path) -> Iterator[SqliteSaver]:
    """A `SqliteSaver` on a file."""
    shelf = SqliteShelf(path)
    try:
        yield shelf.saver
    finally:
        shelf.saver.conn.close()


def place_of(config: RunnableConfig) -> tuple[str, str, str]:
    """Thread, namespace and id that a config names."""
    configurable = config["configurable"]
    return (
        str(configurable["thread_id"]),
        configurable["checkpoint_ns"],
        configurable["checkpoint_id"],
    )


def everything(saver: Saver) -> dict[tuple[str, str, str], Form]:
    """Every checkpoint that a saver lists, as an exact form, by its place."""
    return forms_of(saver.list(None))


def forms_of(listed: Iterable[CheckpointTuple]) -> dict[tuple[str, str, str], Form]:
    """Exact forms of checkpoints, by position.

    Key order counts in values but not among channels, where savers differ.
    """
    forms: dict[tuple[str, str, str], Form] = {}
    for found in listed:
        form = Names(keep=True).checkpoint(found)
        assert form is not None
        forms[place_of(found.config)] = form
    return forms


def assert_moved(source: Saver, target: Saver) -> None:
    """Fail unless the target gives every checkpoint as the source does, and each by its id too."""
    expected, found = everything(source), everything(target)
    assert sorted(found) == sorted(expected)
    for place, form in expected.items():
        assert_same(form, found[place], f"checkpoint {place}")


def assert_same_histories(
    graph_of: Any, source: Saver, target: Saver, threads: Iterable[str]
) -> None:
    """Fail unless the application's graph gives the same history of every thread on both."""
    for thread in threads:
        config: RunnableConfig = {"configurable": {"thread_id": thread}}
        expected, found = (
            [
                Names(keep=True).snapshot(state)
                for state in graph_of(saver).get_state_history(config)
            ]
            for saver in (source, target)
        )
        assert len(found) == len(expected)
        for one, other in zip(expected, found, strict=True):
            assert_same(one, other, f"a state of thread {thread!r}")
        head, other = (
            Names(keep=True).snapshot(graph_of(saver).get_state(config, subgraphs=True))
            for saver in (source, target)
        )
        assert_same(head, other, f"the state of thread {thread!r}")


def rows(path: Path, statement: str) -> list[Any]:
    """Rows of a database."""
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute(statement).fetchall()
