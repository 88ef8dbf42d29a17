"""Any value as a tree that a page can show, and what differs between two states."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage
from langgraph.types import Interrupt
from pydantic import BaseModel

from langmem_ext.inspector.sources.source import MessageList, Path
from langmem_ext.inspector.views.masks import Masks
from langmem_ext.messages.annotations import HIDDEN
from langmem_ext.messages.token_costs.media import encoded_in

WIDEST: Final = 60
"""Entries of a dict or list that are shown."""

DEEPEST: Final = 12
"""Levels that are shown."""

LONGEST: Final = 4000
"""Characters of a text that are shown."""

LINES: Final = 20
"""Parts of a value that a difference shows."""

CHANGES: Final = 200
"""Differences that are shown."""

Kind: TypeAlias = Literal[
    "text", "number", "word", "hidden", "list", "dict", "message", "other", "more"
]


@dataclass(slots=True)
class Node:
    """A part of a value.

    Attributes:
        label: Its key or place; empty for a whole value.
        path: The way to it, as JSON; None where a key of it is a hidden value.
        kind: What it is, for its looks.
        text: What is shown of it.
        children: Its parts.
        count: How many parts it has.
    """

    label: str
    path: str | None
    kind: Kind
    text: str
    children: list[Node] = field(default_factory=list)
    count: int = 0


@dataclass(frozen=True, slots=True)
class Change:
    """A difference between two states: its place, and the values before and after.

    None: there was no value, or there is none now.
    """

    channel: str
    path: str | None
    label: str
    before: str | None
    after: str | None

    @property
    def kind(self) -> str:
        """`added`, `removed` or `changed`."""
        return "added" if self.before is None else "removed" if self.after is None else "changed"


def tree_of(
    value: Any, masks: Masks, label: str = "", path: Path = (), hidden: bool = False
) -> Node:
    """A value as a tree.

    Args:
        value: Whatever a channel holds.
        masks: What of it is hidden.
        label: What it is called.
        path: The way to it.
        hidden: Whether all of it is hidden.
    """
    where, label = masks.path(path), masks.text(label)
    if hidden or (path and masks.hides_name(path[-1]) and not isinstance(value, bool | type(None))):
        return Node(label, where, "hidden", HIDDEN)
    if (parts := _parts_of(value, masks)) is None:
        kind, text = _leaf(value, masks)
        return Node(label, where, kind, text)
    if len(path) >= DEEPEST:
        return Node(label, where, "more", "…", count=len(parts))
    node = Node(label, where, _kind_of(value), _summary(value, masks), count=len(parts))
    if isinstance(value, MessageList) and (earlier := value.total - len(value.last)):
        node.children.append(Node("", where, "more", f"{earlier:,} earlier"))
    for at, (key, part) in enumerate(parts):
        if at == WIDEST:
            node.children.append(Node("", where, "more", f"{len(parts) - WIDEST:,} more"))
            break
        node.children.append(tree_of(part, masks, str(key), (*path, key)))
    return node


def _parts_of(value: Any, masks: Masks) -> list[tuple[str | int, Any]] | None:
    """The parts of a value, each with its key; None without parts."""
    if isinstance(value, BaseMessage):
        return [*_fields_of(value, masks)]
    if isinstance(value, MessageList):
        return [
            (message.id or at, message)
            for at, message in enumerate(value.last, value.total - len(value.last))
        ]
    if isinstance(value, Mapping):
        return [
            (key if isinstance(key, str | int) else str(key), part) for key, part in value.items()
        ]
    if isinstance(value, list | tuple):
        return [
            (item.id if isinstance(item, BaseMessage) and item.id else at, item)
            for at, item in enumerate(value)
        ]
    if isinstance(value, AbstractSet):
        return [*enumerate(sorted(value, key=repr))]
    if isinstance(value, Interrupt):
        return [("id", value.id), ("value", value.value)]
    if isinstance(value, BaseModel):
        return [*value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [
            (attribute.name, getattr(value, attribute.name))
            for attribute in dataclasses.fields(value)
        ]
    return None


def _fields_of(message: BaseMessage, masks: Masks) -> Iterator[tuple[str, Any]]:
    """What a page shows of a message: not what is empty."""
    text, message = masks.message_text(message), masks.shown(message)
    yield "content", text if isinstance(message.content, str) else message.content
    for name in (
        "tool_calls",
        "id",
        "name",
        "tool_call_id",
        "status",
        "artifact",
        "usage_metadata",
        "response_metadata",
        "additional_kwargs",
    ):
        value = getattr(message, name, None)
        if value not in (None, {}, []):
            yield name, value


def _kind_of(value: Any) -> Kind:
    if isinstance(value, BaseMessage):
        return "message"
    return "list" if isinstance(value, list | tuple | MessageList | AbstractSet) else "dict"


def _summary(value: Any, masks: Masks) -> str:
    """One line that stands for a value with parts while it is folded."""
    if isinstance(value, BaseMessage):
        text = " ".join(masks.message_text(value).split())
        calls = (
            ", ".join(f"{call['name']}()" for call in value.tool_calls)
            if isinstance(value, AIMessage)
            else ""
        )
        return f"{value.type}: {short(text or masks.text(calls), 90)}"
    if isinstance(value, MessageList):
        return f"{value.total:,} {'message' if value.total == 1 else 'messages'}"
    if isinstance(value, list | tuple | AbstractSet):
        return f"{len(value):,} {'item' if len(value) == 1 else 'items'}"
    if isinstance(value, Mapping):
        return f"{len(value):,} {'key' if len(value) == 1 else 'keys'}"
    return type(value).__name__


def _leaf(value: Any, masks: Masks) -> tuple[Kind, str]:
    if isinstance(value, str):
        if binary := encoded_in(value):
            return "other", f"{binary[1] or 'base64'}, {len(binary[2]) * 3 // 4:,} bytes"
        return "text", short(masks.text(value), LONGEST)
    if isinstance(value, bool) or value is None:
        return "word", {True: "true", False: "false", None: "null"}[value]
    if isinstance(value, int | float):
        return "number", masks.text(str(value))
    if isinstance(value, bytes):
        return "other", f"{len(value):,} bytes"
    return "other", short(masks.text(repr(value)), LONGEST)


def short(text: str, length: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= length else f"{text[: length - 1]}…"


# -- differences -----------------------------------------------------------------------------------


def changes_between(
    channel: str, before: Any, after: Any, masks: Masks, first: int = 0
) -> list[Change]:
    """What differs between two values of a channel; messages are told apart by their ids.

    Args:
        channel: The channel.
        before: What it held.
        after: What it holds.
        masks: What is hidden.
        first: The place of the first one of both, if they are lists.
    """
    changes: list[Change] = []
    _compare(channel, (), before, after, masks, changes, first)
    return changes


def _compare(
    channel: str,
    path: Path,
    before: Any,
    after: Any,
    masks: Masks,
    changes: list[Change],
    first: int = 0,
) -> None:
    if len(changes) >= CHANGES or (type(before) is type(after) and before == after):
        return
    if _is_plain(before) and _is_plain(after) and not (path and masks.hides_name(path[-1])):
        old, new = _by_key(before, first), _by_key(after, first)
        for key in dict.fromkeys([*old, *new]):
            _compare(
                channel,
                (*path, key),
                old.get(key, _NOTHING),
                new.get(key, _NOTHING),
                masks,
                changes,
            )
        return
    place = masks.text(".".join(map(str, path))) or channel
    changes.append(
        Change(
            channel,
            masks.path(path),
            place,
            _text_of(before, masks, path),
            _text_of(after, masks, path),
        )
    )


class _Nothing:
    """Stands where a value is not there."""


_NOTHING: Final = _Nothing()


def _is_plain(value: Any) -> bool:
    """Whether the parts of a value are compared one by one."""
    return isinstance(value, list | tuple | Mapping)


def _by_key(value: Any, first: int) -> dict[str | int, Any]:
    if isinstance(value, Mapping):
        return {str(key): part for key, part in value.items()}
    return {
        (item.id if isinstance(item, BaseMessage) and item.id else at): item
        for at, item in enumerate(value, first)
    }


def _text_of(value: Any, masks: Masks, path: Path) -> str | None:
    if value is _NOTHING:
        return None
    return lines_of(tree_of(value, masks, path=path))


def lines_of(node: Node, depth: int = 0) -> str:
    """A tree as text."""
    head = f"{'  ' * depth}{node.label + ': ' if node.label and depth else ''}"
    if not node.children:
        return f"{head}{node.text}"
    parts = [lines_of(child, depth + 1) for child in node.children[:LINES]]
    if (more := len(node.children) - LINES) > 0:
        parts.append(f"{'  ' * (depth + 1)}{more:,} more")
    return "\n".join([f"{head}{node.text}", *parts])
