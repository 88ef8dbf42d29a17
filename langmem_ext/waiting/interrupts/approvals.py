"""What a person's text means to an interrupt of somebody else's graph, or one clear refusal.

LangGraph stores an answer before the node has seen it, so one that the node cannot use must not be
passed on. What an interrupt takes is read from its payload, as a JSON schema of the answer: tool
calls that wait for a decision (LangChain's `HumanInTheLoopMiddleware`, a batch or one call), forms
of MCP servers, requests of the Agent Inbox, and whatever declares a `response_schema`. Words that
people use for a decision are translated, and JSON that fits is passed on. Any other interrupt takes
any text.

Pure: nothing here reads or stores, and no payload makes it raise anything but the refusal.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langmem_ext._internal.json import json_value
from langmem_ext.errors import ConversationError, InvalidInput
from langmem_ext.waiting.interrupts.response_schema import fits

OWN: Final = frozenset({"param", "prompt", "attempt"})
"""What the payload of a waiting graph's question has; its answer is text, in other graphs too."""

_KINDS: Final = ("approve", "edit", "reject", "respond")
_APPROVE: Final = re.compile(r"(?:approved?|yes|y|ok|okay)[\s.!]*", re.I)
_REJECT: Final = re.compile(
    r"(?:no|n|reject(?:ed)?)"
    r"(?:[\s.!]*|(?:\s*:|\s*[,;.!]\s|\s+[–—-]\s)\s*(?P<why>\S.*)|\s+(?P<because>because\s.*))"
    r"|reject(?:ed)?\s+(?P<words>\S.*)",
    re.I | re.S,
)
_RESPOND: Final = re.compile(r"respond(?:\s*:|\s)\s*(?P<words>\S.*)", re.I | re.S)
_EDIT: Final = re.compile(r"edit(?:\s*:)?\s*(?P<args>\{.*)", re.I | re.S)
_TRUTH: Final = {"yes": True, "y": True, "no": False, "n": False}
_NO_JSON: Final = object()


@dataclass(frozen=True, slots=True)
class Asked:
    """What an interrupt asks.

    Attributes:
        value: Its payload.
        schema: The JSON schema of its answer; None where it declares none.
    """

    value: object
    schema: object = None


@dataclass(frozen=True, slots=True)
class _Call:
    """A tool call that waits for a decision.

    Attributes:
        name: The tool.
        args: The arguments.
        schema: The JSON schema of a decision.
        description: What a person is shown.
    """

    name: str
    args: object
    schema: object
    description: str

    def decision(self, kind: str, words: str | None = None) -> dict[str, Any]:
        """A decision of a kind; an edit that changes nothing."""
        if kind == "edit":
            return {"type": kind, "edited_action": {"name": self.name, "args": self.args}}
        return {"type": kind} if words is None else {"type": kind, "message": words}

    def kinds(self) -> list[str]:
        """The kinds of decision that it takes."""
        words = {"respond": ""}
        return [kind for kind in _KINDS if fits(self.decision(kind, words.get(kind)), self.schema)]


def plan_answers(waiting: Mapping[str, Asked], text: str) -> dict[str, Any]:
    """The resume values that a text is, by the ids of the interrupts that it answers.

    Args:
        waiting: The interrupts that wait, by id; at least one.
        text: What was said. Where several wait: a decision for all tool calls, or a JSON object of
            answers by id.

    Raises:
        InvalidInput: It is no answer to what is asked; the message says what is one.
        ConversationError: Several interrupts wait, and it does not say which it answers.
    """
    if len(waiting) == 1:
        return {name: _answer(asked, text) for name, asked in waiting.items()}
    said = _parsed(text)
    if isinstance(said, dict) and said and said.keys() <= waiting.keys():
        for name, one in said.items():
            said[name] = _answer(waiting[name], one if isinstance(one, str) else json.dumps(one))
        return said
    if _words(text) is not None and all(_calls(asked) for asked in waiting.values()):
        return {name: _answer(asked, text) for name, asked in waiting.items()}
    raise ConversationError(
        f"{len(waiting)} questions wait at once and a message cannot say which it answers: "
        "say a JSON object of answers by interrupt id, "
        "or resume the graph with Command(resume={interrupt id: answer, …})"
    )


def question_of(asked: Asked) -> str | None:
    """What a person is asked about tool calls that wait for a decision; None for anything else."""
    calls = _calls(asked)
    if not calls:
        return None
    return "\n\n".join([*(call.description for call in calls), f"Say {_options(calls)}."])


