"""Deciding on a message while a request runs: is it the answer, part of it, or something else? Pure.

The order is the point. Taken first of all as an attempt to answer, "cancel that please" becomes an address.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import TypeAlias

from pydantic import JsonValue

from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.classify import Classification, ClassifyRequest
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.heard import Heard, mentions, overlap, values
from langmem_ext.waiting.param import Extraction, Param
from langmem_ext.waiting.plan import Deciding, Move, drop, forget, plan_next, start, suspend, take
from langmem_ext.waiting.playbook import Playbook
from langmem_ext.waiting.question import question
from langmem_ext.waiting.session import Session
from langmem_ext.waiting.signals import correction, is_cancel, is_reset, refers_back, words_without_values
from langmem_ext.waiting.state import PlanExecution

SURE = 0.5
"""Above this confidence the words of an answer are a value and nothing else; open values that nothing marks stay below."""

OtherRequest: TypeAlias = Generator[ClassifyRequest, Classification, Move | None]


def plan_answer(playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard) -> Deciding:
    """Take the message as what it most likely is while `plan` runs, whether or not a question waits."""
    name = session.waiting_for
    if is_reset(heard.text):
        return forget(playbook)
    if is_cancel(heard.text):
        if name == CONFIRMATION and (yield from _asks_for_the_same(playbook, plan, heard)):
            return _confirmed(playbook, session, plan)
        return drop(playbook, session, playbook.catalog.replies.cancelled)
    answer = _read(playbook, session, plan, heard)
    if name and answer and is_value(playbook.param(name), heard.text):
        return _take(playbook, session, {name: answer.value})
    if corrected := _corrected(playbook, session, plan, heard):
        return _take(playbook, session, corrected)
    other = yield from _other_request(playbook, session, plan, heard, answer)
    if other is not None:
        return other
    if name == CONFIRMATION:
        return _confirmation(playbook, session, plan, heard, answer)
    return _attempt(playbook, session, plan, heard, answer)


def _read(playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard) -> Extraction | None:
    """The value that the message gives for the waiting question; None when it gives none that the tools accept."""
    name = session.waiting_for
    if name is None:
        return None
    others = [playbook.param(other) for other in playbook.missing(plan, session.params) if other != name]
    prompt = question(playbook, plan, session.params, name).prompt
    reply = Reply(heard.text, prompt=prompt, others=others, filled=session.params, now=heard.now)
    found = extract(playbook.param(name), reply)
    if found.status != "filled" or (name != CONFIRMATION and playbook.value_error(plan, name, found.value)):
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
    found = correction(heard.text, playbook.catalog, known, now=heard.now, waiting_for=session.waiting_for, among=uses)
    return {name: value for name, value in found.items() if name in known and playbook.value_error(plan, name, value) is None}


def _other_request(playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard, answer: Extraction | None) -> OtherRequest:
    """The beginning of another request, if what the message says besides values is one; the running one is suspended."""
    marked = mentions(playbook, playbook.catalog.params, heard)
    spans = [found.span for found in marked.values() if found.span]
    if answer and answer.span and answer.confidence > SURE:
        spans.append(answer.span)
    words = words_without_values(heard.text, spans)
    if not re.search(r"[^\W\d_]", words):
        return None
    waiting = session.waiting_for
    classification = yield ClassifyRequest(
        words,
        playbook.catalog,
        history=heard.history,
        params=session.params,
        waiting_for=waiting,
        prompt=question(playbook, plan, session.params, waiting).prompt if waiting else "",
        now=heard.now,
    )
    intent = playbook.intents.get(classification.intent_id or "")
    if intent is None or intent.id == plan["intent_id"]:
        return None
    found = {**values(marked), **classification.params}
    return start(playbook, suspend(session), intent, heard, {name: found[name] for name in intent.param_names if name in found})


def _confirmation(playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard, answer: Extraction | None) -> Move:
    """Yes to just these calls, no to all of them, or another value, which is asked about anew."""
    marked = values(mentions(playbook, playbook.uses(plan), heard))
    changed = {name: value for name, value in marked.items() if session.params.get(name) != value}
    if playbook.accepts(plan, changed):
        return _take(playbook, session, changed)
    if answer is None:
        return _wrong(playbook, session, plan, CONFIRMATION, heard)
    if answer.value is not True:
        return drop(playbook, session, playbook.catalog.replies.cancelled)
    return _confirmed(playbook, session, plan)


def _asks_for_the_same(playbook: Playbook, plan: PlanExecution, heard: Heard) -> Generator[ClassifyRequest, Classification, bool]:
    """Whether the message asks once more for what waits to be confirmed: "cancel it" is a yes to "shall I cancel the order?".

    A bare "cancel" could as well be said of the conversation: what cannot be undone is then left undone.
    """
    if not refers_back(heard.text):
        return False
    classification = yield ClassifyRequest(heard.text, playbook.catalog, history=heard.history, now=heard.now)
    return classification.intent_id == plan["intent_id"]


def _confirmed(playbook: Playbook, session: Session, plan: PlanExecution) -> Move:
    """Yes to just these calls."""
    confirmed = PlanExecution(**{**plan, "confirmed": playbook.fingerprint(plan, session.params)})
    return plan_next(playbook, replace(session, plan=confirmed))


def _attempt(playbook: Playbook, session: Session, plan: PlanExecution, heard: Heard, answer: Extraction | None) -> Move:
    """The answer, with whatever else the message gives; other values alone are taken too and cost no attempt."""
    name = session.waiting_for
    unknown = [other for other in playbook.uses(plan) if other != name and other not in session.params]
    marked = mentions(playbook, unknown, heard)
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
