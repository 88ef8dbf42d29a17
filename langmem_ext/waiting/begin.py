"""Deciding on a message when no request runs: what does the user ask for? Pure."""

from __future__ import annotations

from dataclasses import replace

from langmem_ext.waiting.classify import ClassifyRequest
from langmem_ext.waiting.heard import Heard
from langmem_ext.waiting.plan import Deciding, Move, forget, plan_next, start
from langmem_ext.waiting.playbook import Playbook
from langmem_ext.waiting.session import Session
from langmem_ext.waiting.signals import correction, is_cancel, is_reset, refers_back


def plan_request(playbook: Playbook, session: Session, heard: Heard) -> Deciding:
    """Begin what the message asks for; a correction of the request that was answered last asks for it again with the new values."""
    replies = playbook.catalog.replies
    if is_reset(heard.text):
        return forget(playbook)
    if is_cancel(heard.text) and not refers_back(heard.text):
        return plan_next(playbook, session, (replies.nothing_to_cancel,))
    classification = yield ClassifyRequest(
        heard.text,
        playbook.catalog,
        history=heard.history,
        params=session.params,
        now=heard.now,
    )
    if intent := playbook.intents.get(classification.intent_id or ""):
        return start(playbook, session, intent, heard, classification.params)
    if again := _again(playbook, session, heard):
        return again
    say = replies.nothing_to_cancel if is_cancel(heard.text) else replies.unknown
    return replace(plan_next(playbook, session, (say,)), mentioned=frozenset(classification.params))


def _again(playbook: Playbook, session: Session, heard: Heard) -> Move | None:
    intent = playbook.intents.get(session.last_intent_id or "")
    if intent is None:
        return None
    plan = playbook.begin(intent, heard.id)
    uses = playbook.uses(plan)
    known = {name: session.params[name] for name in uses if name in session.params}
    corrected = correction(heard.text, playbook.catalog, known, now=heard.now, among=uses)
    if not corrected:
        return None
    return start(playbook, session, intent, heard, {**known, **corrected})
