"""Which operation works with which thread, where several are on their way at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection
from threading import RLock
from typing import Any, TypeVar

T = TypeVar("T")


class Claims:
    """Threads that operations work with, each operation under its token; without a token, everything is everyone's.

    Attributes:
        lock: Held while an operation takes a step.
    """

    def __init__(self) -> None:
        self.lock = RLock()
        self._token: object = None
        self._holders: dict[int, object] = {}
        self._threads: dict[object, set[int]] = {}
        self._contended: set[int] = set()

    def claiming(self, token: object, step: Callable[..., T], *args: Any) -> T:
        """Take a step; what it asks for is the operation's of this token."""
        with self.lock:
            before, self._token = self._token, token
            try:
                return step(*args)
            finally:
                self._token = before

    def claim(self, thread: int) -> bool:
        """Whether a thread is the operation's own: from now on, if it was nobody's."""
        if self._token is None:
            return True
        holder = self._holders.get(thread)
        if holder is None:
            self._holders[thread] = self._token
            self._threads.setdefault(self._token, set()).add(thread)
        elif holder is not self._token:
            self._contended.add(thread)
            return False
        return True

    def of(self, token: object) -> Collection[int]:
        """The threads that an operation has claimed."""
        return self._threads.get(token, ())

    def release(self, token: object) -> Collection[int]:
        """End an operation's claims; those of its threads that others asked for meanwhile, and got nothing of."""
        threads = self._threads.pop(token, set())
        for thread in threads:
            del self._holders[thread]
        asked = threads & self._contended
        self._contended -= asked
        return asked
