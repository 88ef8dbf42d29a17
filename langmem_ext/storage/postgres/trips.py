"""What a transaction has to send (`pipeline.Wire`), carried to a server and back, on a connection that is lent for it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import psycopg

from langmem_ext.storage.commands import Command, within
from langmem_ext.storage.effects import Rows
from langmem_ext.storage.pipeline import ExchangeFailed, Wire
from langmem_ext.storage.postgres.exchange import Step, aanswers, answers, begin, failure, is_left_open
from langmem_ext.storage.postgres.pool import AsyncPool, SyncPool
from langmem_ext.storage.postgres.questions import Questions
from langmem_ext.storage.postgres.server import is_broken

T = TypeVar("T")


def play(pool: SyncPool, wire: Wire[T], *, deadline: float) -> T:
    """Carry out a wire; what it returns.

    Args:
        pool: Lends the connection.
        wire: What is to be sent. Where the server refuses, it is told, and may say what then.
        deadline: How long an answer is waited for, in seconds.

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


async def aplay(pool: AsyncPool, wire: Wire[T], *, deadline: float, questions: Questions | None = None) -> T:
    """Async twin of `play`; where others are about, what is asked first goes along with their `questions`, if there are any."""
    step: Step = partial(next, wire)
    try:
        if questions is not None and pool.lent:
            commands = step()
            if asked := within(commands):
                step = await _ask_along(questions, wire, asked)
                commands = step()  # mostly the end
            step = partial(list, commands)
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


async def _ask_along(questions: Questions, wire: Wire[Any], asked: Sequence[Command]) -> Step:
    try:
        return partial(wire.send, [(), *await questions.ask(asked), ()])
    except ExchangeFailed as failed:
        return partial(wire.throw, failed)


async def atrip(pool: AsyncPool, commands: list[Command], *, deadline: float) -> Sequence[Rows]:
    """Send commands that are complete in themselves; the rows of each.

    Raises:
        StorageUnavailable: There is no connection.
        psycopg.Error: The server refuses, or the connection has ended.
    """
    connection = await pool.lend()
    try:
        return await aanswers(connection, begin(connection, partial(list, commands)), deadline=deadline)
    except psycopg.Error as error:
        if is_broken(error):
            await pool.check()
        raise
    finally:
        await _give_back(pool, connection)


async def _give_back(pool: AsyncPool, connection: psycopg.AsyncConnection[Any]) -> None:
    try:
        if is_left_open(connection):
            with suppress(psycopg.Error):  # as above
                await connection.rollback()
    finally:
        await pool.give_back(connection)
