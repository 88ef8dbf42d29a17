"""What a message asks for: the classifier's protocol, and the classifier that works by rules alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from typing import Literal, Protocol, runtime_checkable

from langchain_core.messages import BaseMessage
from pydantic import JsonValue

from langmem_ext.waiting.catalog import IntentCatalog


@dataclass(frozen=True, slots=True)
class ClassifyRequest:
    """A user's message and what is known when it arrives.

    Attributes:
        text: The message, or what remains of it when values are cut out.
        catalog: What users can ask for.
        history: The latest messages before it, oldest first; may be empty.
        params: Values known already, by parameter.
        waiting_for: The parameter that is being asked for.
        prompt: The question that is waiting; empty when none is.
        now: When the message was written.
    """

    text: str
    catalog: IntentCatalog
    _: KW_ONLY
    history: Sequence[BaseMessage] = ()
    params: Mapping[str, JsonValue] = field(default_factory=dict)
    waiting_for: str | None = None
    prompt: str = ""
    now: datetime


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
