"""Deferred work: a protocol of two methods, and a queue that keeps its tasks in a store.

An application's own queue (Celery, SQS) needs these two methods alone, and a worker that calls
`perform_task`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import astuple, dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Any, Final, Literal, Protocol, TypeAlias
from uuid import uuid4

from langgraph.store.base import BaseStore, Item, Op, PutOp, SearchItem

from langmem_ext.errors import (
    ConversationError,
    InvalidInput,
    LangmemExtError,
    ThreadBusy,
    ThreadDeleted,
    logged,
    safe_text,
)
from langmem_ext.log.message_log import MessageLog
from langmem_ext.memory.items import OwnedStores, with_sources
from langmem_ext.store.operations import SourceThread
from langmem_ext.store.store import DeltaStore

Status: TypeAlias = Literal["queued", "running", "done", "failed"]

TASKS: Final = ("langmem", "tasks")
"""The namespace of tasks in a store."""

LINES: Final = ("langmem", "lines")
"""The namespace of lines in a store: a line has a namespace of its own, and in it the ids of its
open tasks, by their places."""

KEPT: Final = 7 * 24 * 60.0
"""How many minutes a task is kept after its last step, in a store with a TTL."""

ATTEMPTS: Final = 5
"""How often a task is tried; an attempt in which the process dies counts, too."""

AT_ONCE: Final = 4
"""How many tasks run at the same time."""

EVERY: Final = 15.0
"""Seconds between two searches for tasks that another process has left, or that must be retried."""

BUSY: Final = 1.0
"""Seconds after which a task is tried again whose thread others are using."""

PATIENCE: Final = 30.0
"""Seconds that a task waits for others that are taken into its line."""

PAGE: Final = 1000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Task:
    """Something to do, at least once.

    Attributes:
        kind: The kind of task, like `GENERATE_MEMORY_BATCH`.
        payload: Its arguments, as JSON.
        owner: The owner for whom it is done.
        id: Its id; a task with the id of one that is known is not taken again.
        line: Tasks of one line are done one at a time, in the order in which they were taken.
        thread: The thread whose messages it holds: it is deleted with that thread.
    """

    kind: str
    payload: Mapping[str, Any]
    owner: str | None = None
    id: str = field(default_factory=lambda: str(uuid4()))
    line: str | None = None
    thread: SourceThread | None = None


@dataclass(frozen=True, slots=True)
class TaskState:
    """The state of a task.

    Attributes:
        task: The task.
        status: `queued`, `running`, `done` or `failed`.
        attempts: How often it was begun; not when others were using its thread.
        result: Its result, as JSON.
        error: Why it failed, or must be retried.
        created_at, updated_at: When it was queued, and when its state last changed; with a time
            zone.
    """

    task: Task
    status: Status = "queued"
    attempts: int = 0
    result: Any = None
    error: str | None = None
    created_at: datetime = field(default_factory=lambda: datetime.now(UTC))
    updated_at: datetime = field(default_factory=lambda: datetime.now(UTC))

    @property
    def is_over(self) -> bool:
        """Whether it is done, or has failed for good."""
        return self.status in ("done", "failed")


class Queue(Protocol):
    """Takes tasks, and returns their states."""

    async def put(self, task: Task) -> None:
        """Take a task; once this has returned, it is run at least once.

        This holds even if this process dies.
        """

    async def get(self, task_id: str, owner: str | None = None) -> TaskState | None:
        """The state of a task; None if it is not known, or no longer.

        Args:
            task_id: Its id.
            owner: Its owner; None for a task of nobody's, or else of anyone's.
        """


Perform: TypeAlias = Callable[[Task], Awaitable[Any]]
"""Runs a task; returns its result, as JSON."""

Place: TypeAlias = tuple[tuple[str, ...], str, dict[str, Any]]
"""A task's place in its line: its namespace, key and value."""


