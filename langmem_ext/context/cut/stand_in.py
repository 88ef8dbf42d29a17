"""What stands for messages that are left out: a line that says how many, a summary of them, and what is known of the request. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langmem_ext.context.decisions import Cut
from langmem_ext.messages.annotations import inserted

MARKER_TOKENS: Final = 40
"""What the line costs that says how many messages are left out, at most."""

TRIMMED_MARKER: Final = "[Earlier conversation trimmed — {count} messages removed to stay within context budget]"
SUMMARY_MARKER: Final = "[Summary of {count} earlier messages]\n"
COMPACTED_MARKER: Final = "[Compacted conversation summary]\n"
COMPACTED_ANSWER: Final = "Understood. I have the conversation context."


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Messages that a text shall stand for.

    Attributes:
        messages: Those that were shown until now, oldest first.
        previous: What stood for the messages before them; empty where nothing did.
        count: How many messages the text will stand for, those before included.
        tokens: What the text may cost.
        may_ask: Whether a model may be asked for a summary: none has failed just now.
    """

    messages: tuple[BaseMessage, ...]
    previous: str
    count: int
    tokens: int
    may_ask: bool = True


@dataclass(frozen=True, slots=True)
class Standing:
    """What stands for messages that are left out.

    Attributes:
        text: The text.
        by: Who wrote it: `marker`, `extract` or `model`; `keep` asks for the messages instead, as far as they fit.
        failed: Whether a summary was tried and failed.
    """

    text: str
    by: str
    failed: bool = False


def marker(count: int) -> Standing:
    """What stands for so many messages of which nothing else is told."""
    return Standing(TRIMMED_MARKER.format(count=count), "marker")


def known(params: Mapping[str, Any]) -> str:
    """What is known of the user's request, as lines behind the text that stands for messages."""
    lines = (f"\n- {name}: {' '.join(str(value).split())}" for name, value in params.items())
    return "\n\nKnown so far:" + "".join(lines) if params else ""


def messages_for(cut: Cut) -> list[BaseMessage]:
    """What a request has in place of the messages that a cut leaves out; the same cut gives the same messages, byte for byte."""
    if not cut.text:
        return []
    text = cut.text + cut.known
    if cut.by == "compact":
        answer = AIMessage(COMPACTED_ANSWER, id=_id(text + COMPACTED_ANSWER), additional_kwargs=inserted(cut.by))
        return [told(COMPACTED_MARKER + text, cut.by), answer]
    return [told(SUMMARY_MARKER.format(count=cut.dropped) + text if cut.by == "model" else text, cut.by)]


def told(text: str, by: str) -> HumanMessage:
    """What the model is told about its conversation; the same text is the same message, byte for byte."""
    return HumanMessage(text, id=_id(text), additional_kwargs=inserted(by))


def _id(text: str) -> str:
    return f"context-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"
