"""A checkpoint's own bytes: everything except the values, which it refers to.

What repeats from turn to turn is stored once per thread as a *word*, the checkpoint's form: the
names of channels and nodes, which of them have the same version, which were updated, which hold a
value. The rest is small: versions as numbers, values as references to rows, runs of items, or a few
bytes in place.

A reference is plain data as a row has it (its *entry*), and is copied, compared and written in that
form. `ValueRef` is the same reference, decoded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import chain
from typing import Any, Final, TypeAlias

from langmem_ext.messages.manifest import (
    LONGEST_LIST,
    NUMBERS,
    Runs,
    checked,
    checked_positions,
    length_of,
)
from langmem_ext.messages.packed import pack, unpack
from langmem_ext.storage.rows.delta import MAX_PARTS
from langmem_ext.types import PackedValue

Version: TypeAlias = str | int | float
Versions: TypeAlias = Mapping[str, Version]

Entry: TypeAlias = list[Any]
"""A reference to a value as a row has it: `[where, from, to, from, to, …, [positions without an
id]]`. Of a list with many runs, a dict comes behind `where`: the row that holds the first of
them, and how many these are."""

SMALL_DETAILS: Final = 32
"""Details (metadata beyond plain scalars) of up to so many bytes are a part of the pattern: mostly
an empty `parents`."""


PATTERN_BYTES: Final = 1 << 14
"""The maximum bytes of a form that is stored as a word, to which a row of a few bytes refers
(`messages.size_limits`). A larger form is stored in the row."""


MOST_NAMED: Final = 4 * LONGEST_LIST
"""How many messages all values of a row may name together, counting repetitions."""


@dataclass(slots=True)  # not frozen: that takes several times as long to make
class ValueRef:
    """A reference to a value. Never changed.

    Attributes:
        body: The encoded value, if it is small enough to be stored in place; None for a plain list
            of messages.
        row: Number of the value row that holds the body instead.
        deltas: If the value is a compound (`storage.rows.delta`), the value rows that change what
            `row` holds, in their order.
        runs: The messages of the value, as item numbers, in the order in which the body refers to
            them.
        nameless: Positions in `runs` of messages that had no id when the reference was made, as
            runs: a few bytes may name very many.
        manifest: If the runs are many, the value row that holds the first of them
            (`storage.rows.manifest`), and how many numbers it holds.
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
        """The reference as it was before its first runs were moved to a row of their own.

        Raises:
            ValueError: They do not belong together.
        """
        whole = checked((*runs, *self.runs))
        if (
            self.manifest is None
            or len(runs) != self.manifest[1]
            or max(self.nameless, default=0) > length_of(whole)
        ):
            raise ValueError("a list of messages does not match its beginning")
        return replace(self, runs=whole)


HEADER_BYTES: Final = 2000
"""About how much memory a header takes."""


class Header:
    """A checkpoint without its values. Never changed once it is stored.

    Args:
        v: Format number that LangGraph gave it.
        ts: ISO 8601 time that LangGraph gave it.
        versions: Version by channel.
        seen: Versions seen, by node and channel.
        updated: Channels updated by the step, or None.
        entries: The reference to each value, by channel, in the form of a row.
        extra: Further keys of the checkpoint, encoded; None if there are none.
        details: The part of its metadata that is not a plain scalar, encoded; None if there is
            none.
        whole: References to lists whose runs are not all in their entries
            (`storage.rows.manifest`).
        row: The row that it was read from; None while it is not stored.

    Attributes:
        names: Ids of the checkpoint and of its parent as texts, once they are known.
        size: About how many bytes it holds in memory; of a long fragmented list, mostly its runs.
    """

    __slots__ = (
        "_values",
        "details",
        "entries",
        "extra",
        "names",
        "row",
        "seen",
        "size",
        "ts",
        "updated",
        "v",
        "versions",
        "whole",
    )

    def __init__(
        self,
        v: int,
        ts: str,
        versions: Versions,
        seen: Mapping[str, Versions],
        updated: Sequence[str] | None,
        entries: Mapping[str, Entry] | None = None,
        extra: bytes | None = None,
        details: bytes | None = None,
        *,
        whole: dict[str, ValueRef] | None = None,
        row: tuple[Any, ...] | None = None,
    ) -> None:
        self.v, self.ts, self.versions, self.seen, self.updated = v, ts, versions, seen, updated
        self.entries = {} if entries is None else entries
        self.extra, self.details = extra, details
        self.whole = {} if whole is None else whole
        self.row = row
        self.names: tuple[str, str | None] | None = None
        self._values: tuple[Mapping[str, Entry], dict[str, ValueRef]] | None = None
        self.size = HEADER_BYTES

    @property
    def values(self) -> dict[str, ValueRef]:
        """The reference to each value, by channel.

        Raises:
            ValueError: An entry is invalid (also `TypeError`).
        """
        known = self._values
        if known is None or known[0] is not self.entries:
            refs = {
                channel: self.whole.get(channel) or value_ref(entry)
                for channel, entry in self.entries.items()
            }
            self._values = known = self.entries, refs
        return known[1]

    def following(self, ts: str, versions: Versions, refs: Mapping[str, ValueRef]) -> Header:
        """A header with other values in some channels, without the list of updated channels."""
        entries = {**self.entries, **{channel: entry_of(ref) for channel, ref in refs.items()}}
        whole = {channel: ref for channel, ref in self.whole.items() if channel not in refs}
        return Header(
            self.v, ts, versions, self.seen, None, entries, self.extra, self.details, whole=whole
        )


