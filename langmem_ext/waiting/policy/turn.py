"""Deciding on what a turn brings: a message while a request runs or at rest, or nothing. Pure."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import JsonValue

from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.param import ParamType
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.policy.plan import Decision, Move, decision, plan_next
from langmem_ext.waiting.policy.session import Session, read_session
from langmem_ext.waiting.policy.table import carry_out
from langmem_ext.waiting.policy.timeout import (
    expired,
    goes_on,
    going_on,
    has_expired,
    on_return,
    timed,
)
from langmem_ext.waiting.policy.user_questions import AskedQuestion, answered
from langmem_ext.waiting.sensitive import secrets_in
from langmem_ext.waiting.state import PlanExecution
from langmem_ext.waiting.understand.commands import (
    Clarify,
    Command,
    Confirm,
    Correct,
    Fill,
    Start,
    as_json,
)
from langmem_ext.waiting.understand.intents.classifier import ClassifyRequest
from langmem_ext.waiting.understand.message import Heard
from langmem_ext.waiting.understand.reader import understand


def plan_turn(
    playbook: Playbook,
    state: Mapping[str, Any],
    heard: Heard | None,
    now: datetime,
    *,
    answers: bool = False,
    rereads: bool = True,
) -> Generator[ClassifyRequest | AskedQuestion, Any, Decision]:
    """What `classify` does with the state, for the message it ends with.

    Args:
        playbook: The catalog and its tools.
        state: The channels, whatever was edited into them.
        heard: The last message if it is the user's; None when nothing was said, as after an empty
            resume, an edit or a crash.
        now: The moment, with its time zone.
        answers: Whether the application answers questions: they are yielded, too.
        rereads: Whether the classifier, a model for one, may read answers that the rules cannot.

    Returns:
        The decision, once a classification has been sent back for every request that was yielded,
        and a text or None for every question.
    """
    session, messages = read_session(state, playbook), state.get("messages") or []
    if heard is None:
        move = plan_next(playbook, session)
        move = replace(move, say=_unsaid(move.say, messages))
        return decision(state, _timed(playbook, move, now) if move.say else move)
    waited, session = session.waiting_for, _open(playbook, session)
    commands = yield from understand(playbook, session, heard, rereads=rereads)
    if waited != session.waiting_for:
        commands = [command for command in commands if not isinstance(command, Confirm)]
    commands = _without_used(session, commands)
    commands = _without_secrets(playbook, heard, commands)
    if answers:
        commands = yield from answered(playbook, session, heard, commands)
    move = _answered(playbook, session, heard, commands, now)
    move = _timed(playbook, replace(move, say=_varied(playbook, move, messages)), now)
    read = as_json(commands, playbook.sensitive)
    decided = decision(state, move)
    return replace(decided, update={**decided.update, "understood": read})


def _open(playbook: Playbook, session: Session) -> Session:
    """The session with its confirmation open again, if the tools have not all run.

    The process died, or the run was stopped, between the yes and a tool; then came a new message.
    """
    plan = session.plan
    if plan is None or plan.get("confirmed") is None or playbook.finished(plan):
        return session
    opened = PlanExecution(**{**plan, "confirmed": None})
    return replace(session, plan=opened, waiting_for=session.waiting_for or CONFIRMATION)


def _without_used(session: Session, commands: Sequence[Command]) -> list[Command]:
    """The commands but for other values of what a tool of the request has been called with."""
    steps = session.plan["steps"][: session.plan["cursor"]] if session.plan else ()
    used = {param for step in steps for param in step["args"].values()}
    return [
        command
        for command in commands
        if not (isinstance(command, Fill | Correct) and command.param in used)
    ]


def _without_secrets(
    playbook: Playbook, heard: Heard, commands: Sequence[Command]
) -> list[Command]:
    """The commands; a sensitive value that is known, or looks like one, is in no free text."""
    new_values = [
        dict([*(command.values if isinstance(command, Start) else ())])
        | ({command.param: command.value} if isinstance(command, Fill | Correct) else {})
        for command in commands
    ]
    known = heard.known.with_values(secrets_in(playbook.lasting, *new_values))
    params = playbook.catalog.params

    def shown(name: str | None, value: JsonValue) -> JsonValue:
        free = name is not None and name in params and params[name].type == ParamType.TEXT
        hides = free and name not in playbook.sensitive and isinstance(value, str)
        return known.hide(str(value)) if hides else value

    def doubted(command: Clarify) -> Clarify:
        choices = tuple(shown(command.param, choice) for choice in command.choices)
        return replace(command, choices=choices)

    def hidden(command: Command) -> Command:
        match command:
            case Start(_, values, left):
                return replace(
                    command,
                    values=tuple((name, shown(name, value)) for name, value in values),
                    left=tuple(doubted(one) if isinstance(one, Clarify) else one for one in left),
                )
            case Fill(name, value) | Correct(name, value):
                return replace(command, value=shown(name, value))
            case Clarify():
                return doubted(command)
        return command

    return [hidden(command) for command in commands]


def _answered(
    playbook: Playbook, session: Session, heard: Heard, commands: Sequence[Command], now: datetime
) -> Move:
    """The move that the commands make; an expired question is answered once the user goes on."""
    if has_expired(session, now):
        session, counted = expired(session), on_return(commands)
        return (
            carry_out(playbook, session, heard, counted)
            if counted
            else plan_next(playbook, session)
        )
    if session.plan is not None and session.plan.get("expired") and goes_on(commands):
        session = going_on(session)
        if isinstance(commands[0], Confirm):
            return plan_next(playbook, session)
    return carry_out(playbook, session, heard, commands)


def _timed(playbook: Playbook, move: Move, now: datetime) -> Move:
    return replace(move, session=timed(playbook, move.session, now))


def _varied(playbook: Playbook, move: Move, messages: Sequence[BaseMessage]) -> tuple[str, ...]:
    """What is said, but not the same sentence twice in a row: a repetition is introduced."""
    last = next(
        (
            message.text
            for message in reversed(messages)
            if isinstance(message, AIMessage) and message.text
        ),
        None,
    )
    if len(move.say) != 1 or move.say[0] != last:
        return move.say
    again = playbook.catalog.replies.repeat
    return (again, last) if move.session.waiting_for else (f"{again} {last}",)


def _unsaid(say: tuple[str, ...], messages: Sequence[BaseMessage]) -> tuple[str, ...]:
    """Without the question, if it is what the agent said last."""
    last = messages[-1] if messages else None
    return say[:-1] if say and isinstance(last, AIMessage) and last.text == say[-1] else say
