"""What a thread waits for, as a person reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from langgraph.types import Interrupt

from langmem_ext.inspector.views.masks import Masks
from langmem_ext.threads.states.held import held_in
from langmem_ext.waiting.interrupts.foreign import question_of
from langmem_ext.waiting.turn import asked_by, asked_of


@dataclass(frozen=True, slots=True)
class Question:
    """A question that waits.

    Attributes:
        text: What is asked.
        param: The parameter that it asks for; empty for a question of another graph.
        attempt: Which time it is asked, from 1; 0 where that is not said.
        examples: Answers that would do.
        id: The interrupt's id.
    """

    text: str
    param: str = ""
    attempt: int = 0
    examples: tuple[str, ...] = ()
    id: str = ""


def questions_in(
    pending: Sequence[tuple[str, str, Any]], masks: Masks, *, waiting: bool
) -> list[Question]:
    """The questions among a checkpoint's pending writes.

    Args:
        pending: The writes.
        masks: What is hidden.
        waiting: Only those that wait: none whose answer is held, and none of a task that has
            written more, and so has its answer.
    """
    written: dict[str, set[str]] = {}
    for task, channel, _ in pending:
        written.setdefault(task, set()).add(channel)
    interrupts: list[Interrupt] = []
    for task, channel, value in pending:
        if channel == "__interrupt__" and (
            not waiting or written[task] <= {"__interrupt__", "__resume__", "__error__"}
        ):
            several = value if isinstance(value, list | tuple) else [value]
            interrupts += [item for item in several if isinstance(item, Interrupt)]
    held = held_in(pending, interrupts) if waiting else {}
    return [_question(interrupt, masks) for interrupt in interrupts if interrupt.id not in held]


def _question(interrupt: Interrupt, masks: Masks) -> Question:
    asked = asked_by(interrupt)
    text = question_of(asked_of(interrupt))
    attempt, examples = asked.get("attempt"), asked.get("examples")
    return Question(
        masks.text(text),
        str(asked.get("param") or ""),
        attempt if isinstance(attempt, int) else 0,
        tuple(str(example) for example in examples[:4]) if isinstance(examples, list) else (),
        interrupt.id,
    )
