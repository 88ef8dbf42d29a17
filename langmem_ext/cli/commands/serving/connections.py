"""Connections of the servers that the commands start: none may take as long as it likes.

uvicorn waits for ever for the headers of a request, and for a reader to take what it is sent.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.auto import AutoHTTPProtocol

LONGEST: Final = 30.0
"""Seconds for a request's headers to arrive, and for a reader to take something."""

_Protocol: Any = AutoHTTPProtocol


class TimedProtocol(_Protocol):  # type: ignore[misc]  # which class it is depends on httptools
    """uvicorn's connection, which is closed if its client stalls."""

    longest = LONGEST

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        super().connection_made(transport)
        self._await_headers()

    def data_received(self, data: bytes) -> None:
        """A part of a request has come."""
        super().data_received(data)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection has ended."""
        self._stop("headers")
        self._stop("reader")
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """The client takes less than it is sent."""
        super().pause_writing()
        self._start("reader")

    def resume_writing(self) -> None:
        """The client has taken what it was sent."""
        self._stop("reader")
        super().resume_writing()

    def _await_headers(self) -> None:
        """Wait for the rest of a request's headers, unless a request is being answered."""
        if self.cycle is None or self.cycle.response_complete:
            self._start("headers")
        else:
            self._stop("headers")

    def _start(self, what: str) -> None:
        if what not in self._timers:
            self._timers[what] = self.loop.call_later(self.longest, self.transport.abort)

    def _stop(self, what: str) -> None:
        if (timer := self._timers.pop(what, None)) is not None:
            timer.cancel()
