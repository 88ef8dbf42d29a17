"""Promise: a message costs time in proportion to its length, whatever it says and answers."""

from __future__ import annotations

from itertools import count
from time import process_time
from typing import Any

import pytest
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from langmem_ext import IntentCatalog, build_waiting_graph, converse

CATALOG = IntentCatalog.from_dict(
    {
        "intents": {
            "pay": {
                "patterns": [r"\bpay\b"],
                "required": ["amount", "recipient", "reason", "wording"],
                "tool": "pay",
                "confirm": "Pay {amount} to {recipient}?",
            }
        },
        "params": {
            "amount": {"type": "money", "prompt": "How much?"},
            "recipient": {"type": "text", "prompt": "To whom?"},
            "reason": {"type": "text", "prompt": "What is the problem?"},
            "wording": {"type": "text", "prompt": "What should the card say?"},
        },
    }
)
BEFORE = {
    "at rest": ["hello"],
    "a name for a thing": ["pay", "50"],
    "a story": ["pay", "50", "Ann"],
    "words to write": ["pay", "50", "Ann", "the boiler leaks"],
    "a confirmation": ["pay", "50", "Ann", "the boiler leaks", "get well soon"],
}
UNITS = [
    "Mr. ", "U.S. ", "a. ", "a\n", "no, ", "because ", "what is it? ", "not 7, 8. ",
    "12 High Street, ",
]  # fmt: skip
THREADS = count()


@tool
def pay(amount: float, recipient: str, reason: str, wording: str) -> str:
    """Pay."""
    return "paid"


@pytest.fixture(scope="module")
def graph() -> Any:
    return build_waiting_graph(CATALOG, [pay]).compile(checkpointer=InMemorySaver())


def cost(graph: Any, before: list[str], text: str) -> float:
    """The least CPU time of three turns with this message."""

    def once() -> float:
        thread = str(next(THREADS))
        for said in before:
            converse(graph, said, thread_id=thread)
        began = process_time()
        converse(graph, text, thread_id=thread)
        return process_time() - began

    return min(once() for _ in range(3))


@pytest.mark.parametrize("meets", BEFORE)
def test_four_times_the_length_never_costs_many_times_the_time(graph: Any, meets: str) -> None:
    for unit in UNITS:
        short, long = (
            cost(graph, BEFORE[meets], (unit * length)[:length]) for length in (4_000, 16_000)
        )
        assert long < 8 * short, f"{unit!r}: {long:.3f} s after {short:.3f} s"


def test_a_value_that_is_to_be_hidden_may_be_said_any_number_of_times() -> None:
    params = {
        "site": {"type": "url", "prompt": "Which site?", "sensitive": True},
        "pin": {"type": "identifier", "pattern": r"\\d{6}", "prompt": "PIN?", "sensitive": True},
    }
    intent = {"patterns": ["visit"], "required": ["site", "pin"], "reply": "Seen {site} {pin}."}
    catalog = IntentCatalog.from_dict({"intents": {"visit": intent}, "params": params})
    graph = build_waiting_graph(catalog, []).compile(checkpointer=InMemorySaver())
    for unit in ("www.", "123456.", "1234567.", "a.123456"):
        before = ["visit", "https://example.org", "123456"]
        short, long = (
            cost(graph, before, "hello " + (unit * length)[:length] + "?")
            for length in (4_000, 16_000)
        )
        assert long < 8 * short, f"{unit!r}: {long:.3f} s after {short:.3f} s"


@pytest.mark.parametrize("length", [900, 5_000, 50_000])
def test_a_free_text_is_taken_whole_however_long_it_is(graph: Any, length: int) -> None:
    story = ("The boiler leaks again, and the kitchen is under water. " * 1_000)[:length].strip()
    for said in ("pay", "50", "Ann", story):
        converse(graph, said, thread_id=f"story {length}")
    state = graph.get_state({"configurable": {"thread_id": f"story {length}"}}).values
    assert state["params"]["reason"].rstrip(".") == story.rstrip(".")
