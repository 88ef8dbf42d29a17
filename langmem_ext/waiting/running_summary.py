"""The running summary: an extract of what was said first, kept in the state while the log stays as it is. Pure.

It is extractive: it holds sentences as they were said, by whom, and nothing that nobody said. A cursor (the id of the last message it
covers) says where it ends, so each message is read once.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from langmem_ext.messages.annotations import HIDDEN, notes_of, shown_text
from langmem_ext.waiting.marks import sensitive_names
from langmem_ext.waiting.state import Summary

LABEL = "Extract of the earlier conversation (extractive: sentences as they were said):"
LONGEST_LINE = 160
LONGEST_TEXT = 4000
"""Characters; beyond it the oldest lines give way."""

_SPEAKERS: Mapping[type[BaseMessage], str] = {HumanMessage: "user", AIMessage: "agent", ToolMessage: "tool"}


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
    lines = summary["text"].splitlines()[1:] if summary and start else []
    lines += _lines(messages[start:cut])
    through = messages[cut - 1].id
    return Summary(text="\n".join([LABEL, *_within_limit(lines)]), through=through or "")


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


def _lines(messages: Sequence[AnyMessage]) -> Iterator[str]:
    for message in messages:
        if line := _line(message):
            yield line


def _line(message: AnyMessage) -> str:
    speaker = next((name for kind, name in _SPEAKERS.items() if isinstance(message, kind)), None)
    if speaker is None:
        return ""
    hidden = sensitive_names(message)
    shown = shown_text(vars(message))
    if hidden and (shown == HIDDEN or isinstance(message, ToolMessage)):
        return f"{speaker}: (gave {', '.join(sorted(hidden))}, left out here)"
    text = _tool_summary(message) if isinstance(message, ToolMessage) else _first_sentence(shown)
    return f"{speaker}: {text}" if text else ""


def _tool_summary(message: ToolMessage) -> str:
    summary = notes_of(vars(message)).get("summary")
    return summary if isinstance(summary, str) else _first_sentence(message.text)


def _first_sentence(text: str) -> str:
    flat = " ".join(text.split())
    end = re.search(r"[.!?](?=\s+[^\W\d_])", flat)
    sentence = flat[: end.end()] if end else flat
    return sentence if len(sentence) <= LONGEST_LINE else sentence[: LONGEST_LINE - 1].rstrip() + "…"


def _within_limit(lines: Sequence[str]) -> list[str]:
    """The latest lines that fit."""
    kept: list[str] = []
    room = LONGEST_TEXT - len(LABEL)
    for line in reversed(lines):
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]
