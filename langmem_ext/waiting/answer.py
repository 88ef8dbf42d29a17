"""Deciding on a message while a request runs: is it the answer, part of it, or something else? Pure.

The order is the point. Taken first of all as an attempt to answer, "cancel that please" becomes an address.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import TypeAlias

from pydantic import JsonValue

from langmem_ext.names import in_words
from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.classify import Classification, ClassifyRequest
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.extract.attitude import wishes_by_asking
from langmem_ext.waiting.heard import Heard, mentions, overlap, values
from langmem_ext.waiting.intent import TEMPLATE_FIELD
from langmem_ext.waiting.param import Extraction, Param
from langmem_ext.waiting.plan import Deciding, Move, drop, forget, plan_next, start, suspend, take
from langmem_ext.waiting.playbook import Playbook
from langmem_ext.waiting.question import question
from langmem_ext.waiting.session import Session
from langmem_ext.waiting.signals import (
    begins_with_no,
    correction,
    is_cancel,
    is_question,
    is_reset,
    is_value_alone,
    without_part,
    words_without_values,
    yes_or_no,
)
from langmem_ext.waiting.state import PlanExecution

SURE = 0.5
"""Above this confidence the words of an answer are a value and nothing else; open values that nothing marks stay below."""

Classifying: TypeAlias = Generator[ClassifyRequest, Classification, Classification]


def plan_answer(playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard) -> Deciding:
    """Take the message as what it most likely is while `plan` runs, whether or not a question waits."""
    name = session.waiting_for
    if is_reset(heard.text):
        return forget(playbook)
    if name == CONFIRMATION:
        return (yield from _at_confirmation(playbook, session, plan, heard))
    if is_cancel(heard.text):
        return drop(playbook, session, playbook.catalog.replies.cancelled)
    answer = _read(playbook, session, plan, heard)
    if name and answer and is_value(playbook.param(name), heard.text):
        return _take(playbook, session, {name: answer.value})
    if corrected := _corrected(playbook, session, plan, heard):
        return _take(playbook, session, corrected)
    asked_for = yield from _classified(playbook, session, plan, heard, answer)
    if other := _other_request(playbook, session, plan, heard, asked_for):
        return other
    return _attempt(playbook, session, plan, heard, answer)


def _at_confirmation(playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard) -> Deciding:
    """Yes to just these calls, no to all of them, or another value, which is asked about anew.

    Nothing else answers. What asks for something else is served, and then the same is asked with
    the same values.
    """
    given = mentions(playbook, playbook.uses(plan), heard)
    changed = {name: found for name, found in given.items() if session.params.get(name) != found.value}
    spans = [found.span for found in given.values() if found.span]
    asked = _asked(playbook, plan)
    decided = None if changed else yes_or_no(heard.text, spans, asked)
    if decided is None and is_cancel(heard.text) and not is_question(heard.text):
        decided = False
    if decided is not None:
        return _confirmed(playbook, session, plan) if decided else drop(playbook, session, playbook.catalog.replies.cancelled)
    new = _corrected(playbook, session, plan, heard)
    if not new and is_value_alone(words_without_values(heard.text, spans), asked, [playbook.param(name) for name in changed]):
        new = values(changed)
    if playbook.accepts(plan, new):
        return _take(playbook, session, new)
    asked_for = yield from _classified(playbook, session, plan, heard, None)
    if other := _other_request(playbook, session, plan, heard, asked_for):
        return other
    if not changed and begins_with_no(heard.text):
        return drop(playbook, session, playbook.catalog.replies.cancelled)
    if is_question(heard.text):
        return plan_next(playbook, session, (playbook.catalog.replies.unknown,))
    return _wrong(playbook, session, plan, CONFIRMATION, heard)


def _asked(playbook: Playbook, plan: PlanExecution) -> str:
    """What a confirmation of the plan says besides values: its own words and those of the request."""
    intent = playbook.intent_of(plan)
    asked = TEMPLATE_FIELD.sub(" ", playbook.catalog.confirm_question(intent) or "")
    return f"{asked} {in_words(intent.id)} {intent.description}"


def _read(playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard) -> Extraction | None:
    """The value that the message gives for the waiting question; None when it gives none that the tools accept."""
    name = session.waiting_for
    if name is None:
        return None
    others = [playbook.param(other) for other in playbook.missing(plan, session.params) if other != name]
    prompt = question(playbook, plan, session.params, name).prompt
    reply = Reply(heard.text, prompt=prompt, others=others, filled=session.params, now=heard.now)
    found = extract(playbook.param(name), reply)
    if found.status != "filled" or playbook.value_error(plan, name, found.value):
        return None
    return found


def is_value(param: Param, text: str) -> bool:
    """Whether the message is one of the parameter's possible values, or a synonym of one, and nothing else."""
    said = _plain(text)
    return any(said == _plain(word) for value, synonyms in param.enum.items() for word in (value, *synonyms))


