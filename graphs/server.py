"""The checkpointer of the agent server: `langgraph.json` points here, so its threads stand in the same file as everyone else's."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from langmem_ext import DeltaSaver

DATABASE_VARIABLE = "LANGMEM_EXT_DB"
"""Environment variable that names the database, by path or URL."""

DATABASE = "memory.db"
"""The database where the environment names none: a file in the directory that the server was started in."""


@asynccontextmanager
async def checkpointer() -> AsyncIterator[DeltaSaver]:
    """A saver for as long as the server runs. A server may enter this once for each of its event loops."""
    async with DeltaSaver.from_conn_string(os.environ.get(DATABASE_VARIABLE) or DATABASE) as saver:
        yield saver
