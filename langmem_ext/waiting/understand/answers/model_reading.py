"""A message that the rules could not read while a question waits: what a model makes of it. Pure.

Its values have passed the same normalisers and validators as any; a value that may be read by rules
alone is cut out of the message first. A model neither confirms a request nor changes
the values that a confirmation has shown.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.state import PlanExecution
from langmem_ext.waiting.understand.commands import (
    Ask,
    By,
    Cancel,
    Chat,
    Clarify,
    Command,
    Correct,
    Decline,
    DontCare,
    Fill,
    HandOver,
    Repeat,
    Unclear,
)
from langmem_ext.waiting.understand.intents.classifier import Classification
from langmem_ext.waiting.understand.message import Heard, candidates
from langmem_ext.waiting.understand.requests import (
    Commands,
    Understanding,
    other_requests,
    request_of,
)


def is_unread(commands: Sequence[Command]) -> bool:
    """Whether the rules have read nothing, or nothing but a value that is not certain."""
    return all(
        isinstance(command, Unclear) or (isinstance(command, Clarify) and len(command.choices) == 1)
        for command in commands
    )


def read_by_model(
    playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard
) -> Understanding:
    """What a model reads from the message; nothing if there is no model or it reads nothing."""
    hidden = candidates(playbook, playbook.local & playbook.catalog.params.keys(), heard)
    spans = [extraction.span for extraction in hidden.values() if extraction.span]
    request = request_of(playbook, session, heard)
    classification = yield replace(request, values=spans, unread=True)
    if classification.source != "model":
        return []
    if starts := other_requests(playbook, plan, heard, classification):
        return starts
    values = {
        name: value
        for name, value in classification.params.items()
        if session.waiting_for != CONFIRMATION
        and name in playbook.uses(plan)
        and playbook.value_error(plan, name, value) is None
    }
    commands: Commands = [
        (Correct if name in session.params else Fill)(
            name, value, by="model", why=classification.reason, confidence=classification.confidence
        )
        for name, value in values.items()
        if session.params.get(name) != value
    ]
    return commands or _acts(session.waiting_for, classification)


def _acts(name: str | None, classification: Classification) -> Commands:
    """What the message does besides."""
    by: By = "model"
    why, confidence = classification.reason, classification.confidence
    asked = name if name != CONFIRMATION else None
    match classification.act:
        case "dontcare" if asked:
            return [DontCare(asked, by=by, why=why, confidence=confidence)]
        case "decline" if asked:
            return [Decline(asked, by=by, why=why, confidence=confidence)]
        case "ask":
            return [Ask(asked, by=by, why=why, confidence=confidence)]
        case "chat":
            return [Chat("talk", by=by, why=why, confidence=confidence)]
        case "repeat":
            return [Repeat(by=by, why=why, confidence=confidence)]
        case "handover":
            return [HandOver(by=by, why=why, confidence=confidence)]
        case "cancel":
            return [Cancel(by=by, why=why, confidence=confidence)]
        case _:
            return []
