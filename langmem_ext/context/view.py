"""A thread's messages as a request may show them, and what each of them costs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langmem_ext.context.decisions import Cut, Decisions, key_of
from langmem_ext.context.messages_strategy import COMPACTED_ANSWER, COMPACTED_MARKER, SUMMARY_MARKER
from langmem_ext.context.policy import ContextPolicy
from langmem_ext.context.provider import ProviderRules
from langmem_ext.context.remembered import Remembered, RequestMemory
from langmem_ext.context.repair import repair
from langmem_ext.context.thoughts import strippable, without_thoughts
from langmem_ext.context.tool_output import previewed, trimmed
from langmem_ext.messages.annotations import inserted, is_inserted
from langmem_ext.messages.pairing import latest_round
from langmem_ext.messages.tokens import TokenCounter

NEAR: Final = 16
"""Messages from the beginning, where the first task stands, that are looked at before those from the end."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a model is sent of a thread.

    Attributes:
        messages: The messages.
        tokens: What they cost.
    """

    messages: list[BaseMessage]
    tokens: int


class ThreadView:
    """A thread's messages, seen through what was decided about them. It changes none of them.

    Args:
        messages: All of them, oldest first.
        counter: Counts what one costs.
        policy: When reasoning is left out.
        rules: What the provider accepts.
        pins: Ids of messages that are always shown, besides those that always are.
        memory: Earlier requests, to be carried on.
    """

    def __init__(
        self,
        messages: Sequence[BaseMessage],
        counter: TokenCounter,
        policy: ContextPolicy,
        rules: ProviderRules,
        pins: frozenset[str] = frozenset(),
        memory: RequestMemory | None = None,
    ) -> None:
        self.messages = messages
        self.counter = counter
        self.policy = policy
        self.rules = rules
        self._pins = pins
        self._memory = memory

    def __len__(self) -> int:
        return len(self.messages)

    def key(self, position: int) -> str:
        """What events call the message that stands there."""
        return key_of(self.messages[position], position)

    def position_of(self, key: str) -> int | None:
        """Where a message stands; None for one that is not there any more. What stands near an end is found at once."""
        if key.startswith("@") and key[1:].isdigit():
            position = int(key[1:])
            return position if position < len(self) and self.messages[position].id is None else None
        first = range(min(NEAR, len(self)))
        places = chain(first, range(len(self) - 1, len(first) - 1, -1))
        return next((at for at in places if self.messages[at].id == key), None)

    # -- what is always shown ------------------------------------------------------------------------------------------------------------

    @cached_property
    def first_user(self) -> int:
        """Where the first task stands; the number of messages where there is none."""
        return next((at for at, message in enumerate(self.messages) if _is_users(message)), len(self))

    @cached_property
    def latest_user(self) -> int:
        """Where the user spoke last; -1 where they have not."""
        return next((at for at in range(len(self) - 1, -1, -1) if _is_users(self.messages[at])), -1)

    @cached_property
    def pinned(self) -> frozenset[int]:
        """System messages, first task, latest user message, and what the caller has pinned."""
        systems = {at for at, message in enumerate(self.messages) if isinstance(message, SystemMessage)}
        return frozenset(at for at in {*systems, *self._named, self.first_user, self.latest_user} if 0 <= at < len(self))

    @cached_property
    def _named(self) -> frozenset[int]:
        """What the caller has pinned."""
        return frozenset(at for at, message in enumerate(self.messages) if message.id in self._pins) if self._pins else frozenset()

    @cached_property
    def latest_round(self) -> int:
        """Where the latest round of tool calls begins; the number of messages where there is none."""
        return latest_round(self.messages)

    @cached_property
    def strippable(self) -> int:
        """Up to where the reasoning of messages may be left out."""
        return strippable(self.messages)

    # -- what is shown -------------------------------------------------------------------------------------------------------------------

    def shown(self, position: int, decisions: Decisions) -> BaseMessage:
        """A message as it is shown; the message itself where nothing of it is left out."""
        message = self.messages[position]
        if isinstance(message, ToolMessage):
            key = self.key(position)
            if key in decisions.trims:
                return trimmed(message, decisions.trims[key])
            return previewed(message, key) if key in decisions.offloads else message
        return without_thoughts(message, self.rules) if position < self._thoughtless(decisions) else message

    def _thoughtless(self, decisions: Decisions) -> int:
        if self.policy.thoughts == "turn":
            return self.strippable
        last = self.position_of(decisions.thoughts) if decisions.thoughts is not None else None
        return -1 if last is None else min(last + 1, self.strippable)

    def cost(self, position: int, decisions: Decisions) -> int:
        """What a message costs as it is shown."""
        return self.counter.count(self.shown(position, decisions))

    def start(self, decisions: Decisions) -> int:
        """From where on all messages are shown."""
        last = self.position_of(decisions.cut.through) if decisions.cut is not None else None
        return 0 if last is None else last + 1

    def before(self, start: int, decisions: Decisions) -> list[int]:
        """Which of the messages before `start` are shown."""
        kept = {self.position_of(key) for key in decisions.cut.kept} if decisions.cut is not None else set()
        return sorted(at for at in {*kept, *self._named} if at is not None and at < start)

    def request(self, decisions: Decisions) -> Request:
        """The messages as they are sent: what is left out is left out, and what no provider would take is mended."""
        start = self.start(decisions)
        before = tuple(self.messages[at] for at in self.before(start, decisions)) if start else ()
        under = (start, decisions, self.rules, before)
        name, tail = self._name, self.messages[start:]
        known = self._memory.get(name, tail, under) if self._memory is not None else None
        more = self._since(known, start, decisions) if known is not None else None
        if known is not None and more is not None:
            sent, tokens = [*known.sent, *more], known.tokens + sum(map(self.counter.count, more))
        else:
            sent = list(repair([*self._opening(start, decisions), *self._shown_from(start, decisions)], self.rules).messages)
            tokens = sum(map(self.counter.count, sent))
        if self._memory is not None:
            self._memory.keep(name, Remembered(tuple(tail), under, self.strippable, sent, tokens))
        return Request(sent, tokens)

    @property
    def _name(self) -> str:
        # Conversations often begin with the same system message: the second message tells them apart.
        return "/".join(str(message.id) for message in self.messages[:2])

    def _shown_from(self, start: int, decisions: Decisions) -> Iterator[BaseMessage]:
        for position in range(start, len(self)):
            yield self.shown(position, decisions)
            if decisions.nudges and (nudge := decisions.nudges.get(self.key(position))):
                yield told(nudge, "nudge")

    def _since(self, known: Remembered, opening: int, decisions: Decisions) -> Sequence[BaseMessage] | None:
        """What a known request lacks; None where it is not only longer: the mending of the one depends on the other."""
        start = opening + len(known.messages)
        if self.rules.alternates or (known.sent and isinstance(known.sent[-1], AIMessage)):
            return None
        thoughtless = range(max(known.strippable, opening), min(self.strippable, start))
        if any(self.shown(at, decisions) is not self.messages[at] for at in thoughtless if not isinstance(self.messages[at], ToolMessage)):
            return None
        new = list(self._shown_from(start, decisions))
        if any(isinstance(message, SystemMessage) for message in new) or not known.takes_calls(new):
            return None
        return new if repair(new, replace(self.rules, first_is_user=False)).messages is new else None

    def _opening(self, start: int, decisions: Decisions) -> list[BaseMessage]:
        """What is shown of the messages before `start`, with the text that stands for the others behind the first task."""
        if not start:
            return []
        cut = decisions.cut
        before = self.before(start, decisions)
        head = [self.shown(at, decisions) for at in before if at <= self.first_user]
        rest = [self.shown(at, decisions) for at in before if at > self.first_user]
        return [*head, *(self.standing(cut) if cut is not None and cut.text else []), *rest]

    def standing(self, cut: Cut) -> list[BaseMessage]:
        """What stands for the messages that a cut leaves out."""
        if cut.by == "compact":
            return [
                told(COMPACTED_MARKER + cut.text, cut.by),
                AIMessage(COMPACTED_ANSWER, id=_id(cut.text + COMPACTED_ANSWER), additional_kwargs=inserted(cut.by)),
            ]
        return [told(SUMMARY_MARKER.format(count=cut.dropped) + cut.text if cut.by == "model" else cut.text, cut.by)]


def _is_users(message: BaseMessage) -> bool:
    return isinstance(message, HumanMessage) and not is_inserted(vars(message))


def told(text: str, by: str) -> HumanMessage:
    """What the model is told about its conversation; the same text is the same message, byte for byte."""
    return HumanMessage(text, id=_id(text), additional_kwargs=inserted(by))


def _id(text: str) -> str:
    return f"context-{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:16]}"
