"""Adds items to the search index, and removes them: of all items with one id, one is indexed.

A node that marks a message as sensitive stores a copy of it under its id. The copy mostly comes
later; but LangGraph stores what a task has written at the same time as the checkpoint that the task
has read, and either may come first. So the index notes for each id which item is the newest, and
which is the newest that is marked. From these two follows which item is indexed, in whatever order
they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from langmem_ext.messages.packed import is_text
from langmem_ext.messages.search.words import list_words
from langmem_ext.storage.cache import NOTED, ThreadCache
from langmem_ext.storage.checkpoints.messages import load_items
from langmem_ext.storage.operation import ONE, Batch, Op, Row, Rows, Statement, Together, fetch
from langmem_ext.storage.rows.ids import encode_id
from langmem_ext.storage.schema.search_dialect import MARK_STALE, PUT_WORDS
from langmem_ext.storage.search import sql
from langmem_ext.types import Codec, Shown, Snapshot


def id_within(message_id: bytes | None) -> bytes | None:
    """A message id as the index has it; None for one that is too long for an index."""
    return message_id if message_id is not None and len(message_id) <= sql.LONGEST_ID else None


class Item(NamedTuple):
    """What the index must know of an item.

    Attributes:
        number: Its number.
        id: Its message's id (`id_within`).
        shown: What may be shown of it.
        is_text: Whether it is a bare text, not a message.
        is_unnamed: Whether it is a user's message without marks and without an id: it may get one
            yet.
    """

    number: int
    id: bytes | None
    shown: Shown | None
    is_text: bool
    is_unnamed: bool

    @classmethod
    def of(cls, number: int, raw: bytes | None, packed: Snapshot, codec: Codec) -> Item:
        """An item, by its message's id as it is stored, and its bytes."""
        shown = codec.shown_of(packed)
        return cls(
            number,
            id_within(raw),
            shown,
            is_text(packed),
            raw is None and shown is not None and shown.open,
        )

    @property
    def is_open(self) -> bool:
        """Whether a copy may follow that marks what is sensitive in it (`Shown.open`)."""
        return self.shown is not None and self.shown.open


def item_of(cache: ThreadCache, number: int, codec: Codec) -> Item:
    """An item that the index knows."""
    packed = cache.content[number]
    message_id = None if is_text(packed) else codec.id_of(packed)
    return Item.of(number, None if message_id is None else encode_id(message_id), packed, codec)


def indexed_number(
    cache: ThreadCache, codec: Codec, note: Row, known: Mapping[int, Item]
) -> Op[int]:
    """Of the items with one message id, the number of the one that is indexed.

    It is the newest, with one exception: the newest marked one, if it is older and has the same
    text. Then the newest is the message before a node marked it, and was only stored later
    (LangGraph stores what a task has written at the same time as the checkpoint that the task has
    read).

    Args:
        cache: The thread's.
        codec: Reads items.
        note: What is noted for the id (`storage.search.sql.SELECT_NEWEST`).
        known: Items that need not be read, by number.
    """
    newest, marked = note
    if marked is None or marked == newest:
        return int(newest)
    shown: list[Shown | None] = []
    for number in (newest, marked):
        if number not in known and number not in cache.content:
            yield from load_items(cache, codec, number, number + 1, damaged=True)
        item = known.get(number) or (
            item_of(cache, number, codec) if number in cache.content else None
        )
        shown.append(None if item is None else item.shown)
    newest_shown, marked_shown = shown
    if newest_shown is None or marked_shown is None:
        return int(marked)  # one cannot be read, so it may have the same text
    return int(marked) if newest_shown.text == marked_shown.whole else int(newest)


