"""Operations that read a whole thread, a page at a time, and report what is damaged or wrong.

Invariants:
- No object that a row names is built, and no cache is trusted: every row is read again.
- A page is one transaction. A row that refers to others is read before them, so whatever a page
  refers to exists when its turn comes, however many writers there are.
- A row that cannot be read is a finding, never the end of the examination.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Final, Protocol, TypeAlias

from langmem_ext._internal.interruption import pass_on
from langmem_ext.errors import DamagedRow, MissingExtra, safe_text
from langmem_ext.messages.manifest import NUMBERS, Runs, checked, length_of, ranges_of
from langmem_ext.messages.size_limits import load_json
from langmem_ext.storage.cache import ThreadCache
from langmem_ext.storage.checkpoints.lookup import header_of, key_of, read_value, read_word
from langmem_ext.storage.checkpoints.writes import read_writes
from langmem_ext.storage.inspect import sql
from langmem_ext.storage.inspect.findings import Findings
from langmem_ext.storage.operation import (
    PAUSE,
    PAUSE_EVERY,
    Op,
    Operation,
    Row,
    fetch,
    fetch_one,
    operation,
    operation_once,
)
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.rows.checkpoint import Header, ValueRef, require_plain
from langmem_ext.storage.rows.compression import MARK, expand, expand_text, require
from langmem_ext.storage.rows.ids import decode_id, encode_id, is_behind, readable
from langmem_ext.storage.schema.dialect import NUMBER
from langmem_ext.types import Codec, Snapshot

NEXT_STEP: Final = "fork from an earlier checkpoint, restore the thread from a copy, or delete it"

Cursor: TypeAlias = tuple[Any, ...]
"""The key of a row: what follows it comes next."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a reference needs: runs of items, and value rows, which may together be one value."""

    runs: Runs
    rows: tuple[int, ...]
    compound: bool


@dataclass(frozen=True, slots=True)
class Reading:
    """An item as it decodes.

    Attributes:
        packed: The message's exact bytes; None if a serializer wrote it that is not available.
        columns: The columns that follow from them, as far as they can be derived here.
        is_text: Whether it is a bare text, not a message.
    """

    packed: Snapshot | None
    columns: Mapping[str, Any]
    is_text: bool


class Contents(Protocol):
    """Decodes what rows hold. Each method raises an exception of any kind for what does not decode.

    Attributes:
        hidden: Rows met so far that another serializer wrote and that cannot be decoded without it.
    """

    hidden: int

    @property
    def codec(self) -> Codec:
        """Reads messages of this package's own serializer, and builds nothing that they name."""

    def read_item(self, thread: int, row: Row, keys: bytes | None) -> Reading:
        """An item, from its thread's number, its row and the word that its shape names."""

    def read_value(self, body: bytes) -> int:
        """How many messages a value refers to."""

    def read_plain(self, body: bytes) -> Any:
        """The values stored whole in a checkpoint; None if their serializer is not available."""

    def read_name(self, body: bytes) -> str | None:
        """The name that a value is, as a column shows it; None for any other value.

        Raises:
            LookupError: Another serializer wrote it and is not at hand.
        """


@dataclass(slots=True)
class Examined:
    """What an examination knows of one thread.

    Attributes:
        number, generation: The thread's.
        ends: Its `next_item` and `next_value` when the examination began.
        cache: Reads headers and words; used for this examination alone.
        findings: What was found.
        counted: Whether token counts can be compared.
        uses: Ids of the checkpoints that need something, by what they need.
        parents: Parent by namespace and id of a checkpoint.
        written: Checkpoints that have pending writes.
        items: Bytes of the messages that decode, by their numbers.
        values: How many messages each value that decodes refers to, by its number.
        bodies: Bytes of these values.
        broken: Rows that do not decode, as table and number.
        digests: Number of an item, by a digest of its bytes.
        repairs: Numbers of items whose columns must be derived again.
        unread: Tables whose rows of the thread could not all be read.
    """

    number: int
    generation: int
    ends: tuple[int, int]
    cache: ThreadCache
    findings: Findings
    counted: bool
    namespaces: set[int] = field(default_factory=lambda: {0})
    uses: dict[Need, list[bytes]] = field(default_factory=dict)
    parents: dict[tuple[int, bytes], bytes | None] = field(default_factory=dict)
    written: dict[tuple[int, bytes], None] = field(default_factory=dict)
    items: dict[int, int] = field(default_factory=dict)
    values: dict[int, int] = field(default_factory=dict)
    bodies: dict[int, int] = field(default_factory=dict)
    broken: set[tuple[str, int]] = field(default_factory=set)
    digests: dict[bytes, int] = field(default_factory=dict)
    repairs: list[int] = field(default_factory=list)
    unread: set[str] = field(default_factory=set)

    def behind(self, at: Cursor) -> dict[str, int]:
        """The range of the thread's items or values that follow one."""
        return {"thread": self.number, "after": at[0]}

    def rows(self, at: Cursor) -> dict[str, Any]:
        """The range of the thread's rows that follow one, in the other tables."""
        return {"thread": self.number} | dict(zip(("first", "second", "third"), at, strict=False))

    def damaged(
        self, kind: str, place: str, error: object, checkpoints: Iterable[str] = ()
    ) -> None:
        """Note a row that does not decode."""
        self.findings.add(
            kind,
            "damaged",
            place,
            f"does not decode ({safe_text(error)}): {NEXT_STEP}",
            checkpoints=checkpoints,
        )


