"""What pruning should keep, by a reference that never prunes, and what it may leave behind."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import CheckpointTuple
from langgraph.checkpoint.memory import InMemorySaver

from langmem_ext import DeltaSaver, MessageLog, examine
from langmem_ext.storage.operation import Op, Rows, execute, fetch, operation
from langmem_ext.storage.schema.dialect import ROW_THREAD

COUNTERS = "counters_since_delta_snapshot"

Place = tuple[str, str, str]
"""A checkpoint: thread, namespace and id."""


def place_of(found: CheckpointTuple) -> Place:
    """Where a checkpoint stands."""
    configurable = found.config["configurable"]
    return configurable["thread_id"], configurable["checkpoint_ns"], configurable["checkpoint_id"]


def config_of(place: Place) -> RunnableConfig:
    """The config that names a checkpoint."""
    return {
        "configurable": dict(
            zip(("thread_id", "checkpoint_ns", "checkpoint_id"), place, strict=True)
        )
    }


def everything(saver: Any, threads: Collection[str] | None = None) -> dict[Place, CheckpointTuple]:
    """Every checkpoint of a saver, by its place."""
    found = {place_of(one): one for one in saver.list(None)}
    return {place: one for place, one in found.items() if threads is None or place[0] in threads}


def chained(found: CheckpointTuple) -> list[str]:
    """The channels of a checkpoint that are rebuilt from its ancestors."""
    counters: Mapping[str, Any] = found.metadata.get(COUNTERS, {})
    return [
        name
        for name in counters
        if name in found.checkpoint["channel_versions"]
        and name not in found.checkpoint["channel_values"]
    ]


def with_chains(all_of_them: Mapping[Place, CheckpointTuple], kept: Iterable[Place]) -> set[Place]:
    """These checkpoints, and all others from which their channels are rebuilt."""
    staying = set(kept)
    while True:
        more: set[Place] = set()
        for place in staying:
            for channel in chained(all_of_them[place]):
                at = _parent(all_of_them, place)
                while at is not None:
                    more.add(at)
                    if channel in all_of_them[at].checkpoint["channel_values"]:
                        break
                    at = _parent(all_of_them, at)
        if more <= staying:
            return staying
        staying |= more


def _parent(all_of_them: Mapping[Place, CheckpointTuple], place: Place) -> Place | None:
    parent = all_of_them[place].parent_config
    at = None if parent is None else (place[0], place[1], parent["configurable"]["checkpoint_id"])
    return at if at in all_of_them else None


def newest(all_of_them: Mapping[Place, CheckpointTuple], last: int) -> set[Place]:
    """The newest checkpoints of each thread and namespace."""
    by_namespace: dict[tuple[str, str], list[Place]] = {}
    for place in sorted(all_of_them, reverse=True):
        by_namespace.setdefault(place[:2], []).append(place)
    return {place for places in by_namespace.values() for place in places[:last]}


def drop(reference: InMemorySaver, places: Iterable[Place]) -> None:
    """Take checkpoints with their writes out of a saver that knows no pruning."""
    for thread, namespace, checkpoint in places:
        del reference.storage[thread][namespace][checkpoint]
        reference.writes.pop((thread, namespace, checkpoint), None)


def copy_thread(reference: InMemorySaver, source: str, target: str) -> None:
    """Copy a thread of a saver that knows no copying."""
    if source not in reference.storage:
        return
    for namespace, checkpoints in reference.storage[source].items():
        reference.storage[target][namespace] = deepcopy(checkpoints)
    for (thread, namespace, checkpoint), written in list(reference.writes.items()):
        if thread == source:
            reference.writes[target, namespace, checkpoint] = deepcopy(written)
    for (thread, *rest), blob in list(reference.blobs.items()):
        if thread == source:
            reference.blobs[(target, *rest)] = blob  # type: ignore[index]  # namespace, channel and version


UNUSED_WORDS = f"""SELECT word.thread, word.number FROM word WHERE word.number NOT IN (
    SELECT label FROM checkpoint WHERE thread = word.thread
    UNION SELECT shape FROM checkpoint WHERE thread = word.thread
    UNION SELECT shape FROM pending_write WHERE thread = word.thread AND shape IS NOT NULL
    UNION SELECT shape FROM item WHERE {ROW_THREAD} = word.thread AND shape IS NOT NULL)"""
UNUSED_NAMESPACES = """SELECT thread, number FROM namespace WHERE NOT EXISTS (
    SELECT 1 FROM checkpoint
    WHERE checkpoint.thread = namespace.thread AND checkpoint.namespace = namespace.number)
    AND NOT EXISTS (
    SELECT 1 FROM pending_write WHERE pending_write.thread = namespace.thread
    AND pending_write.namespace = namespace.number)"""


def rows(saver: DeltaSaver, statement: str) -> Rows:
    """What a statement finds in the database."""
    return saver.log.run(operation(fetch)(statement), write=False)


def assert_sound(saver: DeltaSaver) -> None:
    """The doctor finds nothing that does not hold."""
    wrong = [finding for finding in examine(saver).findings if finding.severity != "note"]
    assert wrong == []


def assert_clean(saver: DeltaSaver) -> None:
    """The doctor finds nothing that does not hold, and no row is left that nothing refers to."""
    findings = examine(saver).findings
    assert [
        finding for finding in findings if finding.severity != "note" or finding.kind == "unused"
    ] == []
    assert list(rows(saver, UNUSED_WORDS)) == []
    assert list(rows(saver, UNUSED_NAMESPACES)) == []


def change(url: str, statement: str, **params: Any) -> None:
    """Change a database by hand, as somebody else's program would."""
    log = MessageLog.open(url)
    log.run(_changed(statement, params), write=True)
    log.close()


@operation
def _changed(statement: str, params: Mapping[str, Any]) -> Op[None]:
    yield from execute(statement, **params)
