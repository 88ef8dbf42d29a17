"""Rows of a `SqliteSaver` as checkpoints and pending writes ready to be stored.

A row of a `SqliteSaver` holds the whole checkpoint, with every message of the conversation again.
Three things make that cheap: the bytes of a message are decoded once and recognised from then on;
what the parent has to the byte is carried on instead of being stored; and what is neither a message
nor plain data is not built but stored as it was packed. So no class of the application is needed,
none runs, and nothing is lost that a later reader may be allowed to build.

Two kinds of rows are decoded to objects instead: those that a custom serializer wrote, and those
that are to be written with one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

import ormsgpack
from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import (
    EXT_DELTA_SNAPSHOT,
    EXT_NUMPY_ARRAY,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)

from langmem_ext._internal.interruption import pass_on
from langmem_ext.checkpointer.values import (
    HELD,
    WAITING_CHANNEL,
    config_of,
    pack_checkpoint,
    texts_of,
)
from langmem_ext.errors import DamagedRow, InvalidInput, LangmemExtError, cause, safe_text
from langmem_ext.log.codec import MessageCodec
from langmem_ext.log.restore import DataSerializer, RestoreHook, RestorePolicy
from langmem_ext.log.unbuilt import Unbuilt
from langmem_ext.messages.packed import opaque, unpack
from langmem_ext.messages.size_limits import LOOKED_AT, require_shallow
from langmem_ext.messages.snapshot import CLASSES
from langmem_ext.storage.rows.checkpoint import PackedCheckpoint
from langmem_ext.storage.rows.clock import ms_of, now_ms
from langmem_ext.storage.sqlite.saver_file import SourceCheckpoint, SourceWrite
from langmem_ext.types import PackedValue, PackedWrite

REMEMBERED_BYTES: Final = 128 * 1024 * 1024
"""Bytes of messages that are recognised; with more, all are forgotten, and decoded again when they
come."""

_CLASSES: Final = {(cls.__module__, cls.__name__): cls for cls in CLASSES}
_LANGGRAPHS_OWN: Final = frozenset({"null", "bytes", "bytearray", "json", "msgpack"})
"""Kinds of rows that LangGraph's default serializer writes, or wrote."""


class Reader(Protocol):
    """Decodes a row."""

    def load(self, kind: str, blob: bytes) -> Any:
        """The value that a row holds."""


@dataclass(frozen=True, slots=True)
class Ancestor:
    """What a later checkpoint may carry on: versions and values, by channel."""

    versions: Mapping[str, Any]
    values: Mapping[str, PackedValue]


# -- reading ---------------------------------------------------------------------------------------


class StoringPolicy(RestorePolicy):
    """Builds messages and nothing else, and does not warn about the rest."""

    def find(self, module: str, name: str) -> Any:
        """The class, if it is one of messages."""
        return find_message(module, name)


def find_message(module: str, name: str) -> type[BaseMessage] | None:
    """The message class that a row names; None for any other class.

    It is one of LangChain's, or the application's own if that is loaded.
    """
    loaded = getattr(sys.modules.get(module), "__dict__", {})  # looking further may import
    kind = _CLASSES.get((module, name)) or loaded.get(name)
    if (
        not isinstance(kind, type)
        or not issubclass(kind, BaseMessage)
        or issubclass(kind, RemoveMessage)
    ):
        return None
    return kind if kind.__module__ == module else None


class RowReader:
    """Decodes what LangGraph's default serializer wrote, building messages and no other class."""

    def __init__(self) -> None:
        self._json = DataSerializer()
        self._known: dict[bytes, Any] = {}
        self._size = 0
        self._level = 0

    def load(self, kind: str, blob: bytes) -> Any:
        """The value that a row holds.

        Raises:
            InvalidInput: Another serializer wrote it.
        """
        if kind == "msgpack":
            return unpack(blob, self._hook)
        if kind not in _LANGGRAPHS_OWN:
            raise InvalidInput(
                f"was written by a custom serializer (its type is {kind!r}): pass it as serde="
            )
        return self._json.loads_typed((kind, blob))

    def _hook(self, code: int, data: bytes) -> Any:
        if code != EXT_PYDANTIC_V2:
            if code == EXT_NUMPY_ARRAY:
                return ormsgpack.Ext(code, data)
            if not 0 <= code <= EXT_DELTA_SNAPSHOT:
                raise ValueError(f"unknown extension code {code}")
            return Unbuilt(code, self._inside(data))
        known = self._known.get(data)
        return known if known is not None else self._admit(data)

    def _inside(self, data: bytes) -> Any:
        """What an extension type holds (as `RestoreHook` builds it)."""
        self._level += 1
        try:
            if self._level == LOOKED_AT:
                require_shallow(data)
            return unpack(data, self._hook)
        finally:
            self._level -= 1

    def _admit(self, data: bytes) -> Any:
        """A message, or what may be one to who knows its class; recognised from now on."""
        content = unpack(data, opaque)
        module, name, fields, *_ = content
        kind = find_message(module, name)
        value = (
            Unbuilt(EXT_PYDANTIC_V2, self._inside(data))
            if kind is None
            else _build_message(kind, fields)
        )
        self._size += len(data)
        if self._size > REMEMBERED_BYTES:
            self._known.clear()
            self._size = len(data)
        self._known[data] = value
        return value


def _build_message(kind: type[BaseMessage], fields: dict[str, Any]) -> BaseMessage:
    """The message as LangGraph's serializer builds it."""
    try:
        return kind(**fields)
    except Exception as error:
        pass_on(error)
        return kind.model_construct(**fields)


