"""Takes back answers to a thread's open step, so that its question waits again.

LangGraph stores an answer with the task that asked. If the node then raises, the answer stays, and
every later run replays it. What a task did is in its pending writes; those of LangGraph's own kinds
can be replaced: an answer by none, an error by none. Nothing else of the thread is touched: not its
checkpoints and messages, nor what other tasks of the step have done.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import aclosing
from typing import Any, Final, TypeAlias

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, CheckpointTuple, PendingWrite
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.types import ERROR, INTERRUPT, RESUME
from langgraph.types import StateSnapshot

from langmem_ext.storage.checkpoints.late_writes import NULL_TASK

Put: TypeAlias = tuple[RunnableConfig, list[tuple[str, Any]], str]
"""A checkpoint's config, writes that replace a task's, and the task's id."""

COPY: Final = "__copy__"
"""The node in whose name LangGraph copies a checkpoint (`update_state`): the copy is still to do
what that was about to do."""

_CONTROL: Final = frozenset({ERROR, INTERRUPT, RESUME, "__error_source_node__"})
"""The writes that say how a task went. A task with any other write has finished, and is not run
again."""


def rewind(saver: BaseCheckpointSaver[Any], thread_id: str, *, failed: bool = False) -> bool | None:
    """Take back answers to the thread's open step. The caller holds the thread's lease.

    Args:
        saver: Any checkpointer.
        thread_id: The thread.
        failed: Whether to take back the last answer of each task that failed. Else all answers of
            all unfinished tasks are taken back: they ask again from their first question.

    Returns:
        Whether anything was taken back; None if there is no thread.
    """
    if failed:
        newest = saver.get_tuple(_root(thread_id))
        if newest is None or not _failed_with_answer(newest):
            return None if newest is None else False
    heads = _Heads(saver)
    for checkpoint in saver.list(heads.config(thread_id)):
        if not heads.take(checkpoint):
            break
    puts = heads.plan(failed=failed)
    for put in puts:
        saver.put_writes(*put)
    return bool(puts) if heads.by_namespace else None


async def arewind(
    saver: BaseCheckpointSaver[Any],
    thread_id: str,
    *,
    failed: bool = False,
) -> bool | None:
    """Async twin of `rewind`."""
    if failed:
        newest = await saver.aget_tuple(_root(thread_id))
        if newest is None or not _failed_with_answer(newest):
            return None if newest is None else False
    heads = _Heads(saver)
    async with aclosing(saver.alist(heads.config(thread_id))) as listed:  # type: ignore[type-var]
        async for checkpoint in listed:
            if not heads.take(checkpoint):
                break
    puts = heads.plan(failed=failed)
    for put in puts:
        await saver.aput_writes(*put)
    return bool(puts) if heads.by_namespace else None


def finished_again(
    checkpoint: CheckpointTuple | None, before: StateSnapshot, copied: StateSnapshot
) -> list[Put]:
    """What stores the work of a checkpoint's finished tasks in a copy: it is not done again.

    Args:
        checkpoint: The checkpoint.
        before: Its state.
        copied: The state of its copy, whose tasks have other ids.
    """
    paths = {task.id: task.path for task in before.tasks}
    ids = {task.path: task.id for task in copied.tasks}
    writes: dict[str, list[tuple[str, Any]]] = {}
    for task, name, value in (checkpoint and checkpoint.pending_writes) or ():
        writes.setdefault(task, []).append((name, value))
    return [
        (copied.config, written, ids[paths[task]])
        for task, written in writes.items()
        if paths.get(task) in ids and not _CONTROL.issuperset(name for name, _ in written)
    ]


def _root(thread_id: str) -> RunnableConfig:
    """The config of a thread's newest checkpoint."""
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": ""}}


def _failed_with_answer(newest: CheckpointTuple) -> bool:
    """Whether a failed task may have been answered, itself or in a subgraph.

    A subgraph's question is stored with its task here.
    """
    tasks = _open_tasks(newest.pending_writes or ())
    failed = [writes for writes in tasks.values() if writes.get(ERROR) is not None]
    asked = any(RESUME in writes or INTERRUPT in writes for writes in failed)
    return asked or bool(failed and RESUME in tasks[NULL_TASK])


