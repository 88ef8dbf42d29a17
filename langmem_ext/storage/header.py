"""A checkpoint's own bytes: everything about it but the values, which it refers to.

What repeats from checkpoint to checkpoint is stored once per thread as a *word*: the channel and node names, which are the graph's, and
the pattern of a step. What is left is small: versions as four bytes each, values as references to rows, runs of items, or a few bytes in
place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain, count
from operator import itemgetter, methodcaller
from typing import Any, Final, TypeAlias

from langmem_ext.errors import InvalidInput
from langmem_ext.messages.manifest import LONGEST, NUMBERS, Runs, checked, checked_positions, length_of
from langmem_ext.messages.packed import pack, unpack
from langmem_ext.storage.compounds import MAX_PARTS

Version: TypeAlias = str | int | float
Versions: TypeAlias = Mapping[str, Version]

SMALL_DETAILS: Final = 32
"""Bytes of details (metadata beyond plain scalars) up to which they are a part of the pattern: an empty `parents`, mostly."""


SHAPE_BYTES: Final = 1 << 18
PATTERN_BYTES: Final = 1 << 14
"""What the words with a graph's names, and with the pattern of a step, take at most. A row of a few bytes stands for all of them
(`messages.proportion`). A larger pattern is no word, and stands in the row."""


MOST_NAMED: Final = 16 * LONGEST
"""Messages that all values of a row may name together, each as often as it is named."""


@dataclass(slots=True)  # not frozen: that takes several times as long to make
class ValueRef:
    """Where a value stands. Never changed.

    Attributes:
        body: The encoded value, where it is small enough to stand in place; None for a plain list of messages.
        row: Number of the value row that holds the body instead.
        deltas: If the value is a compound (`storage.compounds`), the value rows that change what `row` holds, in their order.
        runs: The messages of the value, as item numbers, in the order in which the body refers to them.
        nameless: Positions in `runs` of messages that had no id when the reference was made, as runs: a few bytes may name very many.
        manifest: If the runs are many, the value row that holds the first of them (`storage.manifests`), and how many numbers it holds.
    """

    body: bytes | None = None
    row: int | None = None
    runs: Runs = ()
    nameless: Runs = ()
    deltas: tuple[int, ...] | None = None
    manifest: tuple[int, int] | None = None

    def rows(self) -> tuple[int, ...]:
        """Every value row that the value needs."""
        rows = () if self.row is None else (self.row, *(self.deltas or ()))
        return rows if self.manifest is None else (*rows, self.manifest[0])

    def with_beginning(self, runs: Runs) -> ValueRef:
        """The reference as it was before its first runs went to a row of their own.

        Raises:
            ValueError: They do not belong together.
        """
        whole = checked((*runs, *self.runs))
        if self.manifest is None or len(runs) != self.manifest[1] or max(self.nameless, default=0) > length_of(whole):
            raise ValueError("a list of messages and its beginning do not belong together")
        return replace(self, runs=whole)


@dataclass(slots=True)  # as above
class Header:
    """A checkpoint without its values. Never changed.

    Attributes:
        v: Format number that LangGraph gave it.
        ts: ISO 8601 time that LangGraph gave it.
        versions: Version by channel.
        seen: Versions seen, by node and channel.
        updated: Channels updated by the step, or None.
        values: Where each value stands, by channel.
        extra: Further keys of the checkpoint, encoded; None where there are none.
        details: The part of its metadata that is not a plain scalar, encoded; None where there is none.
    """

    v: int
    ts: str
    versions: Versions
    seen: Mapping[str, Versions]
    updated: Sequence[str] | None
    values: Mapping[str, ValueRef] = field(default_factory=dict)
    extra: bytes | None = None
    details: bytes | None = None


HEADER_BYTES: Final = 2000
"""What a header costs in memory, about."""


def size_of(header: Header) -> int:
    """Bytes that a header holds in memory, about. Most of a long fragmented list's are its runs."""
    return HEADER_BYTES + 8 * sum([len(ref.runs) + len(ref.nameless) for ref in header.values.values()])


def require_plain(header: Header) -> None:
    """See that a header says what LangGraph could have said.

    Raises:
        ValueError: It does not.
    """
    seen = header.seen.values()
    names = [*header.versions, *header.values, *header.seen, *chain.from_iterable(seen), *(header.updated or ())]
    versions = [*header.versions.values(), *chain.from_iterable(versions.values() for versions in seen)]
    if type(header.v) is not int or type(header.ts) is not str or not {str}.issuperset(map(type, names)):
        raise ValueError("its format, time and names are none")
    if not {str, int, float}.issuperset(map(type, versions)):
        raise ValueError("a version of it is none")


