"""How much a caller may send, ask for, and how often."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Final

from fastapi import HTTPException, Request
from starlette.types import Message, Receive

CALLERS: Final = 10_000
"""Callers that are remembered; who is forgotten begins anew."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a server.

    Attributes:
        body: Bytes of a request.
        body_seconds: How long a request may take to arrive.
        rate: Requests a minute of one caller (an owner, or else an address), in the long run; so
            many may come at once. None: any number.
        wait: Seconds that a request waits for who else drives a thread.
    """

    body: int = 8 * 1024 * 1024
    body_seconds: float = 60.0
    rate: int | None = 1200
    wait: float = 10.0


class Rate:
    """A token bucket for each caller.

    Args:
        a_minute: How many requests fill up again in a minute; the bucket holds as many.
    """

    def __init__(self, a_minute: int) -> None:
        self._a_minute = a_minute
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, caller: str) -> None:
        """Count a request.

        Raises:
            HTTPException: The caller has none left.
        """
        now = time.monotonic()
        left, at = self._left.pop(caller, (float(self._a_minute), now))
        left = min(float(self._a_minute), left + (now - at) * self._a_minute / 60)
        self._left[caller] = (max(left - 1, 0.0) if left >= 1 else left, now)
        if len(self._left) > CALLERS:
            self._left.popitem(last=False)
        if left < 1:
            wait = max(1, round((1 - left) * 60 / self._a_minute + 0.5))
            raise HTTPException(
                429, f"too many requests: try again in {wait} s", {"Retry-After": str(wait)}
            )


def bounded(request: Request, limits: Limits) -> Request:
    """A request whose body is refused as soon as it is too large, or takes too long.

    Raises:
        HTTPException: It says that it is, or that it is no JSON.
    """
    most = limits.body
    told = request.headers.get("content-length", "")
    if told.isdecimal() and int(told) > most:
        raise _too_large(most)
    if told not in ("", "0") and "json" not in request.headers.get("content-type", ""):
        raise HTTPException(
            415, "the content is to be JSON: send it with 'Content-Type: application/json'"
        )
    return Request(request.scope, _counted(request.receive, limits))


def _counted(receive: Receive, limits: Limits) -> Receive:
    seen, arriving = 0, True
    end = asyncio.get_running_loop().time() + limits.body_seconds

    async def counted() -> Message:
        nonlocal seen, arriving
        try:
            # Behind the body only the end of the connection is waited for, for as long as it takes.
            async with asyncio.timeout_at(end if arriving else None):
                message = await receive()
        except TimeoutError as error:
            raise HTTPException(
                408, "the request took too long to arrive: send it again"
            ) from error
        seen += len(message.get("body") or b"")
        arriving = bool(message.get("more_body"))
        if seen > limits.body:
            raise _too_large(limits.body)
        return message

    return counted


def _too_large(most: int) -> HTTPException:
    return HTTPException(413, f"a request has at most {most} bytes: send less at a time")
