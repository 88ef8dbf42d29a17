"""Where no word of the catalog decides, embeddings of the application's find what is meant."""

from __future__ import annotations

from datetime import datetime

import pytest
from catalogs import catalog_named
from langchain_core.embeddings import Embeddings
from langgraph.checkpoint.memory import InMemorySaver

from langmem_ext import EmbeddingClassifier, aconverse, build_waiting_graph, converse

NOW = datetime(2026, 3, 4, 10, 15)
CATALOG = catalog_named("newspaper")
MEANINGS = (
    ("suspend", "stop", "away", "tenerife", "beach"),
    ("place", "advertis", "sale", "pram", "kittens"),
)
"""Parts of words of two meanings: what stands for a model of language here."""


class ByMeaning(Embeddings):
    """Vectors of which each place counts the words of one meaning; it may fail."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.seen: list[str] = []
        self.failure = failure

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        if self.failure:
            raise self.failure
        self.seen.append(text)
        return [float(sum(part in text.lower() for part in parts)) for parts in MEANINGS]


async def replies(text: str, embeddings: Embeddings) -> tuple[str, str]:
    """What is replied to a first message, sync and async."""
    builder = build_waiting_graph(CATALOG, [], classifier=EmbeddingClassifier(embeddings))
    graph = builder.compile(checkpointer=InMemorySaver())
    turn = await aconverse(graph, text, thread_id="async", now=NOW)
    return converse(graph, text, thread_id="sync", now=NOW).reply, turn.reply


@pytest.mark.parametrize(
    ("text", "reply"),
    [
        ("tenerife, S330981", "S330981 is paused."),
        ("kittens to give to good homes", "Which number?"),
        ("pram on the beach", "Do you mean: suspend the delivery, or place an advertisement?"),
        ("hocus pocus", "I can help with papers."),
    ],
)
async def test_what_is_meant_is_taken_up_or_asked_about(text: str, reply: str) -> None:
    assert await replies(text, ByMeaning()) == (reply, reply)


async def test_neither_what_the_rules_recognise_nor_what_must_be_hidden_is_embedded() -> None:
    embeddings = ByMeaning()
    assert (await replies("stop the paper while we are away", embeddings))[0] == "Which number?"
    assert embeddings.seen == []
    await replies("kittens, my card is C1234", embeddings)
    assert any("kittens" in text for text in embeddings.seen)
    assert "C1234" not in " ".join(embeddings.seen)


async def test_embeddings_that_fail_leave_it_to_the_rules(caplog: pytest.LogCaptureFixture) -> None:
    failing = ByMeaning(ConnectionError("no such host"))
    for reply in await replies("tenerife, S330981", failing):
        assert reply.startswith("Do you mean: ")
    assert "ConnectionError" in caplog.text
    assert "tenerife" not in caplog.text
