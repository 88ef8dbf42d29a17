"""Detects blocking calls of the package on an event loop; a test's own calls are allowed."""

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
    """Whether an async function of the package, which promises not to block, is running now."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_flags & ASYNC and frame.f_code.co_filename.startswith(PACKAGE):
            return True
        frame = frame.f_back  # type: ignore[assignment]
    return False


@contextmanager
def no_blocking_calls() -> Iterator[None]:
    """While this lasts, a blocking call in a coroutine of the package raises `BlockingError`."""
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