def longest_list(values: Mapping[str, ValueRef]) -> int | None:
    """Length of the longest list of messages among a checkpoint's values; None where it has none."""
    return max((length_of(ref.runs) for ref in values.values() if ref.body is None and ref.row is None), default=None)


def longest_runs(values: Mapping[str, ValueRef]) -> Runs:
    """The longest list of messages among a checkpoint's values; empty where it has none."""
    return max((ref.runs for ref in values.values() if ref.body is None and ref.row is None), key=length_of, default=())


# -- encoding ----------------------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)  # as above
class EncodedHeader:
    """A header as a checkpoint's row holds it.

    Attributes:
        shape: Word with the names of channels and nodes: a graph has few of these.
        pattern: Which of these have the same version, which were updated, which hold a value: what a graph's step has in common with the
            same step of the next turn. A word, unless a thread has had too many of them.
        body: What is the checkpoint's own.
    """

    shape: bytes
    pattern: bytes
    body: list[Any]


_VALUES: Final[Callable[[Versions], Iterable[Version]]] = methodcaller("values")
_SECOND: Final = itemgetter(1)


def encode_header(header: Header, checkpoint_id: bytes) -> EncodedHeader:
    """The header in parts: two that repeat from checkpoint to checkpoint, and its own."""
    seen = tuple(zip(header.seen, map(tuple, header.seen.values()), strict=True))
    updated = None if header.updated is None else tuple(header.updated)
    shape, updated_at, held_at = _encode_shape(tuple(header.versions), tuple(header.values), seen, updated)
    if len(shape) > SHAPE_BYTES:
        raise InvalidInput(f"the names of a graph's channels and nodes take at most {SHAPE_BYTES} bytes: give them shorter names")
    versions = [*header.versions.values(), *chain.from_iterable(map(_VALUES, header.seen.values()))]
    typed = list(zip(map(type, versions), versions, strict=True))  # 1 and 1.0 are equal and not the same
    table = dict(zip(dict.fromkeys(typed), count()))
    places = list(map(table.__getitem__, typed))
    current, seen_at = places[: len(header.versions)], places[len(header.versions) :]
    small = header.details is not None and len(header.details) <= SMALL_DETAILS
    pattern = [header.v, _positions(current), _positions(seen_at), updated_at, held_at, header.details if small else None]
    body = [
        _encode_time(header.ts, checkpoint_id),
        _encode_versions(list(map(_SECOND, table))),
        list(map(_value_entry, header.values.values())),
        header.extra,
        None if small else header.details,
    ]
    return EncodedHeader(shape, pack(pattern), _without_end(body))


@lru_cache(maxsize=512)
def _encode_shape(
    versions: tuple[str, ...], values: tuple[str, ...], seen: tuple[tuple[str, tuple[str, ...]], ...], updated: tuple[str, ...] | None
) -> tuple[bytes, bytes | list[int] | None, bytes | list[int]]:
    """A graph's names, packed, and which of them were updated and hold a value; few graphs have many of these."""
    names = list(dict.fromkeys([*versions, *values]))
    position = {name: index for index, name in enumerate(names)}

    def at(name: str) -> int:
        if name not in position:
            position[name] = len(names)
            names.append(name)
        return position[name]

    seen_names = [[node, [at(channel) for channel in channels]] for node, channels in seen]
    updated_at = None if updated is None else _positions([at(name) for name in updated])
    held_at = _positions([at(name) for name in values])
    return pack([names, len(versions), seen_names]), updated_at, held_at


def decode_header(shape: bytes, pattern: bytes, body: Sequence[Any], checkpoint_id: bytes) -> Header:
    """The header that `encode_header` was given.

    Raises:
        ValueError: The parts are not a header (also `KeyError`, `IndexError`, `TypeError`, `struct.error`: the caller names the row).
    """
    if len(shape) > SHAPE_BYTES:
        raise ValueError("the names of its graph are too many")
    names, width, seen_names = unpack(shape)
    v, current, seen_versions, updated, holding, small = unpack(pattern)
    time, packed_versions, values, *rest = body
    extra, details = [*rest, None, None][: max(2, len(rest))]  # more of them are a newer release's
    table = _decode_versions(packed_versions)
    versions = {names[index]: table[at] for index, at in zip(range(width), current, strict=True)}
    flat = iter(seen_versions)
    seen = {node: {names[index]: table[next(flat)] for index in indexes} for node, indexes in seen_names}
    return Header(
        v=v,
        ts=_decode_time(time, checkpoint_id),
        versions=versions,
        seen=seen,
        updated=None if updated is None else [names[index] for index in updated],
        values={names[index]: _value_ref(entry) for index, entry in zip(holding, values, strict=True)},
        extra=extra,
        details=details if small is None else small,
    )


