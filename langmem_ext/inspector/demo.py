"""Conversations to look at: some held with the example order desk, and a written one."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.pregel import Pregel

from langmem_ext.checkpointer.saver import DeltaSaver
from langmem_ext.example import keep_shop_beside, make_graph
from langmem_ext.memory.facts.facts import Facts, FactSource
from langmem_ext.memory.memories import ConversationMemories
from langmem_ext.threads.history import ThreadChatMessageHistory
from langmem_ext.threads.states.rewind import COPY
from langmem_ext.threads.threads import Threads
from langmem_ext.waiting.converse import converse

WAITING: Final = "teapot-refund"
"""The conversation that waits for whoever looks."""

HELD: Final[Sequence[tuple[str, Sequence[str]]]] = (
    ("old-order", ("where is my order O-12346?", "thanks, can I talk to a human?")),
    (
        "new-address",
        (
            "change the delivery address of O-778",
            "9 Park Road, Springfield",
            "where is my order O-778?",
        ),
    ),
    ("cancelled", ("I want to check my order", "It's O-12345", "cancel it", "yes")),
    ("second-thoughts", ("I want to cancel order O-777", "no", "leave it")),
    ("impatient", ("has my parcel been shipped yet",)),
    (WAITING, ("where is my order O-777?", "I want a refund for O-777")),
)
"""What users say, by conversation."""


def make_demo(folder: Path) -> tuple[DeltaSaver, Pregel[Any, Any, Any, Any]]:
    """A database in a folder, with conversations, and the graph that they were held with.

    Raises:
        InvalidInput: The package was installed without its example.
    """
    database = str(folder / "memory.db")
    keep_shop_beside(database)
    saver = DeltaSaver.open(database, synchronous="normal")
    graph = make_graph(saver)
    threads = Threads(saver)
    ThreadChatMessageHistory("trip-to-lisbon", saver).add_messages(_trip())
    for thread_id, texts in HELD:
        for text in texts:
            converse(graph, text, thread_id=thread_id)
    _branch(graph, "second-thoughts")
    threads.rename("trip-to-lisbon", "A long weekend in Lisbon")
    threads.tag("trip-to-lisbon", "travel", "recorded")
    threads.tag(WAITING, "vip")
    threads.archive("old-order")
    memories = ConversationMemories(saver)
    memories.put("trip-to-lisbon", _MEMORY, messages=["trip-1", "trip-5"])
    facts = Facts(memories.store)
    facts.remember(
        "Pays at most €140 a night",
        subject="hotel budget",
        sources=[FactSource("trip-to-lisbon", "trip-1")],
    )
    facts.remember(
        "Travels to Lisbon from 1 May 2026",
        subject="next trip",
        sources=[FactSource("trip-to-lisbon", "trip-5")],
    )
    threads.fork("cancelled", to="cancelled-copy")
    return saver, graph


def _branch(graph: Pregel[Any, Any, Any, Any], thread_id: str) -> None:
    """Go back to the question whether to cancel, and have it answered otherwise: a branch."""
    config: Any = {"configurable": {"thread_id": thread_id}}
    asked = [
        state
        for state in graph.get_state_history(config)
        if state.values.get("waiting_for_param") == "confirmation"
    ]
    if asked:
        graph.update_state(asked[-1].config, None, as_node=COPY)
        for text in ("", "yes"):
            converse(graph, text, thread_id=thread_id)


def _trip() -> list[BaseMessage]:
    """A written conversation with Markdown, an image, tool calls and token usage."""
    search = {
        "name": "find_hotels",
        "args": {"city": "Lisbon", "nights": 3, "max_price": 140},
        "id": "call-1",
        "type": "tool_call",
    }
    book = {
        "name": "book_hotel",
        "args": {"hotel": "Casa do Jardim", "from": "2026-05-01", "nights": 3},
        "id": "call-2",
        "type": "tool_call",
    }
    picture = {"type": "image", "base64": _sunset(), "mime_type": "image/png"}
    return [
        HumanMessage(
            [
                {
                    "type": "text",
                    "text": (
                        "Three nights in Lisbon in May, **under €140** a night. It should feel like"
                        " this:"
                    ),
                },
                picture,
            ],
            id="trip-1",
        ),
        AIMessage("", id="trip-2", tool_calls=[search], **_used(412, 38)),
        ToolMessage(
            '[{"hotel": "Casa do Jardim", "price": 118, "rating": 9.1}, {"hotel": "Vista Alta",'
            ' "price": 134, "rating": 8.7}]',
            tool_call_id="call-1",
            name="find_hotels",
            id="trip-3",
        ),
        AIMessage(_OFFER, id="trip-4", **_used(538, 167)),
        HumanMessage("The first one. From the 1st.", id="trip-5"),
        AIMessage("", id="trip-6", tool_calls=[book], **_used(731, 44)),
        ToolMessage(
            "No rooms are left on 2026-05-01",
            tool_call_id="call-2",
            name="book_hotel",
            id="trip-7",
            status="error",
        ),
        AIMessage(
            "The garden house is full on the 1st. It has rooms **from the 2nd**, or I can take"
            " *Vista Alta* for the 1st.",
            id="trip-8",
            **_used(802, 52),
        ),
    ]


_OFFER: Final = """Two fit:

| hotel | a night | rating |
|---|---|---|
| **Casa do Jardim** | €118 | 9.1 |
| Vista Alta | €134 | 8.7 |

1. *Casa do Jardim* has a quiet garden in Graça.
2. *Vista Alta* has the view at sunset.

Which one shall I book, and from which day?"""


_MEMORY: Final = {
    "main_topics": ["three nights in Lisbon in May", "a hotel under €140"],
    "action": ["offer the garden house from the 2nd"],
    "typical_observation": "Decides quickly, and shows a picture rather than describing it.",
}
"""What a model would write of it."""


def _used(prompt: int, completion: int) -> dict[str, Any]:
    return {
        "usage_metadata": {
            "input_tokens": prompt,
            "output_tokens": completion,
            "total_tokens": prompt + completion,
        },
        "response_metadata": {"model_name": "example-model"},
    }


def _sunset(width: int = 320, height: int = 180) -> str:
    """A sky at sunset over water, as PNG: drawn here, so that nothing is fetched."""
    rows = []
    for y in range(height):
        part = y / height
        sky = (
            (250 - 70 * part, 150 + 60 * part, 90 + 110 * part)
            if part < 0.62
            else (60 + 90 * (1 - part), 100, 130)
        )
        row = bytearray()
        for x in range(width):
            sun = (x - 226) ** 2 + (y - 92) ** 2 < 26**2 and part < 0.62
            row += bytes(int(channel) for channel in ((255, 226, 160) if sun else sky))
        rows.append(b"\0" + bytes(row))
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"".join(rows), 9)), (b"IEND", b""))
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in chunks
    )
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + body).decode()
