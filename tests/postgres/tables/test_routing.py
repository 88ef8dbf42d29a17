"""Promise: every statement of the hot path names one thread, so threads may live on several servers
that know nothing of each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any, TypeVar

import psycopg
import pytest
from prune_reference import assert_sound

from langmem_ext import DeltaSaver, MessageLog, ThreadChatMessageHistory, Threads
from langmem_ext.storage.operation import Rows
from langmem_ext.storage.postgres.driver import PostgresDriver
from langmem_ext.storage.postgres.wire.commands import Command
from langmem_ext.storage.postgres.wire.exchange import exchange, failure
from langmem_ext.storage.postgres.wire.pipeline import Wire
from langmem_ext.storage.rows.ids import thread_number
from postgres.cluster import Cluster
from postgres.hot_path import STEPS, config, say, texts
from postgres.server import SHARED, Database

T = TypeVar("T")
THREADS = [f"thread-{number}" for number in range(20)]


class Unroutable(Exception):
    """A statement names no thread, or more than one."""


class Router(PostgresDriver):
    """Sends each statement to the server on which the one thread lives that is among its
    parameters, and refuses every other statement.

    Args:
        urls: The servers; the first one's driver also does what is no statement of an operation.
        threads: The ids of all threads that there are.
    """

    def __init__(self, urls: Sequence[str], threads: Sequence[str]) -> None:
        super().__init__(urls[0])
        self._places = [PostgresDriver(url) for url in urls]
        self._numbers = {thread_number(thread): at for at, thread in enumerate(threads)}
        self._homes: Mapping[object, int] = {
            **self._numbers,
            **{thread: at for at, thread in enumerate(threads)},
        }
        self.sent = [0] * len(urls)

    def place_of(self, thread: str) -> int:
        """Where a thread lives."""
        return thread_number(thread) % len(self._places)

    def _home(self, command: Command) -> int:
        """Where a statement is sent."""
        # Whatever a parameter is called: no other number or text is one of theirs.
        named = {
            self._homes[value]
            for value in values_of(command)
            if isinstance(value, int | str) and value in self._homes
        }
        if ".tombstone WHERE deleted_at" in str(command.sql):
            return self.place_of(THREADS[0])  # old ones are removed wherever
        if len(named) != 1:
            raise Unroutable(f"{len(named)} threads in {command.sql}")
        return self.place_of(THREADS[named.pop()])

    def _play(self, wire: Wire[T]) -> T:
        with ExitStack() as stack:
            connections = [stack.enter_context(place._pool.connection()) for place in self._places]
            try:
                commands = next(wire)
                while True:
                    try:
                        results = self._share_out(connections, commands)
                    except psycopg.Error as error:
                        commands = wire.throw(failure(error))
                    else:
                        commands = wire.send(results)
            except StopIteration as done:
                value: T = done.value
                return value
            finally:
                wire.close()
                for connection in connections:
                    connection.rollback()

    def _share_out(
        self, connections: Sequence[psycopg.Connection[Any]], commands: Sequence[Command]
    ) -> Sequence[Rows]:
        every = range(len(connections))
        homes = [
            every if command.sql.startswith(("BEGIN", "COMMIT")) else (self._home(command),)
            for command in commands
        ]
        answers: list[Iterator[Rows]] = []
        for at in every:
            own = [command for command, home in zip(commands, homes, strict=True) if at in home]
            self.sent[at] += sum(command.params is not None for command in own)
            answers.append(
                iter(exchange(connections[at], own, deadline=self.server.answer_deadline))
            )
        return [[next(answers[at]) for at in home][0] for home in homes]

    def close(self) -> None:
        super().close()
        for place in self._places:
            place.close()


def values_of(command: Command) -> Sequence[object]:
    params = command.params or ()
    return params if isinstance(params, tuple) else list(params.values())


def test_threads_live_on_two_servers_by_the_statements_alone(
    cluster: Cluster, database: Database
) -> None:
    schema = SHARED.new_schema()  # statements name it
    urls = [f"{server.url}?schema={schema}" for server in (cluster, database)]
    router = Router(urls, THREADS)
    with DeltaSaver(MessageLog(router)) as saver:

        def live(thread: str) -> list[str]:
            # All steps on some threads: on all of them this takes its time, and finds no more.
            for step in STEPS.values() if thread.endswith(("3", "7")) else (say, say):
                step(saver, thread)
            return texts(saver, thread)

        with ThreadPoolExecutor(4) as pool:  # operations of several threads share a transaction
            said = dict(zip(THREADS, pool.map(live, THREADS), strict=True))
        assert min(router.sent) > 100
        saver.delete_thread(THREADS[0])
        saver.prune([THREADS[1]])
        ThreadChatMessageHistory(THREADS[2], saver).clear()
        with DeltaSaver(MessageLog(Router(urls, THREADS))) as cold:
            assert [texts(cold, thread) for thread in THREADS[3:]] == [
                said[thread] for thread in THREADS[3:]
            ]
            assert [len(list(cold.list(config(thread)))) for thread in THREADS[:2]] == [0, 1]
            assert texts(cold, THREADS[2]) == []
        for over_all in (lambda: Threads(saver).list(), lambda: list(saver.list(None))):
            with pytest.raises(Unroutable):
                over_all()
    found = []
    for at, url in enumerate(urls):
        with DeltaSaver.open(url) as alone:
            assert_sound(alone)
            found.append({thread.id: texts(alone, thread.id) for thread in Threads(alone).list()})
            assert {router.place_of(thread) for thread in found[at]} == {at}
    assert {
        thread: those for place in found for thread, those in place.items() if thread in THREADS[3:]
    } == {thread: said[thread] for thread in THREADS[3:]}