@operation
def require_zstd() -> Op[None]:
    """Require that compressed rows can be read: without zstd they would seem damaged.

    Raises:
        MissingExtra: Something is compressed, and there is no zstd.
    """
    try:
        require()
    except MissingExtra:
        if (yield from fetch_one(sql.HAS_COMPRESSED, mark=MARK)) == (1,):
            raise


# -- checkpoints and pending writes ----------------------------------------------------------------


def read_namespaces(
    thread: Examined, contents: Contents, at: Cursor, limit: int
) -> Op[Cursor | None]:
    """Look at a page of namespaces."""
    rows = yield from fetch(sql.SELECT_NAMESPACE_PAGE, **thread.rows(at), limit=limit)
    for number, name, check in rows:
        thread.namespaces.add(number)
        if check != checks.check_of(thread.number, number, name):
            thread.damaged("namespace", f"namespace {thread.number}/{number}", checks.CHANGED)
        elif not isinstance(name, str) or not 0 < number < NUMBERS:
            thread.damaged("namespace", f"namespace {thread.number}/{number}", "it is not a name")
    return rows[-1][:1] if len(rows) == limit else None


def read_checkpoints(
    thread: Examined, contents: Contents, at: Cursor, limit: int
) -> Op[Cursor | None]:
    """Look at a page of checkpoints."""
    rows = yield from fetch(sql.SELECT_CHECKPOINT_PAGE, **thread.rows(at), limit=limit)
    for space, *row in rows:
        try:
            yield from _read_checkpoint(thread, contents, space, tuple(row))
        except Exception as error:
            pass_on(error)
            place = f"checkpoint {thread.number}/{space}/{readable(row[0])}"
            thread.damaged("checkpoint", place, error.__cause__ or error, (readable(row[0]),))
    yield PAUSE
    return (rows[-1][0], key_of(rows[-1][1:])) if len(rows) == limit else None


def _read_checkpoint(thread: Examined, contents: Contents, space: int, row: Row) -> Op[None]:
    checkpoint, parent, step, label = row[:4]
    thread.parents[space, checkpoint] = parent
    if space not in thread.namespaces:
        raise DamagedRow(f"its namespace, {space}, is missing")
    if encode_id(decode_id(checkpoint)) != checkpoint or (
        parent is not None and encode_id(decode_id(parent)) != parent
    ):
        raise DamagedRow("an id is invalid")
    if (key := key_of(row)) != checkpoint and not is_behind(key):
        raise DamagedRow("its key is invalid")
    if not isinstance(step, int | None):
        raise DamagedRow("its step is not a number")
    header: Header = yield from header_of(thread.cache, space, row)
    require_plain(header)
    if not isinstance(load_json((yield from read_word(thread.cache, label))), dict):
        raise DamagedRow("its metadata is not a mapping")
    details = {} if header.details is None else contents.read_plain(header.details)
    if not isinstance(details, dict | None):
        raise DamagedRow("its metadata is not a mapping")
    extra = ({}, []) if header.extra is None else contents.read_plain(header.extra)
    if extra is not None and [type(part) for part in extra] != [dict, list]:
        raise DamagedRow("its further keys are not a mapping")
    for channel, ref in header.values.items():
        _need(thread, contents, checkpoint, f"the channel {channel!r}", ref)


