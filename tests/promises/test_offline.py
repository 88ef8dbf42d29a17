"""Promise: nothing needs a network, a key or a model."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import socket, sys
from pathlib import Path

def refuse(*args, **options):
    raise AssertionError("a network was asked for")

socket.socket.connect = socket.socket.connect_ex = refuse
socket.getaddrinfo = socket.create_connection = refuse

from langchain_core.messages import AIMessage, HumanMessage
from langmem_ext import DeltaSaver, Threads, converse, govern
from payments import Payments

desk = Payments(Path(sys.argv[2]))
with DeltaSaver.open(sys.argv[1]) as saver:
    graph = desk.graph(saver)
    for text in ("cancel my order", "O-123", "yes"):
        turn = converse(graph, text, thread_id="t")
    assert desk.ran == [("cancelled", "O-123")], (desk.ran, turn.reply)
    assert Threads(saver).search("order")
    kept = govern([HumanMessage("a"), AIMessage("word " * 2000), HumanMessage("b")], budget=700)
    assert kept.messages
print("done")
"""


@pytest.mark.process
def test_a_program_that_can_reach_nothing_works(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "m.db"), str(tmp_path)],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": ":".join(sys.path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
