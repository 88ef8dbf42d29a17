"""Answers to some of the questions of a step, held until the last question is answered.

They are pending writes of the checkpoint that asks, under `RESUME`, where a later write replaces an
earlier one. Their task id belongs to no task of the graph, so LangGraph ignores them. They are
copied, exported and deleted with the checkpoint.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from langgraph.checkpoint.base import CheckpointTuple, PendingWrite
from langgraph.checkpoint.serde.types import INTERRUPT, RESUME
from langgraph.types import Interrupt, StateSnapshot

from langmem_ext.errors import StaleAnswer

HELD: Final = "held-answers"
"""The task under whose id they are stored."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A thread's state, and which of its questions have their answers.

    Attributes:
        snapshot: Its state, without those questions.
        asked: All questions of the step.
        held: The answers that are held, by the ids of their questions.
    """

    snapshot: StateSnapshot
    asked: tuple[Interrupt, ...]
    held: Mapping[str, Any]

    @classmethod
    def of(cls, snapshot: StateSnapshot, checkpoint: CheckpointTuple | None) -> Standing:
        """From a thread's state and its checkpoint, if that was read."""
        writes = checkpoint.pending_writes if checkpoint is not None else None
        held = held_in(writes or (), snapshot.interrupts)
        return cls(without_held(snapshot, held), snapshot.interrupts, held)

    def holding(self, answers: Mapping[str, Any]) -> list[tuple[str, Any]]:
        """The writes that hold these answers, and no others."""
        # With the question: older releases of LangGraph give a task's next question the same id.
        asked = {interrupt.id: interrupt.value for interrupt in self.asked}
        return [(RESUME, {name: [asked[name], answer] for name, answer in answers.items()})]


def is_interrupt_id(name: object) -> bool:
    """Whether a text has the form of an interrupt's id."""
    return isinstance(name, str) and re.fullmatch(r"[0-9a-f]{32}", name) is not None


def interrupts_in(checkpoint: CheckpointTuple | None) -> list[Interrupt]:
    """The questions of a checkpoint's step, those whose answers are held among them."""
    writes = (checkpoint.pending_writes if checkpoint is not None else None) or ()
    return [one for _, name, value in writes if name == INTERRUPT for one in value]


def require_seen(asked: Collection[object], seen: Collection[object]) -> None:
    """Require that what waits for an answer is what was seen when it was given.

    Raises:
        StaleAnswer: It is not.
    """
    if any(one not in seen for one in asked) or any(one not in asked for one in seen):
        raise StaleAnswer(
            "what was answered is no longer asked, or another question waits by now, and nothing"
            " was changed: see what waits (the thread's state or an empty message shows it), then"
            " answer that"
        )


def held_in(writes: Iterable[PendingWrite], asked: Iterable[Interrupt]) -> dict[str, Any]:
    """The answers to open questions that a checkpoint's pending writes hold, by interrupt id."""
    kept: Any = next((value for task, _, value in writes if task == HELD), None)
    if not isinstance(kept, dict):
        return {}
    return {
        interrupt.id: kept[interrupt.id][1]
        for interrupt in asked
        if interrupt.id in kept and kept[interrupt.id][0] == interrupt.value
    }


def without_held(snapshot: StateSnapshot, held: Container[str]) -> StateSnapshot:
    """A thread's state without the questions whose answers are held."""

    def left(asked: Iterable[Interrupt]) -> tuple[Interrupt, ...]:
        return tuple(interrupt for interrupt in asked if interrupt.id not in held)

    tasks = tuple(task._replace(interrupts=left(task.interrupts)) for task in snapshot.tasks)
    return snapshot._replace(tasks=tasks, interrupts=left(snapshot.interrupts))