class StoreQueue:
    """A queue that keeps its tasks in a store, and runs them in this process.

    Several processes may work on one queue. A line is worked off under a lease, so by one of them
    at a time, the oldest task first. A process that dies leaves its lines to the others, or to
    itself after a restart: its task comes before those behind it.

    Args:
        store: Where the tasks are kept.
        log: The database, which has the leases of lines.
        perform: Runs a task.
    """

    def __init__(self, store: BaseStore, log: MessageLog, perform: Perform) -> None:
        self._store = store
        self._stores = OwnedStores(store)
        self._log = log
        self._perform = perform
        self._lines: asyncio.Queue[str] = asyncio.Queue()
        self._listed: set[str] = set()
        self._workers: list[asyncio.Task[None]] = []
        self._taking = asyncio.Lock()

    async def put(self, task: Task) -> None:
        """Take a task, at the end of its line; one that is known is not taken again."""
        line = _line_of(task)
        # One at a time, for a lease is a connection on PostgreSQL.
        async with self._taking, self._lease("end", line, wait=PATIENCE):
            if await self._known(task.id, task.owner) is None:
                before = await self._places(line)
                place = f"{int(before[-1].key) + 1 if before else 0:020d}"
                value = {"task": task.id, "owner": task.owner}
                await self._write(TaskState(task), (*LINES, line), place, value)
        self._list(line)

    async def get(self, task_id: str, owner: str | None = None) -> TaskState | None:
        """The state of a task; see `Queue`."""
        item = await self._stores.aclaimed(TASKS, task_id, owner)
        return None if item is None else _state_in(item.value)

    async def _known(self, task_id: object, owner: str | None) -> TaskState | None:
        """The state of this owner's task, or of nobody's."""
        state = await self.get(str(task_id), owner)
        return state if state is not None and state.task.owner == owner else None

    def start(self) -> None:
        """Start working; idempotent."""
        if not self._workers:
            self._workers = [asyncio.create_task(self._work()) for _ in range(AT_ONCE)]
            self._workers.append(asyncio.create_task(self._look()))

    async def aclose(self) -> None:
        """Stop; running tasks are left to the next worker of the queue."""
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._workers = []

    def _list(self, line: str) -> None:
        if line not in self._listed:
            self._listed.add(line)
            self._lines.put_nowait(line)

    def _lease(self, what: str, line: str, *, wait: float) -> AbstractAsyncContextManager[None]:
        # With a NUL character, which no thread's id has: nobody's thread is in its way.
        return self._log.driver.alease(f"\0{what}:{line}", wait=wait)

    async def _look(self) -> None:
        """Find lines that nobody works on, again and again."""
        while True:
            try:
                for name in await self._store.alist_namespaces(prefix=LINES, limit=PAGE):
                    self._list(name[-1])
            except Exception as error:  # the database may come back
                _log.warning("the queue cannot be read", exc_info=logged(error))
            await asyncio.sleep(EVERY)

    async def _work(self) -> None:
        while True:
            line = await self._lines.get()
            self._listed.discard(line)
            try:
                with suppress(ThreadBusy):  # who works on it looks at it again when it has ended
                    await self._work_off(line)
            except Exception as error:  # the next search finds it again
                _log.warning("tasks could not be worked on", exc_info=logged(error))

    async def _work_off(self, line: str) -> None:
        """Run a line's tasks in order, until one must be tried again later."""
        while await self._places(line):
            async with self._lease("line", line, wait=0):
                for place in await self._places(line):
                    if not await self._attempt(place):
                        return

    async def _places(self, line: str) -> list[Item]:
        """The open tasks of a line, the oldest first."""
        places: list[SearchItem] = []
        while True:
            page = await self._store.asearch(
                (*LINES, line), limit=PAGE, offset=len(places), refresh_ttl=False
            )
            places += page
            if len(page) < PAGE:
                break
        claimed = await asyncio.gather(
            *(
                self._stores.aclaimed(place.namespace, place.key, place.value.get("owner"))
                for place in places
                if place.key.isdecimal()
            )
        )
        own = {(place.key, place.value["owner"]): place for place in claimed if place is not None}
        return sorted(own.values(), key=lambda place: place.key)

    async def _attempt(self, place: Item) -> bool:
        """Try a task; whether it has ended.

        Raises:
            ThreadBusy: Another worker has gone on with the line, whose lease was lost here.
        """
        at = place.namespace, place.key, place.value
        state = await self._known(place.value.get("task"), place.value["owner"])
        try:
            if state is not None and not state.is_over:
                state = await self._tried(state, at)
            await self._write(state, *at)
        except ThreadDeleted:  # and the task with it
            state = None
            await self._write(state, *at)
        return state is None or state.is_over

    async def _tried(self, state: TaskState, at: Place) -> TaskState | None:
        """The state of a task after one more attempt; None if it was deleted meanwhile."""
        if state.attempts >= ATTEMPTS:
            why = "every process that tried it has ended in the midst of it"
            return _moved(state, "failed", error=state.error or why)
        begun = _moved(state, "running", attempts=state.attempts + 1)
        await self._write(begun, *at)
        ended = await self._performed(state, begun)
        now = await self._known(state.task.id, state.task.owner)
        # A lease may be lost, with its connection: what the others wrote since then stands.
        if now is not None and now.updated_at != begun.updated_at:
            raise ThreadBusy("others have gone on with the task: ask for its state")
        return None if now is None else ended

    async def _performed(self, state: TaskState, begun: TaskState) -> TaskState:
        """The state of a task that was run, from that before and that since it was begun."""
        try:
            result = await self._perform(state.task)
        except ThreadBusy as error:  # it has to wait, and was not tried
            asyncio.get_running_loop().call_later(BUSY, self._list, _line_of(state.task))
            return _moved(state, "queued", error=safe_text(error))
        except Exception as error:  # whatever a model or a graph raises
            return _failed(begun, error)
        return _moved(begun, "done", result=result)

    async def _write(
        self,
        state: TaskState | None,
        line: tuple[str, ...],
        place: str,
        value: dict[str, Any],
    ) -> None:
        """Write a task's state, and its place in its line, which a task has until it is over."""
        ttl, puts = KEPT if self._store.supports_ttl else None, list[Op]()
        if state is not None:
            put = PutOp(TASKS, state.task.id, _value_of(state), index=False, ttl=ttl)
            puts.append(self._with_thread(state.task.thread, put))
        kept = None if state is None or state.is_over else value
        puts.append(PutOp(line, place, kept, index=False, ttl=ttl))
        await self._stores.of(value["owner"]).abatch(puts)

    def _with_thread(self, thread: SourceThread | None, put: PutOp) -> PutOp:
        """A put whose item is deleted with a thread, if both are in one database."""
        own = isinstance(self._store, DeltaStore) and self._store.log is self._log
        return with_sources(self._store, put, [thread]) if own and thread is not None else put


