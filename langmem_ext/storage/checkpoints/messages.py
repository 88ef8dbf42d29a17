"""Operations on items: find each message's item, store new ones, read those that are named.

Texts and ids come late. The text of an input passed as a tuple or a dict is stored before there is
a message; the message that then holds it takes its row. A message usually has no id when a node
returns it, and has one in the checkpoint that follows. Either may arrive first: bytes without an id
that equal an item's but for its id are that item; bytes with an id that equal those of an item
without one give it theirs. A reference says which of its messages had no id when it was made.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from langmem_ext.errors import DamagedRow
from langmem_ext.messages.manifest import Runs, merged, numbers_of, ranges_of
from langmem_ext.messages.packed import is_text
from langmem_ext.messages.size_limits import is_in_proportion
from langmem_ext.storage.cache import Item, KnownList, ThreadCache
from langmem_ext.storage.checkpoints import sql
from langmem_ext.storage.checkpoints.lookup import learn_words, read_word
from langmem_ext.storage.checkpoints.thread_row import ThreadRow
from langmem_ext.storage.checkpoints.writer import Writer
from langmem_ext.storage.operation import PAUSE, PAUSE_EVERY, Op, fetch, side_by_side
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.rows.message import damaged_item, decode_item
from langmem_ext.storage.schema.dialect import NUMBER
from langmem_ext.types import Codec, Snapshot

CATCH_UP: Final = 1024
"""How many of the newest unseen rows are read before a write: those that another process, or this
one in an earlier run, stored lately. An older message that is in no list that was read is stored
again, at worst."""


def catch_up(cache: ThreadCache, thread: ThreadRow, codec: Codec) -> Op[None]:
    """Read the newest rows that this process has not read.

    A damaged row is skipped, and reported where it is needed.
    """
    yield from catch_up_words(cache, thread.number, thread.next_word)
    if cache.items_end < thread.next_item:
        first = max(cache.items_end, thread.next_item - CATCH_UP)
        yield from load_items(cache, codec, first, thread.next_item, damaged=True)
        cache.items_end = thread.next_item


def catch_up_words(cache: ThreadCache, thread: int, end: int) -> Op[None]:
    """Read the newest words that this process has not seen, below a number."""
    if cache.words_end < end:
        first = max(cache.words_end, end - CATCH_UP)
        learn_words(cache, (yield from fetch(sql.SELECT_WORDS_FROM, thread=thread, first=first)))
        cache.words_end = end


def load_items(
    cache: ThreadCache, codec: Codec, first: int, end: int, *, damaged: bool = False
) -> Op[None]:
    """Read a range of items into the cache.

    Args:
        cache: The thread's.
        codec: Makes messages of rows.
        first: Its first number.
        end: The number behind its last.
        damaged: Whether to skip damaged rows.

    Raises:
        DamagedRow: A row is damaged, and `damaged` is false.
    """
    thread = cache.number
    rows = yield from fetch(sql.SELECT_ITEMS, thread=thread, low=first, high=end)
    words = cache.bodies
    changed = checks.changed_items(rows, thread)
    for count, row in enumerate(rows, start=1):
        shape = row[8]
        try:
            if row[0] in changed:
                raise damaged_item(thread, row, checks.CHANGED)
            keys = (
                None if shape is None else words.get(shape) or (yield from read_word(cache, shape))
            )
            packed, message_id = decode_item(thread, row, keys, codec)
        except DamagedRow:
            if not damaged:
                raise
            continue
        cache.learn_item(row[0] & NUMBER, packed, named=message_id is not None)
        if message_id is not None:
            cache.read.append(row[0] & NUMBER)
        if count % PAUSE_EVERY == 0:
            yield PAUSE
    if first <= cache.items_end < end <= first + len(rows):
        cache.items_end = end


def resolve(
    writer: Writer, packed: Sequence[Snapshot], known: KnownList | None = None
) -> Op[tuple[Runs, Runs]]:
    """The item of each message, stored where there is none yet.

    Args:
        writer: Where new items go.
        packed: The messages' exact bytes.
        known: The list as it was last stored, if any: messages that it begins with need no lookup.

    Returns:
        The runs of items, and those of the positions of messages that have no id.
    """
    runs: list[int] = []
    bare: list[int] = []
    start = 0
    if (
        known is not None
        and len(known.packed) <= len(packed)
        and packed[: len(known.packed)] == known.packed
    ):
        runs, bare, start = [*known.runs], [*known.nameless], len(known.packed)
    by_content = writer.cache.by_content
    for position in range(start, len(packed)):
        item = by_content.get(packed[position])
        if item is None:
            item = yield from _admit(writer, packed[position])
        number = item.number
        if runs and runs[-1] == number:
            runs[-1] = number + 1
        else:
            runs += (number, number + 1)
        if not item.named:
            if bare and bare[-1] == position:
                bare[-1] = position + 1
            else:
                bare += (position, position + 1)
    return tuple(runs), tuple(bare)


def _admit(writer: Writer, packed: Snapshot) -> Op[Item]:
    """The item of a message whose bytes are not known: an earlier one, completed, or a new one.

    An earlier one is the message's text, or the message without its id, or with it.
    """
    cache, codec = writer.cache, writer.codec
    item = cache.bare.get(packed)
    if item is not None:
        return item
    row = codec.ready_row(packed)
    if row.message_id is None and cache.read:
        _learn_read(cache, codec)
        if packed in cache.bare:
            return cache.bare[packed]
    if cache.texts and not is_text(packed):
        text = codec.text_key(packed)
        item = None if text is None else cache.by_content.get(text)
        if item is not None and item.number in cache.texts:
            yield from writer.complete_item(item.number, packed, row)
            return cache.by_content[packed]
    if row.message_id is not None:
        item = cache.by_content.get(row.bare)
        if item is not None and item.number in cache.unnamed:
            yield from writer.name_item(item.number, packed, row.message_id)
            return cache.by_content[packed]
    return writer.add_item(packed, row)


def _learn_read(cache: ThreadCache, codec: Codec) -> None:
    """Remember what the items that were read are without their ids.

    A process that ended may not have written the other form of one.
    """
    for number in cache.read:
        packed = cache.content[number]
        cache.learn_bare(codec.renamed(packed, None), cache.by_content[packed])
    cache.read.clear()


def read_messages(
    cache: ThreadCache, codec: Codec, runs: Runs, nameless: Runs
) -> Op[list[Snapshot]]:
    """The exact bytes of the messages that a manifest names, in its order.

    Raises:
        DamagedRow: An item is missing or does not decode, or the manifest names some too often.
    """
    packed = yield from gather_messages(cache, codec, runs, nameless)
    if not is_in_proportion([packed]):
        raise out_of_proportion(f"a list of messages of thread number {cache.number}")
    return packed


def out_of_proportion(what: str) -> DamagedRow:
    """The error of what names the same rows so often that reading it would fill the memory.

    The limits are those of `messages.size_limits`.
    """
    return DamagedRow(
        f"{what} names the same messages or values so often that it would fill the memory, as no"
        " application writes it: other threads stay readable; fork from an earlier checkpoint, or"
        " delete the thread"
    )


def gather_messages(
    cache: ThreadCache, codec: Codec, runs: Runs, nameless: Runs
) -> Op[list[Snapshot]]:
    """`read_messages`, for a caller who checks that what it reads together is in proportion.

    Raises:
        DamagedRow: An item is missing or does not decode.
    """
    content = cache.content
    missing = yield from missing_items(cache, codec, runs)
    yield from side_by_side(
        [load_items(cache, codec, numbers[0], numbers[-1] + 1) for numbers in missing]
    )
    numbers = numbers_of(runs)
    bare = numbers_of(nameless)
    try:
        packed = [content[number] for number in numbers]
    except KeyError as error:
        raise missing_item(cache, error.args[0]) from None
    renamed = {
        number: codec.renamed(content[number], None)
        for number in {numbers[at] for at in bare} - cache.unnamed
    }
    for position in bare if renamed else ():
        packed[position] = renamed.get(numbers[position], packed[position])
    return packed


def missing_items(cache: ThreadCache, codec: Codec, runs: Runs) -> Op[list[list[int]]]:
    """The items that a manifest names and that are not cached, a list for each run.

    Raises:
        DamagedRow: The last of a long run is missing.
    """
    content = cache.content
    missing_runs = []
    for first, end in merged(ranges_of(runs)):
        if end - first > CATCH_UP and end - 1 not in content:
            # Checked before its numbers are listed: a forged run may name more than memory holds.
            yield from load_items(cache, codec, end - 1, end)
            if end - 1 not in content:
                raise missing_item(cache, end - 1)
        if missing := [number for number in range(first, end) if number not in content]:
            missing_runs.append(missing)
    return missing_runs


def missing_item(cache: ThreadCache, number: int) -> DamagedRow:
    """The error of a message that is named and is not there."""
    return DamagedRow(
        f"message {number} of thread number {cache.number} is missing: restore the thread from a"
        " copy, or delete it"
    )
