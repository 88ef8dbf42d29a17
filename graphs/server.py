"""The checkpointer of the agent server: `langgraph.json` points here, so its threads stand in the same database as everyone else's."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from graphs.environment import named_database
from graphs.shop import keep_beside
from langmem_ext import DeltaSaver

DATABASE = "memory.db"
"""The database where the environment names none: a file in the directory that the server was started in."""


@asynccontextmanager
async def checkpointer() -> AsyncIterator[DeltaSaver]:
    """A saver for as long as the server runs. A server may enter this once for each of its event loops."""
    database = named_database() or DATABASE
    keep_beside(database)
    async with DeltaSaver.from_conn_string(database) as saver:
        yield saver
