"""Runs operations in few round trips: which statements are sent together. Nothing here does I/O.

An operation yields one statement after the other. Changes, which it need not wait for
(`storage.operation.Change`), are gathered: they are sent with the next query, or at the end, in one
pipeline. A write that relies on the cache has no queries: it is one pipeline with one Sync, which
PostgreSQL makes one transaction. If another process has written meanwhile, its guard fails the
transaction, and the operation runs again, with queries.

Invariants:
- A write is one transaction: a pipeline with one Sync, or from BEGIN to COMMIT if it has queries.
- A read sees one snapshot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from langmem_ext.storage.driver import Job
from langmem_ext.storage.operation import (
    ONE,
    Batch,
    Effect,
    Op,
    Operation,
    Pause,
    Rows,
    Stale,
    Statement,
    Together,
)
from langmem_ext.storage.postgres.wire.commands import (
    BEGIN_READ,
    BEGIN_WRITE,
    COMMIT,
    Command,
    exactly_one,
    kind_of,
    one_snapshot,
)
from langmem_ext.storage.rows.ids import thread_number
from langmem_ext.storage.schema.dialect import Dialect

T = TypeVar("T")

QUEUE_BYTES: Final = 4 * 1024 * 1024
"""About how many bytes a long write sends at a time."""


class ExchangeFailed(Exception):
    """An exchange has failed, and nothing of it is stored; the cause says why."""


class GroupFailed(Exception):
    """One of several operations has failed: none is stored, and each must run by itself."""


Wire: TypeAlias = Generator[list[Command], Sequence[Rows], T]
"""Yields statements to send in one pipeline with one Sync, and receives the rows of each.