@dataclass(slots=True)  # as above
class PackedCheckpoint:
    """A checkpoint ready to be stored.

    Attributes:
        id: Checkpoint id.
        parent: Id of the checkpoint that it follows, or None.
        header: All of it except the references to its values.
        values: The value of each channel that has one, in their order; for one that is unchanged
            since the parent, a function that packs it, in case the parent does not have it.
        label: The scalar part of its metadata, as JSON text.
        step: The metadata's step, or None.
        waiting_for: Name of the parameter that it waits for, or None.
        follows_head: Whether it must follow the newest checkpoint, and that must be
            `expected_head`.
        expected_head: Id of the checkpoint that must be the newest; None if there must be none.
    """

    id: str
    parent: str | None
    header: Header
    values: Mapping[str, PackedValue | Callable[[], PackedValue]]
    label: bytes
    step: int | None
    waiting_for: str | None = None
    follows_head: bool = False
    expected_head: str | None = None


def require_plain(header: Header) -> None:
    """Require that LangGraph could have written a header.

    Raises:
        ValueError: Something in it is invalid.
    """
    seen = header.seen.values()
    names = [
        *header.versions,
        *header.entries,
        *header.seen,
        *chain.from_iterable(seen),
        *(header.updated or ()),
    ]
    versions = [
        *header.versions.values(),
        *chain.from_iterable(versions.values() for versions in seen),
    ]
    if (
        type(header.v) is not int
        or type(header.ts) is not str
        or not {str}.issuperset(map(type, names))
    ):
        raise ValueError("its format, time and names are invalid")
    if not {str, int, float}.issuperset(map(type, versions)):
        raise ValueError("a version of it is invalid")


def longest_list(values: Mapping[str, ValueRef]) -> int | None:
    """Length of the longest list of messages in a checkpoint; None if it has none."""
    return max(
        (length_of(ref.runs) for ref in values.values() if ref.body is None and ref.row is None),
        default=None,
    )


def longest_runs(values: Mapping[str, ValueRef]) -> Runs:
    """The longest list of messages in a checkpoint; empty if it has none."""
    return max(
        (ref.runs for ref in values.values() if ref.body is None and ref.row is None),
        key=length_of,
        default=(),
    )


# -- encoding --------------------------------------------------------------------------------------


def encode_header(header: Header, checkpoint_id: bytes) -> tuple[bytes, list[Any]]:
    """The header in two parts: its form, which repeats each turn, and the checkpoint's own part."""
    details, extra, seen, entries = header.details, header.extra, header.seen, header.entries
    table: dict[Any, int] = {}  # 1 and 1.0 are equal, but differ
    forms: list[dict[str, int]] = []
    for versions in (header.versions, *seen.values()):
        places: dict[str, int] = {}
        for name, version in versions.items():
            key = version if type(version) is str else (type(version), version)
            place = table.get(key)
            if place is None:
                place = table[key] = len(table)
            places[name] = place
        forms.append(places)
    stored: list[Any] = []
    for key in table:
        stored.append(_ENCODED[key] if type(key) is str else [key[1]])
    small = details is not None and len(details) <= SMALL_DETAILS
    form = pack(
        [
            header.v,
            forms[0],
            dict(zip(seen, forms[1:], strict=True)),
            None if header.updated is None else list(header.updated),
            list(entries),
            details if small else None,
        ]
    )
    body: list[Any] = [_encode_time(header.ts, checkpoint_id), stored, list(entries.values())]
    if extra is not None or (details is not None and not small):
        body += [extra] if small or details is None else [extra, details]
    return form, body


