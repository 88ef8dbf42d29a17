"""A conversation in chunks that a model can read one by one; calls stay with their results.

Nothing is left out, and a call is parted from its result only where the two do not fit. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from langchain_core.messages import BaseMessage

from langmem_ext.context.summary.extract import TextCounter
from langmem_ext.context.summary.transcript import Entry, list_entries
from langmem_ext.messages.pairing import safe_boundaries


def cut_chunks(messages: Sequence[BaseMessage], limit: int, counter: TextCounter) -> list[str]:
    """The conversation's transcript in as few chunks as possible; empty if there is no text.

    It is cut at safe boundaries. What is between two of them and is too long is cut between its
    messages, and a message that is too long is parted, each part with its number.

    Args:
        messages: The conversation.
        limit: What a piece may cost, in what `counter` counts.
        counter: Measures texts.
    """
    return ["\n".join(group) for group in pack(_pieces(messages, limit, counter), limit, counter)]


def pack(texts: Iterable[str], limit: int, counter: TextCounter) -> list[list[str]]:
    """The texts in groups of neighbours within the limit; a longer text is a group by itself."""
    groups: list[list[str]] = []
    room = 0
    for text in texts:
        cost = counter.count_text(text) + 1  # and what parts it from the next
        if cost > room or not groups:
            groups.append([])
            room = limit + 1
        groups[-1].append(text)
        room -= cost
    return groups


def split_text(text: str, limit: int, counter: TextCounter) -> list[str]:
    """The text in pieces within the limit, cut at lines, sentences or words where there are any.

    Joined, the pieces are the text.

    A single character is not cut, whatever it costs.
    """
    cost = counter.count_text(text)
    if cost <= limit or len(text) < 2:
        return [text]
    step = -(-len(text) // (cost // max(limit, 1) + 1))
    pieces, start = [], 0
    while start < len(text):
        end = _place(text, start, start + step)
        pieces += split_text(text[start:end], limit, counter)
        start = end
    return pieces


def cut_at_line(text: str, limit: int, counter: TextCounter) -> str:
    """The text's first lines within the limit, or the first words of a longer first line.

    Empty where nothing has room.
    """
    if counter.count_text(text) <= limit:
        return text
    lines = text.splitlines()
    if kept := "\n".join(
        lines[
            : _most(len(lines), lambda some: counter.count_text("\n".join(lines[:some])) <= limit)
        ]
    ).rstrip():
        return kept
    kept = text[: _most(len(text), lambda some: counter.count_text(text[:some]) <= limit)]
    return (kept.rpartition(" ")[0] or kept).rstrip()


def _most(count: int, fits: Callable[[int], bool]) -> int:
    """The largest number up to `count` that fits, if all below one that fits do."""
    least = 0
    while least < count:
        middle = (least + count + 1) // 2
        least, count = (middle, count) if fits(middle) else (least, middle - 1)
    return least


def _place(text: str, start: int, end: int) -> int:
    """Where the piece that begins at `start` ends: not after `end`, and not long before it."""
    if end >= len(text):
        return len(text)
    for sign in ("\n", ". ", " "):
        at = text.rfind(sign, end - (end - start) // 4, end)
        if at >= 0:
            return at + len(sign)
    return end


def _pieces(messages: Sequence[BaseMessage], limit: int, counter: TextCounter) -> Iterator[str]:
    entries = list_entries(messages)
    for start, end in pairwise(safe_boundaries(messages)):
        unit = [entry for entry in entries[start:end] if entry is not None]
        whole = "\n".join(map(str, unit))
        if counter.count_text(whole) <= limit:
            if unit:
                yield whole
            continue
        for entry in unit:
            yield from _parts(entry, limit, counter)


def _parts(entry: Entry, limit: int, counter: TextCounter) -> Iterator[str]:
    if counter.count_text(str(entry)) <= limit:
        yield str(entry)
        return
    room = limit - counter.count_text(f"{entry.speaker} (part 100 of 100): ")
    texts = split_text(entry.text, max(room, 1), counter)
    for number, text in enumerate(texts, start=1):
        yield f"{entry.speaker} (part {number} of {len(texts)}): {text.strip()}"
