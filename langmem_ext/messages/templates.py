"""Lists of messages lately packed or loaded, so that an unchanged message is recognised without packing it, and copied without decoding it.

What is remembered of a message is a *template*: its fields, if they are plain (texts, None, empty lists and dicts). For those, `==` is as
exact as the packed bytes, at a quarter of the cost; a message that holds more (numbers, which `==` confuses with booleans) is packed and
decoded each time. All work over a list runs in C, a whole list at a time: it is done for every message of a conversation at every step.

A template is only ever compared with and copied: what is remembered can be missing or useless, never wrong.
"""

from __future__ import annotations

import threading
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from operator import and_, attrgetter, eq, is_
from typing import Any, Final, TypeAlias

from langchain_core.messages import BaseMessage
from pydantic import BaseModel

from langmem_ext.messages.identity import CLASS_OF_TYPE, CLASSES, DEFAULTS, Default, Snapshot, fields_of, is_standard, snapshot, snapshots

Place: TypeAlias = tuple[str, str, str]
"""Thread id, namespace and channel: where a list stands."""

Template: TypeAlias = tuple[type[BaseMessage] | None, dict[str, Any]]
"""A message's class and plain fields; `(None, {})` where they are not plain."""

TEMPLATE_BYTES: Final = 700
"""What a template costs in memory beyond its texts, about."""

MAX_LISTS: Final = 256
"""How many lists are remembered."""

_CONTAINERS: Final = {
    cls: tuple((name, type(default)) for name, default in DEFAULTS[code].items() if type(default) in (dict, list))
    for code, cls in enumerate(CLASSES)
}
_FIELD_SETS: Final = {cls: set(cls.model_fields) for cls in CLASSES}

_fields = attrgetter("__dict__")
_extra = attrgetter("__pydantic_extra__")
_new = object.__new__
_set_fields, _set_names, _set_extra, _set_private = (
    vars(BaseModel)[name].__set__ for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


@dataclass(frozen=True, slots=True)
class Templates:
    """A list of messages as it was lately packed or loaded. Never changed.

    Attributes:
        packed: Each message's exact bytes.
        classes, fields: Its template.
    """

    packed: list[Snapshot]
    classes: list[type[BaseMessage] | None]
    fields: list[dict[str, Any]]

    def following(self, packed: Sequence[Snapshot]) -> Templates:
        """The templates of a list that begins as this one does; of this one, where it is the longer."""
        shared = min(len(self.packed), len(packed))
        known: Mapping[Snapshot, Template] = {}
        if self.packed[:shared] != packed[:shared]:
            shared = next(at for at in range(shared) if self.packed[at] != packed[at])
            known = dict(zip(self.packed[shared:], zip(self.classes[shared:], self.fields[shared:], strict=True), strict=True))
        elif shared == len(packed):
            return self
        tail = [known.get(message) or _template_of(message) for message in packed[shared:]]
        return Templates(
            [*self.packed[:shared], *packed[shared:]],
            [*self.classes[:shared], *(cls for cls, _ in tail)],
            [*self.fields[:shared], *(fields for _, fields in tail)],
        )

    def size(self) -> int:
        """Bytes held, about."""
        return 2 * sum(map(len, self.packed)) + TEMPLATE_BYTES * len(self.packed)


class TemplateCache:
    """The lists lately used, by where they stand; for any thread.

    Args:
        max_bytes: What they may hold together, about.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._lists: OrderedDict[Place, tuple[Templates, int]] = OrderedDict()
        self._size = 0
        self._lock = threading.Lock()

    def pack(self, place: Place, messages: Sequence[BaseMessage], default: Default) -> list[Snapshot]:
        """`identity.snapshots` of a list."""
        known = self._find(place)
        unchanged = _unchanged(messages, known) if known.packed else []
        if unchanged and all(unchanged):
            packed = known.packed[: len(messages)] + snapshots(messages[len(unchanged) :], default)
        elif any(unchanged):
            packed = [
                before if same else snapshot(message, default)
                for same, before, message in zip(unchanged, known.packed, messages[: len(unchanged)], strict=False)
            ]
            packed += snapshots(messages[len(unchanged) :], default)
        else:
            packed = snapshots(messages, default)
        self._remember(place, known.following(packed))
        return packed

    def load(self, place: Place, packed: Sequence[Snapshot], decode: Callable[[Snapshot], Any]) -> list[Any]:
        """A fresh message for each; those that are not plain are decoded."""
        templates = self._find(place).following(packed)
        self._remember(place, templates)
        classes, fields = templates.classes[: len(packed)], templates.fields[: len(packed)]
        if None not in classes:
            return _copies(classes, fields)
        copies = iter(_copies(list(compress(classes, classes)), list(compress(fields, classes))))
        return [decode(message) if cls is None else next(copies) for message, cls in zip(packed, classes, strict=True)]

    def forget(self, thread_id: str | None = None) -> None:
        """Forget one thread's lists, or all."""
        with self._lock:
            for place in [place for place in self._lists if thread_id is None or place[0] == thread_id]:
                self._size -= self._lists.pop(place)[1]

    def _find(self, place: Place) -> Templates:
        found = self._lists.get(place)
        return found[0] if found is not None else Templates([], [], [])

    def _remember(self, place: Place, templates: Templates) -> None:
        with self._lock:
            before = self._lists.get(place)
            if before is None or before[0] is not templates:
                size = templates.size()
                self._size += size - (before[1] if before is not None else 0)
                self._lists[place] = templates, size
            self._lists.move_to_end(place)
            while self._lists and (self._size > self._max_bytes or len(self._lists) > MAX_LISTS):
                self._size -= self._lists.popitem(last=False)[1][1]


def _template_of(packed: Snapshot) -> Template:
    if is_standard(packed):
        fields = fields_of(packed)
        cls = CLASS_OF_TYPE[fields["type"]]
        containers = {name: kind() for name, kind in _CONTAINERS[cls]}
        plain = all(fields.get(name) == empty and type(fields.get(name)) is type(empty) for name, empty in containers.items()) and all(
            value is None or type(value) is str for name, value in fields.items() if name not in containers
        )
        if plain:
            return cls, fields
    return None, {}


def _unchanged(messages: Sequence[BaseMessage], known: Templates) -> list[bool]:
    """For each message that has a template at its position, whether it is exactly that."""
    try:
        if any(map(_extra, messages)):
            return []
        same_fields = map(eq, map(_fields, messages), known.fields)
        return list(map(and_, same_fields, map(is_, map(type, messages), known.classes)))
    except Exception:  # a value whose comparison fails: it is packed, and refused there if it cannot be
        return []


def _copies(classes: Sequence[Any], fields: Sequence[dict[str, Any]]) -> list[Any]:
    """Fresh messages. They share texts, which nobody can change, and the sets of their field names, which are complete."""
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
    messages = list(map(_new, classes))
    for setter, values in (
        (_set_fields, copies),
        (_set_names, map(_FIELD_SETS.__getitem__, classes)),
        (_set_extra, [{} for _ in copies]),
        (_set_private, repeat(None)),
    ):
        deque(map(setter, messages, values), maxlen=0)
    return messages
