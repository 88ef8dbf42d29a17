"""Sees blocking calls that the package makes on an event loop; what a test calls there itself is the test's own affair."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from blockbuster import BlockBuster

import langmem_ext

PACKAGE = str(Path(langmem_ext.__file__).parent)
ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR


def beneath_a_coroutine_of_the_package() -> bool:
    """Whether something async of the package is being carried out right now: it promises not to block."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_flags & ASYNC and frame.f_code.co_filename.startswith(PACKAGE):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


@contextmanager
def no_blocking_calls() -> Iterator[None]:
    """While this lasts, a blocking call beneath a coroutine of the package raises `BlockingError`."""
    guard = BlockBuster()
    for function in guard.functions.values():
        function.can_block_predicate = _or_not_ours(function.can_block_predicate)
    guard.activate()
    try:
        yield
    finally:
        guard.deactivate()


def _or_not_ours(known: Callable[..., bool]) -> Callable[..., bool]:
    def may_block(*args: Any, **kwargs: Any) -> bool:
        return known(*args, **kwargs) or not beneath_a_coroutine_of_the_package()

    return may_block
