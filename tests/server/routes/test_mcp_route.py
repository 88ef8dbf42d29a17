"""The graph's intents are MCP tools under the server's access: each caller has their own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import desk
import httpx
import pytest
import uvicorn
from fastapi import FastAPI
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.types import ElicitResult
from served import greeter

from langmem_ext import DeltaSaver, DeltaStore, InvalidInput
from langmem_ext.server import by_token, create_app

ANN, BOB = "ann-0123456789abcdef", "bob-0123456789abcdef"
BOTH = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])


@asynccontextmanager
async def listening(app: FastAPI) -> AsyncIterator[str]:
    """The URL of an application that is served while the block runs."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning", ws="none"))
        serving = asyncio.create_task(server.serve(sockets=[bound]))
        while not server.started:
            await asyncio.sleep(0.01)
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/langmem/mcp"
        server.should_exit = True
        await serving


class Person:
    """Answers each form with the value that it was given."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers

    async def __call__(self, context: Any, params: Any) -> ElicitResult:
        [name] = params.requested_schema["properties"]
        return ElicitResult(action="accept", content={name: self.answers[name]})


@asynccontextmanager
async def calling(url: str, token: str, mode: str, **answers: Any) -> AsyncIterator[Client]:
    """A client with a token."""
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx.AsyncClient(headers=headers, timeout=30) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, elicitation_callback=Person(**answers), mode=mode) as client:
            yield client


def text_of(result: Any) -> str:
    return str(result.content[0].text)


@BOTH
async def test_each_caller_goes_on_with_their_own_conversations(tmp_path: Path, mode: str) -> None:
    shop = desk.Shop(tmp_path / "shop.db")
    with DeltaSaver.open(str(tmp_path / "memory.db")) as saver:
        access = by_token({ANN: "ann", BOB: "bob"})
        app = create_app(saver, graph=desk.make_graph(saver, shop), access=access, mcp=True)
        async with listening(app) as url:
            async with httpx.AsyncClient() as stranger:
                assert (await stranger.post(url, json={})).status_code == 401
            async with calling(url, ANN, mode, order_id="O-2", confirmation=True) as ann:
                done = await ann.call_tool("cancel_order", {"conversation": "mine"})
                assert text_of(done) == "Order O-2 is cancelled."
            async with calling(url, BOB, mode) as bob:
                with pytest.raises(MCPError, match="mcp-mine"):
                    await bob.call_tool("check_order", {"conversation": "mine"})
                done = await bob.call_tool("check_order", {"order_id": "O-1"})
                assert text_of(done) == "Order O-1 is on its way."
        owned = {
            (one.config["configurable"]["thread_id"], one.metadata.get("user_id"))
            for one in saver.for_owner("ann").list(None)
        }
        assert owned == {("mcp-mine", "ann")}
    assert shop.effects() == [
        ("cancel_order", {"number": "O-2"}),
        ("check_order", {"number": "O-1"}),
    ]


async def test_a_session_is_its_openers_alone(tmp_path: Path) -> None:
    with DeltaSaver.open(str(tmp_path / "memory.db")) as saver:
        graph = desk.make_graph(saver, desk.Shop(tmp_path / "shop.db"))
        access = by_token({ANN: "ann", BOB: "bob"})
        app = create_app(saver, graph=graph, access=access, mcp=True)
        async with listening(app) as url, httpx.AsyncClient() as http:
            begin = {
                "jsonrpc": "2.0",
                "id": 1,
                "method": "initialize",
                "params": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {},
                    "clientInfo": {"name": "test", "version": "1"},
                },
            }
            accept = {"Accept": "application/json, text/event-stream"}
            headers = {"Authorization": f"Bearer {ANN}", **accept}
            opened = await http.post(url, json=begin, headers=headers)
            session = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
            listed = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
            headers = {"Authorization": f"Bearer {BOB}", **accept, **session}
            assert (await http.post(url, json=listed, headers=headers)).status_code == 404


async def test_beside_a_saver_that_encrypts_the_application_passes_the_key(tmp_path: Path) -> None:
    with DeltaSaver.open(":memory:") as plain:
        saver = DeltaSaver(plain.log, serde=EncryptedSerializer(Reversed()))
        graph = desk.make_graph(saver, desk.Shop(tmp_path / "shop.db"))
        store = DeltaStore(plain.log)  # what is found by its text is not encrypted
        refused = create_app(saver, graph=graph, store=store, mcp=True)
        with pytest.raises(InvalidInput, match="encrypts"):
            async with refused.router.lifespan_context(refused):
                pass
        app = create_app(saver, graph=graph, store=store, mcp=True, mcp_key="k" * 32)
        async with app.router.lifespan_context(app):
            pass  # it is served


class Reversed:
    """A double of a cipher: it turns the bytes round."""

    def encrypt(self, plaintext: bytes) -> tuple[str, bytes]:
        return "reversed", plaintext[::-1]

    def decrypt(self, ciphername: str, ciphertext: bytes) -> bytes:
        return ciphertext[::-1]


async def test_without_mcp_there_is_no_route_and_another_graph_is_refused() -> None:
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(create_app(":memory:", graph=greeter())),
        base_url="http://localhost",
    ) as http:
        assert (await http.post("/langmem/mcp", json={})).status_code == 404
    app = create_app(":memory:", graph=greeter(), mcp=True)
    with pytest.raises(InvalidInput, match="build_waiting_graph"):
        async with app.router.lifespan_context(app):
            pass
