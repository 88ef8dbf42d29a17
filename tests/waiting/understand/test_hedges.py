"""Nothing is done unseen for a request that a message names and does not plainly ask for.

Its tools run without a confirmation.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool

from langmem_ext import DeltaSaver, IntentCatalog, Param, build_waiting_graph, converse
from langmem_ext.waiting.catalog.param import ParamType, label

WEDNESDAY = datetime(2026, 3, 4, 10, 15)

HALL = IntentCatalog.from_dict(
    {
        "intents": [
            {
                "id": "drop_booking",
                "description": "Give back a booking",
                "examples": ["please cancel booking MS100", "I want to cancel", "drop my booking"],
                "required": ["booking"],
                "tool": "drop_booking",
            },
            {
                "id": "order",
                "description": "Order material",
                "examples": ["order 3 sheets of plywood", "I need plywood", "can I get acrylic"],
                "required": ["material", "quantity"],
                "tool": "order",
            },
        ],
        "params": {
            "booking": {"type": "identifier", "pattern": r"MS\d{3}", "prompt": "Which booking?"},
            "material": {"type": "enum", "enum": ["plywood", "acrylic"], "prompt": "Which?"},
            "quantity": {
                "type": "integer",
                "description": "number of sheets",
                "prompt": "How many?",
            },
        },
    }
)


def calls_after(*messages: str) -> list[tuple[str, dict[str, Any]]]:
    """The calls that messages make."""
    calls: list[tuple[str, dict[str, Any]]] = []
    with DeltaSaver.open(":memory:") as saver:
        graph = build_waiting_graph(HALL, tools(calls)).compile(checkpointer=saver)
        for message in messages:
            converse(graph, message, thread_id="t", now=WEDNESDAY)
    return calls


def tools(calls: list[tuple[str, dict[str, Any]]]) -> Sequence[BaseTool]:
    @tool
    def drop_booking(booking: str) -> str:
        """Give back a booking."""
        calls.append(("drop_booking", {"booking": booking}))
        return "Given back."

    @tool
    def order(material: str, quantity: int) -> str:
        """Order material."""
        calls.append(("order", {"material": material, "quantity": quantity}))
        return "Ordered."

    return [drop_booking, order]


@pytest.mark.parametrize(
    "text",
    [
        "please don't cancel booking MS204, I do need it",
        "I don't need 5 sheets of plywood any more",
        "no need to order 5 sheets of plywood, I found some",
        "I want to order acrylic, 4 sheets, but not yet, next week",
        "Why did you cancel my booking MS555? I wanted to keep it!",
        "can I cancel MS204 without a fee?",
        "If it rains on Saturday I won't need MS120, otherwise I'll come",
        "how much would 3 sheets of plywood be?",
        "My friend ordered 10 sheets of plywood yesterday, did they arrive?",
    ],
)
def test_nothing_is_done_unseen_for_what_a_message_only_speaks_of(text: str) -> None:
    assert calls_after(text) == []


def test_nothing_is_done_unseen_while_another_question_waits() -> None:
    assert calls_after("I need acrylic", "please don't cancel booking MS204") == []


@pytest.mark.parametrize(
    ("text", "call"),
    [
        ("please cancel booking MS204", ("drop_booking", {"booking": "MS204"})),
        ("can I cancel MS204 please?", ("drop_booking", {"booking": "MS204"})),
        ("I keep MS301. Cancel MS302", ("drop_booking", {"booking": "MS302"})),
        ("5 sheets of plywood if possible", ("order", {"material": "plywood", "quantity": 5})),
    ],
)
def test_what_is_plainly_asked_for_is_done(text: str, call: tuple[str, dict[str, Any]]) -> None:
    assert calls_after(text) == [call]


def test_an_allowed_value_is_shown_as_it_is_written() -> None:
    printer = Param(name="item", type=ParamType.ENUM, enum={"3D printer": [], "band_saw": []})
    assert [label(printer, value) for value in printer.enum] == ["3D printer", "band saw"]