class ObjectReader:
    """Decodes to objects, with a serializer; a class that it refuses to build is an error.

    Args:
        serde: The serializer that wrote the rows.
    """

    def __init__(self, serde: SerializerProtocol) -> None:
        self._refused: list[tuple[str, str]] = []
        if isinstance(serde, DataSerializer):
            policy = _NotingPolicy(self._refused, serde.policy)
            self._serde: SerializerProtocol = JsonPlusSerializer(
                __unpack_ext_hook__=RestoreHook(policy)
            )
        else:
            self._serde = serde

    def load(self, kind: str, blob: bytes) -> Any:
        """The value that a row holds.

        Raises:
            InvalidInput: It names a class that is not to be built.
        """
        value = self._serde.loads_typed((kind, blob))
        if self._refused:
            named = self._refused.pop()
            raise InvalidInput(
                f"holds a {'.'.join(named)}, which is not a data class of an imported module and"
                " would be restored as plain data: import the module, or pass"
                f" serde=DataSerializer(allow=[{named!r}])"
            )
        return value


class _NotingPolicy(RestorePolicy):
    """A policy that notes what it refuses."""

    def __init__(self, refused: list[tuple[str, str]], policy: RestorePolicy) -> None:
        super().__init__(policy.allow, strict=policy.strict)
        self._refused = refused

    def find(self, module: str, name: str) -> Any:
        """What a row names, if it may be built."""
        kind = super().find(module, name)
        if kind is None:
            self._refused.append((module, name))
        return kind


# -- packing ---------------------------------------------------------------------------------------


class Transcoder:
    """Makes rows ready to be stored.

    Args:
        reader: Decodes them.
        codec: Packs what they hold.
    """

    def __init__(self, reader: Reader, codec: MessageCodec) -> None:
        self._reader = reader
        self.codec = codec

    def checkpoint(
        self, row: SourceCheckpoint, ancestor: Ancestor | None
    ) -> tuple[PackedCheckpoint, Ancestor]:
        """A checkpoint, and what a later one may carry on from it.

        Args:
            row: The checkpoint.
            ancestor: What its parent holds, if that is known.

        Raises:
            DamagedRow: It does not decode.
            InvalidInput: It cannot be read with this serializer.
        """
        with _decoding(f"checkpoint {row.id} of thread {row.thread!r}"):
            checkpoint = self._reader.load(row.kind, row.blob)
            values = checkpoint["channel_values"]
            packed = {
                channel: self.codec.pack_value(value, texts=HELD.get(channel, "none"))
                for channel, value in values.items()
            }
            metadata = load_metadata(row.metadata)
            bare: Any = {**checkpoint, "id": row.id, "channel_values": {}}
            config = config_of(row.thread, row.namespace, row.parent or "")
            made = pack_checkpoint(
                self.codec, config, (row.namespace, row.parent or None), bare, metadata, {}
            )
            carried = _carried(packed, made.header.versions, ancestor)
            waiting = values.get(WAITING_CHANNEL)
            made = replace(
                made,
                values={
                    channel: _giving(value) if channel in carried else value
                    for channel, value in packed.items()
                },
                label=_exact_label(made.label, metadata),
                waiting_for=(
                    waiting.encode("utf-8", "replace").decode()
                    if isinstance(waiting, str)
                    else None
                ),
            )
            return made, Ancestor(made.header.versions, packed)

    def write(self, row: SourceWrite) -> PackedWrite:
        """A pending write.

        Raises:
            DamagedRow: It does not decode.
            InvalidInput: It cannot be read with this serializer.
        """
        with _decoding(f"write {row.index} of task {row.task} to channel {row.channel!r}"):
            value = self.codec.pack_value(
                self._reader.load(row.kind, row.blob), texts=texts_of(row.channel)
            )
            return PackedWrite(row.index, row.channel, value)


@contextmanager
def _decoding(what: str) -> Iterator[None]:
    """Name the row that an error is about."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput(f"{what} {error}") from error
    except LangmemExtError:
        raise
    except Exception as error:
        pass_on(error)
        raise DamagedRow(
            f"{what} does not decode ({type(error).__name__}: {safe_text(error)})"
        ) from cause(error)


def _carried(
    packed: Mapping[str, PackedValue], versions: Mapping[str, Any], ancestor: Ancestor | None
) -> set[str]:
    """The channels whose values the parent holds to the byte, at the same version."""
    if ancestor is None:
        return set()
    return {
        channel
        for channel, value in packed.items()
        if ancestor.values.get(channel) == value
        and ancestor.versions.get(channel) == versions.get(channel)
    }


def _giving(value: PackedValue) -> Callable[[], PackedValue]:
    return lambda: value


def load_metadata(stored: bytes | str | None) -> Any:
    """A checkpoint's metadata, from JSON or msgpack.

    A `SqliteSaver` reads JSON; another release might have written msgpack.

    Raises:
        ValueError: It is neither.
    """
    if stored is None:
        return {}
    try:
        metadata = json.loads(stored)
    except ValueError:
        metadata = unpack(stored) if isinstance(stored, bytes) else None
    if not isinstance(metadata, dict):
        raise ValueError("the metadata is not a mapping")
    return metadata


def _exact_label(label: bytes, metadata: Mapping[str, Any]) -> bytes:
    """The label with the NUL characters that LangGraph removes, but older releases stored."""
    labels = json.loads(label)
    exact = {name: metadata[name] for name in labels}
    return (
        label
        if exact == labels
        else json.dumps(exact, separators=(",", ":"), sort_keys=True).encode()
    )


def moment(ts: str) -> int:
    """A checkpoint's time in Unix milliseconds; now, where it has none."""
    ms = ms_of(ts)
    return now_ms() if ms is None else ms