def _plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def _corrected(playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard) -> dict[str, JsonValue]:
    """New values for what is known already, when the message takes something back."""
    uses = playbook.uses(plan)
    known = {name: session.params[name] for name in uses if name in session.params}
    asked = None if session.waiting_for == CONFIRMATION else session.waiting_for
    found = correction(heard.text, playbook.catalog, known, now=heard.now, waiting_for=asked, among=uses)
    return {name: value for name, value in found.items() if name in known and playbook.value_error(plan, name, value) is None}


def _classified(playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard, answer: Extraction | None) -> Classifying:
    """What the message asks for, if it says anything besides values.

    Patterns are tried on the whole message: a value may be what they need ("where is O-2?"). A
    possible value of the parameter that is asked for is an answer, though, whatever pattern holds
    its words ("my order was late").
    """
    waiting, text = session.waiting_for, heard.text
    spans = [found.span for found in mentions(playbook, playbook.catalog.params, heard).values() if found.span]
    if answer and answer.span and answer.confidence > SURE:
        spans.append(answer.span)
        if waiting and playbook.param(waiting).enum:
            text = without_part(text, answer.span)
    if not re.search(r"[^\W\d_]", words_without_values(text, spans)):
        return Classification()
    found = yield ClassifyRequest(
        text,
        playbook.catalog,
        history=heard.history,
        params=session.params,
        waiting_for=waiting,
        prompt=question(playbook, plan, session.params, waiting).prompt if waiting else "",
        now=heard.now,
        values=spans,
    )
    return found


def _other_request(playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard, asked_for: Classification) -> Move | None:
    """The beginning of another request, if that is what the message asks for; the running one is suspended."""
    intent = playbook.intents.get(asked_for.intent_id or "")
    if intent is None or intent.id == plan["intent_id"]:
        return None
    found = {**values(mentions(playbook, playbook.catalog.params, heard)), **asked_for.params}
    return start(playbook, suspend(session), intent, heard, {name: found[name] for name in intent.param_names if name in found})


def _confirmed(playbook: Playbook, session: Session, plan: PlanExecution) -> Move:
    """Yes to just these calls."""
    confirmed = PlanExecution(**{**plan, "confirmed": playbook.fingerprint(plan, session.params)})
    return plan_next(playbook, replace(session, plan=confirmed))


def _attempt(playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard, answer: Extraction | None) -> Move:
    """The answer, with whatever else the message gives; other values alone are taken too and cost no attempt."""
    name = session.waiting_for
    unknown = [other for other in playbook.uses(plan) if other != name and other not in session.params]
    asks = is_question(heard.text) and not wishes_by_asking(heard.text)
    marked = {} if asks else mentions(playbook, unknown, heard)
    if answer:
        rivals = {other for other, extraction in marked.items() if overlap(answer, extraction)}
        if rivals and answer.confidence <= SURE:
            answer = None
        else:
            marked = {other: extraction for other, extraction in marked.items() if other not in rivals}
    found = values(marked)
    if name and answer:
        found[name] = answer.value
    if name is None or playbook.accepts(plan, found):
        return _take(playbook, session, found)
    return replace(_wrong(playbook, session, plan, name, heard), mentioned=frozenset(found))


def _take(playbook: Playbook, session: Session, found: Mapping[str, JsonValue]) -> Move:
    return replace(plan_next(playbook, take(playbook, session, found)), mentioned=frozenset(found))


def _wrong(playbook: Playbook, session: Session, plan: PlanExecution, name: str, heard: Heard) -> Move:
    """Ask again in other words; after too many wrong answers hand over, give up, or go on asking, as the parameter says."""
    param = playbook.param(name)
    count = plan["attempts"].get(name, 0) + 1
    if count < param.max_attempts or param.on_exhausted == "ask":
        counted = PlanExecution(**{**plan, "attempts": {**plan["attempts"], name: count}})
        return plan_next(playbook, replace(session, plan=counted))
    takes_over = playbook.intents.get(playbook.catalog.escalate_to or "")
    if param.on_exhausted == "escalate" and takes_over is not None and takes_over.id != plan["intent_id"]:
        return start(playbook, replace(session, plan=None, waiting_for=None), takes_over, heard, {})
    return drop(playbook, session, playbook.catalog.replies.exhausted)
