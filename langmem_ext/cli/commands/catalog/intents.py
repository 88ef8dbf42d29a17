"""A catalog of the waiting graph, checked and tried out: what is understood of a message, and why.

Nothing is stored and no tool is called. Where the tools are not given, others replace them, which
take whatever the catalog maps to them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import typer
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph.state import CompiledStateGraph
from rich.text import Text

from langmem_ext.cli.attribute import load
from langmem_ext.cli.chat.pipe import Pipe
from langmem_ext.cli.chat.screen import Screen
from langmem_ext.cli.chat.terminal import Terminal
from langmem_ext.cli.control_characters import json_line, printable
from langmem_ext.cli.errors import in_a_line
from langmem_ext.errors import InvalidInput, LangmemExtError
from langmem_ext.messages.annotations import HIDDEN
from langmem_ext.waiting.catalog.catalog import IntentCatalog
from langmem_ext.waiting.catalog.param import NONE, Extensions
from langmem_ext.waiting.catalog.playbook import Playbook
from langmem_ext.waiting.converse import converse
from langmem_ext.waiting.graph.graph import build_waiting_graph
from langmem_ext.waiting.policy.session import read_session
from langmem_ext.waiting.state import SessionState
from langmem_ext.waiting.turn import Turn
from langmem_ext.waiting.understand.intents.classifier import (
    Classification,
    ClassifyRequest,
    RuleClassifier,
)
from langmem_ext.waiting.understand.intents.similarity import about
from langmem_ext.waiting.understand.values import Reading, read_values

_COMMANDS: Final = {"/reset": "start over", "/quit": "end"}
_SHOWN: Final = 3
"""Intents whose scores are shown."""


# -- check


def check_with(path: str, *, tools: str | None, extensions: str | None, as_json: bool) -> bool:
    """Find a catalog's mistakes and misread examples; return whether there are no such examples.

    Raises:
        CatalogError: It has mistakes: all of them, each with its line.
        InvalidInput: The tools or extensions cannot be loaded.
    """
    read = IntentCatalog.from_yaml(path)
    catalog = read.with_tools(_tools(read, tools), _extensions(extensions))
    missed = list(_not_understood(catalog))
    if as_json:
        typer.echo(json.dumps(_report(catalog, missed)))
        return not missed
    for intent_id, example, read_as in missed:
        typer.echo(
            f"intents.{intent_id}.examples: {printable(example)!r} is read as"
            f" {read_as or 'no intent'}"
        )
    for name, param in catalog.params.items():
        units = f" in {param.units}" if param.units else ""
        typer.echo(printable(f"{name}\t{param.type}{units}\t{param.prompt}"))
    typer.echo(
        f"{path}: {len(catalog.intents)} intents, {len(catalog.params)} parameters; no mistakes"
    )
    return not missed


def _report(
    catalog: IntentCatalog, missed: Sequence[tuple[str, str, str | None]]
) -> dict[str, object]:
    return {
        "intents": [intent.id for intent in catalog.intents],
        "params": {
            name: {"type": str(param.type), "prompt": param.prompt}
            for name, param in catalog.params.items()
        },
        "not_understood": [
            {"intent": intent, "example": example, "read_as": read_as}
            for intent, example, read_as in missed
        ],
    }


def _not_understood(catalog: IntentCatalog) -> Iterator[tuple[str, str, str | None]]:
    """The examples that are read as another intent: the intent, the example, the other intent."""
    classifier, now = RuleClassifier(), datetime.now()
    for intent in catalog.intents:
        for example in intent.examples:
            result = classifier.classify(ClassifyRequest(example, catalog, now=now))
            if intent.id not in (result.intent_id, *(other.intent_id for other in result.also)):
                yield intent.id, example, result.intent_id


# -- try


def try_with(
    path: str, *, tools: str | None, extensions: str | None, as_json: bool, interactive: bool
) -> bool:
    """Read messages until the input ends, and show what is understood of each; whether none failed.

    Raises:
        CatalogError: The catalog has mistakes: all of them, each with its line.
        InvalidInput: The tools or extensions cannot be loaded.
    """
    catalog = IntentCatalog.from_yaml(path)
    trial = Trial.of(catalog, _tools(catalog, tools), _extensions(extensions))
    well = True
    screen: Screen = Terminal(_COMMANDS, (), tuple) if interactive else Pipe(as_json=as_json)
    while (line := screen.read("")) is not None and line.strip() != "/quit":
        if not line.strip():
            continue
        try:
            heard = trial.say(line)
        except LangmemExtError as error:
            screen.note(str(error))
            well = False
            continue
        except Exception as error:  # whatever an extension of the user's raises
            screen.note(f"a function of the catalog failed with {in_a_line(error)}")
            well = False
            continue
        lines = [*heard.lines()]
        screen.rows(
            (
                Text(printable(text), style="" if text.startswith("agent") else "dim")
                for text in lines
            ),
            lines,
            [heard.data()],
        )
    return well


@dataclass(slots=True)
class Recorder:
    """The rules, and what they were asked last."""

    rules: RuleClassifier = field(default_factory=RuleClassifier)
    request: ClassifyRequest | None = None

    def classify(self, request: ClassifyRequest) -> Classification:
        """As the rules have it."""
        self.request = request
        return self.rules.classify(request)

    async def aclassify(self, request: ClassifyRequest) -> Classification:
        """As the rules have it."""
        return self.classify(request)

    def scores(self) -> list[tuple[str, float]]:
        """How likely each intent was; empty if nobody asked."""
        return [] if self.request is None else self.rules.scores(self.request)


@dataclass(frozen=True, slots=True)
class Heard:
    """One turn: what was understood, and what came of it.

    Attributes:
        commands: The channel `understood`.
        scores: The likeliest intents.
        values: What the message holds, by parameter: value, confidence, reason.
        turn: The reply and the question that waits.
    """

    commands: Sequence[Mapping[str, Any]]
    scores: Sequence[tuple[str, float]]
    values: Mapping[str, tuple[object, float, str]]
    turn: Turn

    def lines(self) -> Iterator[str]:
        """The turn for a person."""
        for command in self.commands:
            named = " ".join(
                str(command[key]) for key in ("intent", "param", "about", "kind") if key in command
            )
            choices = ", ".join(command.get("intents", ()))
            value = f" = {json_line(command['value'])}" if "value" in command else ""
            why = f", {command['why']}" if command.get("why") else ""
            yield (
                f"{command['command']} {named}{choices}{value} ({command['confidence']},"
                f" {command['by']}{why})".replace("  ", " ")
            )
        if self.scores:
            yield "  intents: " + ", ".join(
                f"{intent} {score:.2f}" for intent, score in self.scores
            )
        for name, (reading, confidence, reason) in self.values.items():
            yield f"  {name} = {json_line(reading)} ({confidence}, {reason})"
        waits = f" [waits for {self.turn.waiting_for}]" if self.turn.waiting_for else ""
        yield f"agent: {' '.join(self.turn.reply.split())}{waits}"

    def data(self) -> dict[str, object]:
        """The turn for a program."""
        return {
            "understood": list(self.commands),
            "intents": dict(self.scores),
            "values": {
                name: {"value": value, "confidence": confidence, "why": reason}
                for name, (value, confidence, reason) in self.values.items()
            },
            "reply": self.turn.reply,
            "waiting_for": self.turn.waiting_for,
        }


@dataclass(slots=True)
class Trial:
    """A catalog that is talked to.

    Attributes:
        playbook: The catalog, bound to its tools.
        graph: The waiting graph, which shows tool calls instead of making them.
        recorder: Its classifier.
        prompts: What was said so far, without what failed.
        threads: How many threads it has taken.
    """

    playbook: Playbook
    graph: CompiledStateGraph[Any, Any, Any, Any]
    recorder: Recorder
    prompts: list[str] = field(default_factory=list)
    threads: int = 1

    @classmethod
    def of(cls, catalog: IntentCatalog, tools: Sequence[BaseTool], extensions: Extensions) -> Trial:
        """A trial of the catalog.

        Raises:
            CatalogError: Catalog, tools and extensions do not fit.
        """
        playbook, recorder = Playbook(catalog, tools, extensions), Recorder()

        def show_calls(state: SessionState) -> dict[str, Any]:
            """Say which tools would be called, and end the request."""
            plan = state.get("plan")
            if plan is None:
                return {}
            session = read_session(state, playbook)
            calls = [
                (step["tool"], playbook.arguments(step, playbook.shown(session.params)))
                for step in plan["steps"]
            ]
            calls_shown = "; ".join(
                f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
                for name, arguments in calls
            )
            return {
                "messages": [AIMessage(f"Would call {calls_shown}")],
                "plan": None,
                "waiting_for_param": None,
                "last_intent_id": plan["intent_id"],
            }

        graph = build_waiting_graph(
            catalog,
            tools,
            classifier=recorder,
            extractors=extensions.extractors,
            validators=extensions.validators,
            normalisers=extensions.normalisers,
            nodes={"call_tool": show_calls},
        )
        return cls(playbook, graph.compile(InMemorySaver()), recorder)

    def say(self, text: str) -> Heard:
        """Say something. What fails is as if it had not been said."""
        here: Any = {"configurable": {"thread_id": str(self.threads)}}
        before = read_session(self.graph.get_state(here).values, self.playbook)
        self.recorder.request = None
        try:
            turn = converse(self.graph, text, thread_id=str(self.threads))
        except Exception:
            self.threads += 1  # a message that failed is answered first on its thread
            for earlier in self.prompts:
                converse(self.graph, earlier, thread_id=str(self.threads))
            raise
        self.prompts.append(text)
        commands = self.graph.get_state(here).values.get("understood") or []
        scores = [
            (intent, round(min(score, 1.0), 2))
            for intent, score in self.recorder.scores()[:_SHOWN]
            if score > 0
        ]
        plan = before.plan
        begun = next((command["intent"] for command in commands if "intent" in command), "")
        intent = self.playbook.intent_of(plan) if plan else self.playbook.intents.get(begun)
        names = self.playbook.uses(plan) if plan else intent.param_names if intent else ()
        prompt = self.playbook.param(before.waiting_for).prompt if before.waiting_for else ""
        reading = Reading(
            text,
            datetime.now(),
            filled=before.params,
            asked=before.waiting_for,
            prompt=prompt,
            about=about(intent) if intent else "",
        )
        names = names or tuple(self.playbook.catalog.params)
        read = read_values([self.playbook.param(name) for name in names], reading)
        sensitive = self.playbook.sensitive
        values = {
            name: (HIDDEN if name in sensitive else value.value, value.confidence, value.reason)
            for name, value in read.items()
        }
        return Heard(commands, scores, values, turn)


# -- what the options name


def _tools(catalog: IntentCatalog, name: str | None) -> list[BaseTool]:
    """The tools that an option names, or others that replace them."""
    if name is None:
        return _stand_ins(catalog)
    named = load(name, "--tools")
    if isinstance(named, BaseTool):
        return [named]
    if not isinstance(named, Iterable):
        raise InvalidInput(f"--tools {name!r} is not a list of tools but {type(named).__name__}")
    return list(named)


def _extensions(name: str | None) -> Extensions:
    if name is None:
        return NONE
    named = load(name, "--extensions")
    if not isinstance(named, Extensions):
        raise InvalidInput(f"--extensions {name!r} is not an Extensions but {type(named).__name__}")
    return named


def _stand_ins(catalog: IntentCatalog) -> list[BaseTool]:
    """A tool for each name in the catalog; it takes the mapped parameters and does nothing."""
    arguments: dict[str, dict[str, dict[str, object]]] = {}
    for intent in catalog.intents:
        for tool in intent.tool:
            mapping = intent.mapping_for(tool)
            taken: dict[str, dict[str, object]] = {
                mapping.get(param, param): {} for param in (*intent.param_names, *mapping)
            }
            arguments.setdefault(tool, {}).update(taken)
    return [
        StructuredTool(
            name=name,
            description=name,
            args_schema={"type": "object", "properties": properties},
            func=_nothing,
        )
        for name, properties in arguments.items()
    ]


def _nothing(**arguments: object) -> str:
    return "nothing was done"