def _line_of(task: Task) -> str:
    return blake2b((task.line or task.id).encode(), digest_size=16).hexdigest()


def _failed(state: TaskState, error: Exception) -> TaskState:
    """The state of a task that failed; it is tried again if that may help."""
    if not isinstance(error, LangmemExtError):
        _log.warning("task %s failed", state.task.id, exc_info=logged(error))
    final = (
        isinstance(error, InvalidInput | ConversationError | LookupError)
        or state.attempts >= ATTEMPTS
    )
    return _moved(state, "failed" if final else "queued", error=safe_text(error))


def _moved(
    state: TaskState,
    status: Status,
    *,
    attempts: int | None = None,
    result: Any = None,
    error: str | None = None,
) -> TaskState:
    counted = state.attempts if attempts is None else attempts
    return TaskState(
        state.task, status, counted, result, error, state.created_at, datetime.now(UTC)
    )


def _value_of(state: TaskState) -> dict[str, Any]:
    """A task's state as the store has it."""
    return {
        "id": state.task.id,
        "kind": state.task.kind,
        "payload": dict(state.task.payload),
        "owner": state.task.owner,
        "line": state.task.line,
        "thread": None if (thread := state.task.thread) is None else astuple(thread),
        "status": state.status,
        "attempts": state.attempts,
        "result": state.result,
        "error": state.error,
        "created_at": state.created_at.isoformat(),
        "updated_at": state.updated_at.isoformat(),
    }


def _state_in(value: Mapping[str, Any]) -> TaskState | None:
    """A task's state from the store; None if an owner with SQL of its own put something else."""
    try:
        thread = None if value["thread"] is None else SourceThread(*value["thread"])
        return TaskState(
            task=Task(
                value["kind"], value["payload"], value["owner"], value["id"], value["line"], thread
            ),
            status=value["status"],
            attempts=value["attempts"],
            result=value["result"],
            error=value["error"],
            created_at=datetime.fromisoformat(value["created_at"]),
            updated_at=datetime.fromisoformat(value["updated_at"]),
        )
    except (KeyError, TypeError, ValueError):
        return None
