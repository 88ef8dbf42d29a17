"""Promises of media: images, recordings and files are recognised in every provider's words."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langmem_ext.messages.text import words_in
from langmem_ext.messages.token_costs.media import Medium, medium_of, size_of


@pytest.mark.parametrize(
    ("block", "medium"),
    [
        (
            {"type": "image", "base64": "AAAA", "mime_type": "image/png"},
            Medium("image", "image/png", 3, "", 4),
        ),
        (
            {"type": "image", "source_type": "base64", "data": "AAAA", "mime_type": "image/gif"},
            Medium("image", "image/gif", 3, "", 4),
        ),
        (
            {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,AAAA"}},
            Medium("image", "image/jpeg", 3, "", 27),
        ),
        (
            {"type": "image_url", "image_url": "https://x/y.png"},
            Medium("image", "", None, "https://x/y.png", 15),
        ),
        (
            {"type": "input_image", "image_url": "data:image/png;base64,AA=="},
            Medium("image", "image/png", 1, "", 26),
        ),
        (
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "WAV"}},
            Medium("audio", "wav", 3, "", 4),
        ),
        (
            {
                "type": "image",
                "source": {"type": "base64", "media_type": "image/webp", "data": "AAA="},
            },
            Medium("image", "image/webp", 2, "", 4),
        ),
        (
            {"type": "document", "source": {"type": "url", "url": "https://x/y.pdf"}},
            Medium("document", "", None, "https://x/y.pdf", 15),
        ),
        (
            {
                "type": "file",
                "file": {"filename": "A.pdf", "file_data": "data:application/pdf;base64,AAAA"},
            },
            Medium("file", "a.pdf", 3, "A.pdf", 32),
        ),
        ({"type": "file", "file_id": "file-1"}, Medium("file", "", None, "file-1", 6)),
        (
            {"type": "media", "mime_type": "video/mp4", "data": b"1234"},
            Medium("video", "video/mp4", 4, "", 4),
        ),
        (
            {"image": {"format": "png", "source": {"bytes": b"1234"}}},
            Medium("image", "png", 4, "", 4),
        ),
        (
            {"type": "file", "mime_type": "audio/mp3", "url": "https://x/\ny"},
            Medium("audio", "audio/mp3", None, "https://x/ y", 12),
        ),
    ],
)
def test_a_medium_is_known_whoever_words_it(block: dict[str, Any], medium: Medium) -> None:
    assert medium_of(block) == medium


@pytest.mark.parametrize(
    "block",
    [
        {"type": "text", "text": "words"},
        {"type": "text-plain", "text": "words", "mime_type": "text/plain"},
        {
            "type": "document",
            "source": {"type": "text", "media_type": "text/plain", "data": "words"},
        },
        {"text": "words"},
    ],
)
def test_a_text_is_none_whatever_holds_it(block: dict[str, Any]) -> None:
    assert medium_of(block) is None
    assert words_in(block) == "words"


@pytest.mark.parametrize(
    "block",
    [
        {"type": "image"},
        {"type": "file", "base64": ""},
        {"type": "json", "data": "AAAA"},
        {},
        {"image": None},
    ],
)
def test_what_holds_nothing_or_is_unknown_is_none(block: dict[str, Any]) -> None:
    assert medium_of(block) is None
    assert words_in(block) is None


@given(data=st.binary(max_size=300))
def test_the_size_is_that_of_what_is_encoded(data: bytes) -> None:
    encoded = base64.b64encode(data).decode()
    assert (
        size_of(data)
        == size_of(encoded)
        == size_of(f"data:image/png;base64,{encoded}")
        == len(data)
    )
