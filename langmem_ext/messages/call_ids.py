"""The tool calls of a message where its content repeats them: their ids and arguments."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import ToolCall

from langmem_ext.messages.blocks import blocks_of, named


def call_ids_in(fields: Mapping[str, Any]) -> list[str]:
    """The ids of the calls of a model's message with these fields (`pairing.call_ids`)."""
    listed = [fields.get(name) for name in ("tool_calls", "invalid_tool_calls")]
    ids = [call.get("id") or "" for calls in listed if isinstance(calls, list) for call in calls]
    for what, name in map(named, blocks_of(fields.get("content"))):
        if what in ("call", "screen") and name not in ids:
            ids.append(name)
    return ids


def with_arguments(content: Any, calls: Sequence[ToolCall]) -> Any:
    """A content whose copies of these calls have their arguments."""
    if not isinstance(content, list):
        return content
    copies = {("call", call["id"]): call for call in calls}
    return [
        restated(block, copies[key]) if (key := named(block)) in copies else block
        for block in content
    ]


def restated(block: dict[str, Any], call: ToolCall) -> dict[str, Any]:
    """The copy of a call in a content, with the call's arguments; the same if it has them."""
    args = call["args"]
    for key in ("input", "args"):
        if isinstance(block.get(key), dict) and block[key] != args:
            return {**block, key: args}
    if isinstance(text := block.get("arguments"), str) and _parsed(text) != args:
        return {**block, "arguments": json.dumps(args, ensure_ascii=False)}
    return block


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None
