"""What a waiting thread does next: start, ask, confirm, run, suspend or give up a request.

Pure functions: the nodes run what is decided here. `turn.plan_turn` is a generator: it asks for a
classification only where the rules leave the message open, so a model is called by whoever drives
it, sync or async, and deciding itself does no I/O.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from pydantic import JsonValue

from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.param import ParamType
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.policy.asking import question
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.state import PlanExecution, Suspended, choices_of, in_doubt
from langmem_ext.waiting.understand.acts.statements import refers_back
from langmem_ext.waiting.understand.commands import Clarify, Command, Refuse, Start
from langmem_ext.waiting.understand.intents.classifier import (
    Classification,
    ClassifyRequest,
)
from langmem_ext.waiting.understand.message import Heard

Task: TypeAlias = Literal["ask_user", "call_tool", "respond"]


@dataclass(frozen=True, slots=True)
class Move:
    """A step of deciding.

    Attributes:
        session: The session as it is then.
        say: What the agent says, in order.
        mentioned: Parameters of which the message was found to hold a value, taken or not.
    """

    session: Session
    say: tuple[str, ...] = ()
    mentioned: frozenset[str] = frozenset()


Deciding: TypeAlias = Generator[ClassifyRequest, Classification, Move]


@dataclass(frozen=True, slots=True)
class Decision:
    """What a node is to do.

    Attributes:
        update: New values of channels; `plan` and `waiting_for_param` are always among them.
        say: What the agent says, in order.
        mentioned: Parameters of which the user's message holds a value.
    """

    update: Mapping[str, Any]
    say: tuple[str, ...] = ()
    mentioned: frozenset[str] = field(default_factory=frozenset)


def decision(before: Mapping[str, Any], move: Move) -> Decision:
    """The move as an update of the channels `before`.

    It holds what differs from them, and always the plan and what is waited for.
    """
    after = move.session.channels()
    always = ("plan", "waiting_for_param")
    update = {
        name: value for name, value in after.items() if name in always or before.get(name) != value
    }
    return Decision(update, move.say, move.mentioned)


def plan_next(playbook: Playbook, session: Session, say: tuple[str, ...] = ()) -> Move:
    """Go on with the running request, else with the one suspended last.

    The move asks for what is missing, asks for a confirmation, or is ready.

    Values that a tool would refuse (edits bring them in) are dropped and asked for.
    """
    if session.plan is None:
        waiting = [entry for entry in session.suspended if not entry["plan"].get("given_up")]
        if not waiting:
            return Move(replace(session, waiting_for=None), say)
        back = restore(playbook, session, waiting[-1])
        return plan_next(playbook, back, (*say, playbook.catalog.replies.back))
    plan = session.plan
    before = session.waiting_for
    session = replace(session, params=playbook.sound(plan, session.params), waiting_for=None)
    if playbook.finished(plan):
        return Move(session, say)
    session = _with_doubtful(playbook, session, plan, before)
    plan = session.plan or plan
    missing = playbook.missing(plan, session.params)
    if not missing and not playbook.unconfirmed(plan, session.params) and not plan.get("expired"):
        return Move(session, say)
    name = missing[0] if missing else CONFIRMATION
    if name == CONFIRMATION:
        plan = PlanExecution(**{**plan, "asked": playbook.fingerprint(plan, session.params)})
    asked = question(playbook, plan, session.params, name)
    return Move(replace(session, plan=plan, waiting_for=name), (*say, asked.prompt))


def _with_doubtful(
    playbook: Playbook, session: Session, plan: PlanExecution, asked: str | None
) -> Session:
    """The session with its doubtful values, where one confirmation can ask about them all.

    A doubtful answer to the question that was asked is asked about by itself.
    """
    missing = playbook.missing(plan, session.params)
    if (
        asked in missing
        or not all(in_doubt(plan, name) for name in missing)
        or not playbook.confirm_question(plan)
    ):
        return session
    return take(playbook, session, {name: choices_of(plan, name)[0] for name in missing})


def next_task(playbook: Playbook, session: Session) -> Task | None:
    """What the graph does next with a session; None: nothing, the thread rests.

    A request that is neither asked about nor ready goes to `ask_user`, which passes it on to be
    decided again.
    """
    plan = session.plan
    if plan is None:
        return None
    if playbook.finished(plan):
        return "respond"
    if session.waiting_for is not None or not playbook.ready(plan, session.params):
        return "ask_user"
    return "call_tool" if plan["cursor"] < len(plan["steps"]) else "respond"


def start(playbook: Playbook, session: Session, heard: Heard, begins: Start) -> Move:
    """Begin a request, or go on with the suspended one for the same intent, unless it is another.

    Of the known values those marked `keep: thread` stay; the others only if the message refers back
    to them. Then come those that the message gives, and those that it leaves open. A running
    request must be suspended or dropped before.
    """
    intent, values = playbook.intents[begins.intent], dict(begins.values)
    for entry in session.suspended:
        if entry["plan"]["intent_id"] == intent.id and not begins.another:
            session = restore(playbook, session, entry)
            break
    else:
        kept = session.params if refers_back(heard.text) else lasting(playbook, session.params)
        plan = playbook.begin(intent, heard.id)
        plan = PlanExecution(**{**plan, "unsure": True}) if begins.unsure else plan
        session = replace(session, plan=plan, params=kept)
    session = replace(session, last_intent_id=intent.id, waiting_for=None)
    session = with_choices(playbook, take(playbook, session, values), begins.left)
    for refused in begins.left:
        if isinstance(refused, Refuse) and session.plan:
            session = replace(session, plan=with_half(playbook, session.plan, refused))
    return replace(plan_next(playbook, session), mentioned=frozenset(values))


def with_choices(playbook: Playbook, session: Session, commands: Sequence[Command]) -> Session:
    """The session with the values that are to be chosen from, or confirmed, before one counts."""
    plan = session.plan
    choices = {
        command.param: list(command.choices)
        for command in commands
        if isinstance(command, Clarify)
        and command.param is not None
        and plan is not None
        and command.param in playbook.uses(plan)
    }
    if plan is None or not choices:
        return session
    return replace(
        session, plan=PlanExecution(**{**plan, "choices": {**plan.get("choices", {}), **choices}})
    )


def with_half(playbook: Playbook, plan: PlanExecution, refused: Refuse) -> PlanExecution:
    """The plan with what counts of a value that was not said whole; nothing of a sensitive one."""
    if not refused.half or refused.param in playbook.sensitive:
        return plan
    halves = {**plan.get("halves", {}), refused.param: refused.half}
    return PlanExecution(**{**plan, "halves": halves})


def take(playbook: Playbook, session: Session, new_values: Mapping[str, JsonValue]) -> Session:
    """The session with the values that the running request can use.

    A value that is taken clears the wrong answers to its question.
    """
    if session.plan is None:
        return session
    usable = {
        name: value
        for name, value in new_values.items()
        if name in playbook.uses(session.plan)
        and playbook.value_error(session.plan, name, value) is None
    }
    attempts = {
        name: count for name, count in session.plan["attempts"].items() if name not in usable
    }
    plan = PlanExecution(**{**session.plan, "attempts": attempts})
    if choices := plan.get("choices"):
        plan = PlanExecution(
            **{
                **plan,
                "choices": {name: values for name, values in choices.items() if name not in usable},
            }
        )
    if halves := plan.get("halves"):  # the whole value counts from now on, even if it is taken back
        left = {name: day for name, day in halves.items() if name not in usable}
        plan = PlanExecution(**{**plan, "halves": left})
    return replace(session, plan=plan, params={**session.params, **usable})


def suspend(session: Session) -> Session:
    """Set the running request aside, with the values it has."""
    if session.plan is None:
        return session
    entry = Suspended(plan=session.plan, params=dict(session.params))
    return replace(session, plan=None, waiting_for=None, suspended=(*session.suspended, entry))


def restore(playbook: Playbook, session: Session, entry: Suspended) -> Session:
    """Go on with a suspended request: its own values, and those of the thread as they are now.

    Who asks, and where they live, was perhaps said for the request in between: that is confirmed.
    """
    plan, params = (
        _taken_up(entry["plan"]),
        {**entry["params"], **lasting(playbook, session.params)},
    )
    likely = {
        name: [session.params[name]]
        for name in playbook.missing(plan, params)
        if name in session.params
        and name not in playbook.sensitive
        and playbook.param(name).type in _WHO
    }
    return replace(
        session,
        plan=PlanExecution(**{**plan, "choices": {**likely, **plan.get("choices", {})}}),
        params=params,
        suspended=tuple(other for other in session.suspended if other is not entry),
        last_intent_id=plan["intent_id"],
    )


_WHO: Final = frozenset({ParamType.PERSON, ParamType.EMAIL, ParamType.PHONE, ParamType.ADDRESS})
"""Types of values that say who asks, whatever they ask for."""


def _taken_up(plan: PlanExecution) -> PlanExecution:
    """The plan; one that was given up begins with no wrong answers."""
    return (
        PlanExecution(**{**plan, "given_up": False, "attempts": {}})
        if plan.get("given_up")
        else plan
    )


def give_up(session: Session) -> Session:
    """Set the running request aside until the user asks for it again; its values stay."""
    if session.plan is None:
        return session
    return suspend(replace(session, plan=PlanExecution(**{**session.plan, "given_up": True})))


def drop(playbook: Playbook, session: Session, say: str) -> Move:
    """End the running request unanswered; one that it had interrupted goes on."""
    return plan_next(playbook, replace(session, plan=None, waiting_for=None), (say,))


def forget(playbook: Playbook) -> Move:
    """Start over: nothing is known, nothing runs. The messages stay."""
    return Move(Session(), (playbook.catalog.replies.reset,))


def lasting(playbook: Playbook, params: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The values that outlive the request that asked for them."""
    declared = playbook.catalog.params
    return {
        name: value
        for name, value in params.items()
        if name in declared and declared[name].keep == "thread"
    }
