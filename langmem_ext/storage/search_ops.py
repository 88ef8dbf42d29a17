"""Operations that keep the search index: made when it is first asked for, filled, and from then on written with the messages.

Invariants:
- The index holds what may be shown of a message (`Codec.shown_of`), by the item's key; a sensitive value was never in it.
- Of items with one message id, the newest is in it. So a user's message that a graph has stored is indexed only when a later message is
  there, or the graph has nothing left to do (`rest`): until then a node may replace it by a copy that says what of it is sensitive. For the
  same reason a thread is filled from its end.
- `thread.indexed` says up to where a thread's items are done; NULL: not at all, and its writers do nothing for it. Since it is read and
  written in the transaction of the items, whoever writes knows what is to be done, whichever process has made the index.
- While `search_backfill` is set, threads are being filled: those that have NULL, and the one that it names, below the number in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from langmem_ext.errors import DamagedRow
from langmem_ext.messages.identity import is_text
from langmem_ext.messages.words import list_words
from langmem_ext.storage import search_statements as sql
from langmem_ext.storage.dialect import NUMBER
from langmem_ext.storage.effects import PAUSE, PAUSE_EVERY, Batch, Op, Row, Rows, Statement, Together, fetch, fetch_one, operation
from langmem_ext.storage.expectations import STORED, Expectations
from langmem_ext.storage.ids import encode_id
from langmem_ext.storage.index import ThreadIndex
from langmem_ext.storage.item_rows import decode_item, require_item
from langmem_ext.storage.lookup_ops import read_word
from langmem_ext.storage.message_ops import load_items
from langmem_ext.storage.rest import has_item
from langmem_ext.storage.search_dialect import HOLD_THREADS, MARK_STALE, PUT_WORDS
from langmem_ext.storage.writer import Writer
from langmem_ext.types import Codec, Shown, Snapshot

FORMAT: Final = "1"
"""How words are made of texts: an index of another format is made again."""

EXPECTED: Final = 16
"""Message ids whose newest item is expected one by one; what of more is noted is asked for, together."""

PAGES_AT_ONCE: Final = 250
"""Pages of the index that one step writes anew."""


# -- with a write ------------------------------------------------------------------------------------------------------------------------


def keep_indexed(writer: Writer) -> Op[None]:
    """Index what a write has added to a thread of the index, and move the thread's mark."""
    thread, index = writer.thread, writer.index
    assert thread.indexed is not None
    first, end = thread.indexed, thread.next_item
    yield from writer.flush()
    earlier = sorted(number for number in {*writer.named, *writer.completed} if number < first)
    missing = [number for number in range(first, end) if number not in index.content]
    if missing:
        # Another process has stored them; what is damaged stays out, and the doctor names it.
        yield from load_items(index, writer.codec, missing[0], missing[-1] + 1, damaged=True)
    numbers = [number for number in (*earlier, *range(first, end)) if number in index.content]
    held = yield from _held(writer, numbers)
    placing = Placing(thread.number, index.expected)
    ids = {number: _id_of(writer.codec, index.content[number]) for number in numbers}
    last = {message_id: number for number, message_id in ids.items()}
    standing = [(number, message_id) for number, message_id in ids.items() if message_id is None or last[message_id] == number]
    for number in sorted(ids.keys() - dict(standing).keys()):
        placing.remove(number)
    for number in (yield from placing.pick_newest(standing)):
        if number != held and (number >= first or number in writer.completed):
            placing.add(number, writer.codec.shown_of(index.content[number]))
    yield from placing.finish()
    thread.indexed = end if held is None else held


