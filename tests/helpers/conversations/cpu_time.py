"""The CPU time of some work, so that a pattern that goes back and forth over a text is noticed."""

from __future__ import annotations

from collections.abc import Callable
from time import thread_time

LITTLE = 2.0
"""Seconds that reading a long text never takes, on any machine; it takes some hundredths."""


def cpu_seconds(work: Callable[[], object]) -> float:
    """The least CPU time of three runs in this thread: other threads and processes do not count."""

    def once() -> float:
        began = thread_time()
        work()
        return thread_time() - began

    return min(once() for _ in range(3))
