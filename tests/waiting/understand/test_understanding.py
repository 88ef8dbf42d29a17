"""Where no value is given: what a catalog says for it; and what a long message costs.

What people say, and what follows, is in `tests/cases/conversations`.
"""

from __future__ import annotations

from time import thread_time
from typing import Any

import museum
import pytest
from cpu_time import LITTLE
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from langmem_ext import IntentCatalog, build_waiting_graph, converse


def trip(**more: Any) -> Any:
    """A user who is asked where from, for a trip whose tool needs the place, or can do without."""

    @tool
    def book_trip(to: str, pickup: str = "") -> str:
        """Book a trip."""
        return f"to {to} from {pickup or 'the station'}"

    pickup = {
        "type": "enum",
        "description": "place to be picked up",
        "prompt": "Where from?",
        "enum": ["main_gate", "east_gate"],
        **more,
    }
    catalog = IntentCatalog.from_dict(
        {
            "intents": [
                {
                    "id": "trip",
                    "examples": ["book a trip"],
                    "required": ["to", "pickup"],
                    "tool": "book_trip",
                    "reply": "{result}, {pickup}",
                },
                {"id": "desk", "examples": ["talk to the desk"], "reply": "The desk calls you."},
            ],
            "params": {"to": {"type": "place", "prompt": "Where to?"}, "pickup": pickup},
            "escalate_to": "desk",
        }
    )
    graph = build_waiting_graph(catalog, [book_trip]).compile(checkpointer=InMemorySaver())
    converse(graph, "book a trip", thread_id="t")
    assert converse(graph, "Rome", thread_id="t").reply == "Where from?"
    return lambda text: converse(graph, text, thread_id="t").reply


@pytest.mark.parametrize(
    ("declared", "text", "reply"),
    [
        ({"default": "east_gate"}, "whatever suits you", "to Rome from east_gate, east gate"),
        (
            {"labels": {"main_gate": "the big gate"}},
            "main gate please",
            "to Rome from main_gate, the big gate",
        ),
        ({"on_declined": "skip"}, "I don't know", "to Rome from the station, (unknown)"),
        ({"on_declined": "cancel"}, "I don't know", "All right, I have stopped that."),
        ({"on_declined": "escalate"}, "I don't know", "The desk calls you."),
        (
            {"help": "The gate where the bus stops."},
            "what do you mean?",
            "The gate where the bus stops.\nWhere from?",
        ),
        (
            {"help": "The gate where the bus stops."},
            "I don't know",
            "The gate where the bus stops.\nWhere from?",
        ),
    ],
)
def test_without_a_value_the_catalog_says_what_follows(
    declared: dict[str, Any], text: str, reply: str
) -> None:
    assert trip(**declared)(text).startswith(reply)


DENSE = [
    "monday tuesday 3/4 ",
    "12/3, friday the 12th of march, ",
    "1 2 17 300 4.50 ",
    "seven twenty one hundred and three ",
    "Anna Bert Carl Dora, ",
    "half past 7 at 8:30 quarter to nine ",
    "no wait, not 7, 8, sorry I meant 9, ",
    "12 High Street, Leeds, 4 Mill Lane York ",
    "M-100 M-101 07700 900123 ",
    "a@b.co c.d@e.org ",
    "me and my wife and two kids and my mother, ",
    "don't cancel it, i don't want that, never ",
    "what is it? how much? can you book it? ",
    " ",
    "....",
    "{name} {{result.code}} ",
    "\u202eabc\u202c \x00\x07\x1b[31m",
]


@pytest.mark.parametrize("before", [(), ("book a visit",)], ids=["at rest", "asked"])
def test_a_long_message_costs_little_whatever_it_says(before: tuple[str, ...]) -> None:
    for unit in DENSE:
        text = (unit * 10_000)[:10_000]

        graph = museum.build().compile(checkpointer=InMemorySaver())
        for said in before:
            converse(graph, said, thread_id="t", now=museum.NOW)
        began = thread_time()
        converse(graph, text, thread_id="t", now=museum.NOW)
        assert thread_time() - began < LITTLE, repr(unit)
