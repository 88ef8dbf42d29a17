"""A client that stops reading, or never finishes its request, costs its own connection alone.

Its run goes on or is cancelled, as was asked for; others get the thread, and `cancel` and `join`
answer.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from patience import PATIENCE_S, until

from langmem_ext import DeltaSaver

pytestmark = pytest.mark.process

SECONDS = 1.0
"""How long a client may stall here."""

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
import uvicorn
from langmem_ext.server import Limits, create_app

app = create_app("memory.db", graph=graph, limits=Limits(reader_seconds={seconds}, wait={wait}))
uvicorn.run(app, port={port}, log_level="critical")
"""

COMMAND = """
import sys

if {plain}:  # uvicorn without its extra: with h11
    sys.modules["httptools"] = None
from langmem_ext.cli.commands.serving.connections import TimedProtocol

TimedProtocol.longest = {seconds}
sys.argv = ["langmem-ext", *{words!r}]
from langmem_ext.cli import main

main()
"""


@contextmanager
def running(folder: Any, program: str, **values: Any) -> Iterator[int]:
    """A server in a process of its own; its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
    words = [str(port) if word == "PORT" else word for word in values.pop("words", ())]
    text = program.format(port=port, words=words, seconds=values.pop("seconds", SECONDS), **values)
    (folder / "app.py").write_text(GRAPH)
    server = subprocess.Popen([sys.executable, "-c", text], cwd=folder, stderr=subprocess.DEVNULL)

    def answers() -> bool:
        assert server.poll() is None
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        until(answers)
        yield port
    finally:
        server.kill()
        server.wait()


def request(text: str, **more: Any) -> bytes:
    """A request that streams a run, as bytes."""
    said = {"messages": [{"role": "user", "content": text}]}
    body = json.dumps(
        {"assistant_id": "agent", "stream_mode": ["custom"], "input": said, **more}
    ).encode()
    head = (
        "POST /threads/t/runs/stream HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@contextmanager
def stalled(port: int, *requests: bytes) -> Iterator[socket.socket]:
    """A client that sends requests and reads nothing."""
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", port))
        for one in requests:
            client.sendall(one)
        yield client


def first_run(client: httpx.Client) -> dict[str, Any]:
    """The run of the client that stalls."""
    found: list[dict[str, Any]] = until(lambda: client.get("/threads/t/runs").json())
    return found[-1]


def is_dropped(client: socket.socket) -> bool:
    """Whether the server has closed the connection; reads what was sent before."""
    client.settimeout(PATIENCE_S)
    try:
        while client.recv(1 << 16):
            pass
    except ConnectionError:
        pass
    return True


@pytest.mark.parametrize(
    ("asked", "status"), [({}, "success"), ({"on_disconnect": "cancel"}, "interrupted")]
)
def test_a_reader_that_takes_nothing_is_dropped_and_the_thread_goes_to_others(
    asked: dict[str, Any], status: str, tmp_path: Any
) -> None:
    program = f"from app import graph\n{UVICORN}"
    with (
        running(tmp_path, program, wait=PATIENCE_S) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client,
    ):
        client.post("/threads", json={"thread_id": "t"})
        with stalled(port, request("much", **asked)):
            run = first_run(client)
            said = {"messages": [{"role": "user", "content": "hi"}]}
            other = client.post(
                "/threads/t/runs/wait", json={"assistant_id": "agent", "input": said}
            )
            assert (other.status_code, other.json()["messages"][-1]["content"]) == (200, "done")
            assert client.get(f"/threads/t/runs/{run['run_id']}/join").status_code == 200
            ended = client.get(f"/threads/t/runs/{run['run_id']}").json()
            assert ended["status"] == status


def test_a_run_whose_reader_stalls_can_be_cancelled_and_joined_meanwhile(tmp_path: Any) -> None:
    program = f"from app import graph\n{UVICORN}"
    with (
        running(tmp_path, program, seconds=PATIENCE_S, wait=PATIENCE_S) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S / 3) as client,
    ):
        client.post("/threads", json={"thread_id": "t"})
        with stalled(port, request("much")):
            place = f"/threads/t/runs/{first_run(client)['run_id']}"
            assert client.post(f"{place}/cancel", params={"wait": True}).status_code == 204
            assert client.get(f"{place}/join").status_code == 200
            assert client.get(place).json()["status"] == "interrupted"


def test_a_reader_that_leaves_before_it_reads_anything_leaves_its_thread(tmp_path: Any) -> None:
    program = f"from app import graph\n{UVICORN}"
    with (
        running(tmp_path, program, wait=PATIENCE_S) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client,
    ):
        client.post("/threads", json={"thread_id": "t"})
        for _ in range(5):
            with stalled(port, request("much")):
                pass
        # A second request on the same connection, whose answer never begins to be read.
        with stalled(port, request("much"), request("much")):
            said = {"messages": [{"role": "user", "content": "hi"}]}
            body = {"assistant_id": "agent", "input": said}
            assert client.post("/threads/t/runs/wait", json=body).status_code == 200

            def all_over() -> bool:
                runs = client.get("/threads/t/runs").json()
                return all(run["status"] not in ("pending", "running") for run in runs)

            until(all_over)


SERVED = ["serve", "memory.db", "--port", "PORT", "--graph", "app.py:graph"]


INSPECTED = ["inspect", "memory.db", "--no-browser", "--port", "PORT"]


@pytest.mark.parametrize(("words", "plain"), [(SERVED, True), (INSPECTED, False)])
def test_a_request_whose_headers_never_end_is_dropped(
    words: list[str], plain: bool, tmp_path: Any
) -> None:
    DeltaSaver.open(str(tmp_path / "memory.db")).close()
    with running(tmp_path, COMMAND, words=words, plain=plain) as port:
        whole = b"GET /ok HTTP/1.1\r\nHost: localhost\r\n\r\n"
        part = b"GET /ok HTTP/1.1\r\nHost: localhost\r\nX-Slow: "
        with stalled(port), stalled(port, part) as slow, stalled(port, whole, part) as second:
            assert is_dropped(slow)
            assert is_dropped(second)
        with stalled(port) as silent:
            assert is_dropped(silent)
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client:
            assert client.get("/").status_code < 500  # others are served


def test_a_served_reader_that_takes_nothing_loses_its_connection(tmp_path: Any) -> None:
    with (
        running(tmp_path, COMMAND, words=SERVED, plain=False) as port,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE_S) as client,
    ):
        client.post("/threads", json={"thread_id": "t"})
        with stalled(port, request("much")) as reader:
            run = first_run(client)
            assert client.get(f"/threads/t/runs/{run['run_id']}/join").status_code == 200
            assert is_dropped(reader)
