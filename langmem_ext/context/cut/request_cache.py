"""The last request of each conversation, to be carried on instead of being made again.

Making a request looks at every message that is shown. Where the conversation has only grown since
the last request, and nothing else was decided, all but the new messages can be taken from that.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import is_
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage

from langmem_ext.context.decisions import ContextEvent
from langmem_ext.messages.annotations import INSERTED, notes_of

CONVERSATIONS: Final = 64
"""How many conversations are remembered, the longest unused forgotten first."""


@dataclass(frozen=True, slots=True)
class Remembered:
    """A request that was made, and of what.

    Attributes:
        messages: The messages of the conversation that were shown without a gap, up to its end.
        under: Where they begin, and all else that the request depends on.
        latest_round: Where the latest round of tool calls among them is in the conversation; None
            if there is none.
        thoughtless: Up to where in the conversation reasoning was left out.
        sent: The messages of the request.
        calls: The ids of its tool calls.
        tokens: What it costs.
    """

    messages: tuple[BaseMessage, ...]
    under: Any
    latest_round: int | None
    thoughtless: int
    sent: list[BaseMessage]
    calls: frozenset[str]
    tokens: int

    def is_beginning_of(self, messages: Sequence[BaseMessage]) -> bool:
        """Whether these messages are a prefix of the given ones.

        A message changed in place is not noticed.
        """
        count = len(self.messages)
        if len(messages) < count:
            return False
        if all(map(is_, self.messages, messages)):
            return True
        # Copies, as a checkpointer gives them. Comparing their dicts is much faster than comparing
        # them, or some of their fields.
        same = messages[:count]
        return [message.__dict__ for message in self.messages] == [
            message.__dict__ for message in same
        ] and all(map(is_, map(type, self.messages), map(type, same)))

    def goes_on(self, calls: Collection[str]) -> bool:
        """Whether messages with these calls can follow the request without changing its end."""
        if not self.sent or not self.calls.isdisjoint(calls):
            return False
        last = self.sent[-1]
        ends = (last, *self.messages[-1:])
        return (
            not any(isinstance(message, AIMessage) for message in ends)
            and notes_of(vars(last)).get(INSERTED) != "opening"
        )


class RequestMemory:
    """The last request of each conversation, by its name.

    One object may be used from many threads.
    """

    def __init__(self, size: int = CONVERSATIONS) -> None:
        self._size = size
        self._kept: OrderedDict[str, Remembered] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str, messages: Sequence[BaseMessage], under: Any) -> Remembered | None:
        """The last request, if the conversation has only grown since and all else is equal."""
        with self._lock:
            kept = self._kept.get(name)
        return (
            kept
            if kept is not None and kept.under == under and kept.is_beginning_of(messages)
            else None
        )

    def keep(self, name: str, remembered: Remembered) -> None:
        """Remember a request."""
        with self._lock:
            self._kept[name] = remembered
            self._kept.move_to_end(name)
            if len(self._kept) > self._size:
                self._kept.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Unsent:
    messages: list[BaseMessage]
    events: list[ContextEvent]
    decided: tuple[ContextEvent, ...]


class UnsentDecisions:
    """Decisions for requests that failed, so that a retry need not write its summary again.

    It is for the very same conversation only, not one whose messages have the same ids. One object
    may be used from many threads.
    """

    def __init__(self, size: int = CONVERSATIONS) -> None:
        self._size = size
        self._kept: OrderedDict[tuple[int, str | None], _Unsent] = OrderedDict()
        self._lock = threading.Lock()

    def keep(
        self,
        messages: Sequence[BaseMessage],
        events: Sequence[ContextEvent],
        decided: tuple[ContextEvent, ...],
    ) -> None:
        """Remember what was decided about these messages, after these earlier decisions."""
        with self._lock:
            self._kept[self._key(messages)] = _Unsent(list(messages), list(events), decided)
            if len(self._kept) > self._size:
                self._kept.popitem(last=False)

    def take(
        self, messages: Sequence[BaseMessage], events: Sequence[ContextEvent]
    ) -> Sequence[ContextEvent]:
        """What was decided about these messages, once; the earlier decisions if nothing was."""
        with self._lock:
            kept = self._kept.pop(self._key(messages), None)
        same = kept is not None and kept.events == list(events) and kept.messages == list(messages)
        return kept.decided if kept is not None and same else events

    @staticmethod
    def _key(messages: Sequence[BaseMessage]) -> tuple[int, str | None]:
        return len(messages), messages[-1].id if messages else None
