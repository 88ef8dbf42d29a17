"""Operations carried out in few round trips: what is sent together, and what is taken for granted meanwhile. Nothing here does any I/O.

An operation yields one statement after the other, and mostly it is known what each will return: this process wrote the rows itself. So an
operation goes on with what is expected, its statements are gathered, and all of them are sent in one pipeline. The expectation is sent
along, as a condition that fails the transaction where another process wrote meanwhile: then the operation runs again, and asks. Where it
must ask, what it will mostly ask for next is asked for along with it (`Foresight`). A thread's row, which a write locks first and changes
last, is locked, compared and changed by one statement, also where several writes to the thread go together (`Closing`).

Invariants:
- What an operation returns, or raises, never rests on an expectation that was not compared with the database in the same transaction.
- A write is one transaction: a pipeline with one Sync, which PostgreSQL itself makes one, or from BEGIN to COMMIT where it had to ask.
- A read sees one snapshot.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from langmem_ext.storage.commands import BEGIN_READ, BEGIN_WRITE, COMMIT, Command, Kind, kind_of, one_snapshot
from langmem_ext.storage.dialect import Dialect
from langmem_ext.storage.effects import Batch, Closing, Foresight, Op, Operation, Params, Pause, Rows, Statement, Together
from langmem_ext.storage.group import Job
from langmem_ext.storage.ids import thread_number
from langmem_ext.storage.index import Indexes

T = TypeVar("T")

QUEUE_BYTES: Final = 4 * 1024 * 1024
"""What a write sends together, about, where it pauses."""


class ExpectationFailed(Exception):
    """Another process wrote meanwhile: the operation is to be run again, and to ask."""


class ForesightFailed(ExpectationFailed):
    """A read asks for more than was foreseen: it is to be run again, and to end when it has ended."""


class ExchangeFailed(Exception):
    """What was sent has failed, and nothing of it is stored; its cause says why.

    Attributes:
        shared: Whether it was sent together with what others asked: it may have been their fault.
    """

    shared = False


Wire: TypeAlias = Generator[list[Command], Sequence[Rows], T]
"""Yields what is to be sent in one pipeline with one Sync, and receives the rows of each statement.

