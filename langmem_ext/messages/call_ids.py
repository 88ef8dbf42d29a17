"""The ids of the tool calls in a message, wherever its provider puts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

BLOCK_IDS: Final[Mapping[str, str]] = {
    "tool_use": "id",
    "tool_call": "id",
    "computer_call": "call_id",
}
"""Types of blocks that are a call wherever they are, each with the key of its id: Anthropic's,
LangChain's, and OpenAI's for a screen."""


def call_ids_in(fields: Mapping[str, Any]) -> list[str]:
    """The ids of the calls of a model's message with these fields (`pairing.call_ids`)."""
    listed = [fields.get(name) for name in ("tool_calls", "invalid_tool_calls")]
    ids = [call.get("id") or "" for calls in listed if isinstance(calls, list) for call in calls]
    content = fields.get("content")
    for block in content if isinstance(content, list) else ():
        key = BLOCK_IDS.get(str(block.get("type"))) if isinstance(block, dict) else None
        if key is not None and (name := block.get(key) or "") not in ids:
            ids.append(name)
    return ids
