"""Decodes rows without building the classes they name, for those who only inspect a database."""

from __future__ import annotations

import re
from math import prod
from typing import Any, Final

from langgraph.checkpoint.serde.base import SerializerProtocol

from langmem_ext.errors import DamagedRow
from langmem_ext.log.codec import EXT_BYTEARRAY, codec_of
from langmem_ext.log.extract import EXT_MESSAGE, EXT_TEXT
from langmem_ext.log.restore import DataSerializer, RestoreHook, RestorePolicy
from langmem_ext.messages.packed import is_foreign, is_text, opaque, unpack
from langmem_ext.messages.text import WHOLE, column_name
from langmem_ext.storage.inspect.read import Reading
from langmem_ext.storage.operation import Row
from langmem_ext.storage.rows.message import decode_item, require_item, whole_item
from langmem_ext.types import Snapshot

_ITEM_TYPES: tuple[tuple[type, ...], ...] = (
    (bytes, type(None)),
    (int, type(None)),
    (str, type(None)),
    (str, type(None)),
    (str, type(None)),
    (bytes, type(None)),
)


class Contents:
    """Decodes rows, whichever serializer wrote them.

    Args:
        serde: The serializer that wrote the database, if it was a custom one.

    Attributes:
        hidden: Rows met so far that such a serializer wrote and that cannot be decoded without it.
    """

    def __init__(self, serde: SerializerProtocol | None = None) -> None:
        serializer = DataSerializer()
        serializer.policy = self._policy = _BuildsNothing()
        self.codec = codec_of(serializer)
        self._foreign = (
            None if serde is None or isinstance(serde, DataSerializer) else codec_of(serde)
        )
        self.hidden = 0

    def read_item(self, thread: int, row: Row, keys: bytes | None) -> Reading:
        """An item, from its thread's number, its row and its shape's keys.

        The row has the columns of `statements.ITEM_COLUMNS`.

        Raises:
            DamagedRow: It is not as it was written, or does not decode.
        """
        require_item(thread, row)
        whole = whole_item(row, keys)
        for value, types in zip(whole, _ITEM_TYPES, strict=True):
            if type(value) not in types:
                raise DamagedRow(f"a column has the type {type(value).__name__}")
        _, role, _, text, _, rest = whole
        if role is None and rest is not None and is_foreign(rest):
            return self._read_foreign(thread, row, keys)
        packed, _ = decode_item(thread, row, keys, self.codec)
        if role is None and rest is None:
            if text is None:
                raise DamagedRow("it is empty")
            return Reading(packed, {"name": None, "tool_call_id": None, "tokens": 0}, is_text=True)
        if is_text(packed):
            raise DamagedRow("it is not a message")
        columns = self.codec.item_row(packed)
        if (
            columns.text != text
            and role is not None
            and WHOLE not in (unpack(rest, opaque) if rest else {})
        ):
            raise DamagedRow("its text does not match its blocks")
        derived = {"name": columns.name, "text": columns.text, "tool_call_id": columns.tool_call_id}
        return Reading(packed, derived | self._tokens(packed), is_text=False)

    def _read_foreign(self, thread: int, row: Row, keys: bytes | None) -> Reading:
        columns = {"name": None, "text": None, "tool_call_id": None}
        if self._foreign is None:
            self.hidden += 1
            return Reading(None, columns, is_text=False)
        packed, _ = decode_item(thread, row, keys, self._foreign)
        return Reading(packed, columns | self._tokens(packed), is_text=False)

    def _tokens(self, packed: Snapshot) -> dict[str, int]:
        """The message's token count, unless it holds an object that is not built here."""
        self._policy.asked = False
        tokens = self.codec.tokens_of(packed)
        return {} if self._policy.asked else {"tokens": tokens}

    def read_value(self, body: bytes) -> int:
        """How many messages a value refers to."""
        if self._foreign is not None and is_foreign(body):
            self._foreign.load_plain(body)
            return 0
        named: set[int] = set()

        def lifted(code: int, data: bytes) -> Any:
            if code not in (EXT_MESSAGE, EXT_TEXT):
                return _inert(code, data)
            position = unpack(data)
            if type(position) is not int or position < 0 or position in named:
                raise ValueError("it refers to a message that it does not list, or to one twice")
            named.add(position)

        unpack(body, RestoreHook(self._policy, lifted))
        return max(named, default=-1) + 1

    def read_plain(self, body: bytes) -> Any:
        """The values stored whole in a checkpoint; None if their serializer is not available."""
        if not is_foreign(body):
            return unpack(body, RestoreHook(self._policy, _inert))
        if self._foreign is None:
            self.hidden += 1
            return None
        return self._foreign.load_plain(body)

    def read_name(self, body: bytes) -> str | None:
        """The name that a value is, as a column shows it; None for any other value.

        Raises:
            LookupError: Another serializer wrote it and is not available.
        """
        if is_foreign(body) and self._foreign is None:
            raise LookupError("the serializer that wrote the value was not passed")
        value = (
            self._foreign.load_plain(body)
            if self._foreign is not None and is_foreign(body)
            else unpack(body, opaque)
        )
        return column_name(value)


_OBJECTS: Final = "|O"
"""The type of an array of objects."""

_DTYPE: Final = re.compile(
    r"[<>|=](?:([biufcSUV])([1-9][0-9]{0,8})|[mM](8)(?:\[[0-9]{0,9}(?:[YMWDhs]|[munpfa]?s|m)\])?)"
)
_SIZES: Final = {
    "b": (1,),
    "i": (1, 2, 4, 8),
    "u": (1, 2, 4, 8),
    "f": (2, 4, 8, 16),
    "c": (8, 16, 32),
}
"""Bytes that a number of an array may have, by its kind; a text may have any."""


class _BuildsNothing(RestorePolicy):
    """Refuses every type without a word, and remembers that it was asked."""

    def __init__(self) -> None:
        super().__init__(strict=True)
        self.asked = False

    def find(self, module: str, name: str) -> Any:
        """Nothing; but what is not a name is an error, as it is where something is built.

        Raises:
            TypeError: It is invalid.
        """
        if type(module) is not str or type(name) is not str:
            raise TypeError("a class has no name")
        self.asked = True

    def array(self, dtype: str, shape: Any, order: Any, data: bytes) -> Any:
        """Nothing; but what is not an array is an error, as it is where one is built.

        Raises:
            ValueError: Type, shape and bytes do not belong together.
        """
        self.asked = True
        if dtype == _OBJECTS:
            return  # it reads as nothing, whatever its shape
        match = _DTYPE.fullmatch(dtype)
        size = 0 if match is None else int(match[2] or match[3])
        if match is None or size not in _SIZES.get(match[1], (size,)) or order not in ("C", "F"):
            raise ValueError("an array is invalid")
        if any(type(length) is not int or length < 0 for length in shape):
            raise ValueError("the shape of an array is invalid")
        if prod(shape) * size * (4 if match[1] == "U" else 1) != len(data):
            raise ValueError("an array does not match its shape")


def _inert(code: int, data: bytes) -> Any:
    if code == EXT_BYTEARRAY:
        return bytearray(data)
    raise ValueError(f"unknown extension code {code}: a newer release may have written it")