Who sends it empties the list: while its answer is awaited, a batch of writes is not kept. Nothing to send is a place where others may run.
`ExchangeFailed` is raised in it where the exchange failed.
"""


class Transaction(ABC):
    """One transaction, from the side of those who fill it.

    Args:
        indexes: What this process knows of threads.
        dialect: Writes statements as PostgreSQL takes them.
        trusting: Whether expectations are taken for granted.
        hasty: Whether a read ends when an operation says that it asks for no more.
    """

    def __init__(self, indexes: Indexes, dialect: Dialect, *, trusting: bool, hasty: bool = True) -> None:
        self._indexes = indexes
        self._render = dialect.render
        self._trusting = trusting
        self._hasty = hasty
        self._repeatable = True
        self.told: Sequence[Any] = ()  # the results, once all operations have ended: from then on they may be stored
        self._queue: list[Command] = []
        self._begun = False
        self._rests = False
        self._asked: int | None = None  # how many statements: None for one, 0 for a pause
        self._ahead: Sequence[Statement] = ()
        self._more = self._last = False
        self._foreseen: dict[_Key, Rows] = {}
        self._locks: dict[int, _Lock] = {}  # by thread

    def carry_out(self, op: Operation[T]) -> Wire[T]:
        """Run an operation as all of this transaction."""
        self._repeatable = op.repeatable
        result = yield from self._run(op)
        self.told = (result,)
        yield from self._finish()
        return result

    def release(self) -> None:
        """What was learnt is so, and may be used by others."""
        self._indexes.release(self)

    def forget(self) -> None:
        """What was learnt is not so."""
        self._indexes.forget_claimed(self)
        self._indexes.release(self)

    def _run(self, op: Operation[T]) -> Wire[T]:
        steps = iter(op)
        rows: Rows | None = None
        ended: tuple[T] | None
        try:
            while (ended := self._indexes.claiming(self, self._advance, steps, rows)) is None:
                rows = yield from self._ask()
            return ended[0]
        except ExchangeFailed:
            raise
        except Exception as error:
            if self._rests:
                raise ExpectationFailed from error  # it may rest on what is not so
            raise
        finally:
            steps.close()

    def _advance(self, steps: Op[T], rows: Rows | None) -> tuple[T] | None:
        """Take steps until something has to be asked: None; or the operation has ended, with its result."""
        try:
            answer: Rows | None = rows
            while True:
                effect = steps.send(answer)
                answer = self._answer_one(effect) if isinstance(effect, Statement) else self._answer_other(effect)
                if answer is None:
                    return None
        except StopIteration as done:
            # Not the exception: its traceback would keep this frame, and all of the operation, until the garbage is collected.
            return (done.value,)

    def _answer_one(self, statement: Statement) -> Rows | None:
        """The rows that a statement has without asking; None where it must be asked."""
        if self._foreseen and (rows := self._foreseen.get(_key_of(statement))) is not None:
            return rows
        if self._locks and type(statement) is Closing and self._is_closed(statement):
            return ()
        sql, params, kind = self._rendered(statement)
        if self._foreseen or self._locks:
            self._note(kind)
        expected = statement.expected
        if not kind.returns_rows:
            self._queue.append(Command(sql, params))
            return ()
        if expected is None or not self._trusts(expected):
            self._queue.append(Command(sql, params))
            return None
        self._rests = True
        command = Command(sql, params, expected)
        if not (kind.locks and self._is_held(command)):
            self._queue.append(self._expecting(command))
        return expected

    def _answer_other(self, effect: Batch | Together | Foresight | Pause) -> Rows | None:
        """`_answer_one` for the other effects."""
        if isinstance(effect, Batch):
            sql = self._render(effect.sql)
            self._note(kind_of(sql))
            self._queue += [Command(sql, params) for params in effect.params]
            return ()
        if isinstance(effect, Foresight):
            self._ahead, self._more, self._last = effect.statements, effect.more, effect.last
            return ()
        if isinstance(effect, Together):
            return self._answer_all(effect.statements)
        self._asked = 0
        return None

    def _answer_all(self, statements: Sequence[Statement]) -> Sequence[Any] | None:
        """The rows of each, if all are known; else all are asked for."""
        foreseen = [self._foreseen.get(_key_of(statement)) for statement in statements]
        if None not in foreseen:
            return foreseen
        commands = []
        for statement in statements:
            sql, params, kind = self._rendered(statement)
            self._note(kind)
            commands.append(Command(sql, params, statement.expected))
        expected = [rows for rows in (one.expected for one in statements) if rows is not None and self._trusts(rows)]
        if len(expected) == len(commands):
            self._rests = True
            self._queue += map(self._expecting, commands)
            return expected
        self._asked = len(commands)
        self._queue += [command.asked() for command in commands]
        return None

    def _note(self, kind: Kind) -> None:
        """What came before may be changed by a statement that does more than read, or be what it reads."""
        if self._foreseen and not kind.only_reads:
            self._foreseen.clear()
        if self._locks and kind.uses_threads:
            self._locks.clear()

    def _trusts(self, expected: Rows) -> bool:
        """Whether rows that are expected are taken for granted. A condition speaks of one row: several are asked for."""
        return self._trusting and len(expected) <= 1

    def _rendered(self, statement: Statement) -> tuple[str, Params, Kind]:
        """A statement as it is sent, its parameters, and its kind."""
        sql, params = self._render(statement.sql), statement.params
        kind = kind_of(sql)
        if kind.names_thread:
            params = {**params, "id_number": thread_number(params["id"])}
        return sql, params, kind

    def _asking(self, statement: Statement) -> Command:
        """A command for what a statement returns, whatever it is."""
        sql, params, _ = self._rendered(statement)
        return Command(sql, params)

    def _ask(self) -> Wire[Any]:
        """The rows of what was queued last; of several statements, those of each."""
        asked, self._asked = self._asked, None
        if asked == 0:
            yield from self._pause()
            return ()
        queue, self._queue = self._queue, []
        ahead, self._ahead = self._ahead, ()
        rows = yield from self._send(queue, list(map(self._asking, ahead)))
        end = len(rows) - len(ahead)
        self._foreseen.update(zip(map(_key_of, ahead), rows[end:], strict=True))
        return rows[end - 1] if asked is None else rows[end - asked : end]

    def _pause(self) -> Wire[None]:
        """Let others run."""
        yield []

    def _exchange(self, commands: list[Command]) -> Wire[Sequence[Rows]]:
        """Send commands, and compare what is expected."""
        all_expected = [command.expected for command in commands]
        results = yield commands
        for expected, found in zip(all_expected, results, strict=True):
            if expected is not None and expected != found and [*map(tuple, expected)] != [*map(tuple, found)]:
                raise ExpectationFailed
        self._rests = False
        return results

    def _is_held(self, command: Command) -> bool:
        """Whether what is expected of a command was compared in this transaction, and nobody else can have changed it since."""
        return False

    def _is_closed(self, statement: Closing) -> bool:
        """Whether a thread's row is changed where it was to be locked."""
        return False

    @abstractmethod
    def _expecting(self, command: Command) -> Command:
        """A command as it is sent whose rows are taken for granted."""

    @abstractmethod
    def _send(self, queue: Sequence[Command], ahead: Sequence[Command]) -> Wire[Sequence[Rows]]:
        """Send what was queued, of which the last is asked for, and what is foreseen; the rows of each."""

    @abstractmethod
    def _finish(self) -> Wire[None]:
        """Send what is left, and end the transaction."""