def _held(writer: Writer, numbers: Iterable[int]) -> Op[int | None]:
    """The thread's last message, if a node has yet to say whether it is sensitive."""
    thread, index = writer.thread, writer.index
    assert thread.indexed is not None
    last = max((number for number in numbers if not is_text(index.content[number])), default=None)
    if last is None or (last < thread.indexed and last not in writer.completed):
        return None
    if writer.settled and (last >= writer.began or last in writer.completed):
        return None
    if writer.final is not None and has_item(writer.final, last):
        return None
    shown = writer.codec.shown_of(index.content[last])
    if shown is None or not shown.open:
        return None
    # A text that had been passed by and is a message now: others may have come after it.
    low, high = last + 1, thread.indexed
    return last if low >= high or not (yield from fetch(sql.HAS_MESSAGES, thread=thread.number, low=low, high=high)) else None


def _id_of(codec: Codec, packed: Snapshot) -> bytes | None:
    message_id = None if is_text(packed) else codec.id_of(packed)
    return None if message_id is None else id_within(encode_id(message_id))


def id_within(message_id: bytes | None) -> bytes | None:
    """A message id as the index has it; None for one that is too long for an index."""
    return message_id if message_id is not None and len(message_id) <= sql.LONGEST_ID else None


class Placing:
    """Items of a thread on their way into the index, and out of it.

    Args:
        thread: The thread's number. Nobody else writes to it.
        expected: What is expected of the thread's rows; None where each is to be asked for.
    """

    def __init__(self, thread: int, expected: Expectations | None = None) -> None:
        self._thread = thread
        self._expected = expected
        self._words: list[dict[str, int | str]] = []
        self._gone: list[dict[str, int]] = []

    def pick_newest(self, items: Sequence[tuple[int, bytes | None]]) -> Op[list[int]]:
        """Those of some items, by number and message id, that are the newest with their ids; they are noted as that.

        An earlier one leaves, and so do those of `items` that are not the newest.
        """
        named = [(number, message_id) for number, message_id in items if message_id is not None]
        if self._expected is None or len(named) > EXPECTED:
            before = yield from self._ask(named)
        else:
            before = yield from self._expect(named, self._expected)
        for number, message_id in named:
            if number > before.get(message_id, number):
                yield from fetch(sql.SET_NEWEST, thread=self._thread, id=message_id, number=number)
                self.remove(before[message_id])
                before[message_id] = number
            elif number < before.get(message_id, number):
                self.remove(number)
        return [number for number, message_id in items if message_id is None or before.get(message_id, number) == number]

    def _ask(self, named: Sequence[tuple[int, bytes]]) -> Op[dict[bytes, int]]:
        """Note items as the newest where none is noted; by id, those that were noted before, in one trip, or two."""
        notes = [Statement(sql.INSERT_NEWEST, {"thread": self._thread, "id": raw, "number": number}) for number, raw in named]
        stored: Sequence[Rows] = (yield Together(notes)) if notes else ()
        known = [raw for (_, raw), rows in zip(named, stored, strict=True) if not rows]
        questions = [Statement(sql.SELECT_NEWEST, {"thread": self._thread, "id": raw}) for raw in known]
        found: Sequence[Rows] = (yield Together(questions)) if questions else ()
        return {raw: rows[0][0] for raw, rows in zip(known, found, strict=True)}

    def _expect(self, named: Sequence[tuple[int, bytes]], expected: Expectations) -> Op[dict[bytes, int]]:
        """`_ask`, as it is expected: an id that is not known is new."""
        before: dict[bytes, int] = {}
        for number, raw in named:
            noted = expected.noted.get(raw)
            row = None if noted is None else (yield from fetch_one(sql.SELECT_NEWEST, ((noted,),), thread=self._thread, id=raw))
            if row is None and not (yield from fetch(sql.INSERT_NEWEST, STORED, thread=self._thread, id=raw, number=number)):
                row = yield from fetch_one(sql.SELECT_NEWEST, thread=self._thread, id=raw)
            if row is not None:
                before[raw] = row[0]
            expected.note(raw, max(before.get(raw, number), number))
        return before

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


# -- parts -------------------------------------------------------------------------------------------------------------------------------


@operation
def drop_index() -> Op[None]:
    """Take the index away."""
    yield from lock_state()
    yield from fetch(HOLD_THREADS)
    for statement in sql.DROP:
        yield from fetch(statement)


