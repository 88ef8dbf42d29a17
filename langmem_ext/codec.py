"""Values to bytes and back. Messages are lifted out of whatever holds them, so that each is stored once.

Packing happens when a call arrives, in the calling thread: what was passed is what is stored, whatever the caller does to it afterwards.
Loading happens outside the transaction and gives every caller objects of its own.
"""

from __future__ import annotations

import dataclasses
import gc
import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, Literal, TypeAlias

import ormsgpack
from langchain_core.messages import BaseMessage, RemoveMessage
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.serde.jsonplus import (
    EXT_CONSTRUCTOR_KW_ARGS,
    EXT_CONSTRUCTOR_POS_ARGS,
    EXT_CONSTRUCTOR_SINGLE_ARG,
    EXT_DELTA_SNAPSHOT,
    EXT_PYDANTIC_V2,
    JsonPlusSerializer,
)
from langgraph.checkpoint.serde.types import _DeltaSnapshot
from langgraph.types import Send
from pydantic import BaseModel

from langmem_ext.messages.identity import (
    CLASSES,
    CODE_OF_TYPE,
    DEFAULTS,
    FIELD_CODES,
    FIELDS,
    UNPACK_OPTIONS,
    fields_of,
    id_of,
    is_standard,
    is_text,
    message_of,
    opaque,
    pack,
    renamed,
    snapshot,
    snapshots,
    text_key,
    unpack,
)
from langmem_ext.messages.templates import Place, TemplateCache
from langmem_ext.messages.text import join_content, split_content, text_of
from langmem_ext.messages.tokens import approximate_tokens
from langmem_ext.serde import DataSerializer, RestorePolicy, rebuild, restore_hook
from langmem_ext.types import ItemRow, PackedValue, Snapshot
from langmem_ext.unbuilt import Unbuilt

Texts: TypeAlias = Literal["all", "messages", "written", "none"]

EXT_MESSAGE: Final = 64
"""A message lifted out of a value: its position among the value's messages."""

EXT_TEXT: Final = 66
"""A long text lifted out of an input: the position, among the value's messages, of the text or of the message that it became."""

LONG_TEXT: Final = 64
"""Characters from which a text of an input is worth lifting out: it will stand in a message."""

EXT_BYTEARRAY: Final = 65
"""A `bytearray`, which msgpack would give back as `bytes`."""

_COLUMNS: Final = frozenset({"content", "type", "name", "id", "tool_call_id"})

_CLASSES: Final = frozenset(CLASSES)
_numbers = itertools.count()

_plain = JsonPlusSerializer()


