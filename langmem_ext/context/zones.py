"""The strategy that goes by the number of messages, on a thread that something was decided about before. Pure."""

from __future__ import annotations

from langchain_core.messages import BaseMessage, ToolMessage

from langmem_ext.context.decisions import ContextEvent, Decisions
from langmem_ext.context.messages_strategy import plan_zones, trim_end
from langmem_ext.context.standing import messages_for
from langmem_ext.context.view import ThreadView
from langmem_ext.context.window import Cut


def plan_old_outputs(thread: ThreadView, decisions: Decisions) -> list[ContextEvent]:
    """What is shown of all outputs but the last exchange's."""
    chars = thread.policy.tool_output_trim_chars
    if not chars:
        return []
    old = range(thread.start(decisions), trim_end(thread.messages))
    outputs = [at for at in old if isinstance(thread.messages[at], ToolMessage) and thread.key(at) not in decisions.trims]
    events: list[ContextEvent] = [{"kind": "trim", "at": thread.key(at), "chars": chars} for at in outputs]
    after = decisions.and_then(events)
    return [event for event, at in zip(events, outputs, strict=True) if thread.shown(at, after) is not thread.messages[at]]


def plan_zoned_cut(thread: ThreadView, decisions: Decisions) -> Cut | None:
    """The dropped middle, between the first run and the newest messages; None where there are not too many messages.

    A question of the user's that is older than the newest messages stays, with system messages and what the caller has pinned.
    """
    start = thread.start(decisions)
    shown: list[tuple[int | None, BaseMessage]] = [(at, thread.messages[at]) for at in thread.before(start, decisions)]
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
    pinned = (at for at in thread.pinned if at < tail and (at != thread.first_user or at == thread.latest_user))
    return Cut(tail, tuple(sorted({*kept, *pinned})))
