"""Checks JSON values: returns a copy, or raises one error with the fault's place, not its value.

It also converts values of any kind to JSON, for readers in another language.
"""

from __future__ import annotations

import math
from typing import Any, Final

from pydantic import BaseModel, JsonValue
from pydantic_core import PydanticSerializationError, to_json, to_jsonable_python

from langmem_ext.errors import InvalidInput

DEEPEST: Final = 200
"""Levels that a value may have: more are no data, and no reader is made for them."""

_SMALLEST, _LARGEST = -(1 << 63), (1 << 64) - 1
"""Whole numbers that a row can hold."""


def json_value(value: object, place: str, depth: int = 0) -> JsonValue:
    """A copy of a value that shares nothing with it; tuples become lists.

    Args:
        value: The value.
        place: Where it is, for the error.
        depth: Levels above it.

    Raises:
        InvalidInput: It is not JSON: another type, a name that is not text, a number that is not
            finite or too large, too deep.
    """
    if depth > DEEPEST:
        raise InvalidInput(f"{place} is nested too deeply: use at most {DEEPEST} levels")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return plain_text(value, place)
    if isinstance(value, int) and _SMALLEST <= value <= _LARGEST:
        return int(value)
    if isinstance(value, float) and math.isfinite(value):
        return float(value)
    if isinstance(value, int | float):
        raise InvalidInput(f"{place} is not a finite number of at most 64 bits: pass it as text")
    if isinstance(value, list | tuple):
        return [
            json_value(item, f"{place}[{number}]", depth + 1) for number, item in enumerate(value)
        ]
    if isinstance(value, dict):
        return json_object(value, place, depth)
    raise InvalidInput(
        f"{place} has the type {type(value).__name__}, which is not JSON: use text, numbers, true,"
        " false, null, lists and objects"
    )


def json_object(value: object, place: str, depth: int = 0) -> dict[str, JsonValue]:
    """`json_value` for what must be an object.

    Raises:
        InvalidInput: It is invalid, or something in it is not JSON.
    """
    if not isinstance(value, dict):
        raise InvalidInput(
            f"{place} must be a dict of names and values, not {type(value).__name__}"
        )
    strange = next((name for name in value if not isinstance(name, str)), None)
    if strange is not None:
        raise InvalidInput(
            f"a name in {place} has the type {type(strange).__name__}: use strings as names"
        )
    return {
        plain_text(name, f"a name in {place}"): json_value(item, f"{place}[{name!r}]", depth + 1)
        for name, item in value.items()
    }


def require_shallow(value: JsonValue, place: str) -> None:
    """Require that JSON is not too deep for its readers, however deep their own calls are.

    Raises:
        InvalidInput: It has more than `DEEPEST` levels.
    """
    level: list[JsonValue] = [value]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for part in level
            for inner in (
                part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
            )
        ]
        if not level:
            return
    raise InvalidInput(f"{place} is nested too deeply: use at most {DEEPEST} levels")


def plain_text(value: str, place: str) -> str:
    """A text as a plain `str`.

    Raises:
        InvalidInput: It holds half of a character (a lone surrogate), which cannot be stored.
    """
    text = str.__str__(value)
    if text.encode("utf-8", "replace").decode() != text:
        raise InvalidInput(
            f"{place} contains a lone surrogate (half of a character): decode it as UTF-16, or"
            " replace it"
        )
    return text


def require_whole(value: object, place: str) -> None:
    """Require that no text in a value, and no name, holds half of a character.

    Raises:
        InvalidInput: One does.
    """
    left, seen = [value], set[int]()
    while left:
        part = left.pop()
        if isinstance(part, str):
            if not part.isascii():
                plain_text(part, place)
        elif isinstance(part, dict | list | tuple | set | frozenset) and id(part) not in seen:
            seen.add(id(part))
            left += part
            left += part.values() if isinstance(part, dict) else ()


_AS_JSON: Final[dict[str, Any]] = {"inf_nan_mode": "null", "bytes_mode": "base64"}


def json_bytes(value: object) -> bytes:
    """Any value as JSON: messages and models by their fields, other objects by their class."""
    try:
        return to_json(value, fallback=_as_data, **_AS_JSON)
    except (PydanticSerializationError, UnicodeEncodeError):  # half of a character in a text
        return to_json(whole_characters(jsonable(value)), **_AS_JSON)


def jsonable(value: object) -> Any:
    """The Python value of `json_bytes`."""
    try:
        return to_jsonable_python(value, fallback=_as_data, **_AS_JSON)
    except UnicodeEncodeError:  # half of a character in a name
        return to_jsonable_python(whole_characters(value), fallback=_as_data, **_AS_JSON)


def _as_data(value: Any) -> Any:
    if isinstance(value, BaseException):
        return {"error": type(value).__name__, "message": str(value)}
    if not isinstance(value, type) and callable(dump := getattr(value, "model_dump", None)):
        return dump()
    return f"<{type(value).__qualname__}>"


def whole_characters(value: Any) -> Any:
    """A value with a question mark for each half of a character."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list | tuple):
        return [whole_characters(item) for item in value]
    if isinstance(value, dict):
        return {whole_characters(name): whole_characters(item) for name, item in value.items()}
    return whole_characters(value.model_dump()) if isinstance(value, BaseModel) else value
