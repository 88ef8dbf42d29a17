"""Ranges of numbers: joined, and what they leave out."""

from __future__ import annotations

import doctest

from hypothesis import given
from hypothesis import strategies as st

from langmem_ext.storage.prune import mark as reach
from langmem_ext.storage.prune.mark import gaps, merged

ranges = st.lists(
    st.tuples(st.integers(0, 30), st.integers(1, 6)).map(lambda one: (one[0], one[0] + one[1])),
    max_size=8,
)


def numbers(found: list[tuple[int, int]]) -> list[int]:
    return [number for start, end in found for number in range(start, end)]


@given(ranges)
def test_joined_ranges_hold_the_same_numbers_once_and_in_order(
    drawn: list[tuple[int, int]],
) -> None:
    joined = merged(drawn)
    assert numbers(joined) == sorted(set(numbers(drawn)))
    assert all(end < start for (_, end), (start, _) in zip(joined, joined[1:], strict=False))


@given(ranges, st.integers(0, 40))
def test_gaps_are_all_the_other_numbers(drawn: list[tuple[int, int]], end: int) -> None:
    joined = merged(drawn)
    assert (
        set(numbers(gaps(joined, end))) == set(range(end)) - set(numbers(joined))
        or joined[-1][1] > end
    )
    assert not set(numbers(gaps(joined, end))) & set(numbers(joined))


def test_the_examples_hold() -> None:
    assert doctest.testmod(reach).failed == 0
