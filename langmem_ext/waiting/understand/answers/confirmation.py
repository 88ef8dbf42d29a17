"""A message that meets a confirmation: yes, no, another value, or something else.

Something else leaves the confirmation as it was. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from pydantic import JsonValue

from langmem_ext._internal.names import in_words
from langmem_ext.waiting.catalog.intent import TEMPLATE_FIELD
from langmem_ext.waiting.catalog.param import Extraction, ParamType
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.extract.english.attitude import NO
from langmem_ext.waiting.extract.english.vocabulary import own_stems
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.state import PlanExecution
from langmem_ext.waiting.understand.acts import (
    begins_with_no,
    begins_with_yes,
    is_cancel,
    is_meant,
    is_question,
    is_value_alone,
    names,
    refuses,
    repeats_order,
    takes_back,
    words_without_values,
    yes_or_no,
)
from langmem_ext.waiting.understand.clauses import Clause, clauses_of, without
from langmem_ext.waiting.understand.commands import (
    Ask,
    Cancel,
    Confirm,
    Correct,
    Deny,
    Unclear,
)
from langmem_ext.waiting.understand.corrections import without_denied
from langmem_ext.waiting.understand.intents.similarity import about, units_of
from langmem_ext.waiting.understand.message import Heard
from langmem_ext.waiting.understand.requests import (
    Commands,
    Understanding,
    aside_of,
    classified,
    corrected,
    other_requests,
)
from langmem_ext.waiting.understand.values import SURE, Reading, read_values, spans_of, values_of


def read_at_confirmation(
    playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard
) -> Understanding:
    """Yes to just these calls, no to them, or another value, which is asked about anew.

    Nothing else answers. What asks for something else is served, and then the same is asked with
    the same values.
    """
    clauses = clauses_of(heard.text)
    without_questions = replace(
        heard, text=without(heard.text, [clause for clause in clauses if clause.act == "question"])
    )
    reading = Reading(
        without_questions.text,
        heard.now,
        filled=session.params,
        about=about(playbook.intent_of(plan)),
    )
    values = read_values([playbook.param(name) for name in playbook.uses(plan)], reading)
    changed = {
        name: extraction
        for name, extraction in values.items()
        if session.params.get(name) != extraction.value
    }
    asked = _asked(playbook, plan)
    if not changed and (decided := _decided(plan, heard.text, spans_of(values), asked)):
        return decided
    new = corrected(playbook, session, plan, heard) or _alone(
        playbook, heard.text, values, changed, asked
    )
    new = new or _bare_instead(playbook, session, plan, heard)
    if playbook.accepts(plan, new):
        return [Correct(name, value, why="gives another value") for name, value in new.items()]
    if aside := aside_of(heard.text, clauses):
        return [aside]
    if yes := _yes_first(clauses, asked):
        rest = replace(heard, text=without(heard.text, [yes]))
        after = yield from classified(playbook, session, plan, rest, None)
        if starts := other_requests(playbook, plan, rest, after):
            return [Confirm(why="says yes"), *starts]
    asked_for = yield from classified(playbook, session, plan, heard, None)
    if starts := other_requests(playbook, plan, heard, asked_for):
        return (
            [Cancel(why="wants something else instead"), *starts]
            if _wants_instead(heard.text)
            else starts
        )
    if (
        new := _other_values(playbook, session, plan, without_questions.text, changed)
    ) and playbook.accepts(plan, new):
        return [
            Correct(name, value, why="says another value, and is asked about it")
            for name, value in new.items()
        ]
    return _neither_yes_nor_no(playbook, session, plan, heard.text, values, changed)


def _wants_instead(text: str) -> bool:
    """Whether a message says no to what is asked, and wishes for another thing in its place."""
    refused = re.search(r"(?:^|[.,;!?–—-]\s*)(?:no|nope|nah)\b", text.strip(), re.IGNORECASE)
    return (
        refused is not None
        and re.search(r"\b(?:instead|rather)\b", text, re.IGNORECASE) is not None
    )


_PLAIN: Final = frozenset(
    {
        ParamType.DATE,
        ParamType.TIME,
        ParamType.INTEGER,
        ParamType.NUMBER,
        ParamType.MONEY,
        ParamType.ENUM,
        ParamType.EMAIL,
        ParamType.PHONE,
    }
)
"""Types of which nobody speaks by the way, as of somebody else's order or name."""


def _other_values(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    text: str,
    changed: Mapping[str, Extraction],
) -> dict[str, JsonValue]:
    """The other certain values of a message; they are shown and asked about anew.

    Once the user has said no, every such value counts; before, only one that is new, or one of a
    plain type that is meant. After a no in this message, an address counts as plain.
    """
    if is_question(text):
        return {}
    sure = {
        name: extraction for name, extraction in changed.items() if extraction.confidence > SURE
    }
    if plan.get("denied"):
        return values_of(sure)
    plain = _PLAIN | {ParamType.ADDRESS} if NO.match(text) else _PLAIN
    return {
        name: extraction.value
        for name, extraction in sure.items()
        if name not in session.params
        or (
            playbook.param(name).type in plain
            and extraction.span
            and is_meant(text, extraction.span)
        )
    }


