"""Messages that a graph keeps as they were written: role dicts, pairs of role and text, bare texts.

LangChain takes them wherever it takes messages. In the list of a conversation each is stored as the
message that it means, with the form in which it was written beside it: what reads conversations
sees a message, and the graph gets back what it put.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Final

from langchain_core.messages import BaseMessage, RemoveMessage, convert_to_messages

from langmem_ext.messages.packed import (
    WRITTEN,
    Default,
    Snapshot,
    is_standard,
    opaque,
    pack,
    unpack,
)
from langmem_ext.messages.snapshot import snapshot

RECENT: Final = 1024
"""Written messages whose snapshots are remembered: a list is packed whole at every step."""


def messages_in(values: Iterable[Any]) -> list[BaseMessage]:
    """The messages in a list, also those that are written in another form."""
    read = (value if isinstance(value, BaseMessage) else _meant(value) for value in values)
    return [message for message in read if message is not None]


def pack_written(values: Sequence[Any], default: Default) -> list[Snapshot] | None:
    """The snapshots of a list of messages in any form; None if it holds something else."""
    packed: list[Snapshot] = []
    for value in values:
        if isinstance(value, RemoveMessage):
            return None
        one = (
            snapshot(value, default)
            if isinstance(value, BaseMessage)
            else _packed(pack(value, default), default)
            if isinstance(value, dict | list | tuple | str)
            else None
        )
        if one is None:
            return None
        packed.append(one)
    return packed


@lru_cache(maxsize=RECENT)
def _packed(written: bytes, default: Default) -> Snapshot | None:
    value = unpack(written, opaque)
    message = _meant(value)
    packed = None if message is None else snapshot(message, default)
    if packed is None or not is_standard(packed):
        return None
    fields = unpack(packed, opaque)
    if isinstance(value, str):
        value = None
    elif isinstance(value, list):
        value[1] = None
    elif type(value["content"]) is str and value["content"] == fields["content"]:
        value["content"] = None
    else:
        return pack({**fields, WRITTEN: [value]})
    return pack({**fields, WRITTEN: value})


def as_message(packed: Snapshot) -> Snapshot:
    """The snapshot of the message that was meant; the same for one that was written as such."""
    if WRITTEN.encode() not in packed or not is_standard(packed):
        return packed
    fields = unpack(packed, opaque)
    fields.pop(WRITTEN, None)
    return pack(fields)


def _meant(value: Any) -> BaseMessage | None:
    """The message that is meant by a role dict, a pair or a text; None if it is none."""
    pair = isinstance(value, list | tuple) and len(value) == 2 and all(map(_is_text, value))
    if not (pair or isinstance(value, str) or (isinstance(value, dict) and "content" in value)):
        return None
    try:
        [message] = convert_to_messages([tuple(value) if pair else value])
    except Exception:  # whatever its validation raises: it is no message
        return None
    return message


def _is_text(value: object) -> bool:
    return isinstance(value, str)
