"""Sweepers: periodic sweeps in the background, in a thread or on the event loop.

The first sweep begins at once: a program that is started more often than it sweeps would otherwise
never do so. One that fails is logged, and tried again when the next is due. Stopping waits for the
step that is running, which is one transaction, and for nothing else.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from datetime import timedelta
from types import TracebackType
from typing import Final

from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import MessageLog
from langmem_ext.log.retention import Steps, arun_steps, run_steps
from langmem_ext.types import Pruned

EVERY: Final = timedelta(minutes=15)
"""The time from the end of a sweep to the next one."""

LONGEST_PAUSE: Final = timedelta(days=30)
"""The longest time that a thread can wait from one sweep to the next."""

THREAD_NAME: Final = "langmem-ext-sweeper"

_log = logging.getLogger(__name__)


class Sweeper:
    """Sweeps periodically on a daemon thread: `with threads.sweeper(): …`, or `start` and `stop`.

    Args:
        log: The database.
        sweep: Starts a sweep; reads the clock.
        every: Time between two sweeps.

    Attributes:
        last: What the last finished sweep deleted; None before the first.

    Raises:
        InvalidInput: The time between two sweeps is invalid.
    """

    def __init__(
        self, log: MessageLog, sweep: Callable[[], Steps], every: timedelta = EVERY
    ) -> None:
        self._log = log
        self._sweep = sweep
        self._every = checked_interval(every)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._changing = threading.Lock()
        self.last: Pruned | None = None

    @property
    def running(self) -> bool:
        """Whether it is running."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start; does nothing if it is running."""
        with self._changing:
            if not self.running:
                self._stopping = threading.Event()
                self._thread = threading.Thread(
                    target=self._work, args=(self._stopping,), name=THREAD_NAME, daemon=True
                )
                self._thread.start()

    def stop(self) -> None:
        """Stop after the running step, if it is running.

        It can be started again.
        """
        with self._changing:
            thread, self._thread = self._thread, None
            self._stopping.set()
            if thread is not None:
                thread.join()

    def _work(self, stopping: threading.Event) -> None:
        while not stopping.is_set():
            try:
                pruned = run_steps(self._log, self._sweep(), stopping.is_set)
            except Exception as error:  # any error: the next sweep may succeed
                _warn(error)
            else:
                self.last = _completed(pruned, stopping.is_set()) or self.last
            stopping.wait(self._every.total_seconds())

    def __enter__(self) -> Sweeper:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


class AsyncSweeper:
    """Sweeps periodically in a task of the running event loop.

    Use `async with threads.asweeper(): …`, or `start` and `await stop()`.

    Args:
        log: The database.
        sweep: Starts a sweep; reads the clock.
        every: Time between two sweeps.

    Attributes:
        last: What the last finished sweep deleted; None before the first.

    Raises:
        InvalidInput: The time between two sweeps is invalid.
    """

    def __init__(
        self, log: MessageLog, sweep: Callable[[], Steps], every: timedelta = EVERY
    ) -> None:
        self._log = log
        self._sweep = sweep
        self._every = checked_interval(every)
        self._stopping = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self.last: Pruned | None = None

    @property
    def running(self) -> bool:
        """Whether it is running."""
        return self._task is not None and not self._task.done()

    def start(self) -> None:
        """Start, on the running event loop; does nothing if it is running."""
        if not self.running:
            self._stopping = asyncio.Event()
            self._task = asyncio.get_running_loop().create_task(
                self._work(self._stopping), name=THREAD_NAME
            )

    async def stop(self) -> None:
        """Stop after the running step, if it is running.

        It can be started again.
        """
        task, self._task = self._task, None
        self._stopping.set()
        if task is not None:
            await task

    async def _work(self, stopping: asyncio.Event) -> None:
        while not stopping.is_set():
            try:
                pruned = await arun_steps(self._log, self._sweep(), stopping.is_set)
            except Exception as error:  # any error: the next sweep may succeed
                _warn(error)
            else:
                self.last = _completed(pruned, stopping.is_set()) or self.last
            try:
                async with asyncio.timeout(self._every.total_seconds()):
                    await stopping.wait()
            except TimeoutError:
                pass

    async def __aenter__(self) -> AsyncSweeper:
        self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.stop()


def checked_interval(every: timedelta) -> timedelta:
    """The time between two sweeps.

    Raises:
        InvalidInput: It is not a positive time, or is longer than a thread can wait.
    """
    if not isinstance(every, timedelta) or not timedelta() < every <= LONGEST_PAUSE:
        raise InvalidInput(f"every must be a timedelta of at most 30 days, not {every!r}")
    return every


def _completed(pruned: Pruned, stopped: bool) -> Pruned | None:
    """What a sweep has deleted, which is logged; None if it was stopped before its end."""
    if stopped:
        return None
    if pruned.threads:
        _log.info("%d expired threads deleted", pruned.threads)
    return pruned


def _warn(error: Exception) -> None:
    # The error's text may quote what is stored.
    _log.warning("a sweep failed and will be retried: %s", type(error).__name__)