@dataclass(slots=True)
class _Lock:
    """A thread's row that is locked by a command that is not sent yet.

    Attributes:
        position: Where the command stands in the queue.
        command: It.
        closing: What is to be done to the row in its place.
    """

    position: int
    command: Command
    closing: Closing | None = None


class Write(Transaction):
    """A transaction that changes something. Where all is expected, it is one pipeline."""

    def __init__(self, indexes: Indexes, dialect: Dialect, *, trusting: bool, hasty: bool = True) -> None:
        super().__init__(indexes, dialect, trusting=trusting, hasty=hasty)
        self._held: set[_Key] = set()
        self._weighed = self._weight = 0

    def carry_out_all(self, jobs: Sequence[Job[Any]]) -> Wire[None]:
        """Run operations as one transaction.

        Raises:
            ExpectationFailed: None is stored, and each is to be run by itself.
        """
        for job in jobs:
            try:
                job.result = yield from self._run(job.op)
            except (ExchangeFailed, ExpectationFailed):
                raise
            except Exception as error:
                if len(jobs) > 1:
                    raise ExpectationFailed from error  # what it has sent and learnt would have to be taken back alone
                raise
        self.told = [job.result for job in jobs]
        yield from self._finish()

    def _pause(self) -> Wire[None]:
        # What is long is sent in pieces: all of it need not fit into memory.
        self._weight += sum(map(Command.weight, self._queue[self._weighed :]))
        self._weighed = len(self._queue)
        if self._weight < QUEUE_BYTES:
            yield []
            return
        queue, self._queue = self._queue, []
        yield from self._send(queue, ())

    def _is_closed(self, statement: Closing) -> bool:
        lock = self._locks.get(statement.params["thread"])
        if lock is None:
            return False
        lock.closing = statement if lock.closing is None else lock.closing.followed_by(statement)
        update = self._asking(lock.closing)
        self._foreseen.clear()
        self._queue[lock.position] = lock.command.closed_by(update)
        return True

    def _is_held(self, command: Command) -> bool:
        # Several operations on one thread go together: its row is locked from the first on, and changed by them alone.
        if not command.expected:
            return False
        params = command.params or {}
        key = command.sql, frozenset(params.items())
        held = key in self._held
        self._held.add(key)
        if not held and "id_number" in params:
            self._locks[params["id_number"]] = _Lock(len(self._queue), command)
        return held

    def _expecting(self, command: Command) -> Command:
        return command.condition()

    def _send(self, queue: Sequence[Command], ahead: Sequence[Command]) -> Wire[Sequence[Rows]]:
        begin = () if self._begun else (BEGIN_WRITE,)
        self._begun = True
        self._weighed = self._weight = 0
        self._locks.clear()
        return (yield from self._exchange([*begin, *queue, *ahead]))[len(begin) :]

    def _finish(self) -> Wire[None]:
        queue, self._queue = self._queue, []
        self._locks.clear()
        if self._begun:
            queue.append(COMMIT)
        if queue:
            yield from self._exchange(queue)


class Read(Transaction):
    """A transaction that changes nothing, and sees one snapshot."""

    _ended = False
    _before: Sequence[Command] = ()

    def _expecting(self, command: Command) -> Command:
        return command

    def _send(self, queue: Sequence[Command], ahead: Sequence[Command]) -> Wire[Sequence[Rows]]:
        if self._ended:
            raise ForesightFailed
        asked = [*queue, *ahead]
        if self._hasty and self._repeatable and not (self._begun or self._before or self._rests or self._more) and len(queue) == 1:
            # Mostly there is no such thread, or this is all. If it goes on, it is read again in its snapshot.
            results = yield from self._exchange(one_snapshot(asked) if ahead else asked[:])
            results = results[1:-1] if ahead else results
            self._before = [Command(command.sql, command.params, rows) for command, rows in zip(asked, results, strict=True)]
            return results
        # What rests on what is known mostly asks once.
        ends = self._ended = (self._rests and not self._begun) or (self._last and self._hasty and self._repeatable)
        beginning = self._beginning()
        results = yield from self._exchange([*beginning, *asked, *((COMMIT,) if ends else ())])
        return results[len(beginning) :][: len(asked)]

    def _finish(self) -> Wire[None]:
        if self._ended:
            if self._queue:
                raise ForesightFailed
        elif self._begun or self._queue:
            yield from self._exchange([*self._beginning(), *self._queue, COMMIT])

    def _beginning(self) -> Sequence[Command]:
        """What comes before the first statements in a transaction: what was read before it, too."""
        if self._begun:
            return ()
        self._begun = True
        return (BEGIN_READ, *self._before)


_Key: TypeAlias = tuple[str, frozenset[tuple[str, Any]]]


def _key_of(statement: Statement) -> _Key:
    """What tells a statement from others."""
    return statement.sql, frozenset(statement.params.items())
