"""What of a tool's output is text; an image, a recording or a file in it is a note of its kind and size."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

_KINDS: Final[Mapping[str, str]] = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "file": "file",
    "input_file": "file",
    "document": "document",
    "media": "media",
}
"""Types of blocks that hold or name what is no text, in LangChain's words and in those of providers."""

_INNER: Final = ("source", "image_url", "input_audio", "file")
"""Where a block keeps what it holds, if not in itself."""

_DATA: Final = ("base64", "data", "file_data", "bytes")
_PLACE: Final = ("url", "file_id", "filename", "id")
_MIME: Final = ("mime_type", "media_type", "format")

_LONGEST_PLACE: Final = 200
"""Characters of a URL that a note shows."""

_BASE64: Final = re.compile(r"(?:data:[^,]{0,200},)?[A-Za-z0-9+/_-]{512,}={0,2}")
"""A string that is no text, for blocks of kinds that nobody knows."""


@dataclass(frozen=True, slots=True)
class OutputText:
    """A tool's output as text.

    Attributes:
        text: Its text, with a note where something else stood.
        length: Characters of the whole, with what the notes stand for as it is written in the message.
        media: The blocks that notes stand for, in their order.
    """

    text: str
    length: int
    media: tuple[Mapping[str, Any], ...] = ()


def output_text(content: object) -> OutputText:
    r"""The text of a tool message's content: a string, a list of blocks, or a value that is written as JSON.

    Blocks stand on lines of their own.

    >>> output_text([{"type": "text", "text": "A chart:"}, {"type": "image", "base64": "AAAA" * 500, "mime_type": "image/png"}]).text
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
    """A value as JSON in one line; as Python writes it, where it is none."""
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def _read(block: object) -> tuple[str, int, bool]:
    """A block's text, the characters of the whole block that count, and whether the text is a note."""
    if isinstance(block, str):
        return block, len(block), False
    if not isinstance(block, Mapping):
        text = as_json(block)
        return text, len(text), False
    kind = _KINDS.get(str(block.get("type")), "")
    fields = dict(_fields(block))
    text = _plain(block, fields)
    if text is not None:
        return text, len(text), False
    if kind and (note := _note(kind, fields)):
        data = next((fields[name] for name in _DATA if name in fields), None) or fields.get("url") or ""
        return note, max(len(note), len(data)), True
    written = as_json(block)
    return as_json(_without_data(block)), len(written), False


def _fields(block: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """What a block says, whatever its provider puts it in."""
    yield from block.items()
    for name in _INNER:
        inner = block.get(name)
        if isinstance(inner, Mapping):
            yield from ((key, value) for key, value in inner.items() if key != "type")
        elif isinstance(inner, str) and name == "image_url":
            yield "url", inner


def _plain(block: Mapping[Any, Any], fields: Mapping[str, Any]) -> str | None:
    """The text of a block that is one, or of a document that holds text."""
    if isinstance(block.get("text"), str):
        return str(block["text"])
    source = block.get("source")
    if isinstance(source, Mapping) and source.get("type") == "text" and isinstance(fields.get("data"), str):
        return str(fields["data"])
    return None


def _note(kind: str, fields: Mapping[str, Any]) -> str:
    """What stands for a block: its kind, its type, and its size or its place; empty if it has neither."""
    mime = next((str(fields[name]) for name in _MIME if isinstance(fields.get(name), str)), "")
    data = next((fields[name] for name in _DATA if isinstance(fields.get(name), str | bytes) and fields[name]), None)
    url = fields.get("url")
    if data is None and isinstance(url, str) and url.startswith("data:"):
        data = url
    if isinstance(data, str) and data.startswith("data:"):
        head, _, data = data.partition(",")
        mime = mime or head.removeprefix("data:").split(";")[0]
    if data is not None:
        size = len(data) if isinstance(data, bytes) else len(data.rstrip("=")) * 3 // 4
        where = _size(size)
    else:
        place = next((str(fields[name]) for name in _PLACE if isinstance(fields.get(name), str) and fields[name]), "")
        where = place if len(place) <= _LONGEST_PLACE else f"{place[: _LONGEST_PLACE - 1]}…"
    if kind == "media":
        kind = mime.split("/")[0] or kind
    return f"[{', '.join(filter(None, (kind, mime, where)))}]" if where else ""


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
