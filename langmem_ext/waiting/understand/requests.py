"""What several readers of messages look for: other requests, corrections and asides.

Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from langmem_ext.waiting.catalog.param import Extraction, ParamType, doubtful_below
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.extract import find
from langmem_ext.waiting.extract.english.tokens import blanked
from langmem_ext.waiting.extract.names.person import is_person
from langmem_ext.waiting.policy.asking import question
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.state import PlanExecution
from langmem_ext.waiting.understand.acts.hedges import is_hedged
from langmem_ext.waiting.understand.acts.statements import WISHES
from langmem_ext.waiting.understand.acts.steering import wants_person, wants_repeat
from langmem_ext.waiting.understand.clauses import (
    Clause,
    clauses_of,
    without,
    words_without_values,
)
from langmem_ext.waiting.understand.commands import (
    Chat,
    Clarify,
    Command,
    HandOver,
    Refuse,
    Repeat,
    Start,
)
from langmem_ext.waiting.understand.corrections.other_values import other_values
from langmem_ext.waiting.understand.corrections.said import Anew, Said
from langmem_ext.waiting.understand.intents.alike import one_by_one
from langmem_ext.waiting.understand.intents.classifier import (
    CERTAIN,
    DIGRESSES,
    Classification,
    ClassifyRequest,
    wishes,
)
from langmem_ext.waiting.understand.intents.similarity import about
from langmem_ext.waiting.understand.message import Heard
from langmem_ext.waiting.understand.remainder import likely_values
from langmem_ext.waiting.understand.values import (
    SURE,
    Reading,
    left_open,
    read_values,
    spans_of,
    sure_values,
)

Commands: TypeAlias = list[Command]


Understanding: TypeAlias = Generator[ClassifyRequest, Classification, Commands]


CHATTING: Final = ("hello", "thanks", "bye", "help", "talk")


OPEN_TYPES: Final = frozenset(
    {ParamType.TEXT, ParamType.NAME, ParamType.PERSON, ParamType.PLACE, ParamType.ADDRESS}
)
"""Types of which nearly any words may be a value."""


def chat_of(clauses: Sequence[Clause]) -> Chat | None:
    """The chat of a message that does nothing else."""
    if not clauses or any(clause.act not in CHATTING for clause in clauses):
        return None
    acts = [clause.act for clause in clauses]
    kind = next((act for act in ("help", "thanks", "bye", "hello") if act in acts), "talk")
    return Chat(kind, why="says nothing else")  # type: ignore[arg-type]  # one of its words


def request_of(
    playbook: Playbook,
    session: Session,
    heard: Heard,
    *,
    text: str | None = None,
    values: Sequence[tuple[int, int]] = (),
) -> ClassifyRequest:
    """What a classifier is asked about the message."""
    plan, waiting = session.plan, session.waiting_for
    prompt = question(playbook, plan, session.params, waiting).prompt if plan and waiting else ""
    params = playbook.catalog.params
    own = playbook.uses(plan) if plan else ()
    telling = {
        name: param
        for name, param in params.items()
        if param.type is not ParamType.BOOLEAN and name not in own
    }
    read = {name: find(param, heard.text, now=heard.now) for name, param in telling.items()}
    spans_by_param = {
        name: value.span
        for name, value in read.items()
        if value.span
        and (value.status == "filled" or value.choices)
        and not (params[name].enum and value.confidence < doubtful_below(params[name]))
    }
    spans = [
        span
        for name, span in spans_by_param.items()
        if params[name].type not in (ParamType.ENUM, ParamType.INTEGER) or name in playbook.local
    ]
    return ClassifyRequest(
        heard.text if text is None else text,
        playbook.catalog,
        history=heard.history,
        params=session.params,
        waiting_for=waiting,
        prompt=prompt,
        now=heard.now,
        values=(*spans, *values),
        param_spans=spans_by_param,
        running=plan["intent_id"] if plan else None,
        local=playbook.local,
        summary=heard.summary,
        known=heard.known,
    )


def given_anew(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    heard: Heard,
    *,
    taken: Sequence[tuple[int, int]] = (),
    answered: bool = False,
    shown: str | None = None,
) -> Anew:
    """The other values that the message gives of what is known already, as far as they are allowed.

    Args:
        playbook: The catalog and its tools.
        session: The state that the message meets.
        plan: The request that runs.
        heard: The message.
        taken: Where it gives values of other parameters.
        answered: Whether it says something to what is asked.
        shown: The words of the confirmation that it meets.
    """
    uses = playbook.uses(plan)
    said = Said(
        heard.text,
        {name: session.params[name] for name in uses if name in session.params},
        heard.now,
        asked=playbook.catalog.params.get(session.waiting_for or ""),
        shown=shown,
        taken=taken,
        answered=answered,
        unwanted=bool(plan.get("denied")),
        about=about(playbook.intent_of(plan)),
    )
    anew = other_values([playbook.param(name) for name in uses], said)
    allowed = {
        name: value
        for name, value in anew.values.items()
        if playbook.value_error(plan, name, value) is None
    }
    return replace(anew, values=allowed)


def classified(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    heard: Heard,
    answer: Extraction | None,
) -> Generator[ClassifyRequest, Classification, Classification]:
    """What the message asks for, if it says anything besides values.

    Patterns are tried on the whole message: a value may be what they need ("where is O-2?"). A
    possible value of the parameter that is asked for is an answer, though, whatever pattern holds
    its words ("my order was late"). What is said besides a certain value of the request that runs
    asks for nothing, unless it wishes: "we'd bring it back on the 25th". A number names what any
    request may be about: "track O-2".
    """
    waiting, text = session.waiting_for, heard.text
    own = set(playbook.uses(plan))
    telling = [
        param
        for param in playbook.catalog.params.values()
        if param.name in own or param.type is not ParamType.ENUM
    ]
    read = read_values(telling, Reading(heard.text, heard.now))
    spans = spans_of(read)
    if answer and answer.span and answer.confidence > SURE:
        spans.append(answer.span)
        if waiting and playbook.param(waiting).enum:
            text = blanked(text, answer.span)
    certain = (
        answer is not None
        and answer.confidence > SURE
        and waiting is not None
        and (
            playbook.param(waiting).type not in OPEN_TYPES
            or _is_full_name(playbook, answer, waiting)
        )
    )
    values = {name: read[name] for name in playbook.missing(plan, session.params) if name in read}
    if waiting is not None and answer is not None and certain:
        values[waiting] = answer
    given = [
        value.span[0]
        for name, value in values.items()
        if value.span
        and value.confidence > SURE
        and playbook.param(name).type not in OPEN_TYPES | _ABOUT_ANY
    ]
    answering = [
        clause
        for clause in clauses_of(heard.text)
        if any(clause.start <= start < clause.end for start in given)
        and not wishes(clause)
        and not DIGRESSES.search(clause.text)
    ]
    text = without(text, answering)
    if not re.search(r"[^\W\d_]", words_without_values(text, spans)):
        return Classification()
    classified = yield replace(
        request_of(playbook, session, heard, text=text, values=spans), answered=certain
    )
    return classified


def _is_full_name(playbook: Playbook, answer: Extraction, waiting: str) -> bool:
    """Whether an answer names the person who was asked for."""
    return (
        is_person(playbook.param(waiting))
        and answer.confidence >= _NAMED
        and answer.raw.count(" ") > 0
        and answer.raw != answer.raw.lower()
    )


_NAMED: Final = 0.75
"""Confidence in a name that is written as one."""
_ABOUT_ANY: Final = frozenset({ParamType.IDENTIFIER, ParamType.BOOLEAN})
"""Types whose values do not tell which request a message is about."""


def every_request(
    playbook: Playbook, heard: Heard, classification: Classification
) -> list[Classification]:
    """Each request that a message makes, with the part of it that is its own; as a rule one."""
    also = [
        replace(other, source=classification.source, confidence=classification.confidence)
        for other in classification.also
        if other.intent_id in playbook.intents
    ]
    return [
        each for kind in (classification, *also) for each in _of_one_kind(playbook, heard, kind)
    ]


def _of_one_kind(
    playbook: Playbook, heard: Heard, classification: Classification
) -> list[Classification]:
    """Each of the requests of one kind that a message makes."""
    intent = playbook.intents[str(classification.intent_id)]
    params = [playbook.catalog.params[name] for name in intent.param_names]
    reading = Reading(classification.part or heard.text, heard.now, about=about(intent))
    texts = one_by_one(params, reading) if classification.source == "rules" else []
    if len(texts) < 2:
        return [classification]
    return [
        replace(classification, params=sure_values(params, replace(reading, text=text)), part=text)
        for text in texts
    ]


def begun(playbook: Playbook, heard: Heard, requests: Sequence[Classification]) -> Commands:
    """The beginning of requests, each with the values of its own part of the message."""
    return [
        with_open(
            playbook,
            replace(heard, text=request.part or heard.text),
            Start(
                str(request.intent_id),
                tuple(request.params.items()),
                unsure=request.source == "rules"
                and (request.confidence < CERTAIN or is_hedged(request.part or heard.text)),
                another=[one.intent_id for one in requests].count(request.intent_id) > 1,
                confidence=request.confidence,
                by=request.source,
                why=request.reason,
            ),
        )
        for request in requests
    ]


def _meant(playbook: Playbook, requests: Sequence[Classification]) -> list[Classification]:
    """Of several requests, while another runs, those that wish or have values, and what is asked.

    None where none does either: nothing but words that are like it speaks for one.
    """
    plain = [request for request in requests if request.params or WISHES.search(request.part)]
    return [
        request
        for request in requests
        if plain and (request in plain or not playbook.intents[str(request.intent_id)].tool)
    ]


def other_requests(
    playbook: Playbook, plan: PlanExecution, heard: Heard, asked_for: Classification
) -> Commands:
    """The beginning of other requests, if that is what the message asks for."""
    intent = playbook.intents.get(asked_for.intent_id or "")
    if intent is None or intent.id == plan["intent_id"]:
        return []
    several = every_request(playbook, heard, asked_for)
    if len(several) > 1 and (meant := _meant(playbook, several)):
        return begun(playbook, heard, meant)
    params = [playbook.catalog.params[name] for name in intent.param_names]
    values = {
        **sure_values(params, Reading(heard.text, heard.now, about=about(intent))),
        **asked_for.params,
    }
    begins = Start(
        intent.id,
        tuple(values.items()),
        unsure=asked_for.source == "rules" and is_hedged(_around(heard.text, values.values())),
        confidence=asked_for.confidence,
        by=asked_for.source,
        why=asked_for.reason,
    )
    return [with_open(playbook, heard, begins)]


def _around(text: str, values: Iterable[object]) -> str:
    """The parts of a message in which values stand as they are; all of it where none does."""
    said = [str(value).lower() for value in values]
    parts = [
        part for part in re.split(r"[,.;]\s+", text) if any(one in part.lower() for one in said)
    ]
    return ", ".join(parts) or text


def with_open(playbook: Playbook, heard: Heard, begins: Start) -> Start:
    """The start of a request, with what the message leaves open of it: "at 7", a day in the past.

    Args:
        playbook: The catalog and its tools.
        heard: The message, as far as it is about this request.
        begins: The request, with the values that it certainly has.
    """
    intent, known = playbook.intents[begins.intent], dict(begins.values)
    every = [playbook.catalog.params[name] for name in intent.param_names]
    reading = Reading(heard.text, heard.now, about=about(intent))
    read = read_values(every, reading)
    likely = likely_values(every, reading, read, intent.required)
    taken = [
        value.span
        for name, value in read.items()
        if name in known and value.span and value.span[0] < value.span[1]
    ]
    left = {
        name: claim
        for name, claim in left_open(every, reading, read).items()
        if claim.problem or len(claim.choices) != 1 or not _within(claim.span, taken)
    }
    return replace(
        begins,
        left=tuple(
            Refuse(name, claim.problem, claim.half, why=claim.reason)
            if claim.problem
            else Clarify(param=name, choices=claim.choices, why=_WHY_OPEN[len(claim.choices) > 1])
            for name, claim in {**likely, **left}.items()
            if name not in known and (claim.problem or name not in playbook.sensitive)
        ),
    )


_WHY_OPEN: Final = ("is likely", "may be two values")


def _within(span: tuple[int, int] | None, taken: Sequence[tuple[int, int]]) -> bool:
    """Whether words are a part of others: what is another's value is not to be confirmed."""
    return span is not None and any(start <= span[0] and span[1] <= end for start, end in taken)


def aside_of(text: str, clauses: Sequence[Clause]) -> Command | None:
    """The command for a message that wants the question again, a person, or a word back."""
    if wants_repeat(text):
        return Repeat(why="asks for the question")
    if wants_person(text):
        return HandOver(why="asks for a person")
    return chat_of(clauses)
