"""A conversation as text for a model that summarises it, compact and without sensitive values.

Pure.

One entry for each message that says something. Only an entry's first line is at the margin, so
no text can look like another speaker's entry. Images and files are only mentioned; thoughts are
left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langmem_ext.context.tool_output.output_text import as_json, output_text
from langmem_ext.messages.annotations import HIDDEN, is_marked, shown_text
from langmem_ext.messages.blocks import is_a
from langmem_ext.messages.text import words_in

_SPEAKERS: Final[Mapping[type[BaseMessage], str]] = {
    HumanMessage: "user",
    AIMessage: "agent",
    SystemMessage: "system",
}


class Entry(NamedTuple):
    """What one message says.

    Attributes:
        speaker: Who says it, or which tool returned it.
        text: What is said; its lines after the first are indented. Never empty.
    """

    speaker: str
    text: str

    def __str__(self) -> str:
        return f"{self.speaker}: {self.text}"


def list_entries(messages: Sequence[BaseMessage]) -> list[Entry | None]:
    """An entry for each message; None for one that says nothing."""
    called: dict[str, str] = {}
    entries: list[Entry | None] = []
    for message in messages:
        if isinstance(message, AIMessage):
            called |= {call["id"] or "": call["name"] for call in message.tool_calls}
        text = "\n".join(filter(None, (part.strip() for part in _parts(message))))
        entries.append(
            Entry(_speaker(message, called), "\n  ".join(text.splitlines())) if text else None
        )
    return entries


def _speaker(message: BaseMessage, called: Mapping[str, str]) -> str:
    if isinstance(message, ToolMessage):
        tool = message.name or called.get(message.tool_call_id) or "tool"
        return f"{_in_line(tool)} {'failed' if message.status == 'error' else 'returned'}"
    speaker = next(
        (name for kind, name in _SPEAKERS.items() if isinstance(message, kind)), None
    ) or str(message.type)
    return (
        f"{speaker} {_in_line(message.name)}"
        if message.name and isinstance(message, HumanMessage) and not is_marked(vars(message))
        else speaker
    )


def _in_line(name: str) -> str:
    return " ".join(str(name).split())


def _parts(message: BaseMessage) -> Iterator[str]:
    yield shown_text(vars(message))
    marked = is_marked(vars(message))
    content: Any = message.content
    if not isinstance(content, str | list):
        yield HIDDEN if marked else output_text(content).text
    for block in content if isinstance(content, list) else ():
        elsewhere = words_in(block) is not None or is_a(block, "call", "piece", "thought", "mark")
        if isinstance(block, dict) and not elsewhere:
            yield HIDDEN if marked else output_text([block]).text
    if isinstance(message, AIMessage):
        for call in message.tool_calls:
            yield f"calls {_in_line(call['name'])}({_arguments(call['args'], marked=marked)})"
        for broken in message.invalid_tool_calls:
            yield f"calls {_in_line(broken['name'] or 'a tool')} with arguments that cannot be read"


def _arguments(args: Mapping[str, Any], *, marked: bool) -> str:
    """A call's arguments; only their names if the message is marked as sensitive."""
    if marked:
        return ", ".join(f"{name}={HIDDEN}" for name in args)
    return as_json(args)
