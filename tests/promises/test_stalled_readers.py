"""A client that stops reading, or never finishes its request, costs its own connection alone.

Its run goes on or is cancelled, as was asked for; others get the thread, and `cancel` and `join`
answer.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from patience import PATIENCE_S, until
from serving import serving

from langmem_ext import DeltaSaver

pytestmark = pytest.mark.process

HI = {"assistant_id": "agent", "input": {"messages": [{"role": "user", "content": "hi"}]}}

GRAPH = """
from langchain_core.messages import AIMessage
from langgraph.config import get_stream_writer
from langgraph.graph import START, MessagesState, StateGraph


async def talk(state):
    write = get_stream_writer()
    if state["messages"][-1].text == "much":
        for _ in range(2000):
            write({"x": "x" * 10_000})
    return {"messages": [AIMessage("done")]}


graph = StateGraph(MessagesState).add_node(talk).add_edge(START, "talk").compile()
"""

UVICORN = """
import sys
import uvicorn
from langmem_ext.server import Limits, create_app

app = create_app("memory.db", graph=graph, limits=Limits(reader_seconds={seconds}, wait={wait}))
uvicorn.run(app, port=int(sys.argv[1]), log_level="critical")
"""

COMMAND = """
import sys

_, _, plain, *words = sys.argv
if plain == "plain":  # uvicorn without its extra: with h11
    sys.modules["httptools"] = None
from langmem_ext.cli.commands.serving.connections import TimedProtocol

TimedProtocol.longest = 1.0
sys.argv = ["langmem-ext", *words]
from langmem_ext.cli import main

main()
"""


def app(folder: Path, seconds: float = 1, **options: Any) -> Any:
    """A server of the graph; its client."""
    program = GRAPH + UVICORN.format(seconds=seconds, wait=PATIENCE_S)
    return serving(program, folder=folder, **options)


def request(text: str, **more: Any) -> bytes:
    """A request that streams a run, as bytes."""
    said = {"messages": [{"role": "user", "content": text}]}
    asked = {"assistant_id": "agent", "stream_mode": ["custom"], "input": said, **more}
    body = json.dumps(asked).encode()
    head = (
        "POST /threads/t/runs/stream HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@contextmanager
def stalled(other: httpx.Client, *requests: bytes) -> Iterator[socket.socket]:
    """A client that sends requests to the server of another one, and reads nothing."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", other.base_url.port))
        for one in requests:
            client.sendall(one)
        yield client


def first_run(client: httpx.Client) -> str:
    """Where the run of the client that stalls is."""
    found = until(lambda: client.get("/threads/t/runs").json())
    return f"/threads/t/runs/{found[-1]['run_id']}"


def is_dropped(client: socket.socket) -> bool:
    """Whether the server has closed the connection; reads what was sent before."""
    client.settimeout(PATIENCE_S)
    with suppress(ConnectionError):
        while client.recv(1 << 16):
            pass
    return True


@pytest.mark.parametrize(
    ("asked", "status"), [({}, "success"), ({"on_disconnect": "cancel"}, "interrupted")]
)
def test_a_reader_that_takes_nothing_is_dropped_and_the_thread_goes_to_others(
    asked: dict[str, Any], status: str, tmp_path: Path
) -> None:
    with app(tmp_path) as (client, _):
        client.post("/threads", json={"thread_id": "t"})
        with stalled(client, request("much", **asked)):
            run = first_run(client)
            other = client.post("/threads/t/runs/wait", json=HI)
            assert (other.status_code, other.json()["messages"][-1]["content"]) == (200, "done")
            assert client.get(f"{run}/join").status_code == 200
            assert client.get(run).json()["status"] == status


def test_a_run_whose_reader_stalls_can_be_cancelled_and_joined_meanwhile(tmp_path: Path) -> None:
    with app(tmp_path, PATIENCE_S, timeout=PATIENCE_S / 3) as (client, _):
        client.post("/threads", json={"thread_id": "t"})
        with stalled(client, request("much")):
            place = first_run(client)
            assert client.post(f"{place}/cancel", params={"wait": True}).status_code == 204
            assert client.get(f"{place}/join").status_code == 200
            assert client.get(place).json()["status"] == "interrupted"


def test_a_reader_that_leaves_before_it_reads_anything_leaves_its_thread(tmp_path: Path) -> None:
    with app(tmp_path) as (client, _):
        client.post("/threads", json={"thread_id": "t"})
        for _ in range(5):
            with stalled(client, request("much")):
                pass
        # A second request on the same connection, whose answer never begins to be read.
        with stalled(client, request("much"), request("much")):
            assert client.post("/threads/t/runs/wait", json=HI).status_code == 200

            def all_over() -> bool:
                runs = client.get("/threads/t/runs").json()
                return all(run["status"] not in ("pending", "running") for run in runs)

            until(all_over)


@contextmanager
def command(folder: Path, *words: str) -> Iterator[httpx.Client]:
    """The server of a command; its client."""
    (folder / "app.py").write_text(GRAPH)
    with serving(COMMAND, *words, "--port", "PORT", folder=folder) as (client, _):
        yield client


SERVED = ["serve", "memory.db", "--graph", "app.py:graph"]
INSPECTED = ["inspect", "memory.db", "--no-browser"]


@pytest.mark.parametrize("words", [["plain", *SERVED], ["whole", *INSPECTED]])
def test_a_request_whose_headers_never_end_is_dropped(words: list[str], tmp_path: Path) -> None:
    DeltaSaver.open(str(tmp_path / "memory.db")).close()
    with command(tmp_path, *words) as client:
        whole = b"GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n"
        part = b"GET /ok HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
        with (
            stalled(client),
            stalled(client, part) as slow,
            stalled(client, whole, part) as second,
        ):
            assert is_dropped(slow)
            assert is_dropped(second)
        with stalled(client) as silent:
            assert is_dropped(silent)
        assert client.get("/").status_code < 500  # others are served


def test_a_served_reader_that_takes_nothing_loses_its_connection(tmp_path: Path) -> None:
    with command(tmp_path, "whole", *SERVED) as client:
        client.post("/threads", json={"thread_id": "t"})
        with stalled(client, request("much")) as reader:
            assert client.get(f"{first_run(client)}/join").status_code == 200
            assert is_dropped(reader)
