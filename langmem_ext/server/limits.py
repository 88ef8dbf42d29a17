"""How much a caller may send, and how often."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any, Final

from fastapi import HTTPException, Request
from starlette.types import Message, Receive

from langmem_ext._internal.json import require_whole
from langmem_ext.errors import InvalidInput

CALLERS: Final = 10_000
"""How many callers are remembered; a forgotten one starts with a full bucket."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a server.

    Attributes:
        body: The maximum bytes of a request.
        body_seconds: How long a request may take to arrive.
        reader_seconds: How long the reader of a stream may take nothing, until it is dropped.
        rate: Requests a minute of one caller (an owner, or else an address), on average; as many
            may come at once. None for any number.
        wait: Seconds that a request waits for another caller that is using the thread.
    """

    body: int = 8 * 1024 * 1024
    body_seconds: float = 60.0
    reader_seconds: float = 30.0
    rate: int | None = 1200
    wait: float = 10.0


class Rate:
    """A token bucket for each caller.

    Args:
        a_minute: How many requests the bucket holds, and regains in a minute.
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
        HTTPException: By its headers, it is too large, or not JSON.
    """
    most = limits.body
    length = request.headers.get("content-length", "")
    if length.isdecimal() and int(length) > most:
        raise _too_large(most)
    if length not in ("", "0") and "json" not in request.headers.get("content-type", ""):
        raise HTTPException(
            415, "the content is to be JSON: send it with 'Content-Type: application/json'"
        )
    return _WholeRequest(request.scope, _counted(request.receive, limits))


class _WholeRequest(Request):
    """A request whose JSON holds no half of a character, in no text and no name.

    JSON can spell one as an escape; no database and no reader of JSON takes it.
    """

    async def json(self) -> Any:
        value, sent = await super().json(), await self.body()
        if b"\\u" in sent or b"\xed" in sent:  # it may hold one
            try:
                require_whole(value, "the content")
            except InvalidInput as error:
                raise HTTPException(422, str(error)) from None
        return value


def _counted(receive: Receive, limits: Limits) -> Receive:
    seen, arriving = 0, True
    end = asyncio.get_running_loop().time() + limits.body_seconds

    async def counted() -> Message:
        nonlocal seen, arriving
        try:
            # After the body, only the end of the connection is awaited, however long that takes.
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
