"""What follows from a message: its commands, run against the running and waiting requests.

Pure functions.

One table, in this order: what ends or leaves the request (reset, cancel, a person), the answer to a
confirmation, values, other requests, and what only wants a word back. Values that were filled stay,
whatever is misunderstood: only a correction or a new request changes them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

from langchain_core.messages import HumanMessage
from pydantic import JsonValue

from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.param import Param, ParamType, label
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.policy.asking import described, value_in_words
from langmem_ext.waiting.policy.plan import (
    Move,
    drop,
    forget,
    give_up,
    plan_next,
    start,
    suspend,
    take,
    with_choices,
    with_half,
)
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.state import PlanExecution
from langmem_ext.waiting.understand.commands import (
    Ask,
    Cancel,
    Chat,
    Clarify,
    Command,
    Confirm,
    Correct,
    Decline,
    Deny,
    DontCare,
    Fill,
    HandOver,
    Refuse,
    Repeat,
    Reset,
    Start,
)
from langmem_ext.waiting.understand.message import Heard

C = TypeVar("C", bound=Command)

_CHAT: Final = {
    "hello": "hello",
    "thanks": "thanks",
    "bye": "bye",
    "help": "help_waiting",
    "talk": "chat",
}
"""Kind of chat to the reply that answers it."""


def carry_out(
    playbook: Playbook, session: Session, heard: Heard, commands: Sequence[Command]
) -> Move:
    """The move that a message makes.

    Args:
        playbook: The catalog and its tools.
        session: The state that the message meets.
        heard: The message.
        commands: What it says; at least one command.
    """
    replies = playbook.catalog.replies
    starts = _all(commands, Start)
    if _first(commands, Reset):
        anew = forget(playbook)
        return _begun(playbook, anew.session, heard, starts, ()) if starts else anew
    if _first(commands, HandOver):
        return _handed_over(playbook, session, heard)
    if _first(commands, Cancel):
        if session.plan is None and not starts:
            return plan_next(playbook, session, (replies.nothing_to_cancel,))
        if not starts:
            return drop(playbook, session, replies.cancelled)
        first, *later = starts
        starts = [_in_place(playbook, session, first), *later]
        session = replace(session, plan=None, waiting_for=None)
        return _begun(playbook, session, heard, starts, (replies.cancelled,))
    if session.plan is None:
        if not starts:
            return _at_rest(playbook, session, commands)
        return _begun(playbook, session, heard, starts, ())
    return _while_running(playbook, session, session.plan, heard, commands)


def _in_place(playbook: Playbook, session: Session, begins: Start) -> Start:
    """A request in the place of the one that runs, with what was said for that: "just a trial".

    Its day and time are asked for anew.
    """
    taken = playbook.intents[begins.intent].param_names if session.plan else ()
    said = {
        name: session.params[name]
        for name in taken
        if name in session.params
        and playbook.param(name).type not in (ParamType.DATE, ParamType.TIME, ParamType.DATETIME)
    }
    return replace(begins, values=tuple({**said, **dict(begins.values)}.items()))


def _first(commands: Sequence[Command], kind: type[C]) -> C | None:
    return next((command for command in commands if isinstance(command, kind)), None)


def _all(commands: Sequence[Command], kind: type[C]) -> list[C]:
    return [command for command in commands if isinstance(command, kind)]


def _at_rest(playbook: Playbook, session: Session, commands: Sequence[Command]) -> Move:
    """A word back, where nothing runs and nothing is asked for."""
    replies = playbook.catalog.replies
    if clarify := _first(commands, Clarify):
        return Move(replace(session, waiting_for=None), (_which(playbook, clarify.intents),))
    if chat := _first(commands, Chat):
        helps = chat.kind == "help"
        text = _help(playbook) if helps else str(getattr(replies, _CHAT[chat.kind]))
        return plan_next(playbook, session, (text,))
    asked = _first(commands, Ask)
    return plan_next(
        playbook, session, (asked.answer if asked and asked.answer else replies.unknown,)
    )


_LISTED: Final = 8
"""Requests that a user who asks for help is told of, at most."""


def _help(playbook: Playbook) -> str:
    """What the catalog can do."""
    replies, intents = playbook.catalog.replies, [*playbook.intents.values()]
    if "unknown" in replies.model_fields_set and "help" not in replies.model_fields_set:
        return replies.unknown
    more = ["and more"] if len(intents) > _LISTED else []
    requests = [*map(described, intents[:_LISTED]), *more]
    return replies.help.replace("{requests}", "; ".join(requests))


def _which(playbook: Playbook, intents: Sequence[str]) -> str:
    """The question which of several intents is meant."""
    descriptions = [described(playbook.intents[intent_id]) for intent_id in intents]
    return playbook.catalog.replies.which.replace("{choices}", ", or ".join(descriptions))


def _begun(
    playbook: Playbook,
    session: Session,
    heard: Heard,
    starts: Sequence[Start],
    say: tuple[str, ...],
) -> Move:
    """Begin requests: the first at once, the others wait for its end, each with its values."""
    mentioned: frozenset[str] = frozenset()
    for later in reversed(starts[1:]):
        move = start(playbook, session, heard, later)
        session, mentioned = suspend(move.session), mentioned | move.mentioned
    first = starts[0]
    move = start(playbook, session, heard, first)
    refused = [
        as_sentence(left.problem)
        for left in first.left
        if isinstance(left, Refuse) and left.param == move.session.waiting_for
    ]
    said = (*say, *move.say[:-1], *refused, *move.say[-1:])
    return replace(move, say=said, mentioned=mentioned | move.mentioned)


# -- while a request runs


def _while_running(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    heard: Heard,
    commands: Sequence[Command],
) -> Move:
    values = _values(commands)
    if values:
        session = _with_values(playbook, session, values)
    if any(fill.silent for fill in _all(commands, Fill)) and session.plan:
        session = replace(session, plan=PlanExecution(**{**session.plan, "unread": True}))
    if _first(commands, Confirm):
        return _confirmed(playbook, session, session.plan or plan)
    if _first(commands, Deny):
        return _denied(playbook, session, plan)
    before, session = session, with_choices(playbook, session, commands)
    if starts := _all(commands, Start):
        move = _begun(playbook, suspend(session), heard, starts, ())
        return replace(move, mentioned=move.mentioned | values.keys())
    replies = _words_back(playbook, session, commands)
    if replies or values or session is not before:
        if session.waiting_for != CONFIRMATION and _first(commands, Correct):
            replies = (
                playbook.catalog.replies.corrected,
                *replies,
            )  # a confirmation shows the new value by itself
        move = plan_next(playbook, session, replies)
        waiting = session.waiting_for
        if not replies and waiting != CONFIRMATION and waiting == move.session.waiting_for:
            move = replace(move, say=(*_noted(playbook, values), *move.say))
        return replace(move, mentioned=frozenset(values))
    return _without_value(playbook, session, plan, heard, commands)


def _noted(playbook: Playbook, values: Mapping[str, JsonValue]) -> tuple[str, ...]:
    """Says which values were taken, where another was asked for; none that is sensitive."""
    phrases = [
        value_in_words(label(playbook.param(name), value))
        for name, value in values.items()
        if name not in playbook.sensitive
    ]
    reply = playbook.catalog.replies.noted.replace("{values}", ", ".join(phrases))
    return (reply,) if phrases else ()


def _values(commands: Sequence[Command]) -> dict[str, JsonValue]:
    """What a message gives, by parameter; None for a value that it takes back without another."""
    return {
        command.param: command.value for command in commands if isinstance(command, Fill | Correct)
    }


def _with_values(playbook: Playbook, session: Session, values: Mapping[str, JsonValue]) -> Session:
    """The session with new values; what was said to be another is open again."""
    gone = {name for name, value in values.items() if value is None}
    kept = {name: value for name, value in session.params.items() if name not in gone}
    taken = take(
        playbook,
        replace(session, params=kept),
        {name: value for name, value in values.items() if name not in gone},
    )
    plan = _undenied(taken.plan)
    if plan and plan.get("unsure") and session.waiting_for in values:
        plan = PlanExecution(**{**plan, "unsure": False})  # who answers its question wants it
    return replace(taken, plan=plan)


def _undenied(plan: PlanExecution | None) -> PlanExecution | None:
    if plan is None or not plan.get("denied"):
        return plan
    return PlanExecution(**{**plan, "denied": False})


def _confirmed(playbook: Playbook, session: Session, plan: PlanExecution) -> Move:
    """Yes to just these calls; after a no, the question is asked once more."""
    if plan.get("denied"):
        return plan_next(playbook, replace(session, plan=_undenied(plan)))
    confirmed = PlanExecution(**{**plan, "confirmed": playbook.fingerprint(plan, session.params)})
    return plan_next(playbook, replace(session, plan=confirmed))


def _denied(playbook: Playbook, session: Session, plan: PlanExecution) -> Move:
    """No: ask what to change; to a value that was not certain, ask for another."""
    if session.waiting_for != CONFIRMATION:
        choices = {
            name: values
            for name, values in plan.get("choices", {}).items()
            if name != session.waiting_for
        }
        return plan_next(
            playbook, replace(session, plan=PlanExecution(**{**plan, "choices": choices}))
        )
    return plan_next(playbook, replace(session, plan=PlanExecution(**{**plan, "denied": True})))


def _words_back(
    playbook: Playbook, session: Session, commands: Sequence[Command]
) -> tuple[str, ...]:
    """The replies to a message that asks, greets, thanks or wants the question repeated.

    They cost no attempt.
    """
    replies = playbook.catalog.replies
    texts: list[str] = []
    for command in commands:
        match command:
            case Chat(kind):
                texts.append(str(getattr(replies, _CHAT[kind])))
            case Repeat():
                texts.append(replies.repeat)
            case Ask(_, answer) if answer:
                texts.append(answer)
            case Ask(None):
                texts.append(replies.no_answer)
            case Ask(str(about)):
                texts.append(helped(playbook.param(about)) or replies.no_answer)
            case _:
                pass
    return tuple(dict.fromkeys(texts))


def helped(param: Param) -> str:
    """What a parameter is, in a sentence or two."""
    if param.help:
        return param.help
    sentences = (
        [f"{param.description[:1].upper()}{param.description[1:].rstrip('.')}."]
        if param.description
        else []
    )
    if param.enum:
        sentences.append(f"You can choose {_either(param)}.")
    elif param.examples:
        sentences.append(f"For example: {' or '.join(param.examples[:2])}.")
    return " ".join(sentences)


def _either(param: Param) -> str:
    options = [str(label(param, value)) for value in param.enum]
    return " or ".join([", ".join(options[:-1]), options[-1]] if len(options) > 1 else options)


def _without_value(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    heard: Heard,
    commands: Sequence[Command],
) -> Move:
    """No value, and nothing else to do: the question again, in words that help."""
    replies = playbook.catalog.replies
    for command in commands:
        match command:
            case Decline(name):
                return _declined(playbook, session, plan, heard, name)
            case DontCare(name):
                return _any(playbook, session, plan, name)
            case Refuse(name, problem):
                plan = with_half(playbook, plan, command)
                return _wrong(playbook, session, plan, name, heard, (as_sentence(problem),))
            case _:
                pass
    waiting = session.waiting_for
    if waiting is None:
        return plan_next(playbook, session, (replies.unknown,))
    if _says_more(heard):
        plan = PlanExecution(**{**plan, "unread": True})
        session = replace(session, plan=plan)
    return _wrong(playbook, session, plan, waiting, heard, ())


def _says_more(heard: Heard) -> bool:
    """Whether a message that cannot be read may say more than the wrong value.

    One that the user has sent before says nothing new: they ask for the same once more.
    """
    words = heard.text.casefold().split()
    return len(words) >= _SAYS_MORE and all(
        words != message.text.casefold().split()
        for message in heard.history
        if isinstance(message, HumanMessage)
    )


_SAYS_MORE: Final = 3
"""Words from which an answer that cannot be read may say more than the wrong value."""


def as_sentence(problem: str) -> str:
    """What is wrong with a value, as a sentence."""
    text = re.sub(
        r"^(?:Value error|Assertion failed), ",
        "",
        re.sub(r"^(?:Input|Value) should", "It should", problem.strip()),
    ).rstrip(".")
    return f"{text[:1].upper()}{text[1:]}."


def _declined(
    playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard, name: str
) -> Move:
    """The user does not have it: what the parameter says, or what it is for."""
    param, takes_over = (
        playbook.param(name),
        playbook.intents.get(playbook.catalog.escalate_to or ""),
    )
    if param.on_declined == "skip" and playbook.can_skip(plan, name):
        return plan_next(playbook, replace(session, plan=_skipping(plan, name)))
    if param.on_declined == "cancel":
        return drop(playbook, session, playbook.catalog.replies.cancelled)
    if (
        param.on_declined == "escalate"
        and takes_over is not None
        and takes_over.id != plan["intent_id"]
    ):
        return start(playbook, suspend(session), heard, Start(takes_over.id))
    return plan_next(
        playbook,
        session,
        (param.help or _for_request(playbook, plan, playbook.catalog.replies.declined),),
    )


def _skipping(plan: PlanExecution, name: str) -> PlanExecution:
    return PlanExecution(**{**plan, "skipped": [*plan.get("skipped", ()), name]})


def _any(playbook: Playbook, session: Session, plan: PlanExecution, name: str) -> Move:
    """The move when any value will do: the default, none if none is needed, else the choices."""
    param = playbook.param(name)
    if param.default is not None and playbook.value_error(plan, name, param.default) is None:
        return plan_next(playbook, take(playbook, session, {name: param.default}))
    if playbook.can_skip(plan, name) and plan["steps"]:
        return plan_next(playbook, replace(session, plan=_skipping(plan, name)))
    offered = (f"You can choose {_either(param)}.",) if param.enum else ()
    return plan_next(
        playbook,
        session,
        (" ".join((_for_request(playbook, plan, playbook.catalog.replies.needed), *offered)),),
    )


def _for_request(playbook: Playbook, plan: PlanExecution, reply: str) -> str:
    return reply.replace("{request}", described(playbook.intent_of(plan)))


def _wrong(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    name: str,
    heard: Heard,
    say: tuple[str, ...],
) -> Move:
    """Ask again in other words; after too many wrong answers, act as the parameter says.

    It is asked for further, given up, or handed over.
    """
    param = playbook.param(name)
    count = plan["attempts"].get(name, 0) + 1
    if count < param.max_attempts or param.on_exhausted == "ask":
        counted = PlanExecution(**{**plan, "attempts": {**plan["attempts"], name: count}})
        return plan_next(playbook, replace(session, plan=counted), say)
    takes_over = playbook.intents.get(playbook.catalog.escalate_to or "")
    if (
        param.on_exhausted == "escalate"
        and takes_over is not None
        and takes_over.id != plan["intent_id"]
    ):
        return start(playbook, give_up(session), heard, Start(takes_over.id))
    return plan_next(playbook, give_up(session), (playbook.catalog.replies.exhausted,))


def _handed_over(playbook: Playbook, session: Session, heard: Heard) -> Move:
    """A person, where the catalog has one."""
    takes_over = playbook.intents.get(playbook.catalog.escalate_to or "")
    if takes_over is None or (
        session.plan is not None and session.plan["intent_id"] == takes_over.id
    ):
        return plan_next(playbook, session, (playbook.catalog.replies.no_person,))
    return start(playbook, suspend(session), heard, Start(takes_over.id))
