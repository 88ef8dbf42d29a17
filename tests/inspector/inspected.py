"""Databases that are looked into in tests, and pages as their reader sees them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import Any

from fastapi import FastAPI
from fastapi.testclient import TestClient
from langchain_core.messages import AIMessage, ToolMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from langmem_ext.inspector import inspector_router

HERE = "http://127.0.0.1"

HOSTILE = (
    "<script>alert(1)</script><img src=x onerror=alert(2)> [x](javascript:alert(3))"
    " ![y](https://evil.example/y.png) \"'> \u202efdp.exe\u2066"
)
"""What an attacker has said."""


class Asking(MessagesState):
    city: str


def travel(saver: Any) -> Any:
    """A graph that calls a tool, asks for a city, and says where it goes."""

    def look(state: Asking) -> dict[str, Any]:
        at = len(state["messages"])
        call = {
            "name": "look_up",
            "args": {"what": "cities"},
            "id": f"call-{at}",
            "type": "tool_call",
        }
        return {
            "messages": [
                AIMessage("", id=f"look-{at}", tool_calls=[call]),
                ToolMessage(
                    '{"cities": 2}', tool_call_id=f"call-{at}", name="look_up", id=f"found-{at}"
                ),
            ]
        }

    def ask(state: Asking) -> dict[str, Any]:
        return {"city": interrupt("Rome or Oslo?")}

    def go(state: Asking) -> dict[str, Any]:
        return {
            "messages": [
                AIMessage(f"Off to **{state['city']}**", id=f"go-{len(state['messages'])}")
            ]
        }

    builder = StateGraph(Asking)
    for name, node in (("look", look), ("ask", ask), ("go", go)):
        builder.add_node(name, node)
    builder.add_edge(START, "look").add_edge("look", "ask").add_edge("ask", "go").add_edge(
        "go", END
    )
    return builder.compile(checkpointer=saver)


def config(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}}


@contextmanager
def browsing(database: Any, **options: Any) -> Iterator[TestClient]:
    """A client of an inspector of this database."""
    app = FastAPI()
    app.include_router(inspector_router(database, **options), prefix="/ui")
    with TestClient(app, base_url=HERE, follow_redirects=True) as client:
        yield client


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def read(page: str) -> str:
    """The words of a page, in one line."""
    parser = _Text()
    parser.feed(page)
    return " ".join(" ".join(parser.words).split())


def tags(page: str, name: str) -> list[dict[str, str | None]]:
    """The attributes of each element of a page that is called so."""
    parser = _Text()
    parser.feed(page)
    return [attributes for tag, attributes in parser.tags if tag == name]


def token_of(page: str) -> str:
    """What a form of a page must bring back."""
    return html.unescape(re.search(r'name="token" value="([^"]+)"', page)[1])  # type: ignore[index]


def steps_of(page: str) -> list[str]:
    """The checkpoints that a page's timeline shows, the newest first."""
    return [
        str(link["title"])
        for link in tags(page, "a")
        if re.fullmatch(r"[0-9a-f]{8}-.{27}", str(link.get("title") or ""))
    ]
