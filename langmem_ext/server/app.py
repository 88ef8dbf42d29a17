"""The server: a router to mount in your own application, or a whole application.

Three ways to use it:

- `langmem-ext serve memory.db`
- `app.include_router(create_router(saver, access=my_access))` in your own FastAPI application
- `app = create_app("memory.db", platform=False)` as `http.app` of a `langgraph.json`: the agent
  server has thread routes of its own
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from starlette.exceptions import HTTPException
from typing_extensions import Unpack

from langmem_ext import __version__
from langmem_ext._internal.extras import require
from langmem_ext.log.message_log import Database
from langmem_ext.server.access import on_this_machine
from langmem_ext.server.guard import Admit, admission, guarded_by
from langmem_ext.server.problems import problem_of
from langmem_ext.server.routes.memory import add_memory_routes
from langmem_ext.server.routes.messages import add_message_routes
from langmem_ext.server.routes.prompts import add_prompt_routes
from langmem_ext.server.routes.runs import add_run_routes
from langmem_ext.server.routes.store import add_store_routes
from langmem_ext.server.routes.threads import add_thread_routes
from langmem_ext.server.routes.waiting import add_waiting_routes
from langmem_ext.server.service import ServerOptions, Service

if TYPE_CHECKING:
    from langmem_ext.server.routes.mcp import McpEndpoint


def create_router(database: Database, **options: Unpack[ServerOptions]) -> APIRouter:
    """The routes, to be mounted with `include_router`.

    Args:
        database: An open `DeltaSaver` or `MessageLog`, which stays open, or a path or URL, which is
            opened when it is first needed and closed with the application.
        options: Further options (`ServerOptions`): `graph`, `access`, `limits`, ….

    Raises:
        InvalidInput: An argument is invalid.
        MissingExtra: The extra `mcp` is not installed.

    Example:
        `app.include_router(create_router("memory.db"))`
    """
    service = Service(database, **options)

    admit = admission(service, options.get("access") or on_this_machine())
    tools = _mcp_endpoint(service, admit, options.get("mcp_key")) if options.get("mcp") else None

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            stack.push_async_callback(service.aclose)
            await service.open()
            if tools is not None:
                await stack.enter_async_context(tools.running())
            yield

    router = APIRouter(route_class=guarded_by(admit), lifespan=lifespan)
    if tools is not None:
        tools.add_to(router)
    if options.get("platform", True):
        add_run_routes(router)
        add_thread_routes(router)
        add_store_routes(router)
    add_waiting_routes(router)
    add_message_routes(router)
    add_memory_routes(router)
    add_prompt_routes(router)
    return router


def _mcp_endpoint(service: Service, admit: Admit, key: str | bytes | None) -> McpEndpoint:
    require("the server's MCP tools", "mcp")
    from langmem_ext.server.routes.mcp import McpEndpoint  # noqa: PLC0415 - needs an extra

    return McpEndpoint(service, admit, key)


def create_app(
    database: Database, *, origins: Sequence[str] = (), **options: Unpack[ServerOptions]
) -> FastAPI:
    """An application with the routes alone.

    Args:
        database: An open saver or log, or a path or URL; see `create_router`.
        origins: Web pages that may call, like `https://chat.example.com`; none by default.
        options: Further options (`ServerOptions`).
    """
    # The pages that show the description load their scripts from a network: none is served.
    description = "Threads of LangGraph and LangChain, over HTTP."
    app = FastAPI(
        title="langmem-ext",
        version=__version__,
        description=description,
        docs_url=None,
        redoc_url=None,
    )
    options["access"] = options.get("access") or on_this_machine(origins=origins)
    app.include_router(create_router(database, **options))
    app.add_exception_handler(HTTPException, _refused)
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(origins),
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=[
                "authorization",
                "content-type",
                "x-api-key",
                "x-auth-scheme",
                "last-event-id",
                "mcp-protocol-version",
                "mcp-session-id",
                "prefer",
            ],
            expose_headers=[
                "content-location",
                "location",
                "mcp-session-id",
                "x-pagination-total",
                "x-pagination-next",
            ],
        )
    return app


async def _refused(request: Request, error: Exception) -> Response:
    """A refusal outside the routes."""
    return problem_of(error)
