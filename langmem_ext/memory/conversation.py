"""A conversation as a model reads it for a memory: numbered messages in pieces. Pure.

No sensitive value is in it. Instructions of the application (system messages) and what nobody said
(summaries that were put into a request) are left out; of a tool's long output the beginning is
read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final

from langchain_core.messages import BaseMessage, SystemMessage, ToolMessage

from langmem_ext.context.summary.chunks import pack, split_text
from langmem_ext.context.summary.extract import TextCounter
from langmem_ext.context.summary.transcript import list_entries
from langmem_ext.context.tool_output.tool_output import trimmed
from langmem_ext.messages.annotations import is_inserted, is_marked

TOOL_CHARS: Final = 2_000
"""Characters of a tool's output that are read."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What was said.

    Attributes:
        messages: The messages that say something: number n is at index n - 1.
        pieces: What they say, in as few pieces as follow each other.
        ends: Of each piece, the number of the last message that ends in it or before it.
    """

    messages: tuple[BaseMessage, ...]
    pieces: tuple[str, ...]
    ends: tuple[int, ...]

    def ids(self) -> tuple[str, ...]:
        """The ids of the messages that have one."""
        return tuple(message.id for message in self.messages if message.id)


def read_conversation(
    messages: Sequence[BaseMessage], limit: int, counter: TextCounter
) -> Conversation:
    """What the messages say.

    Args:
        messages: The messages, oldest first.
        limit: What a piece may cost, in what `counter` counts.
        counter: Measures texts.
    """
    read = [_shortened(message) for message in messages if not _is_left_out(message)]
    entries = [
        (message, entry)
        for message, entry in zip(read, list_entries(read), strict=True)
        if entry is not None
    ]
    lines: list[str] = []
    ended: list[int] = []  # with each line, how many messages
    for number, (_, entry) in enumerate(entries, 1):
        parts = list(_lines(number, str(entry), limit, counter))
        lines += parts
        ended += [*[number - 1] * (len(parts) - 1), number]
    groups = pack(lines, limit, counter)
    ends = [ended[last - 1] for last in accumulate(map(len, groups))]
    return Conversation(
        tuple(message for message, _ in entries), tuple(map("\n".join, groups)), tuple(ends)
    )


def _is_left_out(message: BaseMessage) -> bool:
    return isinstance(message, SystemMessage) or is_inserted(vars(message))


def _shortened(message: BaseMessage) -> BaseMessage:
    """The message; of a tool's output the beginning, unless it is marked.

    Marks of sensitive values count characters.
    """
    return (
        trimmed(message, TOOL_CHARS)
        if isinstance(message, ToolMessage) and not is_marked(vars(message))
        else message
    )


def _lines(number: int, text: str, limit: int, counter: TextCounter) -> Iterator[str]:
    line = f"[{number}] {text}"
    if counter.count_text(line) <= limit:
        yield line
        return
    room = max(limit - counter.count_text(f"[{number}] (part 100 of 100): "), 1)
    parts = split_text(text, room, counter)
    for part, piece in enumerate(parts, 1):
        yield f"[{number}] (part {part} of {len(parts)}): {piece.strip()}"