def _without_end(fields: list[Any]) -> list[Any]:
    """The fields up to the last that is there."""
    while fields and fields[-1] is None:
        fields.pop()
    return fields


def encode_values(refs: Iterable[ValueRef]) -> list[Any]:
    """Values as plain data: what a pending write's row holds."""
    return list(map(_value_entry, refs))


def decode_values(entries: Iterable[Any]) -> list[ValueRef]:
    """The values that `encode_values` was given.

    Raises:
        ValueError: They are invalid (also `TypeError`), or name more messages than can be listed.
    """
    refs = [_value_ref(entry) for entry in entries]
    require_countable(refs)
    return refs


def require_countable(refs: Iterable[ValueRef]) -> None:
    """See that what a row refers to can be listed, whether it is there or not.

    Raises:
        ValueError: It names too many messages.
    """
    if sum([length_of(ref.runs) for ref in refs]) > MOST_NAMED:
        raise ValueError("it names more messages than can be listed")


def _value_entry(ref: ValueRef) -> list[Any]:
    where = [ref.row, *ref.deltas] if ref.deltas is not None else ref.row if ref.row is not None else ref.body
    runs = ref.runs if ref.manifest is None else (dict([ref.manifest]), *ref.runs[ref.manifest[1] :])
    return [where, *runs, list(ref.nameless)] if ref.nameless else [where, *runs]


def _value_ref(entry: Sequence[Any]) -> ValueRef:
    where, *rest = entry
    bare = rest.pop() if rest and isinstance(rest[-1], list) else []
    manifest = _manifest(rest.pop(0)) if rest and isinstance(rest[0], dict) else None
    runs = checked(rest)
    nameless = checked_positions(bare, LONGEST if manifest is not None else length_of(runs))
    if where is None or isinstance(where, bytes):
        return ValueRef(body=where, runs=runs, nameless=nameless, manifest=manifest)
    rows = where if isinstance(where, list) else [where]
    if not all(type(row) is int and 0 <= row < NUMBERS for row in rows):
        raise ValueError("a value stands nowhere")
    if len(rows) > MAX_PARTS or len(set(rows)) < len(rows):
        raise ValueError("a value has too many parts")
    return ValueRef(row=rows[0], runs=runs, nameless=nameless, deltas=tuple(rows[1:]) if rows is where else None)


def _manifest(entry: dict[Any, Any]) -> tuple[int, int]:
    [(row, count)] = entry.items()
    if type(row) is not int or type(count) is not int or not 0 <= row < NUMBERS:
        raise ValueError("the beginning of a list stands nowhere")
    return row, count


def _positions(indexes: list[int]) -> bytes | list[int]:
    """Small numbers as bytes; either form iterates as the numbers."""
    return bytes(indexes) if max(indexes, default=0) < 256 else indexes


# -- versions ----------------------------------------------------------------------------------------------------------------------------
#
# LangGraph's versions are "%032d." and a random number that tells apart equal steps of different forks. There are three spellings of the
# number: ours (seven digits), InMemorySaver's and the agent server's. Each is stored as numbers and spelled again on reading; a version
# that does not come back to the letter is stored as it is.

MINOR_DIGITS: Final = 10_000_000
_MINOR = struct.Struct("<q")
_SPELLINGS: Final[tuple[Callable[[int, float], str], ...]] = (
    lambda major, minor: f"{major:032}.{minor:016}",
    lambda major, minor: f"{major:032}.{minor:.16f}",
)


def next_version(current: Version | None, random: int) -> Version:
    """The version after `current`, in the same kind: LangGraph cannot compare a string with a number.

    Args:
        current: The highest version so far, or None.
        random: Seven digits that tell this version from the same step of another fork; 0 to `MINOR_DIGITS` - 1.
    """
    if isinstance(current, str):
        major = int(current.split(".")[0])
    elif current is None:
        major = 0
    else:
        return current + 1
    version = _SPELLINGS[0](major + 1, random / MINOR_DIGITS)
    if len(_MADE) >= VERSIONS:
        _MADE.clear()
    _MADE[version] = 0, major + 1, random
    return version


