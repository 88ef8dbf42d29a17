"""A message that meets a confirmation: yes, no, another value, or something else, which leaves the confirmation as it was. Pure."""

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
from langmem_ext.waiting.extract.english.attitude import says_no
from langmem_ext.waiting.extract.numbers.numerals import numerals
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.state import PlanExecution
from langmem_ext.waiting.understand.acts import (
    begins_with_no,
    is_cancel,
    is_question,
    is_value_alone,
    names,
    refuses,
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
from langmem_ext.waiting.understand.intents.similarity import about
from langmem_ext.waiting.understand.message import Heard
from langmem_ext.waiting.understand.requests import Commands, Understanding, aside_of, classified, corrected, other_requests
from langmem_ext.waiting.understand.values import SURE, Reading, read_values, spans_of, values_of


def read_at_confirmation(playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard) -> Understanding:
    """Yes to just these calls, no to them, or another value, which is asked about anew.

    Nothing else answers. What asks for something else is served, and then the same is asked with
    the same values.
    """
    clauses = clauses_of(heard.text)
    reading = Reading(heard.text, heard.now, filled=session.params, about=about(playbook.intent_of(plan)))
    given = read_values([playbook.param(name) for name in playbook.uses(plan)], reading)
    changed = {name: found for name, found in given.items() if session.params.get(name) != found.value}
    asked = _asked(playbook, plan)
    again = [*spans_of(given), *_numbers_said_again(heard.text, session.params)]
    if not changed and (decided := _decided(plan, heard.text, again, asked)):
        return decided
    new = _changes(playbook, session, plan, heard, changed) or _alone(playbook, heard.text, given, changed, asked)
    new = new or _bare_instead(playbook, session, plan, heard)
    if playbook.accepts(plan, new):
        return [Correct(name, value, why="gives another value") for name, value in new.items()]
    if aside := aside_of(heard.text, clauses):
        return [aside]
    if yes := _yes_first(clauses, asked):
        rest = replace(heard, text=without(heard.text, [yes]))
        after = yield from classified(playbook, session, plan, rest, None, {})
        if starts := other_requests(playbook, plan, rest, after):
            return [Confirm(why="says yes"), *starts]
    asked_for = yield from classified(playbook, session, plan, heard, None, given)
    if starts := other_requests(playbook, plan, heard, asked_for):
        return starts
    return _neither_yes_nor_no(playbook, session, plan, heard.text, clauses, given, changed)


def _yes_first(clauses: Sequence[Clause], asked: str) -> Clause | None:
    """The first sentence of several, where it only says yes: "yes. and can I order rolls?"."""
    first = clauses[0] if len(clauses) > 1 else None
    return first if first and re.search(r"[.!]\s*$", first.text) and yes_or_no(first.text, (), asked) else None


def _numbers_said_again(text: str, params: Mapping[str, JsonValue]) -> list[tuple[int, int]]:
    """Where a message repeats a number that is known: "yes, all three"."""
    known = {value for value in params.values() if isinstance(value, int) and not isinstance(value, bool)}
    return [(numeral.start, numeral.end) for numeral in numerals(text) if numeral.value in known]


_BARE_INSTEAD: Final = re.compile(
    r"(?:^|[,.;–—-]\s)\W*(?:(?:no|nope|nah|sorry|oh|hm+|um+|wait|actually|not quite|make it|make that|better|rather|i mean|i meant"
    r"|say|it['’]?s|its|should be)\b\W*)+"
    r"(?P<value>[^\s,.;!?]+(?:\s+[^\s,.;!?]+){0,2})\W*$",
    re.IGNORECASE,
)
_BARE_TYPES: Final = frozenset({ParamType.INTEGER, ParamType.NUMBER, ParamType.MONEY, ParamType.TIME, ParamType.DATE, ParamType.ENUM})


def _bare_instead(playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard) -> dict[str, JsonValue]:
    """A bare value in the place of the known values that it can replace: "no sorry, 85"."""
    match = _BARE_INSTEAD.search(heard.text)
    if not match or not re.search(r"\d|\w{3}", match["value"]):
        return {}
    read: dict[str, JsonValue] = {}
    for name in playbook.uses(plan):
        param = playbook.param(name)
        if name in session.params and param.type in _BARE_TYPES:
            found = extract(param, Reply(match["value"], prompt=param.prompt or "?", now=heard.now))
            if found.status == "filled" or found.choices:
                read[name] = found.value
    return {name: value for name, value in read.items() if value is not None and len(read) == 1 and value != session.params[name]}


def _decided(plan: PlanExecution, text: str, spans: Sequence[tuple[int, int]], asked: str) -> Commands:
    """Yes, no or an end; nothing for any other message."""
    decided = yes_or_no(text, spans, asked)
    if decided is None:
        return [Cancel(why="says to stop")] if is_cancel(text) and not is_question(text) else []
    return [Confirm(why="says yes")] if decided else _denied(plan, text)


def _changes(
    playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard, changed: Mapping[str, Extraction]
) -> dict[str, JsonValue]:
    """The values that a message takes back for others; once the user has said no, any other value is one."""
    new = corrected(playbook, session, plan, heard)
    if new or not plan.get("denied") or is_question(heard.text):
        return new
    return {name: found.value for name, found in changed.items() if found.confidence > SURE}


def _alone(
    playbook: Playbook, text: str, given: Mapping[str, Extraction], changed: Mapping[str, Extraction], asked: str
) -> dict[str, JsonValue]:
    """The other values of a message that says nothing but these."""
    words = words_without_values(without_denied(text)[0], spans_of(given))
    return values_of(changed) if is_value_alone(words, asked, [playbook.param(name) for name in changed]) else {}


def _neither_yes_nor_no(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    text: str,
    clauses: Sequence[Clause],
    given: Mapping[str, Extraction],
    changed: Mapping[str, Extraction],
) -> Commands:
    """What a message does to a confirmation that it does not answer."""
    if is_question(text):
        return [Ask(why="asks something")]
    says_so = _INSTEAD.search(text) is not None or any(says_no(clause.text) for clause in clauses)
    if says_so and (new := _plain_values(playbook, changed)) and playbook.accepts(plan, new):
        return [Correct(name, value, why="puts another value in its place") for name, value in new.items()]
    if unwanted := _taken_back(playbook, session, plan, text, given):
        return [Correct(name, None, why="wants another value") for name in unwanted]
    if not changed and begins_with_no(text):
        return _denied(plan, text)
    return [Unclear(why="neither yes nor no")]


_INSTEAD: Final = re.compile(r"\b(?:actually|instead|rather|sorry|oops|wait|make it|better|after all)\b", re.IGNORECASE)
"""Words that put another value in the place of one."""

_PLAIN: Final = frozenset(
    {ParamType.DATE, ParamType.TIME, ParamType.INTEGER, ParamType.NUMBER, ParamType.MONEY, ParamType.ENUM, ParamType.EMAIL, ParamType.PHONE}
)
"""Types of which nobody speaks by the way, as of somebody else's order or name."""


def _plain_values(playbook: Playbook, changed: Mapping[str, Extraction]) -> dict[str, JsonValue]:
    """The new values that a no gives, whatever it says besides: "no. my daughter says the seventh is better"."""
    if any(playbook.param(name).type not in _PLAIN or found.confidence <= SURE for name, found in changed.items()):
        return {}
    return values_of(changed)


def _denied(plan: PlanExecution, text: str) -> Commands:
    """No: something is to be changed; a second no, or one that is final, drops the request."""
    return [Cancel(why="says no for good")] if plan.get("denied") or refuses(text) else [Deny(why="says no")]


def _taken_back(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    text: str,
    given: Mapping[str, Extraction],
) -> list[str]:
    """The parameters that a message wants to change without saying to what: "the time", "another day".

    After a no it is enough to name one, but not with the value that it has.
    """
    unwanted = [name for name in playbook.uses(plan) if name in session.params and names(text, playbook.param(name))]
    if not takes_back(text):
        unwanted = [name for name in unwanted if plan.get("denied") and name not in given]
    return unwanted[:1]


def _asked(playbook: Playbook, plan: PlanExecution) -> str:
    """What a confirmation of the plan says besides values: its own words and those of the request."""
    intent = playbook.intent_of(plan)
    asked = TEMPLATE_FIELD.sub(" ", playbook.catalog.confirm_question(intent) or "")
    request = re.sub(r"\bor\b", " ", intent.description, flags=re.IGNORECASE)  # a choice only where the question leaves one
    return f"{asked} {in_words(intent.id)} {request}"
