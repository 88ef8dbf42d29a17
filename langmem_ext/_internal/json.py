"""What is JSON and what is not: a checked copy of a value, or one error that says where in it the fault is, never what stands there."""

from __future__ import annotations

import math
from typing import Final

from pydantic import JsonValue

from langmem_ext.errors import InvalidInput

DEEPEST: Final = 200
"""Levels that a value may have: more are no data, and no reader is made for them."""

_SMALLEST, _LARGEST = -(1 << 63), (1 << 64) - 1
"""Whole numbers that a row can hold."""


def json_value(value: object, place: str, depth: int = 0) -> JsonValue:
    """A copy of a value that shares nothing with it; tuples become lists.

    Args:
        value: The value.
        place: Where it stands, for the error.
        depth: Levels above it.

    Raises:
        InvalidInput: It is no JSON: another type, a name that is no text, a number that is not finite or too large, too deep.
    """
    if depth > DEEPEST:
        raise InvalidInput(f"{place} is nested too deeply: pass at most {DEEPEST} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return plain_text(value, place)
    if isinstance(value, int) and _SMALLEST <= value <= _LARGEST:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, int | float):
        raise InvalidInput(f"{place} is a number that is not finite or needs more than 64 bits: pass it as text")
    if isinstance(value, list | tuple):
        return [json_value(item, f"{place}[{number}]", depth + 1) for number, item in enumerate(value)]
    if isinstance(value, dict):
        return json_object(value, place, depth)
    raise InvalidInput(f"{place} is no JSON but of type {type(value).__name__}: pass text, numbers, true, false, null, lists and objects")


def json_object(value: object, place: str, depth: int = 0) -> dict[str, JsonValue]:
    """`json_value` for what must be an object.

    Raises:
        InvalidInput: It is none, or something in it is no JSON.
    """
    if not isinstance(value, dict):
        raise InvalidInput(f"{place} must be a dict of names and values, not {type(value).__name__}")
    strange = next((name for name in value if not isinstance(name, str)), None)
    if strange is not None:
        raise InvalidInput(f"a name in {place} is no text but of type {type(strange).__name__}: use strings as names")
    return {plain_text(name, f"a name in {place}"): json_value(item, f"{place}[{name!r}]", depth + 1) for name, item in value.items()}


def require_shallow(value: JsonValue, place: str) -> None:
    """See that JSON is not too deep for its readers, however deep in calls of their own they stand.

    Raises:
        InvalidInput: It has more than `DEEPEST` levels.
    """
    level: list[JsonValue] = [value]
    for _ in range(DEEPEST + 1):
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())]
        if not level:
            return
    raise InvalidInput(f"{place} is nested too deeply: pass at most {DEEPEST} levels")


def plain_text(value: str, place: str) -> str:
    """A text as a plain `str`.

    Raises:
        InvalidInput: It holds half of a character (a lone surrogate), which cannot be stored.
    """
    text = str.__str__(value)
    if text.encode("utf-8", "replace").decode() != text:
        raise InvalidInput(f"{place} holds half of a character (a lone surrogate): decode it as UTF-16, or replace what is broken")
    return text
