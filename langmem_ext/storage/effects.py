"""What a storage operation may ask its runner for.

An operation is a generator: it yields effects, receives rows, and returns its result. It holds no connection, lock or clock, so one
implementation serves SQLite and PostgreSQL, sync and async, and a test can break it at every statement. One operation is one transaction,
which the runner owns.

A runner may have to begin a transaction again, so it is given an `Operation`: the generator's function with its arguments. What differs
from run to run (ids, times, chance) is among the arguments, and none of these is used up by a run.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import wraps
from itertools import chain
from typing import Any, Final, Generic, ParamSpec, TypeAlias, TypeVar, cast

from langmem_ext.types import ThreadKey

S = TypeVar("S")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
P = ParamSpec("P")

Row: TypeAlias = tuple[Any, ...]
Rows: TypeAlias = Sequence[Row]
Params: TypeAlias = Mapping[str, Any]


@dataclass(slots=True)  # not frozen: that takes three times as long to make, and there are thirty of them in a turn
class Statement:
    """One SQL statement with named parameters; the operation receives its rows.

    Attributes:
        sql: The statement.
        params: Its parameters.
        expected: What it returns unless another process has written meanwhile; None where nobody can know. A runner may give the operation
            these rows and go on, if it then compares them with what the database says, and has nothing stand that was built on wrong ones:
            it runs the operation again, and believes no expectation.
    """

    sql: str
    params: Params
    expected: Rows | None = None


@dataclass(slots=True)
class Closing(Statement):
    """The last that an operation changes of its thread's row, which it has locked and read; it returns no rows.

    What the row says before that no other statement of the operation asks for: so a runner may carry it out in place of the lock, and that
    of several operations on one thread at once.

    Attributes:
        sums: Parameters by which columns grow; the others say what columns are.
    """

    expected: Rows | None = ()
    sums: tuple[str, ...] = ()

    def followed_by(self, later: Closing) -> Closing:
        """Both at once. One that says nothing of a column leaves what the other says of it."""
        params = {**self.params, **later.params, **{name: self.params[name] + later.params[name] for name in later.sums}}
        return Closing(max(self.sql, later.sql, key=len), params, sums=later.sums)


@dataclass(frozen=True, slots=True)
class Batch:
    """One SQL statement for each of several sets of parameters; the operation receives no rows."""

    sql: str
    params: Sequence[Params]


@dataclass(frozen=True, slots=True)
class Together:
    """Statements that do not depend on each other, asked for at once; the operation receives the rows of each."""

    statements: Sequence[Statement]


@dataclass(frozen=True, slots=True)
class Foresight:
    """What an operation will mostly ask for; the operation receives no rows. A runner whose database is near does nothing with it.

    Attributes:
        statements: They are sent along with what is asked for next; where they are asked for in the same words, that is the answer.
        more: Whether more is asked for behind that, whatever it is.
        last: Whether what is asked for next is mostly the last.
    """

    statements: Sequence[Statement] = ()
    more: bool = False
    last: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """A place in long work where another thread or task may run; the operation receives no rows."""


PAUSE: Final = Pause()
PAUSE_EVERY: Final = 64
"""Decoded rows between two pauses."""

Effect: TypeAlias = Statement | Batch | Together | Foresight | Pause
Op: TypeAlias = Generator[Effect, Any, T]
"""Receives the rows of a statement, and of `Together` those of each."""


class Trace(ABC):
    """What an operation leaves and nothing else does: by it the operation is known to be stored, where nobody could be told."""

    __slots__ = ()

    @abstractmethod
    def is_left(self, thread_id: str) -> Op[bool]:
        """Whether it is there. No run of the operation, which names this thread, is still on its way then, nor any other on the thread."""


class Operation(Generic[T_co]):
    """An operation that has not begun. Each iteration begins it anew, and `yield from` makes it a part of another one.

    Attributes:
        repeatable: Whether it may be run again after a run that came to nothing: one that tells what it reads while it runs may not.
        followed: Whether another on its thread mostly follows it at once: it is worth waiting a moment, for both may share a trip.
        brief: Whether what it asks first takes no time to speak of: it may share a trip with others'.
        heavy: Whether it has so much to do between its statements that no event loop carries it out.
    """

    __slots__ = ("_arguments", "_begin", "_keywords", "_trace", "brief", "followed", "heavy", "repeatable")

    def __init__(
        self,
        begin: Callable[..., Op[T_co]],
        arguments: tuple[Any, ...],
        keywords: Mapping[str, Any],
        *,
        repeatable: bool = True,
        followed: bool = False,
        brief: bool = False,
        trace: Trace | None = None,
    ) -> None:
        self._begin = begin
        self._arguments = arguments
        self._keywords = keywords
        self.repeatable = repeatable
        self.followed = followed
        self.brief = brief
        self.heavy = False
        self._trace = trace

    def __iter__(self) -> Op[T_co]:
        return self._begin(*self._arguments, **self._keywords)

    def given(self, **keywords: Any) -> Operation[T_co]:
        """It with further arguments, by name."""
        given = copy(self)
        given._keywords = {**self._keywords, **keywords}
        return given

    @property
    def thread(self) -> str | None:
        """Id of the thread that its first `ThreadKey` names, or that of an operation which is a part of it; None where it names none."""
        for value in chain(self._arguments, self._keywords.values()):
            if isinstance(value, ThreadKey):
                return value.id
            if isinstance(value, Operation):
                return value.thread
        return None

    @property
    def trace(self) -> Trace | None:
        """What it leaves: its own, or the first among the arguments, or what one of these leaves that is a part of it. None: nothing."""
        if self._trace is not None:
            return self._trace
        for value in chain(self._arguments, self._keywords.values()):
            found = value.trace if isinstance(value, Operation) else value
            if isinstance(found, Trace):
                return found
        return None


def operation(function: Callable[P, Op[T]]) -> Callable[P, Operation[T]]:
    """For a function whose generator is passed to a runner: its arguments must serve for any number of runs."""
    return _prepared(function)


def operation_once(function: Callable[P, Op[T]]) -> Callable[P, Operation[T]]:
    """`operation`, where a run tells what it reads to something that cannot take it back."""
    return _prepared(function, repeatable=False)


def operation_followed(function: Callable[P, Op[T]]) -> Callable[P, Operation[T]]:
    """`operation`, for one that another on its thread mostly follows at once (`Operation.followed`)."""
    return _prepared(function, followed=True)


def operation_brief(function: Callable[P, Op[T]]) -> Callable[P, Operation[T]]:
    """`operation`, for one that reads, and begins by asking for little (`Operation.brief`)."""
    return _prepared(function, brief=True)


def operation_leaving(trace: Trace) -> Callable[[Callable[P, Op[T]]], Callable[P, Operation[T]]]:
    """`operation`, for one that leaves this, whatever its arguments are."""

    def prepare(function: Callable[P, Op[T]]) -> Callable[P, Operation[T]]:
        return _prepared(function, trace=trace)

    return prepare


def _prepared(function: Callable[P, Op[T]], **attributes: Any) -> Callable[P, Operation[T]]:
    @wraps(function)
    def prepared(*arguments: P.args, **keywords: P.kwargs) -> Operation[T]:
        return Operation(function, arguments, keywords, **attributes)

    return prepared


def fetch(sql: str, expected: Rows | None = None, /, **params: Any) -> Op[Rows]:
    """Run one statement; its rows, which may be expected (`Statement.expected`)."""
    rows: Rows = yield Statement(sql, params, expected)
    return rows


def fetch_one(sql: str, expected: Rows | None = None, /, **params: Any) -> Op[Row | None]:
    """`fetch` for the first row, if there is one."""
    rows = yield Statement(sql, params, expected)
    return rows[0] if rows else None


def side_by_side(ops: Iterable[Op[T]]) -> Op[list[T]]:
    """Run operations that do not depend on each other: what they ask for at the same time is asked for together.

    Args:
        ops: They read; none of them begins before it is its turn to ask.
    """
    running = list(ops)
    results: dict[int, T] = {}
    answers: dict[int, Any] = dict.fromkeys(range(len(running)))
    while answers:
        asked: dict[int, Statement | Together] = {}
        for at, answer in answers.items():
            try:
                effect = running[at].send(answer)
                while not isinstance(effect, Statement | Together):
                    effect = running[at].send((yield effect))
                asked[at] = effect
            except StopIteration as done:
                results[at] = done.value
        statements = [one for effect in asked.values() for one in (effect.statements if isinstance(effect, Together) else (effect,))]
        rows = iter((yield Together(statements)) if statements else ())
        answers = {
            at: [next(rows) for _ in effect.statements] if isinstance(effect, Together) else next(rows) for at, effect in asked.items()
        }
    return [results[at] for at in range(len(running))]


def both(first: Op[T], second: Op[S]) -> Op[tuple[T, S]]:
    """`side_by_side` for two."""
    one, other = yield from side_by_side((cast(Op[Any], first), second))
    return one, other


def execute(sql: str, /, **params: Any) -> Op[None]:
    """Run one statement that returns no rows."""
    yield Statement(sql, params, ())
