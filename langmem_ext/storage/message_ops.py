"""Operations on items: find the item of each message, store the new ones, read those that a manifest names.

Texts and ids come late. The text of an input given as a tuple or a dict is stored before there is a message, and the message that then
holds it takes its row. A message usually has no id when a node returns it and one in the checkpoint that follows, and either may arrive
first: bytes without an id that equal an unnamed item's *are* that item; bytes with an id that equal it but for the id name it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from langmem_ext.errors import DamagedRow
from langmem_ext.messages.manifest import Runs, merged, numbers_of, ranges_of, runs_of
from langmem_ext.messages.packed import is_text
from langmem_ext.messages.proportion import is_in_proportion
from langmem_ext.storage import checks
from langmem_ext.storage import statements as sql
from langmem_ext.storage.dialect import NUMBER
from langmem_ext.storage.effects import PAUSE, PAUSE_EVERY, Op, fetch, fetch_one, side_by_side
from langmem_ext.storage.index import KnownList, ThreadIndex
from langmem_ext.storage.item_rows import damaged_item, decode_item
from langmem_ext.storage.lookup_ops import learn_words, read_word
from langmem_ext.storage.thread_ops import ThreadRow
from langmem_ext.storage.writer import Writer
from langmem_ext.types import Codec, Snapshot

CATCH_UP: Final = 1024
"""How many of the newest unseen rows are read before a write: what another process or an earlier run of this one stored lately. A message
that is older than these and in no list that was read is stored again, at worst."""


def catch_up(index: ThreadIndex, thread: ThreadRow, codec: Codec) -> Op[None]:
    """Read the newest rows that this process has not seen. A damaged one is passed over, and named where it is needed."""
    yield from catch_up_words(index, thread)
    if index.items_end < thread.next_item:
        first = max(index.items_end, thread.next_item - CATCH_UP)
        yield from load_items(index, codec, first, thread.next_item, damaged=True)
        index.items_end = thread.next_item


def catch_up_words(index: ThreadIndex, thread: ThreadRow) -> Op[None]:
    """Read the newest words that this process has not seen."""
    if index.words_end < thread.next_word:
        first = max(index.words_end, thread.next_word - CATCH_UP)
        learn_words(index, (yield from fetch(sql.SELECT_WORDS_FROM, thread=thread.number, first=first)))
        index.words_end = thread.next_word


def load_items(index: ThreadIndex, codec: Codec, first: int, end: int, *, damaged: bool = False) -> Op[None]:
    """Read a range of items into the index.

    Args:
        index: The thread's.
        codec: Makes messages of rows.
        first: Its first number.
        end: The number behind its last.
        damaged: Whether to pass over damaged rows.

    Raises:
        DamagedRow: A row is damaged, and must not be.
    """
    thread = index.number
    rows = yield from fetch(sql.SELECT_ITEMS, thread=thread, low=first, high=end)
    words, expected = index.bodies, index.expected
    changed = checks.changed_items(rows, thread)
    for count, row in enumerate(rows, start=1):
        shape = row[8]
        try:
            if row[0] in changed:
                raise damaged_item(thread, row, checks.CHANGED)
            keys = None if shape is None else words.get(shape) or (yield from read_word(index, shape))
            packed, message_id = decode_item(thread, row, keys, codec)
        except DamagedRow:
            if not damaged:
                raise
            continue
        number = row[0] & NUMBER
        index.learn_item(number, packed, named=message_id is not None)
        if expected is not None:
            expected.learn_item(number, row[1:] if message_id is None else None)
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    if first <= index.items_end < end <= first + len(rows):
        index.items_end = end


def resolve(writer: Writer, packed: Sequence[Snapshot], known: KnownList | None = None) -> Op[tuple[Runs, Runs]]:
    """The item of each message, stored where there is none yet.

    Args:
        writer: Where new items go.
        packed: The messages' exact bytes.
        known: The list as it last stood, if it is one: what it begins with needs no look.

    Returns:
        The runs of items, and those of the positions of messages that have no id.
    """
    runs: Runs = ()
    nameless: Runs = ()
    if not packed:
        return runs, nameless
    start = 0
    if known is not None and len(known.packed) <= len(packed) and packed[: len(known.packed)] == known.packed:
        runs, nameless, start = known.runs, known.nameless, len(known.packed)
    numbers = []
    bare = []
    by_content = writer.index.by_content
    for position in range(start, len(packed)):
        number = by_content.get(packed[position])
        if number is None:
            number = yield from _admit(writer, packed[position])
        if number < 0:
            number = ~number
            bare.append(position)
        numbers.append(number)
    return runs_of(numbers, runs), runs_of(bare, nameless)


def _admit(writer: Writer, packed: Snapshot) -> Op[int]:
    """The item of a message that is not known to the byte: an unnamed one that gets its id, a named one met without it, or a new one.

    Returns `~number` for a message without an id.
    """
    index, codec = writer.index, writer.codec
    message_id = codec.id_of(packed)
    for step in writer.late:
        if packed in step:
            return ~step[packed]
    completed = (yield from _complete(writer, packed)) if index.texts and not is_text(packed) else None
    if completed is not None:
        return completed if message_id is not None else ~completed
    if message_id is None:
        return ~writer.add_item(packed)
    bare = codec.renamed(packed, None)
    tried = None
    while (unnamed := index.by_content.get(bare)) not in (None, tried) and ~unnamed in index.unnamed:
        if (yield from writer.name_item(~unnamed, packed, message_id)):
            writer.caught(bare, ~unnamed)
            return ~unnamed
        # Another process gave it an id meanwhile: this one, or another; then the next that is equal may be it.
        yield from load_items(index, codec, ~unnamed, ~unnamed + 1)
        if packed in index.by_content:
            return index.by_content[packed]
        tried = unnamed
    number = writer.add_item(packed)
    writer.caught(bare, number)
    return number


def _complete(writer: Writer, packed: Snapshot) -> Op[int | None]:
    """The bare text that becomes this message, if there is one."""
    index = writer.index
    text = writer.codec.text_key(packed)
    tried = None
    while text is not None and (known := index.by_content.get(text)) not in (None, tried) and ~known in index.texts:
        number = ~known
        if (yield from writer.complete_item(number, packed)):
            writer.caught(text, number)
            if number not in index.unnamed:
                writer.caught(writer.codec.renamed(packed, None), number)
            return number
        # Another process let it become a message meanwhile: this one, or another; then the next that is equal may be it.
        yield from load_items(index, writer.codec, number, number + 1)
        if packed in index.by_content:
            found = index.by_content[packed]
            return found if found >= 0 else ~found
        tried = known
    return None


def read_messages(index: ThreadIndex, codec: Codec, runs: Runs, nameless: Runs) -> Op[list[Snapshot]]:
    """The exact bytes of the messages that a manifest names, in its order.

    Raises:
        DamagedRow: An item is missing or does not decode, or the manifest names some too often.
    """
    packed = yield from gather_messages(index, codec, runs, nameless)
    if not is_in_proportion([packed]):
        raise out_of_proportion(f"a list of messages of thread number {index.number}")
    return packed


def out_of_proportion(what: str) -> DamagedRow:
    """The error that something names the same rows so often that it would fill the memory (`messages.proportion`)."""
    return DamagedRow(
        f"{what} names the same messages or values so often that it would fill the memory, as no application writes it: other threads"
        " stay readable; fork from an earlier checkpoint, or delete the thread"
    )


def gather_messages(index: ThreadIndex, codec: Codec, runs: Runs, nameless: Runs) -> Op[list[Snapshot]]:
    """`read_messages`, for a caller who sees to it that what it reads together is in proportion.

    Raises:
        DamagedRow: An item is missing or does not decode.
    """
    content = index.content
    missing = yield from missing_items(index, codec, runs)
    yield from side_by_side([load_items(index, codec, numbers[0], numbers[-1] + 1) for numbers in missing])
    numbers = numbers_of(runs)
    bare = numbers_of(nameless)
    if not index.unnamed.isdisjoint(numbers):
        yield from _reload_named(index, codec, numbers, set(bare))
    try:
        packed = [content[number] for number in numbers]
    except KeyError as error:
        raise _missing(index, error.args[0]) from None
    renamed = {number: codec.renamed(content[number], None) for number in {numbers[at] for at in bare} - index.unnamed}
    for position in bare if renamed else ():
        packed[position] = renamed.get(numbers[position], packed[position])
    return packed


def missing_items(index: ThreadIndex, codec: Codec, runs: Runs) -> Op[list[list[int]]]:
    """The items that a manifest names and nobody has read yet, those of a run together.

    Raises:
        DamagedRow: The last of a long run is missing.
    """
    content = index.content
    found = []
    for first, end in merged(ranges_of(runs)):
        if end - first > CATCH_UP and end - 1 not in content:
            # Before its numbers are written out: a forged run may name more than memory holds.
            yield from load_items(index, codec, end - 1, end)
            if end - 1 not in content:
                raise _missing(index, end - 1)
        if missing := [number for number in range(first, end) if number not in content]:
            found.append(missing)
    return found


def _missing(index: ThreadIndex, number: int) -> DamagedRow:
    return DamagedRow(f"message {number} of thread number {index.number} is missing: restore the thread from a copy, or delete it")


def _reload_named(index: ThreadIndex, codec: Codec, numbers: list[int], nameless: set[int]) -> Op[None]:
    """Read again what another process may have changed.

    That is what has no id here although the reference was made to a message that has one, and what is a bare text here.
    """
    changed = (at for at in enumerate(numbers) if at[1] in index.unnamed and (at[0] not in nameless or at[1] in index.texts))
    for number in dict.fromkeys(number for _, number in changed):
        known = index.expected and index.expected.item(number)
        where = {"thread": index.number, "number": number}
        if known is None or (yield from fetch_one(sql.SELECT_ITEM_BODY, known, **where)) != known[0]:
            yield from load_items(index, codec, number, number + 1)
