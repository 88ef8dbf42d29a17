"""What replaces left-out messages: a line with their number, a summary, the request's values.

Pure.
"""

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

TRIMMED_MARKER: Final = (
    "[Earlier conversation trimmed — {count} messages removed to stay within context budget]"
)
SUMMARY_MARKER: Final = "[Summary of {count} earlier messages]\n"
COMPACTED_MARKER: Final = "[Compacted conversation summary]\n"
COMPACTED_ANSWER: Final = "Understood. I have the conversation context."


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Messages to be replaced by a text.

    Attributes:
        messages: Those that were shown until now, oldest first.
        previous: What stood for the messages before them; empty if nothing did.
        count: How many messages the text will replace, those before included.
        tokens: What the text may cost.
        may_ask: Whether a model may be asked for a summary: none has failed just now.
    """

    messages: tuple[BaseMessage, ...]
    previous: str
    count: int
    tokens: int
    may_ask: bool = True


@dataclass(frozen=True, slots=True)
class Replacement:
    """What replaces messages that are left out.

    Attributes:
        text: The text.
        by: Who wrote it: `marker`, `extract` or `model`; `keep` asks for the messages instead, as
            far as they fit.
        failed: Whether a summary was tried and failed.
    """

    text: str
    by: str
    failed: bool = False


def marker(count: int) -> Replacement:
    """The line that replaces messages without a summary."""
    return Replacement(TRIMMED_MARKER.format(count=count), "marker")


def known(params: Mapping[str, Any]) -> str:
    """What is known of the user's request, as lines behind the text that replaces messages."""
    lines = (f"\n- {name}: {' '.join(str(value).split())}" for name, value in params.items())
    return "\n\nKnown so far:" + "".join(lines) if params else ""


def messages_for(cut: Cut) -> list[BaseMessage]:
    """The messages that replace what a cut leaves out; byte for byte the same for the same cut."""
    if not cut.text:
        return []
    text = cut.text + cut.known
    if cut.by == "compact":
        answer = AIMessage(
            COMPACTED_ANSWER, id=_id(text + COMPACTED_ANSWER), additional_kwargs=inserted(cut.by)
        )
        return [context_message(COMPACTED_MARKER + text, cut.by), answer]
    return [
        context_message(
            SUMMARY_MARKER.format(count=cut.dropped) + text if cut.by == "model" else text, cut.by
        )
    ]


def context_message(text: str, by: str) -> HumanMessage:
    """A message that tells the model about its conversation; the same bytes for the same text."""
    return HumanMessage(text, id=_id(text), additional_kwargs=inserted(by))


def _id(text: str) -> str:
    return f"context-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"
