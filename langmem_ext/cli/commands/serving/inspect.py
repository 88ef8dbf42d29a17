"""`inspect`: a database in the browser, served to this machine alone."""

from __future__ import annotations

import socket
import threading
import webbrowser
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final
from urllib.parse import quote

import uvicorn
from fastapi import FastAPI
from fastapi.routing import APIRouter

from langmem_ext.cli.chat.graph_choice import choose_graph
from langmem_ext.cli.commands.serving.connections import TimedProtocol
from langmem_ext.cli.config import database
from langmem_ext.cli.errors import note
from langmem_ext.errors import InvalidInput
from langmem_ext.inspector import inspector_router
from langmem_ext.inspector.demo import WAITING, make_demo
from langmem_ext.inspector.sources.opening import open_source
from langmem_ext.log.message_log import owner_key
from langmem_ext.settings.origin import masked
from langmem_ext.threads.continuation.usage import checked_prices

HOST: Final = "127.0.0.1"
PORT: Final = 8127
"""Where it is served, if that port is free."""


def inspect_with(
    path: str | None,
    option: str | None,
    *,
    demo: bool,
    graph: str | None,
    port: int | None,
    browser: bool,
    read_only: bool,
    reveal: bool,
    owner: str | None,
    prices: Sequence[str],
) -> None:
    """Show a database in the browser until the process is stopped.

    Args:
        path: Its path or URL.
        option: The same as an option.
        demo: Show conversations that are held for it instead.
        graph: The graph that its threads are run with, as `file.py:attribute` or
            `module:attribute`.
        port: The port; None: `PORT`, or any if that is taken.
        browser: Whether to open the browser.
        read_only: Whether to change nothing.
        reveal: Whether sensitive values may be shown.
        owner: Only this owner's threads.
        prices: What models cost, each as `model=prompt,completion`.

    Raises:
        InvalidInput: An argument cannot be used.
        StorageError: The database cannot be opened.
    """
    if demo:
        _show_demo(port=port, browser=browser)
        return
    db, bound, costs = database(path, option), owner_key(owner), _prices(prices) if prices else None
    make = None if graph is None else choose_graph(graph, None)
    with closing(open_source(db, read_only=read_only)) as source:
        if make is not None and not source.writable:
            raise InvalidInput(
                f"{masked(db)} is only read, so no graph can be run on it: leave out --graph"
            )
        saver: Any = source.saver
        router = inspector_router(
            source,
            graph=None if make is None else make(saver),
            owner=None if bound is None else lambda request: bound,
            reveal=reveal,
            prices=costs,
        )
        _serve(router, port, "/", browser, masked(db))


def _show_demo(*, port: int | None, browser: bool) -> None:
    """Show a demonstration database, in which one conversation waits; it is deleted at the end.

    Raises:
        InvalidInput: The package was installed without its example.
    """
    with TemporaryDirectory(prefix="langmem-ext-demo-", ignore_cleanup_errors=True) as folder:
        note("holding a few conversations for the demonstration …")
        saver, graph = make_demo(Path(folder))
        with closing(saver):
            about = (
                "A demonstration: these conversations were held a moment ago, and are deleted when"
                " it ends. One of them waits for you."
            )
            router = inspector_router(saver, graph=graph, reveal=True, note=about)
            _serve(
                router, port, f"/thread?id={quote(WAITING)}#latest", browser, "the demonstration"
            )


def _serve(router: APIRouter, port: int | None, first: str, browser: bool, what: str) -> None:
    """Answer on loopback until Ctrl-C, and open the browser once somebody listens."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.include_router(router)
    with _listener(port) as listener:
        url = f"http://{HOST}:{listener.getsockname()[1]}{first}"
        note(f"{what} is at {url}; Ctrl-C ends it")
        if browser:
            threading.Thread(target=_open, args=(webbrowser.open, url), daemon=True).start()
        server = uvicorn.Server(
            uvicorn.Config(app, log_level="warning", server_header=False, http=TimedProtocol)
        )
        with suppress(KeyboardInterrupt):
            server.run(sockets=[listener])


def _open(show: Callable[[str], object], url: str) -> None:
    with suppress(Exception):  # whatever a browser's launcher does: the address was printed
        show(url)


def _listener(port: int | None) -> socket.socket:
    """A socket that listens on loopback.

    Raises:
        InvalidInput: The port is taken.
    """
    if port is None:
        with suppress(OSError):
            return socket.create_server((HOST, PORT))
    try:
        return socket.create_server((HOST, port or 0))
    except OSError as error:
        raise InvalidInput(
            f"port {port} cannot be used ({error.strerror or error}): name another one with --port"
        ) from error


def _prices(texts: Sequence[str]) -> dict[str, tuple[Decimal, Decimal]]:
    """Prices as they are typed: `model=prompt,completion`, each for a million tokens."""
    prices = {}
    for text in texts:
        model, sign, numbers = text.partition("=")
        prompt, comma, completion = numbers.partition(",")
        if not (model and sign and comma):
            raise InvalidInput(
                f"--price {text!r} is no price: write MODEL=PROMPT,COMPLETION, each for a million"
                " tokens"
            )
        prices[model.strip()] = (prompt.strip(), completion.strip())
    return checked_prices(prices)