class _Heads:
    """The newest checkpoint, and those of the subgraphs of its step, which name it.

    They are listed next to it: mostly before it; after it if a machine whose clock is behind has
    stored them.
    """

    def __init__(self, saver: BaseCheckpointSaver[Any]) -> None:
        # InMemorySaver lists one namespace after the other; all others list the newest first.
        self._sorted = not isinstance(saver, InMemorySaver)
        self.by_namespace: dict[str, CheckpointTuple] = {}

    @staticmethod
    def config(thread_id: str) -> RunnableConfig:
        """The config that lists the checkpoints of all namespaces of a thread."""
        return {"configurable": {"thread_id": thread_id}}

    def take(self, checkpoint: CheckpointTuple) -> bool:
        """Take the next checkpoint of the list; False if no later one is of this step."""
        name = checkpoint.config["configurable"].get("checkpoint_ns", "")
        root = self.by_namespace.get("")
        if self._sorted and root is not None and not _is_of_step(checkpoint, root):
            return False
        self.by_namespace.setdefault(name, checkpoint)
        return True

    def plan(self, *, failed: bool) -> list[Put]:
        """What to store. The root's comes last: until then, the thread shows that there is more."""
        root = self.by_namespace.get("")
        if root is None:
            return []
        heads = [self.by_namespace[name] for name in sorted(self.by_namespace, reverse=True)]
        steps = [
            _Step(head, failed=failed) for head in heads if head is root or _is_of_step(head, root)
        ]
        if not any(step.taken for step in steps):
            return []
        puts: list[Put] = []
        anew = False
        for step in steps:
            puts += step.puts(anew)
            anew |= bool(step.anew)
        return puts


def _is_of_step(head: CheckpointTuple, root: CheckpointTuple) -> bool:
    """Whether a subgraph has stored a checkpoint in the step of one of the root's."""
    parents = head.metadata.get("parents")
    return isinstance(parents, Mapping) and parents.get("") == root.checkpoint["id"]


class _Step:
    """The tasks of a checkpoint's step that have not finished.

    Args:
        head: The checkpoint.
        failed: Whether the last answers of tasks that failed are taken back, or all answers.

    Attributes:
        taken: The answers that are left, by task; tasks that keep all of theirs are not in it.
        anew: The tasks that will ask another question first than the one that is stored.
    """

    def __init__(self, head: CheckpointTuple, *, failed: bool) -> None:
        self._config = head.config
        self._tasks = _open_tasks(head.pending_writes or ())
        passed_answer = self._tasks.pop(NULL_TASK, {}).get(RESUME)
        self.taken: dict[str, list[Any] | None] = {}
        self.anew: set[str] = set()
        for task, writes in self._tasks.items():
            answers = writes.get(RESUME) or []
            answers = answers if isinstance(answers, list) else [answers]
            fails = writes.get(ERROR) is not None
            if answers and (fails or not failed):
                self.taken[task] = answers[:-1] if failed else []
                if not failed and (len(answers) > 1 or not fails):
                    self.anew.add(task)
        errors = any(writes.get(ERROR) is not None for writes in self._tasks.values())
        if passed_answer is not None and (errors or (self._tasks and not failed)):
            self.taken[NULL_TASK] = None

    def puts(self, inner_anew: bool) -> Iterator[Put]:
        """What to store, if an answer to this step or to a subgraph's was taken back.

        Args:
            inner_anew: Whether a subgraph of one of these tasks will ask another question first.
        """
        for task, writes in self._tasks.items():
            replaced: list[tuple[str, Any]] = []
            if task in self.taken:
                replaced.append((RESUME, self.taken[task]))
            if not replaced and INTERRUPT not in writes:
                continue
            if writes.get(ERROR) is not None:
                replaced.append((ERROR, None))
            if task in self.anew or (inner_anew and task not in self.taken):
                replaced.append((INTERRUPT, ()))
            if replaced:
                yield self._config, replaced, task
        if NULL_TASK in self.taken:
            yield self._config, [(RESUME, None)], NULL_TASK


def _open_tasks(writes: Sequence[PendingWrite]) -> dict[str, Mapping[str, Any]]:
    """The unfinished tasks, each with its writes by kind, and the writes of the whole step."""
    tasks: dict[str, dict[str, Any]] = {NULL_TASK: {}}
    for task, name, value in writes:
        tasks.setdefault(task, {})[name] = value
    finished = {task for task, named in tasks.items() if named.keys() - _CONTROL} - {NULL_TASK}
    return {task: named for task, named in tasks.items() if task not in finished}