def _yes_first(clauses: Sequence[Clause], asked: str) -> Clause | None:
    """The first sentence of several, where it only says yes: "yes. and can I order rolls?"."""
    first = clauses[0] if len(clauses) > 1 else None
    return (
        first
        if first and re.search(r"[.!]\s*$", first.text) and yes_or_no(first.text, (), asked)
        else None
    )


_BARE_INSTEAD: Final = re.compile(
    r"(?:^|[,.;–—-]\s)\W*(?:(?:no|nope|nah|sorry|oh|hm+|um+|wait|actually|not quite|make it|make"
    r" that|better|rather|i mean|i meant"
    r"|say|it['’]?s|its|should be)\b\W*)+"
    r"(?P<value>[^\s,.;!?]+(?:\s+[^\s,.;!?]+){0,2})\W*$",
    re.IGNORECASE,
)
_BARE_TYPES: Final = frozenset(
    {
        ParamType.INTEGER,
        ParamType.NUMBER,
        ParamType.MONEY,
        ParamType.TIME,
        ParamType.DATE,
        ParamType.ENUM,
    }
)


def _bare_instead(
    playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard
) -> dict[str, JsonValue]:
    """A bare value in the place of the known values that it can replace: "no sorry, 85"."""
    match = _BARE_INSTEAD.search(heard.text)
    if not match or not re.search(r"\d|\w{3}", match["value"]):
        return {}
    read: dict[str, JsonValue] = {}
    for name in playbook.uses(plan):
        param = playbook.param(name)
        if name in session.params and param.type in _BARE_TYPES:
            extraction = extract(
                param, Reply(match["value"], prompt=param.prompt or "?", now=heard.now)
            )
            if extraction.status == "filled" or (
                extraction.choices and re.search(r"\d", match["value"])
            ):
                # "five" is a number before it is an hour; "5" may be both.
                read[name] = extraction.value
    return {
        name: value
        for name, value in read.items()
        if value is not None and len(read) == 1 and value != session.params[name]
    }


def _decided(
    plan: PlanExecution, text: str, spans: Sequence[tuple[int, int]], asked: str
) -> Commands:
    """Yes, no or an end; nothing for any other message."""
    decided = yes_or_no(text, spans, asked)
    if decided is None:
        return [Cancel(why="says to stop")] if is_cancel(text) and not is_question(text) else []
    return [Confirm(why="says yes")] if decided else _denied(plan, text)


def _alone(
    playbook: Playbook,
    text: str,
    values: Mapping[str, Extraction],
    changed: Mapping[str, Extraction],
    asked: str,
) -> dict[str, JsonValue]:
    """The other values of a message that says nothing but these."""
    words = words_without_values(without_denied(text)[0], spans_of(values))
    return (
        values_of(changed)
        if is_value_alone(words, asked, [playbook.param(name) for name in changed])
        else {}
    )


def _neither_yes_nor_no(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    text: str,
    values: Mapping[str, Extraction],
    changed: Mapping[str, Extraction],
) -> Commands:
    """What a message does to a confirmation that it does not answer in so many words."""
    if is_question(text):
        return [Ask(why="asks something")]
    if unwanted := _taken_back(playbook, session, plan, text, values):
        return [Correct(name, None, why="wants another value") for name in unwanted]
    if not changed and begins_with_no(text):
        return _denied(plan, text)
    question = TEMPLATE_FIELD.sub(" ", playbook.confirm_question(plan) or "")
    if not changed and repeats_order(words_without_values(text, spans_of(values)), question):
        named = [name for name in session.params if name in playbook.uses(plan)]
        ids = [name for name in named if playbook.param(name).type is ParamType.IDENTIFIER]
        if not ids or not values.keys().isdisjoint(ids) or len(units_of(text)) < 2:
            return [Confirm(why="says what is to be done")]
    if not changed and begins_with_yes(text):
        return [Confirm(why="says yes first")]
    return [Unclear(why="neither yes nor no")]


def _denied(plan: PlanExecution, text: str) -> Commands:
    """No: something is to be changed; a second no, or one that is final, drops the request."""
    return (
        [Cancel(why="says no for good")]
        if plan.get("denied") or refuses(text)
        else [Deny(why="says no")]
    )


def _taken_back(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    text: str,
    values: Mapping[str, Extraction],
) -> list[str]:
    """The parameters to change without a new value: "the time", "another day".

    After a no it is enough to name one, but not with the value that it has, and not in saying the
    request once more: "cancel my order".
    """
    unwanted = [
        name
        for name in playbook.uses(plan)
        if name in session.params and names(text, playbook.param(name))
    ]
    if not takes_back(text):
        request, message_stems = (
            {unit.stem for unit in units_of(words)}
            for words in (in_words(playbook.intent_of(plan).id), text)
        )
        again = {
            name for name in unwanted if message_stems & (request - own_stems(playbook.param(name)))
        }
        unwanted = [
            name
            for name in unwanted
            if plan.get("denied") and name not in values and name not in again
        ]
    return unwanted[:1]


def _asked(playbook: Playbook, plan: PlanExecution) -> str:
    """The words of the plan's confirmation besides values: its own and those of the request."""
    intent = playbook.intent_of(plan)
    asked = TEMPLATE_FIELD.sub(" ", playbook.confirm_question(plan) or "")
    request = re.sub(
        r"\bor\b", " ", intent.description, flags=re.IGNORECASE
    )  # a choice only where the question leaves one
    return f"{asked} {in_words(intent.id)} {request}"
