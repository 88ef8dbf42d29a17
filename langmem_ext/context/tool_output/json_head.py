"""The beginning of a JSON text that is JSON itself: what is left out of it is named in it."""

from __future__ import annotations

import json
from typing import Any, Final

LONGEST: Final = 1_000_000
"""Characters of a text that is still read."""

DEEPEST: Final = 12
"""Levels that are shown."""

_ITEMS: Final = (200, 100, 60, 40, 25, 15, 10, 6, 4, 3, 2, 1)
"""How many items of a list or an object are shown, tried from the most on."""


def json_head(text: str, chars: int) -> str | None:
    """The beginning of a JSON text as valid JSON: first items, first characters of strings.

    It has at most `chars` characters.

    None for a text that is neither a list nor an object, is longer than is read, or has no such
    beginning.

    >>> json_head('{"rows": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12], "next": null}', 50)
    '{"rows": [1, 2, 3, 4, "… 8 more"], "next": null}'
    """
    stripped = text.strip()
    if len(text) > LONGEST or stripped[:1] + stripped[-1:] not in ("{}", "[]"):
        return None
    try:
        value = json.loads(stripped)
    except (ValueError, RecursionError):
        return None
    for items in _ITEMS:
        head = json.dumps(
            _shortened(value, items, max(20, min(400, chars // items)), 0), ensure_ascii=False
        )
        if len(head) <= chars:
            return head
    return None


def _shortened(value: Any, items: int, longest: int, depth: int) -> Any:
    if isinstance(value, str) and len(value) > longest:
        return f"{value[:longest]}… ({len(value) - longest:,} more characters)"
    if not isinstance(value, list | dict) or not value:
        return value
    if depth == DEEPEST:
        return "…"
    left_out = len(value) - items
    if isinstance(value, list):
        shown = [_shortened(item, items, longest, depth + 1) for item in value[:items]]
        return [*shown, f"… {left_out:,} more"] if left_out > 0 else shown
    first = list(value.items())[:items]
    named = {name: _shortened(item, items, longest, depth + 1) for name, item in first}
    return {**named, "…": f"{left_out:,} more"} if left_out > 0 else named
