"""The extractive summary, used where no model is called: quoted sentences with their speakers.

Pure. Nothing is in it that was not said.

Its first line says what it is. It has a limit; the oldest lines give way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Protocol

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langmem_ext.messages.annotations import HIDDEN, marked_for, notes_of, shown_text
from langmem_ext.messages.text import words_of

LABEL: Final = "Extract of the earlier conversation (extractive: sentences as they were said):"
LONGEST_LINE: Final = 160
"""Characters of what one message says in it."""

_SPEAKERS: Final[Mapping[type[BaseMessage], str]] = {
    HumanMessage: "user",
    AIMessage: "agent",
    ToolMessage: "tool",
}


class TextCounter(Protocol):
    """What measures a text: every token counter does."""

    def count_text(self, text: str) -> int:
        """How much of its limit the text takes."""
        ...


def extract(
    messages: Sequence[BaseMessage], previous: str | None, max_tokens: int, counter: TextCounter
) -> str:
    """A line for each message with text, after those of a previous summary; empty if out of room.

    Args:
        messages: What is to be summed up, oldest first.
        previous: The summary of what was said before them, an extract or not; its lines are the
            first to give way.
        max_tokens: What the text may cost, in what `counter` counts.
        counter: Measures texts.
    """
    room = max_tokens - counter.count_text(LABEL)
    if room < 0:
        return ""
    lines = previous.splitlines() if previous else []
    lines = lines[1:] if lines[:1] == [LABEL] else lines
    return "\n".join([LABEL, *_latest([*lines, *_lines(messages)], room, counter)])


def _latest(lines: Sequence[str], room: int, counter: TextCounter) -> list[str]:
    """The latest lines that fit, each with its line break."""
    kept: list[str] = []
    for line in reversed(lines):
        room -= counter.count_text(line) + 1
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]


def _lines(messages: Sequence[BaseMessage]) -> Iterator[str]:
    for message in messages:
        if line := _line(message):
            yield line


def _line(message: BaseMessage) -> str:
    speaker = next((name for kind, name in _SPEAKERS.items() if isinstance(message, kind)), None)
    if speaker is None:
        return ""
    hidden = marked_for(vars(message))
    shown = shown_text(vars(message))
    if hidden and (shown == HIDDEN or isinstance(message, ToolMessage)):
        return f"{speaker}: (gave {', '.join(sorted(hidden))}, left out here)"
    text = _tool_summary(message) if isinstance(message, ToolMessage) else _first_sentence(shown)
    return f"{speaker}: {text}" if text else ""


def _tool_summary(message: ToolMessage) -> str:
    summary = notes_of(vars(message)).get("summary")
    return summary if isinstance(summary, str) else _first_sentence(words_of(vars(message)))


def _first_sentence(text: str) -> str:
    flat = " ".join(text.split())
    end = re.search(r"[.!?](?=\s+[^\W\d_])", flat)
    sentence = flat[: end.end()] if end else flat
    return (
        sentence if len(sentence) <= LONGEST_LINE else sentence[: LONGEST_LINE - 1].rstrip() + "…"
    )
