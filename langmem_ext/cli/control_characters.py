"""Control characters are shown as signs, so that no stored text can steer a terminal."""

from __future__ import annotations

import codecs
import json
import re
import sys
from io import TextIOWrapper
from typing import Final

from langmem_ext.messages.escapes import MISLEADING, as_escape, legible

_CONTROLS: Final = {
    code: "�" for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t"
}

_LEFT_BY_JSON: Final = re.compile(f"[\x7f-\x9f{MISLEADING}]")
"""Characters that must not reach a terminal and that JSON may hold as they are."""

_ESCAPED: Final = "langmem-ext-escaped"
"""Name of the error handler that `write_all_characters` sets."""


def printable(text: str) -> str:
    """The text with a sign for each control character and an escape for each misleading one.

    Line ends and tabs stay.

    Character by character: what is shown of a piece of the text is a piece of what is shown.
    """
    return legible(text.translate(_CONTROLS))


def json_line(data: object) -> str:
    r"""Data as one line of JSON, with control and misleading characters escaped.

    >>> print(json_line({"title": "é\x9b2J"}))
    {"title": "é\u009b2J"}
    """
    return escaped(json.dumps(data, ensure_ascii=False))


def escaped(line: str) -> str:
    """JSON with an escape for each control character and each misleading one; the same data."""
    return _LEFT_BY_JSON.sub(as_escape, line)


def write_all_characters() -> None:
    """Have an escape written for each character that the encoding of the output does not have.

    The escape is that of JSON, so a line of JSON stays one.
    """
    codecs.register_error(_ESCAPED, _escape)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors=_ESCAPED)


def _escape(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2)), error.end