def decode_header(form: bytes, body: Sequence[Any], checkpoint_id: bytes) -> Header:
    """The header that `encode_header` encoded.

    Raises:
        ValueError: The parts are not a header (also `KeyError`, `IndexError`, `TypeError`,
            `struct.error`: the caller names the row).
    """
    v, versions, seen, updated, held, small = unpack(form)
    time, packed_versions, entries, *rest = body
    extra, details = [*rest, None, None][: max(2, len(rest))]  # fails on a newer release's fields
    table = list(map(_decode_version, packed_versions))
    return Header(
        v,
        _decode_time(time, checkpoint_id),
        {name: table[at] for name, at in versions.items()},
        {node: {name: table[at] for name, at in of.items()} for node, of in seen.items()},
        updated,
        dict(zip(held, entries, strict=True)),
        extra,
        details if small is None else small,
    )


def decode_values(entries: Iterable[Any]) -> list[ValueRef]:
    """The values that a pending write's row refers to.

    Raises:
        ValueError: They are invalid (also `TypeError`), or name more messages than can be listed.
    """
    refs = [value_ref(entry) for entry in entries]
    require_countable(refs)
    return refs


def require_countable(refs: Iterable[ValueRef]) -> None:
    """Require that the messages that a row refers to can be listed, whether they exist or not.

    Raises:
        ValueError: The row names too many messages.
    """
    if sum([length_of(ref.runs) for ref in refs]) > MOST_NAMED:
        raise ValueError("it refers to more messages than can be listed")


def entry_of(ref: ValueRef) -> Entry:
    """A reference in the form of a row."""
    where = (
        [ref.row, *ref.deltas]
        if ref.deltas is not None
        else ref.row
        if ref.row is not None
        else ref.body
    )
    runs = (
        ref.runs if ref.manifest is None else (dict([ref.manifest]), *ref.runs[ref.manifest[1] :])
    )
    return [where, *runs, list(ref.nameless)] if ref.nameless else [where, *runs]


def value_ref(entry: Sequence[Any]) -> ValueRef:
    """The reference that `entry_of` encoded.

    Raises:
        ValueError: The entry is invalid (also `TypeError`).
    """
    where, *rest = entry
    bare = rest.pop() if rest and isinstance(rest[-1], list) else []
    manifest = _manifest(rest.pop(0)) if rest and isinstance(rest[0], dict) else None
    runs = checked(rest)
    nameless = checked_positions(bare, LONGEST_LIST if manifest is not None else length_of(runs))
    if where is None or isinstance(where, bytes):
        return ValueRef(body=where, runs=runs, nameless=nameless, manifest=manifest)
    rows = where if isinstance(where, list) else [where]
    if not all(type(row) is int and 0 <= row < NUMBERS for row in rows):
        raise ValueError("a value has no position")
    if len(rows) > MAX_PARTS or len(set(rows)) < len(rows):
        raise ValueError("a value has too many parts")
    return ValueRef(
        row=rows[0], runs=runs, nameless=nameless, deltas=tuple(rows[1:]) if rows is where else None
    )


def _manifest(entry: dict[Any, Any]) -> tuple[int, int]:
    [(row, count)] = entry.items()
    if type(row) is not int or type(count) is not int or not 0 <= row < NUMBERS:
        raise ValueError("the beginning of a list has no position")
    return row, count


# -- versions --------------------------------------------------------------------------------------
#
# LangGraph's versions are "%032d." and a random number that distinguishes equal steps of different
# forks. There are three spellings of that number: ours (seven digits), InMemorySaver's and the
# agent server's. Ours is stored as one number, step and random; the others as `[spelling, step,
# random]`, a number as `[number]`. A version that cannot be restored exactly is stored as it is.

MINOR_DIGITS: Final = 10_000_000
_SPELLINGS: Final[tuple[Callable[[int, float], str], ...]] = (
    lambda major, minor: f"{major:032}.{minor:016}",
    lambda major, minor: f"{major:032}.{minor:.16f}",
)


