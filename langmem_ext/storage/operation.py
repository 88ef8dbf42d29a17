"""What a storage operation may ask its runner for.

An operation is a generator: it yields effects, receives rows, and returns its result. It holds no
connection, lock or clock, so one implementation serves SQLite and PostgreSQL, sync and async, and a
test can break it at every statement. One operation is one transaction, which the runner owns.

A runner may have to begin a transaction again, so it receives an `Operation`: the generator's
function with its arguments. Whatever would differ between runs (ids, times, chance) is among the
arguments, and no run uses an argument up.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, wraps
from itertools import chain
from typing import Any, Final, ParamSpec, TypeAlias, TypeVar, cast

from langmem_ext.types import ThreadKey

S = TypeVar("S")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
P = ParamSpec("P")

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = Sequence[Row]
Params: TypeAlias = Mapping[str, Any]


ONE: Final = 1
"""Third part of a change: the statement must change exactly one row; else the operation is
`Stale`."""

ANY: Final = 2
"""Third part of a change: the statement may change any number of rows."""


class Stale(Exception):
    """The thread was written by another process; the operation runs again and reads it."""


@dataclass(frozen=True, slots=True)
class Statement:
    """One SQL statement with named parameters; the operation receives its rows."""

    sql: str
    params: Params


@dataclass(frozen=True, slots=True)
class Batch:
    """One SQL statement for each of several sets of parameters; the operation receives no rows."""

    sql: str
    params: Sequence[Params]


@dataclass(frozen=True, slots=True)
class Together:
    """Independent statements that are sent together; the operation receives the rows of each."""

    statements: Sequence[Statement | Command]


@dataclass(frozen=True, slots=True)
class Pause:
    """A place in long work where another thread or task may run; the operation receives no rows."""


PAUSE: Final = Pause()
PAUSE_EVERY: Final = 64
"""Decoded rows between two pauses."""

Command: TypeAlias = tuple[str, Row]
"""One SQL statement with numbered parameters (`?1`) and their values. The operation receives its
rows."""

Change: TypeAlias = tuple[str, Row, int]
"""A statement that changes rows, its parameters, and `ONE` or `ANY`. Changes are yielded in a list,
in their order. The operation receives nothing, so a runner whose database is remote need not
wait."""

Effect: TypeAlias = Command | list[Change] | Statement | Batch | Together | Pause
Op: TypeAlias = Generator[Effect, Any, T]
"""Receives the rows of a statement, and of `Together` those of each."""


class Trace(ABC):
    """What an operation leaves in the database and nothing else does.

    If the outcome of the operation is unknown, the trace shows that it was stored.
    """

    __slots__ = ()

    @abstractmethod
    def is_left(self, thread_id: str) -> Op[bool]:
        """Whether the trace is found.

        It is called when neither the operation, which names this thread, nor any other on the
        thread is still running.
        """


class Operation(partial[Op[T_co]]):
    """An operation that has not begun; each call begins it anew.

    `yield from` makes it a part of another one.

    Attributes:
        repeatable: Whether it may run again after a run that failed. One that passes on what it
            reads while it runs may not.
        heavy: Whether it does so much between its statements that it must not run on an event loop.
        own_trace: What it leaves, whatever its arguments are.
    """

    repeatable = True
    heavy = False
    own_trace: Trace | None = None

    def __iter__(self) -> Op[T_co]:
        return self()

    def with_arguments(self, **keywords: Any) -> Operation[T_co]:
        """The operation with further arguments, by name."""
        operation = Operation(self.func, *self.args, **{**self.keywords, **keywords})
        vars(operation).update(vars(self))
        return operation

    @property
    def thread(self) -> str | None:
        """The id of the thread that its arguments name; None if they name none.

        The first `ThreadKey` or operation among them decides.
        """
        for value in chain(self.args, self.keywords.values()):
            if isinstance(value, ThreadKey):
                return value.id
            if isinstance(value, Operation):
                return value.thread
        return None

    @property
    def trace(self) -> Trace | None:
        """Its own trace, or else the first among its arguments; None if there is none.

        An operation among the arguments counts by its trace.
        """
        if self.own_trace is not None:
            return self.own_trace
        for value in chain(self.args, self.keywords.values()):
            trace = value.trace if isinstance(value, Operation) else value
            if isinstance(trace, Trace):
                return trace
        return None


def operation(function: Callable[P, Op[T]]) -> Callable[P, Operation[T]]:
    """Make operations of a generator function; its arguments must serve any number of runs."""
    return _prepared(function)


def operation_once(function: Callable[P, Op[T]]) -> Callable[P, Operation[T]]:
    """`operation`, for one that passes on what it reads to something that cannot take it back."""
    return _prepared(function, repeatable=False)


def operation_leaving(trace: Trace) -> Callable[[Callable[P, Op[T]]], Callable[P, Operation[T]]]:
    """`operation`, for one that leaves this trace, whatever its arguments are."""

    def prepare(function: Callable[P, Op[T]]) -> Callable[P, Operation[T]]:
        return _prepared(function, own_trace=trace)

    return prepare


def _prepared(function: Callable[P, Op[T]], **attributes: Any) -> Callable[P, Operation[T]]:
    @wraps(function)
    def prepared(*arguments: P.args, **keywords: P.kwargs) -> Operation[T]:
        op = Operation(function, *arguments, **keywords)
        vars(op).update(attributes)
        return op

    return prepared


def fetch(sql: str, /, **params: Any) -> Op[Rows]:
    """Run one statement; its rows."""
    rows: Rows = yield Statement(sql, params)
    return rows


def fetch_one(sql: str, /, **params: Any) -> Op[Row | None]:
    """`fetch` for the first row, if there is one."""
    rows = yield Statement(sql, params)
    return rows[0] if rows else None


def side_by_side(ops: Iterable[Op[T]]) -> Op[list[T]]:
    """Run independent operations; statements that they yield at the same time are sent together.

    Args:
        ops: None reads or writes what another one writes. Each begins when it is its turn to yield.
    """
    running = list(ops)
    results: dict[int, T] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(running)))
    while answers:
        asked: dict[int, Any] = {}
        for at, answer in answers.items():
            try:
                effect = running[at].send(answer)
                while not _asks(effect):
                    effect = running[at].send((yield effect))
                asked[at] = effect
            except StopIteration as done:
                results[at] = done.value
        statements = [
            statement
            for effect in asked.values()
            for statement in (effect.statements if isinstance(effect, Together) else (effect,))
        ]
        rows = iter((yield Together(statements)) if statements else ())
        answers = {
            at: (
                [next(rows) for _ in effect.statements]
                if isinstance(effect, Together)
                else next(rows)
            )
            for at, effect in asked.items()
        }
    return [results[at] for at in range(len(running))]


def _asks(effect: Effect) -> bool:
    """Whether an operation waits for the rows of an effect."""
    return isinstance(effect, tuple | Statement | Together)


def both(first: Op[T], second: Op[S]) -> Op[tuple[T, S]]:
    """`side_by_side` for two."""
    first_result, second_result = yield from side_by_side((cast(Op[Any], first), second))
    return first_result, second_result


def execute(sql: str, /, **params: Any) -> Op[None]:
    """Run one statement that returns no rows."""
    yield Statement(sql, params)
