"""Pauses Python's garbage collector where it would only cost time."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def without_collector(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that makes many lasting objects, without running the garbage collector.

    The collector would walk them again and again, and free none.

    If it was not running, it stays off; an application that stops it for good must do so before it
    calls from several threads. (This is not a context manager: a signal's handler may raise between
    its ends and the block, and then the collector would stay off for good.)
    """
    if not gc.isenabled():
        return function(*args, **kwargs)
    try:
        _resting.append(None)
        gc.disable()
        return function(*args, **kwargs)
    finally:
        gc.enable()
        if _resting:
            _resting.pop()


_resting: Final[list[None]] = []
"""As long as the calls during which it rests."""


def _wake() -> None:
    """In a process that was forked the thread is missing that would have it run again."""
    if _resting:
        _resting.clear()
        gc.enable()


if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_wake)
