"""The keys of a message's metadata: they repeat from message to message, and are most of its bytes.

`{"usage": {"in": 3, "out": 4}, "model": "m"}` is the skeleton `{"usage": {"in": None, "out": None},
"model": None}` and the leaves `[3, 4, "m"]`. A short list of dicts (tool calls) belongs to the
skeleton too; every other list is a leaf.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from langmem_ext.messages.packed import opaque, pack, unpack

MAX_LENGTH: Final = 8
"""A list of up to so many dicts belongs to the skeleton: longer ones hardly repeat."""


DEEPEST: Final = 255
"""The maximum depth of nested dicts and lists: msgpack writes no more."""

KEYS: Final = 32
"""The maximum bytes of keys for each byte of values. Many numbers under long names have 16."""


def split_keys(packed: bytes) -> tuple[bytes, bytes]:
    """A packed dict as skeleton and leaves, both packed."""
    leaves: list[Any] = []
    skeleton = _split(unpack(packed, opaque), leaves)
    return pack(skeleton), pack(leaves)


def is_in_keeping(skeleton: bytes, leaves: bytes) -> bool:
    """Whether there are so few keys that a row with these values may refer to them.

    The limits are those of `messages.size_limits`.
    """
    return len(skeleton) <= KEYS * len(leaves)


def join_keys(skeleton: bytes, leaves: bytes) -> bytes:
    """The dict that `split_keys` split.

    Raises:
        ValueError: Skeleton and leaves do not match.
    """
    rest = iter(unpack(leaves, opaque))
    whole = _join(unpack(skeleton), rest, 0)
    if next(rest, rest) is not rest:
        raise ValueError("there are more values than keys")
    return pack(whole)


def _split(value: Any, leaves: list[Any]) -> Any:
    if type(value) is dict:
        return {key: _split(item, leaves) for key, item in value.items()}
    if (
        type(value) is list
        and 0 < len(value) <= MAX_LENGTH
        and all(type(item) is dict for item in value)
    ):
        return [_split(item, leaves) for item in value]
    leaves.append(value)
    return None


def _join(skeleton: Any, leaves: Iterator[Any], depth: int) -> Any:
    if depth > DEEPEST:
        raise ValueError("its keys are nested too deeply")
    if type(skeleton) is dict:
        return {key: _join(item, leaves, depth + 1) for key, item in skeleton.items()}
    if type(skeleton) is list:
        return [_join(item, leaves, depth + 1) for item in skeleton]
    for leaf in leaves:
        return leaf
    raise ValueError("there are fewer values than keys")
