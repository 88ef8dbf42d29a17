"""What a text or a client's answer means to another graph's interrupt, or one clear refusal.

LangGraph stores an answer before the node has seen it, so one that the node cannot use must not be
passed on. What an interrupt takes is read from its payload (`kind_of`): tool calls that wait for a
decision, forms of MCP servers, requests of the Agent Inbox, and whatever declares a
`response_schema`. Words that people use are translated, and JSON that fits is passed on. Any other
interrupt takes any text.

Pure: nothing here reads or stores, and no payload makes it raise anything but the refusal.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from langmem_ext._internal.json import json_value
from langmem_ext.errors import ConversationError, StaleAnswer
from langmem_ext.threads.states.held import is_interrupt_id
from langmem_ext.waiting.interrupts.approvals import calls_of, is_single
from langmem_ext.waiting.interrupts.forms import parsed
from langmem_ext.waiting.interrupts.kinds import (
    Kind,
    any_text,
    approval,
    elicitation,
    inbox,
    structured,
)
from langmem_ext.waiting.interrupts.resume import Expected, read_answer

OWN: Final = frozenset({"param", "prompt", "attempt"})
"""What the payload of a question of ours has; its answer is text, in other graphs too."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What an interrupt asks.

    Attributes:
        value: Its payload.
        schema: The JSON schema of its answer; None where it declares none.
    """

    value: object
    schema: object = None

    @property
    def is_own(self) -> bool:
        """Whether it is a question of ours."""
        return isinstance(self.value, Mapping) and self.value.keys() >= OWN


def kind_of(asked: Asked) -> Kind:
    """The kind that an interrupt is of."""
    value = asked.value
    if asked.is_own:
        return any_text(value)
    if calls := calls_of(value, asked.schema):
        return approval(calls, single=is_single(value))
    if (
        isinstance(value, Mapping)
        and value.get("type") == "mcp_elicitation"
        and isinstance(value.get("requests"), list)
    ):
        return elicitation(value, [form for form in value["requests"] if isinstance(form, Mapping)])
    if schema := _declared(asked):
        return structured(value, schema)
    [request, *others] = value if isinstance(value, list) and value else [value]
    if (
        not others
        and isinstance(request, Mapping)
        and isinstance(request.get("action_request"), Mapping)
    ):
        return inbox(request)
    return any_text(value)


def _declared(asked: Asked) -> Mapping[str, Any] | None:
    """The schema of the answer that an interrupt declares."""
    if isinstance(asked.schema, Mapping):
        return asked.schema
    value = asked.value if isinstance(asked.value, Mapping) else {}
    return next(
        (
            value[key]
            for key in ("response_schema", "responseSchema")
            if isinstance(value.get(key), Mapping)
        ),
        None,
    )


def plan_answers(waiting: Mapping[str, Asked], text: str, content: object = None) -> dict[str, Any]:
    """The resume values that a text is, by the ids of the interrupts that it answers.

    Of several interrupts it answers the first, which is the one shown; a JSON object of
    answers by ids answers those.

    Args:
        waiting: The interrupts that wait, by id; at least one.
        text: What was said.
        content: The content of a message that is more than text: an interrupt that takes any
            answer gets it instead of the text.

    Raises:
        InvalidInput: It is no answer to what is asked; the message says what is one.
    """
    by_id = parsed(text)
    if isinstance(by_id, dict) and by_id and len(waiting) > 1 and by_id.keys() <= waiting.keys():
        return {
            name: _answer_from_text(
                waiting[name], answer if isinstance(answer, str) else json.dumps(answer)
            )
            for name, answer in by_id.items()
        }
    name, asked = next(iter(waiting.items()))
    if isinstance(content, list) and not asked.is_own and kind_of(asked).schema is None:
        return {name: content}
    return {name: _answer_from_text(asked, text)}


def plan_resume(waiting: Mapping[str, Asked], value: object) -> dict[str, Any]:
    """The resume values that a client's answer is, by the ids of the interrupts that it answers.

    An answer that says nothing is left out: its question is asked again.

    Args:
        waiting: The interrupts that wait, by id; at least one.
        value: The answer to the interrupt that waits, or answers by id, or AG-UI's resume entries.

    Raises:
        InvalidInput: It is no answer to what is asked.
        StaleAnswer: It answers a question that is no longer asked.
        ConversationError: It answers one of several, and does not say which.
    """
    entries: list[Any] = value if isinstance(value, list) else [value]
    if entries and all(
        isinstance(entry, Mapping) and isinstance(entry.get("interruptId"), str)
        for entry in entries
    ):
        value = {entry["interruptId"]: entry for entry in entries}
    if (
        isinstance(value, Mapping)
        and value
        and all(name in waiting or is_interrupt_id(name) for name in value)
    ):
        by_id = dict(value)
    elif len(waiting) == 1:
        by_id = dict.fromkeys(waiting, value)
    else:
        raise ConversationError(
            f"{len(waiting)} questions wait, and the answer does not say which it is for: give"
            " {interrupt id: answer}"
        )
    if gone := [name for name in by_id if name not in waiting]:
        raise StaleAnswer(
            f"the question {gone[0]} is no longer asked, and nothing was changed: an empty message"
            " shows what is"
        )
    answers = {
        name: _answer_from_value(name, waiting[name], client_answer)
        for name, client_answer in by_id.items()
    }
    return {name: answer for name, answer in answers.items() if answer is not None}


def question_of(asked: Asked) -> str:
    """What a person is asked."""
    return kind_of(asked).shown


def _answer_from_text(asked: Asked, text: str) -> Any:
    kind = kind_of(asked)
    return kind.answer(kind.from_text(text))


def _answer_from_value(name: str, asked: Asked, value: Any) -> Any:
    """The resume value that a client's answer is; None where it says nothing."""
    if isinstance(asked.value, Mapping) and asked.is_own:
        return None if read_answer(value, Expected.by(asked.value, name)) is None else value
    kind = kind_of(asked)
    if isinstance(value, Mapping) and "interruptId" in value:
        if value.get("status") == "cancelled":
            return kind.answer(
                iter(kind.cancelled or ({"__agui_cancelled__": True, "interrupt_id": name},))
            )
        value = value.get("payload")
    return kind.answer(
        kind.from_text(value)
        if isinstance(value, str)
        else kind.from_value(json_value(value, "the answer"))
    )
