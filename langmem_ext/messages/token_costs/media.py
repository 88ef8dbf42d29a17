"""Blocks that hold or name media (images, recordings, files), in every provider's words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from langmem_ext.messages.blocks import ALL_KEYS, MEDIA, TYPES, Block, Kind, places_of, read_block

_INNER: Final = ("source", "file", "input_audio", "image_url", "video_url")
_NAMES: Final = (
    "filename",
    "file_name",
    "name",
    "title",
    "url",
    "image_url",
    "file_url",
    "file_uri",
    "file_id",
)
_SAME: Final = {"image/jpg": "image/jpeg", "audio/mpeg": "audio/mp3", "audio/x-wav": "audio/wav"}
"""What providers call the types that have several names."""
_SUFFIXES: Final = {
    **{name: f"image/{name}" for name in ("png", "jpeg", "gif", "webp", "bmp", "svg", "tiff")},
    **{name: f"audio/{name}" for name in ("wav", "mp3", "ogg", "flac")},
    **{name: f"text/{name}" for name in ("csv", "html", "xml")},
    **{name: f"application/{name}" for name in ("pdf", "json", "docx", "xlsx", "pptx")},
    **{"jpg": "image/jpeg", "tif": "image/tiff", "heic": "image/heic", "txt": "text/plain"},
}
_URL: Final = re.compile(r"https?://[^/]")
_SUFFIX: Final = re.compile(r"\.(\w+)(?:[?#].*)?$")
_STORES: Final = (("file-", "CR"), ("file_", "A"), ("files/", "G"), ("https:", "G"))
"""Whose file an id names, by how it begins."""


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


class Given(NamedTuple):
    """How a medium is given: in which way (`Ways`), its data, place or id, and of which type.

    What nothing says is empty, and the way if no provider could read it.
    """

    way: str
    value: str
    media_type: str

    def suits(self, kind: Kind, letter: str, letters: str) -> bool:
        """Whether a provider takes a medium of the kind that is given so, of several that must."""
        if letter not in getattr(kind.ways, self.way, ()):
            return False
        owners = next((who for start, who in _STORES if self.value.startswith(start)), letters)
        if self.way == "id" and owners != letter and (letter not in owners or letters[1:]):
            return False
        types = TYPES["text" if self.way == "text" else kind.what].get(letter, "")
        unseen = not self.media_type and self.way in ("url", "id", "gs")
        return unseen or re.fullmatch(types, self.media_type) is not None


def given_of(block: Block, keys: Sequence[str]) -> Given:
    """How a block of a medium gives it, under one of the keys."""
    source, said = source_of(block), media_type_of(block)
    media_type = said if "/" in said else _SUFFIXES.get(said, "")
    form = source.get("type") if source is not block else block.get("source_type")
    if form in ("text", "content") or isinstance(block.get("text"), str):
        apart = source is not block
        told = apart == ("source.data" in keys) and (form or block.get("type") != "file")
        return Given("text" if told else "", "", media_type)
    outdated = ("data", "id") if form and "base64" in keys else ()
    found = ((key, _at(block, key)) for key in (*keys, *outdated))
    key, value = next(((key, at) for key, at in found if isinstance(at, str) and at), ("", ""))
    if value.startswith("data:"):
        start = value[5:200].partition(";base64,")
        return Given("uri" if start[1] else "", value, start[0].lower())
    if key.endswith(("data", "base64")):
        return Given("data", value, media_type)
    way = "gs" if value.startswith("gs://") else "url" if _URL.match(value) else ""
    way = "id" if key.endswith("id") else way
    return Given(way, value, media_type or _type_by(name_of(block)))


def _at(block: Block, key: str) -> Any:
    outer, _, inner = key.rpartition(".")
    holder = block.get(outer) if outer else block
    return holder.get(inner) if isinstance(holder, Mapping) else None


def _type_by(name: str) -> str:
    suffix = _SUFFIX.search(name)
    return _SUFFIXES.get(suffix[1].lower(), "") if suffix else ""


def in_plain_form(block: Block) -> dict[str, str] | None:
    """A medium in LangChain's own form, which every integration translates; None if it has none."""
    if (medium := medium_of(block)) is None:
        return None
    fields = read_block(block)[1]
    kind = "file" if medium.kind == "document" else medium.kind
    way, value, media_type = given_of(fields, ALL_KEYS)
    media_type = media_type.partition(";")[0] or _type_by(name_of(fields))
    plain = {"type": kind, "mime_type": _SAME.get(media_type, media_type)}
    if way not in ("data", "uri"):
        plain["file_id" if way == "id" else "url"] = value
    else:
        plain["base64"] = value[value.find(",", 0, 200) + 1 :]
        if kind == "file":
            plain["filename"] = name_of(fields) or "document.pdf"
            plain["mime_type"] = plain["mime_type"] or "application/pdf"
    return {key: value for key, value in plain.items() if value}


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
        data[5:200].partition(";")[0].lower()
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
