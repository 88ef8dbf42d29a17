"""Lists of messages recently packed or loaded.

An unchanged message is recognised without packing it, and copied without decoding it.

What is remembered of a message is a *template*: its class, and its fields if they are plain (texts,
None, empty lists and dicts). For plain fields `==` is as exact as the packed bytes, at a quarter of
the cost. A message that holds more is *rich*: `==` confuses numbers with booleans, so it is packed
and decoded each time, all rich ones of a list at once. Work over a list runs in C, the whole list
at a time: it is done for every message of a conversation at every step.

A template is only ever compared with and copied: what is remembered can be missing or useless,
never wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import compress, repeat
from operator import and_, attrgetter, eq, is_, or_
from typing import Any, Final, TypeAlias

from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from langmem_ext._internal.interruption import pass_on
from langmem_ext.messages.packed import (
    WRITTEN,
    Default,
    ExtHook,
    Snapshot,
    array_head,
    has_texts,
    opaque,
    pack,
    unpack,
)
from langmem_ext.messages.snapshot import CLASS_OF_TYPE, CLASSES, DEFAULTS, snapshot, snapshots

Template: TypeAlias = tuple[type[BaseMessage] | None, dict[str, Any]]
"""A message's class, None if it is not one of LangChain's or must be validated, and its plain
fields, `{}` if it is rich."""

AT_ONCE: Final = 128
"""New messages of a list whose templates are made as it is packed, at most: they take longer than
packing it. Else they are made when it is loaded."""

RECENT: Final = 128
"""Messages whose templates are remembered by their bytes alone: a new one is looked at when it gets
its row, and again in the list that holds it."""

_CONTAINERS: Final = {
    cls: tuple(
        (name, type(default))
        for name, default in DEFAULTS[code].items()
        if type(default) in (dict, list)
    )
    for code, cls in enumerate(CLASSES)
}
_EMPTY: Final[dict[type, Any]] = {dict: {}, list: []}
"""What templates hold in place of empty containers of their own, which would be most of what the
garbage collector has to walk through. A copy has its own."""

_FIELD_SETS: Final = {cls: set(cls.model_fields) for cls in CLASSES}

_fields = attrgetter("__dict__")
_extra = attrgetter("__pydantic_extra__")
_new = object.__new__
_fresh: Any = partial(dict.fromkeys, ())
_set_fields, _set_names, _set_extra, _set_private = (
    vars(BaseModel)[name].__set__
    for name in (
        "__dict__",
        "__pydantic_fields_set__",
        "__pydantic_extra__",
        "__pydantic_private__",
    )
)


@dataclass(slots=True)  # not frozen: that takes several times as long to make
class Templates:
    """A list of messages as it was lately packed or loaded. Never changed.

    Attributes:
        packed: Each message's exact bytes.
        classes, fields: Its template, in two parts.
        rich: Whether it is rich.
    """

    packed: list[Snapshot]
    classes: list[type[BaseMessage] | None]
    fields: list[dict[str, Any]]
    rich: list[bool]

    def following(self, packed: Sequence[Snapshot]) -> Templates:
        """The templates of a list that begins like this one; this one if it is the longer."""
        shared = min(len(self.packed), len(packed))
        known: Mapping[Snapshot, Template] = {}
        if self.packed[:shared] != packed[:shared]:
            shared = next(at for at in range(shared) if self.packed[at] != packed[at])
            known = dict(
                zip(
                    self.packed[shared:],
                    zip(self.classes[shared:], self.fields[shared:], strict=True),
                    strict=True,
                )
            )
        elif shared == len(packed):
            return self
        classes, all_fields, rich = self.classes[:shared], self.fields[:shared], self.rich[:shared]
        for message in packed[shared:]:
            cls, fields = known.get(message) or template_of(message)
            classes.append(cls)
            all_fields.append(fields)
            rich.append(cls is not None and not fields)
        return Templates([*self.packed[:shared], *packed[shared:]], classes, all_fields, rich)


NO_TEMPLATES: Final = Templates([], [], [], [])


def pack_list(
    known: Templates | None, messages: Sequence[BaseMessage], default: Default
) -> tuple[list[Snapshot], int, Templates]:
    """`identity.snapshots` of a list, how many messages were not known, and what is known then.

    Args:
        known: What is remembered of the list.
        messages: The list.
        default: Turns a value that msgpack does not know into one that it does.
    """
    known = known or NO_TEMPLATES
    unchanged = _unchanged(messages, known)
    count = len(unchanged)
    tail = snapshots(messages[count:], default)
    if all(unchanged):
        packed, fresh = known.packed[:count] + tail, len(tail)
    else:
        before = zip(unchanged, known.packed, messages)  # noqa: B905 - as long as `unchanged`
        packed = [
            packed if same else snapshot(message, default) for same, packed, message in before
        ] + tail
        fresh = len(messages) - sum(unchanged)
    return packed, fresh, known if fresh > AT_ONCE else known.following(packed)


def load_list(
    templates: Templates, count: int, hook: ExtHook, decode: Callable[[Snapshot], Any]
) -> list[Any]:
    """A fresh message for each of the first of a list.

    Args:
        templates: What is known of the list.
        count: How many.
        hook: Restores the values in rich messages that are not plain data.
        decode: Builds a message that is not of LangChain's classes.
    """
    classes, fields = templates.classes[:count], templates.fields[:count]
    if all(fields):
        return _messages(classes, _copies(classes, fields))
    packed = templates.packed[:count]
    copies = iter(_copies(list(compress(classes, fields)), list(compress(fields, fields))))
    rich = iter(_unpack_all(list(compress(packed, templates.rich)), hook))
    own = [
        next(copies) if plain else next(rich)
        for cls, plain in zip(classes, fields, strict=True)
        if cls
    ]
    messages = iter(_messages(list(filter(None, classes)), own))
    return [
        next(messages) if cls else decode(message)
        for message, cls in zip(packed, classes, strict=True)
    ]


@lru_cache(maxsize=RECENT)
def template_of(packed: Snapshot) -> Template:
    """A message's template. Nobody changes its fields."""
    fields = unpack(packed, opaque)
    if type(fields) is not dict or WRITTEN in fields:
        return None, {}
    cls = CLASS_OF_TYPE[fields["type"]]
    for name, kind in _CONTAINERS[cls]:
        value = fields.get(name)
        if value or type(value) is not kind:
            return (cls if has_texts(fields) else None), {}
        fields[name] = _EMPTY[kind]
    kinds = list(map(type, fields.values()))
    if kinds.count(str) + kinds.count(type(None)) + len(_CONTAINERS[cls]) == len(kinds):
        return cls, fields
    return (cls if has_texts(fields) else None), {}


