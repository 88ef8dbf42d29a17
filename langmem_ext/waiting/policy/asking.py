"""The question for a parameter: each attempt's wording, and the description for a client.

Pure: the node that says the question and the node that waits for its answer each make it from the
state, and make the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from pydantic import JsonValue

from langmem_ext._internal.names import in_words
from langmem_ext.messages.annotations import HIDDEN
from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.intent import Intent, template_fields
from langmem_ext.waiting.catalog.param import Param, ParamType, label
from langmem_ext.waiting.catalog.playbook import Params, Playbook
from langmem_ext.waiting.policy.value_text import fill, in_text
from langmem_ext.waiting.state import PlanExecution, choices_of, in_doubt

_SCHEMAS: Mapping[str, dict[str, Any]] = {
    ParamType.BOOLEAN: {"type": "boolean"},
    ParamType.INTEGER: {"type": "integer"},
    ParamType.NUMBER: {"type": "number"},
    ParamType.MONEY: {"type": "number"},
    ParamType.DATE: {"type": "string", "format": "date"},
    ParamType.TIME: {"type": "string", "pattern": r"^([01]\d|2[0-3]):[0-5]\d$"},
    ParamType.DATETIME: {
        "type": "string",
        "pattern": r"^\d{4}-\d\d-\d\dT([01]\d|2[0-3]):[0-5]\d$",
    },
    ParamType.DURATION: {"type": "string", "format": "duration"},
    ParamType.EMAIL: {"type": "string", "format": "email"},
    ParamType.URL: {"type": "string", "format": "uri"},
}


@dataclass(frozen=True, slots=True)
class Question:
    """One asking for one parameter.

    Attributes:
        param: The parameter.
        prompt: What the user is asked.
        attempt: Which time it is asked, from 1; what a wrong answer adds to.
        examples: Values as a user would write them.
        schema: JSON schema of the value.
    """

    param: str
    prompt: str
    attempt: int
    examples: tuple[str, ...]
    schema: dict[str, Any]

    def payload(self) -> dict[str, Any]:
        """The question as plain JSON, as the interrupt carries it."""
        return {
            "param": self.param,
            "prompt": self.prompt,
            "attempt": self.attempt,
            "examples": list(self.examples),
            "schema": self.schema,
        }


def question(playbook: Playbook, plan: PlanExecution, params: Params, name: str) -> Question:
    """The question for the parameter `name` or `CONFIRMATION`, worded for its attempt."""
    param = playbook.param(name)
    attempt = plan["attempts"].get(name, 0) + 1
    return Question(
        param=name,
        prompt=_prompt(playbook, plan, params, param, attempt),
        attempt=attempt,
        examples=_examples(param),
        schema=value_schema(param),
    )


def _prompt(
    playbook: Playbook, plan: PlanExecution, params: Params, param: Param, attempt: int
) -> str:
    """What is asked: whether to go on, which reading was meant, to go ahead, or for the value."""
    if plan.get("expired"):
        return playbook.catalog.replies.expired.replace(
            "{request}", described(playbook.intent_of(plan))
        )
    if asked := _which(playbook, plan, param):
        return asked if attempt == 1 or not in_doubt(plan, param.name) else f"{asked} {YES_OR_NO}"
    if param.name != CONFIRMATION:
        return wording(param, attempt)
    asked = _confirmation(playbook, plan, params)
    return asked if attempt == 1 else f"{asked} {YES_OR_NO}"


YES_OR_NO: Final = "Please say yes or no."


def described(intent: Intent) -> str:
    """What an intent does, as part of a sentence: "book a table"."""
    text = intent.description.rstrip(".") or in_words(intent.id)
    return text[:1].lower() + text[1:] if text[1:2].islower() else text


def _which(playbook: Playbook, plan: PlanExecution, param: Param) -> str:
    """The question which reading is meant, or whether the only one is; empty when none is open."""
    choices, replies = choices_of(plan, param.name), playbook.catalog.replies
    if not choices:
        return ""
    if in_doubt(plan, param.name):
        return replies.doubt.replace("{value}", in_text(label(param, choices[0])))
    return replies.which.replace(
        "{choices}", " or ".join(value_in_words(label(param, choice)) for choice in choices)
    )


def value_in_words(value: JsonValue) -> str:
    """A value as a question names it: "7:00 in the evening"."""
    text = in_text(value)
    if not re.fullmatch(r"(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d", text):
        return text
    hour, minutes = int(text[-5:-3]), text[-2:]
    part = "in the morning" if hour < 12 else "in the afternoon" if hour < 18 else "in the evening"
    return f"{hour % 12 or 12}:{minutes} {part}"


def wording(param: Param, attempt: int) -> str:
    """The attempt's wording: the prompt, then the clarified prompt, then examples as well."""
    if attempt == 1:
        return param.prompt
    clarified = param.clarified_prompt or param.prompt
    if attempt == 2 and param.clarified_prompt:
        return clarified
    examples = " or ".join(
        example for example in map(str, _shown_examples(param)) if example not in clarified
    )
    return f"{clarified} For example: {examples}" if examples else clarified


def _examples(param: Param) -> tuple[str, ...]:
    return param.examples or tuple(param.enum)


def _shown_examples(param: Param) -> list[JsonValue]:
    return [label(param, example) for example in _examples(param)[:4]]


def _confirmation(playbook: Playbook, plan: PlanExecution, params: Params) -> str:
    """The intent's own question with its values; those that it does not name are put before it.

    A yes is for what was shown, so everything is shown.
    """
    intent = playbook.intent_of(plan)
    if plan.get("denied"):
        return playbook.catalog.replies.change
    template = playbook.confirm_question(plan) or ""
    plain = playbook.shown(params)
    shown = {
        name: HIDDEN if name in playbook.sensitive else plain[name]
        for name in playbook.uses(plan)
        if name in params
    }
    asked = fill(template, shown)
    named = template_fields(template)
    unnamed = {name: value for name, value in shown.items() if name not in named}
    if not unnamed:
        return asked
    values = ", ".join(f"{in_words(name)} {in_text(value)}" for name, value in unnamed.items())
    return f"{intent.description.rstrip('.') or in_words(intent.id)} ({values}). {asked}"


_READ: Final[Mapping[str, Callable[[str], JsonValue]]] = {
    ParamType.INTEGER: int,
    ParamType.NUMBER: float,
    ParamType.MONEY: float,
}
"""How a possible value, which a catalog has as text, is a value of its type."""


def value_schema(param: Param) -> dict[str, Any]:
    """The JSON schema of a parameter's value."""
    own: dict[str, Any] = {"type": "string"} if isinstance(param.type, ParamType) else {}
    schema: dict[str, JsonValue] = dict(_SCHEMAS.get(param.type, own))
    if param.type == ParamType.DURATION and param.units:
        schema = {"type": "number"}
    if param.enum and not param.open_values and param.type is not ParamType.BOOLEAN:
        schema["enum"] = [_READ.get(param.type, str)(value) for value in param.enum]
    elif param.pattern:
        schema["pattern"] = f"^(?:{param.pattern})$"
    if param.description:
        schema["description"] = param.description
    return schema