def _answer(asked: Asked, text: str) -> Any:
    """The resume value that a text is for one interrupt.

    Raises:
        InvalidInput: It is none.
    """
    calls, schema = _calls(asked), _schema(asked)
    if calls:
        schemas = [call.schema for call in calls]
        for decisions in _decisions(calls, text):
            if len(decisions) == len(calls) and all(map(fits, decisions, schemas)):
                return decisions[0] if _is_single(asked.value) else {"decisions": decisions}
        names = ", ".join(repr(call.name) for call in calls)
        waits = f"the tool call {names} waits" if len(calls) == 1 else f"tool calls ({names}) wait"
        wrong = f"{waits} for a decision, and this is not one that is allowed"
        raise InvalidInput(f"{wrong}: say {_options(calls)}. Nothing was changed")
    for answer in _readings(text) if schema is not None else [text]:
        if fits(answer, schema):
            return answer
    raise InvalidInput(
        "the question takes a structured answer: "
        f"say it as JSON that fits its schema, {_short(schema)}, "
        "or resume the graph with Command(resume=…). Nothing was changed"
    )


def _readings(text: str) -> Iterator[Any]:
    """What a text may be as a structured answer, the likeliest first."""
    said = _parsed(text)
    if isinstance(said, dict | list):
        yield said
    yield text
    if said is not _NO_JSON:
        yield said
        yield [said]
    if (truth := _TRUTH.get(text.strip(" .!\t\r\n").lower())) is not None:
        yield truth


def _parsed(text: str) -> Any:
    """A text as JSON that can be stored; `_NO_JSON` for any other."""
    try:
        return json_value(json.loads(text), "the answer")
    except (ValueError, RecursionError):
        return _NO_JSON


def _short(schema: object) -> str:
    text = json.dumps(schema, ensure_ascii=False, default=str, skipkeys=True)
    return text if len(text) <= 300 else f"{text[:300]}…"


# -- tool calls that wait for a decision ---------------------------------------------------------


def _decisions(calls: Sequence[_Call], text: str) -> Iterator[list[Any]]:
    """What a text may be as decisions on tool calls, the likeliest first."""
    if (words := _words(text)) is not None:
        yield [call.decision(*words) for call in calls]
    if len(calls) == 1 and (edit := _EDIT.fullmatch(text.strip())) is not None:
        yield [
            {
                "type": "edit",
                "edited_action": {"name": calls[0].name, "args": _parsed(edit["args"])},
            }
        ]
    said = _parsed(text)
    if isinstance(said, dict):
        said = said.get("decisions", [said])
    if isinstance(said, list):
        yield said
    if len(calls) == 1 and calls[0].kinds() == ["respond"]:
        yield [calls[0].decision("respond", text)]


def _words(text: str) -> tuple[str, str | None] | None:
    """The decision that words say, on any number of tool calls: its kind, and what goes with it."""
    said = text.strip()
    if _APPROVE.fullmatch(said):
        return "approve", None
    if (rejected := _REJECT.fullmatch(said)) is not None:
        return "reject", next((words.strip() for words in rejected.groups() if words), None)
    if (responded := _RESPOND.fullmatch(said)) is not None:
        return "respond", responded["words"]
    return None


def _options(calls: Sequence[_Call]) -> str:
    """What can be said; of arguments only the names, for an error may be logged."""
    taken = [call.kinds() for call in calls]
    args = calls[0].args if isinstance(calls[0].args, Mapping) else {}
    names = ", ".join(f'"{name}": …' for name in args)
    ways = {
        "approve": "approve",
        "reject": "reject (or reject: why)",
        "respond": "respond: the result",
    }
    if len(calls) == 1:
        ways["edit"] = f"edit {{{names}}}"
    said = [ways[kind] for kind in _KINDS if kind in ways and all(kind in kinds for kinds in taken)]
    lines = [", ".join(said) + (" for all of them" if len(calls) > 1 else "")] if said else []
    each = ", ".join(f'{{"type": "{"|".join(kinds)}", …}}' for kinds in taken)
    return "; or ".join([*lines, f'JSON like {{"decisions": [{each}]}}'])


def _is_single(value: object) -> bool:
    approval = isinstance(value, Mapping) and value.get("type") == "tool_approval"
    return approval and _has_name(value)


def _has_name(request: object) -> bool:
    return isinstance(request, Mapping) and isinstance(request.get("name"), str)


