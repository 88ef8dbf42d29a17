"""Where no word of the catalog decides, embeddings of the application's find what is meant."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.graph.state import CompiledStateGraph

from langmem_ext import (
    DeltaSaver,
    EmbeddingClassifier,
    IntentCatalog,
    aconverse,
    build_waiting_graph,
    converse,
)

NOW = datetime(2026, 3, 4, 10, 15)
CATALOG = IntentCatalog.from_dict(
    {
        "intents": [
            {
                "id": "pause",
                "description": "Suspend the delivery",
                "examples": ["stop the paper while we are away"],
                "required": ["number"],
                "reply": "{number} is paused.",
            },
            {
                "id": "advert",
                "description": "Place an advertisement",
                "examples": ["advertise something for sale"],
                "required": ["number"],
                "reply": "Noted.",
            },
        ],
        "params": {
            "number": {"type": "identifier", "pattern": r"S\d{6}", "prompt": "Which number?"},
            "card": {
                "type": "identifier",
                "pattern": r"C\d{4}",
                "prompt": "?",
                "sensitive": True,
            },
        },
        "replies": {"unknown": "I can help with papers."},
    }
)
MEANINGS = (
    ("suspend", "stop", "away", "tenerife", "beach"),
    ("place", "advertis", "sale", "pram", "kittens"),
)
"""Parts of words of two meanings: what stands for a model of language here."""


class ByMeaning(Embeddings):
    """Vectors of which each place counts the words of one meaning."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.fails = False

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        if self.fails:
            raise ConnectionError("no such host")
        self.seen.append(text)
        return [float(sum(part in text.lower() for part in parts)) for parts in MEANINGS]


class Desk:
    """A graph with embeddings, and a thread on it."""

    def __init__(self, graph: CompiledStateGraph[Any, Any, Any, Any], made: ByMeaning) -> None:
        self.graph, self.embeddings = graph, made

    def say(self, text: str) -> str:
        return converse(self.graph, text, thread_id="t", now=NOW).reply


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = ByMeaning()
    builder = build_waiting_graph(CATALOG, [], classifier=EmbeddingClassifier(made))
    with DeltaSaver.open(":memory:") as saver:
        yield Desk(builder.compile(checkpointer=saver), made)


def test_a_request_without_a_word_of_the_catalog_is_taken_up_with_its_values(desk: Desk) -> None:
    assert desk.say("tenerife, S330981") == "S330981 is paused."


async def test_it_is_so_on_an_event_loop(desk: Desk) -> None:
    turn = await aconverse(desk.graph, "kittens to give to good homes", thread_id="t", now=NOW)
    assert turn.reply == "Which number?"


def test_what_may_mean_two_requests_is_asked_about(desk: Desk) -> None:
    assert desk.say("pram on the beach") == (
        "Do you mean: suspend the delivery, or place an advertisement?"
    )


def test_what_means_none_of_them_is_not_understood(desk: Desk) -> None:
    assert desk.say("hocus pocus") == "I can help with papers."


def test_what_the_rules_recognise_is_not_embedded(desk: Desk) -> None:
    assert desk.say("stop the paper while we are away") == "Which number?"
    assert desk.embeddings.seen == []


def test_embeddings_that_fail_leave_it_to_the_rules(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    desk.embeddings.fails = True
    assert desk.say("tenerife, S330981").startswith("Do you mean: ")
    assert "ConnectionError" in caplog.text
    assert "tenerife" not in caplog.text


def test_vectors_of_another_length_leave_it_to_the_rules(
    desk: Desk, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    converse(desk.graph, "kittens", thread_id="before", now=NOW)
    monkeypatch.setattr(ByMeaning, "embed_query", lambda *_: [1.0])  # the provider's new model
    assert desk.say("tenerife, S330981").startswith("Do you mean: ")
    assert "ValueError" in caplog.text


def test_a_value_that_no_model_may_see_is_not_embedded(desk: Desk) -> None:
    desk.say("kittens, my card is C1234")
    assert "C1234" not in " ".join(desk.embeddings.seen)
    assert any("kittens" in text for text in desk.embeddings.seen)
