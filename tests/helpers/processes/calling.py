"""Calling the server as its clients do, without a socket: LangGraph's own SDK, or plain HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpx
from fastapi import FastAPI
from langgraph_sdk.client import LangGraphClient


@dataclass(frozen=True)
class Caller:
    """A client of a server: `http`, and `sdk` on the same connection."""

    http: httpx.AsyncClient
    sdk: LangGraphClient


@asynccontextmanager
async def calling(
    app: FastAPI, *, headers: Mapping[str, str] | None = None, address: str = "127.0.0.1"
) -> AsyncIterator[Caller]:
    """A client of an application that runs, from its start to its end."""
    async with (
        app.router.lifespan_context(app),
        another(app, headers=headers, address=address) as caller,
    ):
        yield caller


@asynccontextmanager
async def another(
    app: FastAPI, *, headers: Mapping[str, str] | None = None, address: str = "127.0.0.1"
) -> AsyncIterator[Caller]:
    """One more client of an application that is running."""
    transport = httpx.ASGITransport(app=app, client=(address, 50_000), raise_app_exceptions=False)
    async with httpx.AsyncClient(
        transport=transport, base_url="http://localhost", headers=headers
    ) as http:
        yield Caller(http, LangGraphClient(http))
