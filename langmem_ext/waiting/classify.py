"""What a message asks for: the classifier's protocol, and the classifier that works by rules alone."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

from langchain_core.messages import BaseMessage
from pydantic import JsonValue

from langmem_ext.waiting.catalog import Intent, IntentCatalog
from langmem_ext.waiting.extract import find
from langmem_ext.waiting.likeness import LikenessIndex, without_refusals
from langmem_ext.waiting.signals import words_without_values

PATTERN = 0.9
"""Confidence in an intent whose pattern matches."""

CERTAIN = 0.62
"""Confidence from which an intent is taken for what the message asks for."""

CERTAIN_WHILE_WAITING = 0.8
"""The same while a question waits: an answer that is like an example is still an answer first."""

MARGIN = 0.08
"""How far an intent must be ahead of the next: closer ones are a tie, and a tie is not decided."""

LONGEST_READ = 4_000
"""Characters of a message that are read: what it asks for stands there, and patterns take long on more."""


@dataclass(frozen=True, slots=True)
class ClassifyRequest:
    """A user's message and what is known when it arrives.

    Attributes:
        text: The message.
        catalog: What users can ask for.
        history: The latest messages before it, oldest first; may be empty.
        params: Values known already, by parameter.
        waiting_for: The parameter that is being asked for.
        prompt: The question that is waiting; empty when none is.
        now: When the message was written.
        values: Where values stand in the message, as `[start, end)` offsets. Likeness to an
            intent's examples is judged without them; patterns see the whole message.
    """

    text: str
    catalog: IntentCatalog
    _: KW_ONLY
    history: Sequence[BaseMessage] = ()
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    waiting_for: str | None = None
    prompt: str = ""
    now: datetime
    values: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, slots=True)
class Classification:
    """What a message asks for.

    Attributes:
        intent_id: The intent; None when the classifier is not sure of one.
        params: Values of that intent's parameters that the message holds; none without an intent.
        confidence: 0 to 1.
        source: Who decided.
        reason: Why, in a few words, for tests and traces; never holds a value.
    """

    intent_id: str | None = None
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    confidence: float = 0.0
    source: Literal["rules", "model"] = "rules"
    reason: str = ""


@runtime_checkable
class Classifier(Protocol):
    """Decides which intent of the catalog a message asks for. Never raises on a message, whatever it says."""

    def classify(self, request: ClassifyRequest) -> Classification:
        """What the message asks for; without an intent when that is not certain."""
        ...

    async def aclassify(self, request: ClassifyRequest) -> Classification:
        """Async twin of `classify`."""
        ...


class RuleClassifier:
    """Classifies by the catalog alone: patterns, likeness to the examples and the description. Abstains when two intents are as likely."""

    def __init__(self) -> None:
        """Make a classifier; it keeps nothing but the words of the catalog it saw last."""
        self._index: tuple[IntentCatalog, LikenessIndex] | None = None

    def classify(self, request: ClassifyRequest) -> Classification:
        """What the message asks for; without an intent when that is not certain."""
        scores = self._scores(request)
        if not scores:
            return Classification(reason="no intent fits")
        (best, score), runner_up = scores[0], scores[1][1] if len(scores) > 1 else 0.0
        if score < (CERTAIN_WHILE_WAITING if request.waiting_for else CERTAIN):
            return Classification(confidence=score, reason="no intent fits well enough")
        if score - runner_up < MARGIN:
            return Classification(confidence=score, reason="two intents fit as well")
        return Classification(best.id, find_params(best, request), min(score, 1.0), reason="it fits best")

    async def aclassify(self, request: ClassifyRequest) -> Classification:
        """Async twin of `classify`."""
        return self.classify(request)

    def _scores(self, request: ClassifyRequest) -> list[tuple[Intent, float]]:
        """How likely each intent is, the likeliest first; impossible ones are left out."""
        index = self._likeness(request.catalog)
        said = without_refusals(request.text[:LONGEST_READ])
        words = words_without_values(request.text[:LONGEST_READ], request.values)
        scores = [(intent, _score(intent, said, index.likeness(intent.id, words))) for intent in request.catalog.intents]
        return sorted(((intent, score) for intent, score in scores if score), key=lambda item: -item[1])

    def _likeness(self, catalog: IntentCatalog) -> LikenessIndex:
        if self._index is None or self._index[0] is not catalog:
            self._index = (catalog, LikenessIndex(catalog.intents))
        return self._index[1]


def _score(intent: Intent, said: str, likeness: float) -> float:
    """A pattern makes an intent certain; likeness then tells two of them apart. A whole example is surer than a pattern."""
    if likeness < 1 and any(re.search(pattern, said, re.IGNORECASE) for pattern in intent.patterns):
        return PATTERN + (1 - PATTERN) * likeness
    return likeness


def find_params(intent: Intent, request: ClassifyRequest) -> dict[str, JsonValue]:
    """The values of the intent's parameters that the message clearly gives, by name."""
    params = [request.catalog.params[name] for name in intent.param_names if name in request.catalog.params]
    found = {}
    for param in params:
        extraction = find(param, request.text, now=request.now, others=[other for other in params if other is not param])
        if extraction.status == "filled":
            found[param.name] = extraction.value
    return found
