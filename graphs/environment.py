"""The database that the environment names: the same for the demonstration, the agent server and the command line."""

from __future__ import annotations

import os

VARIABLES = ("LANGMEM_EXT_STORAGE_PATH", "LANGMEM_EXT_DB")
"""Environment variables that name a database, by path or URL; the first counts for more, as in `langmem_ext.settings`."""


def named_database() -> str | None:
    """The path or URL of the database that the environment names; None where it names none."""
    return next((os.environ[name] for name in VARIABLES if os.environ.get(name)), None)
