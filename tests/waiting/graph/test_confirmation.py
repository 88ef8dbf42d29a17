"""A confirmation that a model reads, too, and one of values that nobody has seen.

What messages do while a confirmation waits is in `tests/cases/conversations/confirmation.yaml`.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from graphs.shop import TOOLS
from graphs.support import catalog as order_desk_catalog
from graphs.support import make_graph
from langmem_ext import (
    Classification,
    ClassifyRequest,
    RuleClassifier,
    Turn,
    aconverse,
    build_waiting_graph,
    converse,
)

CANCEL = "Shall I cancel order {}? This cannot be undone."
Calls = list[tuple[str, dict[str, Any]]]


class Desk:
    """A thread of a graph, and what its tools were called with."""

    config: Any = {"configurable": {"thread_id": "t"}}

    def __init__(self, graph: Any, *said: str) -> None:
        self.graph = graph
        self.last: Turn = Turn(reply="")
        for text in said:
            self.say(text)
        self._before = len(self._calls())

    def say(self, text: str) -> Turn:
        self.last = converse(self.graph, text, thread_id="t")
        return self.last

    @property
    def ran(self) -> Calls:
        """The calls since the thread was set up."""
        return self._calls()[self._before :]

    @property
    def state(self) -> dict[str, Any]:
        return dict(self.graph.get_state(self.config).values)

    @property
    def asked(self) -> str:
        """What waits for an answer; empty at rest."""
        return self.last.interrupts[0].value["prompt"] if self.last.interrupts else ""

    def _calls(self) -> Calls:
        messages = self.state.get("messages", [])
        return [
            (call["name"], call["args"])
            for message in messages
            if message.type == "ai"
            for call in message.tool_calls
        ]


@pytest.fixture
def orders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The graph of the order desk."""
    monkeypatch.setenv("LANGMEM_EXT_SHOP_DB", str(tmp_path / "shop.db"))
    return make_graph(InMemorySaver())


@pytest.fixture
def confirming(orders: Any) -> Desk:
    """A user who is asked whether order O-778 shall be cancelled."""
    desk = Desk(orders, "cancel O-778")
    assert desk.asked == CANCEL.format("O-778")
    return desk


# -- a classifier of another kind ------------------------------------------------------------------


class Claiming:
    """Stands in for a model that sees the same intent, and values for it, in everything that the
    rules leave open.
    """

    def __init__(self, intent_id: str, **params: Any) -> None:
        self.claim = Classification(intent_id, params, 0.8, "model")
        self.asked: list[str] = []

    def classify(self, request: ClassifyRequest) -> Classification:
        ruled = RuleClassifier().classify(request)
        if ruled.intent_id:
            return ruled
        self.asked.append(request.text)
        return replace(self.claim)

    async def aclassify(self, request: ClassifyRequest) -> Classification:
        return self.classify(request)


def claimed(classifier: Claiming) -> Desk:
    graph = build_waiting_graph(order_desk_catalog, TOOLS, classifier=classifier)
    return Desk(graph.compile(checkpointer=InMemorySaver()), "cancel O-778")


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(
    ("text", "ran"),
    [
        ("yes", [("cancel_order", {"order_id": "O-778"})]),
        ("no", []),
        ("forget it", []),
        ("no, O-779", []),
    ],
)
def test_an_answer_to_a_confirmation_is_not_left_to_a_model(text: str, ran: Calls) -> None:
    classifier = Claiming("talk_to_human")
    desk = claimed(classifier)
    desk.say(text)
    assert (desk.ran, classifier.asked) == (ran, [])


@pytest.mark.usefixtures("orders")
@pytest.mark.parametrize(
    "text",
    [
        "my neighbour has O-12345",
        "is O-12345 there?",
        "hmm",
        "forget O-12345",
        "yes, unless it was sent",
    ],
)
def test_a_model_neither_confirms_a_request_nor_changes_its_values(text: str) -> None:
    desk = claimed(Claiming("cancel_order", order_id="O-12345"))
    desk.say(text)
    assert (desk.ran, desk.state["params"]) == ([], {"order_id": "O-778"})
    assert desk.asked.startswith(CANCEL.format("O-778"))


@pytest.mark.usefixtures("orders")
def test_what_a_model_takes_for_another_request_is_served_and_the_same_is_asked_again() -> None:
    desk = claimed(Claiming("check_order", order_id="O-12346"))
    desk.say("anything new about O-12346")
    assert desk.ran == [("check_order", {"order_id": "O-12346"})]
    assert desk.asked == CANCEL.format("O-778")


# -- a confirmation that nobody has seen -----------------------------------------------------------


def test_a_yes_is_not_for_values_that_were_edited_in_after_the_question(confirming: Desk) -> None:
    confirming.graph.update_state(confirming.config, {"params": {"order_id": "O-12345"}})
    confirming.say("yes")
    assert (confirming.ran, confirming.asked) == ([], CANCEL.format("O-12345"))
    confirming.graph.update_state(confirming.config, {"params": {"order_id": "O-778"}})
    turn = asyncio.run(aconverse(confirming.graph, "yes", thread_id="t"))
    assert confirming.ran == []
    assert turn.reply.endswith(CANCEL.format("O-778"))
    confirming.graph.update_state(confirming.config, {"params": {"order_id": "O-12345"}})
    confirming.graph.invoke(Command(resume="yes"), confirming.config)
    assert confirming.ran == []
    confirming.graph.update_state(confirming.config, {"params": {"order_id": "O-778"}})
    confirming.say("yes")
    assert confirming.ran == []
    confirming.graph.invoke(Command(resume=True), confirming.config)
    assert confirming.ran == [("cancel_order", {"order_id": "O-778"})]


def test_a_thread_that_does_not_say_what_was_asked_asks_again(confirming: Desk) -> None:
    """As a thread does that an older version has stored."""
    plan = {name: value for name, value in confirming.state["plan"].items() if name != "asked"}
    confirming.graph.update_state(confirming.config, {"plan": plan})
    confirming.say("yes")
    assert (confirming.ran, confirming.asked) == ([], CANCEL.format("O-778"))
    confirming.say("yes")
    assert confirming.ran == [("cancel_order", {"order_id": "O-778"})]
