"""Deferred work: a protocol of two methods, and a queue that keeps its tasks in a store.

An application's own queue (Celery, SQS) needs these two methods alone, and a worker that calls
`perform_task`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, Protocol, TypeAlias
from uuid import uuid4

from langgraph.store.base import BaseStore

from langmem_ext.errors import (
    ConversationError,
    InvalidInput,
    LangmemExtError,
    ThreadBusy,
    safe_text,
)
from langmem_ext.log.message_log import MessageLog

Status: TypeAlias = Literal["queued", "running", "done", "failed"]

TASKS: Final = ("langmem", "tasks")
"""The namespace of tasks in a store."""

KEPT: Final = 7 * 24 * 60.0
"""How many minutes a task is kept after its last step, in a store with a TTL."""

ATTEMPTS: Final = 5
"""How often a task is tried; an attempt in which the process dies counts, too."""

AT_ONCE: Final = 4
"""How many tasks run at the same time."""

EVERY: Final = 15.0
"""Seconds between two searches for tasks that another process has left, or that must be retried."""

PAGE: Final = 100

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Task:
    """Something to do, at least once.

    Attributes:
        kind: The kind of task, like `GENERATE_MEMORY_BATCH`.
        payload: Its arguments, as JSON.
        owner: The owner for whom it is done.
        id: Its id.
    """

    kind: str
    payload: Mapping[str, Any]
    owner: str | None = None
    id: str = field(default_factory=lambda: str(uuid4()))


@dataclass(frozen=True, slots=True)
class TaskState:
    """The state of a task.

    Attributes:
        task: The task.
        status: `queued`, `running`, `done` or `failed`.
        attempts: How often it was begun.
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

    async def get(self, task_id: str) -> TaskState | None:
        """The state of a task; None if it is not known, or no longer."""


Perform: TypeAlias = Callable[[Task], Awaitable[Any]]
"""Runs a task; returns its result, as JSON."""


class StoreQueue:
    """A queue that keeps its tasks in a store, and runs them in this process.

    Several processes may work on one queue: a task is run under a lease, so by one of them at a
    time. A process that dies leaves its tasks to the others, or to itself after a restart.

    Args:
        store: Where the tasks are kept.
        log: The database, which has the leases of tasks.
        perform: Runs a task.
    """

    def __init__(self, store: BaseStore, log: MessageLog, perform: Perform) -> None:
        self._store = store
        self._log = log
        self._perform = perform
        self._known: asyncio.Queue[str] = asyncio.Queue()
        self._workers: list[asyncio.Task[None]] = []
        self._at_work: set[str] = set()

    async def put(self, task: Task) -> None:
        """Take a task."""
        await self._write(TaskState(task))
        self._known.put_nowait(task.id)

    async def get(self, task_id: str) -> TaskState | None:
        """The state of a task."""
        item = await self._store.aget(TASKS, task_id, refresh_ttl=False)
        return None if item is None else _state_in(item.value)

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

    async def _look(self) -> None:
        """Find tasks that nobody works on, again and again."""
        while True:
            try:
                for item in await self._store.asearch(
                    TASKS, filter={"over": False}, limit=PAGE, refresh_ttl=False
                ):
                    if item.key not in self._at_work:
                        self._known.put_nowait(item.key)
            except Exception:  # the database may come back
                _log.warning("the queue cannot be read", exc_info=True)
            await asyncio.sleep(EVERY)

    async def _work(self) -> None:
        while True:
            task_id = await self._known.get()
            self._at_work.add(task_id)
            try:
                with suppress(ThreadBusy):  # another process is working on it
                    async with self._log.driver.alease(f"langmem-task:{task_id}", wait=0):
                        await self._attempt(task_id)
            except Exception:  # the next search finds it again
                _log.warning("task %s could not be worked on", task_id, exc_info=True)
            finally:
                self._at_work.discard(task_id)

    async def _attempt(self, task_id: str) -> None:
        state = await self.get(task_id)
        if state is None or state.is_over:
            return
        if state.attempts >= ATTEMPTS:
            await self._write(
                _moved(
                    state,
                    "failed",
                    error=state.error or "every process that tried it has ended in the midst of it",
                )
            )
            return
        state = _moved(state, "running", attempts=state.attempts + 1)
        await self._write(state)
        try:
            result = await self._perform(state.task)
        except Exception as error:  # whatever a model or a graph raises
            await self._failed(state, error)
        else:
            await self._write(_moved(state, "done", result=result))

    async def _failed(self, state: TaskState, error: Exception) -> None:
        """Note why a task failed; it is tried again if that may help."""
        if not isinstance(error, LangmemExtError):
            _log.warning("task %s failed", state.task.id, exc_info=error)
        final = (
            isinstance(error, InvalidInput | ConversationError | LookupError)
            or state.attempts >= ATTEMPTS
        )
        await self._write(_moved(state, "failed" if final else "queued", error=safe_text(error)))

    async def _write(self, state: TaskState) -> None:
        ttl = {"ttl": KEPT} if self._store.supports_ttl else {}
        await self._store.aput(TASKS, state.task.id, _value_of(state), index=False, **ttl)


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
        "status": state.status,
        "over": state.is_over,
        "attempts": state.attempts,
        "result": state.result,
        "error": state.error,
        "created_at": state.created_at.isoformat(),
        "updated_at": state.updated_at.isoformat(),
    }


def _state_in(value: Mapping[str, Any]) -> TaskState:
    return TaskState(
        task=Task(value["kind"], value["payload"], value["owner"], value["id"]),
        status=value["status"],
        attempts=value["attempts"],
        result=value["result"],
        error=value["error"],
        created_at=datetime.fromisoformat(value["created_at"]),
        updated_at=datetime.fromisoformat(value["updated_at"]),
    )
