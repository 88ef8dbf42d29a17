"""One turn of a conversation, as its caller sees it: read from the state in which the thread came to rest or waits."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.ai import UsageMetadata
from langgraph.types import Interrupt, StateSnapshot

from langmem_ext.messages.annotations import shown_text
from langmem_ext.waiting.interrupts.approvals import OWN, Asked, question_of


@dataclass(frozen=True, slots=True)
class Turn:
    """What one message to a thread led to.

    Attributes:
        reply: What the agent says: its texts after the newest human message, and the question that waits.
        waiting_for: The parameter whose question waits for an answer; None when no question waits.
        params_keys: The names of the parameters that the thread knows, sorted; never their values.
        attempt: Which time the waiting question is asked, from 1; 0 when none waits.
        usage: Tokens used by models in this turn, by model name.
        interrupts: What the thread waits for, as LangGraph gives it; empty at rest.
    """

    reply: str
    waiting_for: str | None = None
    params_keys: tuple[str, ...] = ()
    attempt: int = 0
    usage: Mapping[str, UsageMetadata] = field(default_factory=dict)
    interrupts: tuple[Interrupt, ...] = ()


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


def messages_of(snapshot: StateSnapshot) -> list[BaseMessage]:
    """The thread's messages; empty for a graph that keeps none."""
    messages = _values(snapshot).get("messages")
    return [message for message in messages if isinstance(message, BaseMessage)] if isinstance(messages, list) else []


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
    """What the agent has said since the newest human message, and the question that waits.

    Args:
        snapshot: The thread's latest state.
        masked: Whether to hide sensitive values, as every view does but the reply itself.
    """
    messages = messages_of(snapshot)
    newest = max((place for place, message in enumerate(messages) if isinstance(message, HumanMessage)), default=-1)
    answers = [message for message in messages[newest + 1 :] if isinstance(message, AIMessage)]
    said = [message for message in answers if message.text]
    texts = [str(message.text) for message in said]
    prompts = dict.fromkeys(map(_prompt, pending_interrupts(snapshot)))
    asked = [prompt for prompt in prompts if prompt and prompt not in texts]
    shown = [shown_text(vars(message)) for message in said] if masked else texts
    return "\n".join([*shown, *asked])


def _prompt(interrupt: Interrupt) -> str:
    """What an interrupt asks, whoever made it."""
    if (question := question_of(asked_of(interrupt))) is not None:
        return question
    payload = interrupt.value
    if isinstance(payload, dict):
        payload = next((payload[key] for key in ("prompt", "question", "description") if isinstance(payload.get(key), str)), payload)
    if isinstance(payload, str):
        return payload
    return json.dumps(payload, ensure_ascii=False, default=str, skipkeys=True)
