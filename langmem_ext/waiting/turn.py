"""One turn of a conversation, as its caller sees it, read from the state it ended in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langgraph.types import Interrupt, StateSnapshot

from langmem_ext._internal import html
from langmem_ext.messages.annotations import shown_text
from langmem_ext.messages.text import words_of
from langmem_ext.messages.turns import replies_in
from langmem_ext.messages.written import messages_in
from langmem_ext.waiting.interrupts.foreign import OWN, Asked, question_of


@dataclass(frozen=True, slots=True)
class Turn:
    """The result of one message to a thread.

    Attributes:
        reply: What the user is to read: the agent's texts after the newest human message, the
            results of tools that ended the turn, and the pending question.
        waiting_for: The parameter of the pending question; None if there is none.
        params_keys: The names of the parameters that the thread knows, sorted; never their values.
        attempt: How many times the pending question was asked, from 1; 0 if there is none.
        usage: Tokens used by models in this turn, by model name.
        interrupts: The payloads of the pending interrupts; empty if the thread is idle.
    """

    reply: str
    waiting_for: str | None = None
    params_keys: tuple[str, ...] = ()
    attempt: int = 0
    usage: Mapping[str, UsageMetadata] = field(default_factory=dict)
    interrupts: tuple[Interrupt, ...] = ()

    @property
    def interrupt_id(self) -> str:
        """The id of the question that waits; empty if none does.

        `converse(…, interrupt_id=turn.interrupt_id)` answers this question and no other.
        """
        return self.interrupts[0].id if self.interrupts else ""

    def _repr_html_(self) -> str:
        rows = [
            ("reply", self.reply),
            ("waits for", self.waiting_for),
            ("asked, times", self.attempt or None),
            ("knows", self.params_keys),
        ]
        return html.table(row for row in rows if row[1] not in (None, (), ""))


def read_turn(snapshot: StateSnapshot, usage: Mapping[str, UsageMetadata]) -> Turn:
    """The turn that ended in `snapshot`."""
    interrupts = pending_interrupts(snapshot)
    asked = asked_by(interrupts[0]) if interrupts else {}
    params = _values(snapshot).get("params")
    waiting_for, attempt = asked.get("param"), asked.get("attempt")
    return Turn(
        reply=reply_of(snapshot),
        waiting_for=waiting_for if isinstance(waiting_for, str) else None,
        params_keys=tuple(sorted(params)) if isinstance(params, dict) else (),
        attempt=attempt if isinstance(attempt, int) else 0,
        usage=dict(usage),
        interrupts=interrupts,
    )


def pending_interrupts(snapshot: StateSnapshot) -> tuple[Interrupt, ...]:
    """The questions of all tasks that wait for an answer."""
    return tuple(interrupt for task in snapshot.tasks for interrupt in task.interrupts)


def goes_on_by_a_yes(snapshot: StateSnapshot) -> bool:
    """Whether an unfinished turn would run a tool next that the user has confirmed."""
    plan = _values(snapshot).get("plan")
    confirmed = isinstance(plan, dict) and plan.get("confirmed") is not None
    names = {task.name.removeprefix("before_") for task in snapshot.tasks}
    return confirmed and bool(names - {"respond"}) and not pending_interrupts(snapshot)


def messages_of(snapshot: StateSnapshot) -> list[BaseMessage]:
    """The thread's messages; empty for a graph that keeps none."""
    messages = _values(snapshot).get("messages")
    return messages_in(messages) if isinstance(messages, list) else []


def asked_by(interrupt: Interrupt) -> dict[str, Any]:
    """The payload of a waiting graph's question; empty for an interrupt of any other kind."""
    payload = interrupt.value
    return payload if isinstance(payload, dict) and payload.keys() >= OWN else {}


def asked_of(interrupt: Interrupt) -> Asked:
    """What an interrupt asks, whoever made it."""
    return Asked(interrupt.value, getattr(interrupt, "response_schema", None))


def _values(snapshot: StateSnapshot) -> dict[str, Any]:
    return snapshot.values if isinstance(snapshot.values, dict) else {}


def reply_of(snapshot: StateSnapshot, *, masked: bool = False) -> str:
    """What the user is to read since the newest human message, and the question that waits.

    Args:
        snapshot: The thread's latest state.
        masked: Whether to hide sensitive values, as every view does but the reply itself.
    """
    messages = messages_of(snapshot)
    newest = max(
        (place for place, message in enumerate(messages) if isinstance(message, HumanMessage)),
        default=-1,
    )
    replies = replies_in(messages[newest + 1 :], ended=not snapshot.tasks)
    texts = [words_of(vars(message)) for message in replies]
    asked = _asked_in_words(pending_interrupts(snapshot), texts)
    shown = [shown_text(vars(message)) for message in replies] if masked else texts
    return "\n".join([*shown, *asked])


def _asked_in_words(interrupts: Sequence[Interrupt], texts: Sequence[str]) -> Iterator[str]:
    """What a person is asked now: of several questions the first, if it was not said."""
    if not interrupts:
        return
    if (prompt := question_of(asked_of(interrupts[0]))) not in texts:
        yield prompt
    if len(interrupts) > 1:
        yield f"({len(interrupts) - 1} more to answer after this.)"
