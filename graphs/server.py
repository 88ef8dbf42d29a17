"""What `langgraph.json` points at besides graphs: the checkpointer, the store and our routes.

All of them are on one database, the one that everyone else has: the command line, the inspector,
other processes.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from graphs.environment import database, retention
from langmem_ext import DeltaSaver, DeltaStore
from langmem_ext.server import create_app


@asynccontextmanager
async def checkpointer() -> AsyncIterator[DeltaSaver]:
    """A saver while the server runs; it may be entered once for each of its event loops."""
    async with DeltaSaver.from_conn_string(database(), retention=retention()) as saver:
        yield saver


@asynccontextmanager
async def store() -> AsyncIterator[DeltaStore]:
    """The long-term store while the server runs."""
    async with DeltaSaver.from_conn_string(database()) as saver:
        yield DeltaStore(saver)


app = create_app(database(), platform=False)
"""Our routes, under `/langmem`: the agent server has those of threads and runs itself."""
