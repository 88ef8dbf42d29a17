"""A thread's messages as a request may show them, and what each of them costs."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langmem_ext.context.cut.request_cache import Remembered, RequestMemory
from langmem_ext.context.cut.stand_in import context_message, messages_for
from langmem_ext.context.decisions import Decisions, key_of
from langmem_ext.context.policy import ContextPolicy
from langmem_ext.context.repair.provider import ProviderRules
from langmem_ext.context.repair.repair import repair
from langmem_ext.context.repair.thoughts import strippable, without_thoughts
from langmem_ext.context.tool_output.tool_output import previewed, trimmed
from langmem_ext.errors import InvalidInput
from langmem_ext.messages.blocks import blocks_of, caller_of
from langmem_ext.messages.pairing import call_ids, latest_round
from langmem_ext.messages.token_costs.tokens import TokenCounter
from langmem_ext.messages.turns import is_users

_SPEAKERS: Final = (HumanMessage, AIMessage, ToolMessage)


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

    Raises:
        InvalidInput: They are no messages.
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
        for message in (messages[0], messages[-1]) if messages else ():
            if not isinstance(message, BaseMessage):
                kind = type(message).__name__
                raise InvalidInput(
                    f"{kind} is not a message: convert tuples and dicts with"
                    " langchain_core.messages.convert_to_messages"
                )
        self.messages = messages
        self.counter = counter
        self.policy = policy
        self.rules = rules
        self._pins = pins
        self._memory = memory
        self._places: dict[int, _Places] = {}
        self._rounds: dict[int, int | None] = {}

    def __len__(self) -> int:
        return len(self.messages)

    def key(self, position: int) -> str:
        """What events call the message that is there."""
        return key_of(self.messages[position], position)

    def position_of(self, key: str) -> int | None:
        """Where a message is; None for one that is missing."""
        return self._positions([key]).get(key)

    def _positions(self, keys: Iterable[str]) -> dict[str, int]:
        """The positions of messages, without missing ones.

        What is near the beginning or the end is found at once.
        """
        positions: dict[str, int] = {}
        names = set()
        for key in keys:
            if not key.startswith("@") or not key[1:].isdecimal():
                names.add(key)
            elif (position := int(key[1:])) < len(self) and self.key(position) == key:
                positions[key] = position
        last = len(self) - 1
        for ahead in range((last + 2) // 2):
            if not names:
                break
            for position in (last - ahead, ahead):
                name = self.messages[position].id
                if name in names:
                    positions[name] = position
                    names.remove(name)
        return positions

    # -- what is always shown ----------------------------------------------------------------------

    def is_users(self, position: int) -> bool:
        """Whether the user said the message."""
        return is_users(self.messages[position])

    @cached_property
    def first_user(self) -> int:
        """Where the first task is; the number of messages if there is none."""
        return next(
            (
                at
                for at, message in enumerate(self.messages)
                if is_users(message) and _says_something(message)
            ),
            len(self),
        )

    @cached_property
    def latest_user(self) -> int:
        """Where the user spoke last; -1 where they have not."""
        return next((at for at in range(len(self) - 1, -1, -1) if is_users(self.messages[at])), -1)

    @cached_property
    def pinned(self) -> frozenset[int]:
        """System messages, first task, latest user message, and what the caller has pinned."""
        # For a message of another class `isinstance` takes ten times as long.
        others = (
            at for at, message in enumerate(self.messages) if message.__class__ not in _SPEAKERS
        )
        systems = {at for at in others if isinstance(self.messages[at], SystemMessage)}
        return frozenset(
            at
            for at in {*systems, *self._named, self.first_user, self.latest_user}
            if 0 <= at < len(self)
        )

    @cached_property
    def _named(self) -> frozenset[int]:
        """What the caller has pinned."""
        named = (
            [at for at, message in enumerate(self.messages) if message.id in self._pins]
            if self._pins
            else []
        )
        return frozenset(place for at in named for place in self.whole(at))

    def whole(self, position: int) -> tuple[int, ...]:
        """The position of a message and of those it needs: calls, their results, and back."""
        asking = position
        if isinstance(result := self.messages[position], ToolMessage):
            before = range(position - 1, -1, -1)
            asking = next(
                (at for at in before if result.tool_call_id in call_ids(self.messages[at])),
                position,
            )
        calls = {*call_ids(self.messages[asking])}
        end = asking + 1
        while calls and end < len(self) and isinstance(self.messages[end], ToolMessage):
            end += 1
        return tuple(sorted({*range(asking, end), position}))

    @cached_property
    def latest_round(self) -> int:
        """Where the latest round of tool calls begins; the number of messages if there is none."""
        return latest_round(self.messages)

    @cached_property
    def recent(self) -> int:
        """The position of the first of the newest messages that are sent verbatim if they fit.

        The number of messages if there are none.
        """
        return max(len(self) - self.policy.keep_recent_messages, 0)

    # -- what is shown -----------------------------------------------------------------------------

    def shown(self, position: int, decisions: Decisions) -> BaseMessage:
        """A message as it is shown; the message itself where nothing of it is left out."""
        message = self.messages[position]
        if message.__class__ is HumanMessage:
            return message
        if isinstance(message, ToolMessage):
            key = self.key(position)
            if key in decisions.trims:
                return trimmed(message, decisions.trims[key])
            return previewed(message, key) if key in decisions.offloads else message
        return (
            without_thoughts(message, self.rules)
            if position < self._thoughtless(decisions)
            else message
        )

    def cost(self, position: int, decisions: Decisions) -> int:
        """What a message costs as it is shown."""
        return self.counter.count(self.shown(position, decisions))

    def start(self, decisions: Decisions) -> int:
        """From where on all messages are shown."""
        return self._seen(decisions).start

    def before(self, start: int, decisions: Decisions) -> list[int]:
        """Which of the messages before `start` are shown."""
        return sorted(at for at in self._seen(decisions).kept | self._named if at < start)

    def _seen(self, decisions: Decisions) -> _Places:
        """Where the messages are that decisions name."""
        known = self._places.get(id(decisions))
        if known is not None and known.of is decisions:
            return known
        cut, last = decisions.cut, decisions.thoughts
        # Where an id occurs twice, the place says which is meant, so long as nothing before it was
        # removed.
        place = (
            cut.place
            if cut is not None and cut.place is not None and self._is_at(cut.through, cut.place)
            else None
        )
        through = (cut.through,) if cut is not None and place is None else ()
        at = self._positions(
            [
                *through,
                *(cut.kept if cut is not None else ()),
                *([last] if last is not None else []),
            ]
        )
        kept = (
            frozenset(at[key] for key in cut.kept if key in at)
            if cut is not None
            else frozenset[int]()
        )
        place = at.get(cut.through, -1) if cut is not None and place is None else place
        places = _Places(
            decisions, 0 if place is None else place + 1, kept, at.get(last or "", -1) + 1
        )
        self._places[id(decisions)] = places
        return places

    def _is_at(self, key: str, position: int) -> bool:
        return 0 <= position < len(self) and self.key(position) == key

    def strippable(self, decisions: Decisions) -> int:
        """Up to where the reasoning of messages may be left out, of those that are shown."""
        start = self.start(decisions)
        if start not in self._rounds:
            self._rounds[start] = self._round_from(start)
        return strippable(self.messages, self._rounds[start])

    def _thoughtless(self, decisions: Decisions) -> int:
        """Up to where reasoning is left out."""
        seen = self._seen(decisions)
        if seen.thoughtless is None:
            least = self.strippable(decisions)
            seen.thoughtless = (
                least if self.policy.thoughts == "turn" else min(seen.thoughts, least)
            )
        return seen.thoughtless

    def _round_from(self, start: int) -> int | None:
        position = latest_round(self.messages, start)
        return position if position < len(self) else None

    def request(self, decisions: Decisions) -> Request:
        """The messages as they are sent: without what is left out, and valid for the provider."""
        start = self.start(decisions)
        before = tuple(self.messages[at] for at in self.before(start, decisions)) if start else ()
        under = (start, decisions, self.policy.thoughts, self.rules, self.counter, before)
        name, tail = self._name, self.messages[start:]
        known = self._memory.get(name, tail, under) if self._memory is not None else None
        request = self._gone_on(known, start, decisions) if known is not None else None
        if request is None:
            sent = list(
                repair(
                    [*self._opening(start, decisions), *self._shown_from(start, decisions)],
                    self.rules,
                ).messages
            )
            request = Request(sent, sum(map(self.counter.count, sent)))
            known = None
        if self._memory is not None:
            new = request.messages if known is None else request.messages[len(known.sent) :]
            calls = frozenset(name for message in new for name in call_ids(message)) | (
                known.calls if known is not None else frozenset()
            )
            thoughtless = self._thoughtless(decisions)
            self._memory.keep(
                name,
                Remembered(
                    tuple(tail),
                    under,
                    self._rounds[start],
                    thoughtless,
                    request.messages,
                    calls,
                    request.tokens,
                ),
            )
        return request

    @property
    def _name(self) -> str:
        # Conversations often begin with the same system message: the second message tells them
        # apart.
        return "/".join(message.id or str(message.content)[:100] for message in self.messages[:2])

    def _shown_from(self, start: int, decisions: Decisions) -> Iterator[BaseMessage]:
        for position in range(start, len(self)):
            yield self.shown(position, decisions)
            if decisions.nudges and (nudge := decisions.nudges.get(self.key(position))):
                yield context_message(nudge, "nudge")

    def _gone_on(self, known: Remembered, start: int, decisions: Decisions) -> Request | None:
        """A known request extended by the new messages; None if its repair depends on them."""
        if self.rules.alternates:
            return None
        first = start + len(known.messages)
        newest = self._round_from(first)
        self._rounds.setdefault(start, known.latest_round if newest is None else newest)
        thoughtless = self._thoughtless(decisions)
        if any(
            self.shown(at, decisions) is not self.messages[at]
            for at in (
                *self.before(start, decisions),
                *range(max(known.thoughtless, start), min(thoughtless, first)),
            )
            if at >= known.thoughtless and not isinstance(self.messages[at], ToolMessage)
        ):
            return None
        new = list(self._shown_from(first, decisions))
        calls = [name for message in new for name in call_ids(message)]
        running = known.latest_round is not None and any(
            map(caller_of, blocks_of(self.messages[known.latest_round].content))
        )
        if (
            thoughtless < known.thoughtless
            or running
            or not known.goes_on(calls)
            or any(isinstance(message, SystemMessage) for message in new)
        ):
            return None
        if repair(new, replace(self.rules, first_is_user=False)).messages is not new:
            return None
        return Request([*known.sent, *new], known.tokens + sum(map(self.counter.count, new)))

    def _opening(self, start: int, decisions: Decisions) -> list[BaseMessage]:
        """What is sent of the messages before `start`.

        The replacement text comes where the others began, behind the first task.
        """
        if not start:
            return []
        cut = decisions.cut
        before = self.before(start, decisions)
        end = bisect_right(before, self.first_user)
        while 0 < end < len(before) and before[end] == before[end - 1] + 1:
            end += 1
        head = [self.shown(at, decisions) for at in before[:end]]
        rest = [self.shown(at, decisions) for at in before[end:]]
        return [*head, *(messages_for(cut) if cut is not None else []), *rest]


@dataclass(slots=True)
class _Places:
    """Where in a thread the messages are that decisions name.

    Attributes:
        of: The decisions.
        start: From where on all messages are shown.
        kept: Those before that are shown.
        thoughts: Behind the last message whose reasoning they leave out.
        thoughtless: Up to where reasoning is left out; None until it is needed.
    """

    of: Decisions
    start: int
    kept: frozenset[int]
    thoughts: int
    thoughtless: int | None = None


def _says_something(message: BaseMessage) -> bool:
    content = message.content
    return not content.isspace() if isinstance(content, str) and content else bool(content)
