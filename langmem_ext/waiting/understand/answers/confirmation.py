"""A message that meets a confirmation: yes, no, another value, or something else.

Something else leaves the confirmation as it was. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from langmem_ext._internal.names import in_words
from langmem_ext.waiting.catalog.intent import TEMPLATE_FIELD
from langmem_ext.waiting.catalog.param import Extraction, ParamType
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.extract.english.vocabulary import own_stems, stem
from langmem_ext.waiting.extract.names.texts.said import NOTE_THAT
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.state import PlanExecution
from langmem_ext.waiting.understand.acts.assent import (
    begins_with_no,
    begins_with_yes,
    repeats_order,
    yes_or_no,
)
from langmem_ext.waiting.understand.acts.statements import (
    is_question,
    names,
    takes_back,
    wants_instead,
)
from langmem_ext.waiting.understand.acts.steering import is_cancel, refuses
from langmem_ext.waiting.understand.clauses import (
    Clause,
    clauses_of,
    without,
    without_numbers,
    words_without_values,
)
from langmem_ext.waiting.understand.commands import (
    Ask,
    Cancel,
    Confirm,
    Correct,
    Deny,
    Start,
    Unclear,
)
from langmem_ext.waiting.understand.intents.classifier import CERTAIN_WHILE_WAITING
from langmem_ext.waiting.understand.intents.similarity import about, units_of
from langmem_ext.waiting.understand.message import Heard
from langmem_ext.waiting.understand.requests import (
    OPEN_TYPES,
    Commands,
    Understanding,
    aside_of,
    classified,
    given_anew,
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
    if changed and yes_or_no(heard.text, (), "") is not None:
        values, changed = {}, {}  # "yes that's it" names no size S
    if not changed and (decided := _decided(plan, heard.text, values, asked)):
        return decided
    anew = given_anew(playbook, session, plan, heard, shown=asked)
    corrections: Commands = [
        Correct(name, value, why="gives another value") for name, value in anew.values.items()
    ]
    if corrections and anew.certain:
        return corrections
    if aside := aside_of(heard.text, clauses):
        return [aside]
    yes = None if changed else _yes_first(clauses, asked)
    if yes:
        rest = replace(heard, text=without(heard.text, [yes]))
        at_rest = replace(session, waiting_for=None)
        after = yield from classified(playbook, at_rest, plan, rest, None)
        sure = after.confidence >= CERTAIN_WHILE_WAITING
        starts = other_requests(playbook, plan, rest, after) if sure else []
        if starts := starts or _for_suspended(playbook, session, rest):
            return [Confirm(why="says yes"), *starts]
    ends: Commands = [Cancel(why="says to stop")] if not changed and _ends(clauses, asked) else []
    asked_for = yield from classified(playbook, session, plan, heard, None)
    if starts := other_requests(playbook, plan, heard, asked_for):
        instead: Commands = [Cancel(why="wants something else instead")]
        return [*instead, *starts] if wants_instead(heard.text) else starts
    return (
        ends
        or corrections
        or _note(playbook, session, plan, heard, values)
        or _neither_yes_nor_no(playbook, session, plan, heard, values, changed, unsure=anew.unsure)
    )


_INSTRUCTS: Final = re.compile(
    r"^\W*(?:(?:oh|and|also|but|ah|one more thing|ps|yes|ok(?:ay)?)\b\W*)*"
    r"(?:(?:can|could|would|will)\s+(?:you|u)\s+(?:please\s+)?|(?:please|pls)\s+)"
    r"(?:(?:note|add|mention|put(?: down)?|write)\s+(?:down\s+)?(?:that\s+)?"
    r"|(?=(?:tell|ask|let|remind|warn|make sure|have)\b))",
    re.IGNORECASE,
)
"""How a message begins that says what somebody is to know or do besides."""


def _note(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    heard: Heard,
    values: Mapping[str, Extraction],
) -> Commands:
    """What a message wants noted besides, for the optional text that is open for it."""
    texts = [
        name
        for name in playbook.uses(plan)
        if name not in session.params and playbook.param(name).type is ParamType.TEXT
    ]
    read = {name: values[name] for name in texts if name in values}
    led = _INSTRUCTS.match(heard.text)
    if led and not read and len(texts) == 1:
        param, said = playbook.param(texts[0]), heard.text[led.end() :]
        read = {param.name: extract(param, Reply(said, prompt=param.prompt or "?", now=heard.now))}
    elif not (led or NOTE_THAT.search(heard.text)):
        return []
    return [
        Correct(name, extraction.value, why="wants it noted")
        for name, extraction in read.items()
        if extraction.status == "filled"
        and playbook.value_error(plan, name, extraction.value) is None
    ]


def _ends(clauses: Sequence[Clause], asked: str) -> bool:
    """Whether a part of a message ends the request: "he is ill. forget it, sorry"."""
    return any(
        clause.act == "cancel"
        and not is_question(clause.text)
        and yes_or_no(clause.text, (), asked) is None
        for clause in clauses
    )


def _yes_first(clauses: Sequence[Clause], asked: str) -> Clause | None:
    """The first sentence of several, where it only says yes: "yes. and can I order rolls?"."""
    if len(clauses) < 2:
        return None
    first, second = clauses[:2]
    ends = _ENDED.search(first.text) or _ADDS.match(second.text)
    return first if ends and yes_or_no(first.text, (), asked) else None


_ENDED: Final = re.compile(r"[.!…\n]\s*$")
_ADDS: Final = re.compile(
    r"\W*(?:oh|also|btw|by the way|ps|(?:and|n) (?:also|can|could|would|will|please|i|we))\b",
    re.IGNORECASE,
)


def _for_suspended(playbook: Playbook, session: Session, rest: Heard) -> Commands:
    """What is said beside a yes for the request that comes next: "yes, and my email is a@b.co"."""
    waiting = [entry for entry in session.suspended if not entry["plan"].get("given_up")]
    if not waiting:
        return []
    plan, params = waiting[-1]["plan"], waiting[-1]["params"]
    left = [playbook.param(name) for name in playbook.uses(plan) if name not in params]
    reading = Reading(rest.text, rest.now, filled=params, about=about(playbook.intent_of(plan)))
    values = values_of(
        {
            name: extraction
            for name, extraction in read_values(left, reading).items()
            if playbook.param(name).type not in OPEN_TYPES and extraction.confidence > SURE
        }
    )
    if not values:
        return []
    return [Start(plan["intent_id"], tuple(values.items()), why="belongs to the next request")]


def _decided(
    plan: PlanExecution, text: str, values: Mapping[str, Extraction], asked: str
) -> Commands:
    """Yes, no or an end; nothing for any other message."""
    decided = yes_or_no(text, spans_of(values), asked)
    if decided is None:
        return [Cancel(why="says to stop")] if is_cancel(text) and not is_question(text) else []
    return [Confirm(why="says yes")] if decided else _denied(plan, text, values)


def _neither_yes_nor_no(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    heard: Heard,
    values: Mapping[str, Extraction],
    changed: Mapping[str, Extraction],
    *,
    unsure: bool,
) -> Commands:
    """What a message does to a confirmation that it does not answer in so many words."""
    text = heard.text
    if is_question(text):
        return [Ask(why="asks something")]
    if unwanted := _taken_back(playbook, session, plan, text, values):
        return [Correct(name, None, why="wants another value") for name in unwanted]
    if not changed and begins_with_no(text):
        return _denied(plan, text, values)
    question = TEMPLATE_FIELD.sub(" ", playbook.confirm_question(plan) or "")
    if not changed and repeats_order(words_without_values(text, spans_of(values)), question):
        named = [name for name in session.params if name in playbook.uses(plan)]
        ids = [name for name in named if playbook.param(name).type is ParamType.IDENTIFIER]
        if not ids or not values.keys().isdisjoint(ids) or len(units_of(text)) < 2:
            return [Confirm(why="says what is to be done")]
    if not changed and begins_with_yes(text if unsure else without_numbers(text)):
        return [Confirm(why="says yes first")]
    if unsure and not plan.get("denied"):
        return [Deny(why="may want another value")]
    return [Unclear(why="neither yes nor no")]


_NOT: Final = re.compile(r"\b(?:not|never)\b|n['’]t\b", re.IGNORECASE)


def _denied(plan: PlanExecution, text: str, values: Mapping[str, Extraction]) -> Commands:
    """No: something is to be changed; a second no, or one that is final, drops the request.

    Who says no and then just what is shown, means that.
    """
    if values and not _NOT.search(text):
        return [
            Correct(name, extraction.value, why="says what is shown")
            for name, extraction in values.items()
        ]
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
    """The parameter to change without a new value: "the time", "another day".

    Of two it is the one that more of its own words name: "the end date is wrong". After a no it is
    enough to name one, but not with the value that it has, and not in saying the request once more:
    "cancel my order".
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
    said = {stem(word) for word in re.findall(r"[^\W\d_]+", text.lower())}
    unwanted.sort(key=lambda name: -len(own_stems(playbook.param(name)) & said))
    return unwanted[:1]


def _asked(playbook: Playbook, plan: PlanExecution) -> str:
    """The words of the plan's confirmation besides values: its own and those of the request."""
    intent = playbook.intent_of(plan)
    asked = TEMPLATE_FIELD.sub(" ", playbook.confirm_question(plan) or "")
    request = re.sub(
        r"\bor\b", " ", intent.description, flags=re.IGNORECASE
    )  # a choice only where the question leaves one
    return f"{asked} {in_words(intent.id)} {request}"
