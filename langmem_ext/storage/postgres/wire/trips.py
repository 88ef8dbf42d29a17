"""Carries what a transaction sends (`pipeline.Wire`) to a server and back on a lent connection."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import psycopg

from langmem_ext.storage.postgres.pool import AsyncPool, SyncPool
from langmem_ext.storage.postgres.server import is_broken
from langmem_ext.storage.postgres.wire.exchange import (
    Step,
    aanswers,
    answers,
    begin,
    failure,
    is_left_open,
)
from langmem_ext.storage.postgres.wire.pipeline import Wire

T = TypeVar("T")


def play(pool: SyncPool, wire: Wire[T], *, deadline: float) -> T:
    """Run a wire; its result.

    Args:
        pool: Lends the connection.
        wire: Yields what to send. An error of the server is raised in it, and it may go on.
        deadline: How many seconds to wait for an answer.

    Raises:
        StorageUnavailable: There is no connection. Also what the wire raises.
    """
    with pool.connection() as connection:
        step: Step = partial(next, wire)
        try:
            while True:
                try:
                    results = answers(connection, begin(connection, step), deadline=deadline)
                except psycopg.Error as error:
                    if is_broken(error):
                        pool.check()
                    step = partial(wire.throw, failure(error))
                else:
                    step = partial(wire.send, results)
        except StopIteration as done:
            value: T = done.value
            return value
        finally:
            wire.close()
            if is_left_open(connection):
                with suppress(psycopg.Error):  # it has ended: the pool makes another
                    connection.rollback()


async def aplay(pool: AsyncPool, wire: Wire[T], *, deadline: float) -> T:
    """Async twin of `play`."""
    step: Step = partial(next, wire)
    try:
        connection = await pool.lend()
        try:
            while True:
                try:
                    results = await aanswers(connection, begin(connection, step), deadline=deadline)
                except psycopg.Error as error:
                    if is_broken(error):
                        await pool.check()
                    step = partial(wire.throw, failure(error))
                else:
                    step = partial(wire.send, results)
        finally:
            await _give_back(pool, connection)
    except StopIteration as done:
        value: T = done.value
        return value
    finally:
        wire.close()


async def _give_back(pool: AsyncPool, connection: psycopg.AsyncConnection[Any]) -> None:
    try:
        if is_left_open(connection):
            with suppress(psycopg.Error):  # as above
                await connection.rollback()
    finally:
        await pool.give_back(connection)
