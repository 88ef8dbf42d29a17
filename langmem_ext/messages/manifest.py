"""Manifests: which items of a thread, in which order, make up a list of messages.

A manifest is a flat tuple of runs, `(from, to, from, to, …)`, each a half-open range of item numbers. A conversation that only grows is one
run, whatever its length; removing or replacing a message splits a run; dropping a prefix moves one number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

Runs: TypeAlias = tuple[int, ...]

NUMBERS: Final = 1 << 32
"""The numbers of a thread's items are below this."""

LONGEST: Final = 1 << 24
"""Messages that a list may have: a forged manifest must not fill the memory."""


def runs_of(numbers: Iterable[int], runs: Sequence[int] = ()) -> Runs:
    """The shortest runs that give `numbers` in their order, appended to `runs`.

    >>> runs_of([0, 1, 2, 5, 6, 4])
    (0, 3, 5, 7, 4, 5)
    """
    flat = list(runs)
    for number in numbers:
        if flat and flat[-1] == number:
            flat[-1] = number + 1
        else:
            flat += (number, number + 1)
    return tuple(flat)


def numbers_of(runs: Sequence[int]) -> list[int]:
    """The item numbers, in order.

    >>> numbers_of((0, 3, 5, 7, 4, 5))
    [0, 1, 2, 5, 6, 4]
    """
    numbers: list[int] = []
    for start, end in ranges_of(runs):
        numbers.extend(range(start, end))
    return numbers


def ranges_of(runs: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The runs as `(from, to)` pairs."""
    return zip(runs[::2], runs[1::2], strict=True)


def length_of(runs: Sequence[int]) -> int:
    """How many items the runs hold."""
    return sum(runs[1::2]) - sum(runs[::2])


def tail_of(runs: Sequence[int], count: int) -> Runs:
    """The runs of the last items.

    >>> tail_of((0, 3, 5, 7), 3), tail_of((0, 3), 9)
    ((2, 3, 5, 7), (0, 3))
    """
    tail: list[int] = []
    for start, end in reversed(list(ranges_of(runs))):
        if count <= 0:
            break
        tail[:0] = (max(start, end - count), end)
        count -= end - start
    return tuple(tail)


def begins_with(runs: Runs, beginning: Runs) -> bool:
    """Whether a list's first items are those of another.

    >>> begins_with((0, 3, 5, 7), (0, 3, 5, 6)), begins_with((0, 3, 5, 7), (0, 2, 5, 7))
    (True, False)
    """
    last = len(beginning) - 1
    return not beginning or (last < len(runs) and runs[:last] == beginning[:last] and beginning[last] <= runs[last])


def checked(runs: Sequence[int], below: int = NUMBERS) -> Runs:
    """Runs that were read.

    Raises:
        ValueError: They are none: odd, empty, backwards, or beyond what can be (also `TypeError`).
    """
    if not {int}.issuperset(map(type, runs)):
        raise ValueError("a message's number is none")
    length = 0
    for start, end in ranges_of(runs):
        if not 0 <= start < end <= below:
            raise ValueError(f"there are no messages from {start} to {end}")
        length += end - start
    if length > LONGEST:
        raise ValueError(f"a list of {length} messages cannot be")
    return tuple(runs)
