r"""Namespaces and keys as bytes, which sort as the labels do.

A label ends with the byte 1; characters up to 2 are escaped, so that nothing in a label is taken
for its end. So a prefix of labels is a prefix of the bytes, and nothing else is: `("a",)` is not a
prefix of `("ab",)`.

>>> path_of(("users", "7"))
b'users\x017\x01'
>>> labels_of(path_of(("a.b", "")))
('a.b', '')
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from langgraph.store.base import MatchCondition

from langmem_ext.errors import InvalidInput

_END: Final = b"\x01"
_ESCAPED: Final = re.compile(b"[\x00-\x02]")
_ESCAPE: Final = re.compile(b"\x02([\x10-\x12])")
_LAST: Final = b"\xff"
"""Sorts after every path: no character begins with it."""

WALK_BYTES: Final = {"end": _END, "beyond": b"\x02", "least": b"\x00"}
"""For `statements.WALK_PATHS`: a label's end; in its place, what sorts behind all that the label is
a prefix of (`end_of`); and behind a path, what sorts before all else."""

DEEPEST: Final = 2**31 - 1
"""More labels than a namespace has."""


def path_of(labels: Sequence[str]) -> bytes:
    """A namespace as bytes.

    Raises:
        InvalidInput: It is not a tuple of strings.
    """
    if isinstance(labels, str) or not isinstance(labels, Sequence):
        raise InvalidInput(f"a namespace is a tuple of strings, not {type(labels).__name__}")
    return b"".join(bytes_of(label) + _END for label in labels)


def labels_of(path: bytes) -> tuple[str, ...]:
    """The namespace whose bytes these are."""
    return tuple(map(text_of, path.split(_END)[:-1]))


def bytes_of(name: str) -> bytes:
    """A label or a key as bytes.

    Raises:
        InvalidInput: It is not a string.
    """
    if not isinstance(name, str):
        raise InvalidInput(f"labels and keys are strings, not {type(name).__name__}")
    raw = name.encode("utf-8", "surrogatepass")
    return _ESCAPED.sub(lambda match: bytes((2, match[0][0] + 16)), raw)


def text_of(raw: bytes) -> str:
    """The label or key whose bytes these are."""
    plain = _ESCAPE.sub(lambda match: bytes((match[1][0] - 16,)), raw)
    return plain.decode("utf-8", "surrogatepass")


def end_of(path: bytes) -> bytes:
    """The bytes after all namespaces that begin with this one, and before all that follow."""
    return path[:-1] + b"\x02" if path else _LAST


def matches(condition: MatchCondition, labels: Sequence[str]) -> bool:
    """Whether a namespace begins, or ends, as a condition says; `*` matches any one label.

    Raises:
        InvalidInput: The condition is of another kind.
    """
    wanted = condition.path
    if condition.match_type == "prefix":
        part = labels[: len(wanted)]
    elif condition.match_type == "suffix":
        part = labels[len(labels) - len(wanted) :] if len(wanted) <= len(labels) else ()
    else:
        raise InvalidInput(f"namespaces match by prefix or suffix, not {condition.match_type!r}")
    pairs = zip(wanted, part, strict=False)
    return len(part) == len(wanted) and all(name in ("*", label) for name, label in pairs)


def common_prefix(conditions: Sequence[MatchCondition]) -> tuple[str, ...]:
    """The longest prefix without `*` in the conditions."""
    prefixes = [()] + [
        condition.path for condition in conditions if condition.match_type == "prefix"
    ]
    plain = [tuple(path[: path.index("*")] if "*" in path else path) for path in prefixes]
    return max(plain, key=len)
