"""What each kind of content block costs a model, by its `type`: LangChain's and providers'.

What is sent as data (an image, a recording, a file in base64) is never counted as its characters.
Where a provider says what a medium costs, that is used, and of several the dearest; where only the
size of the data is known, what such data usually holds is.

| data | tokens |
|---|---|
| image | 1,600, the most of any large provider for an ordinary size; 85 with `detail` `low` |
| audio | 32 a second: of PCM and WAV, 32 kB; of MP3, 16 kB; of others, 8 kB |
| video | 300 a second of 125 kB |
| PDF and other files | 2,500 a page of 50 kB, one page at least |
| any of them behind a URL or an id | as much as one minute, or four pages |
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias

from langmem_ext.messages.blocks import MEDIA, Block, read_block
from langmem_ext.messages.token_costs.media import data_of, media_type_of, size_of, source_of

CountText: TypeAlias = Callable[[str], int]

IMAGE: Final = 1_600
SMALL_IMAGE: Final = 85
PAGE: Final = 2_500
PAGE_BYTES: Final = 50_000
AUDIO_SECOND: Final = 32
VIDEO_SECOND: Final = 300
VIDEO_SECOND_BYTES: Final = 125_000
UNSEEN_SECONDS: Final = 60
UNSEEN_PAGES: Final = 4

SECRET_LETTERS: Final = 4
"""Letters of an encrypted text (redacted thinking, found pages) to a token of what the provider
reads in it."""

_AUDIO_BYTES: Final = {"wav": 32_000, "pcm": 32_000, "l16": 32_000, "mp3": 16_000, "mpeg": 16_000}
_OTHER_AUDIO_BYTES: Final = 8_000

_BASE64: Final = re.compile(r"(?:data:[\w.+-]+/[\w.+-]+;base64,)?[A-Za-z0-9+/_-]{256,}={0,2}")

_BOOKKEEPING: Final = frozenset(
    {
        "type",
        "id",
        "index",
        "signature",
        "cache_control",
        "extras",
        "annotations",
        "citations",
        "status",
        "phase",
    }
)
"""Fields of a block that a model is not shown, or that cost next to nothing."""


def tokens_of_block(block: object, count: CountText, call_ids: Collection[str] = ()) -> int:
    """About how many tokens one block of a message's content costs.

    Args:
        block: The block; a string is a text.
        count: Counts a text.
        call_ids: Ids of the message's tool calls, which are counted where they are: a block that
            says the same again costs nothing.
    """
    if isinstance(block, str):
        return count(block)
    if not isinstance(block, Mapping):
        return 0 if block is None else count(str(block))
    kind, fields = read_block(block)
    if kind is None:
        return _unknown(fields, count)
    name = fields.get(kind.id)
    if kind.what == "piece" or (kind.what == "call" and isinstance(name, str) and name in call_ids):
        return 0
    if kind.what in MEDIA:
        return _MEDIA.get(kind.what, _file)(fields, count)
    if not kind.words and not kind.secret:
        return 0 if kind.what == "mark" else _unknown(fields, count)
    hidden = fields.get(kind.secret)
    tokens = -(-len(hidden) // SECRET_LETTERS) if isinstance(hidden, str) else 0
    return tokens + sum(
        tokens_of_content(fields[key], count) for key in kind.words if fields.get(key)
    )


def tokens_of_content(content: object, count: CountText, call_ids: Collection[str] = ()) -> int:
    """About how many tokens a message's content costs: a text, a list of blocks, or a block."""
    if isinstance(content, list | tuple):
        return sum(tokens_of_block(block, count, call_ids) for block in content)
    return tokens_of_block(content, count, call_ids)


# -- media: one function for each way of counting --------------------------------------------------


def _image(block: Block, count: CountText) -> int:
    inner = block.get("image_url")
    detail = inner.get("detail") if isinstance(inner, Mapping) else block.get("detail")
    return SMALL_IMAGE if detail == "low" else IMAGE


def _audio(block: Block, count: CountText) -> int:
    data = data_of(block)
    if data is None:
        return AUDIO_SECOND * UNSEEN_SECONDS
    kind = media_type_of(block)
    per_second = next(
        (value for name, value in _AUDIO_BYTES.items() if name in kind), _OTHER_AUDIO_BYTES
    )
    return AUDIO_SECOND * max(1, -(-size_of(data) // per_second))


def _video(block: Block, count: CountText) -> int:
    data = data_of(block)
    return VIDEO_SECOND * (
        UNSEEN_SECONDS if data is None else max(1, -(-size_of(data) // VIDEO_SECOND_BYTES))
    )


def _file(block: Block, count: CountText) -> int:
    """A document: its pages and other fields; a text or another medium is counted as that."""
    source, kind = source_of(block), media_type_of(block)
    tokens = sum(
        count(block[name]) for name in ("title", "context") if isinstance(block.get(name), str)
    )
    if source.get("content"):
        return tokens + tokens_of_content(source["content"], count)
    if source.get("type") == "text" or isinstance(source.get("text"), str):
        return tokens + count(str(source.get("text") or source.get("data") or ""))
    for medium, row in (("image/", _image), ("audio/", _audio), ("video/", _video)):
        if kind.startswith(medium):
            return tokens + row(block, count)
    data = data_of(block)
    if data is not None and (kind.startswith("text/") or kind == "application/json"):
        return tokens + -(-size_of(data) // 3)
    return tokens + PAGE * (
        UNSEEN_PAGES if data is None else max(1, -(-size_of(data) // PAGE_BYTES))
    )


def _unknown(block: Block, count: CountText) -> int:
    """A block of a kind that is not in the table: its JSON, but for what is data and not text."""
    data: list[int] = []
    shown = _readable(
        {name: value for name, value in block.items() if name not in _BOOKKEEPING}, data
    )
    return count(json.dumps(shown, ensure_ascii=False, default=str)) + sum(data)


_MEDIA: Final[Mapping[str, Callable[[Block, CountText], int]]] = {
    "image": _image,
    "audio": _audio,
    "video": _video,
}


# -- what of a block is data -----------------------------------------------------------------------


def _readable(value: object, data: list[int]) -> object:
    """A value without the data in it, whose tokens are added to `data`."""
    if isinstance(value, Mapping):
        return {str(name): _readable(inner, data) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_readable(inner, data) for inner in value]
    if isinstance(value, bytes | bytearray) or (
        isinstance(value, str) and _BASE64.fullmatch(value)
    ):
        data.append(
            -(-size_of(value if isinstance(value, str) else bytes(value)) * PAGE // PAGE_BYTES)
        )
        return ""
    return value
