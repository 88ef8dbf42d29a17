"""The text of a tool's output; media in it become notes of their kind and size."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from langmem_ext.messages.text import words_in
from langmem_ext.messages.token_costs.media import Medium, medium_of

_LONGEST_NAME: Final = 200
"""Characters of a name or URL that a note shows."""

_BASE64: Final = re.compile(r"(?:data:[^,]{0,200},)?[A-Za-z0-9+/_-]{512,}={0,2}")
"""A string that is not text, for blocks of unknown types."""


@dataclass(frozen=True, slots=True)
class OutputText:
    """A tool's output as text.

    Attributes:
        text: Its text, with a note where something else stood.
        length: Characters of the whole, with the media behind the notes as written in the message.
        media: The blocks behind the notes, in order.
    """

    text: str
    length: int
    media: tuple[Mapping[str, Any], ...] = ()


def output_text(content: object) -> OutputText:
    r"""The text of a tool message's content: a string, a list of blocks, or a value as JSON.

    Blocks are on lines of their own.

    >>> image = {"type": "image", "base64": "AAAA" * 500, "mime_type": "image/png"}
    >>> output_text([{"type": "text", "text": "A chart:"}, image]).text
    'A chart:\n[image, image/png, 1.5 kB]'
    """
    if isinstance(content, str):
        return OutputText(content, len(content))
    if not isinstance(content, list):
        text = as_json(content)
        return OutputText(text, len(text))
    texts, length, media = [], 0, []
    for block in content:
        text, whole, medium = _read(block)
        texts.append(text)
        length += whole
        media += [block] if medium else []
    return OutputText("\n".join(texts), length + max(len(texts) - 1, 0), tuple(media))


def as_json(value: object) -> str:
    """A value as JSON on one line, or as its Python `repr` if it is not JSON."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _read(block: object) -> tuple[str, int, bool]:
    """A block's text, the characters of the block that count, and whether the text is a note."""
    if not isinstance(block, Mapping):
        text = block if isinstance(block, str) else as_json(block)
        return text, len(text), False
    if (plain := words_in(block)) is not None:
        return plain, len(plain), False
    if medium := medium_of(block):
        note = _note(medium)
        return note, max(len(note), medium.written), True
    return as_json(_without_data(block)), len(as_json(block)), False


def _note(medium: Medium) -> str:
    """What replaces a medium: its kind, its name or place, its type, and its size if known."""
    name = (
        medium.name if len(medium.name) <= _LONGEST_NAME else f"{medium.name[: _LONGEST_NAME - 1]}…"
    )
    media_type = "" if medium.media_type == medium.name.lower() else medium.media_type
    size = "" if medium.size is None else _size(medium.size)
    return f"[{', '.join(filter(None, (medium.kind, name, media_type, size)))}]"


def _size(count: int) -> str:
    if count < 1_000:
        return f"{count} bytes"
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count / 1e3:,.1f} kB"


def _without_data(value: Any) -> Any:
    """A value without the long strings in it that are no text."""
    if isinstance(value, Mapping):
        return {key: _without_data(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_data(inner) for inner in value]
    if isinstance(value, bytes) or (isinstance(value, str) and _BASE64.fullmatch(value)):
        return f"[{_size(len(value))} of data]"
    return value
