"""Turns: a conversation cut where the user speaks, and never between a tool call and its result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langmem_ext._internal import html
from langmem_ext.messages.annotations import (
    FileReference,
    files_of,
    is_inserted,
    shown_text,
    tool_of,
    without_files,
)
from langmem_ext.messages.pairing import call_boundaries, call_ids
from langmem_ext.messages.text import words_of


def is_users(message: BaseMessage) -> bool:
    """Whether the user said the message: it is one of theirs, and was not put into a request."""
    return isinstance(message, HumanMessage) and not is_inserted(vars(message))


def replies_in(messages: Sequence[BaseMessage], *, ended: bool = True) -> list[BaseMessage]:
    """What a user is to read of a turn: what the model says, and the results that ended it.

    A tool's result is the answer where no model speaks after it (`return_direct`).

    Args:
        messages: The turn.
        ended: Whether nothing of it is still to come.
    """
    end = len(messages)
    while ended and end and isinstance(messages[end - 1], ToolMessage):
        end -= 1
    return [
        message
        for at, message in enumerate(messages)
        if (isinstance(message, AIMessage) or at >= end) and words_of(vars(message))
    ]


def calls_of(message: BaseMessage) -> str:
    """The names of the tools that a message calls, never what it calls them with."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return ", ".join(f"{call['name']}(…)" for call in calls)


@dataclass(frozen=True, slots=True)
class ConversationTurn:
    """A user's message with everything that followed, up to the next one.

    Attributes:
        number: Its number in the thread, from 1.
        messages: Its messages, oldest first; system messages are in no turn.
        tool: Its tool or agent, from the first message that names one.
        files: The files that its messages refer to.
    """

    number: int
    messages: tuple[BaseMessage, ...]
    tool: str | None = None
    files: tuple[FileReference, ...] = ()

    @property
    def said(self) -> str:
        """The user's text, without the contents of files."""
        spoken = [
            without_files(vars(message))
            for message in self.messages
            if isinstance(message, HumanMessage)
        ]
        return "\n".join(map(words_of, spoken))

    @property
    def reply(self) -> str:
        """The answer: the texts of its AI messages, and the results that it ends with."""
        return "\n".join(words_of(vars(message)) for message in replies_in(self.messages))

    def _repr_html_(self) -> str:
        rows = [
            (message.type, shown_text(vars(message)) or calls_of(message))
            for message in self.messages
        ]
        return html.titled(f"Turn {self.number}", html.table(rows))


def cut_turns(
    messages: Sequence[BaseMessage], left_out: int = 0
) -> tuple[tuple[BaseMessage, ...], tuple[ConversationTurn, ...]]:
    """The system messages of a conversation, and its turns.

    A turn begins with a user's message. What is before the first one belongs to the first turn. A
    user's message that is between a tool call and the call's result belongs to the turn of the
    call.

    Args:
        messages: The conversation, or the end of it from where a turn begins.
        left_out: How many turns are before them.
    """
    system = tuple(message for message in messages if isinstance(message, SystemMessage))
    spoken = [message for message in messages if not isinstance(message, SystemMessage)]
    first_said = next(
        (at for at, message in enumerate(spoken) if isinstance(message, HumanMessage)), 0
    )
    bounds = [0, *(at for at in _starts(spoken) if at > first_said), len(spoken)]
    pieces = [
        spoken[start:end] for start, end in zip(bounds, bounds[1:], strict=False) if start < end
    ]
    return system, tuple(
        _turn(number, piece) for number, piece in enumerate(pieces, start=left_out + 1)
    )


def _starts(spoken: Sequence[BaseMessage]) -> list[int]:
    """Where a turn may begin: at a user's message that is between no call and its result."""
    return [at for at in call_boundaries(spoken)[:-1] if isinstance(spoken[at], HumanMessage)]


def first_whole_turn(tail: Sequence[BaseMessage]) -> int:
    """Where the first whole turn of the end of a conversation begins; its length if there is none.

    Args:
        tail: The end of a conversation, or all of it, from anywhere on.
    """
    asked: set[str] = set()
    whole = 0
    for at, message in enumerate(tail):
        if isinstance(message, ToolMessage):
            whole = (
                whole if message.tool_call_id in asked else at + 1
            )  # its call is before the end, if anywhere
        else:
            asked.update(call_ids(message))
    return next((at for at in _starts(tail) if at >= whole), len(tail))


def _turn(number: int, messages: Sequence[BaseMessage]) -> ConversationTurn:
    fields = [vars(message) for message in messages]
    return ConversationTurn(
        number=number,
        messages=tuple(messages),
        tool=next(filter(None, map(tool_of, fields)), None),
        files=tuple(reference for message in fields for reference in files_of(message)),
    )
