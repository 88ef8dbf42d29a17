"""Promise: while a server's answer is awaited, what was sent is not kept; and no collection of
garbage comes while it is put together.

What is kept while others go on is taken for what lives long: in a crowd of tasks the collector then
looks at everything, again and again.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from langgraph.checkpoint.base import empty_checkpoint

from langmem_ext import DeltaSaver
from langmem_ext.storage.postgres.wire.commands import BEGIN_READ, BEGIN_WRITE, COMMIT, Command
from postgres.connections.test_questions import config, until_waiting
from postgres.server import SHARED, Database

NAMES = [f"t{number}" for number in range(20)]
CONSTANTS = (BEGIN_READ, BEGIN_WRITE, COMMIT)


@contextmanager
def newer_commands() -> Iterator[Callable[[], list[str]]]:
    """Tells of statements that wait to be sent, or are kept; not of those that earlier tests have
    left to who reports of them.
    """

    def found() -> list[str]:
        return [
            thing.sql
            for thing in gc.get_objects()
            if type(thing) is Command and thing not in CONSTANTS
        ]

    gc.collect()
    gc.freeze()
    try:
        yield found
    finally:
        gc.unfreeze()


async def test_nobody_keeps_what_writers_have_sent(database: Database) -> None:
    schema = SHARED.new_schema()
    async with DeltaSaver.from_conn_string(f"{database.url}?schema={schema}") as saver:
        stored = [await saver.aput(config(name), empty_checkpoint(), {}, {}) for name in NAMES]
        with (
            psycopg.connect(database.url, autocommit=True) as other,
            psycopg.connect(database.url) as holder,
            newer_commands() as commands,
        ):
            holder.execute(f"LOCK {schema}.thread IN ACCESS EXCLUSIVE MODE".encode())
            writing = [
                asyncio.create_task(saver.aput_writes(at, [("a", at)], "task")) for at in stored
            ]
            await until_waiting(other, 1)
            assert commands() == []
            holder.rollback()
            await asyncio.gather(*writing)
        found = await asyncio.gather(*map(saver.aget_tuple, stored))
        assert [one.pending_writes for one in found if one] == [
            [("task", "a", at)] for at in stored
        ]


async def test_no_collection_comes_while_a_batch_is_put_together(database: Database) -> None:
    async with DeltaSaver.from_conn_string(f"{database.url}?schema={SHARED.new_schema()}") as saver:
        stored = [await saver.aput(config(name), empty_checkpoint(), {}, {}) for name in NAMES]
        seen: list[list[str]] = []
        thresholds = gc.get_threshold()
        with newer_commands() as commands:

            def look(phase: str, _: dict[str, int]) -> None:
                if phase == "start":
                    seen.append(commands())

            gc.callbacks.append(look)
            gc.set_threshold(5, 10, 10)  # as often as can be
            try:
                await asyncio.gather(*(saver.aput_writes(at, [("a", 1)], "task") for at in stored))
            finally:
                gc.set_threshold(*thresholds)
                gc.callbacks.remove(look)
        assert len(seen) > len(NAMES)
        assert not any(seen)
