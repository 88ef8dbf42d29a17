"""Tool calls that wait for a person's decision.

They are those of LangChain's `HumanInTheLoopMiddleware`: a batch, or one call.

Pure: nothing here raises, whatever a payload or a text is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langmem_ext.waiting.interrupts.forms import NO_JSON, named_values, parsed, short
from langmem_ext.waiting.interrupts.response_schema import fits
from langmem_ext.waiting.understand.acts.assent import yes_or_no

KINDS: Final = ("approve", "edit", "reject", "respond")

_REJECT: Final = re.compile(
    r"(?:no|n|nein|non|reject(?:ed)?)"
    r"(?:[\s.!]*|(?:\s*:|\s*[,;.!]\s|\s+[–—-]\s)\s*(?P<why>\S.*)|\s+(?P<because>because\s.*))"
    r"|reject(?:ed)?\s+(?P<words>\S.*)",
    re.I | re.S,
)
_RESPOND: Final = re.compile(r"respond(?:\s*:|\s)\s*(?P<words>\S.*)", re.I | re.S)
_EDIT: Final = re.compile(r"(?:edit|change|set)(?:\s*:)?\s*(?P<args>\S.*)", re.I | re.S)


@dataclass(frozen=True, slots=True)
class Call:
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
            return self.edited(self.args)
        return {"type": kind} if words is None else {"type": kind, "message": words}

    def edited(self, args: object) -> dict[str, Any]:
        """The decision to call the tool with other arguments."""
        return {"type": "edit", "edited_action": {"name": self.name, "args": args}}

    def kinds(self) -> list[str]:
        """The kinds of decision that it takes."""
        words = {"respond": ""}
        return [kind for kind in KINDS if fits(self.decision(kind, words.get(kind)), self.schema)]


def calls_of(value: object, schema: object) -> list[Call]:
    """The tool calls that an interrupt asks about; none for an interrupt of any other kind.

    Args:
        value: The interrupt's payload.
        schema: The JSON schema of its answer, if it declares one.
    """
    if not isinstance(value, Mapping):
        return []
    if is_single(value):
        return [
            _call(
                value,
                schema if isinstance(schema, Mapping) else _decision_schema(value["name"], KINDS),
            )
        ]
    requests = value.get("action_requests")
    if not isinstance(requests, list) or not all(map(_has_name, requests)):
        return []
    allowed: dict[str, object] = {request["name"]: KINDS for request in requests}
    configs = value.get("review_configs")
    for config in configs if isinstance(configs, list) else ():
        if isinstance(config, Mapping) and isinstance(config.get("action_name"), str):
            allowed[config["action_name"]] = config.get("allowed_decisions")
    return [
        _call(request, _decision_schema(request["name"], allowed[request["name"]]))
        for request in requests
    ]


def is_single(value: object) -> bool:
    """Whether a payload asks about one call, and takes one bare decision."""
    approval = isinstance(value, Mapping) and value.get("type") == "tool_approval"
    return approval and _has_name(value)


def decisions(calls: Sequence[Call], text: str) -> Iterator[list[Any]]:
    """What a text may be as decisions on tool calls, the likeliest first."""
    if (words := decision_in_words(text)) is not None:
        yield [call.decision(*words) for call in calls]
    if len(calls) == 1:
        yield from ([edit] for edit in edits(calls[0], text))
    value = parsed(text)
    if isinstance(value, dict | list):
        yield decisions_given(value)
    if len(calls) == 1 and calls[0].kinds() == ["respond"]:
        yield [calls[0].decision("respond", text)]


def decisions_given(value: object) -> list[Any]:
    """A client's answer as decisions: its list of them, or its only one."""
    if isinstance(value, Mapping):
        value = value.get("decisions", [value])
    return value if isinstance(value, list) else []


def decision_in_words(text: str) -> tuple[str, str | None] | None:
    """The decision that words say, on any number of tool calls: its kind, and what goes with it."""
    stripped, decided = text.strip(), yes_or_no(text)
    if decided is not None:
        return ("approve" if decided else "reject"), None
    if (rejected := _REJECT.fullmatch(stripped)) is not None:
        return "reject", next((words.strip() for words in rejected.groups() if words), None)
    if (responded := _RESPOND.fullmatch(stripped)) is not None:
        return "respond", responded["words"]
    return None


def options(calls: Sequence[Call]) -> str:
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
    spoken = [
        ways[kind] for kind in KINDS if kind in ways and all(kind in kinds for kinds in taken)
    ]
    lines = [", ".join(spoken) + (" for all of them" if len(calls) > 1 else "")] if spoken else []
    each = ", ".join(f'{{"type": "{"|".join(kinds)}", …}}' for kinds in taken)
    return "; or ".join([*lines, f'JSON like {{"decisions": [{each}]}}'])


def edits(call: Call, text: str) -> Iterator[dict[str, Any]]:
    """The call with other arguments: all of them as JSON, or some by name, "edit amount to 20"."""
    match = _EDIT.fullmatch(text.strip())
    if match is None:
        return
    if match["args"].startswith("{"):
        yield call.edited(parsed(match["args"]))
    elif isinstance(call.args, Mapping):
        named = named_values(match["args"], [name for name in call.args if isinstance(name, str)])
        new = {name: _like(call.args[name], value) for name, value in named.items()}
        if new and NO_JSON not in new.values():
            yield call.edited({**call.args, **new})


def _like(old: object, text: str) -> Any:
    """A text as a value of the kind of another; `NO_JSON` if it is not one."""
    value = parsed(text)
    if old is None or isinstance(old, str):
        return value if isinstance(value, str) else text
    if isinstance(old, bool) or not isinstance(old, int | float):
        return value if isinstance(value, type(old)) else NO_JSON
    return value if isinstance(value, int | float) and not isinstance(value, bool) else NO_JSON


def _has_name(request: object) -> bool:
    return isinstance(request, Mapping) and isinstance(request.get("name"), str)


def _call(request: Mapping[str, Any], schema: object) -> Call:
    name, args, shown = request["name"], request.get("args"), request.get("description")
    if not isinstance(shown, str) or not shown:
        shown = f"{name} {short(args)}"
    return Call(name, args, schema, shown)


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
    kinds = [kind for kind in KINDS if isinstance(allowed, list | tuple) and kind in allowed]
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