class Indexer:
    """Collects a thread's items that enter the search index, and those that leave it.

    Args:
        cache: The thread's cache; nobody else writes to the thread.
        codec: Reads items.
        remembers: Whether the notes of ids are cached: if a query costs a round trip, and the cache
            is current.
    """

    def __init__(self, cache: ThreadCache, codec: Codec, *, remembers: bool = False) -> None:
        self._cache, self._remembers = cache, remembers
        self._codec = codec
        self._thread = cache.number
        self._words: list[dict[str, int | str]] = []
        self._gone: list[dict[str, int]] = []

    def pick_indexed(self, items: Sequence[Item]) -> Op[list[Item]]:
        """Those of some items that are to be indexed; their ids are noted.

        Earlier items that give way to them leave the index. An earlier item that none of them
        replaces any more comes back.
        """
        notes: dict[bytes, Row] = {}
        several: set[bytes] = set()
        for item in items:
            if item.id is not None and item.id in notes:
                several.add(item.id)
                notes[item.id] = _merged(notes[item.id], _note_of(item))
            elif item.id is not None:
                notes[item.id] = _note_of(item)
        before = yield from self._note(notes)
        known = {item.number: item for item in items} if before or several else {}
        indexed: dict[bytes, int] = {}
        for raw in [raw for raw in notes if raw in several or raw in before]:
            indexed[raw] = yield from self._settle(raw, before.get(raw), notes[raw], known)
        for item in items:
            if item.id in indexed and indexed[item.id] != item.number:
                self.remove(item.number)
        return [item for item in items if item.id not in indexed or indexed[item.id] == item.number]

    def _settle(
        self, raw: bytes, earlier: Row | None, note: Row, known: Mapping[int, Item]
    ) -> Op[int]:
        """The number of the indexed item of an id; all others that are not `known` are removed."""
        whole = _merged(earlier, note)
        if earlier is not None and whole != earlier:
            yield from fetch(
                sql.SET_NEWEST, thread=self._thread, id=raw, number=whole[0], marked=whole[1]
            )
        indexed = yield from indexed_number(self._cache, self._codec, whole, known)
        for number in sorted({*whole, *(earlier or ())} - {None, indexed} - known.keys()):
            self.remove(number)
        if whole != earlier and indexed not in known and indexed in self._cache.content:
            self.add(indexed, item_of(self._cache, indexed, self._codec).shown)
        return indexed

    def _note(self, notes: Mapping[bytes, Row]) -> Op[dict[bytes, Row]]:
        """Note ids that are not noted yet; the earlier notes, by id."""
        cache = self._cache
        if self._remembers and not cache.knows_notes:
            yield from self._learn_notes()
        before = {raw: cache.noted[raw] for raw in notes if raw in cache.noted}
        new = [raw for raw in notes if raw not in cache.noted]
        if self._remembers and cache.knows_notes:
            for raw in new:
                yield [(sql.NOTE_NEWEST, (self._thread, raw, *notes[raw]), ONE)]
        else:
            stored: Sequence[Rows] = (
                (yield Together([self._insert(raw, notes[raw]) for raw in new])) if new else ()
            )
            known = [raw for raw, rows in zip(new, stored, strict=True) if not rows]
            queries = [
                Statement(sql.SELECT_NEWEST, {"thread": self._thread, "id": raw}) for raw in known
            ]
            answers: Sequence[Rows] = (yield Together(queries)) if queries else ()
            before |= {raw: rows[0] for raw, rows in zip(known, answers, strict=True)}
        for raw, note in notes.items() if self._remembers else ():
            cache.note(raw, _merged(before.get(raw), note))
        return before

    def _learn_notes(self) -> Op[None]:
        """Cache the thread's notes, if they are few enough."""
        rows = yield from fetch(sql.SELECT_NOTES, thread=self._thread, limit=NOTED)
        for raw, *note in reversed(rows):
            self._cache.note(raw, tuple(note))
        self._cache.knows_notes = len(rows) < NOTED

    def _insert(self, raw: bytes, note: Row) -> Statement:
        """The statement that notes an id, unless it is noted."""
        return Statement(
            sql.INSERT_NEWEST,
            {"thread": self._thread, "id": raw, "number": note[0], "marked": note[1]},
        )

    def add(self, number: int, shown: Shown | None) -> None:
        """Add an item to the index, by what is shown of it."""
        words = "" if shown is None else list_words(shown.text)
        if words:
            self._words.append({"thread": self._thread, "number": number, "words": words})

    def remove(self, number: int) -> None:
        """Remove an item from the index."""
        self._gone.append({"thread": self._thread, "number": number})

    def finish(self) -> Op[None]:
        """Write what was added and removed."""
        if self._gone:
            yield Batch(sql.DELETE_WORDS, self._gone)
            yield from fetch(MARK_STALE, thread=self._thread)
        if self._words:
            yield Batch(PUT_WORDS, self._words)


def _note_of(item: Item) -> Row:
    """The note of an item's id if there were no other item with it."""
    return (
        item.number,
        item.number if item.shown is not None and item.shown.whole is not None else None,
    )


def is_noted(item: Item, note: Row) -> bool:
    """Whether the note of an id takes this item into account."""
    marks = item.shown is not None and item.shown.whole is not None
    return _merged(note, _note_of(item)) == tuple(note) and (marks or note[1] != item.number)


def _merged(note: Row | None, other: Row) -> Row:
    """The note of an id from the notes of two of its items."""
    if note is None:
        return other
    return max(note[0], other[0]), max(
        (number for number in (note[1], other[1]) if number is not None), default=None
    )
