"""What a classifier of the application's holds for possible is read back before it is done, and
half of a value that must not be shown is not kept.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

from langchain_core.tools import BaseTool, tool

from langmem_ext import (
    Classification,
    ClassifyRequest,
    DeltaSaver,
    IntentCatalog,
    build_waiting_graph,
    converse,
)

NOW = datetime(2026, 3, 4, 10, 15)


def talk(catalog: dict[str, Any], tools: list[BaseTool], *texts: str, **more: Any) -> Any:
    """The last reply, and the state then."""
    builder = build_waiting_graph(IntentCatalog.from_dict(catalog), tools, **more)
    with DeltaSaver.open(":memory:") as saver:
        graph = builder.compile(checkpointer=saver)
        turns = [converse(graph, text, thread_id="t", now=NOW) for text in texts]
        return turns[-1].reply, graph.get_state({"configurable": {"thread_id": "t"}}).values


class OneGuess:
    """A classifier that is sure of nothing, and takes the first request for a possible one."""

    def classify(self, request: ClassifyRequest) -> Classification:
        """One choice."""
        return Classification(confidence=0.2, choices=[request.catalog.intents[0].id])

    async def aclassify(self, request: ClassifyRequest) -> Classification:
        """Async twin of `classify`."""
        return self.classify(request)


def test_it_is_read_back_unless_the_user_answers_one_of_its_questions() -> None:
    @tool
    def hire_skip(size: str, day: date) -> str:
        """Hire a skip."""
        return f"{size} {day}"

    skip = {"id": "hire_skip", "description": "Hire a skip", "required": ["size", "day"]}
    params = {"size": {"enum": ["mini", "large"]}, "day": {"type": "date", "prompt": "Which day?"}}
    catalog = {"intents": [{**skip, "tool": "hire_skip", "reply": "Ordered."}], "params": params}
    whole = "rubble everywhere, mini, 6 march"
    for texts, reply in (
        ([whole], "Hire a skip (size mini, day 2026-03-06). Is that right?"),
        ([whole, "yes"], "Ordered."),
        (["rubble everywhere, mini", "6 march"], "Ordered."),
    ):
        assert talk(catalog, [hire_skip], *texts, classifier=OneGuess())[0] == reply


def test_nothing_of_a_sensitive_moment_is_kept_before_it_is_whole() -> None:
    visit = {"id": "visit", "examples": ["tune my piano"], "required": ["visit", "address"]}
    moment = {"type": "datetime", "prompt": "When?", "future": True, "sensitive": True}
    params = {"visit": moment, "address": {"type": "address", "prompt": "Where?"}}
    _, values = talk({"intents": [visit], "params": params}, [], "tune my piano", "friday")
    assert "2026-03-06" not in str(values["plan"])
