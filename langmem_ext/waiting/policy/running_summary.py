"""The running summary: what was said first, kept in the state while the log stays as it is. Pure.

A governor has it written by a model; without one it is an extract. A cursor (the id of the last
message it covers) says where it ends, so each message is read once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AnyMessage, HumanMessage

from langmem_ext.context.summary.extract import extract
from langmem_ext.messages.pairing import safe_boundaries
from langmem_ext.waiting.state import Summary

LONGEST_TEXT = 4000
"""Characters; beyond it the oldest lines give way."""


def is_due(messages: Sequence[AnyMessage], summary: Summary | None, above: int) -> bool:
    """Whether more than `above` messages follow the summary, and some of them can go into it."""
    return (
        len(messages) - _covered(messages, summary) > above
        and _cut(messages, summary, above) is not None
    )


@dataclass(frozen=True, slots=True)
class Part:
    """What of a conversation is to go into its summary.

    Attributes:
        messages: The messages.
        previous: The summary of what was said before them; empty where there is none.
        through: The id of the last of them.
    """

    messages: Sequence[AnyMessage]
    previous: str
    through: str


def plan_part(messages: Sequence[AnyMessage], summary: Summary | None, above: int) -> Part | None:
    """The messages to summarize, about half of `above` kept after them; None if there are none.

    It ends before a user's message, where no tool call is parted from its result. If the last
    message that the summary covered is not there any more, it is made again from the beginning.
    """
    cut = _cut(messages, summary, above)
    if cut is None:
        return None
    start = _covered(messages, summary)
    return Part(
        messages[start:cut],
        summary["text"] if summary and start else "",
        messages[cut - 1].id or "",
    )


def extracted(part: Part) -> Summary:
    """The summary carried on by an extract."""
    return Summary(
        text=extract(part.messages, part.previous, LONGEST_TEXT, _Characters()),
        through=part.through,
    )


class _Characters:
    """Measures a text by its characters: what is in a state costs no model anything."""

    def count_text(self, text: str) -> int:
        return len(text)


def _covered(messages: Sequence[AnyMessage], summary: Summary | None) -> int:
    """How many messages the summary covers; 0 when its cursor is gone."""
    through = summary["through"] if summary else ""
    return next(
        (place + 1 for place, message in enumerate(messages) if through and message.id == through),
        0,
    )


def _cut(messages: Sequence[AnyMessage], summary: Summary | None, above: int) -> int | None:
    """Where the summary will end; None when there is no such place.

    It ends before the last user's message that leaves at least half of `above` messages.
    """
    wanted, covered = len(messages) - max(above // 2, 1), _covered(messages, summary)
    places = (place for place in reversed(safe_boundaries(messages)) if covered < place <= wanted)
    return next((place for place in places if isinstance(messages[place], HumanMessage)), None)
