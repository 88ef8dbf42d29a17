"""A forked child neither uses its parent's connections nor keeps them open.

Both hold the same sockets. What the child sends would arrive in its parent's session, an answer
that it reads would be missing there, and a killed parent's session, with its locks, would last as
long as the child.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Any, Final
from weakref import WeakSet

import psycopg

_begun: Final[WeakSet[psycopg.BaseConnection[Any]]] = WeakSet()
_left: Final[list[object]] = []


def keep_from_children(connection: psycopg.BaseConnection[Any]) -> None:
    """Replace a connection's socket in forked children, even if something still refers to it."""
    _begun.add(connection)


def leave(*things: object) -> None:
    """Keep what a child inherited and does not use, so that it is never finalized.

    The parent's tasks would otherwise run their last steps in the child, and log them.
    """
    _left.extend(things)


def _detach() -> None:
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        for connection in list(_begun):
            with suppress(psycopg.Error, OSError):  # one that has ended has no socket
                os.dup2(nowhere, connection.pgconn.socket, inheritable=False)
    finally:
        os.close(nowhere)
    _begun.clear()


if hasattr(os, "register_at_fork"):  # else there is no fork
    os.register_at_fork(after_in_child=_detach)
