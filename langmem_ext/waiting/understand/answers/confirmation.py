"""A message that meets a confirmation: yes, no, another value, or something else.

Something else leaves the confirmation as it was. Pure functions.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from langmem_ext._internal.names import in_words
from langmem_ext.waiting.catalog.intent import TEMPLATE_FIELD
from langmem_ext.waiting.catalog.param import Extraction, ParamType
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.extract.choices.enum import named
from langmem_ext.waiting.extract.english.vocabulary import own_stems, stem
from langmem_ext.waiting.extract.names.texts.said import NOTE_THAT
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.policy.value_text import in_text
from langmem_ext.waiting.state import PlanExecution
from langmem_ext.waiting.understand.acts.assent import begins_with_no, yes_or_no
from langmem_ext.waiting.understand.acts.statements import (
    is_question,
    names,
    takes_back,
    wants_instead,
)
from langmem_ext.waiting.understand.acts.steering import is_cancel, refuses
from langmem_ext.waiting.understand.clauses import Clause, clauses_of, without
from langmem_ext.waiting.understand.commands import (
    Ask,
    Cancel,
    Chat,
    Confirm,
    Correct,
    Deny,
    Unclear,
)
from langmem_ext.waiting.understand.intents.similarity import about, units_of
from langmem_ext.waiting.understand.message import Heard
from langmem_ext.waiting.understand.requests import (
    Commands,
    Understanding,
    aside_of,
    classified,
    given_anew,
    other_requests,
)
from langmem_ext.waiting.understand.values import Reading, read_values


def read_at_confirmation(
    playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard, whole: str
) -> Understanding:
    """Yes to just these calls, no to them, or another value, which is asked about anew.

    Nothing else answers: a yes with more words is none. What asks for something else is served,
    and then the same is asked with the same values.

    Args:
        playbook: The catalog and its tools.
        session: The state that the message meets.
        plan: The request that runs.
        heard: The message, as far as it is read.
        whole: All that it says.
    """
    decided = yes_or_no(whole, _shown(playbook, session, plan))
    if decided is False:
        return _denied(plan, whole)
    if decided and not _names_another(playbook, session, plan, whole):
        return [Confirm(why="says yes")]
    asked = _asked(playbook, plan)
    if _ends(heard.text, asked):
        return [Cancel(why="says to stop")]
    return (yield from _taken_apart(playbook, session, plan, heard, asked))


def _taken_apart(
    playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard, asked: str
) -> Understanding:
    """Other values, other requests, the end of this one, or neither yes nor no."""
    clauses = clauses_of(heard.text)
    anew = given_anew(playbook, session, plan, heard, shown=asked)
    corrections: Commands = [
        Correct(name, value, why="gives another value") for name, value in anew.values.items()
    ]
    if corrections and anew.certain:
        return corrections
    aside = aside_of(heard.text, clauses)
    if aside and not (isinstance(aside, Chat) and begins_with_no(heard.text)):
        return [aside]
    asked_for = yield from classified(playbook, session, plan, heard, None)
    if starts := other_requests(playbook, plan, heard, asked_for):
        instead: Commands = [Cancel(why="wants something else instead")]
        return [*instead, *starts] if wants_instead(heard.text) else starts
    values = _values(playbook, session, plan, heard, clauses)
    changes = any(session.params.get(name) != value.value for name, value in values.items())
    if not changes and any(_ends(clause.text, asked) for clause in clauses):
        return [Cancel(why="says to stop")]
    return (
        corrections
        or _note(playbook, session, plan, heard, values)
        or _neither_yes_nor_no(playbook, session, plan, heard.text, values, unsure=anew.unsure)
    )


def _values(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    heard: Heard,
    clauses: Sequence[Clause],
) -> dict[str, Extraction]:
    """The values that the message gives, but for those in its questions."""
    text = without(heard.text, [clause for clause in clauses if clause.act == "question"])
    running = about(playbook.intent_of(plan))
    reading = Reading(text, heard.now, filled=session.params, about=running)
    return read_values([playbook.param(name) for name in playbook.uses(plan)], reading)


def _names_another(playbook: Playbook, session: Session, plan: PlanExecution, text: str) -> bool:
    """Whether a yes is another value than the one that is shown, too: "super" of two fares."""
    params = [playbook.param(name) for name in playbook.uses(plan)]
    return any(
        (value := named(param, text)) is not None and value != str(session.params.get(param.name))
        for param in params
        if param.type is not ParamType.BOOLEAN
    )


def _shown(playbook: Playbook, session: Session, plan: PlanExecution) -> list[str]:
    """The values that the confirmation shows, as it shows them."""
    shown = playbook.shown(session.params)
    names = [name for name in playbook.uses(plan) if name in shown]
    return [in_text(shown[name]) for name in names if name not in playbook.sensitive]


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


def _ends(text: str, asked: str) -> bool:
    """Whether a message or a part of it ends the request: "he is ill. forget it, sorry".

    Words of the question do not: "cancel it" may be a yes to "shall I cancel it?".
    """
    said, question = ({unit.stem for unit in units_of(words)} for words in (text, asked))
    return is_cancel(text) and not is_question(text) and said.isdisjoint(question)


def _neither_yes_nor_no(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    text: str,
    values: Mapping[str, Extraction],
    *,
    unsure: bool,
) -> Commands:
    """What a message does to a confirmation that it does not answer in so many words."""
    asks = is_question(text)
    if unwanted := [] if asks else _taken_back(playbook, session, plan, text, values):
        return [Correct(name, None, why="wants another value") for name in unwanted]
    if begins_with_no(text):
        return _denied(plan, text)
    if asks:
        return [Ask(why="asks something")]
    if unsure and not plan.get("denied"):
        return [Deny(why="may want another value")]
    return [Unclear(why="neither yes nor no")]


def _denied(plan: PlanExecution, text: str) -> Commands:
    """No: something is to be changed; a second no, or one that is final, drops the request."""
    final = plan.get("denied") or refuses(text)
    return [Cancel(why="says no for good") if final else Deny(why="says no")]


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