VERSIONS: Final = 8192
"""Versions that are remembered as numbers."""

_MADE: Final[dict[Version, tuple[int, int, int]]] = {}
"""Those that were made here, lately: to take one apart, and see that it is spelled so again, takes longer than to look it up."""


@lru_cache(maxsize=VERSIONS)
def _parse_version(version: Version) -> tuple[int, int, int] | None:
    """`(spelling, major, minor)` of a version that can be spelled again; None for every other."""
    return _MADE.get(version) or _take_apart(version)


def _take_apart(version: Version) -> tuple[int, int, int] | None:
    if not isinstance(version, str) or len(version) < 34 or version[32] != ".":
        return None
    try:
        major, minor = int(version[:32]), float(version[33:])
    except ValueError:
        return None
    digits = round(minor * MINOR_DIGITS)
    if digits < MINOR_DIGITS and _SPELLINGS[0](major, digits / MINOR_DIGITS) == version:
        return 0, major, digits
    for spelling, spell in enumerate(_SPELLINGS, start=1):
        if spell(major, minor) == version:
            return spelling, major, _MINOR.unpack(struct.pack("<d", minor))[0]
    return None


@lru_cache(maxsize=VERSIONS)
def _spell_version(spelling: int, major: int, minor: int) -> str:
    if spelling == 0:
        return _SPELLINGS[0](major, minor / MINOR_DIGITS)
    return _SPELLINGS[spelling - 1](major, struct.unpack("<d", _MINOR.pack(minor))[0])


def _encode_versions(versions: list[Version]) -> bytes | list[Version]:
    """All versions of one spelling and within 255 steps of the highest: bytes. Else the versions themselves."""
    parsed = [item for item in map(_parse_version, versions) if item is not None]
    if not parsed or len(parsed) < len(versions):
        return versions
    spellings, majors, minors = zip(*parsed, strict=True)
    spelling, highest = spellings[0], max(majors)
    if highest - min(majors) > 255 or spellings.count(spelling) < len(spellings):
        return versions
    width = 3 if spelling == 0 else 8
    mask = (1 << (8 * width)) - 1
    entries = [(highest - major | (minor & mask) << 8).to_bytes(width + 1, "little") for major, minor in zip(majors, minors, strict=True)]
    return b"".join([(spelling | highest << 8).to_bytes(5, "little"), *entries])


def _decode_versions(packed: bytes | list[Version]) -> list[Version]:
    if not isinstance(packed, bytes):
        return packed
    spelling = packed[0]
    width = 3 if spelling == 0 else 8
    highest = int.from_bytes(packed[1:5], "little")
    return [
        _spell_version(spelling, highest - packed[at], int.from_bytes(packed[at + 1 : at + 1 + width], "little", signed=width == 8))
        for at in range(5, len(packed), width + 1)
    ]


# -- times -------------------------------------------------------------------------------------------------------------------------------

_UUID_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)
_UUID_VERSION_6 = 6


def _id_time(checkpoint_id: bytes) -> int | None:
    """The time that a version 6 UUID carries, in microseconds since 1582."""
    if len(checkpoint_id) != 16 or checkpoint_id[6] >> 4 != _UUID_VERSION_6:
        return None
    ticks = int.from_bytes(checkpoint_id[:8], "big")
    return (ticks >> 16 << 12 | ticks & 0x0FFF) // 10


def _encode_time(ts: str, checkpoint_id: bytes) -> int | str:
    """Microseconds between the id's time and `ts`, where that spells `ts` again; else `ts`."""
    base = _id_time(checkpoint_id)
    if base is None or not ts.endswith("+00:00"):
        return ts
    try:
        moment = datetime.fromisoformat(ts)
    except ValueError:
        return ts
    if moment.isoformat() != ts:  # such as 2024-01-01+00:00, which is a time without a zone to Python
        return ts
    since = moment - _UUID_EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds - base


def _decode_time(stored: int | str, checkpoint_id: bytes) -> str:
    if isinstance(stored, str):
        return stored
    base = _id_time(checkpoint_id)
    if base is None:
        raise ValueError("a time is stored relative to an id that carries none")
    return (_UUID_EPOCH + timedelta(microseconds=base + stored)).isoformat()
