"""What a waiting thread remembers: the channels of the graph.

The channels are the only truth. Only `messages` has a reducer; the others hold plain JSON that is
replaced as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, NotRequired

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from pydantic import JsonValue
from typing_extensions import TypedDict


class Step(TypedDict):
    """One tool call of a plan."""

    tool: str
    args: dict[str, str]
    """Argument of the tool to the parameter that fills it."""


class StepResult(TypedDict):
    """What came of one step: the tool's result, or the sentence that the user reads instead."""

    status: Literal["ok", "error"]
    value: JsonValue


class PlanExecution(TypedDict):
    """One request on its way from the message that began it to its answer."""

    id: str
    """Id of the message that began it."""
    intent_id: str
    steps: list[Step]
    cursor: int
    """How many steps have run."""
    results: list[StepResult]
    attempts: dict[str, int]
    """Wrong answers so far, by parameter."""
    asked: NotRequired[str | None]
    """Fingerprint of the calls that the user was last asked to confirm: a yes is for no others."""
    confirmed: NotRequired[str | None]
    """Fingerprint of the calls the user said yes to: another value of any argument is not
    confirmed."""
    approved: NotRequired[str]
    """Which values the user approved in an answer that gave them (`Playbook.approval`)."""
    choices: NotRequired[dict[str, list[JsonValue]]]
    """Readings of what the user said for a parameter: which is meant is asked, or whether the only
    one is."""
    halves: NotRequired[dict[str, str]]
    """Days that the user named for a moment, without its time, by parameter."""
    skipped: NotRequired[list[str]]
    """Parameters that the user does not have, and without which the tools can be called."""
    expires_at: NotRequired[str]
    """When the question that waits expires, in UTC; only where it has a timeout."""
    expired: NotRequired[bool]
    """Whether that has passed: the user is asked whether to go on."""
    given_up: NotRequired[bool]
    """Whether a question was answered wrongly too often: it goes on only when it is asked for
    again."""
    unread: NotRequired[bool]
    """Whether something that the user said to it could not be read: it is read back before its
    first tool runs."""
    unsure: NotRequired[bool]
    """Whether the user may have asked for something else: it is read back as well, unless the user
    answers one of its questions."""
    denied: NotRequired[bool]
    """Whether the user said no to what was asked last, and is asked what to change."""


def choices_of(plan: PlanExecution, name: str | None) -> list[JsonValue]:
    """The values of a parameter that the user is to choose from; one alone is to be confirmed."""
    return plan.get("choices", {}).get(name or "", [])


def known_values(plan: PlanExecution, params: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The values that are known, and what is known of those that were not said whole."""
    return {**plan.get("halves", {}), **params}


def in_doubt(plan: PlanExecution, name: str | None) -> bool:
    """Whether a value of the parameter is known that only has to be confirmed."""
    return len(choices_of(plan, name)) == 1


class Suspended(TypedDict):
    """A request that another one interrupted, with the values it had."""

    plan: PlanExecution
    params: dict[str, JsonValue]


class Summary(TypedDict):
    """An extract of the conversation up to and including the message with the id `through`."""

    text: str
    through: str


class SessionInput(TypedDict):
    """What a caller gives: messages, nothing else."""

    messages: Annotated[list[AnyMessage], add_messages]


class SessionState(SessionInput):
    """The channels of the waiting graph's state."""

    params: dict[str, JsonValue]
    sensitive_params: dict[str, bool]
    """Whether a parameter is sensitive, as declared by the catalogs of the graphs that have run on
    the thread. Once true, it stays true. A value whose parameter is not here is not shown."""
    known_secrets: dict[str, JsonValue]
    """Digests of all values of sensitive parameters that the thread was given, whichever request
    took them (`Known`)."""
    waiting_for_param: str | None
    plan: PlanExecution | None
    suspended: list[Suspended]
    last_intent_id: str | None
    last_result: JsonValue
    summary: Summary | None
    understood: list[dict[str, JsonValue]]
    """What the latest message was read as: its commands, without sensitive values."""
