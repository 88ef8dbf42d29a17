"""From a message and the state it meets to commands. The policy decides what comes of them. Pure.

`understand` is a generator: it asks for a classification where the message may ask for something,
so a model is called by whoever drives it, sync or async, and reading itself does no I/O.

The order is the point. Taken first of all as an attempt to answer, "cancel that please" becomes an
address.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from dataclasses import replace
from typing import Final

from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.extract.english.attitude import says_yes
from langmem_ext.waiting.extract.english.lexicon import word_set
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.understand.acts import (
    is_cancel,
    is_reset,
    refers_back,
    wants_person,
    words_without_values,
    yes_or_no,
)
from langmem_ext.waiting.understand.answer import read_answer
from langmem_ext.waiting.understand.clauses import LONGEST, clauses_of
from langmem_ext.waiting.understand.commands import (
    Ask,
    Cancel,
    Clarify,
    Confirm,
    HandOver,
    Reset,
    Start,
    Unclear,
)
from langmem_ext.waiting.understand.confirmation import read_at_confirmation
from langmem_ext.waiting.understand.corrections import correction
from langmem_ext.waiting.understand.intents.classifier import Classification, ClassifyRequest, find_params
from langmem_ext.waiting.understand.intents.similarity import about
from langmem_ext.waiting.understand.message import Heard
from langmem_ext.waiting.understand.requests import Commands, Understanding, chat_of, request_of
from langmem_ext.waiting.understand.second_reading import is_unread, read_by_model
from langmem_ext.waiting.understand.values import Reading, open_choices, read_values, spans_of, values_of


def understand(playbook: Playbook, session: Session, heard: Heard) -> Understanding:
    """What the message says.

    Args:
        playbook: The catalog and its tools.
        session: The state that the message meets.
        heard: The message.

    Returns:
        At least one command.
    """
    whole, heard = heard, replace(heard, text=heard.text[:LONGEST])
    if is_reset(whole.text):
        return [Reset(why="says to start over")]
    if session.plan is None:
        return (yield from _at_rest(playbook, session, heard))
    if session.plan.get("expired") and (decided := yes_or_no(heard.text, (), "")) is not None:
        return [Confirm(why="wants to go on")] if decided else [Cancel(why="does not want to go on")]
    if session.waiting_for == CONFIRMATION:
        commands = yield from read_at_confirmation(playbook, session, session.plan, heard)
    else:
        commands = yield from read_answer(playbook, session, session.plan, heard, whole.text)
    if not is_unread(commands) or session.waiting_for in playbook.local:
        return commands
    return (yield from read_by_model(playbook, session, session.plan, heard)) or commands


def _at_rest(playbook: Playbook, session: Session, heard: Heard) -> Understanding:
    text, clauses = heard.text, clauses_of(heard.text)
    if is_cancel(text) and not refers_back(text):
        return [Cancel(why="says to stop")]
    if chat := chat_of(clauses):
        return [chat]
    request = request_of(playbook, session, heard)
    found = yield request
    among = _clarified(session, playbook)
    if among and found.intent_id is None:
        found, request, heard = yield from _between(playbook, session, heard, among)
    starts = _starts(playbook, found)
    if starts:
        return [*starts, *_open(playbook, heard, starts)]
    if again := _again(playbook, session, heard):
        return [again]
    if wants_person(text):
        return [HandOver(why="asks for a person")]
    if found.choices:
        return [Clarify(intents=tuple(found.choices), why=found.reason, by=found.source)]
    if is_cancel(text):
        return [Cancel(why="says to stop")]
    if any(clause.act == "question" for clause in clauses):
        return [Ask(why="asks something")]
    return [Unclear(why=found.reason or "no intent fits")]


def _starts(playbook: Playbook, found: Classification) -> Commands:
    """The requests that a classification names, each with its values."""
    if found.intent_id not in playbook.intents:
        return []
    every = [found, *(other for other in found.also if other.intent_id in playbook.intents)]
    return [
        Start(str(one.intent_id), tuple(one.params.items()), confidence=found.confidence, by=found.source, why=one.reason) for one in every
    ]


def _open(playbook: Playbook, heard: Heard, starts: Commands) -> Commands:
    """The values for the first request that the message leaves open: "at 7"."""
    first = starts[0]
    assert isinstance(first, Start)
    intent, given = playbook.intents[first.intent], dict(first.values)
    params = [playbook.catalog.params[name] for name in intent.param_names if name not in given]
    left = open_choices(params, Reading(heard.text, heard.now, about=about(intent)))
    return [
        Clarify(param=name, choices=choices, why="may be two values") for name, choices in left.items() if name not in playbook.sensitive
    ]


def _clarified(session: Session, playbook: Playbook) -> tuple[str, ...]:
    """The intents that the user was asked to choose from."""
    for command in session.understood:
        if command.get("command") == "clarify" and isinstance(intents := command.get("intents"), list):
            return tuple(intent for intent in intents if intent in playbook.intents)
    return ()


_PLACES: Final = (
    re.compile(r"\b(?:first|1st|former|1|one|a)\b", re.IGNORECASE),
    re.compile(r"\b(?:second|2nd|latter|last|2|two|b|other)\b", re.IGNORECASE),
)


def _between(
    playbook: Playbook, session: Session, heard: Heard, among: Sequence[str]
) -> Generator[ClassifyRequest, Classification, tuple[Classification, ClassifyRequest, Heard]]:
    """Which of several intents an answer chooses; the message that was not clear is read again with it."""
    before = next((message.text for message in reversed(heard.history) if message.type == "human"), "")
    both = replace(heard, text=f"{before}\n{heard.text}")
    request = replace(request_of(playbook, session, both), among=among)
    if says_yes(heard.text) and not any(place.search(heard.text) for place in _PLACES):
        yes = Classification(
            among[0], confidence=0.6, reason="yes, to the likelier", params=find_params(playbook.intents[among[0]], request)
        )
        return yes, request, both
    for place, intent_id in zip(_PLACES, among, strict=False):
        if place.search(heard.text):
            return (
                Classification(
                    intent_id, confidence=1.0, reason="the user chose it", params=find_params(playbook.intents[intent_id], request)
                ),
                request,
                both,
            )
    found = yield replace(request, text=heard.text)
    if found.intent_id is None:
        found = yield request
    return replace(found, choices=()), request, both


def _again(playbook: Playbook, session: Session, heard: Heard) -> Start | None:
    """The last request once more, with values that the message corrects."""
    intent = playbook.intents.get(session.last_intent_id or "")
    if intent is None:
        return None
    uses = playbook.uses(playbook.begin(intent, heard.id))
    known = {name: session.params[name] for name in uses if name in session.params}
    corrected = correction(heard.text, playbook.catalog, known, now=heard.now, among=uses)
    if corrected:
        return Start(intent.id, tuple({**known, **corrected}.items()), why="corrects the last request")
    read = read_values([playbook.param(name) for name in uses], Reading(heard.text, heard.now, about=about(intent)))
    rest = words_without_values(heard.text, spans_of(read))
    words = set(re.findall(r"[^\W\d_]+", rest.lower()))
    if not read or not words <= _ONE_MORE or words.isdisjoint(_MORE):
        return None  # a value alone asks for nothing: it may be an answer that came twice
    return Start(intent.id, tuple({**known, **values_of(read)}.items()), why="asks the same about another value")


_ONE_MORE: Final = word_set(
    "and what about how for the same also now then too please pls as well again is it with ok okay great thanks thanx thx thank you ta "
    "cheers one more next another oh"
)
"""Words beside a value that ask for the same once more: "and O-2?"."""

_MORE: Final = word_set("and what about how same also too well again more next another")
"""Of these at least one says that it is once more."""
