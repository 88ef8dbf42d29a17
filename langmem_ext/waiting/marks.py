"""The mark on messages that hold a sensitive value: `additional_kwargs["langmem_ext"]["sensitive"]`, the sorted names of the parameters.

Whatever makes titles, logs or search entries from messages leaves out or masks those that carry it. Rather one mark too many than one
too few.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import TypeVar

from langchain_core.messages import AIMessage, BaseMessage
from pydantic import JsonValue

from langmem_ext.messages.annotations import NAMESPACE, notes_of
from langmem_ext.waiting.wording import in_text

M = TypeVar("M", bound=BaseMessage)


def sensitive_names(message: BaseMessage) -> frozenset[str]:
    """The parameters that the message is marked for."""
    names = notes_of(vars(message)).get("sensitive")
    return frozenset(names) if isinstance(names, list) else frozenset()


def marked(message: M, names: Iterable[str]) -> M:
    """The message, marked for these parameters besides those it is marked for already; the same object if that changes nothing."""
    before = sensitive_names(message)
    after = before.union(names)
    return message if after == before else annotated(message, "sensitive", list[JsonValue](sorted(after)))


def annotated(message: M, key: str, value: JsonValue) -> M:
    """A copy of the message with `value` under `key` in this package's own corner of `additional_kwargs`."""
    notes = {**notes_of(vars(message)), key: value}
    return message.model_copy(update={"additional_kwargs": {**message.additional_kwargs, NAMESPACE: notes}})


def held(message: BaseMessage, values: Mapping[str, JsonValue]) -> set[str]:
    """Which of the values the message holds, in its text or in the arguments of its tool calls, however they are spaced."""
    text = str(message.text)
    if isinstance(message, AIMessage) and message.tool_calls:
        text += json.dumps([call["args"] for call in message.tool_calls], ensure_ascii=False, default=str)
    squeezed = _squeezed(text)
    return {name for name, value in values.items() if (word := _squeezed(in_text(value))) and word in squeezed}


def _squeezed(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.casefold())
