"""A museum's desk: its graph, and conversations with it for every way to drive one
(`museum.yaml`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import yaml
from langchain_core.tools import BaseTool, ToolException, tool
from langgraph.graph import StateGraph

from langmem_ext import IntentCatalog, build_waiting_graph

DATA: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("museum.yaml").read_text(encoding="utf-8")
)
CATALOG = IntentCatalog.from_dict(DATA["catalog"], source="museum.yaml")
CONVERSATIONS: list[dict[str, Any]] = DATA["conversations"]
NOW = datetime(2026, 3, 4, 10, 15).astimezone()


def moments(conversation: Mapping[str, Any]) -> list[datetime]:
    """When each message of a conversation is written."""
    moment, found = NOW, []
    for said in conversation["says"]:
        moment += timedelta(seconds=said.get("later", 1))
        found.append(moment)
    return found


def needs_model(conversation: Mapping[str, Any]) -> bool:
    """Whether a conversation is for a graph with a model."""
    return any("model" in said for said in conversation["says"])


def calls_in(messages: list[Any]) -> list[list[Any]]:
    """The tool calls of a thread's messages, each as name and arguments."""
    plain = [message if isinstance(message, dict) else message.model_dump() for message in messages]
    return [
        [call["name"], call["args"]]
        for message in plain
        for call in message.get("tool_calls") or ()
    ]


def reply_in(messages: list[Any]) -> str:
    """What the agent has said since the newest message of the user."""
    plain = [message if isinstance(message, dict) else message.model_dump() for message in messages]
    newest = max(place for place, message in enumerate(plain) if message["type"] == "human")
    return "\n".join(
        message["content"]
        for message in plain[newest + 1 :]
        if message["type"] == "ai" and message["content"]
    )


def tools() -> list[BaseTool]:
    """The desk's tools; none does anything."""

    @tool
    def visit(tour: str, day: str, time: str, people: int) -> str:
        """Book a visit."""
        return "ok"

    @tool
    def cancel_visit(booking: str) -> str:
        """Cancel a visit."""
        return "ok"

    @tool
    def join(town: str, level: str, card: str, remark: str = "") -> str:
        """Become a friend."""
        return "ok"

    @tool
    def open_locker(locker: int) -> str:
        """Open a locker."""
        if locker == 13:
            raise ToolException("There is no locker 13.")
        if locker == 500:
            raise RuntimeError(json.dumps({"password": "hunter2"}))
        return "ok"

    return [visit, cancel_visit, join, open_locker]


def build(**more: Any) -> StateGraph[Any, Any, Any, Any]:
    """The desk's graph, not compiled."""
    return build_waiting_graph(CATALOG, tools(), **more)


graph = build().compile()
"""For a server, which brings its own checkpointer."""
