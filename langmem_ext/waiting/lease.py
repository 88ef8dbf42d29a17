"""One writer per thread: who drives a thread holds its lease; others wait, or are told that the thread is busy.

A checkpointer that offers leases keeps out every process that uses its database. For any other, leases hold within this process.
"""

from __future__ import annotations

import threading
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from langmem_ext.storage.lease import Leases


@runtime_checkable
class SupportsLease(Protocol):
    """What lets one caller at a time drive a thread, sync and async."""

    def lease(self, thread_id: str, *, wait: float) -> AbstractContextManager[None]:
        """Hold the thread while the block runs; `ThreadBusy` if another still holds it after `wait` seconds."""
        ...

    def alease(self, thread_id: str, *, wait: float) -> AbstractAsyncContextManager[None]:
        """Async twin of `lease`."""
        ...


_within_process: WeakKeyDictionary[object, Leases] = WeakKeyDictionary()
_guard = threading.Lock()


def leases_of(saver: object) -> SupportsLease:
    """The leases on the threads that `saver` stores: its own, or else those of this process."""
    if isinstance(saver, SupportsLease):
        return saver
    with _guard:
        return _within_process.setdefault(saver, Leases())
