"""Errors that are raised while a row is read, but do not come from the row.

Any other error of a decoder means that the row does not decode: an application's own serializer may
raise anything.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from functools import partial
from types import CodeType, MethodType
from typing import Any, Final

_SWALLOWED: Final = "ext_hook failed"
"""All that is left of an error in a msgpack hook, even of Ctrl-C: ormsgpack raises its own
instead."""

_lost = threading.local()


def note(error: BaseException) -> None:
    """Keep what a msgpack hook raises for `pass_on`."""
    if str(error) != _SWALLOWED:  # else it is from a hook inside this one
        _lost.error = error


def pass_on(error: BaseException) -> None:
    """Raise an interruption again: no memory, no stack, or what a signal's handler raised.

    Such an error says nothing about what was being read. A handler runs wherever the main thread
    is, and its error is meant for the code that set it: a task queue's time limit, say.
    """
    lost: BaseException | None = vars(_lost).pop("error", None)
    if lost is not None and str(error) == _SWALLOWED:
        error = lost
    if isinstance(error, MemoryError | RecursionError) or not isinstance(error, Exception):
        raise error
    handlers = set(_handlers()) if threading.current_thread() is threading.main_thread() else set()
    for raised in _chain(error) if handlers else ():
        frame = raised.__traceback__
        while frame is not None:
            if frame.tb_frame.f_code in handlers:
                raise raised
            frame = frame.tb_next


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An error and its causes: a decoder may have raised its own instead of the handler's."""
    seen: list[BaseException] = []
    link: BaseException | None = error
    while link is not None and link not in seen:
        seen.append(link)
        yield link
        link = link.__cause__ or link.__context__


def _handlers() -> Iterator[CodeType]:
    """The code of every signal's handler that is written in Python."""
    for number in signal.valid_signals():
        handler: Any = signal.getsignal(number)
        while isinstance(handler, partial):
            handler = handler.func
        if isinstance(handler, MethodType):
            handler = handler.__func__
        code = getattr(handler, "__code__", None) or getattr(
            vars(type(handler)).get("__call__"), "__code__", None
        )
        if isinstance(code, CodeType):
            yield code
