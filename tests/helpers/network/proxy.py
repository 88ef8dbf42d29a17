"""A TCP proxy between a client and PostgreSQL that delays, counts and cuts.

    with Proxy("postgresql://postgres@127.0.0.1/app", delay_s=0.001) as proxy:
        connection = psycopg.connect(proxy.url)

It reads what it passes on: PostgreSQL's protocol, version 3, unencrypted. A client that prefers
encryption is answered that encryption is not supported.
"""

from __future__ import annotations

import asyncio
import math
import selectors
import threading
from collections.abc import Callable, Coroutine
from multiprocessing import get_context
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit, urlunsplit

from wire import Counts, Greeting, Meter

T = TypeVar("T")


def at_address(url: str, port: int, host: str = "127.0.0.1") -> str:
    """The same database's URL, at another address."""
    parts = urlsplit(url)
    who, mark, _ = parts.netloc.rpartition("@")
    return urlunsplit(parts._replace(netloc=f"{who}{mark}{host}:{port}"))


def with_database(url: str, name: str) -> str:
    """The URL of another database on the same server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


# -- the network -----------------------------------------------------------------------------------


class _Lane:
    """One direction of a connection: data leaves in order, each piece after its delay."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due = 0.0
        self._waiting = 0

    def after(self, delay: float, action: Callable[..., object], *arguments: object) -> None:
        """Do something when the delay is over, and after all that came earlier."""
        now = self._loop.time()
        # The loop may swap what is due at the same instant.
        self._due = max(now + delay, math.nextafter(self._due, math.inf))
        if self._due <= now and not self._waiting:
            action(*arguments)
            return
        self._waiting += 1
        self._loop.call_at(self._due, self._done, action, arguments)

    def _done(self, action: Callable[..., object], arguments: tuple[object, ...]) -> None:
        self._waiting -= 1
        action(*arguments)