@operation
def read_state() -> Op[dict[str, str]]:
    """What the database says of its index; empty where it has none."""
    return dict((yield from fetch(sql.SELECT_STATE)))


def lock_state() -> Op[dict[str, str]]:
    """`read_state`, and nobody else goes on with the index until the operation has ended."""
    return dict((yield from fetch(sql.LOCK_STATE)))


@operation
def forget_thread(thread: int) -> Op[None]:
    """Take all of a thread out of the index."""
    for statement in sql.DELETE_THREAD:
        yield from fetch(statement, thread=thread)
    yield from fetch(MARK_STALE, thread=thread)


def index_down(index: ThreadIndex, rows: Rows, codec: Codec) -> Op[None]:
    """Index items from the later to the earlier."""
    placing = Placing(index.number)
    messages = yield from read_messages_of(index, rows, codec)
    newest = set((yield from placing.pick_newest([(number, message_id) for number, message_id, _ in messages])))
    for number, _, packed in messages:
        if number in newest:
            placing.add(number, codec.shown_of(packed))
    yield from placing.finish()


def read_messages_of(index: ThreadIndex, rows: Rows, codec: Codec) -> Op[list[tuple[int, bytes | None, Snapshot]]]:
    """Number, id and bytes of each item that is whole."""
    found: list[tuple[int, bytes | None, Snapshot]] = []
    for count, row in enumerate(rows, start=1):
        try:
            packed = yield from read_packed_item(index, row, codec)
        except DamagedRow:
            continue
        found.append((row[0] & NUMBER, id_within(row[1]), packed))
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    return found


def read_packed_item(index: ThreadIndex, row: Row, codec: Codec) -> Op[Snapshot]:
    """An item's exact bytes, from its row.

    Raises:
        DamagedRow: It is not as it was written.
    """
    require_item(index.number, row)
    keys = None if row[8] is None else (yield from read_word(index, row[8]))
    return decode_item(index.number, row, keys, codec)[0]


# -- copies, and what is forgotten -------------------------------------------------------------------------------------------------------


def copy_indexed(source: int, target: int) -> Op[None]:
    """Have a copy of a thread found as the thread is."""
    [(indexed,)] = yield from fetch(sql.SELECT_INDEXED, thread=source)
    [(on,)] = yield from fetch(sql.SELECT_INDEXED, thread=target)
    if on is None:
        return  # there is no index, or it is being filled, and the copy will be
    state = yield from read_state()
    if indexed is None or state.get("search_backfill", "").startswith(f"{source}:"):
        yield from fetch(sql.SET_INDEXED, thread=target, indexed=None)
        return
    for statement in sql.COPY:
        yield from fetch(statement, source=source, target=target)
    yield from fetch(sql.SET_INDEXED, thread=target, indexed=indexed)


@operation
def needs_merge() -> Op[bool]:
    """Whether words of deleted messages may still stand in the index."""
    return "search_stale" in (yield from read_state())


@operation
def merge_some(*, first: bool) -> Op[bool]:
    """Have FTS5 forget the words of what was deleted, a few pages at a time: until it merges, they stand in its segments.

    Args:
        first: Whether the work begins: then all segments are to become one, however old they are.

    Returns:
        Whether there is more to do.
    """
    if not (yield from needs_merge()):
        return False
    if first:
        yield from fetch(sql.SET_STATE, name="search_stale", value="merging")
    [(before,)] = yield from fetch(sql.TOTAL_CHANGES)
    yield from fetch(sql.MERGE, pages=-PAGES_AT_ONCE if first else PAGES_AT_ONCE)
    [(after,)] = yield from fetch(sql.TOTAL_CHANGES)
    if after - before >= 2:
        return True
    # Unless more was deleted meanwhile: then the next time.
    yield from fetch(sql.CLEAR_STATE, name="search_stale", value="merging")
    return False
