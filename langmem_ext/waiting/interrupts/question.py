"""A question of ours as the payload of an interrupt that every client can show and answer.

The keys are those of LangGraph's own clients, of MCP elicitation in the form in which langchain's
adapter raises it, of LangChain's `HITLRequest`, of the Agent Inbox, and of AG-UI's interrupts.
`resume` reads what they answer. Pure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Annotated, Any, Final

from pydantic import AfterValidator, ConfigDict, JsonValue, RootModel, WithJsonSchema

from langmem_ext._internal.names import in_words
from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.param import Param, ParamType, label
from langmem_ext.waiting.catalog.playbook import Params, Playbook
from langmem_ext.waiting.interrupts.resume import Expected, read_answer
from langmem_ext.waiting.policy.asking import Question, value_in_words, value_schema
from langmem_ext.waiting.state import PlanExecution, choices_of, in_doubt

_FORMATS: Final = frozenset({"date", "email", "uri"})
"""Formats of a text that a form of MCP may have; our moments are local, and no `date-time`."""

_SPELLED: Final[Mapping[str, str]] = {
    ParamType.TIME: "HH:MM",
    ParamType.DATETIME: "YYYY-MM-DDTHH:MM",
    ParamType.DURATION: "ISO 8601, like PT1H30M",
}
"""How values are written whose form no format of MCP's says."""


@dataclass(frozen=True, slots=True)
class Form:
    """What a question shows and takes, for a client that shows forms.

    Attributes:
        action: What the answer is for: an intent, or a tool.
        fields: The JSON schema of each value that is asked for, by parameter.
        args: What is known, by parameter; of what is asked for the value that is proposed, or "".
        confirms: Whether it takes a yes to what is known.
        required: Whether each value that is asked for is needed.
    """

    action: str
    fields: Mapping[str, Mapping[str, Any]]
    args: Mapping[str, JsonValue]
    confirms: bool = False
    required: bool = True


def payload_of(
    playbook: Playbook, plan: PlanExecution, params: Params, asked: Question
) -> dict[str, Any]:
    """The payload of the interrupt that asks a waiting graph's question.

    A question for a sensitive value is no form: MCP forbids it, and other clients show and keep
    what is typed into one.
    """
    expires_at = None if plan.get("expired") else plan.get("expires_at")
    form = None if asked.param in playbook.sensitive else _form(playbook, plan, params, asked.param)
    return for_all_clients(asked.payload(), form, expires_at)


def _form(playbook: Playbook, plan: PlanExecution, params: Params, name: str) -> Form:
    shown = [other for other in playbook.uses(plan) if other not in playbook.sensitive]
    args: dict[str, JsonValue] = {other: params.get(other, "") for other in shown}
    if plan.get("expired") or (name == CONFIRMATION and not plan.get("denied")):
        return Form(
            plan["intent_id"],
            {CONFIRMATION: {"type": "boolean", "title": "Go ahead"}},
            args,
            confirms=True,
        )
    if name == CONFIRMATION:  # what should be changed?
        fields = {other: form_field(playbook.param(other), params.get(other)) for other in shown}
        return Form(plan["intent_id"], fields, args, required=False)
    choices = choices_of(plan, name)
    proposed = choices[0] if in_doubt(plan, name) else None
    field = form_field(playbook.param(name), proposed)
    if len(choices) > 1:
        field["oneOf"] = [{"const": choice, "title": value_in_words(choice)} for choice in choices]
    return Form(
        plan["intent_id"], {name: field}, args if proposed is None else {**args, name: proposed}
    )


def for_all_clients(
    question: Mapping[str, Any], form: Form | None, expires_at: str | None
) -> dict[str, Any]:
    """A question with the keys of every client.

    Args:
        question: The keys `param`, `prompt`, `attempt`, `examples` and `schema`.
        form: How it is shown as a form; None: not at all.
        expires_at: When it expires, in UTC, ISO 8601; None: never.
    """
    prompt = question["prompt"]
    payload = {**question, "message": prompt, "description": prompt, "reason": "input_required"}
    if expires_at is not None:
        payload["expires_at"] = expires_at
    return payload if form is None else payload | _keys_of_forms(question["param"], prompt, form)


def _keys_of_forms(param: str, prompt: str, form: Form) -> dict[str, Any]:
    fields = {name: dict(field) for name, field in form.fields.items()}
    schema = {
        "type": "object",
        "required": [*fields] if form.required else [],
        "properties": fields,
    }
    args, yes = dict(form.args), form.confirms or bool(form.args.get(param))
    decisions = ["approve", "edit", "reject", "respond"] if yes else ["respond", "edit", "reject"]
    allowed = {"allow_ignore": True, "allow_respond": True, "allow_edit": True, "allow_accept": yes}
    return {
        "type": "mcp_elicitation",
        "tool_name": form.action,
        "requests": [{"key": param, "message": prompt, "mode": "form", "requested_schema": schema}],
        "action_requests": [
            {"name": form.action, "args": args, "arguments": args, "description": prompt}
        ],
        "review_configs": [{"action_name": form.action, "allowed_decisions": decisions}],
        "action_request": {"action": form.action, "args": args},
        "config": allowed,
        "reason": "confirmation" if form.confirms else "input_required",
        "response_schema": schema,
    }


def form_field(param: Param, proposed: JsonValue = None) -> dict[str, Any]:
    """The schema of a parameter's value as a form of MCP may hold it: flat, and without patterns.

    Args:
        param: The parameter.
        proposed: A value that the form begins with.
    """
    value = value_schema(param)
    field = {"type": value.get("type", "string"), "title": in_words(param.name).capitalize()}
    if value.get("format") in _FORMATS:
        field["format"] = value["format"]
    if field["type"] == "string" and "enum" in value:
        options = [
            {"const": option, "title": str(label(param, option))} for option in value["enum"]
        ]
        field["oneOf"] = options
    elif field["type"] != "string" and param.bounds:
        ends = zip(("minimum", "maximum"), param.bounds, strict=True)
        field |= {name: end for name, end in ends if isinstance(end, int | float)}
    if description := _description(param, value):
        field["description"] = description
    return field if proposed is None else {**field, "default": proposed}


def _description(param: Param, value: Mapping[str, Any]) -> str:
    """What a value is, and how it is written."""
    parts = [param.description] if param.description else []
    if spelled := _SPELLED.get(param.type):
        parts.append(spelled)
    elif "enum" not in value and param.examples:
        parts.append(f"like {param.examples[0]}")
    elif value.get("type") != "string" and "enum" in value:
        parts.append(f"one of {', '.join(map(str, value['enum']))}")
    return ", ".join(parts)


def answer_type(payload: Mapping[str, Any]) -> type[RootModel[Any]] | None:
    """The type that LangGraph checks an answer against before the node gets it.

    A wrong answer leaves the question open. None for a question for a sensitive value: LangGraph
    keeps an answer that it has refused.
    """
    schema = payload.get("response_schema")
    return None if schema is None else _answer_type(Expected.by(payload), json.dumps(schema))


@lru_cache(maxsize=256)
def _answer_type(expected: Expected, schema: str) -> type[RootModel[Any]]:
    def check(value: object) -> object:
        read_answer(value, expected)
        return value

    class _Answer(RootModel[Any]):
        model_config = ConfigDict(title="Answer", hide_input_in_errors=True)
        root: Annotated[Any, AfterValidator(check), WithJsonSchema(json.loads(schema))]

    return _Answer