class MessageCodec:
    """Packs and loads values with this package's own serializer.

    Args:
        policy: What may be restored.
        templates: Lists of messages lately packed and loaded.
    """

    key = "native"

    def __init__(self, policy: RestorePolicy, templates: TemplateCache | None = None) -> None:
        self._policy = policy
        self._templates = templates if templates is not None else TemplateCache(0)
        self._hook = restore_hook(policy, _restore_bytearray)

    # -- values --------------------------------------------------------------------------------------------------------------------------

    def pack_value(self, value: Any, *, texts: Texts = "none", place: Place | None = None) -> PackedValue:
        """A value as it is now, with its messages lifted out.

        Args:
            value: Anything that LangGraph's serializers take.
            place: Where it stands; it makes a long list that was there before faster.
            texts: Which long texts are lifted out too: those of an input (`all`), of whatever may become a message (`messages`), of
                messages written as tuples and dicts (`written`), or `none`.

        Raises:
            TypeError: Something in it cannot be stored (as `ormsgpack.MsgpackEncodeError`, which LangGraph's serializers raise too).
        """
        if is_message_list(value):
            return PackedValue(messages=self._templates.pack(place, value, _default) if place else snapshots(value, _default))
        messages: list[Snapshot] = []
        if type(value) is bytearray:
            value = ormsgpack.Ext(EXT_BYTEARRAY, bytes(value))
        marked = _mark_texts(value) if texts == "all" else value if texts == "none" else _mark_messages(value, bare=texts == "messages")
        return PackedValue(body=pack(marked, _lifting(messages, texts == "all")), messages=messages)

    def load_value(self, packed: PackedValue, place: Place | None = None) -> Any:
        """A fresh object; `place` is where it stands."""
        if packed.body is None:
            with collector_paused(len(packed.messages)):
                if place:
                    return self._templates.load(place, packed.messages, self._hook, self.load_message)
                return [message_of(message, self._hook, self._rebuild) for message in packed.messages]
        if not packed.messages:
            return unpack(packed.body, self._hook)
        messages = packed.messages

        def lifted(code: int, data: bytes) -> Any:
            if code == EXT_MESSAGE:
                return message_of(messages[unpack(data)], self._hook, self._rebuild)
            if code == EXT_TEXT:
                return text_of(fields_of(messages[unpack(data)])["content"])
            return _restore_bytearray(code, data)

        return ormsgpack.unpackb(packed.body, ext_hook=restore_hook(self._policy, lifted), option=UNPACK_OPTIONS)

    def pack_plain(self, value: Any) -> bytes:
        """A value as it is now, whole: for what is small and no channel's."""
        return pack(value, _default)

    def load_plain(self, packed: bytes) -> Any:
        """The value that `pack_plain` was given, as a fresh object."""
        return unpack(packed, self._hook)

    def empty_list(self) -> bytes:
        """How an empty list is encoded as a value."""
        return self.pack_plain([])

    def is_empty_list(self, body: bytes) -> bool:
        """Whether a value is an empty list."""
        return bool(self.load_plain(body) == [])

    def pack_messages(self, messages: Sequence[BaseMessage]) -> list[Snapshot]:
        """The exact bytes of each message, in order."""
        return snapshots(messages, _default)

    def load_message(self, packed: Snapshot) -> Any:
        """A fresh message."""
        return message_of(packed, self._hook, self._rebuild)

    def _rebuild(self, module: str, name: str, fields: dict[str, Any]) -> Any:
        return rebuild(self._policy, module, name, fields)

    # -- items ---------------------------------------------------------------------------------------------------------------------------

    def item_row(self, packed: Snapshot) -> ItemRow:
        """A message's row: readable columns, and in `rest` the fields that are not at their default."""
        fields = fields_of(packed)
        text = text_of(fields.get("content"))
        if is_text(packed):
            return ItemRow(None, None, None, text, None, None)
        message_id, name = fields.get("id"), fields.get("name")
        if not is_standard(packed):
            return ItemRow(message_id, None, name, text.replace("\0", ""), None, packed)
        code = CODE_OF_TYPE[fields["type"]]
        rest = split_content(fields["content"], text)
        defaults = DEFAULTS[code]
        for field, value in fields.items():
            if field not in _COLUMNS and not (field in defaults and value == defaults[field] and type(value) is type(defaults[field])):
                rest[FIELD_CODES.get(field, field)] = value
        row = ItemRow(message_id, code, name, text.replace("\0", ""), fields.get("tool_call_id"), pack(rest) if rest else None)
        return row

    def tokens_of(self, packed: Snapshot) -> int:
        """About how many tokens the message costs a model; 0 for a bare text."""
        message = None if is_text(packed) else self.load_message(packed)
        return approximate_tokens(message) if isinstance(message, BaseMessage) else 0

    def snapshot_of(self, row: ItemRow) -> Snapshot:
        """The exact bytes of the message that a row holds."""
        if row.role is None:
            packed = bytes(row.rest) if row.rest is not None else pack(row.text)
            return packed if row.message_id is None else renamed(packed, row.message_id)
        rest: dict[int | str, Any] = unpack(row.rest, opaque) if row.rest else {}
        columns = {
            "type": CLASSES[row.role].model_fields["type"].default,
            "name": row.name,
            "id": row.message_id,
            "tool_call_id": row.tool_call_id,
        }
        fields: dict[str, Any] = {}
        for field in FIELDS[row.role]:
            if field == "content":
                fields[field] = join_content(row.text or "", rest)
            elif field in columns:
                fields[field] = columns[field]
            else:
                code = FIELD_CODES.get(field, field)
                fields[field] = rest[code] if code in rest else DEFAULTS[row.role][field]
        return pack(fields)

    def text_key(self, packed: Snapshot) -> Snapshot | None:
        """The bytes that the message's text had before there was the message; None where its content is no plain text."""
        return text_key(packed)

    def id_of(self, packed: Snapshot) -> str | None:
        """The message's id; None where it has none yet."""
        return id_of(packed)

    def renamed(self, packed: Snapshot, message_id: str | None) -> Snapshot:
        """The same message with another id."""
        return renamed(packed, message_id)


