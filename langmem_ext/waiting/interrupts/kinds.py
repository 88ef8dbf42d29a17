"""The kinds of interrupts that graphs of others raise: how each is shown, and what answers it.

Pure: no payload and no text makes anything here raise but the refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langmem_ext._internal.names import in_words
from langmem_ext.errors import InvalidInput
from langmem_ext.waiting.interrupts.approvals import (
    Call,
    decisions,
    decisions_given,
    edits,
    options,
)
from langmem_ext.waiting.interrupts.forms import fields_of, options_of, parsed, readings, short
from langmem_ext.waiting.interrupts.response_schema import fits
from langmem_ext.waiting.understand.acts.assent import yes_or_no

_PROMPT_KEYS: Final = ("prompt", "message", "question", "description", "title")
"""Keys of a payload under which it says what it asks."""

Readings: TypeAlias = Callable[[Any], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class Kind:
    """How one kind of interrupt is shown and answered.

    Attributes:
        shown: What a person is asked.
        schema: The JSON schema of the resume value; None: any will do.
        from_text: What a text may be as a resume value, the likeliest first.
        from_value: What a client's answer that is no text may be as one.
        cancelled: What a person who goes away answers, the likeliest first.
        refusal: What an error says about any other answer.
    """

    shown: str
    schema: object
    from_text: Readings
    from_value: Readings
    cancelled: tuple[Any, ...]
    refusal: str

    def answer(self, candidates: Iterator[Any]) -> Any:
        """The first of some values that the interrupt takes.

        Raises:
            InvalidInput: It takes none.
        """
        for value in candidates:
            if self.schema is None or fits(value, self.schema):
                return value
        raise InvalidInput(f"{self.refusal}. Nothing was changed")


def any_text(value: object) -> Kind:
    """A question that declares nothing: any text answers it, and listed options may be counted."""
    options = {"enum": [item for item in _listed(value) if isinstance(item, str)]}

    def from_text(text: str) -> Iterator[Any]:
        yield from (option for option in readings(text, options) if option in options["enum"])
        yield text

    return Kind(shown_value(value), None, from_text, _as_it_is, (), "")


def structured(value: object, schema: object) -> Kind:
    """A question that declares the schema of its answer."""
    shown = "\n".join([shown_value(value), *_fields_in_words(schema)])
    return Kind(shown, schema, lambda text: readings(text, schema), _as_it_is, (), _wants(schema))


def _as_it_is(value: Any) -> Iterator[Any]:
    yield value
    yield [value]


def _wants(schema: object) -> str:
    return (
        f"the question needs a structured answer: send JSON that fits its schema, {short(schema)}, "
        "or resume the graph with Command(resume=…)"
    )


def approval(calls: Sequence[Call], *, single: bool) -> Kind:
    """Tool calls that wait for a decision."""
    each = [call.schema for call in calls]
    schema = each[0] if single else _decisions_schema(each)

    def wrapped(candidates: Iterator[list[Any]]) -> Iterator[Any]:
        yield from (
            decided[0] if single and len(decided) == 1 else {"decisions": decided}
            for decided in candidates
        )

    names = ", ".join(repr(call.name) for call in calls)
    waits = f"the tool call {names} waits" if len(calls) == 1 else f"tool calls ({names}) wait"
    ways = options(calls)
    shown = "\n\n".join([*(call.description for call in calls), f"Say {ways}."])
    refusal = f"{waits} for a decision, and this is not an allowed one: say {ways}"
    cancelled = wrapped(iter([[call.decision("reject") for call in calls]]))
    return Kind(
        shown,
        schema,
        lambda text: wrapped(decisions(calls, text)),
        lambda value: wrapped(iter([decisions_given(value)])),
        (*cancelled,),
        refusal,
    )


def _decisions_schema(each: Sequence[object]) -> dict[str, Any]:
    listed = {"type": "array", "minItems": len(each), "maxItems": len(each), "prefixItems": [*each]}
    return {"type": "object", "required": ["decisions"], "properties": {"decisions": listed}}


def elicitation(value: Mapping[str, Any], requests: Sequence[Mapping[str, Any]]) -> Kind:
    """Forms of an MCP server, as langchain's adapter asks them."""
    keys = [str(request.get("key")) for request in requests]
    schema, is_form = (
        _forms_schema(requests),
        len(requests) == 1 and requests[0].get("mode") != "url",
    )

    def of_each(answers: Iterable[Any]) -> dict[str, Any]:
        return {"responses": dict(zip(keys, answers, strict=False))}

    def from_text(text: str) -> Iterator[Any]:
        word, decided = text.strip(" .!\t\r\n").lower(), yes_or_no(text)
        if action := _ACTIONS.get(word):
            yield of_each({"action": action} for _ in keys)
        if isinstance(answer := parsed(text), dict):
            yield from from_value(answer)
        for content in readings(text, requests[0].get("requested_schema")) if is_form else ():
            yield of_each([{"action": "accept", "content": content}])
        if decided is not None or word == "done":
            yield of_each({"action": "decline" if decided is False else "accept"} for _ in keys)

    def from_value(answer: Any) -> Iterator[Any]:
        yield answer
        yield {"responses": answer}
        yield of_each([answer])
        if is_form:
            yield of_each([{"action": "accept", "content": answer}])

    tool = value.get("tool_name")
    lines = [
        f"{tool} asks:" if isinstance(tool, str) else "Asked:",
        *(line for request in requests for line in _request_in_words(request)),
    ]
    shown = "\n".join([*lines, "Say the values (or name: value, …), decline, or cancel."])
    return Kind(
        shown,
        schema,
        from_text,
        from_value,
        (of_each({"action": "cancel"} for _ in keys),),
        _wants(schema),
    )


