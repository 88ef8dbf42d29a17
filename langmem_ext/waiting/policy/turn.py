"""Deciding on whatever a turn brings: a message while a request runs, a message at rest, or nothing. Pure."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage

from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.policy.plan import Decision, Move, decision, plan_next
from langmem_ext.waiting.policy.session import read_session
from langmem_ext.waiting.policy.table import carry_out
from langmem_ext.waiting.understand.commands import as_json
from langmem_ext.waiting.understand.intents.classifier import Classification, ClassifyRequest
from langmem_ext.waiting.understand.message import Heard
from langmem_ext.waiting.understand.reader import understand


def plan_turn(playbook: Playbook, state: Mapping[str, Any], heard: Heard | None) -> Generator[ClassifyRequest, Classification, Decision]:
    """What `classify` does with the state, for the message it ends with.

    Args:
        playbook: The catalog and its tools.
        state: The channels, whatever was edited into them.
        heard: The last message if it is the user's; None when nothing was said, as after an empty resume, an edit or a crash.

    Returns:
        The decision, once every classification that was yielded has been sent back.
    """
    session = read_session(state, playbook)
    if heard is None:
        move = plan_next(playbook, session)
        return decision(state, replace(move, say=_unsaid(move.say, state.get("messages") or [])))
    commands = yield from understand(playbook, session, heard)
    move = carry_out(playbook, session, heard, commands)
    move = replace(move, say=_varied(playbook, move, state.get("messages") or []))
    read = as_json(commands, playbook.sensitive)
    decided = decision(state, move)
    return replace(decided, update={**decided.update, "understood": read})


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
