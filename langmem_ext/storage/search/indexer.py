"""Puts items into the search index and out of it: of all items with one id, one is indexed.

A node that marks a message as sensitive stores a copy of it under its id. Mostly the copy comes
later; but LangGraph stores what a task has written beside the checkpoint that the task has read,
and either may come first. So it is noted of each id which item is the newest, and which the newest
that is marked, and what is found follows from these two, in whatever order they came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from langmem_ext.messages.packed import is_text
from langmem_ext.messages.search.words import list_words
from langmem_ext.storage.cache import NOTED, ThreadIndex
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
        is_text: Whether it is a bare text, and no message.
        is_unnamed: Whether it is a user's message of which nothing is said, and has no id: it may
            get one yet.
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
        """Whether a copy of it may follow that says what of it is sensitive (`Shown.open`)."""
        return self.shown is not None and self.shown.open


def item_of(index: ThreadIndex, number: int, codec: Codec) -> Item:
    """An item that the index knows."""
    packed = index.content[number]
    message_id = None if is_text(packed) else codec.id_of(packed)
    return Item.of(number, None if message_id is None else encode_id(message_id), packed, codec)


def standing_of(index: ThreadIndex, codec: Codec, note: Row, known: Mapping[int, Item]) -> Op[int]:
    """Of the items with one message id, the number of the one that is found.

    It is the newest; but an earlier one that is marked, where that is the newest which is, and the
    newest has the same text: it is the message as it was before a node marked it, and was stored
    later (LangGraph stores what a task has written beside the checkpoint that the task has read).

    Args:
        index: The thread's.
        codec: Reads items.
        note: What is noted of the id (`storage.search.sql.SELECT_NEWEST`).
        known: Items that need not be read, by number.
    """
    newest, marked = note
    if marked is None or marked == newest:
        return int(newest)
    shown: list[Shown | None] = []
    for number in (newest, marked):
        if number not in known and number not in index.content:
            yield from load_items(index, codec, number, number + 1, damaged=True)
        item = known.get(number) or (
            item_of(index, number, codec) if number in index.content else None
        )
        shown.append(None if item is None else item.shown)
    one, other = shown
    # Where one cannot be read, nobody knows.
    return int(marked) if one is None or other is None or one.text == other.whole else int(newest)


class Placing:
    """Items of a thread on their way into the index, and out of it.

    Args:
        index: The thread's; nobody else writes to it.
        codec: Reads items.
        remembers: Whether it is remembered what is noted of ids: where asking costs a trip, and the
            index is current.
    """

    def __init__(self, index: ThreadIndex, codec: Codec, *, remembers: bool = False) -> None:
        self._index, self._remembers = index, remembers
        self._codec = codec
        self._thread = index.number
        self._words: list[dict[str, int | str]] = []
        self._gone: list[dict[str, int]] = []

    def pick_standing(self, items: Sequence[Item]) -> Op[list[Item]]:
        """Those of some items that are found, of those with their ids; it is noted what they are.

        Those that are found no more for them leave, and what is found again, and is none of them,
        comes back.
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
        standing: dict[bytes, int] = {}
        for raw in [raw for raw in notes if raw in several or raw in before]:
            standing[raw] = yield from self._settle(raw, before.get(raw), notes[raw], known)
        for item in items:
            if item.id in standing and standing[item.id] != item.number:
                self.remove(item.number)
        return [
            item for item in items if item.id not in standing or standing[item.id] == item.number
        ]

    def _settle(
        self, raw: bytes, earlier: Row | None, note: Row, known: Mapping[int, Item]
    ) -> Op[int]:
        """The number of the indexed item of an id; all others that are not `known` are removed."""
        whole = _merged(earlier, note)
        if earlier is not None and whole != earlier:
            yield from fetch(
                sql.SET_NEWEST, thread=self._thread, id=raw, number=whole[0], marked=whole[1]
            )
        stands = yield from standing_of(self._index, self._codec, whole, known)
        for number in sorted({*whole, *(earlier or ())} - {None, stands} - known.keys()):
            self.remove(number)
        if whole != earlier and stands not in known and stands in self._index.content:
            self.add(stands, item_of(self._index, stands, self._codec).shown)
        return stands

    def _note(self, notes: Mapping[bytes, Row]) -> Op[dict[bytes, Row]]:
        """Note what is not noted yet of ids; what was noted before, by id."""
        index = self._index
        if self._remembers and not index.knows_notes:
            yield from self._learn_notes()
        before = {raw: index.noted[raw] for raw in notes if raw in index.noted}
        new = [raw for raw in notes if raw not in index.noted]
        if self._remembers and index.knows_notes:
            for raw in new:
                yield [(sql.NOTE_NEWEST, (self._thread, raw, *notes[raw]), ONE)]
        else:
            stored: Sequence[Rows] = (
                (yield Together([self._insert(raw, notes[raw]) for raw in new])) if new else ()
            )
            known = [raw for raw, rows in zip(new, stored, strict=True) if not rows]
            questions = [
                Statement(sql.SELECT_NEWEST, {"thread": self._thread, "id": raw}) for raw in known
            ]
            found: Sequence[Rows] = (yield Together(questions)) if questions else ()
            before |= {raw: rows[0] for raw, rows in zip(known, found, strict=True)}
        for raw, note in notes.items() if self._remembers else ():
            index.note(raw, _merged(before.get(raw), note))
        return before

    def _learn_notes(self) -> Op[None]:
        """Remember what is noted of the thread's ids, where they are few enough."""
        rows = yield from fetch(sql.SELECT_NOTES, thread=self._thread, limit=NOTED)
        for raw, *note in reversed(rows):
            self._index.note(raw, tuple(note))
        self._index.knows_notes = len(rows) < NOTED

    def _insert(self, raw: bytes, note: Row) -> Statement:
        """What notes an id, unless it is noted."""
        return Statement(
            sql.INSERT_NEWEST,
            {"thread": self._thread, "id": raw, "number": note[0], "marked": note[1]},
        )

    def add(self, number: int, shown: Shown | None) -> None:
        """Have an item found by what is shown of it."""
        words = "" if shown is None else list_words(shown.text)
        if words:
            self._words.append({"thread": self._thread, "number": number, "words": words})

    def remove(self, number: int) -> None:
        """Have an item found no more."""
        self._gone.append({"thread": self._thread, "number": number})

    def finish(self) -> Op[None]:
        """Write what has come together."""
        if self._gone:
            yield Batch(sql.DELETE_WORDS, self._gone)
            yield from fetch(MARK_STALE, thread=self._thread)
        if self._words:
            yield Batch(PUT_WORDS, self._words)


def _note_of(item: Item) -> Row:
    """What an item alone would have noted of its id."""
    return (
        item.number,
        item.number if item.shown is not None and item.shown.whole is not None else None,
    )


def is_noted(item: Item, note: Row) -> bool:
    """Whether what is noted of an id speaks of this item of it too."""
    marks = item.shown is not None and item.shown.whole is not None
    return _merged(note, _note_of(item)) == tuple(note) and (marks or note[1] != item.number)


def _merged(one: Row | None, other: Row) -> Row:
    """What is noted of an id, of whose items one and the other were noted."""
    if one is None:
        return other
    return max(one[0], other[0]), max(
        (number for number in (one[1], other[1]) if number is not None), default=None
    )
