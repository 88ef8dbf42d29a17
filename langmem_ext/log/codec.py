"""Values to bytes and back; messages are lifted out of their holders, so each is stored once.

Packing happens when a call arrives, in the calling thread: a caller may change a value afterwards
without changing what is stored. Work that needs only the bytes is done later, off the event loop
(`storage.rows.delta`). Loading happens outside the transaction and gives every caller its own
objects.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypeAlias, TypeVar

import ormsgpack
from langchain_core.messages import BaseMessage
from langgraph.checkpoint.serde.base import SerializerProtocol

from langmem_ext._internal.collector import without_collector
from langmem_ext.log.extract import (
    EXT_MESSAGE,
    EXT_TEXT,
    Lifting,
    default_of,
    is_message_list,
    mark_messages,
    mark_texts,
)
from langmem_ext.log.message_cache import NO_TEMPLATES, load_list, pack_list, template_of
from langmem_ext.log.restore import DataSerializer, RestoreHook, RestorePolicy, rebuild
from langmem_ext.messages.annotations import is_marked, shown_text, title_of, tool_of
from langmem_ext.messages.manifest import LONGEST_LIST
from langmem_ext.messages.packed import (
    WRITTEN,
    array_count,
    column_id,
    fields_of,
    has_texts,
    id_of,
    is_standard,
    is_text,
    opaque,
    pack,
    renamed,
    text_key,
    unpack,
)
from langmem_ext.messages.size_limits import (
    SMALL,
    Extension,
    is_in_proportion,
    require_shallow,
    walk,
)
from langmem_ext.messages.snapshot import (
    CLASSES,
    CODE_OF_TYPE,
    DEFAULTS,
    FIELD_CODES,
    FIELDS,
    message_of,
    snapshot,
    snapshots,
)
from langmem_ext.messages.text import SPLIT, WHOLE, join_content, split_content, text_of, words_of
from langmem_ext.messages.token_costs.stored_tokens import ROLE_LENGTHS
from langmem_ext.messages.token_costs.tokens import approximate_tokens
from langmem_ext.messages.written import as_message, pack_written
from langmem_ext.storage.cache import KnownList
from langmem_ext.types import ItemRow, PackedValue, Shown, Snapshot

T = TypeVar("T")
Texts: TypeAlias = Literal["all", "messages", "written", "conversation", "none"]

PARTS_BYTES: Final = 1024
"""The size from which a dict or a list may be stored in parts."""

PARTS_KEYS: Final = 8
"""The number of keys from which it may be stored in parts."""

SHARE: Final = 4
"""A value that names its messages repeatedly may take one part in this many of what may be read
together: a quarter, because other values are stored beside it, and messages grow a little when they
get their ids. A value that would take more is stored whole."""

MANY: Final = 200
"""The length of a message list from which the garbage collector waits until it is loaded."""

EXT_BYTEARRAY: Final = 65
"""A `bytearray`, which msgpack would give back as `bytes`."""

_USER_TYPES: Final = frozenset({"human", "HumanMessageChunk"})
_SHOWN_ROLES: Final = {
    str(cls.model_fields["type"].default): role
    for code, cls in enumerate(CLASSES)
    if (role := {0: "human", 1: "ai", 2: "system", 3: "tool"}.get(code % 6)) is not None
}
"""The role of a message that may be searched for, by its `type`."""

_COLUMNS: Final = frozenset({"content", "type", "name", "id", "tool_call_id"})
_REST: Final = frozenset({*FIELD_CODES.values(), WHOLE, SPLIT})

_PLAIN: Final[tuple[dict[str, Any], ...]] = tuple(
    {name: DEFAULTS[code].get(name) for name in FIELDS[code]} for code in range(len(CLASSES))
)
"""For each class, in order, the fields of a message that has only a text."""

NOTHING: Final = PackedValue(body=pack(None))
"""None, packed."""

_EXACT: Final = tuple(
    not {type(value) for name, value in plain.items()}.difference((str, type(None), dict, list))
    and "role" not in plain
    for plain in _PLAIN
)
"""Whether `==` tells a message of each class that has nothing but a text from every other."""

_numbers = itertools.count()


class MessageCodec:
    """Packs and loads values with this package's own serializer.

    Args:
        policy: What may be restored.
    """

    key = "native"

    def __init__(self, policy: RestorePolicy) -> None:
        self._policy = policy
        self._hook = RestoreHook(policy, _restore_bytearray)

    # -- values ------------------------------------------------------------------------------------

    def pack_value(
        self, value: Any, *, texts: Texts = "none", known: KnownList | None = None
    ) -> PackedValue:
        """A value as it is now, with its messages lifted out.

        Args:
            value: Anything that LangGraph's serializers take.
            known: What is remembered of the list that stood in its place before.
            texts: Which long texts are lifted out too: those of an input (`all`), of whatever may
                become a message (`messages`), of messages written as tuples and dicts (`written`),
                or `none`; of a list that is the `conversation`, its messages in whatever form.

        Raises:
            TypeError: Something in it cannot be stored (as `ormsgpack.MsgpackEncodeError`, which
                LangGraph's serializers raise too).
        """
        if value is None:
            return NOTHING
        if type(value) is list and is_message_list(value):
            return self._pack_list(value, known)
        if texts == "conversation" and type(value) is list and value:
            written = pack_written(value, default_of)
            if written is not None and (sum(map(len, written)) <= SMALL or _may_be_named(written)):
                return PackedValue(messages=written, fresh=len(written))
        messages: list[Snapshot] = []
        if type(value) is bytearray:
            value = ormsgpack.Ext(EXT_BYTEARRAY, bytes(value))
        marked = (
            mark_texts(value)
            if texts == "all"
            else value
            if texts in ("none", "conversation")
            else mark_messages(value, bare=texts == "messages")
        )
        lifting = Lifting(messages, texts=texts == "all")
        body = pack(marked, lifting)
        if messages and not _may_be_named(messages):
            body, messages = self.pack_plain(value), []
        if lifting.deep:
            _require_readable(body)
        if len(body) < PARTS_BYTES or messages:
            return PackedValue(body=body, messages=messages, fresh=len(messages))
        if type(value) is list:
            return PackedValue(body=body, count=array_count(body))
        return PackedValue(body=body, keyed=type(value) is dict and len(value) >= PARTS_KEYS)

    def _pack_list(self, messages: Sequence[BaseMessage], known: KnownList | None) -> PackedValue:
        if known is None:  # mostly what a task adds: nothing will be compared with it
            packed, fresh, templates = snapshots(messages, default_of), len(messages), None
        else:
            packed, fresh, templates = pack_list(known.templates, messages, default_of)
        if sum(map(len, packed)) > SMALL and not _may_be_named(packed):
            return PackedValue(body=self.pack_plain(messages))
        return PackedValue(messages=packed, fresh=fresh, known=known, templates=templates)

    def load_value(self, packed: PackedValue) -> Any:
        """A fresh object."""
        if packed.body is None:
            if len(packed.messages) >= MANY:
                return without_collector(self._load_messages, packed)
            return self._load_messages(packed)
        if not packed.messages:
            return unpack(packed.body, self._hook)
        left = dict(enumerate(packed.messages))

        def lifted(code: int, data: bytes) -> Any:
            if code == EXT_MESSAGE:
                return message_of(take_named(left, data), self._hook, self._rebuild)
            if code == EXT_TEXT:
                return text_of(fields_of(take_named(left, data))["content"])
            return _restore_bytearray(code, data)

        return unpack(packed.body, RestoreHook(self._policy, lifted))

    def _load_messages(self, packed: PackedValue) -> list[Any]:
        known, messages = packed.known, packed.messages
        if known is None:
            return [message_of(message, self._hook, self._rebuild) for message in messages]
        known.templates = templates = (known.templates or NO_TEMPLATES).following(messages)
        return load_list(templates, len(messages), self._hook, self.load_message)

    def texts_in(self, body: bytes) -> frozenset[int]:
        """Which of a value's messages, by position, it holds as texts."""
        return frozenset(
            unpack(part.data)
            for part in walk(body)
            if isinstance(part, Extension) and part.code == EXT_TEXT
        )

    def pack_plain(self, value: Any) -> bytes:
        """A value as it is now, whole: for what is small and no channel's."""
        return pack(value, default_of)

    def load_plain(self, packed: bytes) -> Any:
        """The value that `pack_plain` was given, as a fresh object."""
        return unpack(packed, self._hook)

    def empty_list(self) -> bytes:
        """How an empty list is encoded as a value."""
        return self.pack_plain([])

    def is_empty_list(self, body: bytes) -> bool:
        """Whether a value is an empty list."""
        return body == self.empty_list()

    def is_empty(self, body: bytes) -> bool:
        """Whether a value is for certain an empty list or set."""
        return body in (self.pack_plain([]), self.pack_plain(set()))

    def pack_messages(self, messages: Sequence[BaseMessage]) -> list[Snapshot]:
        """The exact bytes of each message, in order."""
        return snapshots(messages, default_of)

    def load_message(self, packed: Snapshot) -> Any:
        """A fresh message."""
        return message_of(packed, self._hook, self._rebuild)

    def _rebuild(self, module: str, name: str, fields: dict[str, Any]) -> Any:
        return rebuild(self._policy, module, name, fields)

    # -- items -------------------------------------------------------------------------------------

    def item_row(self, packed: Snapshot) -> ItemRow:
        """A message's row: readable columns, and in `rest` the fields not at their default."""
        fields = fields_of(packed)
        text = words_of(fields)
        if is_text(packed):
            return ItemRow(None, None, None, text, None, None)
        message_id, name = column_id(fields), fields.get("name")
        if (
            not is_standard(packed)
            or message_id != fields["id"]
            or not has_texts(fields)
            or _has_zero(fields)
        ):
            return ItemRow(
                message_id,
                None,
                name.replace("\0", "") if type(name) is str else None,
                text.replace("\0", ""),
                None,
                packed,
            )
        code = CODE_OF_TYPE[fields["type"]]
        rest = split_content(fields["content"], text)
        defaults = DEFAULTS[code]
        for field, value in fields.items():
            if field not in _COLUMNS and not (
                field in defaults
                and value == defaults[field]
                and type(value) is type(defaults[field])
            ):
                rest[FIELD_CODES.get(field, field)] = value
        row = ItemRow(
            message_id,
            code,
            name,
            text.replace("\0", ""),
            fields.get("tool_call_id"),
            pack(rest) if rest else None,
        )
        return replace(row, tool=tool_of(fields)) if fields["additional_kwargs"] else row

    def ready_row(self, packed: Snapshot) -> ItemRow:
        """The row of a new message; one that is only a text, as most are, is unpacked once."""
        _, fields = template_of(packed)
        if fields and type(text := fields["content"]) is str:
            code, message_id, name = CODE_OF_TYPE[fields["type"]], fields["id"], fields["name"]
            call = fields.get("tool_call_id")
            plain = {**_PLAIN[code], "content": text, "name": name, "id": message_id}
            if "tool_call_id" in plain:
                plain["tool_call_id"] = call
            is_plain = _EXACT[code] and fields == plain
            if is_plain and "\0" not in f"{message_id}{name}{call}{text}":
                bare = packed if message_id is None else pack({**fields, "id": None})
                tokens = None if name is None and code in ROLE_LENGTHS else self.tokens_of(packed)
                return ItemRow(message_id, code, name, text, call, None, None, bare, tokens)
        row = self.item_row(packed)
        row.bare = packed if row.message_id is None else self.renamed(packed, None)
        row.tokens = self.tokens_of(packed)
        return row

    def title_of(self, packed: Snapshot) -> str | None:
        """A title from the message, if it is a user's; None for every other."""
        if is_text(packed) or not is_standard(packed):
            return None
        fields = fields_of(packed)
        return title_of(fields) if fields["type"] in _USER_TYPES else None

    def shown_of(self, packed: Snapshot) -> Shown | None:
        """What may be shown of a message; None for a text, another role or a foreign class.

        A foreign class is one that is not LangChain's.
        """
        if is_text(packed) or not is_standard(packed):
            return None
        fields = fields_of(packed)
        role = _SHOWN_ROLES.get(fields["type"])
        if role is None or not has_texts(fields) or column_id(fields) != fields["id"]:
            return None
        if is_marked(fields):
            return Shown(role, shown_text(fields), whole=words_of(fields))
        return Shown(role, words_of(fields), open=role == "human")

    def tokens_of(self, packed: Snapshot) -> int:
        """About how many tokens the message costs a model; 0 for a bare text."""
        message = None if is_text(packed) else self.load_message(as_message(packed))
        return approximate_tokens(message) if isinstance(message, BaseMessage) else 0

    def snapshot_of(self, row: ItemRow) -> Snapshot:
        """The exact bytes of the message that a row holds."""
        if row.role is None:
            packed = bytes(row.rest) if row.rest is not None else pack(row.text)
            return packed if row.message_id is None else renamed(packed, row.message_id)
        if not 0 <= row.role < len(CLASSES):
            raise ValueError(
                f"its role, {row.role}, is unknown: a newer release may have written it"
            )
        fields = _PLAIN[row.role].copy()
        if row.rest is None:
            fields["content"], fields["name"], fields["id"] = (
                row.text or "",
                row.name,
                row.message_id,
            )
            if "tool_call_id" in fields:
                fields["tool_call_id"] = row.tool_call_id
            return pack(fields)
        rest: dict[int | str, Any] = unpack(row.rest, opaque)
        if not _REST.issuperset(rest) and any(
            type(code) is int and code not in _REST for code in rest
        ):
            raise ValueError("it has an unknown field: a newer release may have written it")
        columns = {
            "type": fields["type"],
            "name": row.name,
            "id": row.message_id,
            "tool_call_id": row.tool_call_id,
        }
        for field in FIELDS[row.role]:
            if field == "content":
                fields[field] = join_content(row.text or "", rest)
            elif field in columns:
                fields[field] = columns[field]
            else:
                code = FIELD_CODES.get(field, field)
                fields[field] = rest[code] if code in rest else DEFAULTS[row.role][field]
        if WRITTEN in rest:
            fields[WRITTEN] = rest[WRITTEN]
        return pack(fields)

    def text_key(self, packed: Snapshot) -> Snapshot | None:
        """The bytes of the message's text before it was a message; None if it is no plain text."""
        return text_key(packed)

    def id_of(self, packed: Snapshot) -> str | None:
        """The message's id; None where it has none yet."""
        return id_of(packed)

    def renamed(self, packed: Snapshot, message_id: str | None) -> Snapshot:
        """The same message with another id."""
        return renamed(packed, message_id)


class ForeignCodec(MessageCodec):
    """Packs and loads values with the user's own serializer.

    The serializer gets whole messages, and no column shows their text.

    Args:
        serde: The serializer.
    """

    def __init__(self, serde: SerializerProtocol) -> None:
        super().__init__(RestorePolicy())
        self._serde = serde
        # Of its own, not the serializer's id: those are given again, and rows read with one key
        # must not be shown to another.
        self.key = f"serde-{next(_numbers)}"

    def pack_value(
        self, value: Any, *, texts: Texts = "none", known: KnownList | None = None
    ) -> PackedValue:
        """A value as it is now; a list of messages as its messages, everything else whole."""
        if is_message_list(value):
            try:
                return self._pack_list(value, known)
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

    def is_empty_list(self, body: bytes) -> bool:
        """Whether a value is an empty list; whatever the serializer raises where it cannot tell."""
        return bool(self.load_plain(body) == [])

    def load_value(self, packed: PackedValue) -> Any:
        """A fresh object."""
        if packed.body is None:
            return super().load_value(packed)
        return self.load_plain(packed.body)

    def item_row(self, packed: Snapshot) -> ItemRow:
        """A message's row; nothing of it readable but its id."""
        message = self.load_message(packed)
        return ItemRow(self.id_of(packed), None, None, None, None, self.pack_plain(message))

    def ready_row(self, packed: Snapshot) -> ItemRow:
        """The row of a message that is new."""
        row = self.item_row(packed)
        row.bare, row.tokens = self.renamed(packed, None), self.tokens_of(packed)
        return row

    def title_of(self, packed: Snapshot) -> str | None:
        """None: no column shows anything of a message."""
        return None

    def shown_of(self, packed: Snapshot) -> Shown | None:
        """None: nothing of a message is shown."""
        return None

    def snapshot_of(self, row: ItemRow) -> Snapshot:
        """The exact bytes of the message that a row holds."""
        assert row.rest is not None
        kind, data = unpack(row.rest)
        packed = snapshot(self._serde.loads_typed((kind, data)), default_of)
        return packed if row.message_id is None else self.renamed(packed, row.message_id)


def _has_zero(fields: dict[str, Any]) -> bool:
    """Whether a name in a message's fields has a NUL character, which not every database stores."""
    return "\0" in (fields["name"] or "") or "\0" in fields.get("tool_call_id", "")


def codec_of(serde: SerializerProtocol) -> MessageCodec:
    """The codec for a saver's serializer."""
    return MessageCodec(serde.policy) if isinstance(serde, DataSerializer) else ForeignCodec(serde)


def take_named(left: dict[int, T], data: bytes) -> T:
    """Take what a value refers to out of `left`, where each position is referred to only once.

    Raises:
        ValueError: There is nothing at that position, or it is referred to again.
    """
    position = unpack(data)
    if type(position) is not int or position not in left:
        raise ValueError("it refers to a message that it does not list, or to one twice")
    return left.pop(position)


def _may_be_named(messages: Sequence[Snapshot]) -> bool:
    """Whether a value may refer to its messages, so that each is stored once.

    The limits are those of `messages.size_limits`.
    """
    if sum(map(len, messages)) <= SMALL:
        return True
    return len(messages) <= LONGEST_LIST and is_in_proportion([messages], share=SHARE)


def _require_readable(body: bytes) -> None:
    """See that what is stored is read again."""
    try:
        require_shallow(body)
    except ValueError as error:
        raise TypeError(
            f"a value cannot be stored, because {error} to be read again: nest it less deeply, or"
            " move its large parts up"
        ) from None


def _restore_bytearray(code: int, data: bytes) -> Any:
    if code == EXT_BYTEARRAY:
        return bytearray(data)
    raise ValueError(f"unknown extension code {code}")
