"""Promise: a manifest gives back its numbers, in order, in as few runs as possible."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from langmem_ext.messages.manifest import length_of, numbers_of, ranges_of, runs_of

NUMBERS = st.lists(st.integers(0, 40), max_size=60)


@settings(max_examples=200)
@given(NUMBERS)
def test_numbers_come_back_in_order(numbers: list[int]) -> None:
    runs = runs_of(numbers)
    assert numbers_of(runs) == numbers
    assert length_of(runs) == len(numbers)


@settings(max_examples=200)
@given(NUMBERS, NUMBERS)
def test_appending_is_the_same_as_making_at_once(first: list[int], second: list[int]) -> None:
    assert runs_of(second, runs_of(first)) == runs_of([*first, *second])


@settings(max_examples=200)
@given(NUMBERS)
def test_no_two_neighbouring_runs_could_be_one(numbers: list[int]) -> None:
    ranges = list(ranges_of(runs_of(numbers)))
    assert all(start < end for start, end in ranges)
    assert all(before[1] != after[0] for before, after in zip(ranges, ranges[1:], strict=False))


def test_a_conversation_that_only_grows_is_one_run() -> None:
    assert runs_of(range(10_000)) == (0, 10_000)
