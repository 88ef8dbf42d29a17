"""The running summary: an extract of what was said first, kept in the state while the log stays as it is. Pure.

A cursor (the id of the last message it covers) says where it ends, so each message is read once.
"""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import AnyMessage, HumanMessage

from langmem_ext.context.extract import extract
from langmem_ext.waiting.state import Summary

LONGEST_TEXT = 4000
"""Characters; beyond it the oldest lines give way."""


def is_due(messages: Sequence[AnyMessage], summary: Summary | None, above: int) -> bool:
    """Whether more than `above` messages stand after those that the summary covers, some of which can go into it."""
    return len(messages) - _covered(messages, summary) > above and _cut(messages, summary, above) is not None


def plan_summary(messages: Sequence[AnyMessage], summary: Summary | None, above: int) -> Summary | None:
    """The summary carried on, so that about half of `above` messages stand after it; the one there was, if nothing can go into it.

    It ends before a user's message, so no tool call is parted from its result. If the last message that it covered is not there any more,
    it is made again from the beginning.
    """
    cut = _cut(messages, summary, above)
    if cut is None:
        return summary
    start = _covered(messages, summary)
    previous = summary["text"] if summary and start else None
    through = messages[cut - 1].id
    return Summary(text=extract(messages[start:cut], previous, LONGEST_TEXT, _Characters()), through=through or "")


class _Characters:
    """Measures a text by its characters: what stands in a state costs no model anything."""

    def count_text(self, text: str) -> int:
        return len(text)


def _covered(messages: Sequence[AnyMessage], summary: Summary | None) -> int:
    """How many messages the summary covers; 0 when its cursor is gone."""
    through = summary["through"] if summary else ""
    return next((place + 1 for place, message in enumerate(messages) if through and message.id == through), 0)


def _cut(messages: Sequence[AnyMessage], summary: Summary | None, above: int) -> int | None:
    """Where the summary will end: before the user's message nearest below the half of `above`; None when there is no such place."""
    wanted = len(messages) - max(above // 2, 1)
    for place in range(wanted, _covered(messages, summary), -1):
        if isinstance(messages[place], HumanMessage):
            return place
    return None
