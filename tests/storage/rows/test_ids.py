"""Promise: ids are exact, sort as their text does, and never share their bytes."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from langmem_ext import InvalidInput
from langmem_ext.storage.rows.ids import decode_id, encode_id

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)
UUIDS = st.uuids().map(str)
ANY = st.one_of(
    TEXT, UUIDS, UUIDS.map(str.upper), st.text("0123456789abcdef-", min_size=14, max_size=16)
)


@settings(max_examples=200)
@given(ANY)
def test_an_id_comes_back(text: str) -> None:
    assert decode_id(encode_id(text)) == text


@settings(max_examples=200)
@given(ANY, ANY)
def test_two_ids_never_share_their_bytes(one: str, other: str) -> None:
    assert (encode_id(one) == encode_id(other)) == (one == other)


@settings(max_examples=200)
@given(UUIDS, UUIDS)
def test_uuids_sort_as_their_text(one: str, other: str) -> None:
    assert (encode_id(one) < encode_id(other)) == (one < other)
    assert len(encode_id(one)) == 16


@settings(max_examples=200)
@given(TEXT, TEXT)
def test_other_ids_sort_as_their_text(one: str, other: str) -> None:
    assert (encode_id(one) < encode_id(other)) == (one < other)


@settings(max_examples=200)
@given(
    st.uuids(version=4).map(lambda drawn: f"1{str(drawn)[1:]}"),
    st.text("0123456789abcdefxyz", min_size=1, max_size=13),
)
def test_a_uuid_of_today_sorts_before_every_other_id_of_letters_and_digits(
    one: str, other: str
) -> None:
    assert encode_id(one) < encode_id(other)


def test_only_a_canonical_uuid_is_taken_for_one() -> None:
    text = "1F1E6000-0000-6000-8000-000000000001"
    assert encode_id(text) != UUID(text).bytes
    assert decode_id(encode_id(text)) == text


def test_a_zero_character_is_refused() -> None:
    with pytest.raises(InvalidInput, match="NUL character"):
        encode_id("a\0b")
