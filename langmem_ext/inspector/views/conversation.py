"""A conversation as a page shows it: speakers, tool calls with results, images, masks."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from markupsafe import Markup

from langmem_ext.inspector.sources.source import Conversation
from langmem_ext.inspector.views.markdown import rendered
from langmem_ext.inspector.views.masks import Masks
from langmem_ext.inspector.views.values import short
from langmem_ext.messages.annotations import HIDDEN, marked_for
from langmem_ext.messages.token_costs.media import data_of, media_type_of, medium_of
from langmem_ext.messages.token_costs.tokens import approximate_tokens

IMAGES: Final = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""Images that are shown: each is pixels, and no document."""

IMAGE_BYTES: Final = 2 * 1024 * 1024
"""What an image may take to be shown."""

SHOWN: Final = 8000
"""Characters of a tool's arguments, and of its result, that are shown."""


@dataclass(slots=True)
class ToolUse:
    """A tool call, with its result where that follows."""

    name: str
    id: str | None
    arguments: str
    gist: str
    result: str | None = None
    failed: bool = False
    result_id: str | None = None


@dataclass(frozen=True, slots=True)
class Picture:
    """A medium in a message: an image as a `data:` URL, or words that say what it is."""

    label: str
    source: str | None = None


@dataclass(slots=True)
class ShownMessage:
    """A message as it is shown.

    Attributes:
        id: The message's id, or its place.
        place: Where it stands in the list.
        role: `user`, `agent`, `system`, `tool` or `other`.
        who: The role in words.
        html: Its text.
        calls: The tools that it calls.
        pictures: What it holds besides text.
        at: When it was stored.
        holds: The sensitive parameters whose values it holds.
        tokens: About how many tokens it costs.
        model: The model that wrote it, as it says itself.
        used: Tokens of prompt and completion, as it says itself.
    """

    id: str
    place: int
    role: str
    who: str
    html: Markup
    calls: list[ToolUse] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    at: datetime | None = None
    holds: tuple[str, ...] = ()
    tokens: int = 0
    model: str = ""
    used: tuple[int, int] | None = None


def conversation_of(part: Conversation, masks: Masks) -> list[ShownMessage]:
    """The messages of a part of a conversation; the result of a tool stands with its call."""
    messages: list[ShownMessage] = []
    open_calls: dict[str, ToolUse] = {}
    for place, (message, at) in enumerate(zip(part.messages, part.times, strict=True), part.first):
        call = (
            open_calls.pop(message.tool_call_id, None) if isinstance(message, ToolMessage) else None
        )
        if isinstance(message, ToolMessage) and call is not None:
            call.result, call.failed, call.result_id = (
                _result(message, masks),
                message.status == "error",
                message.id,
            )
            continue
        shown = _shown(message, place, at, masks)
        open_calls |= {call.id: call for call in shown.calls if call.id}
        messages.append(shown)
    return messages


def _shown(message: BaseMessage, place: int, at: datetime | None, masks: Masks) -> ShownMessage:
    hidden, stored, message = masks.hides_data(message), message, masks.shown(message)
    role, who = who_of(message)
    usage = message.usage_metadata if isinstance(message, AIMessage) else None
    return ShownMessage(
        id=message.id or str(place),
        place=place,
        role=role,
        who=who,
        html=(
            _plain(_result(stored, masks))
            if role == "tool"
            else rendered(masks.message_text(stored))
        ),
        calls=(
            [_call(call, masks) for call in message.tool_calls]
            if isinstance(message, AIMessage)
            else []
        ),
        pictures=(
            [Picture(HIDDEN)]
            if hidden and not isinstance(stored.content, str)
            else _pictures(message)
        ),
        at=at,
        holds=tuple(sorted(marked_for(vars(message)))),
        tokens=approximate_tokens(stored),
        model=(
            str(message.response_metadata.get("model_name") or "")
            if isinstance(message, AIMessage)
            else ""
        ),
        used=(
            None if usage is None else (usage.get("input_tokens", 0), usage.get("output_tokens", 0))
        ),
    )


def _plain(text: str) -> Markup:
    return Markup("<pre>{}</pre>").format(text)


def who_of(message: BaseMessage) -> tuple[str, str]:
    """Who says a message: the role for its looks, and in words."""
    if isinstance(message, HumanMessage):
        return "user", "User"
    if isinstance(message, AIMessage):
        return "agent", message.name or "Agent"
    if isinstance(message, SystemMessage):
        return "system", "System"
    if isinstance(message, ToolMessage):
        return "tool", f"Result of {message.name or 'a tool'}"
    return "other", message.role if isinstance(message, ChatMessage) else message.type


def _call(call: Any, masks: Masks) -> ToolUse:
    args = {key: HIDDEN if masks.hides_name(key) else value for key, value in call["args"].items()}
    gist = ", ".join(
        f"{key}={json.dumps(value, ensure_ascii=False, default=str)}" for key, value in args.items()
    )
    return ToolUse(call["name"], call["id"], _set_out(args, masks), short(masks.text(gist), 120))


def _result(message: BaseMessage, masks: Masks) -> str:
    """A tool's result; JSON is set out."""
    text = masks.message_text(message)
    with suppress(ValueError, RecursionError):
        return _set_out(json.loads(text), masks)
    return short(text, SHOWN)


def _set_out(value: Any, masks: Masks) -> str:
    """A value as JSON in lines, as far as it is shown: indents of what is nested are many times it.

    It is cut behind what is shown, so that no half of a hidden value is left.
    """
    pieces = json.JSONEncoder(indent=2, ensure_ascii=False, default=str).iterencode(value)
    text = ""
    while len(text) < 2 * SHOWN and (piece := next(pieces, None)) is not None:
        text += piece
    return short(masks.text(text), SHOWN)


def _pictures(message: BaseMessage) -> list[Picture]:
    pictures: list[Picture] = []
    for block in [] if isinstance(message.content, str) else message.content:
        if not isinstance(block, dict) or (medium := medium_of(block)) is None:
            continue
        size = f", {medium.size:,} bytes" if medium.size is not None else ""
        label = f"{medium.kind} {medium.name or medium.media_type}{size}".strip()
        pictures.append(
            Picture(short(label, 200), _shown_image(block) if medium.kind == "image" else None)
        )
    return pictures


def _shown_image(block: Mapping[Any, Any]) -> str | None:
    """An image as a data URL; None if it is stored elsewhere, too large or no plain image."""
    kind, data = media_type_of(block), data_of(block)
    kind = "image/jpeg" if kind == "image/jpg" else kind
    if isinstance(data, str) and data.startswith("data:"):
        data = data.partition(",")[2]
    if kind not in IMAGES or not data or len(data) > IMAGE_BYTES:
        return None
    try:
        raw = data if isinstance(data, bytes) else base64.b64decode(data, validate=True)
    except ValueError:
        return None
    return f"data:{kind};base64,{base64.b64encode(raw).decode()}"
