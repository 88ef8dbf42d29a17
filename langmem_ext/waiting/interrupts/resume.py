"""What a resume value says. Pure, total: any value at all becomes text or nothing, and nothing raises.

A waiting node is run again with the same stored value if it fails, so a value that it could not take would lock the thread for ever.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from langchain_core.messages import BaseMessage

_KEYS = ("text", "content", "value", "answer", "args")
"""Keys under which clients put an answer, in the order in which they are looked for."""
_DEPTH = 8


def resumed_text(value: object, param: str) -> str | None:
    """The user's words in a resume value; None when there are none, and the question is to be asked again.

    Args:
        value: Text, a number, a truth value, a message, an object with the text under `text`, `content`, `value`, `answer`, `args` or the
            name of the parameter, or a list of these.
        param: The parameter that is asked for.
    """
    try:
        text = _text(value, param, _DEPTH)
    except Exception:  # whatever a foreign object does when it is looked at
        return None
    storable = text.encode("utf-8", "replace").decode().strip()
    return storable or None


def resumed_id(value: object) -> str | None:
    """The message id that a resume value brings along."""
    if isinstance(value, BaseMessage):
        return value.id or None
    given = value.get("id") if isinstance(value, dict) else None
    return given if isinstance(given, str) and given else None


def resumed_moment(value: object) -> datetime | None:
    """When the answer was written, if the resume value says so."""
    given = value.get("at") if isinstance(value, dict) else None
    try:
        return datetime.fromisoformat(given) if isinstance(given, str) else None
    except ValueError:
        return None


def is_unseen(value: object) -> bool:
    """Whether the resume value says that its words were written before the question was asked."""
    return isinstance(value, dict) and value.get("unseen") is True


def _text(value: object, param: str, depth: int) -> str:
    if value is None or depth == 0:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str | int | float):
        return str(value)
    if isinstance(value, BaseMessage):
        return value.text
    if isinstance(value, Mapping):
        return _object_text(value, param, depth)
    if isinstance(value, list | tuple):
        return ", ".join(text for item in value if (text := _text(item, param, depth - 1)))
    return ""


def _object_text(value: Mapping[Any, object], param: str, depth: int) -> str:
    for key in (*_KEYS, param):
        if key in value:
            return _text(value[key], param, depth - 1)
    return json.dumps(value, ensure_ascii=False, default=str) if value else ""