class _End(asyncio.Protocol):
    """One end of a connection: tells what comes in."""

    transport: asyncio.Transport

    def __init__(
        self, made: Callable[[], None], received: Callable[[bytes], None], lost: Callable[[], None]
    ) -> None:
        self._made, self._received, self._lost = made, received, lost

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self._made()

    def data_received(self, data: bytes) -> None:
        self._received(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._lost()


class _Link:
    """A client's connection and the one to the server that belongs to it."""

    def __init__(self, network: _Network) -> None:
        self._network = network
        self._meter = Meter(network.total)
        self._greeting = Greeting()
        self._up, self._down = _Lane(network.loop), _Lane(network.loop)
        self.client = _End(self._opened, self._from_client, self._client_left)
        self._server = _End(lambda: None, self._from_server, self._server_left)
        self._reached = False

    def _opened(self) -> None:
        self._network.links.add(self)
        self._network.total["connections"] += 1
        self.client.transport.pause_reading()
        # A client at a distance would have waited for the answer to its call.
        self._up.after(2 * self._network.delay_s, self._network.spawn, self._reach)

    async def _reach(self) -> None:
        try:
            await self._network.loop.create_connection(lambda: self._server, *self._network.target)
        except OSError:
            self.client.transport.abort()
            return
        self._reached = True
        if self.client.transport.is_closing():
            self._server.transport.abort()
        else:
            self.client.transport.resume_reading()

    def _from_client(self, data: bytes) -> None:
        if not self._greeting.over:
            data, refused = self._greeting.feed(data)
            if refused:
                self._down.after(
                    2 * self._network.delay_s, self.client.transport.write, b"N" * refused
                )
            length = int.from_bytes(data[:4], "big")
            self._meter.up(data[length:])
        else:
            self._meter.up(data)
        if data:
            self._up.after(self._network.delay_s, self._to_server, data)

    def _to_server(self, data: bytes) -> None:
        if self._server.transport.is_closing():
            return
        kept, burnt = self._network.burn("up", data)
        self._network.total["bytes_up"] += len(kept)
        self._server.transport.write(kept)
        if burnt:
            self._server.transport.close()  # what it was given it shall still read
            self._network.cut()

    def _from_server(self, data: bytes) -> None:
        self._down.after(self._network.delay_s, self._to_client, data)

    def _to_client(self, data: bytes) -> None:
        if self.client.transport.is_closing():
            return
        kept, burnt = self._network.burn("down", data)
        self._network.total["bytes_down"] += len(kept)
        self._meter.down(kept)
        self.client.transport.write(kept)
        if burnt:
            self.client.transport.close()
            self._network.cut()

    def _client_left(self) -> None:
        self._network.links.discard(self)
        if self._reached:
            self._network.leaving.add(self._server)
            self._up.after(self._network.delay_s, self._server.transport.close)

    def _server_left(self) -> None:
        self._network.leaving.discard(self._server)
        self._down.after(self._network.delay_s, self.client.transport.close)

    def cut(self) -> None:
        """End both connections, whatever is still on its way."""
        for end in (self.client, self._server) if self._reached else (self.client,):
            if not end.transport.is_closing():
                end.transport.abort()


class _Network:
    """All connections, on the event loop that carries them."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, target: tuple[str, int], delay_s: float
    ) -> None:
        self.loop = loop
        self.target = target
        self.delay_s = delay_s
        self.total = dict.fromkeys(Counts.__dataclass_fields__, 0)
        self.links: set[_Link] = set()
        self.leaving: set[_End] = set()
        self._fuse: tuple[str, int] | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Carry out a coroutine."""
        task = self.loop.create_task(work())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def burn(self, direction: str, data: bytes) -> tuple[bytes, bool]:
        """How much of a piece may pass, and whether everything is to be cut after it."""
        if self._fuse is None or self._fuse[0] != direction:
            return data, False
        left = self._fuse[1] - len(data)
        self._fuse = (direction, left) if left > 0 else None
        return data[: len(data) + min(0, left)], left <= 0

    def light(self, direction: str, count: int) -> None:
        """Cut everything after so many more bytes in a direction."""
        self._fuse = (direction, count)

    def cut(self) -> int:
        """Cut everything; how many connections that were."""
        links = list(self.links)
        for link in links:
            link.cut()
        for end in list(self.leaving):
            end.transport.abort()
        return len(links)


# -- on a thread of its own ------------------------------------------------------------------------


class Proxy:
    """The proxy, on a thread of its own.

    Attributes:
        url: The server's, through it.
    """

    url: str

    def __init__(self, url: str, *, delay_s: float = 0.0) -> None:
        """Begin to listen.

        Args:
            url: The server's.
            delay_s: How long each direction takes: half of what a round trip takes longer.
        """
        # Other selectors wait for whole milliseconds.
        self._loop = asyncio.SelectorEventLoop(selectors.SelectSelector())
        parts = urlsplit(url)
        self._network = _Network(
            self._loop, (parts.hostname or "127.0.0.1", parts.port or 5432), delay_s
        )
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._thread.start()
        self._server = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        self.url = at_address(url, self._server.sockets[0].getsockname()[1])

    async def _listen(self) -> asyncio.Server:
        return await self._loop.create_server(lambda: _Link(self._network).client, "127.0.0.1", 0)

    def counts(self) -> Counts:
        """What has gone through so far."""
        return self._call(lambda: Counts(**self._network.total))

    def set_delay(self, seconds: float) -> None:
        """From now on let each direction take so long."""
        self._call(lambda: setattr(self._network, "delay_s", seconds))

    def cut(self) -> int:
        """Cut all connections at once; how many there were."""
        return self._call(self._network.cut)

    def cut_after(self, count: int, *, down: bool = False) -> None:
        """Cut all connections after `count` more bytes to the server, or, with `down`, from it.

        Bytes to the server that are not cut off arrive there, and it sees its client leave after
        them.
        """
        self._call(lambda: self._network.light("down" if down else "up", count))

    def _call(self, work: Callable[[], T]) -> T:
        """Do something between two events."""

        async def doing() -> T:
            return work()

        return asyncio.run_coroutine_threadsafe(doing(), self._loop).result()

    async def _stop(self) -> None:
        self._server.close()
        self._network.cut()
        await asyncio.sleep(0)  # what has been cut is told so in the loop's next round
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def close(self) -> None:
        """Cut all connections, and listen no more."""
        asyncio.run_coroutine_threadsafe(self._stop(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


# -- in a process of its own -----------------------------------------------------------------------


class ProxyApart:
    """A proxy in its own process, so that its work is not counted as the client's.

    Attributes:
        url: The server's, through it.
    """

    url: str

    def __init__(self, url: str, *, delay_s: float = 0.0) -> None:
        """Begin to listen, as `Proxy` does."""
        context = get_context("forkserver")
        self._pipe, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, url, delay_s))
        self._process.start()
        other.close()
        self.url = self._pipe.recv()

    def counts(self) -> Counts:
        """What has gone through so far."""
        counts: Counts = self._ask("counts")
        return counts

    def set_delay(self, seconds: float) -> None:
        """From now on let each direction take so long."""
        self._ask("set_delay", seconds)

    def _ask(self, name: str, *arguments: object) -> Any:
        self._pipe.send((name, arguments))
        return self._pipe.recv()

    def close(self) -> None:
        """End the process."""
        self._pipe.close()
        self._process.join()
        self._process.close()


def _serve(pipe: Connection, url: str, delay_s: float) -> None:
    with Proxy(url, delay_s=delay_s) as proxy:
        pipe.send(proxy.url)
        try:
            while True:
                name, arguments = pipe.recv()
                pipe.send(getattr(proxy, name)(*arguments))
        except EOFError:
            return
