"""`serve`: the threads of a database over HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final

import uvicorn
from fastapi import FastAPI
from fastapi.responses import RedirectResponse

from langmem_ext._internal.models import make_model
from langmem_ext.checkpointer.saver import DeltaSaver
from langmem_ext.cli.chat.graph_choice import Graph, choose_graph
from langmem_ext.cli.commands.serving.connections import TimedProtocol
from langmem_ext.cli.errors import note
from langmem_ext.errors import InvalidInput
from langmem_ext.inspector import inspector_router
from langmem_ext.log.message_log import MessageLog, owner_key
from langmem_ext.log.retention import Retention
from langmem_ext.log.sweeper import LONGEST_PAUSE
from langmem_ext.server import Memory, by_token, create_app, on_this_machine
from langmem_ext.server.access import Access, is_loopback
from langmem_ext.settings.model import Settings

INSPECTOR: Final = "/langmem/ui"
"""Where the inspector is."""


def serve_with(
    settings: Settings,
    *,
    graph: str | None,
    graph_id: str,
    host: str,
    port: int,
    tokens: str | None,
    origins: Sequence[str],
    memory_model: str | None,
    mcp: bool = False,
) -> None:
    """Serve a database until the process is stopped.

    Args:
        settings: Name the database, and whose threads are seen.
        graph: The graph that may be run, as `file.py:attribute` or `module:attribute`.
        graph_id: What clients call it.
        host: Where to listen.
        port: Which port.
        tokens: The file of the bearer tokens; None: only this machine may call.
        origins: Web pages that may call.
        memory_model: The name of the chat model that writes memories; None: none are written here.
        mcp: Whether the graph's intents are served as MCP tools, too.

    Raises:
        InvalidInput: An argument is invalid, or others could call without a token.
        StorageError: The database cannot be opened.
    """
    if mcp and graph is None:
        raise InvalidInput("--mcp serves the intents of a graph: name it by --graph FILE.py:NAME")
    access = _access(settings, host, tokens, origins)
    make = None if graph is None else choose_graph(graph, settings.model or None)
    memory = Memory(None if memory_model is None else make_model(memory_model))
    log = MessageLog.open(
        settings.storage_path,
        synchronous=settings.synchronous,
        compress=settings.compress,
        own=True,
    )
    try:
        saver = DeltaSaver(log, retention=_retention(settings))
        runs = None if make is None else make(saver)
        app = create_app(
            saver,
            graph=runs,
            graph_id=graph_id,
            access=access,
            origins=origins,
            memory=memory,
            mcp=mcp,
            sweep_every=_sweep_every(settings),
        )
        if tokens is None:  # a browser has none to send
            _add_inspector(app, saver, runs, settings.owner or None)
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        _announce(address, settings.storage_path, mcp=mcp, inspector=tokens is None)
        uvicorn.run(app, host=host, port=port, log_level="warning", http=TimedProtocol)
    finally:
        log.close()


def _announce(address: str, database: str, *, mcp: bool, inspector: bool) -> None:
    """Note what is served, and where."""
    note(f"serving {database} at {address}; /openapi.json describes the routes, Ctrl-C stops it")
    if mcp:
        note(f"the graph's intents are MCP tools at {address}/langmem/mcp")
    if inspector:
        note(f"the inspector is at {address}{INSPECTOR}/")


def _add_inspector(app: FastAPI, saver: DeltaSaver, graph: Graph | None, owner: str | None) -> None:
    """The inspector beside the routes, for who may call them without a token."""
    bound = saver if owner is None else saver.for_owner(owner)
    runs = None if graph is None else graph.copy({"checkpointer": bound})
    pages = inspector_router(
        bound, graph=runs, owner=None if owner is None else lambda request: owner
    )
    app.include_router(pages, prefix=INSPECTOR)
    app.add_api_route("/", lambda: RedirectResponse(f"{INSPECTOR}/"), include_in_schema=False)


def _retention(settings: Settings) -> Retention | None:
    """When threads expire: as in a chat, where the setting `auto_prune_days` says so alone."""
    if not settings.auto_prune_days:
        return None
    tools_live = timedelta(hours=settings.ttl_hours)
    return Retention(ttl=timedelta(days=settings.auto_prune_days), tool_ttl=tools_live or None)


def _sweep_every(settings: Settings) -> timedelta | None:
    minutes = settings.sweep_interval_minutes
    return min(timedelta(minutes=minutes), LONGEST_PAUSE) if minutes else None


def _access(settings: Settings, host: str, tokens: str | None, origins: Sequence[str]) -> Access:
    if tokens is not None:
        return by_token(_read_tokens(Path(tokens)))
    if not is_loopback(host):
        raise InvalidInput(
            f"whoever reaches {host} could read every thread: give --tokens FILE, or listen at"
            " 127.0.0.1"
        )
    return on_this_machine(owner=owner_key(settings.owner or None), origins=origins)


def _read_tokens(path: Path) -> dict[str, str | None]:
    """The tokens of a file, one a line, each with the owner whose threads it may see.

    A token without an owner may see all threads.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"the file of the tokens, {path}, cannot be read:"
            f" {getattr(error, 'strerror', None) or 'it is no text'}"
        ) from error
    owners: dict[str, str | None] = {}
    for line in lines:
        token, _, owner = line.strip().partition(" ")
        if token and not token.startswith("#"):
            owners[token] = owner.strip() or None
    return owners
