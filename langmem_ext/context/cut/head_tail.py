"""The strategy that goes by the number of messages: head, dropped middle, tail. Pure.

```
[  head  ] [ ------- dropped middle ------- ] [    tail    ]
  first       one marker: a summary of it,       the newest
   run        or that it was trimmed              messages
```

The head ends with the first answer in words, so it holds what the conversation is about. Every cut
is at a safe boundary: a tool call stays with its results, which is where the numbers below are
exceeded.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, SystemMessage, ToolMessage

from langmem_ext.context.cut.cut_point import PlannedCut
from langmem_ext.context.cut.stand_in import messages_for
from langmem_ext.context.cut.view import ThreadView
from langmem_ext.context.decisions import ContextEvent, Decisions
from langmem_ext.messages.pairing import safe_boundaries
from langmem_ext.messages.text import text_of

MAX_MESSAGES: Final = 40
"""A conversation of more messages gets a dropped middle."""

UNTRIMMED: Final = 2
"""Messages at the end whose tool output is shown whole: the last exchange."""

LEAST_TAIL: Final = 4
"""Messages that are of use as a context."""


@dataclass(frozen=True, slots=True)
class Zones:
    """Where the head of a conversation ends and where its tail begins.

    Attributes:
        head_end: Messages before this position are the head.
        tail_start: Messages from this position on are the tail.
    """

    head_end: int
    tail_start: int

    @property
    def dropped(self) -> int:
        """Messages between head and tail; at least 1."""
        return self.tail_start - self.head_end


def first_run_end(messages: Sequence[BaseMessage]) -> int:
    """The position after the model's first message with text, its first final answer; or 0."""
    return next(
        (
            at + 1
            for at, message in enumerate(messages)
            if isinstance(message, AIMessage) and text_of(message.content).strip()
        ),
        0,
    )


def tail_size(max_messages: int) -> int:
    """How many messages the tail has: half of those allowed, and never fewer than are of use."""
    return max(LEAST_TAIL, max_messages // 2)


def plan_zones(messages: Sequence[BaseMessage], max_messages: int = MAX_MESSAGES) -> Zones | None:
    """Head and tail of a conversation longer than `max_messages`; None if nothing is dropped.

    System messages at the beginning belong to the head. A cut that would part a call from its
    results moves: the head's to after them, the tail's to before the call, and only where that
    leaves nothing to drop to after the results.

    Args:
        messages: The conversation as the model would be shown it.
        max_messages: How many messages a conversation may have; 0: any number.
    """
    if max_messages <= 0 or len(messages) <= max_messages:
        return None
    bounds = safe_boundaries(messages)
    instructions = next(
        (at for at, message in enumerate(messages) if not isinstance(message, SystemMessage)),
        len(messages),
    )
    head_end = bounds[bisect_left(bounds, max(first_run_end(messages), instructions))]
    wanted = len(messages) - tail_size(max_messages)
    if wanted <= head_end:
        return None
    before = bounds[bisect_right(bounds, wanted) - 1]
    tail_start = before if before > head_end else bounds[bisect_left(bounds, wanted)]
    return Zones(head_end, tail_start) if tail_start < len(messages) else None


def trim_end(messages: Sequence[BaseMessage]) -> int:
    """The position before which tool outputs are trimmed: the start of the last two messages.

    Where these are results of a message's calls, its other results belong to the exchange too.
    """
    bounds = safe_boundaries(messages)
    return bounds[bisect_right(bounds, max(len(messages) - UNTRIMMED, 0)) - 1]


def plan_old_outputs(thread: ThreadView, decisions: Decisions) -> list[ContextEvent]:
    """What is shown of all outputs but the last exchange's."""
    chars = thread.policy.tool_output_trim_chars
    if not chars:
        return []
    old = range(thread.start(decisions), trim_end(thread.messages))
    outputs = [
        at
        for at in old
        if isinstance(thread.messages[at], ToolMessage) and thread.key(at) not in decisions.trims
    ]
    events: list[ContextEvent] = [
        {"kind": "trim", "at": thread.key(at), "chars": chars} for at in outputs
    ]
    after = decisions.and_then(events)
    return [
        event
        for event, at in zip(events, outputs, strict=True)
        if thread.shown(at, after) is not thread.messages[at]
    ]


def plan_zoned_cut(thread: ThreadView, decisions: Decisions) -> PlannedCut | None:
    """The dropped middle, between the first run and the newest messages; None if not too long.

    A question of the user's that is older than the newest messages stays, with system messages and
    what the caller has pinned.
    """
    start = thread.start(decisions)
    shown: list[tuple[int | None, BaseMessage]] = [
        (at, thread.messages[at]) for at in thread.before(start, decisions)
    ]
    if start and decisions.cut is not None:
        shown += [(None, message) for message in messages_for(decisions.cut)]
    shown += [(at, thread.messages[at]) for at in range(start, len(thread))]
    zones = plan_zones([message for _, message in shown], thread.policy.max_messages)
    if zones is None:
        return None
    kept = tuple(at for at, _ in shown[: zones.head_end] if at is not None)
    tail = next((at for at, _ in shown[zones.tail_start :] if at is not None), len(thread))
    if tail <= start:
        return None  # nothing but what was kept before
    pinned = (
        at
        for at in thread.pinned
        if at < tail and (at != thread.first_user or at == thread.latest_user)
    )
    return PlannedCut(tail, tuple(sorted({*kept, *pinned})))
