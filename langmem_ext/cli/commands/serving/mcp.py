"""`mcp`: the intents of a waiting graph as MCP tools, over stdio or HTTP."""

from __future__ import annotations

import asyncio
from typing import Any

import uvicorn
from mcp.server import Server
from mcp.server.stdio import stdio_server

from langmem_ext.checkpointer.saver import DeltaSaver
from langmem_ext.cli.chat.graph_choice import choose_graph
from langmem_ext.cli.commands.serving.connections import TimedProtocol
from langmem_ext.cli.errors import note
from langmem_ext.example import keep_shop_beside
from langmem_ext.log.message_log import MessageLog
from langmem_ext.mcp_server import create_mcp_server
from langmem_ext.settings.model import Settings
from langmem_ext.settings.origin import masked


def mcp_with(settings: Settings, *, graph: str | None, port: int | None) -> None:
    """Serve until the client closes the connection, or the process is stopped.

    Args:
        settings: Name the database, the model and the owner.
        graph: The graph, as `file.py:attribute` or `module:attribute`; None: the example.
        port: The port on this machine; None: stdin and stdout.

    Raises:
        InvalidInput: The graph cannot be loaded, or is not a waiting graph.
        StorageError: The database cannot be opened.
    """
    compiled_with = choose_graph(graph, settings.model or None)
    if graph is None:
        keep_shop_beside(settings.storage_path)
    log = MessageLog.open(
        settings.storage_path,
        synchronous=settings.synchronous,
        compress=settings.compress,
        own=True,
    )
    with DeltaSaver(log, owner=settings.owner or None) as saver:
        server = create_mcp_server(compiled_with(saver))
        if port is None:
            asyncio.run(_over_stdio(server))
        else:
            note(
                f"serving {masked(settings.storage_path)} to MCP clients at"
                f" http://127.0.0.1:{port}/mcp; Ctrl-C stops it"
            )
            uvicorn.run(
                server.streamable_http_app(),
                host="127.0.0.1",
                port=port,
                log_level="warning",
                http=TimedProtocol,
            )


async def _over_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
