"""The fields of an exported line: columns to JSON and back.

Reading any content of a file yields a column or an error.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from datetime import datetime
from math import isfinite
from typing import Any, Final, TypeAlias, TypeVar

from langmem_ext.messages.snapshot import CODE_OF_TYPE
from langmem_ext.storage.rows.clock import moment_of, unix_ms
from langmem_ext.storage.rows.compression import MARK
from langmem_ext.storage.rows.ids import decode_id, encode_id, is_behind

T = TypeVar("T")
Line: TypeAlias = dict[str, Any]

SHOWN_DEPTH: Final = 64
"""How deep people are shown a value that is nested."""

_BIGGEST: Final = (1 << 63) - 1

_HIGHEST_NUMBER: Final = (1 << 31) - 1
"""The highest number of a row that each database can hold: PostgreSQL has four bytes for it."""


def dumps(line: Mapping[str, Any]) -> str:
    """A line without its end; what is None is left out."""
    kept = {name: value for name, value in line.items() if value is not None}
    text = json.dumps(kept, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # No file can hold half of a pair of surrogates; as an escape it can.
    return text if _is_sound(text) else json.dumps(kept, separators=(",", ":"), allow_nan=False)


def take(line: Line, name: str, read: Callable[[Any], T]) -> T:
    """A field that must be there.

    Raises:
        ValueError: It is not, or cannot be read.
    """
    if line.get(name) is None:
        raise ValueError(f"{name!r} is missing")
    return read(line[name])


def may(line: Line, name: str, read: Callable[[Any], T]) -> T | None:
    """A field that may be missing.

    Raises:
        ValueError: It cannot be read.
    """
    return None if line.get(name) is None else read(line[name])


def short(value: object) -> str:
    """A value for a message about it."""
    shown = repr(value)
    return shown if len(shown) <= 40 else f"{shown[:40]}…"


def shown(value: Any, depth: int = 0) -> Any:
    """A value of a message as JSON, for people."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    if depth < SHOWN_DEPTH and isinstance(value, dict):
        return {str(key): shown(item, depth + 1) for key, item in value.items()}
    if depth < SHOWN_DEPTH and isinstance(value, list):
        return [shown(item, depth + 1) for item in value]
    return "…"


# -- columns as fields -----------------------------------------------------------------------------


def time_field(milliseconds: int) -> str:
    """A time in Unix milliseconds."""
    return moment_of(milliseconds).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def second_field(seconds: int) -> str:
    """A time in Unix seconds."""
    return moment_of(seconds * 1000).isoformat(timespec="seconds").replace("+00:00", "Z")


def bytes_field(body: bytes) -> str:
    """Bytes."""
    return b64encode(body).decode()


def id_field(raw: bytes) -> str:
    """An id.

    Raises:
        ValueError: It is invalid.
    """
    text = decode_id(raw)
    if encode_id(text) != raw:
        raise ValueError("an id is invalid")
    return text


# -- fields as columns: each raises ValueError if the field is invalid -----------------------------


def number_of(value: Any) -> int:
    """The number of a row."""
    return _integer(value, 0, _HIGHEST_NUMBER)


def counter_of(value: Any) -> int:
    """The number that a table's next row gets."""
    return _integer(value, 0, _HIGHEST_NUMBER)


def count_of(value: Any) -> int:
    """A count."""
    return _integer(value, 0, _BIGGEST)


def step_of(value: Any) -> int:
    """A step: some are negative."""
    return _integer(value, -_BIGGEST, _BIGGEST)


def _integer(value: Any, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise ValueError(f"{short(value)} is not a valid number here")
    return value


def text_of(value: Any) -> str:
    """A text."""
    if type(value) is not str or not _is_sound(value):
        raise ValueError(f"{short(value)} is not text")
    return value


def name_of(value: Any) -> str:
    """A name: a text that is not empty."""
    text = text_of(value)
    if not text or "\0" in text:
        raise ValueError(f"{short(value)} is not a name")
    return text


def id_of(value: Any) -> bytes:
    """An id."""
    if type(value) is not str:
        raise ValueError(f"{short(value)} is not an id")
    return encode_id(value)


def key_of(value: Any) -> bytes:
    """The key of a checkpoint whose id is another."""
    key = bytes_of(value)
    if not is_behind(key):
        raise ValueError(f"{short(value)} is not a checkpoint's key")
    return key


def bytes_of(value: Any) -> bytes:
    """Bytes; none of them compressed, so that no line is larger than it looks."""
    if type(value) is not str:
        raise ValueError(f"{short(value)} is not base64")
    body = b64decode(value, validate=True)
    if body[:1] == MARK:
        raise ValueError("an export has no compressed values")
    return body


def time_of(value: Any) -> int:
    """A time, in Unix milliseconds."""
    if type(value) is not str:
        raise ValueError(f"{short(value)} is not a time")
    moment = datetime.fromisoformat(value)
    if moment.tzinfo is None:
        raise ValueError(f"{short(value)} has no time zone")
    return unix_ms(moment)


def second_of(value: Any) -> int:
    """A time, in Unix seconds."""
    return time_of(value) // 1000


def role_of(value: Any) -> int:
    """The code of a message's class."""
    if type(value) is not str or value not in CODE_OF_TYPE:
        raise ValueError(f"{short(value)} is not a role")
    return CODE_OF_TYPE[value]


def _is_sound(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
