"""Deciding on whatever a turn brings: a message while a request runs, a message at rest, or nothing. Pure."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.policy.plan import Decision, Move, decision, plan_next
from langmem_ext.waiting.policy.session import Session, read_session
from langmem_ext.waiting.policy.table import carry_out
from langmem_ext.waiting.policy.timeout import expired, goes_on, going_on, has_expired, on_return, timed
from langmem_ext.waiting.understand.commands import Command, Confirm, as_json
from langmem_ext.waiting.understand.intents.classifier import Classification, ClassifyRequest
from langmem_ext.waiting.understand.message import Heard
from langmem_ext.waiting.understand.reader import understand


def plan_turn(
    playbook: Playbook, state: Mapping[str, Any], heard: Heard | None, now: datetime
) -> Generator[ClassifyRequest, Classification, Decision]:
    """What `classify` does with the state, for the message it ends with.

    Args:
        playbook: The catalog and its tools.
        state: The channels, whatever was edited into them.
        heard: The last message if it is the user's; None when nothing was said, as after an empty resume, an edit or a crash.
        now: The moment, with its time zone.

    Returns:
        The decision, once every classification that was yielded has been sent back.
    """
    session, messages = read_session(state, playbook), state.get("messages") or []
    if heard is None:
        move = plan_next(playbook, session)
        move = replace(move, say=_unsaid(move.say, messages))
        return decision(state, _timed(playbook, move, now) if move.say else move)
    commands = yield from understand(playbook, session, heard)
    move = _answered(playbook, session, heard, commands, now)
    move = _timed(playbook, replace(move, say=_varied(playbook, move, messages)), now)
    read = as_json(commands, playbook.sensitive)
    decided = decision(state, move)
    return replace(decided, update={**decided.update, "understood": read})


def _answered(playbook: Playbook, session: Session, heard: Heard, commands: Sequence[Command], now: datetime) -> Move:
    """The move that the commands make; a question that has expired is not answered before the user goes on."""
    if has_expired(session, now):
        session, counted = expired(session), on_return(commands)
        return carry_out(playbook, session, heard, counted) if counted else plan_next(playbook, session)
    if session.plan is not None and session.plan.get("expired") and goes_on(commands):
        session = going_on(session)
        if isinstance(commands[0], Confirm):
            return plan_next(playbook, session)
    return carry_out(playbook, session, heard, commands)


def _timed(playbook: Playbook, move: Move, now: datetime) -> Move:
    return replace(move, session=timed(playbook, move.session, now))


def _varied(playbook: Playbook, move: Move, messages: Sequence[BaseMessage]) -> tuple[str, ...]:
    """What is said, but not the same sentence twice in a row: one that stands alone is introduced."""
    last = next((message.text for message in reversed(messages) if isinstance(message, AIMessage) and message.text), None)
    if len(move.say) != 1 or move.say[0] != last:
        return move.say
    again = playbook.catalog.replies.repeat
    return (again, last) if move.session.waiting_for else (f"{again} {last}",)


def _unsaid(say: tuple[str, ...], messages: Sequence[BaseMessage]) -> tuple[str, ...]:
    """Without the question, if it is what the agent said last."""
    last = messages[-1] if messages else None
    return say[:-1] if say and isinstance(last, AIMessage) and last.text == say[-1] else say
