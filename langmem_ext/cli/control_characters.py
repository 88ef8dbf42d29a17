"""Control characters: what was stored, or said by a model, reaches a terminal without those by which it could steer it."""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Final

_LEFT_BY_JSON: Final = re.compile("[\x7f-\x9f]")
"""Control characters that JSON may hold as they are."""


def printable(text: str) -> str:
    """The text with a sign for each control character but line ends and tabs; as long as it was."""
    return "".join(char if char in "\n\t" or unicodedata.category(char) != "Cc" else "�" for char in text)


def json_line(data: object) -> str:
    r"""Data as one line of JSON, in which each control character is an escape.

    >>> print(json_line({"title": "é\x9b2J"}))
    {"title": "é\u009b2J"}
    """
    return escaped(json.dumps(data, ensure_ascii=False))


def escaped(line: str) -> str:
    """JSON with an escape for each control character; the same data."""
    return _LEFT_BY_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", line)
