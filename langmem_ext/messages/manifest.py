"""Manifests: which items of a thread, in which order, make up a list of messages.

A manifest is a flat tuple of runs, `(from, to, from, to, …)`, each a half-open range of item
numbers. A conversation that only grows is one run, whatever its length; removing or replacing a
message splits a run; dropping a prefix moves one number.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

Runs: TypeAlias = tuple[int, ...]

Ranges: TypeAlias = list[tuple[int, int]]

NUMBERS: Final = 1 << 32
"""The numbers of a thread's items are below this."""

LONGEST_LIST: Final = 1 << 20
"""Messages that a list of messages may have. A longer one is stored whole, as any other value
(`messages.size_limits`)."""


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


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """The ranges joined where they touch, in order.

    >>> merged([(4, 6), (0, 2), (2, 3), (5, 9)])
    [(0, 3), (4, 9)]
    """
    joined: Ranges = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return joined


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


def from_on(runs: Sequence[int], start: int) -> Runs:
    """The numbers from `start` on, counted from there.

    >>> from_on((0, 3, 5, 7), 2), from_on((0, 3), 5)
    ((0, 1, 3, 5), ())
    """
    return tuple(
        number
        for first, end in ranges_of(runs)
        if end > start
        for number in (max(first - start, 0), end - start)
    )


def below(runs: Sequence[int], end: int) -> Runs:
    """The numbers below `end`.

    >>> below((0, 3, 5, 7), 6), below((3, 4), 2)
    ((0, 3, 5, 6), ())
    """
    return tuple(
        number
        for first, behind in ranges_of(runs)
        if first < end
        for number in (first, min(behind, end))
    )


def begins_with(runs: Runs, beginning: Runs) -> bool:
    """Whether a list's first items are those of another.

    >>> begins_with((0, 3, 5, 7), (0, 3, 5, 6)), begins_with((0, 3, 5, 7), (0, 2, 5, 7))
    (True, False)
    """
    last = len(beginning) - 1
    return not beginning or (
        last < len(runs) and runs[:last] == beginning[:last] and beginning[last] <= runs[last]
    )


def checked(runs: Sequence[int], limit: int = NUMBERS) -> Runs:
    """Runs that were read.

    Raises:
        ValueError: They are invalid: odd, empty, backwards, or beyond what can be (also
            `TypeError`).
    """
    if not {int}.issuperset(map(type, runs)):
        raise ValueError("a message's number is invalid")
    length = 0
    for start, end in ranges_of(runs):
        if not 0 <= start < end <= limit:
            raise ValueError(f"there are no messages from {start} to {end}")
        length += end - start
    if length > LONGEST_LIST:
        raise ValueError(f"a list of {length} messages cannot be")
    return tuple(runs)


def checked_positions(runs: Sequence[int], limit: int) -> Runs:
    """Runs of positions in a list, which were read.

    Raises:
        ValueError: They are invalid, or not in their order (also `TypeError`).
    """
    if not all(end <= start for end, start in zip(runs[1::2], runs[2::2], strict=False)):
        raise ValueError("positions in a list are not in their order")
    return checked(runs, limit)