def next_version(current: Version | None, random: int) -> Version:
    """The version after `current`, of the same kind; LangGraph cannot compare str with int.

    Args:
        current: The highest version so far, or None.
        random: Seven digits that distinguish this version from the same step of another fork; 0 to
            `MINOR_DIGITS` - 1.
    """
    if isinstance(current, str):
        major = int(current.split(".")[0])
    elif current is None:
        major = 0
    else:
        return current + 1
    version = f"{major + 1:032}.{random / MINOR_DIGITS:016}"  # `_SPELLINGS[0]`
    if len(_ENCODED) >= VERSIONS:
        _ENCODED.clear()
    _ENCODED[version] = (major + 1) * MINOR_DIGITS + random
    return version


VERSIONS: Final = 8192
"""How many versions are cached as numbers."""


class _Encoded(dict[str, Any]):
    """Versions in the form of rows, cached: parsing one takes longer than a lookup."""

    def __missing__(self, version: str) -> Any:
        if len(self) >= VERSIONS:
            self.clear()
        self[version] = stored = _encode_version(version)
        return stored


_ENCODED: Final = _Encoded()


def _encode_version(version: str) -> int | str | list[Any]:
    if len(version) < 34 or version[32] != ".":
        return version
    try:
        major, minor = int(version[:32]), float(version[33:])
    except ValueError:
        return version
    if not 0 <= major < MOST_STEPS:
        return version
    if f"{major:032}.{minor:016}" == version:  # `_SPELLINGS[0]`
        digits = round(minor * MINOR_DIGITS)
        if digits < MINOR_DIGITS and digits / MINOR_DIGITS == minor:
            return major * MINOR_DIGITS + digits
        return [0, major, minor]
    return [1, major, minor] if _SPELLINGS[1](major, minor) == version else version


MOST_STEPS: Final = 1 << 39
"""Versions of fewer steps than this fit into one number of 64 bits."""


def _decode_version(stored: Any) -> Version:
    if type(stored) is int:
        return _spell_version(stored)
    if type(stored) is str:
        return stored
    if len(stored) == 1:
        version: Version = stored[0]
        return version
    spelling, major, minor = stored
    spelled: str = _SPELLINGS[spelling](major, minor)
    return spelled


@lru_cache(maxsize=VERSIONS)
def _spell_version(stored: int) -> str:
    major, minor = divmod(stored, MINOR_DIGITS)
    return _SPELLINGS[0](major, minor / MINOR_DIGITS)


# -- times -----------------------------------------------------------------------------------------

_UUID_EPOCH = datetime(1582, 10, 15, tzinfo=UTC)
_UUID_VERSION_6 = 6


def _id_time(checkpoint_id: bytes) -> int | None:
    """The time that a version 6 UUID carries, in microseconds since 1582."""
    if len(checkpoint_id) != 16 or checkpoint_id[6] >> 4 != _UUID_VERSION_6:
        return None
    ticks = int.from_bytes(checkpoint_id[:8], "big")
    return (ticks >> 16 << 12 | ticks & 0x0FFF) // 10


@lru_cache(maxsize=64)
def _second(since: int) -> str:
    """The beginning of an ISO time, up to its second, given as seconds since 1582."""
    return (_UUID_EPOCH + timedelta(seconds=since)).isoformat()[:19]


def _encode_time(ts: str, checkpoint_id: bytes) -> int | str:
    """Microseconds between the id's time and `ts`, if `ts` can be restored from them; else `ts`."""
    base = _id_time(checkpoint_id)
    if base is None or not ts.endswith("+00:00"):
        return ts
    # Most times are within the second in which their id was made.
    second, apart = divmod(base, 1_000_000)
    micros = ts[20:26]
    if ts == f"{_second(second)}.{micros}+00:00" and micros.isdecimal() and micros.isascii():
        return int(micros) - apart if micros != "000000" else ts
    try:
        moment = datetime.fromisoformat(ts)
    except ValueError:
        return ts
    if moment.isoformat() != ts:
        return ts  # like 2024-01-01+00:00, which Python takes for a time without a zone
    since = moment - _UUID_EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds - base


def _decode_time(stored: int | str, checkpoint_id: bytes) -> str:
    if isinstance(stored, str):
        return stored
    base = _id_time(checkpoint_id)
    if base is None:
        raise ValueError("a time is stored relative to an id without a time")
    return (_UUID_EPOCH + timedelta(microseconds=base + stored)).isoformat()
