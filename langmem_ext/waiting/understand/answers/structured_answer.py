"""A client's answer that is no words, as commands: values by parameter, a refusal, an end. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pydantic import JsonValue

from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.catalog.tool_schema import WRONG_FORM
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.extract.choices.enum import named
from langmem_ext.waiting.extract.validity import is_valid, problem_of
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.state import PlanExecution
from langmem_ext.waiting.understand.commands import (
    Cancel,
    Command,
    Confirm,
    Correct,
    Decline,
    Deny,
    Fill,
    Refuse,
    Repeat,
    Start,
    Unclear,
)
from langmem_ext.waiting.understand.message import Heard


def read_structured_answer(
    playbook: Playbook, session: Session, heard: Heard, note: Mapping[str, Any]
) -> list[Command]:
    """The commands of an answer.

    Args:
        playbook: The catalog and its tools.
        session: The state that the answer meets.
        heard: The message that the answer has in the log.
        note: What it means (`Answer.note`).

    Returns:
        At least one command.
    """
    name, plan = session.waiting_for, session.plan
    if note["act"] == "start":
        return _started(playbook, heard, note)
    if note["act"] == "cancel":
        return [Cancel(by="client", why="cancels")]
    if plan is None or name is None:
        return [Unclear(by="client", why="nothing was asked")]
    if note["act"] == "decline":
        return [
            (
                Deny(by="client", why="declines")
                if name == CONFIRMATION
                else Decline(name, by="client", why="declines")
            )
        ]
    values, refused = _usable(playbook, plan, heard, note["values"])
    changed = {
        other: value for other, value in values.items() if session.params.get(other) != value
    }
    commands: list[Command] = [
        (
            Correct(other, value, by="client")
            if other in session.params
            else Fill(other, value, by="client")
        )
        for other, value in changed.items()
    ]
    approved = plan.get("approved") == playbook.approval(plan, session.params, note["values"])
    if approved and name == CONFIRMATION and not refused:
        commands.append(Confirm(by="client", why="approves"))
    return [*commands, *refused] or [Repeat(by="client", why="changes nothing")]


def _started(playbook: Playbook, heard: Heard, note: Mapping[str, Any]) -> list[Command]:
    """The commands for a request that a client begins; unusable values are reported."""
    intent = playbook.intents.get(note["intent"])
    if intent is None:
        return [Unclear(by="client", why="no such intent")]
    values, refused = _usable(playbook, playbook.begin(intent, heard.id), heard, note["values"])
    given = tuple(values.items())
    return [Start(intent.id, given, left=tuple(refused), by="client", why="calls it")]


def _usable(
    playbook: Playbook, plan: PlanExecution, heard: Heard, offered: Mapping[str, Any]
) -> tuple[dict[str, JsonValue], list[Refuse]]:
    """The values that the plan takes, and what is wrong with the others."""
    values: dict[str, JsonValue] = {}
    refused: list[Refuse] = []
    for name in (name for name in playbook.uses(plan) if name in offered):
        value = read_value(playbook.param(name), offered[name], heard.now)
        if isinstance(value, Refuse):
            refused.append(value)
        elif (problem := playbook.value_error(plan, name, value)) is not None:
            refused.append(Refuse(name, problem, by="client"))
        else:
            values[name] = value
    return values, refused


def read_value(param: Param, value: JsonValue, now: datetime) -> JsonValue | Refuse:
    """A value that a client gives, as it is stored; or what is wrong with it.

    Clients that know only text give all values as text, and others all numbers as floats.
    """
    if isinstance(value, str):
        value = named(param, value) or value
    if param.type == ParamType.INTEGER and isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, list | dict):
        return Refuse(param.name, "it must be one value", by="client")
    if not is_valid(param, value):
        read = extract(param, Reply(str(value), prompt=param.prompt or "?", now=now))
        if read.status != "filled":
            return Refuse(param.name, read.problem or WRONG_FORM, by="client")
        return read.value
    try:
        value = param.normalised(value)
    except ValueError:
        return Refuse(param.name, WRONG_FORM, by="client")
    problem = problem_of(param, value, now=now)
    return value if problem is None else Refuse(param.name, problem, by="client")