The sender empties the list, so that a batch of writes is not kept while its answer is awaited. An
empty list is a place where others may run. If an exchange fails, `ExchangeFailed` is raised where
the list was yielded.
"""


class Transaction(ABC):
    """One transaction, as operations fill it.

    Args:
        dialect: Writes statements as PostgreSQL takes them.
    """

    def __init__(self, dialect: Dialect) -> None:
        self._render = dialect.render
        # Set once all operations have ended: from then on they may be stored.
        self.results: Sequence[Any] = ()
        self._queue: list[Command] = []
        self._begun = False

    def run(self, op: Operation[T]) -> Wire[T]:
        """Run an operation as all of this transaction."""
        result = yield from self._run(op)
        self.results = (result,)
        yield from self._finish()
        return result

    def _run(self, op: Operation[T]) -> Wire[T]:
        steps = op()
        answer: Any = None
        ended: tuple[T] | None
        try:
            while True:
                ended, asked = self._advance(steps, answer)
                if ended is not None:
                    return ended[0]
                answer = yield from self._ask(asked)
        finally:
            steps.close()

    def _advance(self, steps: Op[T], answer: Any) -> tuple[tuple[T] | None, int | None]:
        """Take steps until rows are needed, or the operation has ended.

        Returns the result, if it has ended, and how many statements' rows are needed (None: one; 0:
        a pause).
        """
        send, queue, render = steps.send, self._queue, self._render
        try:
            while True:
                effect = send(answer)
                answer = None
                if type(effect) is list:
                    for sql, params, rows in effect:
                        sql = exactly_one(render(sql)) if rows == ONE else render(sql)
                        queue.append(Command(sql, params))
                    continue
                if type(effect) is tuple:
                    queue.append(Command(render(effect[0]), effect[1]))
                    return None, None
                asked, waits = self._queue_other(effect)
                if waits:
                    return None, asked
                answer = ()
        except StopIteration as done:
            # Not the exception: its traceback would keep this frame, and all of the operation,
            # until the garbage is collected.
            return (done.value,), None

    def _queue_other(self, effect: Effect) -> tuple[int | None, bool]:
        """Queue any other effect: how many statements it has, and whether it waits for rows."""
        if isinstance(effect, Statement):
            self._queue.append(self._named(effect))
            return None, kind_of(self._queue[-1].sql).returns_rows
        if isinstance(effect, Batch):
            sql = self._render(effect.sql)
            self._queue += [Command(sql, params) for params in effect.params]
            return None, False
        if isinstance(effect, Together):
            self._queue += [
                (
                    self._named(statement)
                    if isinstance(statement, Statement)
                    else Command(self._render(statement[0]), statement[1])
                )
                for statement in effect.statements
            ]
            return len(effect.statements), True
        assert isinstance(effect, Pause)
        return 0, True

    def _named(self, statement: Statement) -> Command:
        sql, params = self._render(statement.sql), statement.params
        if kind_of(sql).names_thread:
            params = {**params, "id_number": thread_number(params["id"])}
        return Command(sql, params)

    def _ask(self, asked: int | None) -> Wire[Any]:
        """The rows of what was queued last; of several statements, those of each."""
        if asked == 0:
            yield from self._pause()
            return ()
        queue, self._queue = self._queue, []
        rows = yield from self._send(queue)
        return rows[-1] if asked is None else rows[-asked:]

    def _pause(self) -> Wire[None]:
        """Let others run."""
        yield []

    @abstractmethod
    def _send(self, queue: Sequence[Command]) -> Wire[Sequence[Rows]]:
        """Send what was queued, the last of it being a query; the rows of each."""

    @abstractmethod
    def _finish(self) -> Wire[None]:
        """Send what is left, and end the transaction."""


class Write(Transaction):
    """A transaction that changes something. Without queries, it is one pipeline."""

    _weighed = _weight = 0

    def run_all(self, jobs: Sequence[Job[Any]]) -> Wire[None]:
        """Run operations as one transaction.

        Raises:
            GroupFailed: None is stored, and each must run by itself.
        """
        for job in jobs:
            try:
                job.result = yield from self._run(job.op)
            except (ExchangeFailed, Stale):
                raise
            except Exception as error:
                if len(jobs) > 1:
                    # What it alone has sent would have to be rolled back.
                    raise GroupFailed from error
                raise
        self.results = [job.result for job in jobs]
        yield from self._finish()

    def _pause(self) -> Wire[None]:
        # A long write is sent in pieces, so that it need not fit into memory.
        self._weight += sum(map(Command.weight, self._queue[self._weighed :]))
        self._weighed = len(self._queue)
        if self._weight < QUEUE_BYTES:
            yield []
            return
        queue, self._queue = self._queue, []
        yield from self._send(queue)

    def _send(self, queue: Sequence[Command]) -> Wire[Sequence[Rows]]:
        begin = () if self._begun else (BEGIN_WRITE,)
        self._begun = True
        self._weighed = self._weight = 0
        return (yield [*begin, *queue])[len(begin) :]

    def _finish(self) -> Wire[None]:
        queue, self._queue = self._queue, []
        if self._begun:
            queue.append(COMMIT)
        if queue:
            yield queue


GUESSES: Final = 2
"""How often a read takes a query for its last: most have one, and two if nothing is cached of the
thread."""


class Read(Transaction):
    """A transaction that changes nothing, and sees one snapshot.

    Args:
        dialect: Writes statements as PostgreSQL takes them.
        hasty: Whether the first query is mostly the last: then it ends the transaction. If another
            one follows, all of them are sent again, and the rows compared.
    """

    def __init__(self, dialect: Dialect, *, hasty: bool = True) -> None:
        super().__init__(dialect)
        self._guesses = GUESSES if hasty else 0
        self._before: list[tuple[Command, Rows]] = []

    def _send(self, queue: Sequence[Command]) -> Wire[Sequence[Rows]]:
        if self._begun:
            return (yield [*queue])
        asked = [*(command for command, _ in self._before), *queue]
        guesses, self._guesses = self._guesses, self._guesses - 1
        if guesses <= 0:
            self._begun = True
            results = (yield [BEGIN_READ, *asked])[1:]
        elif len(asked) > 1:
            results = (yield one_snapshot(asked))[1:-1]
        else:
            results = yield asked[:]
        for (_, rows), again in zip(self._before, results, strict=False):
            if [*map(tuple, rows)] != [*map(tuple, again)]:
                raise Stale  # the rows have changed before the snapshot was taken
        self._before = list(zip(asked, results, strict=True))
        return results[len(asked) - len(queue) :]

    def _finish(self) -> Wire[None]:
        if self._begun or self._queue:
            yield [*self._queue, COMMIT] if self._begun else one_snapshot(self._queue)
