"""Every route first checks who calls, then how much and how often; failures become problems."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine
from typing import Annotated, Any, TypeAlias

from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute

from langmem_ext.server.access import Access
from langmem_ext.server.limits import Rate, bounded
from langmem_ext.server.problems import problem_of
from langmem_ext.server.service import Desk, Service

Handler: TypeAlias = Callable[[Request], Coroutine[Any, Any, Response]]
Admit: TypeAlias = Callable[[Request], Awaitable[Request]]
"""Admits a request, and returns it with its caller's desk; or raises."""


def admission(service: Service, access: Access) -> Admit:
    """The function that admits requests, wherever their routes are mounted.

    Args:
        service: What is served.
        access: Decides who may call.
    """
    rate = None if service.limits.rate is None else Rate(service.limits.rate)

    async def admit(request: Request) -> Request:
        owner = await access(request)
        if rate is not None:
            rate.take(owner or (request.client.host if request.client is not None else ""))
        request = bounded(request, service.limits)
        request.state.langmem_desk = await service.desk(owner)
        return request

    return admit


def guarded_by(admit: Admit) -> type[APIRoute]:
    """The class of routes that answer admitted requests only."""

    class GuardedRoute(APIRoute):
        def get_route_handler(self) -> Handler:
            handle = super().get_route_handler()

            async def guarded(request: Request) -> Response:
                try:
                    return await handle(await admit(request))
                except Exception as error:  # any error: no caller sees a stack trace
                    return problem_of(error)

            return guarded

    return GuardedRoute


def desk_of(request: Request) -> Desk:
    """The desk of an admitted request's caller."""
    desk: Desk = request.state.langmem_desk
    return desk


AtDesk: TypeAlias = Annotated[Desk, Depends(desk_of)]
"""The desk of a route's caller."""