def _unchanged(messages: Sequence[BaseMessage], known: Templates) -> list[bool]:
    """For each message at a remembered position, whether it is exactly the remembered one."""
    try:
        if any(map(_extra, messages)):
            return []
        types, fields, count = (
            list(map(type, messages)),
            list(map(_fields, messages)),
            min(len(messages), len(known.fields)),
        )
        classes = list(map(is_, types, known.classes))
        if fields[:count] == known.fields[:count] and all(classes):
            return [True] * count
        unchanged = list(map(and_, map(eq, fields, known.fields), classes))
        rich = list(map(and_, known.rich, classes))
        if True in rich and pack(list(compress(fields, rich))) == _array(
            list(compress(known.packed, rich))
        ):
            return list(map(or_, unchanged, rich))
        return unchanged
    except Exception as error:  # a value that cannot be compared, or not packed as it is
        pass_on(error)
        return []


def _array(packed: Sequence[bytes]) -> bytes:
    """Packed values as one packed list of them."""
    return array_head(len(packed)) + b"".join(packed)


def _unpack_all(packed: Sequence[bytes], hook: ExtHook) -> list[dict[str, Any]]:
    fields: list[dict[str, Any]] = unpack(_array(packed), hook)
    return fields


def _copies(classes: Sequence[Any], fields: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Plain fields again, sharing only texts, which are immutable."""
    copies = list(map(dict.copy, fields))
    for cls in set(classes):
        own = list(compress(copies, map(is_, classes, repeat(cls))))
        for name, kind in _CONTAINERS[cls]:
            if kind is dict:
                for copy in own:
                    copy[name] = {}
            else:
                for copy in own:
                    copy[name] = []
    return copies


def _messages(classes: Sequence[Any], fields: Sequence[dict[str, Any]]) -> list[Any]:
    """Messages that own these fields.

    Those that are loaded together share the set of the fields that were given, which are all: one
    for each was a third of a short message's bytes. It would grow where somebody gives one of them
    a field that its class has not, and shows in `model_fields_set` alone.
    """
    messages = list(map(_new, classes))
    kinds = tuple(set(classes))
    names = dict(zip(kinds, map(set.copy, map(_FIELD_SETS.__getitem__, kinds)), strict=True))
    for setter, values in (
        (_set_fields, fields),
        (_set_names, map(names.__getitem__, classes)),
        (_set_extra, map(_fresh, fields)),
        (_set_private, repeat(None)),
    ):
        deque(map(setter, messages, values), maxlen=0)
    return messages
