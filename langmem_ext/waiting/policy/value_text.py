"""Values and templates as text that a user reads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from pydantic import JsonValue

from langmem_ext.waiting.catalog.catalog import TEMPLATE_FIELD

UNKNOWN = "(unknown)"
"""Stands in a reply for a value that is not there."""


def in_text(value: JsonValue) -> str:
    """The value as text: `12.0` as 12, a boolean as yes or no, several values with commas."""
    if value is None:
        return UNKNOWN
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, list):
        return ", ".join(in_text(item) for item in value)
    if isinstance(value, dict):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def fill(template: str, params: Mapping[str, JsonValue], result: JsonValue = None) -> str:
    """The template with `{param}`, `{result}` and `{result.key}` filled in, in one pass.

    Fields inside a value are not filled in.
    """

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        return in_text(
            _within(result, name.split(".")[1:])
            if name.split(".")[0] == "result"
            else params.get(name)
        )

    return TEMPLATE_FIELD.sub(value, template)


def _within(value: JsonValue, keys: list[str]) -> JsonValue:
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value
