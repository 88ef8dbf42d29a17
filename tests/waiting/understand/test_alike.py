"""Several requests in a message are all kept: the first is served, the others wait."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from langchain_core.tools import BaseTool, tool

from langmem_ext import DeltaSaver, IntentCatalog, build_waiting_graph, converse
from langmem_ext.waiting.understand.intents.alike import one_by_one
from langmem_ext.waiting.understand.values import Reading

WEDNESDAY = datetime(2026, 3, 4, 10, 15)

SHOP = IntentCatalog.from_dict(
    {
        "intents": [
            {
                "id": "order",
                "description": "Order bread",
                "examples": ["I want to order bread", "two loaves please", "rolls for tomorrow"],
                "required": ["quantity", "bread", "day"],
                "tool": "order",
            },
            {
                "id": "cancel",
                "description": "Cancel an order",
                "examples": ["cancel my order", "I don't need the order any more"],
                "required": ["number"],
                "tool": "cancel",
                "confirm": "Cancel {number}?",
            },
            {
                "id": "stay",
                "description": "Book a room",
                "examples": ["book a room", "I need a room for two nights"],
                "required": ["arrival", "departure", "guests", "room"],
                "tool": "stay",
            },
        ],
        "params": {
            "quantity": {"type": "integer", "description": "how many", "prompt": "How many?"},
            "bread": {"type": "enum", "enum": ["rye", "rolls", "baguettes"], "prompt": "Which?"},
            "day": {"type": "date", "description": "day of collection", "prompt": "When?"},
            "number": {"type": "identifier", "pattern": r"CK-\d{3}", "prompt": "Which order?"},
            "arrival": {"type": "date", "description": "day of arrival", "prompt": "From when?"},
            "departure": {"type": "date", "description": "last day", "prompt": "Until when?"},
            "guests": {"type": "integer", "description": "number of guests", "prompt": "Guests?"},
            "room": {"type": "enum", "enum": ["single", "double"], "prompt": "Which room?"},
        },
    }
)


def texts_of(intent_id: str, text: str) -> list[str]:
    """The words of each request that a message makes."""
    params = [SHOP.params[name] for name in SHOP.intent(intent_id).param_names]
    return [" ".join(part.split()) for part in one_by_one(params, Reading(text, now=WEDNESDAY))]


@pytest.mark.parametrize(
    ("intent", "text", "parts"),
    [
        (
            "order",
            "12 rolls and 3 rye for friday please",
            ["12 rolls for friday please", "3 rye for friday please"],
        ),
        (
            "order",
            "hello, for friday: 12 rolls, 3 rye and 2 baguettes. Thanks!",
            [
                "hello, for friday: 12 rolls . Thanks!",
                "hello, for friday: 3 rye . Thanks!",
                "hello, for friday: 2 baguettes. Thanks!",
            ],
        ),
        (
            "cancel",
            "please cancel CK-305 and CK-306",
            ["please cancel CK-305", "please cancel CK-306"],
        ),
        (
            "stay",
            "a single for 1 and a double for 2 from monday to friday",
            ["a single for 1 from monday to friday", "a double for 2 from monday to friday"],
        ),
    ],
)
def test_each_request_has_its_own_values_and_what_all_share(
    intent: str, text: str, parts: list[str]
) -> None:
    assert texts_of(intent, text) == parts


@pytest.mark.parametrize(
    ("intent", "text"),
    [
        ("order", "12 rolls, no, 3 rye"),
        ("order", "12 rolls, so 3 rye"),
        ("order", "12 rolls for friday and nothing else"),
        ("order", "I ordered 12 rolls and got 3 rye"),
        ("cancel", "cancel CK-305, sorry, CK-306"),
        ("cancel", "cancel CK-305, my other order CK-306 stays"),
        ("stay", "a double for 2 from monday and back on friday"),
        ("stay", "a room for 2 adults and 1 child, a double"),
    ],
)
def test_one_request_stays_one(intent: str, text: str) -> None:
    assert len(texts_of(intent, text)) == 1


def test_the_second_of_two_orders_waits_for_the_first() -> None:
    calls: list[dict[str, Any]] = []
    with DeltaSaver.open(":memory:") as saver:
        graph = build_waiting_graph(SHOP, tools(calls)).compile(checkpointer=saver)
        say = ["12 rolls and 3 rye please", "friday", "on saturday"]
        turns = [converse(graph, text, thread_id="t", now=WEDNESDAY) for text in say]
    assert [turn.waiting_for for turn in turns] == ["day", "day", None]
    assert calls == [
        {"quantity": 12, "bread": "rolls", "day": "2026-03-06"},
        {"quantity": 3, "bread": "rye", "day": "2026-03-07"},
    ]


def test_each_of_two_cancellations_is_confirmed_by_itself() -> None:
    calls: list[dict[str, Any]] = []
    with DeltaSaver.open(":memory:") as saver:
        graph = build_waiting_graph(SHOP, tools(calls)).compile(checkpointer=saver)
        for text in ("cancel CK-305 and CK-306 please", "no", "no", "yes"):
            converse(graph, text, thread_id="t", now=WEDNESDAY)
    assert calls == [{"number": "CK-306"}]


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("first cancel CK-305 and CK-306 please", [{"number": "CK-305"}, {"number": "CK-306"}]),
        (
            "cancel CK-305 and also order 12 rolls for friday please",
            [{"number": "CK-305"}, {"quantity": 12, "bread": "rolls", "day": "2026-03-06"}],
        ),
    ],
)
def test_two_requests_are_kept_while_a_question_of_another_waits(
    text: str, called: list[dict[str, Any]]
) -> None:
    calls: list[dict[str, Any]] = []
    with DeltaSaver.open(":memory:") as saver:
        graph = build_waiting_graph(SHOP, tools(calls)).compile(checkpointer=saver)
        for said in ("book a room", text, "yes", "yes"):
            turn = converse(graph, said, thread_id="t", now=WEDNESDAY)
    assert calls == called
    assert turn.waiting_for == "arrival"


def test_a_wish_that_gives_no_value_is_kept_beside_one_that_does() -> None:
    calls: list[dict[str, Any]] = []
    wishes = "I want to order bread and cancel CK-305 please"
    with DeltaSaver.open(":memory:") as saver:
        graph = build_waiting_graph(SHOP, tools(calls)).compile(checkpointer=saver)
        for said in ("book a room", wishes, "12", "rye", "friday", "yes"):
            turn = converse(graph, said, thread_id="t", now=WEDNESDAY)
    assert calls == [{"quantity": 12, "bread": "rye", "day": "2026-03-06"}, {"number": "CK-305"}]
    assert turn.waiting_for == "arrival"


def tools(calls: list[dict[str, Any]]) -> list[BaseTool]:
    @tool
    def order(quantity: int, bread: str, day: str) -> str:
        """Order bread."""
        calls.append({"quantity": quantity, "bread": bread, "day": day})
        return "Ordered."

    @tool
    def cancel(number: str) -> str:
        """Cancel an order."""
        calls.append({"number": number})
        return "Cancelled."

    @tool
    def stay(arrival: str, departure: str, guests: int, room: str) -> str:
        """Book a room."""
        calls.append({"arrival": arrival, "departure": departure, "guests": guests, "room": room})
        return "Booked."

    return [order, cancel, stay]
