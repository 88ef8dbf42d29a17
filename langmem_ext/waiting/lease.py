"""One writer per thread: whoever drives a thread holds its lease, and others wait or are told that the thread is busy.

A checkpointer that offers `lease` and `alease` (`SupportsLease`) keeps other processes out as well. For any other, a lock per saver and
thread keeps out the callers of this process.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager, asynccontextmanager, contextmanager
from typing import Protocol, runtime_checkable
from weakref import WeakValueDictionary

from langmem_ext.errors import ThreadBusy

_POLL_SECONDS = 0.01


@runtime_checkable
class SupportsLease(Protocol):
    """A checkpointer that lets one caller at a time drive a thread, across processes."""

    def lease(self, thread_id: str, *, wait: float) -> AbstractContextManager[object]:
        """Hold the thread until the `with` block ends; waits up to `wait` seconds, then raises `ThreadBusy`."""
        ...

    def alease(self, thread_id: str, *, wait: float) -> AbstractAsyncContextManager[object]:
        """Async twin of `lease`."""
        ...


class _Lock:
    """A lock that several callers find by name; it is gone when nobody holds or awaits it."""

    __slots__ = ("__weakref__", "held")

    def __init__(self) -> None:
        self.held = threading.Lock()


_locks: WeakValueDictionary[tuple[int, str], _Lock] = WeakValueDictionary()
_finding = threading.Lock()


def _lock_for(saver: object, thread_id: str) -> _Lock:
    with _finding:
        return _locks.setdefault((id(saver), thread_id), _Lock())


@contextmanager
def hold(saver: object, thread_id: str, *, wait: float) -> Iterator[None]:
    """Be the only one who drives the thread while the block runs.

    Args:
        saver: The checkpointer the thread is stored by.
        thread_id: The thread.
        wait: Seconds to wait for another caller's turn to end.

    Raises:
        ThreadBusy: Another caller was still driving it after `wait` seconds.
    """
    if isinstance(saver, SupportsLease):
        with saver.lease(thread_id, wait=wait):
            yield
        return
    lock = _lock_for(saver, thread_id)
    if not lock.held.acquire(timeout=max(wait, 0.0)):
        raise _busy(thread_id, wait)
    try:
        yield
    finally:
        lock.held.release()


@asynccontextmanager
async def ahold(saver: object, thread_id: str, *, wait: float) -> AsyncIterator[None]:
    """Async twin of `hold`; polls, so that a cancelled caller leaves no lock behind and no event loop stands still."""
    if isinstance(saver, SupportsLease):
        async with saver.alease(thread_id, wait=wait):
            yield
        return
    lock = _lock_for(saver, thread_id)
    end = time.monotonic() + wait
    while not lock.held.acquire(blocking=False):
        if time.monotonic() >= end:
            raise _busy(thread_id, wait)
        await asyncio.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        lock.held.release()


def _busy(thread_id: str, wait: float) -> ThreadBusy:
    return ThreadBusy(f"thread {thread_id!r} was still being driven by another caller after {wait:g} s: try again when its turn has ended")