_ACTIONS: Final = {"no": "decline", "decline": "decline", "cancel": "cancel"}


def _request_in_words(request: Mapping[str, Any]) -> Iterator[str]:
    message, url = request.get("message"), request.get("url")
    yield message if isinstance(message, str) else str(request.get("key"))
    if isinstance(url, str):
        yield f"  Visit {url}, then say done."
    yield from _fields_in_words(request.get("requested_schema"))


def _forms_schema(requests: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
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


def inbox(request: Mapping[str, Any]) -> Kind:
    """A request of the Agent Inbox; its answer is a list of one."""
    action, config = request["action_request"], request.get("config")
    name, args = action.get("action"), action.get("args")
    schema = _inbox_schema(config)
    call = Call(str(name), args, None, "")

    def from_text(text: str) -> Iterator[Any]:
        word = text.strip(" .!\t\r\n").lower()
        if yes_or_no(text):
            yield [{"type": "accept", "args": {"action": name, "args": args}}]
            yield [{"type": "accept", "args": None}]
        if word in ("no", "ignore", "decline", "cancel"):
            yield [{"type": "ignore", "args": None}]
        for edit in edits(call, text):
            yield [
                {"type": "edit", "args": {"action": name, "args": edit["edited_action"]["args"]}}
            ]
        if isinstance(answer := parsed(text), dict | list):
            yield from _as_it_is(answer)
        yield [{"type": "response", "args": text}]

    description = request.get("description")
    shown = description if isinstance(description, str) and description else f"{name} {short(args)}"
    allowed = config if isinstance(config, Mapping) else dict.fromkeys(_INBOX, True)
    ways = ", ".join(way for key, way in _INBOX.items() if allowed.get(key) is True)
    return Kind(
        f"{shown}\nSay {ways}.",
        schema,
        from_text,
        _as_it_is,
        ([{"type": "ignore", "args": None}],),
        _wants(schema),
    )


_INBOX: Final = {
    "allow_accept": "yes",
    "allow_edit": "edit name to value",
    "allow_respond": "any words",
    "allow_ignore": "ignore",
}


def _inbox_schema(config: object) -> dict[str, Any]:
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


# -- what a person is shown ----------------------------------------------------------------------


def shown_value(value: object) -> str:
    """A payload as a person reads it: what it asks, else its parts line by line."""
    if isinstance(value, str):
        return value
    if not isinstance(value, Mapping):
        return short(value)
    asked = next(
        (value[key] for key in _PROMPT_KEYS if isinstance(value.get(key), str) and value[key]), None
    )
    rest = (
        {
            str(key): part
            for key, part in value.items()
            if not isinstance(part, Mapping) and part != asked
        }
        if asked is None
        else {}
    )
    lines = [
        f"{in_words(key) or key}: {part if isinstance(part, str) else short(part)}"
        for key, part in rest.items()
    ]
    listed = (
        [
            f"  {place}. {option if isinstance(option, str) else short(option)}"
            for place, option in enumerate(_listed(value), 1)
        ]
        if asked
        else []
    )
    return "\n".join([*([asked] if asked else []), *lines, *listed]) or short(value)


def _listed(value: object) -> list[Any]:
    """The options that a payload lists."""
    payload = value if isinstance(value, Mapping) else {}
    return next(
        (payload[key] for key in ("options", "choices") if isinstance(payload.get(key), list)), []
    )


def _fields_in_words(schema: object) -> Iterator[str]:
    """The fields of a form, a line each."""
    required = schema.get("required") if isinstance(schema, Mapping) else None
    needed = required if isinstance(required, list) else []
    for name, field in fields_of(schema).items():
        declared = field if isinstance(field, Mapping) else {}
        listed = ", ".join(shown for _, shown in options_of(field))
        parts = [
            str(declared.get(key))
            for key in ("title", "description")
            if isinstance(declared.get(key), str)
        ]
        parts += (
            [f"one of {listed}"]
            if listed
            else [str(declared["type"])]
            if "type" in declared
            else []
        )
        yield f"  {name}: {', '.join(parts)}{'' if name in needed else ' (may be left out)'}"
