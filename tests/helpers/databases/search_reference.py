"""What the tests of searching know: which messages a scan of all that may be shown finds."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from langgraph.checkpoint.base import BaseCheckpointSaver
from patience import PATIENCE_S, until

from langmem_ext import DeltaSaver, Threads
from langmem_ext.messages.search.query import has_all, plan_query
from langmem_ext.messages.search.words import list_words
from langmem_ext.storage.cache import ThreadCache
from langmem_ext.storage.checkpoints.sql import ITEM_COLUMNS
from langmem_ext.storage.driver import Running
from langmem_ext.storage.operation import Op, Rows, execute, fetch, operation
from langmem_ext.storage.schema.dialect import KEY, OF_THREAD
from langmem_ext.storage.search.catch_up import build_steps, open_index
from langmem_ext.storage.search.index import read_packed_item, read_state
from langmem_ext.types import Shown

Place = tuple[str, int]
"""A message: its thread's id, and its number there."""


class Overtaken(BaseCheckpointSaver[Any]):
    """Has a saver store the checkpoint behind an input only after its task's writes.

    LangGraph waits for neither, with `durability="async"`, so either may come first.

    Args:
        saver: The saver.
        look: Called in between.
    """

    def __init__(self, saver: DeltaSaver, look: Callable[[], None]) -> None:
        super().__init__(serde=saver.serde)
        self._saver, self._look = saver, look
        self._written = threading.Event()
        self._step: int | None = None
        self._held: str | None = None

    def get_tuple(self, config: Any) -> Any:
        return self._saver.get_tuple(config)

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        if metadata["source"] == "input":
            self._step = metadata["step"] + 1
        elif metadata["step"] == self._step:
            self._held = checkpoint["id"]
            assert self._written.wait(PATIENCE_S)
        return self._saver.put(config, checkpoint, metadata, new_versions)

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        self._saver.put_writes(config, writes, task_id, task_path)
        # Their checkpoint is there, or comes: the input's own is on its way as well, and is not
        # held.
        if (
            until(
                lambda: (
                    self._saver.get_tuple(config)
                    or config["configurable"]["checkpoint_id"] == self._held
                )
            )
            is True
        ):
            self._look()
            self._written.set()

    def get_next_version(self, current: Any, channel: None) -> Any:
        return self._saver.get_next_version(current, channel)


def has_index(saver: DeltaSaver) -> bool:
    """Whether somebody has searched the database, or has begun to make its index."""
    return bool(saver.log.run(read_state(), write=False))


def begin_index(saver: DeltaSaver, steps: int) -> None:
    """Make an index as far as so many steps come; with none, its tables."""
    if not steps:
        saver.log.run(open_index(), write=True)
        return
    building = Running(saver.log.driver, build_steps(saver.codec))
    for _ in range(steps):
        if not building.advance():
            break


def spoil(saver: DeltaSaver, statement: str) -> None:
    """Change the database behind the saver's back."""
    saver.log.run(operation(execute)(statement), write=True)
    saver.log.caches.forget()


def shown(saver: DeltaSaver) -> tuple[dict[Place, Shown], set[Place]]:
    """What may be shown of each thread's messages, newest by id; and those still in use."""

    @operation
    def read() -> Op[Any]:
        found: dict[Place, Shown] = {}
        open_ones: set[Place] = set()
        threads: Rows = yield from fetch("SELECT number, id FROM thread")
        for number, name in threads:
            newest: dict[Any, Shown | None] = {}
            marked: dict[Any, tuple[Place, Shown]] = {}
            places: dict[Any, Place] = {}
            last: Place | None = None
            items = yield from fetch(
                f"SELECT {ITEM_COLUMNS} FROM item WHERE {OF_THREAD} ORDER BY {KEY}", thread=number
            )
            for row in items:
                packed = yield from read_packed_item(ThreadCache(number), row, saver.codec)
                one = saver.codec.shown_of(packed)
                identity = row[1] if row[1] is not None else row[0]
                newest[identity], places[identity] = one, (name, row[0] & 0xFFFFFFFF)
                if one is not None and one.whole is not None:
                    marked[identity] = places[identity], one
                if row[2] is not None or row[7] is not None:
                    last = places[identity]
            for identity, one in newest.items():
                # What a node has marked may have been stored before the message as the node was
                # given it.
                if (
                    one is not None
                    and identity in marked
                    and one.whole is None
                    and one.text == marked[identity][1].whole
                ):
                    found[marked[identity][0]] = marked[identity][1]
                elif one is not None:
                    found[places[identity]] = one
            if last is not None and last in found and found[last].open:
                open_ones.add(last)
        return found, open_ones

    result: tuple[dict[Place, Shown], set[Place]] = saver.log.run(read(), write=False)
    return result


def assert_found(saver: DeltaSaver, threads: Threads, query: str) -> None:
    """A search finds what a scan finds, in all threads and in each."""
    terms = plan_query(query)
    messages, open_ones = shown(saver)
    matching = {place for place, one in messages.items() if has_all(list_words(one.text), terms)}
    found = {(hit.thread_id, hit.number) for hit in threads.search(query, limit=10_000)}
    assert matching - open_ones <= found <= matching, query
    for thread in {place[0] for place in messages}:
        mine = {
            (hit.thread_id, hit.number)
            for hit in threads.search(query, thread=thread, limit=10_000)
        }
        assert mine == {place for place in found if place[0] == thread}, query
