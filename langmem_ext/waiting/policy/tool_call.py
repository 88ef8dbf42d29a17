"""One tool call of a plan: the tool's input, and what its outcome changes.

Pure functions: the node runs the tool.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import BaseTool
from pydantic import JsonValue

from langmem_ext._internal.json import json_value
from langmem_ext._internal.names import in_words
from langmem_ext.errors import InvalidInput
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.policy.session import Session
from langmem_ext.waiting.policy.value_text import in_text
from langmem_ext.waiting.sensitive import Known, annotated, covered, held, marked, secrets_in
from langmem_ext.waiting.state import PlanExecution, StepResult

KEY_ARGUMENT = "idempotency_key"
"""A tool that declares this as an injected argument is given a key that is the same when a call is
repeated after a crash."""

LONGEST_SUMMARY = 120


@dataclass(frozen=True, slots=True)
class Call:
    """A plan's next tool call.

    Attributes:
        tool: The tool.
        invocation: The call as the tool is invoked with it, injected key included.
        message: The call as the log shows it.
    """

    tool: BaseTool
    invocation: dict[str, Any]
    message: AIMessage


def plan_call(playbook: Playbook, session: Session, plan: PlanExecution, thread_id: str) -> Call:
    """The call of the plan's next step, with the values known now."""
    step = plan["steps"][plan["cursor"]]
    tool = playbook.tools[step["tool"]]
    arguments = playbook.arguments(step, session.params)
    key = playbook.idempotency_key(thread_id, plan, session.params)
    call_id = f"call_{key[:24]}"
    args = (
        {KEY_ARGUMENT: key, **arguments}
        if KEY_ARGUMENT in getattr(tool.get_input_schema(), "model_fields", {})
        else arguments
    )
    message = AIMessage(
        "", tool_calls=[{"name": tool.name, "args": arguments, "id": call_id, "type": "tool_call"}]
    )
    return Call(
        tool, {"name": tool.name, "args": args, "id": call_id, "type": "tool_call"}, message
    )


def returned(call: Call, output: object) -> ToolMessage:
    """What a tool returned, as the message that answers its call."""
    if isinstance(output, ToolMessage):
        return output
    return ToolMessage(str(output), tool_call_id=call.invocation["id"], name=call.tool.name)


def failed(call: Call, text: str) -> ToolMessage:
    """A failure, described by `text`, as the message that answers the call."""
    return ToolMessage(
        text, tool_call_id=call.invocation["id"], name=call.tool.name, status="error"
    )


def plan_outcome(
    playbook: Playbook,
    session: Session,
    plan: PlanExecution,
    call: Call,
    answer: ToolMessage,
    known: Known,
) -> dict[str, Any]:
    """The channels after the call: both messages, the plan's next state, and the parameters.

    The messages are marked for the sensitive values among these, and for those that are `known`
    besides.
    """
    ok = answer.status != "error"
    value = result_of(answer) if ok else answer.text
    result = StepResult(status="ok" if ok else "error", value=value)
    params = {**_derived(playbook, value), **session.params} if ok else dict(session.params)
    known = known.with_values(secrets_in(playbook.sensitive, params, value))
    used = (
        playbook.sensitive.intersection(plan["steps"][plan["cursor"]]["args"].values())
        & params.keys()
    )
    summary = _summary(call.tool.name, value, playbook) if ok else f"{call.tool.name} failed"
    if known.find(summary):
        summary = f"{call.tool.name} done"
    noted = annotated(answer, "summary", summary)
    return {
        "messages": [
            marked(call.message, used | held(call.message, known)),
            covered(noted, known),
        ],
        "plan": PlanExecution(
            **{**plan, "cursor": plan["cursor"] + ok, "results": [*plan["results"], result]}
        ),
        "params": params,
        "last_result": value if ok else {"error": value},
    }


def result_of(answer: ToolMessage) -> JsonValue:
    """The tool's result as plain JSON: its artifact, an object or list in its text, or the text."""
    if isinstance(answer.artifact, dict | list) and (plain := _plain(answer.artifact)) is not None:
        return plain
    text = answer.text
    if text[:1] in ("{", "["):
        with suppress(ValueError, RecursionError, InvalidInput):
            return json_value(json.loads(text), "the result")
    return text


def _plain(value: object) -> JsonValue:
    with suppress(TypeError, ValueError, RecursionError, InvalidInput):
        return json_value(json.loads(json.dumps(value)), "the result")
    return None


def _derived(playbook: Playbook, value: JsonValue) -> dict[str, JsonValue]:
    """Parameters that the result tells: its keys that the catalog declares."""
    if not isinstance(value, dict):
        return {}
    return {
        name: item
        for name, item in value.items()
        if name in playbook.catalog.params and isinstance(item, str | int | float)
    }


def _summary(tool: str, value: JsonValue, playbook: Playbook) -> str:
    """What the tool found, in one short line without sensitive values."""
    if isinstance(value, Mapping):
        shown = [
            (name, item)
            for name, item in value.items()
            if name not in playbook.sensitive and not isinstance(item, dict | list)
        ]
        text = ", ".join(f"{in_words(name)} {in_text(item)}" for name, item in shown)
    else:
        text = in_text(value) if isinstance(value, str) else "done"
    line = " ".join(f"{tool}: {text or 'done'}".split())
    return line if len(line) <= LONGEST_SUMMARY else line[: LONGEST_SUMMARY - 1] + "…"
