"""The inspector as a router: its routes, on a database."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

from fastapi import APIRouter
from fastapi.concurrency import run_in_threadpool
from langgraph.pregel import Pregel

from langmem_ext.inspector.answering import Answering
from langmem_ext.inspector.routes.actions import add_actions
from langmem_ext.inspector.routes.lists import add_lists
from langmem_ext.inspector.routes.thread import add_thread
from langmem_ext.inspector.security import LOOPBACK, Guard
from langmem_ext.inspector.site import Owner, Site
from langmem_ext.inspector.sources.opening import source_of
from langmem_ext.inspector.sources.source import Source
from langmem_ext.log.message_log import Database, is_address


def inspector_router(
    database: Database | Source,
    *,
    graph: Pregel[Any, Any, Any, Any] | None = None,
    owner: Owner | None = None,
    hosts: Collection[str] | None = LOOPBACK,
    reveal: bool = False,
    prices: Mapping[str, tuple[Decimal, Decimal]] | None = None,
    note: str = "",
) -> APIRouter:
    """The inspector as a router, for `app.include_router(..., prefix="/langmem/ui")`.

    It shows every conversation of the database, so whoever mounts it elsewhere than on loopback
    decides who may see it: by dependencies of `include_router`, and by `owner`.

    Args:
        database: An open `DeltaSaver` or `MessageLog`, or a path or URL: of this package's, or of a
            `SqliteSaver` or a `PostgresSaver`, which is only read. What is opened here is closed
            with the application.
        graph: The graph that its threads are run with, compiled with a checkpointer of this
            database: questions can be answered then.
        owner: Says whose threads a request may see; None for everybody's.
        hosts: The names under which it may be asked for; None: the application checks the `Host`
            header.
        reveal: Whether who looks may have sensitive values shown.
        prices: What models cost, by name: a million prompt tokens and a million completion tokens.
        note: A line above all pages.

    Raises:
        StorageError: The database cannot be opened.
        InvalidInput: An argument is invalid.
    """
    answering = None if graph is None else Answering(graph)
    site = Site(source_of(database), Guard(hosts), answering, owner, reveal, prices, note)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        yield
        if is_address(database):
            await run_in_threadpool(site.source.close)

    router = APIRouter(route_class=site.route_class(), include_in_schema=False, lifespan=lifespan)
    add_lists(router)
    add_thread(router)
    add_actions(router)
    return router