def _calls(asked: Asked) -> list[_Call]:
    """The tool calls that wait for a decision; none for an interrupt of any other kind."""
    value = asked.value
    if not isinstance(value, Mapping) or value.keys() >= OWN:
        return []
    if _is_single(value):
        typed = isinstance(asked.schema, Mapping)
        return [_call(value, asked.schema if typed else _decision_schema(value["name"], _KINDS))]
    requests = value.get("action_requests")
    if not isinstance(requests, list) or not all(map(_has_name, requests)):
        return []
    allowed: dict[str, object] = {one["name"]: _KINDS for one in requests}
    for config in _mappings(value.get("review_configs")):
        if isinstance(config.get("action_name"), str):
            allowed[config["action_name"]] = config.get("allowed_decisions")
    return [_call(one, _decision_schema(one["name"], allowed[one["name"]])) for one in requests]


def _call(request: Mapping[str, Any], schema: object) -> _Call:
    name, args, shown = request["name"], request.get("args"), request.get("description")
    if not isinstance(shown, str) or not shown:
        shown = f"{name} {_short(args)}"
    return _Call(name, args, schema, shown)


def _decision_schema(tool: str, allowed: object) -> dict[str, Any]:
    """The schema of a decision on a call of a tool.

    An edit keeps the tool: nothing says which others there are.
    """
    message = {"message": {"type": "string"}}
    action = {
        "type": "object",
        "required": ["name", "args"],
        "properties": {"name": {"const": tool}, "args": {"type": "object"}},
    }
    parts: dict[str, dict[str, Any]] = {
        "approve": {},
        "edit": {"edited_action": action},
        "reject": message,
        "respond": message,
    }
    needed = {"edit": ["edited_action"], "respond": ["message"]}
    kinds = [kind for kind in _KINDS if isinstance(allowed, list | tuple) and kind in allowed]
    return {
        "anyOf": [
            {
                "type": "object",
                "required": ["type", *needed.get(kind, ())],
                "properties": {"type": {"const": kind}, **parts[kind]},
            }
            for kind in kinds
        ]
    }


# -- other structured answers --------------------------------------------------------------------


def _schema(asked: Asked) -> object:
    """The schema of the answer, as the interrupt declares or implies it; None: any text will do."""
    value = asked.value
    if isinstance(value, Mapping) and value.keys() >= OWN:
        return None
    if isinstance(asked.schema, Mapping):
        return asked.schema
    if isinstance(value, Mapping):
        if isinstance(value.get("response_schema"), Mapping):
            return value["response_schema"]
        if value.get("type") == "mcp_elicitation" and isinstance(value.get("requests"), list):
            return _forms_schema(_mappings(value["requests"]))
    [request, *others] = value if isinstance(value, list) and value else [value]
    if others or not isinstance(request, Mapping):
        return None
    return _inbox_schema(request) if isinstance(request.get("action_request"), Mapping) else None


def _forms_schema(requests: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The schema of the answers to forms of MCP servers."""
    answers = {}
    for request in requests:
        accepts: dict[str, Any] = {
            "type": "object",
            "required": ["action"],
            "properties": {"action": {"const": "accept"}},
        }
        if request.get("mode") != "url":
            accepts["required"] = ["action", "content"]
            accepts["properties"]["content"] = {
                "type": "object",
                "allOf": [request.get("requested_schema")],
            }
        declines = {
            "type": "object",
            "required": ["action"],
            "properties": {"action": {"enum": ["decline", "cancel"]}},
        }
        answers[str(request.get("key"))] = {"anyOf": [accepts, declines]}
    responses = {"type": "object", "required": [*answers], "properties": answers}
    return {"type": "object", "required": ["responses"], "properties": {"responses": responses}}


def _inbox_schema(request: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of the answer to a request of the Agent Inbox: a list of one."""
    action = {
        "type": "object",
        "required": ["action", "args"],
        "properties": {"args": {"type": "object"}},
    }
    args = {
        "ignore": {},
        "respond": {"type": "string"},
        "edit": action,
        "accept": {"type": ["object", "null"]},
    }
    config = request.get("config")
    if isinstance(config, Mapping):
        args = {kind: args[kind] for kind in args if config.get(f"allow_{kind}") is True}
    items = [
        {
            "type": "object",
            "required": ["type", "args"],
            "properties": {
                "type": {"const": "response" if kind == "respond" else kind},
                "args": args[kind],
            },
        }
        for kind in args
    ]
    return {"type": "array", "minItems": 1, "maxItems": 1, "items": {"anyOf": items}}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
