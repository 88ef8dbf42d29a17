"""A sound reading of the channels: what is in them and makes sense together.

A person may edit any channel at any time, so nothing that decides reads the channels themselves.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import JsonValue, TypeAdapter, ValidationError

from langmem_ext.messages.annotations import HIDDEN
from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.sensitive import Known
from langmem_ext.waiting.state import PlanExecution, Summary, Suspended

_PLAN: TypeAdapter[PlanExecution] = TypeAdapter(PlanExecution)


@dataclass(frozen=True, slots=True)
class Session:
    """The channels as they make sense together. Deciding takes one and returns the next.

    Attributes:
        params: Known values; none of them is None.
        waiting_for: The parameter (or `CONFIRMATION`) that is asked for; None for a wait that is
            void.
        plan: The running request.
        suspended: Interrupted requests, the latest last.
        last_intent_id: What the user asked for last.
        last_result: What the last tool returned.
        understood: What the message before was read as.
    """

    params: Mapping[str, JsonValue] = field(default_factory=dict)
    waiting_for: str | None = None
    plan: PlanExecution | None = None
    suspended: tuple[Suspended, ...] = ()
    last_intent_id: str | None = None
    last_result: JsonValue = None
    understood: tuple[Mapping[str, Any], ...] = ()

    def channels(self) -> dict[str, Any]:
        """The session as channel values."""
        return {
            "params": dict(self.params),
            "waiting_for_param": self.waiting_for,
            "plan": self.plan,
            "suspended": list(self.suspended),
            "last_intent_id": self.last_intent_id,
            "last_result": self.last_result,
        }


def read_session(state: Mapping[str, Any], playbook: Playbook) -> Session:
    """The sound part of `state`, whatever was edited into it.

    A plan that is malformed or cannot run is no plan. A wait without a plan, or for a parameter
    that is unknown, has a value or is not needed, is void. So is the wait for a confirmation of
    other calls than the user was asked about.
    """
    plan = _read_plan(state.get("plan"), playbook)
    last_intent_id = state.get("last_intent_id")
    session = Session(
        params=_read_params(state.get("params")),
        plan=plan,
        suspended=_read_suspended(state.get("suspended"), playbook),
        last_intent_id=last_intent_id if isinstance(last_intent_id, str) else None,
        last_result=state.get("last_result"),
        understood=_read_understood(state.get("understood")),
    )
    return replace(
        session, waiting_for=_read_wait(state.get("waiting_for_param"), session, playbook)
    )


def _read_params(value: object) -> dict[str, JsonValue]:
    return (
        {name: known for name, known in value.items() if known is not None}
        if isinstance(value, dict)
        else {}
    )


def _read_understood(value: object) -> tuple[Mapping[str, Any], ...]:
    return (
        tuple(command for command in value if isinstance(command, dict))
        if isinstance(value, list)
        else ()
    )


def _read_plan(value: object, playbook: Playbook) -> PlanExecution | None:
    try:
        plan = _PLAN.validate_python(value, strict=True)
    except ValidationError:
        return None
    return plan if playbook.runs(plan) else None


def _read_suspended(value: object, playbook: Playbook) -> tuple[Suspended, ...]:
    suspended = []
    for entry in value if isinstance(value, list) else ():
        if isinstance(entry, dict) and (plan := _read_plan(entry.get("plan"), playbook)):
            suspended.append(Suspended(plan=plan, params=_read_params(entry.get("params"))))
    return tuple(suspended)


def _read_wait(value: object, session: Session, playbook: Playbook) -> str | None:
    if session.plan is None or not isinstance(value, str):
        return None
    missing = playbook.missing(session.plan, session.params)
    if value == CONFIRMATION:
        asked = session.plan.get("asked") == playbook.fingerprint(session.plan, session.params)
        wanted = session.plan.get("expired") or playbook.unconfirmed(session.plan, session.params)
        return value if asked and not missing and wanted else None
    return value if value in missing else None


def read_sensitive(state: Mapping[str, Any], playbook: Playbook) -> dict[str, bool]:
    """Whether each parameter is sensitive on this thread, for the graph that goes on with it.

    A parameter is sensitive if the thread or the catalog says so. The catalog says that one is
    harmless; but not of a value that another graph has left without a declaration.
    """
    sensitive = dict.fromkeys(playbook.catalog.params, False)
    if state.get("last_intent_id") is not None and not _is_own(state, playbook):
        sensitive |= dict.fromkeys(_read_params(state.get("params")), True)
    return sensitive | _read_declared(state) | dict.fromkeys(playbook.sensitive, True)


def shown_params(state: Mapping[str, Any], playbook: Playbook) -> dict[str, JsonValue]:
    """The parameters as a person is shown them: no value but of those that are declared harmless.

    The thread declares them. For a thread of this graph's own, its catalog does too: earlier
    versions declared nothing on the thread.
    """
    sensitive = read_sensitive(state, playbook)
    declared = sensitive if _is_own(state, playbook) else _read_declared(state)
    harmless, known = {name for name in declared if not sensitive[name]}, Known.of(state)
    return {
        name: (known.hide(value) if isinstance(value, str) else value)
        if name in harmless
        else HIDDEN
        for name, value in _read_params(state.get("params")).items()
    }


def _is_own(state: Mapping[str, Any], playbook: Playbook) -> bool:
    """Whether the last request was one of this catalog."""
    return state.get("last_intent_id") in tuple(playbook.intents)


def _read_declared(state: Mapping[str, Any]) -> dict[str, bool]:
    declared = state.get("sensitive_params")
    items = declared.items() if isinstance(declared, dict) else ()
    return {name: flag for name, flag in items if isinstance(flag, bool)}


def in_use(session: Session, playbook: Playbook) -> frozenset[str]:
    """Every parameter that a message may give a value for.

    They are those of the running request, of the suspended ones, and of the last one, which may be
    corrected.
    """
    plans = [entry["plan"] for entry in session.suspended]
    if session.plan is not None:
        plans.append(session.plan)
    last = playbook.intents.get(session.last_intent_id or "")
    if last is not None:
        plans.append(playbook.begin(last, ""))
    return frozenset(name for plan in plans for name in playbook.uses(plan))


def results_of(plan: object) -> list[object]:
    """What the tools of a plan have returned so far, whatever was edited into it."""
    results = plan.get("results") if isinstance(plan, dict) else None
    return (
        [result.get("value") for result in results if isinstance(result, dict)]
        if isinstance(results, list)
        else []
    )


def read_summary(state: Mapping[str, Any]) -> Summary | None:
    """The running summary; None for anything else."""
    value = state.get("summary")
    if (
        isinstance(value, dict)
        and isinstance(value.get("text"), str)
        and isinstance(value.get("through"), str)
    ):
        return Summary(text=value["text"], through=value["through"])
    return None
