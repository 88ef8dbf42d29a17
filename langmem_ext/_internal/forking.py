"""Renews objects in a forked child: `os.fork` copies one thread, but the locks of all."""

from __future__ import annotations

import os
from typing import Final, Protocol
from weakref import WeakSet


class Forked(Protocol):
    """Something that a child cannot use as its parent left it."""

    def start_anew(self) -> None:
        """Replace all locks and forget running work, whose threads are not in the child."""
        ...


_things: Final[WeakSet[Forked]] = WeakSet()


def renew_in_child(thing: Forked) -> None:
    """Make an object start anew in every child that is forked from now on.

    It costs nothing until then.
    """
    _things.add(thing)


def _renew() -> None:
    for thing in list(_things):
        thing.start_anew()


if hasattr(os, "register_at_fork"):  # else there is no fork
    os.register_at_fork(after_in_child=_renew)
