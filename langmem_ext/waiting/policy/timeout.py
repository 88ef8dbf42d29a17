"""A question's timeout: the user who comes back after it is asked whether to go on.

This is asked before anything else happens. Pure functions.

A yes that was meant for a question of last week does nothing: the question is asked anew. Values
that the user gives on coming back stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.state import PlanExecution
from langmem_ext.waiting.understand.commands import Chat, Command, Confirm, Deny, Repeat, Unclear


def has_expired(session: Session, now: datetime) -> bool:
    """Whether the question that waits has just expired; the user does not know yet."""
    plan = session.plan
    if plan is None or session.waiting_for is None or plan.get("expired"):
        return False
    end = _moment(plan.get("expires_at"))
    return end is not None and end <= now


def expired(session: Session) -> Session:
    """The session where the user is asked first whether to go on."""
    assert session.plan is not None
    return replace(session, plan=PlanExecution(**{**session.plan, "expired": True}))


def on_return(commands: Sequence[Command]) -> list[Command]:
    """The commands without those that answer the expired question, such as yes and no."""
    return [
        command
        for command in commands
        if not isinstance(command, Confirm | Deny | Unclear | Repeat)
    ]


def goes_on(commands: Sequence[Command]) -> bool:
    """Whether a message goes on with the request, by a yes or by anything about its question."""
    return not all(isinstance(command, Chat | Repeat | Unclear) for command in commands)


def going_on(session: Session) -> Session:
    """The session without the question whether to go on."""
    if session.plan is None:
        return session
    left = {
        name: value for name, value in session.plan.items() if name not in ("expired", "expires_at")
    }
    # What is left is a plan.
    return replace(session, plan=PlanExecution(**left))  # type: ignore[typeddict-item]


def timed(playbook: Playbook, session: Session, now: datetime) -> Session:
    """The session with the moment when the question expires that it asks now."""
    plan = session.plan
    if plan is None or session.waiting_for is None or plan.get("expired"):
        return session
    timeout = playbook.timeout(session.waiting_for)
    if timeout is None:
        return session
    ends = (now + timedelta(seconds=timeout)).astimezone(UTC).isoformat(timespec="seconds")
    return replace(session, plan=PlanExecution(**{**plan, "expires_at": ends}))


def _moment(value: object) -> datetime | None:
    try:
        moment = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    return moment if moment is None or moment.tzinfo is not None else moment.astimezone()
