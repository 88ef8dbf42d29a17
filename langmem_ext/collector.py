"""Python's garbage collector, where it would only do harm."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def without_collector(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Call a function that makes objects which are all needed: the collector would walk them again and again, and free none.

    Where it was not running, that stays so. (Not a context manager: a signal's handler may raise between its two ends and the block, and
    then the collector would rest for good.)
    """
    if not gc.isenabled():
        return function(*args, **kwargs)
    try:
        gc.disable()
        return function(*args, **kwargs)
    finally:
        gc.enable()
