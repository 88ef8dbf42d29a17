"""What a user's message is marked for: the same before it is stored first, and when it was read.

Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, TypeVar

from langchain_core.messages import BaseMessage, HumanMessage

from langmem_ext.messages.text import words_of
from langmem_ext.waiting.catalog.param import Extraction
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.interrupts.ask import answer_of
from langmem_ext.waiting.policy.session import (
    Session,
    in_use,
    read_sensitive,
    read_session,
    results_of,
)
from langmem_ext.waiting.sensitive import (
    Known,
    Secrets,
    annotated,
    held_beside,
    marked,
    plan_spans,
    secrets_in,
    sensitive_names,
)
from langmem_ext.waiting.understand.message import Heard, candidates, spotted

M = TypeVar("M", bound=BaseMessage)


def on_thread(playbook: Playbook, state: Mapping[str, Any]) -> Playbook:
    """The playbook with all that is sensitive on the thread: another graph may have said so."""
    sensitive = read_sensitive(state, playbook)
    return playbook.with_sensitive({name for name in sensitive if sensitive[name]})


def secrets_of(names: frozenset[str], *states: Mapping[str, Any]) -> Secrets:
    """The values of these parameters in states: of all requests, and of tool results."""
    holders: list[object] = []
    for state in states:
        suspended = state.get("suspended")
        for request in (state, *(suspended if isinstance(suspended, list) else ())):
            if isinstance(request, Mapping):
                holders += [
                    request.get("params"),
                    request.get("last_result"),
                    *results_of(request.get("plan")),
                ]
    return secrets_in(names, *holders)


def known_of(playbook: Playbook, state: Mapping[str, Any]) -> Known:
    """The sensitive values that are known on a thread: those it was ever given, and has now."""
    return Known.of(state).with_values(secrets_of(playbook.sensitive, state))


def risks_of(playbook: Playbook, session: Session) -> frozenset[str]:
    """The sensitive parameters whose values a user may say, whatever was asked."""
    return playbook.sensitive & in_use(session, playbook)


def as_stored(
    playbook: Playbook, state: Mapping[str, Any], message: HumanMessage, now: datetime
) -> HumanMessage:
    """A message as it is stored before it was read: marked for all that it may hold.

    Args:
        playbook: The catalog and its tools.
        state: The thread's state, without the message.
        message: The message.
        now: When it was written.
    """
    playbook = on_thread(playbook, state)
    text = words_of(vars(message))
    known = known_of(playbook, state).with_values(spotted(playbook, text, now))
    if not playbook.sensitive and not known.values:
        return message
    heard = Heard(str(message.id), text, (), now, known=known)
    session = read_session(state, playbook)
    return noted(playbook, message, heard, read_of(playbook, heard), session, session)


def read_of(playbook: Playbook, heard: Heard) -> dict[str, Extraction]:
    """What may be values of sensitive parameters in a message."""
    return candidates(playbook, playbook.sensitive & playbook.catalog.params.keys(), heard)


def noted(
    playbook: Playbook,
    message: M,
    heard: Heard,
    read: Mapping[str, Extraction],
    before: Session,
    after: Session,
    mentioned: Collection[str] = (),
) -> M:
    """The user's message with its mark, if it holds a sensitive value or was to give one.

    Args:
        playbook: The catalog and its tools, with all that is sensitive on the thread.
        message: The message.
        heard: What it says; all that is known by now.
        read: What may be values of sensitive parameters in it.
        before: The session before it.
        after: The session after it.
        mentioned: The parameters that it was read to give.
    """
    declared, places = playbook.catalog.params, heard.known.find(heard.text)
    names = (playbook.sensitive & {*mentioned, *read, before.waiting_for}) | places.keys()
    beside = held_beside(message, heard.known)
    risky = risks_of(playbook, before) | risks_of(playbook, after)
    if not (names or risky or beside):
        return message
    # Nothing says which words may be the value of another graph's parameter; nor which of those
    # that were not read, as a document's.
    spans = None
    if names <= declared.keys() and heard.text == words_of(vars(message)):
        spans = plan_spans(
            heard.text,
            [declared[name] for name in names],
            read,
            places,
            secrets_in(declared.keys() - playbook.sensitive, after.params),
            playbook.familiar,
            [declared[name] for name in risky & declared.keys()]
            if risky <= after.params.keys()
            else (),
        )
    unread = sensitive_names(message) in ({before.waiting_for}, risks_of(playbook, before))
    return marked(message, (names or (risky if spans else set())) | beside, spans, anew=unread)


def answer_hidden(message: M, known: Known) -> M:
    """The message, without the known sensitive values in the texts of a client's answer."""
    note = answer_of(message)
    if note is None:
        return message
    texts = {name: value for name, value in note["values"].items() if isinstance(value, str)}
    hidden = {name: known.hide(value) for name, value in texts.items()}
    if hidden == texts:
        return message
    return annotated(message, "answer", {**note, "values": {**note["values"], **hidden}})


def learnt(read: Mapping[str, Extraction], params: Mapping[str, Any]) -> Secrets:
    """The words in which values were said that are known now: a date may be written otherwise."""
    return [
        (name, extraction.raw)
        for name, extraction in read.items()
        if extraction.value == params.get(name)
    ]
