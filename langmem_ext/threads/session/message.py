"""`Message`: one message of a session in plain fields, convertible to LangChain's without loss."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from langchain_core.messages import BaseMessage
from pydantic import JsonValue, ValidationError

from langmem_ext._internal.json import json_object, json_value, plain_text
from langmem_ext.errors import InvalidInput, cause
from langmem_ext.messages.annotations import NAMESPACE, notes_of
from langmem_ext.messages.snapshot import CLASS_OF_TYPE, CODE_OF_TYPE, DEFAULTS
from langmem_ext.messages.text import text_of

Role: TypeAlias = Literal["user", "agent", "tool"]

ROLES: Final[tuple[Role, ...]] = get_args(Role)

FOREIGN: Final = "langchain"
"""Key, in a message's metadata, of what only LangChain's messages have: `name`, `tool_calls`,
`tool_call_id`, `content` in blocks, …"""

_TYPES: Final[Mapping[Role, str]] = {"user": "human", "agent": "ai", "tool": "tool"}
"""The type of LangChain's message that a role is written as."""

_ROLES: Final[Mapping[str, Role]] = {
    "human": "user",
    "HumanMessageChunk": "user",
    "tool": "tool",
    "ToolMessageChunk": "tool",
    "function": "tool",
    "FunctionMessageChunk": "tool",
}
"""The role of LangChain's message types; every other is the agent's."""


def _now() -> str:
    return datetime.now(UTC).isoformat()


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a session.

    Attributes:
        role: Its author: `user`, `agent` or `tool`.
        text: Its text.
        timestamp: Its time, in ISO 8601 with a time zone. Default: now.
        metadata: Further data, as JSON. `langchain` has what only LangChain's messages have: a
            name, tool calls, the call that a tool answers (`tool_call_id`), content that is more
            than text.
        id: Its id in the thread, assigned when it is appended. It is ignored when two messages are
            compared.

    Raises:
        InvalidInput: The role or the timestamp is invalid, the timestamp has no zone, or the
            metadata is not JSON.
    """

    role: Role
    text: str
    timestamp: str = field(default_factory=_now)
    metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    id: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        if self.role not in ROLES:
            raise InvalidInput(
                "a message's role must be 'user', 'agent' or 'tool', and is the first argument"
            )
        if not isinstance(self.text, str):
            raise InvalidInput(f"a message's text must be a string, not {type(self.text).__name__}")
        if self.id is not None and (not isinstance(self.id, str) or not self.id):
            raise InvalidInput("a message's id must be a non-empty string: omit it to get one")
        if not _is_time(self.timestamp):
            raise InvalidInput(
                "a message's timestamp must be ISO 8601 with a time zone, like"
                " '2026-01-31T09:30:00+00:00': omit it for the current time"
            )
        object.__setattr__(self, "text", plain_text(self.text, "a message's text"))
        object.__setattr__(self, "metadata", json_object(self.metadata, "a message's metadata"))
        if FOREIGN in self.metadata:
            self.to_langchain()  # the metadata must make a message

    def to_langchain(self) -> BaseMessage:
        """The equal LangChain message: human, AI or tool message, or the one it was read from."""
        own = dict(self.metadata)
        foreign = own.pop(FOREIGN, {})
        if not isinstance(foreign, dict):
            raise InvalidInput(
                f"a message's metadata[{FOREIGN!r}] holds fields of a LangChain message: pass a"
                " dict, or use another name"
            )
        fields: dict[str, Any] = json_object(foreign, FOREIGN)  # a copy: no message shares it
        kind = fields.pop("type", _TYPES[self.role])
        if not isinstance(kind, str) or kind not in CLASS_OF_TYPE or _role_of(kind) != self.role:
            raise InvalidInput(
                f"a message's metadata[{FOREIGN!r}] has a type that does not fit the role"
                f" {self.role!r}: omit it"
            )
        blocks = fields.pop("content", None)
        further = fields.pop("additional_kwargs", None)
        further = further if isinstance(further, dict) else {}
        kept = further.get(NAMESPACE)
        notes: dict[str, Any] = {
            **(kept if isinstance(kept, dict) else {}),
            "timestamp": self.timestamp,
        }
        if own:
            notes["metadata"] = json_object(own, "a message's metadata")
        if kind in ("tool", "ToolMessageChunk"):
            fields.setdefault("tool_call_id", "")
        return _build(
            kind,
            {
                **fields,
                "content": (
                    blocks
                    if isinstance(blocks, list) and text_of(blocks) == self.text
                    else self.text
                ),
                "additional_kwargs": {**further, NAMESPACE: notes},
                "id": self.id,
            },
        )

    @classmethod
    def from_langchain(cls, message: BaseMessage, *, stored_at: str | None = None) -> Message:
        """A session's message from LangChain's.

        A field that is not JSON (a tool's artifact may be anything) is left out here, and stays in
        the log.

        Args:
            message: LangChain's message.
            stored_at: Its time, if it has none itself. Default: now.
        """
        notes = dict(notes_of(vars(message)))
        timestamp, noted = notes.pop("timestamp", None), notes.pop("metadata", None)
        if not _is_time(timestamp):
            timestamp = stored_at or _now()
        foreign = _foreign(message, notes)
        try:
            metadata = json_object(noted, "metadata")
            metadata.pop(FOREIGN, None)
        except InvalidInput:  # there is none, or another program's data
            metadata = {}
        return cls(
            role=_role_of(message.type),
            text=text_of(message.content),
            timestamp=timestamp,
            metadata={**metadata, FOREIGN: foreign} if foreign else metadata,
            id=message.id or None,
        )


def _foreign(message: BaseMessage, notes: Mapping[str, Any]) -> dict[str, JsonValue]:
    """The message's JSON fields that are not default and have no place elsewhere."""
    code = CODE_OF_TYPE.get(message.type)
    defaults = DEFAULTS[code] if code is not None else {}
    further = {
        name: value for name, value in message.additional_kwargs.items() if name != NAMESPACE
    }
    if notes:
        further[NAMESPACE] = dict(notes)
    fields: dict[str, Any] = {
        name: getattr(message, name)
        for name in (*type(message).model_fields, *(message.model_extra or {}))
        if name not in ("content", "additional_kwargs", "id", "type")
    }
    foreign: dict[str, JsonValue] = {}
    if message.type not in _TYPES.values() and code is not None:
        foreign["type"] = message.type
    if not isinstance(message.content, str):
        fields["content"] = message.content
    if further:
        fields["additional_kwargs"] = further
    for name, value in fields.items():
        if (name in defaults and value == defaults[name]) or (
            name == "tool_call_id" and value == ""
        ):
            continue
        try:
            foreign[name] = json_value(value, name)
        except InvalidInput:
            continue
    return foreign


def _build(kind: str, fields: Mapping[str, Any]) -> BaseMessage:
    try:
        return CLASS_OF_TYPE[kind](**fields)
    except (ValidationError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(
            f"a message's metadata[{FOREIGN!r}] cannot be converted to a message of type {kind!r}:"
            " use LangChain's field names"
        ) from cause(error)


def _role_of(kind: str) -> Role:
    return _ROLES.get(kind, "agent")


def _is_time(value: object) -> bool:
    """Whether a value is an ISO 8601 time with a zone."""
    try:
        return isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return False
