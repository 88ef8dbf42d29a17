"""Operations that give a thread its title: its first prompt, as it is now."""

from __future__ import annotations

from itertools import chain, islice, starmap
from typing import Final

from langmem_ext.messages.manifest import Runs, ranges_of
from langmem_ext.storage.checkpoints import sql
from langmem_ext.storage.checkpoints.messages import load_items
from langmem_ext.storage.checkpoints.writer import Writer
from langmem_ext.storage.operation import ANY, Op

FIRST: Final = 16
"""Messages at the beginning of a list among which a thread's first prompt is looked for."""


def keep_title(writer: Writer, runs: Runs, *, ready: bool) -> Op[None]:
    """Give a thread a title if it has none; a message that replaces its prompt gives a new one.

    So a prompt that is marked late, or redacted, leaves nothing in the title.

    Args:
        writer: Writes to the thread.
        runs: The longest list of messages of the root's newest checkpoint.
        ready: Whether the prompt may be shown: a node that has not seen it yet may mark it.
    """
    thread = writer.thread
    if thread.titled:
        yield from _follow_prompt(writer, runs, thread.titled - 1)
    elif thread.untitled and ready:
        writer.title, writer.titled_by = _title_in(writer, runs)


def _title_in(writer: Writer, runs: Runs) -> tuple[str | None, int | None]:
    """A title from the first prompt of a list, and the item that it comes from.

    Only the cache is searched: at the beginning of a conversation it has all messages, and the next
    checkpoint comes soon.
    """
    for number in _beginning(runs):
        packed = writer.cache.content.get(number)
        title = None if packed is None else writer.codec.title_of(packed)
        if title is not None:
            return title, number
    return None, None


def _follow_prompt(writer: Writer, runs: Runs, titled: int) -> Op[None]:
    """Take the title from the later message that replaced the one that gave it."""
    if any(start <= titled < end for start, end in ranges_of(runs)):
        return
    cache, codec, numbers = writer.cache, writer.codec, tuple(_beginning(runs))
    passed, cache.passed = cache.passed, (titled, *numbers)
    # An earlier one stands there again where somebody has gone back: nobody has looked at that one
    # yet.
    later = [
        number
        for number in numbers
        if number > titled and (passed[:1] != (titled,) or number not in passed)
    ]
    if later and titled not in cache.content:
        yield from load_items(cache, codec, titled, titled + 1, damaged=True)
    before = cache.content.get(titled)
    message_id = None if before is None else codec.id_of(before)
    for number in later if message_id is not None else ():
        packed = cache.content.get(number)
        if packed is not None and codec.id_of(packed) == message_id:
            title = codec.title_of(packed)
            params = (title, None if title is None else number, writer.thread.number, titled)
            writer.changes.append((sql.RETITLE, params, ANY))
            writer.thread.untitled, writer.thread.titled = (
                int(title is None),
                0 if title is None else number + 1,
            )
            return


def _beginning(runs: Runs) -> islice[int]:
    return islice(chain.from_iterable(starmap(range, ranges_of(runs))), FIRST)