class ForeignCodec(MessageCodec):
    """Packs and loads values with a serializer of the user's own: all of a message goes through it, and no column shows its text.

    Args:
        serde: The serializer.
        templates: Lists of messages lately packed and loaded.
    """

    def __init__(self, serde: SerializerProtocol, templates: TemplateCache | None = None) -> None:
        super().__init__(RestorePolicy(), templates)
        self._serde = serde
        # Of its own, not the serializer's id: those are given again, and rows read with one key must not be shown to another.
        self.key = f"serde-{next(_numbers)}"

    def pack_value(self, value: Any, *, texts: Texts = "none", place: Place | None = None) -> PackedValue:
        """A value as it is now; a list of messages as its messages, everything else whole."""
        if is_message_list(value):
            try:
                return PackedValue(messages=self._templates.pack(place, value, _default) if place else snapshots(value, _default))
            except (TypeError, ormsgpack.MsgpackEncodeError):
                pass
        return PackedValue(body=self.pack_plain(value))

    def pack_plain(self, value: Any) -> bytes:
        """A value as it is now, whole."""
        return pack(list(self._serde.dumps_typed(value)))

    def load_plain(self, packed: bytes) -> Any:
        """The value that `pack_plain` was given, as a fresh object."""
        kind, data = unpack(packed)
        return self._serde.loads_typed((kind, data))

    def load_value(self, packed: PackedValue, place: Place | None = None) -> Any:
        """A fresh object."""
        if packed.body is None:
            return super().load_value(packed, place)
        return self.load_plain(packed.body)

    def item_row(self, packed: Snapshot) -> ItemRow:
        """A message's row; nothing of it readable but its id."""
        message = self.load_message(packed)
        return ItemRow(self.id_of(packed), None, None, None, None, self.pack_plain(message))

    def snapshot_of(self, row: ItemRow) -> Snapshot:
        """The exact bytes of the message that a row holds."""
        assert row.rest is not None
        kind, data = unpack(row.rest)
        packed = snapshot(self._serde.loads_typed((kind, data)), _default)
        return packed if row.message_id is None else self.renamed(packed, row.message_id)


def codec_of(serde: SerializerProtocol, templates: TemplateCache | None = None) -> MessageCodec:
    """The codec for a saver's serializer."""
    return MessageCodec(serde.policy, templates) if isinstance(serde, DataSerializer) else ForeignCodec(serde, templates)


# -- packing -----------------------------------------------------------------------------------------------------------------------------


def is_message_list(value: Any) -> bool:
    """Whether a value is a list of messages and nothing else, and not empty."""
    # By class first: a list is looked at whole at every step of a graph.
    return type(value) is list and bool(value) and (set(map(type, value)) <= _CLASSES or all(map(_is_message, value)))


def _is_message(value: Any) -> bool:
    return isinstance(value, BaseMessage) and not isinstance(value, RemoveMessage)


def _default(value: Any) -> Any:
    """What msgpack does not know, as LangGraph's serializer packs it."""
    if type(value) is Unbuilt:
        return value.packed(_default)
    return ormsgpack.Fragment(_plain.dumps_typed(value)[1])


