"""A cache of what was read from the latest texts, as a message is read for every parameter."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast

from langmem_ext.waiting.extract.reply import LONGEST

P = ParamSpec("P")
T = TypeVar("T")

_TEXTS: Final = 256
"""Texts that are remembered: a message, its parts, and the halves of each correction in them."""


def remembered(
    read: Callable[Concatenate[str, P], list[T]],
) -> Callable[Concatenate[str, P], list[T]]:
    """The same function of a text, with its results for the latest texts cached.

    Texts longer than `LONGEST` are not cached.
    """
    kept: Callable[..., tuple[T, ...]] = lru_cache(maxsize=_TEXTS)(
        lambda *args, **kwargs: tuple(read(*args, **kwargs))
    )

    @wraps(read)
    def once(text: str, *args: Any, **kwargs: Any) -> list[T]:
        return (
            list(kept(text, *args, **kwargs))
            if len(text) <= LONGEST
            else read(text, *args, **kwargs)
        )

    return cast("Callable[Concatenate[str, P], list[T]]", once)
