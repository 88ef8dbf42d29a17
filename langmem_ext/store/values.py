"""Values as JSON text: a value comes back as it was put, or is refused.

Numbers of any size, `NaN`, NUL characters and halves of surrogate pairs are kept; a tuple comes
back as a list, for JSON has no tuples. What JSON cannot represent (a date, an object, a key that is
not a string) is refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from langmem_ext.errors import InvalidInput

DEEPEST: Final = 200
"""How deep a value may be nested: every reader of JSON can follow so far."""

_UNUSUAL: Final = re.compile(r"\d{16}|NaN|Infinity|\\u0000|\\u[dD]")
"""What a database's JSON may refuse or round."""


def dump_value(value: object) -> tuple[str, bool]:
    """A value as JSON text, and whether both databases can read all of it as JSON.

    Raises:
        InvalidInput: It is no mapping, or holds what JSON cannot hold.
    """
    if not isinstance(value, Mapping):
        raise InvalidInput(f"a value is a dict, not {type(value).__name__}")
    plain = dict(value)
    _require_json(plain, DEEPEST)
    text = json.dumps(plain, ensure_ascii=False)
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            text = json.dumps(plain)
    return text, is_plain(text)


def is_plain(text: str) -> bool:
    """Whether both databases can read all of a JSON text as JSON."""
    return _UNUSUAL.search(text) is None


def load_value(text: str) -> dict[str, Any]:
    """The value whose JSON text this is: new objects each time."""
    value: dict[str, Any] = json.loads(text)
    return value


def _require_json(value: object, depth: int) -> None:
    if value is None or isinstance(value, str | int | float):
        return
    if depth == 0:
        raise InvalidInput(f"the value is nested deeper than {DEEPEST}: store its parts as items")
    if isinstance(value, dict):
        for key, entry in value.items():
            if not isinstance(key, str):
                kind = type(key).__name__
                raise InvalidInput(f"a value's keys are strings, not {kind}: use str(key)")
            _require_json(entry, depth - 1)
    elif isinstance(value, list | tuple):
        for entry in value:
            _require_json(entry, depth - 1)
    else:
        kind = type(value).__name__
        raise InvalidInput(f"JSON has no {kind}: store a date as isoformat(), an object as a dict")
