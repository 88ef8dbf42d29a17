"""What a model is sent of a conversation: no sensitive values, none read by rules alone."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from langchain_core.messages import BaseMessage

from langmem_ext.messages.annotations import HIDDEN, shown_text
from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.extract import LONGEST, find
from langmem_ext.waiting.understand.intents.classifier import ClassifyRequest


def is_asked_locally(request: ClassifyRequest) -> bool:
    """Whether the message may answer a question whose answer no model sees."""
    return any(param.name == request.waiting_for for param in _local(request))


def is_local(param: Param, request: ClassifyRequest) -> bool:
    """Whether no model sees the parameter's values."""
    return param.local_only or param.name in request.local


def without_local(text: str, request: ClassifyRequest) -> str:
    """The text without the values of such parameters: known ones, and what looks like one.

    Only the part that is read, up to `LONGEST`, is kept.
    """
    text = request.known.hide(text)[:LONGEST]
    for param in _local(request):
        known = request.params.get(param.name)
        if known is not None and not isinstance(known, bool):
            text = text.replace(str(known), HIDDEN)
        text = _masked(param, text, request.now)
    return text


def history_without_local(request: ClassifyRequest) -> list[tuple[str, str]]:
    """The type and text of earlier messages, without such values and the answers with them."""
    asked = [
        question
        for param in _local(request)
        for question in (param.prompt, param.clarified_prompt)
        if question
    ]
    shown, before = [], ""
    for message in _talk(request.history):
        text = shown_text(vars(message))
        answers = message.type == "human" and any(question in before for question in asked)
        shown.append((message.type, HIDDEN if answers else without_local(text, request)))
        before = text if message.type == "ai" else ""
    return shown


def _talk(history: Sequence[BaseMessage]) -> list[BaseMessage]:
    return [message for message in history if message.type in ("human", "ai") and message.text]


def _local(request: ClassifyRequest) -> list[Param]:
    return [param for param in request.catalog.params.values() if is_local(param, request)]


def _masked(param: Param, text: str, now: datetime) -> str:
    """The text without every value that its rules mark in it."""
    for _ in range(_MOST):
        extraction = find(param, text, now=now)
        if extraction.span is None:
            return text
        text = f"{text[: extraction.span[0]]}{HIDDEN}{text[extraction.span[1] :]}"
    return text


_MOST = 8
"""Values of one parameter in one message, at most."""
