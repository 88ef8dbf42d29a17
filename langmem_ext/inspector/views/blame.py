"""Blame: who set a value, at which step, by which node and write."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import BaseMessage

from langmem_ext.errors import ThreadNotFound
from langmem_ext.inspector.sources.source import Path, Source, Step, StepFacts
from langmem_ext.inspector.views.timeline import ancestors_of, label_of, nodes_of

PULL: Final = "~__pregel_pull, "
"""How the path of a task begins that a channel's update has started, in front of its node
(LangGraph's `task_path_str`)."""

INPUT: Final = "__start__"


@dataclass(frozen=True, slots=True)
class Blame:
    """Where a value comes from.

    Attributes:
        channel, path: The value.
        step: The step that set it.
        facts: What its checkpoint says.
        label: What made the step, in words.
        nodes: The nodes that may have written it; mostly one.
        task: Id of the task that wrote it; None where that is not stored.
        by_input: Whether it came with a graph's input.
        before: What stood there before.
        value: What stands there.
        age: How many steps ago that was.
    """

    channel: str
    path: Path
    step: Step
    facts: StepFacts | None
    label: str
    nodes: tuple[str, ...]
    task: str | None
    by_input: bool
    before: Any
    value: Any
    age: int


def blame(
    source: Source,
    thread_id: str,
    steps: Sequence[Step],
    checkpoint: str,
    channel: str,
    path: Path = (),
    namespace: str = "",
) -> Blame:
    """Who set a value as it stands in a checkpoint.

    The step is found by halving: about 2 log n of n checkpoints are looked at. Where a value was
    taken away and set again to the same, the step is one that set it, and not always the last.

    Args:
        source: The database.
        thread_id: The thread.
        steps: All of its steps (`Source.outline`).
        checkpoint: The checkpoint.
        channel: The channel that holds the value.
        path: Where in it the value stands; empty: all of it.
        namespace: That of a subgraph.

    Raises:
        ThreadNotFound: There is no such checkpoint.
    """
    chain = ancestors_of(steps, checkpoint)
    if not chain:
        raise ThreadNotFound(
            f"checkpoint {checkpoint} of thread {thread_id!r} not found: its timeline shows those"
            " that there are"
        )
    age = last_place_where(source.comparer(thread_id, checkpoint, channel, path, namespace), chain)
    setter, parent = chain[age], chain[age + 1] if age + 1 < len(chain) else None
    step = next(step for step in steps if step.id == setter)
    facts = source.facts(thread_id, [setter, *([parent] if parent else [])], namespace)
    writes = (
        [write for write in facts[parent].written if write.channel == channel]
        if parent is not None and parent in facts
        else []
    )
    if len({write.task for write in writes}) > 1 and path and parent is not None:
        writer = _writer(source.pending(thread_id, parent, namespace), channel, path)
        writes = [write for write in writes if writer in (None, write.task)]
    named = tuple(
        dict.fromkeys(
            write.path.removeprefix(PULL) for write in writes if write.path.startswith(PULL)
        )
    )
    ran = named or tuple(nodes_of(step, facts))
    before = None if parent is None else source.part(thread_id, parent, channel, path, namespace)
    return Blame(
        channel=channel,
        path=path,
        step=step,
        facts=facts.get(setter),
        label=label_of(step, facts),
        nodes=tuple(node for node in ran if node != INPUT),
        task=writes[0].task if len({write.task for write in writes}) == 1 else None,
        by_input=step.source == "input" or INPUT in ran,
        before=before,
        value=source.part(thread_id, checkpoint, channel, path, namespace),
        age=age,
    )


def last_place_where(same: Callable[[str], bool], chain: Sequence[str]) -> int:
    """The place of the last of a chain for which something holds, as it does for the first ones.

    >>> last_place_where(lambda name: name < "d", "abcdef")
    2
    """
    low, high = 0, 1
    while high < len(chain) and same(chain[high]):
        low, high = high, high * 2
    high = min(high, len(chain))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if same(chain[middle]) else (low, middle)
    return low


def _writer(pending: Sequence[tuple[str, str, Any]], channel: str, path: Path) -> str | None:
    """The task whose write holds what stands at a place: a message by its id, or a key."""
    for task, written, value in pending:
        if written == channel and _holds_key(value, path[0]):
            return task
    return None


def _holds_key(value: Any, key: str | int) -> bool:
    if isinstance(value, Mapping):
        return key in value
    several = value if isinstance(value, list | tuple) else [value]
    return any(isinstance(message, BaseMessage) and message.id == key for message in several)
