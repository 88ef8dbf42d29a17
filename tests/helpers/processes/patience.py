"""How tests wait for another process, thread or server, however busy the machine is.

A wait asks for the content, not for the file or the process that will hold it. Nothing waits on
the clock alone, and no deadline here is one that load can reach: it ends a test that hangs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

PATIENCE_S = 300.0
"""How long anything is waited for, in seconds."""

T = TypeVar("T")


def until(happened: Callable[[], T], what: str = "") -> T:
    """Wait for something to be true; what it was then."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := happened()):
        assert time.monotonic() < deadline, what or "what was waited for has not happened"
        time.sleep(0.01)
    return found


async def auntil(happened: Callable[[], T | Awaitable[T]], what: str = "") -> T:
    """The same on an event loop, where the question may be async."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        asked = happened()
        found = await asked if isinstance(asked, Awaitable) else asked
        if found:
            return found
        assert time.monotonic() < deadline, what or "what was waited for has not happened"
        await asyncio.sleep(0.01)


def content_of(path: Path) -> str:
    """What is in a file that another process writes; nothing as long as it is not there."""
    return path.read_text() if path.exists() else ""