class _Text:
    """A text that is to be lifted out."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text


def _mark_texts(value: Any) -> Any:
    """The value with every long text in its dicts, lists and tuples marked. A text with a zero character stays: no column holds it."""
    if type(value) is str:
        return _Text(value) if len(value) >= LONG_TEXT and "\0" not in value else value
    if type(value) is dict:
        return {name: _mark_texts(item) for name, item in value.items()}
    if type(value) is list or type(value) is tuple:
        return [_mark_texts(item) for item in value]
    return value


def _mark_messages(value: Any, *, bare: bool) -> Any:
    """The value with the long texts marked of what `add_messages` takes for a message: `(role, text)`, `{"content": …}`, a `bare` text."""
    if type(value) is str:
        return _mark_texts(value) if bare else value
    if type(value) is tuple and len(value) == 2 and type(value[0]) is str:
        return [value[0], _mark_texts(value[1])]
    if type(value) is list:
        return [_mark_messages(item, bare=bare) for item in value]
    if type(value) is dict and type(value.get("content")) in (str, list):
        return {**value, "content": _mark_texts(value["content"])}
    return value


def _lifting(messages: list[Snapshot], texts: bool) -> Callable[[Any], Any]:
    """Like `_default`, but messages go to `messages` and leave their position; so do those inside whatever may hold them.

    Args:
        messages: Where they go.
        texts: Whether the long texts inside what may hold messages go there too.
    """

    def default(value: Any) -> Any:
        if type(value) is _Text:
            messages.append(pack(value.text))
            return ormsgpack.Ext(EXT_TEXT, pack(len(messages) - 1))
        if _is_message(value):
            messages.append(snapshot(value, _default))
            return ormsgpack.Ext(EXT_MESSAGE, pack(len(messages) - 1))
        if type(value) is Unbuilt:
            return value.packed(default, _mark_texts if texts else None)
        if isinstance(value, _DeltaSnapshot):
            return ormsgpack.Ext(EXT_DELTA_SNAPSHOT, pack(value.value, default))
        holder = _holder(value)
        if holder is not None:
            code, payload = holder
            cls = type(value)
            marked = _mark_texts(payload) if texts else payload
            return ormsgpack.Ext(code, pack((cls.__module__, cls.__name__, marked), default))
        if isinstance(value, BaseModel):
            cls = type(value)
            fields = _fields_with_messages(value)
            marked = _mark_texts(fields) if texts else fields
            return ormsgpack.Ext(EXT_PYDANTIC_V2, pack((cls.__module__, cls.__name__, marked, "model_validate_json"), default))
        return _default(value)

    return default


def _fields_with_messages(value: BaseModel) -> dict[str, Any]:
    """A model's fields as pydantic dumps them, but with messages as messages."""
    fields = value.model_dump()
    for name in type(value).model_fields:
        held = getattr(value, name, None)
        if name in fields and (_is_message(held) or is_message_list(held)):
            fields[name] = held
    return fields


def _holder(value: Any) -> tuple[int, Any] | None:
    """Extension code and payload of a value that may hold messages, as LangGraph's serializer has them; None for every other."""
    if any(callable(getattr(value, name, None)) for name in ("model_dump", "get_secret_value", "dict")):
        return None
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return EXT_CONSTRUCTOR_KW_ARGS, value._asdict()
    if isinstance(value, deque):
        return EXT_CONSTRUCTOR_SINGLE_ARG, tuple(value)
    if isinstance(value, Send):
        timeout = getattr(value, "timeout", None)
        return EXT_CONSTRUCTOR_POS_ARGS, (value.node, value.arg) if timeout is None else (value.node, value.arg, timeout)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return EXT_CONSTRUCTOR_KW_ARGS, {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return None


def _restore_bytearray(code: int, data: bytes) -> Any:
    if code == EXT_BYTEARRAY:
        return bytearray(data)
    raise ValueError(f"unknown extension code {code}")


@contextmanager
def collector_paused(objects: int) -> Iterator[None]:
    """Pause the garbage collector while many objects are built: it would walk all of them again and again, and free none."""
    if objects < 200 or not gc.isenabled():
        yield
        return
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
