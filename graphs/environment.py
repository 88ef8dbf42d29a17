"""What the environment says to the examples: the database, and when its threads expire."""

from __future__ import annotations

import os

from graphs.shop import keep_beside
from langmem_ext import InvalidInput, Retention

VARIABLES = ("LANGMEM_EXT_STORAGE_PATH", "LANGMEM_EXT_DB")
"""Environment variables that name a database, by path or URL; the first counts for more, as in
`langmem_ext.settings`."""

TTL = "LANGMEM_EXT_TTL_HOURS"
"""Environment variable: hours after which a thread that waits for nobody is deleted."""

DATABASE = "memory.db"
"""The agent server's database where the environment names none: in the directory that it was
started in."""


def named_database() -> str | None:
    """The path or URL of the database that the environment names; None where it names none."""
    return next((os.environ[name] for name in VARIABLES if os.environ.get(name)), None)


def database() -> str:
    """The agent server's database; the order desk's shop lies beside it."""
    path = named_database() or DATABASE
    keep_beside(path)
    return path


def retention() -> Retention | None:
    """When threads expire; None where the environment says nothing, or 0.

    Raises:
        InvalidInput: It says no number.
    """
    said = os.environ.get(TTL, "")
    try:
        hours = float(said or 0)
    except ValueError:
        raise InvalidInput(f"{TTL} must be a number of hours, not {said!r}") from None
    return Retention(ttl=hours * 3600) if hours else None
