"""Characters that people must not be shown as they are: each is shown as its escape.

An override or an isolate (U+202A to U+202E, U+2066 to U+2069) turns the letters behind it around,
so a name or an id reads as another one. Half of a surrogate pair cannot be written to any file.
Hebrew and Arabic need none of them: letters and the marks U+200E, U+200F and U+061C stay as they
are; a mark does no more than a letter of its script.
"""

from __future__ import annotations

import re
from typing import Final

MISLEADING: Final = "\u202a-\u202e\u2066-\u2069\ud800-\udfff"
"""These characters, as a class in a pattern names them."""

_MISLEADING: Final = re.compile(f"[{MISLEADING}]")


def as_escape(match: re.Match[str]) -> str:
    """A character of four hexadecimal digits as Python and JSON write it."""
    return f"\\u{ord(match[0]):04x}"


def legible(text: str) -> str:
    r"""The text with an escape for each misleading character.

    >>> hebrew = "\u05e9\u05dc\u05d5\u05dd"
    >>> legible("invoice\u202efdp.exe"), legible(hebrew) == hebrew
    ('invoice\\u202efdp.exe', True)
    """
    return _MISLEADING.sub(as_escape, text)
