"""Where no value is given: what a catalog says for it; and what a long message costs.

What people say, and what follows, is in `tests/cases/conversations`.
"""

from __future__ import annotations

from pathlib import Path
from time import thread_time
from typing import Any

import museum
import pytest
import yaml
from cpu_time import LITTLE
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from langmem_ext import IntentCatalog, build_waiting_graph, converse

CASES = yaml.safe_load(Path(__file__).with_name("understanding.yaml").read_text("utf-8"))


def trip(**more: Any) -> Any:
    """A user who is asked where from, for a trip whose tool needs the place, or can do without."""

    @tool
    def book_trip(to: str, pickup: str = "") -> str:
        """Book a trip."""
        return f"to {to} from {pickup or 'the station'}"

    params = CASES["catalog"]["params"]
    params = {**params, "pickup": {**params["pickup"], **more}}
    catalog = IntentCatalog.from_dict({**CASES["catalog"], "params": params})
    graph = build_waiting_graph(catalog, [book_trip]).compile(checkpointer=InMemorySaver())
    converse(graph, "book a trip", thread_id="t")
    assert converse(graph, "Rome", thread_id="t").reply == "Where from?"
    return lambda text: converse(graph, text, thread_id="t").reply


@pytest.mark.parametrize(("declared", "text", "reply"), CASES["declared"])
def test_without_a_value_the_catalog_says_what_follows(
    declared: dict[str, Any], text: str, reply: str
) -> None:
    assert trip(**declared)(text).startswith(reply)


@pytest.mark.parametrize("before", [(), ("book a visit",)], ids=["at rest", "asked"])
def test_a_long_message_costs_little_whatever_it_says(before: tuple[str, ...]) -> None:
    for unit in CASES["dense"]:
        text = (unit * 10_000)[:10_000]
        graph = museum.build().compile(checkpointer=InMemorySaver())
        for said in before:
            converse(graph, said, thread_id="t", now=museum.NOW)
        began = thread_time()
        converse(graph, text, thread_id="t", now=museum.NOW)
        assert thread_time() - began < LITTLE, repr(unit)
