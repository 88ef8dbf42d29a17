"""Asking a question of ours from a node: the interrupt, and what its answer means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from langchain_core.messages import BaseMessage, HumanMessage
from langgraph.config import get_config
from langgraph.types import Interrupt, interrupt

from langmem_ext.errors import InvalidInput
from langmem_ext.messages.annotations import notes_of
from langmem_ext.waiting.interrupts.question import answer_type
from langmem_ext.waiting.interrupts.resume import (
    Answer,
    Expected,
    is_unseen,
    read_answer,
    resumed_id,
    resumed_message,
    resumed_moment,
)
from langmem_ext.waiting.sensitive import annotated, written_at


@dataclass(frozen=True, slots=True)
class Resumed:
    """What a question was answered.

    Attributes:
        answer: What it means; None where it says nothing, and the question is to be asked again.
        id: The message id that it brings along.
        at: When it was written, if it says so.
        unseen: Whether it was written before the question was asked.
        whole: The user's message, where it is more than text.
    """

    answer: Answer | None
    id: str | None
    at: datetime | None
    unseen: bool
    whole: HumanMessage | None = None

    def message(self) -> HumanMessage:
        """The answer as the user's message."""
        message = self.whole or HumanMessage(self.answer.text if self.answer else "", id=self.id)
        note = self.answer.note() if self.answer else None
        message = message if note is None else annotated(message, "answer", note)
        return message if self.at is None else written_at(message, self.at)


def ask(payload: Mapping[str, Any], *, again: bool = False) -> Resumed:
    """Interrupt the node with a question, until it is answered.

    An answer of no known shape is refused before LangGraph stores it, and the question stays open.
    Where LangGraph does not check it (a sensitive question has no schema), it says nothing.

    Args:
        payload: The question (`for_all_clients`).
        again: Whether the node has asked before; then the interrupt's id is not known here.
    """
    checked = answer_type(payload)
    value = (
        interrupt(payload) if checked is None else interrupt(payload, response_schema=checked).root
    )
    # What follows must not fail: the node would be run again with this answer for ever.
    own_id = (
        ""
        if again
        else Interrupt.from_ns(None, get_config()["configurable"].get("checkpoint_ns", "")).id
    )
    try:
        answer = read_answer(value, Expected.by(payload, own_id))
    except InvalidInput:
        answer = None
    whole = resumed_message(value)
    if answer is None and whole is not None:
        answer = Answer("words", whole.text)
    return Resumed(answer, resumed_id(value), resumed_moment(value), is_unseen(value), whole)


def answer_of(message: BaseMessage) -> Mapping[str, Any] | None:
    """What is noted on a user's message of an answer that is no words."""
    note = notes_of(vars(message)).get("answer")
    if not isinstance(note, dict) or not isinstance(note.get("values"), dict):
        return None
    if note.get("act") == "start":
        return note if isinstance(note.get("intent"), str) else None
    return note if note.get("act") in ("values", "decline", "cancel") else None


def request_message(intent: str, values: Mapping[str, Any], text: str) -> HumanMessage:
    """A message that begins a request, for a client that names what it wants.

    Args:
        intent: The intent's id.
        values: What is known, by parameter.
        text: Its text in the log.
    """
    return annotated(
        HumanMessage(text), "answer", {"act": "start", "intent": intent, "values": dict(values)}
    )
