"""Arguments that a model's tool calls lack: the question for them, and what an answer fills.

Pure functions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

from langchain_core.messages import ToolCall
from langchain_core.tools import BaseTool
from pydantic import JsonValue

from langmem_ext._internal.names import in_words
from langmem_ext.waiting.catalog.param import Param
from langmem_ext.waiting.catalog.parse import complete
from langmem_ext.waiting.catalog.tool_params import completed
from langmem_ext.waiting.catalog.tool_schema import (
    Schema,
    ToolArgument,
    field_error,
    param_from,
    tool_arguments,
)
from langmem_ext.waiting.extract import Reply, extract
from langmem_ext.waiting.interrupts.question import Form, form_field
from langmem_ext.waiting.interrupts.resume import Answer
from langmem_ext.waiting.policy.asking import value_schema, wording
from langmem_ext.waiting.policy.table import as_sentence
from langmem_ext.waiting.understand.acts.steering import is_cancel
from langmem_ext.waiting.understand.answers.structured_answer import read_value
from langmem_ext.waiting.understand.commands import Refuse
from langmem_ext.waiting.understand.values import Reading, read_values

_SEPARATOR: Final = re.compile(r"\s*(?:[,;\n]|\s(?:and|&)\s)\s*")
"""What is between the entries of a list that a user writes."""


@dataclass(frozen=True, slots=True)
class Gap:
    """A value that tool calls lack, and that the user is asked for.

    Attributes:
        param: What it is; its name tells it apart from the others.
        tool: The tool of the first call that lacks it.
        argument: The argument that it fills.
        calls: The ids of the calls that lack it.
        attempt: Which time it is asked for, from 1.
        problem: What was wrong with the value before, as a sentence.
    """

    param: Param
    tool: BaseTool
    argument: str
    calls: tuple[str, ...]
    attempt: int = 1
    problem: str = ""

    @property
    def schema(self) -> Schema:
        """The JSON schema of the argument."""
        return tool_arguments(self.tool)[self.argument].schema

    @property
    def is_composed(self) -> bool:
        """Whether the value is a list or an object, not one value that is read from words."""
        return self.schema.get("type") in ("array", "object")

    @property
    def fields(self) -> dict[str, Any]:
        """What a form asks for: the parts of an object, or the value."""
        parts = self.schema.get("properties")
        if not isinstance(parts, Mapping):
            field = form_field(self.param)
            spelled = "with commas between them" if self.is_composed else ""
            return {self.param.name: {**field, "description": spelled} if spelled else field}
        return {
            name: form_field(param_from(ToolArgument(name, False, schema), name))
            for name, schema in parts.items()
            if isinstance(schema, Mapping)
        }


@dataclass(frozen=True, slots=True)
class Asking:
    """The calls of one message, while the user is asked for what they lack.

    Attributes:
        calls: The calls, with what is known of their arguments.
        gaps: What is still to be asked for.
        refused: Why calls are not made, by the names of the parameters.
    """

    calls: tuple[ToolCall, ...]
    gaps: tuple[Gap, ...]
    refused: Mapping[str, str] = field(default_factory=dict)

    def current(self) -> tuple[Gap, ...]:
        """The gaps asked about now: all single values, then composed or sensitive ones, alone."""
        plain = tuple(gap for gap in self.gaps if not gap.param.sensitive and not gap.is_composed)
        return plain or self.gaps[:1]


class Tools:
    """The tools of an agent, as far as users may be asked for their arguments.

    Args:
        tools: The tools.
        params: Declarations, by argument or by `tool.argument`; what they leave out the tools'
            schemas say.
    """

    def __init__(self, tools: Iterable[BaseTool], params: Mapping[str, Param]) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._arguments = {name: tool_arguments(tool) for name, tool in self._tools.items()}
        self._params = params

    def asking(self, calls: Sequence[ToolCall]) -> Asking:
        """What these calls lack."""
        gaps: dict[str, Gap] = {}
        for call in calls:
            tool, call_id = self._tools.get(call["name"]), call["id"]
            if tool is None or call_id is None:
                continue
            for argument in self._arguments[tool.name].values():
                problem = _problem(tool, argument, call["args"])
                if problem is not None:
                    self._add(gaps, tool, argument, call_id, problem)
        return Asking(tuple(calls), tuple(gaps.values()))

    def _add(
        self,
        gaps: dict[str, Gap],
        tool: BaseTool,
        argument: ToolArgument,
        call_id: str,
        problem: str,
    ) -> None:
        """One gap for the same parameter of different tools; two for two calls of the same tool."""
        name, count = argument.name, 1
        while (gap := gaps.get(name)) is not None:
            if gap.tool is not tool and gap.param.type == self._param(tool, argument, name).type:
                gaps[name] = replace(gap, calls=(*gap.calls, call_id))
                return
            count += 1
            name = f"{argument.name}_{count}"
        gaps[name] = Gap(
            self._param(tool, argument, name), tool, argument.name, (call_id,), problem=problem
        )

    def _param(self, tool: BaseTool, argument: ToolArgument, name: str) -> Param:
        declared = self._params.get(f"{tool.name}.{argument.name}") or self._params.get(
            argument.name
        )
        made = param_from(argument, argument.name)
        param = (
            complete(made)
            if declared is None
            else completed(declared, declared.model_fields_set, made)
        )
        return param.model_copy(update={"name": name})


def _problem(tool: BaseTool, argument: ToolArgument, args: Mapping[str, Any]) -> str | None:
    """What is wrong with an argument, as a sentence; empty if missing, None if nothing is."""
    value = args.get(argument.name)
    if argument.schema.get("type") == "null":
        return None
    if value is None or (isinstance(value, str) and not value.strip()):
        return "" if argument.required else None
    error = field_error(tool, argument.name, value)
    return None if error is None else as_sentence(error)


def question_for(asking: Asking, *, late: bool = False) -> dict[str, Any]:
    """The question for what is asked now, as `for_all_clients` takes it.

    Args:
        asking: The calls.
        late: Whether the question before has expired.
    """
    gaps = asking.current()
    first = gaps[0]
    asked = [" ".join([gap.problem, wording(gap.param, gap.attempt)]).strip() for gap in gaps]
    prompt = (
        asked[0]
        if len(asked) == 1
        else "\n".join(["I need some details:", *(f"- {question}" for question in asked)])
    )
    return {
        "param": first.param.name,
        "prompt": f"It has been a while. {prompt}" if late else prompt,
        "attempt": max(gap.attempt for gap in gaps),
        "examples": [*first.param.examples],
        "schema": value_schema(first.param),
    }


def form_for(asking: Asking) -> Form | None:
    """The same as a form; None for a sensitive value."""
    gaps = asking.current()
    if any(gap.param.sensitive for gap in gaps):
        return None
    tools = dict.fromkeys(gap.tool.name for gap in gaps)
    fields = {name: field for gap in gaps for name, field in gap.fields.items()}
    return Form(", ".join(tools), fields, dict.fromkeys((gap.param.name for gap in gaps), ""))


def answered(asking: Asking, answer: Answer, now: datetime) -> Asking:
    """The calls after an answer: with the values that it gives, and what is asked for again.

    Args:
        asking: The calls.
        answer: What the user said.
        now: When it was written.
    """
    gaps = asking.current()
    if answer.act == "cancel" or (answer.act == "words" and is_cancel(answer.text)):
        return _without(asking, asking.gaps, "The user cancelled.")
    if answer.act == "decline" or _is_declined(gaps, answer, now):
        return _without(asking, gaps, "The user will not give it.")
    params = [gap.param for gap in gaps]
    values: dict[str, JsonValue | Refuse]
    if gaps[0].is_composed:
        values = {gaps[0].param.name: _composed(gaps[0], answer)}
    elif answer.act == "values":
        values = {
            param.name: read_value(param, answer.values[param.name], now)
            for param in params
            if param.name in answer.values
        }
    else:
        reading = Reading(answer.text, now, asked=params[0].name, prompt=params[0].prompt)
        values = {name: read.value for name, read in read_values(params, reading).items()}
    for gap in gaps:
        asking = _taken(asking, gap, values.get(gap.param.name))
    return asking


def _composed(gap: Gap, answer: Answer) -> JsonValue | Refuse:
    """A list or an object: as values, the parts of a form, JSON, or a list in words."""
    name, given = gap.param.name, answer.values
    value: JsonValue = given.get(name, {**given}) if answer.act == "values" else answer.text
    if not isinstance(value, str):
        return value
    try:
        read = json.loads(value)
    except ValueError:
        read = None
    if isinstance(read, list | dict):
        return read
    if gap.schema.get("type") == "array":
        return [entry for entry in _SEPARATOR.split(value.strip(" .")) if entry]
    parts = ", ".join(f'"{part}": …' for part in gap.fields)
    return Refuse(name, f"it must be JSON, like {{{parts}}}", by="client")


def _is_declined(gaps: Sequence[Gap], answer: Answer, now: datetime) -> bool:
    if len(gaps) > 1 or answer.act != "words":
        return False
    param = gaps[0].param
    return extract(param, Reply(answer.text, prompt=param.prompt, now=now)).status == "declined"


def _taken(asking: Asking, gap: Gap, value: JsonValue | Refuse) -> Asking:
    """The calls with a value for a gap; an invalid one is asked for again, up to a limit."""
    if isinstance(value, Refuse):
        problem = as_sentence(value.problem)
    elif value is None:
        problem = ""
    else:
        error = field_error(gap.tool, gap.argument, value)
        if error is None:
            return _filled(asking, gap, value)
        problem = as_sentence(error)
    if gap.attempt >= gap.param.max_attempts and gap.param.on_exhausted != "ask":
        return _without(
            asking,
            (gap,),
            f"The user was asked {gap.attempt} times and gave no value that can be used.",
        )
    again = replace(gap, attempt=gap.attempt + 1, problem=problem)
    return replace(asking, gaps=tuple(again if other is gap else other for other in asking.gaps))


def _filled(asking: Asking, gap: Gap, value: JsonValue) -> Asking:
    calls = tuple(
        (
            ToolCall(**{**call, "args": {**call["args"], gap.argument: value}})
            if call["id"] in gap.calls
            else call
        )
        for call in asking.calls
    )
    return replace(
        asking, calls=calls, gaps=tuple(other for other in asking.gaps if other is not gap)
    )


def _without(asking: Asking, gaps: Sequence[Gap], why: str) -> Asking:
    refused = {**asking.refused, **{in_words(gap.argument): why for gap in gaps}}
    return replace(
        asking, gaps=tuple(gap for gap in asking.gaps if gap not in gaps), refused=refused
    )
