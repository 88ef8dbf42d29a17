"""What stored bytes may expand to: a thread is about as large in memory as in its database, whoever wrote it.

A reference is a few bytes. A list may name one message again and again, and many channels may name one value: applications do
so, and seldom often. A file of a few kilobytes, or a database, that somebody sends could name more than the memory holds. Hence
the rule:

    What is read together takes at most `TIMES` the bytes of what it names, each row counted once, or else `MEMORY` bytes.

Whoever packs a value keeps it: a value that would break the rule is stored whole, and costs what it would cost any other
checkpointer (`MessageCodec.pack_value`). So a row that breaks it is one that no application wrote, and is reported as damaged.

A value may also be nested: a Rust or Python stack that overflows ends the process, and each extension type inside another is a
copy of its bytes. `walk` looks at a value without a stack, and refuses what is nested too deeply to be built.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple

from langmem_ext.messages.identity import unpack

TIMES: Final = 16
"""How often, on average, the bytes of a row may be named by what is read together."""

SMALL: Final = 4 * 1024**2
"""Packed bytes up to which nobody counts: whatever they are, they take less than `MEMORY` (an empty list is one byte, and 64)."""

MEMORY: Final = 256 * 1024**2
"""Bytes of memory that what is read together may take, however often it names a row."""

LOOKED_AT: Final = 2
"""Extension types inside each other from which on what is in them is looked at before it is built (`require_shallow`): each may
hold a thousand lists in each other, and a stack that overflows ends the process. Few values have so many."""

DEEPEST: Final = 1500
"""Levels of a value: lists, dicts, and extension types with what is in them."""

NOTED: Final = 200
"""Brackets of a JSON text that no stack is too small for."""

_BRACKETS: Final = re.compile(rb"[\[{]")

COPIED: Final = 64 * 1024**2
"""Bytes of extension types inside each other that may be in memory at once, if they are not `TIMES` the outermost of them."""


class Extension(NamedTuple):
    """An extension type, not built."""

    code: int
    data: bytes


def packed_size(lists: Sequence[Sequence[bytes]], bodies: Sequence[bytes] = ()) -> int:
    """Bytes of the messages of some values and of their own bodies, each as often as it is named."""
    return sum([sum(map(len, messages)) for messages in lists]) + sum(map(len, bodies))


def is_in_proportion(lists: Sequence[Sequence[bytes]], bodies: Sequence[tuple[bytes, int]] = (), *, share: int = 1) -> bool:
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
    if total <= TIMES // share * (sum(map(len, messages)) + sum(len(body) / uses for body, uses in bodies)):
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
    return sum(map(sys.getsizeof, walk(packed)))


def require_shallow(packed: bytes) -> None:
    """See that a packed value is not nested too deeply to be built.

    Raises:
        ValueError: It is, or does not decode.
    """
    deque(walk(packed), maxlen=0)


def walk(packed: bytes) -> Iterator[Any]:
    """A packed value and everything in it, extension types (`Extension`) and what is in them too, in no particular order.

    Raises:
        ValueError: It does not decode, or is nested too deeply.
    """
    limit = max(COPIED, TIMES * len(packed))
    waiting: list[tuple[Iterator[Any], int]] = [(iter([unpack(packed, Extension)]), len(packed))]
    while waiting:
        values, copied = waiting[-1]
        value = next(values, waiting)
        if value is waiting:
            waiting.pop()
            continue
        yield value
        inner: Iterable[Any] = ()
        if isinstance(value, Extension):
            copied += len(value.data)
            inner = _inside(value.data)
        elif isinstance(value, dict):
            inner = chain(value, value.values())
        elif isinstance(value, list | tuple):
            inner = value
        else:
            continue
        if len(waiting) > DEEPEST or copied > limit:
            raise ValueError("it is nested too deeply")
        waiting.append((iter(inner), copied))


def load_json(text: str | bytes) -> Any:
    """What a row holds as JSON.

    Raises:
        ValueError: It is not JSON, or is nested too deeply.
    """
    try:
        return json.loads(text)
    except RecursionError:
        # The caller's stack may be full. What applications note is not nested so deeply that it is at fault.
        if len(_BRACKETS.findall(text if isinstance(text, bytes) else text.encode())) <= NOTED:
            raise
        raise ValueError("it is nested too deeply") from None


def _inside(data: bytes) -> Sequence[Any]:
    """What an extension type holds; nothing where that is no msgpack."""
    try:
        return [unpack(data, Extension)]
    except ValueError:
        return ()
