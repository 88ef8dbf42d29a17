"""Refusals and failures are answered as RFC 9457 problems, never with a stack trace.

LangGraph's SDK shows `detail`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from fastapi.exceptions import RequestValidationError
from langgraph.store.base import InvalidNamespaceError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, Response

from langmem_ext.errors import (
    ContextOverflow,
    ConversationError,
    HeadConflict,
    InvalidInput,
    MissingExtra,
    SearchUnavailable,
    StorageUnavailable,
    ThreadBusy,
    ThreadExists,
    ThreadNotFound,
    TurnLimitReached,
    logged,
)

MEDIA_TYPE: Final = "application/problem+json"

STATUS_OF: Final[Mapping[type[Exception], int]] = {
    InvalidNamespaceError: 400,
    ThreadExists: 409,
    InvalidInput: 422,
    ContextOverflow: 422,
    ThreadNotFound: 404,
    ThreadBusy: 409,
    HeadConflict: 409,
    ConversationError: 409,
    TurnLimitReached: 409,
    SearchUnavailable: 501,
    MissingExtra: 501,
    StorageUnavailable: 503,
}
"""The first class that an error is an instance of decides its status; any other error is the
server's own failure."""

_log = logging.getLogger(__name__)


class NotServed(HTTPException):
    """The server does not support a request; the detail says what to use instead."""

    def __init__(self, detail: str) -> None:
        super().__init__(501, detail)


def problem_of(error: Exception) -> Response:
    """The answer to a request that failed."""
    if isinstance(error, RequestValidationError):
        return problem(422, _mistakes(error))
    if isinstance(error, HTTPException):
        return problem(error.status_code, str(error.detail), error.headers)
    status = next((code for kind, code in STATUS_OF.items() if isinstance(error, kind)), 500)
    if status >= 500 and not isinstance(error, MissingExtra | SearchUnavailable):
        # A database's error may name files and servers: that belongs in the server's log alone.
        _log.error("a request failed", exc_info=logged(error))
        return problem(status, "the server could not do this: its log says why")
    return problem(
        status, str(error), {"Retry-After": "1"} if isinstance(error, ThreadBusy) else None
    )


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error as JSON."""
    content: dict[str, Any] = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    return JSONResponse(content, status, headers, MEDIA_TYPE)


def _mistakes(error: RequestValidationError) -> str:
    """Each invalid field and why it is invalid, never its value."""
    mistakes = [(".".join(map(str, mistake["loc"])), mistake["msg"]) for mistake in error.errors()]
    return (
        "; ".join(f"{place}: {message}" for place, message in dict.fromkeys(mistakes))
        or "the request cannot be read"
    )
