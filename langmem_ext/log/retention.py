"""Retention: what is deleted, and when; a saver applies it in small steps, a sweep to all.

A step is one transaction and prunes or deletes at most one thread. A thread that waits for an
answer is never deleted.
"""

from __future__ import annotations

import logging
import math
import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Final, TypeAlias

from langmem_ext._internal.forking import renew_in_child
from langmem_ext._internal.stepping import aperform, perform
from langmem_ext.errors import DamagedRow, InvalidInput
from langmem_ext.log.message_log import MessageLog, is_server
from langmem_ext.storage.operation import Operation
from langmem_ext.storage.prune import expire as ops
from langmem_ext.storage.prune.expire import (
    BEGINNING,
    EVER,
    NO_MOMENT,
    Candidate,
    Cutoff,
    Position,
    Surroundings,
)
from langmem_ext.storage.prune.store_items import expiring
from langmem_ext.storage.rows.clock import unix_ms
from langmem_ext.storage.sqlite.vacuum import used_bytes
from langmem_ext.telemetry import Emitter, Event
from langmem_ext.types import Pruned, ThreadKey

STEP: Final = 32
"""Checkpoints that a thread gets between two looks at it, and a saver between two looks at the rest
of the database."""

PAGE: Final = 64
"""Threads that are looked for at a time."""

FEW: Final = 8
"""Threads that a step looks at, at most, to find one that has something to forget."""

ROUNDS: Final = 40
"""How often a sweep looks whether all fits, at most; others may write meanwhile."""

THREADS: Final = 4096
"""Threads whose puts a saver counts."""

_log = logging.getLogger(__name__)

Steps: TypeAlias = Generator[tuple[Operation[Any], bool], Any, Pruned]
"""Work in steps: yields each operation, and whether it writes; is sent its result."""

Walk: TypeAlias = Generator[tuple[Operation[Any], bool], Any, None]


@dataclass(frozen=True, slots=True)
class Retention:
    """What a database keeps.

    The rest reads as before; a thread's newest checkpoint is deleted only with the thread.

    Args:
        keep_last: How many of the newest checkpoints of each namespace to keep (and what their
            `DeltaChannel`s are rebuilt from).
        ttl: A thread expires this long (a `timedelta`, or seconds) after its last write, unless it
            is waiting for an answer: at exactly that age. It is deleted.
        tool_ttl: The same for a thread whose turns name a tool, instead of `ttl`.
        max_bytes: When a SQLite file exceeds this, the least recently written threads lose all but
            their newest checkpoints; if that is not enough, they are deleted in the same order,
            except those waiting for an answer.

    Raises:
        InvalidInput: A limit is invalid.
    """

    keep_last: int | None = None
    ttl: timedelta | float | None = None
    max_bytes: int | None = None
    tool_ttl: timedelta | float | None = None

    def __post_init__(self) -> None:
        for name, value in (("keep_last", self.keep_last), ("max_bytes", self.max_bytes)):
            if value is not None and (
                isinstance(value, bool) or not isinstance(value, int) or value < 1
            ):
                raise InvalidInput(
                    f"{name} must be a whole number of at least 1, or None for no limit, not"
                    f" {value!r}"
                )
        for name, ttl in (("ttl", self.ttl), ("tool_ttl", self.tool_ttl)):
            if ttl is not None and not (_is_duration(ttl) and timedelta() <= _duration(ttl)):
                raise InvalidInput(
                    f"{name} must be a timedelta or seconds, not negative, or None for no limit,"
                    f" not {ttl!r}"
                )

    def cutoff(self, now: int) -> Cutoff | None:
        """The last-write times before which threads have expired; None if nothing expires.

        `now` is in Unix milliseconds.
        """
        if self.ttl is None and self.tool_ttl is None:
            return None
        return Cutoff(
            _before(now, self.ttl),
            _before(now, self.ttl if self.tool_ttl is None else self.tool_ttl),
        )


