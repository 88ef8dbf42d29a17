"""The order desk in the agent server: a real `langgraph dev` in a folder of its own."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from langgraph_sdk import get_sync_client
from langgraph_sdk.client import SyncLangGraphClient
from patience import PATIENCE_S
from repository import ROOT

START_SECONDS = PATIENCE_S
STOP_SECONDS = 60.0

OTHER_PROCESS = """
import json, sys
from graphs.support import make_graph
from langmem_ext import DeltaSaver, converse

database, thread, *texts = sys.argv[1:]
with DeltaSaver.open(database) as saver:
    graph = make_graph(saver)
    for text in texts:
        turn = converse(graph, text, thread_id=thread)
        print(json.dumps({"reply": turn.reply, "waiting_for": turn.waiting_for}))
"""


PATIENT_GRAPH = """
import asyncio
from langgraph.graph import START, MessagesState, StateGraph


async def note(state: MessagesState):
    return {"messages": [("ai", "noted: " + state["messages"][-1].text)]}


async def work(state: MessagesState):
    if "slowly" in state["messages"][-1].text:
        await asyncio.sleep(3600)
    return {"messages": [("ai", "done")]}


builder = StateGraph(MessagesState).add_node(note).add_node(work)
graph = builder.add_edge(START, "note").add_edge("note", "work").compile()
"""


class Desk:
    """A folder with the project's own `langgraph.json` and graphs, and what servers leave there.

    Attributes:
        url: Where the server answers that was started last.
        said: What the environment of its processes says besides.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self.said: dict[str, str] = {}
        self._server: subprocess.Popen[bytes] | None = None
        self.database = folder / "memory.db"
        self.log = folder / "server.log"
        shutil.copy(ROOT / "langgraph.json", folder)
        shutil.copytree(
            ROOT / "graphs", folder / "graphs", ignore=shutil.ignore_patterns("__pycache__")
        )

    def add_patient_graph(self) -> None:
        """A graph `patient` that notes what it is told, and works slowly when it is told to."""
        (self.folder / "graphs" / "patient.py").write_text(PATIENT_GRAPH)
        self.add_graph("patient", "./graphs/patient.py:graph")

    def add_graph(self, name: str, place: str) -> None:
        """A graph that the server has besides."""
        settings = json.loads((self.folder / "langgraph.json").read_text())
        settings["graphs"][name] = place
        (self.folder / "langgraph.json").write_text(json.dumps(settings))

    @property
    def environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.folder), str(ROOT)]),
            "LANGMEM_EXT_DB": str(self.database),
            "LANGMEM_EXT_SHOP_DB": str(self.folder / "shop.db"),
            "LANGGRAPH_CLI_NO_ANALYTICS": "1",
            "LANGGRAPH_NO_VERSION_CHECK": "true",
            "LANGSMITH_TRACING": "false",
            **self.said,
        }

    @contextmanager
    def serving(self) -> Iterator[SyncLangGraphClient]:
        """The server, running; a client for it. In the end its processes are gone."""
        options = ["--no-browser", "--no-reload", "--port", str(_free_port())]
        command = [sys.executable, "-m", "langgraph_cli", "dev", *options]
        with self.log.open("w") as log:
            server = subprocess.Popen(
                command,
                cwd=self.folder,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._server = server
        try:
            self.url = self._url(server)
            with get_sync_client(url=self.url) as client:
                yield client
        finally:
            _end(server)
            print(self.log.read_text(errors="replace"))

    def kill(self) -> None:
        """End the server and its processes without warning."""
        assert self._server is not None
        os.killpg(self._server.pid, signal.SIGKILL)
        self._server.wait(PATIENCE_S)

    def _url(self, server: subprocess.Popen[bytes]) -> str:
        """Where the server answers: its log says it, for the port may be taken meanwhile."""
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end and server.poll() is None:
            named = re.search(
                r"API: \S*?(http://127\.0\.0\.1:\d+)", self.log.read_text(errors="replace")
            )
            if named and _answers(f"{named[1]}/ok"):
                return named[1]
            time.sleep(0.1)
        state = "still starting" if server.poll() is None else f"ended with {server.returncode}"
        pytest.fail(f"the server is {state} after {START_SECONDS:g} s at most")

    def say_in_program(self, thread: str, *texts: str) -> list[dict[str, Any]]:
        """Messages to the thread from a program that has the graph and the database."""
        return self._run([sys.executable, "-c", OTHER_PROCESS, str(self.database), thread, *texts])

    def say_in_chat(self, thread: str, text: str) -> dict[str, Any]:
        """One message to the thread on the command line, with the server's database."""
        [said] = self._run(
            [sys.executable, "-m", "langmem_ext.cli", "chat", "--thread", thread, "--json"],
            f"{text}\n",
        )
        return said

    def _run(self, command: list[str], given: str = "") -> list[dict[str, Any]]:
        """The command's lines of output, which are JSON."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            input=given,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in done.stdout.splitlines()]


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as response:
            return bool(json.load(response).get("ok"))
    except (urllib.error.URLError, TimeoutError, ConnectionError, ValueError):
        return False


def _end(server: subprocess.Popen[bytes]) -> None:
    """Ask the server to stop, then make it; it leads a group of processes of its own."""
    for request in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(server.pid, request)
            server.wait(STOP_SECONDS)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue
