"""Turns of concurrent writers, and the check that exactly what was acknowledged is readable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from comparison import Names, assert_same
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import Checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.memory import InMemorySaver
from savers import Calls, Saver

TURNS = 8
KEPT = 12


@dataclass(frozen=True)
class Turn:
    """One checkpoint and one task's writes on it: the arguments of the calls that store them."""

    config: RunnableConfig
    checkpoint: Any
    metadata: Any
    versions: dict[str, Any]
    stored: RunnableConfig
    writes: list[tuple[str, Any]]
    task: str


def config_of(thread: str, checkpoint_id: str | None = None) -> RunnableConfig:
    place = {"thread_id": thread, "checkpoint_ns": ""}
    return {"configurable": {**place, "checkpoint_id": checkpoint_id} if checkpoint_id else place}


def turns(worker: str, thread: str, count: int = TURNS) -> Iterator[Turn]:
    """Give one worker's turns: a chain of checkpoints over a list; all workers share one id.

    The list grows, and loses its oldest but one when it is long.
    """
    messages: list[Any] = [HumanMessage(f"by {worker}", id="shared")]
    parent: str | None = None
    for number in range(count):
        messages = [
            messages[0],
            *messages[1:][-KEPT:],
            AIMessage(
                f"{worker} {number}",
                id=f"{worker}-{number}",
                response_metadata={"n": [number, True]},
            ),
        ]
        version = f"{number + 1:032}.0.{abs(hash(worker)) % 10**9}"
        checkpoint_id = str(uuid6())
        checkpoint: Checkpoint = {
            "v": 4,
            "id": checkpoint_id,
            "ts": "2024-05-06T07:08:09.000010+00:00",
            "channel_values": {
                "messages": messages,
                "table": {f"key{n}": [worker, n, number] for n in range(9)},
            },
            "channel_versions": {"messages": version, "table": version},
            "versions_seen": {},
            "updated_channels": ["messages", "table"],
        }
        metadata = {"source": "loop", "step": number, "parents": {}, "worker": worker}
        writes = [
            ("messages", [HumanMessage(f"{worker} says {number}")]),
            ("note", {"n": number}),
            ("value", (worker, number)),
        ]
        task = f"{number:08x}-3333-5333-8333-333333333333"
        stored = config_of(thread, checkpoint_id)
        yield Turn(
            config_of(thread, parent),
            checkpoint,
            metadata,
            dict(checkpoint["channel_versions"]),
            stored,
            writes,
            task,
        )
        parent = checkpoint_id


async def store(calls: Calls, saver: Saver, turn: Turn) -> Turn:
    """Make the two calls of a turn, and give a copy of it when both have returned."""
    copy = deepcopy(turn)
    await calls.call(saver, "put", turn.config, turn.checkpoint, turn.metadata, turn.versions)
    await calls.call(saver, "put_writes", turn.stored, turn.writes, turn.task, "~path")
    return copy


async def assert_readable(calls: Calls, saver: Saver, acknowledged: Sequence[Turn]) -> None:
    """Check that everything acknowledged reads as InMemorySaver gives it, and nothing else."""
    reference, names = InMemorySaver(), Names(keep=True)
    for turn in acknowledged:
        reference.put(turn.config, turn.checkpoint, turn.metadata, turn.versions)
        reference.put_writes(turn.stored, turn.writes, turn.task, "~path")
    for turn in acknowledged:
        found = await calls.call(saver, "get_tuple", turn.stored)
        assert_same(
            names.checkpoint(reference.get_tuple(turn.stored)),
            names.checkpoint(found),
            f"get_tuple of {turn.stored}",
        )
    for thread in sorted({turn.stored["configurable"]["thread_id"] for turn in acknowledged}):
        expected = [names.checkpoint(found) for found in reference.list(config_of(thread))]
        listed = [
            names.checkpoint(found)
            for found in await calls.collect(saver, "list", config_of(thread))
        ]
        assert_same(tuple(expected), tuple(listed), f"list of {thread}")
        head = await calls.call(saver, "get_tuple", config_of(thread))
        assert_same(
            names.checkpoint(reference.get_tuple(config_of(thread))),
            names.checkpoint(head),
            f"the newest of {thread}",
        )
