"""`/langmem/mcp`: the intents of the served graph as MCP tools, over streamable HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

from fastapi import APIRouter, Request
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from starlette.types import Receive, Scope, Send

from langmem_ext.mcp_server import create_mcp_server
from langmem_ext.server.guard import Admit, desk_of
from langmem_ext.server.problems import NotServed, problem_of
from langmem_ext.server.service import Desk, Service

PATH: Final = "/langmem/mcp"


class McpEndpoint:
    """Passes admitted requests to an MCP server, which sees the caller's threads alone.

    Args:
        service: What is served.
        admit: Admits requests.
        key: Seals what clients send back; None for a key that is kept in the database.
    """

    def __init__(self, service: Service, admit: Admit, key: str | bytes | None) -> None:
        self._service = service
        self._admit = admit
        self._key = key
        self._manager: StreamableHTTPSessionManager | None = None

    def add_to(self, router: APIRouter) -> None:
        """Add the route."""
        methods = ["GET", "POST", "DELETE"]
        route: Any = self  # an application of ASGI
        router.add_route(PATH, route, methods=methods, include_in_schema=False)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Serve while the block runs; the service is open.

        Raises:
            InvalidInput: The graph is not a waiting graph.
            NotServed: The server has no graph.
        """
        graph = Desk(self._service, await self._service.open()).graph
        server = create_mcp_server(
            graph, graph_for=lambda request: desk_of(request).graph, key=self._key
        )
        # The access checks who may call, and by which names.
        self._manager = StreamableHTTPSessionManager(
            server, max_request_body_size=self._service.limits.body
        )
        try:
            async with self._manager.run():
                yield
        finally:
            self._manager = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        try:
            request = await self._admit(Request(scope, receive))
            if self._manager is None:
                raise NotServed("the application was not started: run it with its lifespan")
        except Exception as error:  # as in every route
            await problem_of(error)(scope, receive, send)
            return
        owner = desk_of(request).owner
        if owner is not None:  # a session belongs to its owner alone
            token = AccessToken(token="", client_id=owner, scopes=[])
            scope["user"] = AuthenticatedUser(token)
        await self._manager.handle_request(scope, request.receive, send)
