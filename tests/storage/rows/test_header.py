"""Promise: a checkpoint's header is exact; LangGraph's versions and times take few bytes."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.checkpoint.base.id import UUID, uuid6
from langgraph.checkpoint.memory import InMemorySaver

from langmem_ext.messages.manifest import runs_of
from langmem_ext.messages.packed import pack, unpack
from langmem_ext.storage.rows.checkpoint import (
    _ENCODED,
    MINOR_DIGITS,
    Header,
    ValueRef,
    _decode_version,
    _encode_version,
    decode_header,
    decode_values,
    encode_header,
    entry_of,
    next_version,
)
from langmem_ext.storage.rows.ids import encode_id

NAMES = st.text(max_size=8)
VERSIONS = st.one_of(
    st.builds(
        lambda major, minor: f"{major:032}.{minor / MINOR_DIGITS:016}",
        st.integers(0, 2000),
        st.integers(0, MINOR_DIGITS - 1),
    ),
    st.builds(
        lambda major, minor: f"{major:032}.{minor:016}",
        st.integers(0, 2000),
        st.floats(0, 1, exclude_max=True),
    ),
    st.builds(
        lambda major, minor: f"{major:032}.{minor:.16f}",
        st.integers(0, 2000),
        st.floats(0, 1, exclude_max=True),
    ),
    st.integers(0, 10_000),
    st.floats(0, 1000),
    st.text(max_size=40),
)
ONE_KIND = st.sampled_from(
    [
        VERSIONS,
        st.integers(0, 9),
        st.builds(lambda n: next_version(None, n), st.integers(0, MINOR_DIGITS - 1)),
    ]
)
REFS = st.builds(
    ValueRef,
    body=st.one_of(st.none(), st.binary(max_size=8)),
    runs=st.lists(st.integers(0, 2**20), max_size=3).map(
        lambda starts: tuple(n for start in starts for n in (start, start + 10))
    ),
).flatmap(
    lambda ref: st.lists(st.integers(0, 9), max_size=3).map(
        lambda bare: replace(ref, nameless=runs_of(sorted(set(bare))) if ref.runs else ())
    )
)
REFS |= st.builds(ValueRef, row=st.integers(0, 2**31))
TIMES = st.one_of(
    st.datetimes(
        timezones=st.just(UTC), min_value=datetime(1990, 1, 1), max_value=datetime(2200, 1, 1)
    ).map(datetime.isoformat),
    st.dates().map(lambda day: f"{day}+00:00"),  # to Python, a date and a time without a zone
    st.text(max_size=10),
)


UUID6S = st.integers(0, 2**128 - 1).map(lambda number: str(UUID(int=number, version=6)))
IDS = st.one_of(UUID6S, st.uuids().map(str), st.text("abc1", min_size=1))


@st.composite
def headers(draw: st.DrawFn) -> Header:
    versions = draw(ONE_KIND)
    table = st.dictionaries(NAMES, versions, max_size=6)
    return Header(
        v=draw(st.integers(1, 9)),
        ts=draw(TIMES),
        versions=draw(table),
        seen=draw(st.dictionaries(NAMES, table, max_size=4)),
        updated=draw(st.one_of(st.none(), st.lists(NAMES, max_size=4))),
        entries=draw(st.dictionaries(NAMES, REFS.map(entry_of), max_size=5)),
        extra=draw(st.one_of(st.none(), st.binary(max_size=5))),
        details=draw(st.one_of(st.none(), st.binary(max_size=5))),
    )


def roundtrip(header: Header, checkpoint: bytes) -> tuple[Header, int]:
    form, body = encode_header(header, checkpoint)
    return decode_header(form, unpack(pack(body)), checkpoint), len(pack(body))


@settings(max_examples=200)
@given(headers(), IDS.map(encode_id))
def test_a_header_comes_back_to_the_letter(header: Header, checkpoint: bytes) -> None:
    back, _ = roundtrip(header, checkpoint)
    assert _exact(back) == _exact(header)


def _exact(header: Header) -> Any:
    """With the types of versions told apart, and with the order of keys."""
    return (
        header.v,
        header.ts,
        [(name, type(version), version) for name, version in header.versions.items()],
        [
            (node, [(name, type(version), version) for name, version in seen.items()])
            for node, seen in header.seen.items()
        ],
        header.updated,
        list(header.values.items()),
        header.extra,
        header.details,
    )


def test_versions_of_every_saver_and_a_real_time_take_few_bytes() -> None:
    chance = random.Random(7)
    ours = next_version(
        next_version(None, chance.randrange(MINOR_DIGITS)), chance.randrange(MINOR_DIGITS)
    )
    memory = InMemorySaver().get_next_version(None, None)
    server = f"{3:032}.{chance.random():.16f}"
    checkpoint = str(uuid6())
    for version, limit in ((ours, 17), (memory, 23), (server, 23)):
        header = Header(
            4,
            datetime.now(UTC).isoformat(),
            {"messages": version},
            {"node": {"messages": version}},
            ["messages"],
        )
        back, size = roundtrip(header, encode_id(checkpoint))
        assert back.versions == {"messages": version}
        assert size <= limit


@given(st.integers(0, MINOR_DIGITS - 1), st.integers(0, 1 << 31))
def test_a_version_that_was_made_here_is_known_as_it_would_be_taken_apart(
    minor: int, major: int
) -> None:
    version = next_version(f"{major:032}.0000000000000000", minor)
    assert _ENCODED[version] == _encode_version(version) == (major + 1) * MINOR_DIGITS + minor
    assert _decode_version(_ENCODED[version]) == version


@given(st.integers(0, MINOR_DIGITS - 1), st.integers(0, MINOR_DIGITS - 1))
def test_the_next_version_is_higher_and_of_the_same_kind(one: int, other: int) -> None:
    first = next_version(None, one)
    second = next_version(first, other)
    assert isinstance(first, str)
    assert isinstance(second, str)
    assert second > first
    assert next_version(3, one) == 4
    assert next_version(1.5, one) == 2.5
    assert next_version(InMemorySaver().get_next_version(first, None), other) > second  # type: ignore[operator]  # a string from a string


@pytest.mark.parametrize(
    "entry",
    [
        [True],
        [[0, True]],
        [1.0],
        [None, 0, 1.0],
        [None, False, 1],
        [None, 0, 3, [0, True]],
        [{}, 0, 1],
        ["0"],
        [],
    ],
)
def test_a_reference_by_what_is_taken_for_a_number_is_none(entry: list[Any]) -> None:
    with pytest.raises((ValueError, TypeError)):
        decode_values([entry])
