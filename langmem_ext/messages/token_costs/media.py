"""Blocks that hold or name media (images, recordings, files), in every provider's words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from langmem_ext.messages.blocks import MEDIA, Block, places_of, read_block

_INNER: Final = ("source", "file", "input_audio", "image_url", "video_url")
_NAMES: Final = (
    "filename",
    "file_name",
    "name",
    "title",
    "url",
    "image_url",
    "file_url",
    "file_id",
)


_ENCODED: Final = re.compile(r"(?:data:([\w.+/-]+);base64,)?([A-Za-z0-9+/_-]+)={0,2}")
_SHORTEST_ENCODED: Final = 256


def encoded_in(text: str) -> re.Match[str] | None:
    """The media type and the data, if a text is base64 alone, and too long for a word."""
    return _ENCODED.fullmatch(text) if len(text) >= _SHORTEST_ENCODED else None


@dataclass(frozen=True, slots=True)
class Medium:
    """What is known of a medium.

    Attributes:
        kind: `image`, `audio`, `video`, `file` or `document`.
        media_type: Its media type or format, in small letters, or the name of its file; empty if
            nothing says it.
        size: Bytes of its data; None if it is elsewhere.
        name: What it is called, or where it is; empty if nothing says it.
        written: Characters that its data, or its place, takes in the message.
    """

    kind: str
    media_type: str
    size: int | None
    name: str
    written: int


def medium_of(block: Block) -> Medium | None:
    """The medium that a block holds or names; None for texts, unknown kinds and empty blocks."""
    worded = any(places_of([block]))
    kind, block = read_block(block)
    if kind is None or kind.what not in MEDIA or worded or source_of(block).get("content"):
        return None
    data, media_type, name = data_of(block), media_type_of(block), name_of(block)
    if data is None and not name:
        return None
    of_type = media_type.partition("/")[0]
    general = kind.what
    return Medium(
        kind=(
            of_type
            if general in ("file", "document") and of_type in ("image", "audio", "video")
            else general
        ),
        media_type=media_type,
        size=None if data is None else size_of(data),
        name=name,
        written=len(name if data is None else data),
    )


def source_of(block: Block) -> Block:
    """Where the data of a block is: in the block, or in a field of it."""
    for name in _INNER:
        if isinstance(inner := block.get(name), Mapping):
            return inner
    return block


def data_of(block: Block) -> str | bytes | None:
    """The data of a medium; None if only a URL or an id is known."""
    source = source_of(block)
    for name in ("data", "base64", "file_data", "bytes", "url", "file_url", "image_url"):
        data = source.get(name)
        if isinstance(data, bytes | bytearray):
            return bytes(data)
        if isinstance(data, str) and data and (data.startswith("data:") or "url" not in name):
            return data
    return None


def media_type_of(block: Block) -> str:
    """A block's media type, format or file name, in lower case; empty if it has none."""
    source = source_of(block)
    for place in (source, block):
        for name in ("mime_type", "media_type", "format", "filename"):
            if isinstance(kind := place.get(name), str):
                return kind.lower()
    data = data_of(block)
    return (
        data[5:].partition(";")[0].lower()
        if isinstance(data, str) and data.startswith("data:")
        else ""
    )


def name_of(block: Block) -> str:
    """What a medium is called, or where it is, in one line; encoded data is neither."""
    names = (place.get(name) for place in (block, source_of(block)) for name in _NAMES)
    return next(
        (
            " ".join(name.split())
            for name in names
            if isinstance(name, str) and name and not name.startswith("data:")
        ),
        "",
    )


def size_of(data: str | bytes) -> int:
    """Bytes of data, of a text what its base64 holds."""
    if isinstance(data, bytes):
        return len(data)
    padding = len(data) - len(data.rstrip("="))
    return (len(data) - data.find(",", 0, 100) - 1 - padding) * 3 // 4
