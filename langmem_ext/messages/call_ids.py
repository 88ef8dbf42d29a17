"""The ids of the tool calls in a message, wherever its provider puts them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from langmem_ext.messages.blocks import blocks_of, named


def call_ids_in(fields: Mapping[str, Any]) -> list[str]:
    """The ids of the calls of a model's message with these fields (`pairing.call_ids`)."""
    listed = [fields.get(name) for name in ("tool_calls", "invalid_tool_calls")]
    ids = [call.get("id") or "" for calls in listed if isinstance(calls, list) for call in calls]
    for what, name in map(named, blocks_of(fields.get("content"))):
        if what in ("call", "screen") and name not in ids:
            ids.append(name)
    return ids
