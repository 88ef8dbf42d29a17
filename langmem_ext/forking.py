"""What begins again in a forked child: `os.fork` copies one thread, and the locks and the work of all of them."""

from __future__ import annotations

import os
from typing import Final, Protocol
from weakref import WeakSet


class Forked(Protocol):
    """What is of no use in a child as it was in its parent."""

    def start_anew(self) -> None:
        """Have new locks, and nothing under way: a thread that held one, or was at work, is not there."""
        ...


_things: Final[WeakSet[Forked]] = WeakSet()


def renew_in_child(thing: Forked) -> None:
    """Have something start anew in every child that is forked from here on. It costs nothing until then."""
    _things.add(thing)


def _renew() -> None:
    for thing in list(_things):
        thing.start_anew()


if hasattr(os, "register_at_fork"):  # else there is no fork
    os.register_at_fork(after_in_child=_renew)
