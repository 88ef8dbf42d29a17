"""What stored bytes may expand to: about as much memory as the database, whoever wrote it.

A reference is a few bytes. A list may name one message again and again, and many channels may name
one value: applications do so, but rarely many times. A file of a few kilobytes, or a database, from
an untrusted source could name more than memory holds. Hence the rule:

    What is read takes at most `TIMES` the bytes of what it names, each row counted once, or else
    `MEMORY` bytes.

Each value keeps it: one that would break the rule is stored whole, and costs what it would cost any
other checkpointer (`MessageCodec.pack_value`). So a value that breaks it is one that no application
wrote, and is reported as damaged.

All values of a checkpoint and its pending writes together may break it: twenty tasks that write the
same document. They are stored one by one, by different writers, and each must be readable again. So
together they must keep the rule only in data that is imported: an import refuses a thread that
breaks it, and the doctor notes it.

A value may also be nested: a Rust or Python stack that overflows ends the process, and each
extension type inside another is a copy of its bytes. `walk` looks at a value without a stack, and
refuses what is nested too deeply to be built, or takes more bytes at once than the rule has. Such a
value is not stored.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from langmem_ext.messages.packed import unpack

TIMES: Final = 16
"""How often, on average, the bytes of a row may be named by what is read together."""

SMALL: Final = 4 * 1024**2
"""Packed bytes up to which nothing is counted: whatever they are, they take less than `MEMORY` (an
empty list is one byte packed and 64 in memory)."""

MEMORY: Final = 256 * 1024**2
"""Bytes of memory that what is read together may take, however often it names a row."""

LOOKED_AT: Final = 2
"""Extension types inside each other from which on what is in them is looked at before it is built
(`require_shallow`): each may hold a thousand lists in each other, and a stack that overflows ends
the process. Few values have so many."""

DEEPEST: Final = 1500
"""Levels of a value: lists, dicts, and extension types with what is in them."""

NOTED: Final = 200
"""Brackets of a JSON text that no stack is too small for."""

_BRACKETS: Final = re.compile(rb"[\[{]")

_PLAIN: Final[dict[type, Callable[[Any], Iterable[Any]]]] = {
    list: iter,
    tuple: iter,
    dict: lambda held: chain(held, held.values()),
}
"""What is in a list, a tuple or a dict."""


class Extension(NamedTuple):
    """An extension type, not built."""

    code: int
    data: bytes


def packed_size(lists: Sequence[Sequence[bytes]], bodies: Sequence[bytes] = ()) -> int:
    """The size of some values' messages and own bodies, counted as often as they are named."""
    return sum([sum(map(len, messages)) for messages in lists]) + sum(map(len, bodies))


def is_in_proportion(
    lists: Sequence[Sequence[bytes]], bodies: Sequence[tuple[bytes, int]] = (), *, share: int = 1
) -> bool:
    """Whether what is read together keeps the rule of this module.

    Args:
        lists: The messages of each value.
        bodies: Each value's own bytes, and how many of the values name the same row for them.
        share: The part of what is allowed that it may have: a half for 2.
    """
    total = packed_size(lists, [body for body, _ in bodies])
    if total <= SMALL:
        return True
    messages = Counter(chain.from_iterable(lists))
    if total <= TIMES // share * (
        sum(map(len, messages)) + sum(len(body) / uses for body, uses in bodies)
    ):
        return True
    memory = MEMORY // share
    if total > memory:
        return False
    for part, count in chain(messages.items(), Counter(body for body, _ in bodies).items()):
        try:
            memory -= count * memory_of(part)
        except ValueError:
            return False
        if memory < 0:
            return False
    return True


def memory_of(packed: bytes) -> int:
    """Bytes that a packed value takes in memory, about.

    Raises:
        ValueError: It does not decode, or is nested too deeply.
    """
    return sum([sum(map(sys.getsizeof, group)) for group in _groups(packed)])


def require_shallow(packed: bytes) -> None:
    """See that a packed value is not nested too deeply to be built.

    Raises:
        ValueError: It is, or does not decode.
    """
    deque(_groups(packed), maxlen=0)


def walk(packed: bytes) -> Iterator[Any]:
    """A packed value and everything in it, extension types too, in no particular order.

    Raises:
        ValueError: It does not decode, or is nested too deeply.
    """
    return chain.from_iterable(_groups(packed))


def _groups(packed: bytes) -> Iterator[list[Any]]:
    """What `walk` gives, many at a time."""
    limit = max(MEMORY, TIMES * len(packed))
    waiting = [(packed, 0, 0)]
    while waiting:
        data, depth, copied = waiting.pop()
        copied += len(data)
        group = [unpack(data, Extension)] if data is packed else _inside(data)
        while group:
            if depth > DEEPEST or copied > limit:
                raise ValueError("it is nested too deeply")
            yield group
            depth += 1
            kinds = set(map(type, group))
            if Extension in kinds:
                waiting += [
                    (value.data, depth, copied) for value in group if type(value) is Extension
                ]
            held = () if kinds.isdisjoint(_PLAIN) else group
            group = [
                inner
                for value in held
                if type(value) in _PLAIN
                for inner in _PLAIN[type(value)](value)
            ]


def load_json(text: str | bytes) -> Any:
    """What a row holds as JSON.

    Raises:
        ValueError: It is not JSON, or is nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        # The caller's stack may be full. What applications note is not nested so deeply that it is
        # at fault.
        if len(_BRACKETS.findall(text if isinstance(text, bytes) else text.encode())) <= NOTED:
            raise
        raise ValueError("it is nested too deeply") from None


def _inside(data: bytes) -> list[Any]:
    """What an extension type holds; nothing if that is not msgpack."""
    try:
        return [unpack(data, Extension)]
    except ValueError:
        return []
