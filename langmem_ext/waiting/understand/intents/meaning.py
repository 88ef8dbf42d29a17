"""The reader that compares meanings where no word decides; the rules are its fallback."""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from langchain_core.embeddings import Embeddings

from langmem_ext.waiting.catalog.catalog import Intent, IntentCatalog
from langmem_ext.waiting.understand.intents.classifier import (
    OFFERED,
    Classification,
    Classifier,
    ClassifyRequest,
    RuleClassifier,
    find_params,
)
from langmem_ext.waiting.understand.intents.local import without_local

AHEAD_BY: Final = 0.08
"""How much more like the message an intent must be than the next to be taken for what it asks; of
those that are nearer the user is asked which one is meant."""

LEAST_ALIKE: Final = 0.3
"""How like an intent (a cosine) the message must be at least."""

logger = logging.getLogger(__name__)

_Vectors = Sequence[tuple[str, Sequence[float]]]


class EmbeddingClassifier:
    """Classifies by the rules and, where no request is recognised, by embeddings.

    The message is compared with the descriptions and examples of the intents. Embeddings that fail
    change nothing: the rules' answer counts, and a warning is logged that holds no words of the
    conversation. Values that no model may see are masked first. While a question waits, the rules
    alone decide.
    """

    def __init__(self, embeddings: Embeddings, rules: Classifier | None = None) -> None:
        """Make a classifier.

        Args:
            embeddings: What makes vectors of texts.
            rules: What decides first; a `RuleClassifier` if None.
        """
        self.embeddings = embeddings
        self.rules = rules or RuleClassifier()
        self._known: tuple[IntentCatalog, _Vectors] | None = None

    def classify(self, request: ClassifyRequest) -> Classification:
        """What the message asks for; without an intent when neither is certain."""
        ruled = self.rules.classify(request)
        if not _left_open(ruled, request):
            return ruled
        try:
            known = self._kept(request.catalog)
            if known is None:
                texts = _texts(request.catalog)
                vectors = self.embeddings.embed_documents([text for _, text in texts])
                known = self._keep(request.catalog, texts, vectors)
            query = self.embeddings.embed_query(without_local(request.text, request))
            likeness = _likeness(request, known, query)
        # any provider's own errors: embeddings that fail are no reason to fail the conversation
        except Exception as exc:
            return _without_embeddings(ruled, exc)
        return _nearest(ruled, request, likeness)

    async def aclassify(self, request: ClassifyRequest) -> Classification:
        """Async twin of `classify`."""
        ruled = await self.rules.aclassify(request)
        if not _left_open(ruled, request):
            return ruled
        try:
            known = self._kept(request.catalog)
            if known is None:
                texts = _texts(request.catalog)
                vectors = await self.embeddings.aembed_documents([text for _, text in texts])
                known = self._keep(request.catalog, texts, vectors)
            query = await self.embeddings.aembed_query(without_local(request.text, request))
            likeness = _likeness(request, known, query)
        except Exception as exc:  # as above
            return _without_embeddings(ruled, exc)
        return _nearest(ruled, request, likeness)

    def _kept(self, catalog: IntentCatalog) -> _Vectors | None:
        """The vectors of a catalog's texts; None if they are still to be made."""
        return self._known[1] if self._known and self._known[0] is catalog else None

    def _keep(
        self,
        catalog: IntentCatalog,
        texts: Sequence[tuple[str, str]],
        vectors: Sequence[Sequence[float]],
    ) -> _Vectors:
        known = [(name, vector) for (name, _), vector in zip(texts, vectors, strict=True)]
        self._known = (catalog, known)
        return known


def _left_open(ruled: Classification, request: ClassifyRequest) -> bool:
    return ruled.intent_id is None and request.waiting_for is None and bool(request.text.strip())


def _without_embeddings(ruled: Classification, exc: Exception) -> Classification:
    logger.warning("the classifier's embeddings failed with %s", type(exc).__name__)
    return ruled


def _texts(catalog: IntentCatalog) -> list[tuple[str, str]]:
    """The texts that say what an intent is, each with its id."""
    return [(intent.id, text) for intent in catalog.intents for text in _sayings(intent)]


def _sayings(intent: Intent) -> list[str]:
    return [text for text in (intent.description, *intent.examples) if text.strip()]


def _likeness(
    request: ClassifyRequest, known: _Vectors, query: Sequence[float]
) -> dict[str, float]:
    """How like the message each intent is, by that of its texts which is nearest.

    Raises:
        ValueError: The vectors are not of one length.
    """
    likeness: dict[str, float] = {}
    for name, vector in known:
        if not request.among or name in request.among:
            likeness[name] = max(likeness.get(name, -1.0), _cosine(vector, query))
    return likeness


def _nearest(
    ruled: Classification, request: ClassifyRequest, likeness: Mapping[str, float]
) -> Classification:
    """The intent whose texts are nearest to the message; those to choose from, if it is close."""
    best = sorted(likeness.items(), key=lambda intent: -intent[1])
    if not best or best[0][1] < LEAST_ALIKE:
        return ruled
    near = [name for name, alike in best if best[0][1] - alike < AHEAD_BY]
    intent = request.catalog.intent(near[0])
    asks_first = not intent.tool or request.catalog.confirm_question(intent) is not None
    if len(near) > 1 or not (asks_first or request.among):
        return replace(
            ruled, choices=tuple(name for name, _ in best[: max(2, len(near))][:OFFERED])
        )
    return Classification(
        intent.id, find_params(intent, request), best[0][1], "model", "its meaning is nearest"
    )


def _cosine(first: Sequence[float], second: Sequence[float]) -> float:
    length = math.hypot(*first) * math.hypot(*second)
    return sum(a * b for a, b in zip(first, second, strict=True)) / length if length else 0.0
