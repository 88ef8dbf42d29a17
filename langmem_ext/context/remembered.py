"""The last request of each conversation, to be carried on instead of being made again.

Making a request looks at every message that is shown. Where the conversation has only grown since the last request, and nothing else was
decided, all but the new messages can be taken from that.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any, Final

from langchain_core.messages import BaseMessage

from langmem_ext.messages.pairing import call_ids

CONVERSATIONS: Final = 64
"""How many conversations are remembered, the longest unused forgotten first."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A request that was made, and of what.

    Attributes:
        messages: The messages of the conversation that were shown without a gap, up to its end.
        under: Where they begin, and all else that the request depends on.
        strippable: Up to where in the conversation reasoning could be left out.
        sent: The messages of the request.
        tokens: What they cost.
    """

    messages: tuple[BaseMessage, ...]
    under: Any
    strippable: int
    sent: list[BaseMessage]
    tokens: int

    def is_beginning_of(self, messages: Sequence[BaseMessage]) -> bool:
        """Whether the messages begin with these."""
        count = len(self.messages)
        if len(messages) < count:
            return False
        if all(map(is_, self.messages, messages)):
            return True
        return all(map(_shows_the_same, self.messages, messages))

    def takes_calls(self, messages: Sequence[BaseMessage]) -> bool:
        """Whether no call of these messages has an id that one of the request has."""
        new = {name for message in messages for name in call_ids(message)}
        return not new or new.isdisjoint(name for message in self.sent for name in call_ids(message))


def _shows_the_same(one: BaseMessage, other: BaseMessage) -> bool:
    """Whether a request shows the same of two messages: of copies, as a checkpointer gives them, all that it shows is compared."""
    if one is other:
        return True
    mine, theirs = one.__dict__, other.__dict__
    return (
        one.__class__ is other.__class__
        and mine["id"] == theirs["id"]
        and mine["content"] == theirs["content"]
        and mine.get("tool_calls") == theirs.get("tool_calls")
        and mine["additional_kwargs"] == theirs["additional_kwargs"]
    )


class RequestMemory:
    """The last request of each conversation, by its name. One object may be used from many threads."""

    def __init__(self, size: int = CONVERSATIONS) -> None:
        self._size = size
        self._kept: OrderedDict[str, Remembered] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str, messages: Sequence[BaseMessage], under: Any) -> Remembered | None:
        """The last request, if the conversation has only grown since and nothing else is different."""
        with self._lock:
            kept = self._kept.get(name)
        return kept if kept is not None and kept.under == under and kept.is_beginning_of(messages) else None

    def keep(self, name: str, remembered: Remembered) -> None:
        """Remember a request."""
        with self._lock:
            self._kept[name] = remembered
            self._kept.move_to_end(name)
            if len(self._kept) > self._size:
                self._kept.popitem(last=False)