def read_pending(thread: Examined, contents: Contents, at: Cursor, limit: int) -> Op[Cursor | None]:
    """Look at a page of pending writes."""
    rows = yield from fetch(sql.SELECT_WRITE_PAGE, **thread.rows(at), limit=limit)
    for row in rows:
        space, checkpoint, task, *_ = row
        try:
            if encode_id(decode_id(task)) != task or encode_id(decode_id(checkpoint)) != checkpoint:
                raise DamagedRow("an id is invalid")
            thread.written[space, checkpoint] = None
            for entry in (yield from read_writes(thread.cache, row)):
                if (type(entry.path), type(entry.index), type(entry.channel)) != (str, int, str):
                    raise DamagedRow("a write has no position")
                _need(
                    thread,
                    contents,
                    checkpoint,
                    f"a pending write to {entry.channel!r}",
                    entry.value,
                )
        except Exception as error:
            pass_on(error)
            place = f"pending_write {thread.number}/{space}/{readable(checkpoint)}/{readable(task)}"
            thread.damaged("write", place, error.__cause__ or error, (readable(checkpoint),))
    yield PAUSE
    return rows[-1][:3] if len(rows) == limit else None


def _need(
    thread: Examined, contents: Contents, checkpoint: bytes, what: str, ref: ValueRef
) -> None:
    """Note what a reference needs; it must be well-formed."""
    if ref.body is not None and contents.read_value(ref.body) > length_of(checked(ref.runs)):
        raise DamagedRow(f"{what} contains messages that it does not list")
    if ref.runs or ref.row is not None:
        thread.uses.setdefault(Need(ref.runs, ref.rows(), ref.deltas is not None), []).append(
            checkpoint
        )


# -- words, values and items -----------------------------------------------------------------------


def read_words(thread: Examined, contents: Contents, at: Cursor, limit: int) -> Op[Cursor | None]:
    """Look at a page of words."""
    rows = yield from fetch(sql.SELECT_WORD_PAGE, **thread.rows(at), limit=limit)
    for number, body, check in rows:
        if check != checks.check_of(thread.number, number, body):
            thread.damaged("word", f"word {thread.number}/{number}", checks.CHANGED)
        elif not isinstance(body, bytes):
            thread.damaged("word", f"word {thread.number}/{number}", "it is not a word")
    return rows[-1][:1] if len(rows) == limit else None


def read_values(thread: Examined, contents: Contents, at: Cursor, limit: int) -> Op[Cursor | None]:
    """Look at a page of values."""
    rows = yield from fetch(sql.SELECT_VALUE_PAGE, **thread.behind(at), limit=limit)
    for count, (key, body, check) in enumerate(rows, start=1):
        number = key & NUMBER
        try:
            checks.verify(check, thread.number, number, body)
            whole = expand(body)
            thread.values[number] = contents.read_value(whole)
            thread.bodies[number] = len(whole)
        except Exception as error:
            pass_on(error)
            thread.broken.add(("value", number))
            thread.damaged(
                "value", f"value {thread.number}:{number}", error, affected(thread, value=number)
            )
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    return (rows[-1][0] & NUMBER,) if len(rows) == limit else None


def read_items(thread: Examined, contents: Contents, at: Cursor, limit: int) -> Op[Cursor | None]:
    """Look at a page of items."""
    rows = yield from fetch(sql.SELECT_ITEM_PAGE, **thread.behind(at), limit=limit)
    for count, row in enumerate(rows, start=1):
        number = row[0] & NUMBER
        place = f"item {thread.number}:{number}"
        try:
            reading = yield from read_item(thread.cache, contents, row)
        except Exception as error:
            pass_on(error)
            thread.broken.add(("item", number))
            thread.damaged("item", place, error.__cause__ or error, affected(thread, item=number))
            continue
        thread.items[number] = len(reading.packed or row[7])
        _compare(thread, row, reading, place)
        if reading.packed is not None:
            digest = blake2b(reading.packed, digest_size=16).digest()
            first = thread.digests.setdefault(digest, number)
            if first != number:
                thread.findings.add("double", "note", place, f"duplicates item {first}")
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    return (rows[-1][0] & NUMBER,) if len(rows) == limit else None


def read_item(cache: ThreadCache, contents: Contents, row: Row) -> Op[Reading]:
    """An item, from its row and its token count (`storage.inspect.sql.SELECT_ITEM`)."""
    keys = None if row[8] is None else (yield from read_word(cache, row[8]))
    return contents.read_item(cache.number, row[:-1], keys)


