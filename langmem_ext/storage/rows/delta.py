"""Large dicts and lists that change little at a time: a base, and deltas in rows of their own.

A value that is stored whole at every step costs its size at every step. A compound is stored once,
as its *base* row; each later state names that row and the *deltas* that lead from it to the state.
Small deltas are merged into larger ones by a rule of eight (eight of a level make one of the next),
so that a state of n changes names about 8 log8(n) rows and a change is rewritten only log8(n)
times. When the deltas have outgrown the base, the value is stored whole as the next base.

A dict's row is `[level, [key, value, …], [removed key, …]]`, a list's `[level, count, elements]`;
keys, values and elements are packed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from langmem_ext.messages.packed import array_head, map_head, opaque, pack, unpack
from langmem_ext.types import PackedValue

FANOUT: Final = 8
"""Deltas of one level that are merged into one of the next."""


MAX_PARTS: Final = 64
"""Rows that a state may name, each once."""

REMOVING: Final = 255
"""Level of a delta that removes keys: it is not merged, because a key that is set again moves to
the end."""


@dataclass(frozen=True, slots=True)
class Part:
    """A row of a compound.

    Attributes:
        row: Its number; -1 before it has one.
        level: How often it was merged.
        size: Bytes of its body.
        keys: The keys that it sets, if the value is a dict.
        count, length: Number and bytes of the elements that it adds, if the value is a list.
    """

    row: int
    level: int
    size: int
    keys: frozenset[bytes] = frozenset()
    count: int = 0
    length: int = 0


@dataclass(frozen=True, slots=True)
class Compound:
    """A dict or a list as it was lately stored or read.

    Attributes:
        body: The packed value.
        pieces: Packed value by packed key, in order; None for a list.
        count: How many keys or elements there are.
        parts: Its rows: the base, and the deltas in their order.
    """

    body: bytes
    pieces: Mapping[bytes, bytes] | None
    count: int
    parts: tuple[Part, ...] = ()

    @classmethod
    def of(cls, value: PackedValue) -> Compound | None:
        """A value that may be stored as a compound, without rows; None for every other."""
        if value.body is not None and value.keyed and (pieces := _pieces(value.body)) is not None:
            return cls(value.body, pieces, len(pieces))
        if value.body is not None and value.count is not None:
            return cls(value.body, None, value.count)
        return None

    def rows(self) -> tuple[int, ...]:
        """The numbers of its rows."""
        return tuple(part.row for part in self.parts)

    def elements_at(self) -> int:
        """Where in the body of a list its elements begin."""
        return len(array_head(self.count))

    def size(self) -> int:
        """Bytes held, about."""
        return len(self.body) * (1 if self.pieces is None else 2)


@dataclass(frozen=True, slots=True)
class Delta:
    """What a new state adds to a stored one: a row that replaces the last `merged` rows.

    Attributes:
        body: The row's body.
        part: The row, without its number.
        merged: How many of the stored state's last rows it replaces.
    """

    body: bytes
    part: Part
    merged: int


def _pieces(body: bytes) -> dict[bytes, bytes] | None:
    """Packed value by packed key of a packed dict, if its keys are texts.

    Taken from the bytes, not from the dict: another thread may change that while it is being
    packed.
    """
    fields = unpack(body, opaque)
    if set(map(type, fields)) != {str}:
        return None
    pieces = {pack(key): pack(item) for key, item in fields.items()}
    whole = b"".join([map_head(len(pieces)), *(piece for pair in pieces.items() for piece in pair)])
    return pieces if whole == body else None


def plan_base(value: Compound) -> Delta:
    """The row that holds a value whole."""
    return _delta(
        value, 0, frozenset(value.pieces or ()), value.count, len(value.body) - value.elements_at()
    )


def plan_delta(stored: Compound, value: Compound) -> Delta | None:
    """The row that leads from a stored state to a new one; None if that is better stored whole."""
    delta = _list_delta(stored, value) if value.pieces is None else _dict_delta(stored, value)
    if delta is None:
        return None
    merged = 0
    while delta.part.level != REMOVING:
        end = len(stored.parts) - merged
        run = stored.parts[max(1, end - FANOUT + 1) : end]
        if len(run) < FANOUT - 1 or any(part.level != delta.part.level for part in run):
            break
        merged += len(run)
        keys = delta.part.keys.union(*(part.keys for part in run))
        count, length = (
            sum(getattr(part, name) for part in (*run, delta.part)) for name in ("count", "length")
        )
        delta = _delta(value, delta.part.level + 1, keys, count, length, merged)
    kept = stored.parts[1 : len(stored.parts) - merged]
    outgrown = sum(part.size for part in kept) + delta.part.size > stored.parts[0].size
    return (
        None
        if outgrown or len(kept) + 2 > MAX_PARTS or 2 * delta.part.size > len(value.body)
        else delta
    )


def apply_delta(stored: Compound, value: Compound, delta: Delta, row: int) -> Compound:
    """The new state with its rows, once the delta has a number."""
    return replace(
        value,
        parts=(*stored.parts[: len(stored.parts) - delta.merged], replace(delta.part, row=row)),
    )


def read_compound(rows: Iterable[tuple[int, bytes]]) -> Compound:
    """The state that rows lead to: the base, and the deltas in their order.

    Raises:
        ValueError: They do not belong together (also `TypeError`; the caller names the rows).
    """
    pieces: dict[bytes, bytes] = {}
    elements: list[bytes] = []
    count = 0
    parts: list[Part] = []
    for row, body in rows:
        level, changed, rest = unpack(body)
        if isinstance(changed, int):
            elements.append(rest)
            count += changed
            parts.append(Part(row, level, len(body), count=changed, length=len(rest)))
        else:
            keys = changed[::2]
            pieces.update(zip(keys, changed[1::2], strict=True))
            for key in rest:
                pieces.pop(key, None)
            parts.append(Part(row, level, len(body), keys=frozenset(keys)))
    if elements and pieces:
        raise ValueError("a list and a dict are mixed")
    if elements:
        return Compound(b"".join([array_head(count), *elements]), None, count, tuple(parts))
    body = b"".join([map_head(len(pieces)), *(piece for pair in pieces.items() for piece in pair)])
    return Compound(body, pieces, len(pieces), tuple(parts))


def _dict_delta(stored: Compound, value: Compound) -> Delta | None:
    """The keys that changed; None if setting and removing them would give another order."""
    if stored.pieces is None or value.pieces is None:
        return None
    before, after = stored.pieces, value.pieces
    removed = before.keys() - after.keys()
    kept = [key for key in before if key not in removed] if removed else list(before)
    if kept != list(after)[: len(kept)]:
        return None
    changed = frozenset(key for key, piece in after.items() if before.get(key) != piece)
    return _delta(value, REMOVING if removed else 0, changed, removed=removed)


def _list_delta(stored: Compound, value: Compound) -> Delta | None:
    """The elements that were appended; None if something else changed."""
    elements = stored.body[stored.elements_at() :]
    if (
        stored.pieces is not None
        or value.count < stored.count
        or not value.body.startswith(elements, value.elements_at())
    ):
        return None
    return _delta(
        value,
        0,
        frozenset(),
        value.count - stored.count,
        len(value.body) - value.elements_at() - len(elements),
    )


def _delta(
    value: Compound,
    level: int,
    keys: frozenset[bytes],
    count: int = 0,
    length: int = 0,
    merged: int = 0,
    removed: Iterable[bytes] = (),
) -> Delta:
    if value.pieces is None:
        body = pack([level, count, value.body[len(value.body) - length :]])
        return Delta(body, Part(-1, level, len(body), count=count, length=length), merged)
    changed = [part for key, piece in value.pieces.items() if key in keys for part in (key, piece)]
    body = pack([level, changed, sorted(removed)])
    return Delta(body, Part(-1, level, len(body), keys=keys), merged)
