"""Promise: who reads nothing but the help finds yesterday's conversation, reads it, goes on with
it, copies it and takes it elsewhere.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from commands import run

from langmem_ext.cli.examples import COMMANDS, examples_of

WIDTH = 80
OF_A_SERVER = ("roles", "grant", "mcp", "inspect")
"""Commands whose examples need a PostgreSQL server (`postgres/test_roles.py` tries them), or are
one (`test_mcp.py`, `inspector/test_inspect_command.py`)."""

OF_A_MODEL = ("memory", "run")
"""Commands whose examples need a chat model: `test_memory_command.py` tries them."""

GRAPH = """
from langgraph.graph import START, MessagesState, StateGraph

from langchain_core.tools import tool

@tool
def greet(name: str) -> str:
    "Say hello."
    return name

TOOLS = [greet]
graph = StateGraph(MessagesState)
graph.add_node("answer", lambda state: {"messages": [("ai", "hello")]}).add_edge(START, "answer")
"""


def typed_in(command: str) -> list[list[str]]:
    """The examples of a command, as a shell reads them."""
    lines = [line.strip().partition("  ")[0] for line in examples_of(command).splitlines()]
    return [shlex.split(line)[1:] for line in lines if line.startswith("langmem-ext ")]


def call(*words: str, given: str = "") -> str:
    return run(*words, given=given).stdout


def test_every_example_of_the_help_works(folder: Path) -> None:
    (folder / "app.py").write_text(GRAPH)
    (folder / "intents.yaml").write_text("intents: {greet: {examples: [say hello], tool: greet}}")
    call(
        "chat",
        "--thread",
        "order-17",
        given="I want to check my order of a broken lamp\n/title My order\n",
    )
    call("threads", "export", "order-17", "--to", "all.jsonl.gz")
    tried = 0
    for command in (name for name in COMMANDS if name not in OF_A_SERVER + OF_A_MODEL):
        for words in typed_in(command):
            asks = ["--yes"] if words[0] == "prune" and "--dry-run" not in words else []
            call(
                *(["order-17" if word == "ID" else word for word in words] + asks),
                given="hello\n" if words[0] == "chat" else "",
            )
            tried += 1
    assert tried > len(COMMANDS) - len(OF_A_SERVER) - len(OF_A_MODEL)
    assert (folder / "order.md").read_text(encoding="utf-8").startswith("# My order")


@pytest.mark.process
def test_help_fits_a_window_of_any_width_and_leaves_nothing_out() -> None:
    topics = ("", "threads", "config", "catalog", "catalog try", "chat", "threads export")
    for topic in topics:
        lines = run(*topic.split(), "--help", COLUMNS=str(WIDTH)).stdout.splitlines()
        assert max(map(len, lines)) <= WIDTH
        assert not [line for line in lines if line.endswith("...") and "Usage" not in line]
        assert not [line for line in lines if "[[" in line or "......" in line]
    done = subprocess.run(
        [sys.executable, "-m", "langmem_ext.cli", "threads", "list", "--help"],
        env=os.environ | {"COLUMNS": "40"},
        capture_output=True,
        text=True,
        check=True,
    )
    explained, _, examples = done.stdout.partition("Examples:")
    assert max(map(len, explained.splitlines())) <= 40
    assert "langmem-ext threads list --waiting" in examples, "what is typed is wider"