def _compare(thread: Examined, row: Row, reading: Reading, place: str) -> None:
    """Check the columns that follow from an item's bytes."""
    stored = {
        "name": row[3],
        "text": expand_text(row[4]),
        "tool_call_id": row[5],
        "tokens": row[-1],
    }
    wrong = [
        column
        for column, value in reading.columns.items()
        if (stored[column] != value or type(stored[column]) is not type(value))
        and (thread.counted or column != "tokens")
    ]
    if wrong:
        thread.repairs.append(row[0] & NUMBER)
        thread.findings.add(
            "column",
            "wrong",
            place,
            f"{' and '.join(wrong)} does not match the message",
            fixable=True,
        )


@operation_once
def read_needs(thread: Examined, contents: Contents, needs: Sequence[Need]) -> Op[None]:
    """Check whole values: that their rows fit together, and that they name only listed messages."""
    for need in needs:
        if thread.unread or any(row not in thread.values for row in need.rows):
            continue  # named already, or as missing
        place = f"value {thread.number}:{'+'.join(map(str, need.rows))}"
        try:
            needed = max(thread.values[row] for row in need.rows)
            if need.compound:
                body = yield from read_value(
                    thread.cache, ValueRef(row=need.rows[0], deltas=need.rows[1:])
                )
                needed = contents.read_value(body or b"")
            if needed > length_of(need.runs):
                raise DamagedRow("it contains messages that its reference does not list")
        except Exception as error:
            pass_on(error)
            thread.damaged(
                "value", place, error.__cause__ or error, map(readable, thread.uses[need])
            )
    yield PAUSE


def affected(
    thread: Examined, *, item: int | None = None, value: int | None = None
) -> Iterable[str]:
    """Ids of the checkpoints that need a row."""
    for need, checkpoints in thread.uses.items():
        in_runs = item is not None and any(
            start <= item < end for start, end in ranges_of(need.runs)
        )
        if in_runs or (value is not None and value in need.rows):
            yield from map(readable, checkpoints)


# -- tables ----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Table:
    """How a table is read.

    Attributes:
        name: Its name.
        page: Reads the rows after a key, up to a limit; the last one's key, or None if no more
            follow.
        next_key: SQL of the key after a key.
        parts: How many columns the key has.
    """

    name: str
    page: Callable[[Examined, Contents, Cursor, int], Operation[Cursor | None]]
    next_key: str
    parts: int

    def start(self, thread: Examined) -> Cursor:
        """A key before the thread's first."""
        return (-1,) if self.name in ("item", "value") else (-NUMBERS, b"", b"")[: self.parts]

    @operation
    def key(self, thread: Examined, at: Cursor) -> Op[Cursor | None]:
        """The key after a key, read without the rest of its row."""
        if self.name not in ("item", "value"):
            return (yield from fetch_one(self.next_key, **thread.rows(at)))
        row = yield from fetch_one(self.next_key, **thread.behind(at))
        return None if row is None else (row[0] & NUMBER,)

    def affected(self, thread: Examined, key: Cursor) -> Iterable[str]:
        """Ids of the checkpoints that need a row."""
        if self.name in ("item", "value"):
            return affected(thread, **{self.name: key[0]})
        return (readable(key[1]),) if self.name in ("checkpoint", "pending_write") else ()

    def place(self, thread: Examined, key: Cursor) -> str:
        """A row's place, for people."""
        if self.name in ("item", "value"):
            return f"{self.name} {thread.number}:{key[0]}"
        return (
            f"{self.name}"
            f" {thread.number}/"
            f"{'/'.join(readable(part) if isinstance(part, bytes) else str(part) for part in key)}"
        )


TABLES: Final = (
    Table("namespace", operation_once(read_namespaces), sql.NEXT_NAMESPACE, 1),
    Table("checkpoint", operation_once(read_checkpoints), sql.NEXT_CHECKPOINT, 2),
    Table("pending_write", operation_once(read_pending), sql.NEXT_WRITE, 3),
    Table("word", operation_once(read_words), sql.NEXT_WORD, 1),
    Table("value", operation_once(read_values), sql.NEXT_VALUE, 1),
    Table("item", operation_once(read_items), sql.NEXT_ITEM, 1),
)
"""In the order in which they must be read: what refers before what is referred to."""
