"""How a request is planned: what to leave out, step by step, until it fits.

Pure: for texts it asks its caller.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from langchain_core.messages import BaseMessage, ToolMessage

from langmem_ext.context.cut.loops import Nudge, Stop, plan_nudge
from langmem_ext.context.cut.relief import Relief
from langmem_ext.context.cut.stand_in import LeftOut, Replacement
from langmem_ext.context.cut.view import ThreadView
from langmem_ext.context.decisions import ContextEvent, Decisions, decided, in_force
from langmem_ext.context.policy import Aim
from langmem_ext.context.report import Plan, contributors
from langmem_ext.errors import ContextOverflow
from langmem_ext.messages.annotations import INSERTED, notes_of


@dataclass(frozen=True, slots=True)
class Governed:
    """What a model is sent, and why.

    Attributes:
        messages: The messages; those that nothing was left out of are the very objects that were
            given.
        plan: What was done, and what it saved; it prints as a table.
        events: All that was decided so far, to be given with the next request of the conversation.
    """

    messages: list[BaseMessage]
    plan: Plan
    events: tuple[ContextEvent, ...]


Governing: TypeAlias = Generator[LeftOut, Replacement, Governed]


def planning(
    thread: ThreadView,
    limit: int,
    events: Sequence[ContextEvent] = (),
    *,
    params: Mapping[str, Any] | None = None,
    fixed: Mapping[str, int] | None = None,
    forced: bool = False,
) -> Governing:
    """Plan a request; yields a question for each text that replaces left-out messages.

    It asks once, or twice where too much is left after `messages`.

    Args:
        thread: The conversation.
        limit: What its messages may cost, in tokens.
        events: What was decided for earlier requests.
        params: Known values of the user's request, by name; repeated when messages are left out.
        fixed: What else of the request costs how much, by name, for the message of an overflow.
        forced: Whether to leave something out though nothing asks for it.

    Raises:
        ContextOverflow: What must be shown costs more than the limit.
        InvalidInput: The events are invalid.
    """
    policy = thread.policy
    # A turn repeats itself at a result or not at all.
    at_result = len(thread) and isinstance(thread.messages[-1], ToolMessage)
    nudge = plan_nudge(thread.messages, policy.nudge_at, policy.stop_at) if at_result else None
    decisions = before = decided(events)
    new = _nudged(thread, decisions, nudge)
    decisions = decisions.and_then(new) if new else decisions
    request = now = thread.request(decisions)
    aim = policy.aim(now.tokens, len(now.messages), limit, forced=forced)
    if policy.strategy == "messages" and not forced:
        added = yield from Relief(
            thread, decisions, now, limit, aim or Aim(limit, 0), params or {}
        ).by_count()
        new += added
        decisions = decisions.and_then(added)
        request = thread.request(decisions)
        aim = policy.aim(request.tokens, len(request.messages), limit)
    if aim is not None and (forced or request.tokens > limit or not _was_cut(thread, decisions)):
        relief = Relief(thread, decisions, request, limit, aim, params or {}, forced=forced)
        added = yield from (
            relief.compacted() if forced and policy.strategy == "messages" else relief.reduced()
        )
        request = thread.request(decisions.and_then(added))
        if request.tokens > limit:
            added, larger = relief.pins_alone(), request
            request = thread.request(decisions.and_then(added))
            if request.tokens > limit:
                least = min(request, larger, key=lambda candidate: candidate.tokens)
                raise ContextOverflow(
                    limit, least.tokens, contributors(least, thread.counter, fixed or {})
                )
        if now.messages and not request.messages:  # not even a line in their place fits
            raise ContextOverflow(limit, now.tokens, contributors(now, thread.counter, fixed or {}))
        new += added
    stop = nudge.text if isinstance(nudge, Stop) else None
    plan = Plan(
        limit,
        now.tokens,
        request.tokens,
        len(thread),
        len(request.messages),
        tuple(new),
        stop,
        _earlier_cut(thread, before),
    )
    return Governed(
        request.messages, plan, tuple(_kept_events(thread, [*events, *new]) if new else events)
    )


def _earlier_cut(thread: ThreadView, before: Decisions) -> tuple[int, str] | None:
    """What is left out of a thread by an earlier cut; None if nothing is."""
    cut = before.cut
    return (
        None
        if cut is None or not thread.start(before)
        else (cut.dropped, cut.by if cut.text else "")
    )


def _was_cut(thread: ThreadView, decisions: Decisions) -> bool:
    """Whether the thread was cut in this turn of the user's or in the one before."""
    cut = decisions.cut
    return (
        cut is not None
        and cut.at <= len(thread)
        and sum(thread.is_users(at) for at in range(cut.at, len(thread))) < 2
    )


def _kept_events(thread: ThreadView, events: Sequence[ContextEvent]) -> list[ContextEvent]:
    """The decisions still in force; a thread cut a thousand times does not carry them all."""
    decisions = decided(events)
    start = thread.start(decisions)
    return in_force(
        events,
        {thread.key(at) for at in (*thread.before(start, decisions), *range(start, len(thread)))},
    )


def _nudged(
    thread: ThreadView, decisions: Decisions, nudge: Nudge | Stop | None
) -> list[ContextEvent]:
    """The event of a loop warning; None if the model was already warned."""
    if not isinstance(nudge, Nudge) or (after := thread.key(nudge.after)) in decisions.nudges:
        return []
    if any(
        notes_of(vars(message)).get(INSERTED) == "nudge"
        for message in thread.messages[nudge.after + 1 : nudge.after + 2]
    ):
        return []
    return [{"kind": "nudge", "after": after, "text": nudge.text}]
