"""A row's check detects changes of columns, types, place and thread, in four bytes."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langmem_ext.storage.rows import checksum as checks

columns = st.tuples(
    st.integers(0, 1 << 20),
    st.one_of(
        st.none(),
        st.binary(max_size=20),
        st.text(max_size=20),
        st.integers(-(1 << 63), (1 << 63) - 1),
        st.floats(allow_nan=False),
    ),
    st.binary(max_size=200),
)
THREAD = 7
ITEM: tuple[Any, ...] = (
    THREAD << 32 | 5,
    b"id",
    1,
    None,
    "a text",
    None,
    1_700_000_000,
    b"\x80",
    3,
)


@given(row=columns, bit=st.integers(0), thread=st.integers(1, 1 << 20))
def test_a_flipped_bit_never_matches(row: tuple[Any, ...], bit: int, thread: int) -> None:
    body = bytearray(row[2] or b"x")
    before = checks.check_of(thread, *row[:2], bytes(body))
    body[bit // 8 % len(body)] ^= 1 << bit % 8
    assert checks.check_of(thread, *row[:2], bytes(body)) != before


@given(row=columns, one=st.integers(1, (1 << 63) - 1), other=st.integers(1, (1 << 63) - 1))
def test_a_copys_check_is_its_originals_and_the_difference_of_their_threads(
    row: tuple[Any, ...], one: int, other: int
) -> None:
    assert checks.check_of(other, *row) == checks.moved(checks.check_of(one, *row), other - one)


@pytest.mark.parametrize(
    "pair", list(combinations([1, 1.0, "1", b"1", None, b"", "", 0], 2)), ids=str
)
def test_what_looks_alike_is_told_apart(pair: tuple[Any, Any]) -> None:
    one, other = pair
    assert checks.check_of(1, 0, one) != checks.check_of(1, 0, other)
    assert checks.check_of(1, one, "") != checks.check_of(1, other, "")


@pytest.mark.parametrize("position", range(len(ITEM)))
def test_every_column_of_an_item_counts_and_its_number(position: int) -> None:
    for value in (THREAD << 32 | 4, b"other", "other", 2):
        changed = (*ITEM[:position], value, *ITEM[position + 1 :])
        if type(changed[0]) is int and changed != ITEM:
            assert checks.item_check(THREAD, changed) != checks.item_check(THREAD, ITEM)


def test_an_items_check_is_alike_by_its_key_and_by_its_number_and_another_in_another_thread() -> (
    None
):
    assert checks.item_check(THREAD, ITEM) == checks.item_check(THREAD, (5, *ITEM[1:]))
    assert checks.item_check(THREAD, ITEM) != checks.item_check(THREAD - 1, ITEM)


def test_items_that_have_changed_are_told_from_those_that_have_not() -> None:
    rows = [(THREAD << 32 | number, *ITEM[1:]) for number in range(100)]
    sealed = [(*row, checks.item_check(THREAD, row)) for row in rows]
    assert checks.changed_items(sealed, THREAD) == set()
    assert checks.changed_items(sealed, THREAD - 1) == {row[0] for row in rows}
    sealed[50] = (*sealed[50][:4], "another text", *sealed[50][5:])
    assert checks.changed_items(sealed, THREAD) == {sealed[50][0]}


def test_a_check_needs_four_bytes_at_most() -> None:
    assert all(
        -(1 << 31) <= checks.check_of(thread, number) < (1 << 31)
        for thread in (1, (1 << 63) - 1)
        for number in range(10_000)
    )
