"""A thread's state from its checkpoint, without the graph: values, next nodes, interrupts.

LangGraph's channels say what comes next (`storage.rows.pending_work`), so most of what
`graph.get_state` returns can be read from the checkpoint alone. The graph itself knows more: the
ids of tasks that have written nothing, values that it rebuilds (`DeltaChannel`), subgraphs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Literal, TypeAlias

from langgraph.checkpoint.base import CheckpointTuple
from langgraph.types import Interrupt, PregelTask, Send, StateSnapshot

from langmem_ext.storage.checkpoints.late_writes import NULL_TASK
from langmem_ext.threads.states.held import HELD, Standing

Status: TypeAlias = Literal["idle", "interrupted", "error"]

BRANCH: Final = "branch:to:"
JOIN: Final = "join:"
SENT: Final = "__pregel_tasks"
INPUT: Final = "__start__"
ROOT: Final = "__root__"
INTERRUPT: Final = "__interrupt__"
ERROR: Final = "__error__"
RESUME: Final = "__resume__"
INNER: Final = (BRANCH, JOIN, "__")
"""Prefixes of LangGraph's own channels."""


def snapshot_of(checkpoint: CheckpointTuple, *, live: bool = False) -> StateSnapshot:
    """The state that a checkpoint holds, in the form in which a graph returns it.

    Args:
        checkpoint: The checkpoint, with its pending writes.
        live: Whether it is a thread's newest one, and shows what is left to do; otherwise it shows
            the whole step.
    """
    channels = checkpoint.checkpoint["channel_values"]
    waiting = [*_next_nodes(channels)]
    tasks = tuple(_tasks(waiting, checkpoint.pending_writes or (), live))
    done = [task.name for task in tasks if task.result is not None] if live else []
    snapshot = StateSnapshot(
        values=values_of(channels),
        next=tuple(_without(waiting, done)),
        config=checkpoint.config,
        metadata=checkpoint.metadata,
        created_at=checkpoint.checkpoint["ts"],
        parent_config=checkpoint.parent_config,
        tasks=tasks,
        interrupts=tuple(interrupt for task in tasks for interrupt in task.interrupts),
    )
    return Standing.of(snapshot, checkpoint).snapshot if live else snapshot


def status_of(snapshot: StateSnapshot) -> Status:
    """The status of a thread in LangGraph's terms: interrupted whenever work is left."""
    if any(task.error is not None for task in snapshot.tasks):
        return "error"
    return "interrupted" if snapshot.next else "idle"


def values_of(channels: Mapping[str, Any]) -> Any:
    """The values of a graph's own channels; if it has one nameless channel, that one's value."""
    if ROOT in channels:
        return channels[ROOT]
    return {name: value for name, value in channels.items() if not name.startswith(INNER)}


def _next_nodes(channels: Mapping[str, Any]) -> Iterator[str]:
    """The nodes that run next; a node that was sent several tasks, several times."""
    for name, value in channels.items():
        if name == INPUT:
            yield INPUT
        elif name == SENT:
            yield from (task.node for task in value if isinstance(task, Send))
        elif name.startswith(BRANCH):
            yield name.removeprefix(BRANCH)
        elif name.startswith(JOIN) and (node := _joined(name, value)) is not None:
            yield node


def _joined(channel: str, seen: Any) -> str | None:
    """The node waiting for several others, if all have run; channels are named `join:a+b:node`."""
    awaited, _, node = channel.removeprefix(JOIN).rpartition(":")
    # A deferred node's value also says whether everything else is done.
    arrived = seen[0] if isinstance(seen, tuple) else seen
    return node if isinstance(arrived, set) and arrived == set(awaited.split("+")) else None


def _tasks(
    waiting: Sequence[str], writes: Sequence[tuple[str, str, Any]], live: bool
) -> Iterator[PregelTask]:
    """The tasks of a step: first those that have written something, by their writes."""
    left = list(waiting)
    by_task: dict[str, list[tuple[str, Any]]] = {}
    for task, channel, value in writes:
        if task not in (NULL_TASK, HELD):
            by_task.setdefault(task, []).append((channel, value))
    for task, written in by_task.items():
        kinds = {channel for channel, _ in written}
        asked = tuple(
            interrupt
            for channel, value in written
            if channel == INTERRUPT
            for interrupt in _interrupts(value)
        )
        error = next((value for channel, value in written if channel == ERROR), None)
        name = _name_of(task, asked, left)
        if name in left:
            left.remove(name)
        if ERROR not in kinds and kinds - {INTERRUPT, RESUME}:  # it has ended
            result = {channel: value for channel, value in written if not channel.startswith(INNER)}
            yield PregelTask(task, name, _path(name), None, () if live else asked, None, result)
        else:
            yield PregelTask(task, name, _path(name), error, asked)
    for name in left:
        yield PregelTask("", name, _path(name))


def _path(name: str) -> tuple[str, str]:
    return ("__pregel_pull", name)


def _interrupts(value: Any) -> tuple[Interrupt, ...]:
    """The interrupts of one write, which may be one or several."""
    several = value if isinstance(value, tuple | list) else (value,)
    return tuple(interrupt for interrupt in several if isinstance(interrupt, Interrupt))


def _name_of(task: str, asked: Sequence[Interrupt], names: Sequence[str]) -> str:
    """The node of a task, by its interrupt's id; else the only one left, or an empty text."""
    ids = {interrupt.id for interrupt in asked}
    made = [
        name for name in dict.fromkeys(names) if Interrupt.from_ns(None, f"{name}:{task}").id in ids
    ]
    return made[0] if made else names[0] if len(set(names)) == 1 else ""


def _without(names: Sequence[str], gone: Sequence[str]) -> list[str]:
    """The names, without one occurrence of each that is gone."""
    left = list(names)
    for name in gone:
        if name in left:
            left.remove(name)
    return left
