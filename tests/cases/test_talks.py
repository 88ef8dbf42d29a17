"""Whole conversations with ten desks end with the calls that their users wanted.

A file of `talks/` holds a desk's catalog, its tools with what they return, and what was said there:
`calls` are the calls of the tools after the last message, in their order.
"""

from __future__ import annotations

from datetime import datetime

import pytest
from talk_desks import TALKS, Calls, desk_named, tools_of

from langmem_ext import DeltaSaver, IntentCatalog, build_waiting_graph, converse

NOW = datetime(2026, 3, 4, 10, 15)
"""A Wednesday: when all of it was said."""


@pytest.mark.parametrize("name", sorted(path.stem for path in TALKS.glob("*.yaml")))
def test_conversations_end_with_the_calls_that_their_users_wanted(name: str) -> None:
    desk = desk_named(name)
    calls: Calls = []
    builder = build_waiting_graph(IntentCatalog.from_dict(desk["catalog"]), tools_of(desk, calls))
    ended: dict[str, Calls] = {}
    with DeltaSaver.open(":memory:") as saver:
        graph = builder.compile(checkpointer=saver)
        for talk in desk["talks"]:
            calls.clear()
            for text in talk["says"]:
                converse(graph, text, thread_id=talk["title"], now=NOW)
            ended[talk["title"]] = list(calls)
    assert ended == {talk["title"]: talk["calls"] for talk in desk["talks"]}