def _before(now: int, ttl: timedelta | float | None) -> int:
    # Expired is what is exactly as old, too; a part of a millisecond counts as a whole one. As
    # numbers: no timedelta is as far below zero as the longest is above it.
    return (
        NO_MOMENT
        if ttl is None
        else now + (-(_duration(ttl) // timedelta(microseconds=1)) // 1000) + 1
    )


def _is_duration(ttl: object) -> bool:
    return isinstance(ttl, timedelta) or (
        isinstance(ttl, int | float) and not isinstance(ttl, bool) and abs(ttl) < 1e12
    )


def _duration(ttl: timedelta | float) -> timedelta:
    return ttl if isinstance(ttl, timedelta) else timedelta(seconds=ttl)


class _Stopped(Exception):
    """Work is to stop."""


def run_steps(log: MessageLog, steps: Steps, stopped: Callable[[], bool] = lambda: False) -> Pruned:
    """Run work in steps until it is done or is to stop; what it has deleted, nothing if stopped."""

    def answer(step: tuple[Operation[Any], bool]) -> Any:
        if stopped():
            raise _Stopped
        return log.run(step[0], write=step[1])

    try:
        return perform(steps, answer)
    except _Stopped:
        return Pruned()


async def arun_steps(
    log: MessageLog, steps: Steps, stopped: Callable[[], bool] = lambda: False
) -> Pruned:
    """Async twin of `run_steps`."""

    async def answer(step: tuple[Operation[Any], bool]) -> Any:
        if stopped():
            raise _Stopped
        return await log.arun(step[0], write=step[1])

    try:
        return await aperform(steps, answer)
    except _Stopped:
        return Pruned()


def checked_now(now: datetime) -> int:
    """A moment that a caller takes for now, in Unix milliseconds.

    Raises:
        InvalidInput: It is not a date and time, or has no time zone.
    """
    if not isinstance(now, datetime) or now.tzinfo is None:
        raise InvalidInput("now has no time zone: pass datetime.now(timezone.utc), or omit it")
    return unix_ms(now)


def require_retention(retention: object, source: object) -> None:
    """See that a saver can be opened with it.

    Args:
        retention: What to keep.
        source: The database that it is for: a log, or what opens one.

    Raises:
        InvalidInput: It is no retention, or bounds the size of tables on a server.
    """
    if retention is not None and not isinstance(retention, Retention):
        raise InvalidInput(
            f"retention must be a Retention, not {type(retention).__name__}: pass"
            " Retention(ttl=timedelta(days=90))"
        )
    on_server = (
        not source.driver.counts_pages if isinstance(source, MessageLog) else is_server(source)
    )
    if on_server and retention is not None and retention.max_bytes is not None:
        raise InvalidInput(
            "max_bytes counts the pages of a SQLite file; tables on a server get no smaller by what"
            " is deleted, until they are vacuumed: use keep_last and ttl there"
        )


class Keeper:
    """Applies a retention to a log.

    Args:
        retention: What to keep.
        log: The database.
        around: Whose threads, and what operations need.
        emitter: Receives how many threads were deleted.
        items: Deletes what has expired of the long-term store.
    """

    def __init__(
        self,
        retention: Retention,
        log: MessageLog,
        around: Surroundings,
        emitter: Emitter,
    ) -> None:
        self._retention = retention
        self._emitter = emitter
        self._log = log
        self._around = around
        self._due: OrderedDict[str, int] = OrderedDict()
        self._next_look = 0
        self.start_anew()
        renew_in_child(self)
        self._expiring = BEGINNING
        # Threads that were found lately and not looked at yet, and where the next are looked for:
        # finding them costs a look at all.
        self._expired: deque[Candidate] = deque()
        self._pressed: deque[Candidate] = deque()
        # A round goes through the threads that were there when it began: those that are written
        # meanwhile would come again and again. What is thin stays so until it is written, and is
        # then behind all others: the next round goes on where the last one stopped.
        self._until: Cutoff | None = None
        self._thinned = self._dropped = BEGINNING
        self._how = "thin"
        self._fruitful = False

    def start_anew(self) -> None:
        """Go on in a forked child: another thread may have been counting."""
        self._counting = threading.Lock()

    # -- as the saver writes -----------------------------------------------------------------------

    def step(self, thread_id: str, now: int) -> None:
        """What a put of a thread gives occasion for; it never fails for it."""
        steps = self._occasion(thread_id, now)
        try:
            op, write = next(steps)
            while True:
                result = self._log.run(op, write=write)
                self._emit(result)
                op, write = steps.send(result)
        except StopIteration:
            pass
        except Exception as error:  # whatever it is: what the caller wanted stored is stored
            _log.warning("retention postponed: %s", type(error).__name__)

    def _emit(self, pruned: object) -> None:
        if self._emitter and isinstance(pruned, Pruned) and pruned.threads:
            self._emitter.emit(Event("expired", {"threads": pruned.threads}))

    def is_due(self, thread_id: str) -> bool:
        """Count a put; whether it gives occasion for anything."""
        with self._counting:
            left = self._due.pop(thread_id, 1) - 1
            self._due[thread_id] = left
            if len(self._due) > THREADS:
                self._due.popitem(last=False)
            self._next_look -= 1
        return (left <= 0 and self._retention.keep_last is not None) or self._next_look <= 0

    def _occasion(self, thread_id: str, now: int) -> Steps:
        pruned = Pruned()
        if self._due.get(thread_id, 0) <= 0 and self._retention.keep_last is not None:
            self._due[thread_id] = STEP
            key = ThreadKey(thread_id, self._around.owner)
            pruned, left = yield ops.thin(key, self._retention.keep_last, STEP, self._around), True
            # What a DeltaChannel needs stays, however much that is: looking through it again and
            # again would cost more than it frees.
            self._due[thread_id] = max(STEP, left // 4)
        if self._next_look <= 0 and not pruned.checkpoints:
            self._next_look = STEP
            if (yield from self._look_around(thread_id, now)):
                self._next_look = 1  # there may be more of it, and as many threads may come as go
            yield from expiring(self._around.owner, now, once=True)
        return pruned

    def _look_around(
        self, thread_id: str, now: int
    ) -> Generator[tuple[Operation[Any], bool], Any, bool]:
        """Delete the first expired thread, or make room if needed; whether to go on."""
        before = self._retention.cutoff(now)
        if before is not None:
            if not self._expired:
                # Those that wait stay in front for ever: go on behind them, and some time begin
                # again.
                self._expired.extend(
                    (
                        yield (
                            ops.next_threads(self._expiring, PAGE, self._around, before=before),
                            False,
                        )
                    )
                )
                self._expiring = self._expired[-1].at if self._expired else BEGINNING
            for candidate in _first(self._expired, FEW):
                if (yield ops.expire(candidate, self._around, before=before), True).threads:
                    return True
        limit = self._retention.max_bytes
        if limit is None or (yield used_bytes(), False) <= limit:
            self._how, self._until, self._dropped = "thin", None, BEGINNING
            self._pressed.clear()
            return False
        return (yield from self._relieve(thread_id, now))

    def _relieve(
        self, thread_id: str, now: int
    ) -> Generator[tuple[Operation[Any], bool], Any, bool]:
        """Delete something of the next thread in turn; whether to go on.

        First the old checkpoints of each thread, then each thread but the one being written.
        """
        if self._until is None:
            self._until = Cutoff.at(now + 1)
        if not self._pressed:
            reached = self._thinned if self._how == "thin" else self._dropped
            self._pressed.extend(
                (yield ops.next_threads(reached, PAGE, self._around, before=self._until), False)
            )
        if not self._pressed:
            ended, self._how = self._how, "drop" if self._how == "thin" else "thin"
            self._until, self._dropped = None, BEGINNING
            # After a round that found nothing, all that is left waits: there is time.
            fruitful, self._fruitful = self._fruitful, ended == "thin" and self._fruitful
            return ended == "thin" or fruitful
        for candidate in _first(self._pressed, FEW):
            pruned = Pruned()
            if self._how == "thin":
                self._thinned = candidate.at
                pruned, _ = yield ops.thin(candidate.key, 1, 0, self._around), True
            else:
                self._dropped = candidate.at
                if candidate.key.id != thread_id:
                    pruned = yield (
                        ops.expire(
                            candidate, self._around, before=Cutoff.at(candidate.at.updated_at + 1)
                        ),
                        True,
                    )
            if pruned.checkpoints or pruned.threads:
                self._fruitful = True
                break
        return True

    # -- a sweep -----------------------------------------------------------------------------------

    def sweep_steps(self, now: int, *, dry_run: bool) -> Steps:
        """Apply the retention to every thread, each in a transaction of its own; then to items.

        However it ends, it reports what it has deleted.

        Args:
            now: The moment that it is, in Unix milliseconds.
            dry_run: Show what would be deleted; change nothing.
        """
        sweep = _Sweep(self._retention, self._log, replace(self._around, dry_run=dry_run))
        try:
            pruned = yield from sweep.steps(now)
        finally:
            if not dry_run:
                self._emit(sweep.pruned())
        items = yield from expiring(self._around.owner, now, dry_run=dry_run)
        return pruned + Pruned(store_items=items)


def _first(queue: deque[Candidate], count: int) -> Iterator[Candidate]:
    """Take the first ones out of a queue."""
    while queue and count:
        count -= 1
        yield queue.popleft()


class _Sweep:
    """One sweep: what it has deleted of each thread, or would have."""

    def __init__(self, retention: Retention, log: MessageLog, around: Surroundings) -> None:
        self._retention = retention
        self._log = log
        self._around = around
        self._write = not around.dry_run
        self._pruned: dict[str, Pruned] = {}
        self._freed = 0

    def steps(self, now: int) -> Steps:
        """The whole sweep."""
        before, last = self._retention.cutoff(now), self._retention.keep_last
        if before is not None:
            yield from self._each(
                lambda candidate: ops.expire(candidate, self._around, before=before), before=before
            )
        if last is not None:
            yield from self._each(lambda candidate: ops.thin(candidate.key, last, 0, self._around))
        if self._retention.max_bytes is not None:
            yield from self._fit(self._retention.max_bytes)
        return self.pruned()

    def _fit(self, limit: int) -> Walk:
        """Delete until what is left fits the limit.

        How much was freed is known only roughly, so half of the excess is deleted before the size
        is read again.
        """
        thinned = dropped = BEGINNING
        for _ in range(ROUNDS):
            over = (yield used_bytes(), False) - limit
            enough = self._freed + max(over // 2, 1) if self._write else over
            if over <= 0 or self._freed >= enough:
                return
            thinned = yield from self._each(
                lambda thread: ops.thin(thread.key, 1, 0, self._around),
                after=thinned,
                enough=enough,
            )
            if self._freed < enough:
                dropped = yield from self._each(
                    lambda thread: ops.expire(
                        thread, self._around, before=Cutoff.at(thread.at.updated_at + 1)
                    ),
                    after=dropped,
                    enough=enough,
                )
            if self._freed < enough:  # all that is left waits for an answer
                return

    def pruned(self) -> Pruned:
        """What it has deleted so far, or would have."""
        return sum(self._pruned.values(), Pruned())

    def _each(
        self,
        forget: Callable[[Candidate], Operation[Any]],
        *,
        before: Cutoff = EVER,
        after: Position = BEGINNING,
        enough: float = math.inf,
    ) -> Generator[tuple[Operation[Any], bool], Any, Position]:
        """Delete something of each thread from a position on; returns the position reached.

        It ends when `enough` bytes are freed in all.
        """
        while page := (yield ops.next_threads(after, PAGE, self._around, before=before), False):
            for candidate in page:
                if self._freed >= enough:
                    return after
                after = candidate.at
                gone = self._pruned.get(candidate.key.id)
                if gone is None or not gone.threads:
                    yield from self._forget(candidate, forget(candidate))
        return after

    def _forget(self, candidate: Candidate, op: Operation[Any]) -> Walk:
        try:
            result = yield op, self._write
        except DamagedRow:
            _log.warning("thread %r is damaged: the sweep skipped it", candidate.key.id)
            return
        pruned: Pruned = result[0] if isinstance(result, tuple) else result
        if pruned == Pruned():
            return
        # A dry run deletes nothing: a later and harder step then finds again what an
        # earlier one has found.
        earlier = self._pruned.get(candidate.key.id, Pruned())
        together = earlier + pruned if self._write else pruned
        self._pruned[candidate.key.id] = together
        self._freed += together.bytes - earlier.bytes
