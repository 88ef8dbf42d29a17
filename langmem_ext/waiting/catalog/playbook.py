"""A catalog with its tools: a request's calls, what it still needs, and the values allowed.

Pure: the tools are asked for their schemas, never called.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence, Set
from copy import copy

from langchain_core.tools import BaseTool
from pydantic import JsonValue

from langmem_ext.errors import InvalidInput
from langmem_ext.types import CONFIRMATION
from langmem_ext.waiting.catalog.catalog import (
    Intent,
    IntentCatalog,
    field_error,
    step_arguments,
    tool_arguments,
)
from langmem_ext.waiting.catalog.param import NONE, Extensions, Param, ParamType, label
from langmem_ext.waiting.catalog.tool_schema import WRONG_FORM
from langmem_ext.waiting.extract.validity import is_allowed
from langmem_ext.waiting.sensitive import familiar_words
from langmem_ext.waiting.state import PlanExecution, Step

Params = Mapping[str, JsonValue]


class Playbook:
    """What can be done for a user, and with which values."""

    def __init__(
        self, catalog: IntentCatalog, tools: Sequence[BaseTool], extensions: Extensions = NONE
    ) -> None:
        """Bind a catalog to its tools.

        Args:
            catalog: What users can ask for.
            tools: The tools that the catalog names; more may be there.
            extensions: Functions of the application that the catalog names.

        Raises:
            CatalogError: Catalog, tools and functions do not fit: every mistake at once.
            InvalidInput: A parameter has the name that confirmations are waited for under.
        """
        self.catalog = catalog.with_tools(tools, extensions)
        self.tools = {tool.name: tool for tool in tools}
        if CONFIRMATION in self.catalog.params:
            raise InvalidInput(
                f"the parameter name {CONFIRMATION!r} is reserved for confirmations: rename it"
            )
        self.intents = {intent.id: intent for intent in self.catalog.intents}
        self._steps = {intent.id: self._steps_of(intent) for intent in self.catalog.intents}
        self._arguments = {tool.name: tool_arguments(tool) for tool in tools}
        self.sensitive = frozenset(
            name for name in self.catalog.params if self.catalog.is_sensitive(name)
        )
        self.familiar = familiar_words(self.catalog)
        self.vocabulary = _vocabulary(self.catalog)
        self.confirmation = Param(
            name=CONFIRMATION, type=ParamType.BOOLEAN, examples=("yes", "no"), on_exhausted="cancel"
        )

    def with_sensitive(self, names: Set[str]) -> Playbook:
        """The same where these parameters are sensitive too, be they in the catalog or not."""
        if names <= self.sensitive:
            return self
        bound = copy(self)
        bound.sensitive = self.sensitive | names
        bound.familiar = familiar_words(self.catalog, bound.sensitive)
        return bound

    @property
    def lasting(self) -> frozenset[str]:
        """The sensitive parameters whose values stay known: all but a yes or a no."""
        params = self.catalog.params
        return frozenset(
            name
            for name in self.sensitive
            if name not in params or params[name].type is not ParamType.BOOLEAN
        )

    @property
    def local(self) -> frozenset[str]:
        """The parameters whose values no model sees: sensitive ones, and those read by rules."""
        return self.sensitive | {
            name for name, param in self.catalog.params.items() if param.local_only
        }

    @property
    def reads_locally(self) -> bool:
        """Whether any parameter is read by rules only.

        Then no summary may show its value to a model.
        """
        return any(param.local_only for param in self.catalog.params.values())

    def _steps_of(self, intent: Intent) -> list[Step]:
        return [
            Step(tool=name, args=step_arguments(intent, self.tools[name])) for name in intent.tool
        ]

    def begin(self, intent: Intent, message_id: str) -> PlanExecution:
        """A plan for `intent`, begun by the message with this id; nothing of it has run."""
        return PlanExecution(
            id=message_id,
            intent_id=intent.id,
            steps=self._steps[intent.id],
            cursor=0,
            results=[],
            attempts={},
            confirmed=None,
        )

    def runs(self, plan: PlanExecution) -> bool:
        """Whether the plan can run.

        Its intent is known, its cursor lies within its steps, and its tools have the arguments that
        its steps fill, from parameters that the catalog declares.
        """
        if plan["intent_id"] not in self.intents or not 0 <= plan["cursor"] <= len(plan["steps"]):
            return False
        return all(
            step["tool"] in self.tools
            and self._arguments[step["tool"]].keys() >= step["args"].keys()
            and self.catalog.params.keys() >= set(step["args"].values())
            for step in plan["steps"]
        )

    def intent_of(self, plan: PlanExecution) -> Intent:
        """The intent of a plan that `runs`."""
        return self.intents[plan["intent_id"]]

    def param(self, name: str) -> Param:
        """The declaration of a parameter, or of the confirmation."""
        return self.confirmation if name == CONFIRMATION else self.catalog.params[name]

    def timeout(self, name: str) -> float | None:
        """Seconds after which the question for a parameter has expired; None: never."""
        own = self.param(name).timeout
        return self.catalog.timeout if own is None else own

    def uses(self, plan: PlanExecution) -> tuple[str, ...]:
        """Every parameter that the plan can take: its intent's, and those that fill its steps."""
        filled = (param for step in plan["steps"] for param in step["args"].values())
        return tuple(dict.fromkeys((*self.intent_of(plan).param_names, *filled)))

    def missing(self, plan: PlanExecution, params: Params) -> tuple[str, ...]:
        """The parameters to ask for before the next step can run, in the order in which to ask."""
        skipped = plan.get("skipped", ())
        return tuple(
            name
            for name in self._needs(plan)
            if name not in params and (name not in skipped or not self.can_skip(plan, name))
        )

    def can_skip(self, plan: PlanExecution, name: str) -> bool:
        """Whether the plan's tools can be called without a parameter."""
        return not any(
            param == name and self._arguments[step["tool"]][argument].required
            for step in plan["steps"]
            for argument, param in step["args"].items()
        )

    def shown(self, params: Params) -> dict[str, JsonValue]:
        """Values as users are shown them."""
        declared = self.catalog.params
        return {
            name: label(declared[name], value) if name in declared else value
            for name, value in params.items()
        }

    def _needs(self, plan: PlanExecution) -> tuple[str, ...]:
        """The parameters that the intent or the next tool requires.

        Later tools may be filled by the result of the next one.
        """
        needed = list(self.intent_of(plan).required)
        if plan["cursor"] < len(plan["steps"]):
            step = plan["steps"][plan["cursor"]]
            arguments = self._arguments[step["tool"]]
            needed += [
                param for argument, param in step["args"].items() if arguments[argument].required
            ]
        return tuple(dict.fromkeys(needed))

    def value_error(self, plan: PlanExecution, name: str, value: JsonValue) -> str | None:
        """Why the plan cannot use this value of a parameter; None when it can.

        The sentence does not contain the value.
        """
        if error := self._own_error(self.catalog.params[name], value):
            return error
        for step in plan["steps"]:
            for argument, param in step["args"].items():
                if param == name and (
                    error := field_error(self.tools[step["tool"]], argument, value)
                ):
                    return error
        return None

    def accepts(self, plan: PlanExecution, values: Params) -> bool:
        """Whether the plan can use at least one of these values."""
        return any(
            name in self.uses(plan) and self.value_error(plan, name, value) is None
            for name, value in values.items()
        )

    @staticmethod
    def _own_error(param: Param, value: JsonValue) -> str | None:
        if not isinstance(value, str | int | float):
            return "it must be one value"
        if not is_allowed(param, value):
            return "it must be one of the possible values"
        if param.pattern and isinstance(value, str) and not re.fullmatch(param.pattern, value):
            return WRONG_FORM
        return param.problem_with(value)

    def sound(self, plan: PlanExecution, params: Params) -> dict[str, JsonValue]:
        """The values without those that the plan takes and cannot use."""
        used = set(self.uses(plan))
        return {
            name: value
            for name, value in params.items()
            if name not in used or self.value_error(plan, name, value) is None
        }

    def ready(self, plan: PlanExecution, params: Params) -> bool:
        """Whether the next step, or else the reply, can run with the values known now."""
        if (
            plan.get("expired")
            or self.missing(plan, params)
            or len(self.sound(plan, params)) < len(params)
        ):
            return False
        return not self.unconfirmed(plan, params)

    def confirm_question(self, plan: PlanExecution) -> str | None:
        """The template of the question before the plan's first tool; None when it wants none.

        Where something that was said could not be read, or the request is not certain, it is read
        back.
        """
        asked = self.catalog.confirm_question(self.intent_of(plan))
        doubt = plan.get("unread") or plan.get("unsure")
        return asked or (self.catalog.replies.read_back if doubt else None)

    def unconfirmed(self, plan: PlanExecution, params: Params) -> bool:
        """Whether the user has yet to say yes to just these calls."""
        if not self.confirm_question(plan) or not plan["steps"]:
            return False
        return plan.get("confirmed") != self.fingerprint(plan, params)

    @staticmethod
    def finished(plan: PlanExecution) -> bool:
        """Whether the tools have run: all of them, or up to one that failed."""
        results = plan["results"]
        return bool(results) and (
            results[-1]["status"] == "error" or plan["cursor"] >= len(plan["steps"])
        )

    @staticmethod
    def arguments(step: Step, params: Params) -> dict[str, JsonValue]:
        """What the step's tool is called with."""
        return {
            argument: params[param] for argument, param in step["args"].items() if param in params
        }

    def fingerprint(self, plan: PlanExecution, params: Params) -> str:
        """Identifies the calls of a plan with these values, and what is asked before them."""
        asked = self.catalog.confirm_question(self.intent_of(plan))
        calls = [[step["tool"], self.arguments(step, params)] for step in plan["steps"]]
        return digest([asked, calls])

    def approval(self, plan: PlanExecution, params: Params, given: Params) -> str:
        """Identifies the values that an answer gave to a confirmation of these calls."""
        return digest([self.fingerprint(plan, params), dict(given)])

    def idempotency_key(self, thread_id: str, plan: PlanExecution, params: Params) -> str:
        """The idempotency key of the plan's next call.

        It is the same for a repetition after a crash, and another for a fork with other arguments.
        """
        step = plan["steps"][plan["cursor"]]
        return digest(
            [thread_id, plan["id"], plan["cursor"], step["tool"], self.arguments(step, params)]
        )


def digest(value: JsonValue | Sequence[object]) -> str:
    """A hash of plain JSON that does not depend on the order of keys."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _vocabulary(catalog: IntentCatalog) -> frozenset[str]:
    """The words that a catalog is written in, and those of its allowed values."""
    texts = [text for intent in catalog.intents for text in (intent.description, *intent.examples)]
    for param in catalog.params.values():
        texts += [param.name, param.description, param.prompt, *param.enum, *param.labels.values()]
        texts += [synonym for synonyms in param.enum.values() for synonym in synonyms]
    return frozenset(
        word for text in texts for word in re.findall(r"[a-z]+", text.replace("_", " ").lower())
    )
