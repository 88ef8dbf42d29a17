"""From plain data to the declarations of a catalog, with every mistake of form on the way.

A declaration with a mistake is left out of the result, and its name is still known, so that one
mistake is reported once.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from langmem_ext._internal.names import in_words, instead_of
from langmem_ext._internal.yaml import DataPath, Problem
from langmem_ext.waiting.catalog.inference import infer_role, infer_type
from langmem_ext.waiting.catalog.intent import CatalogFields, Intent, Redaction, Replies
from langmem_ext.waiting.catalog.param import Param, ParamType, Seconds

M = TypeVar("M", bound=BaseModel)

_PAIRED = (ParamType.DATE, ParamType.TIME, ParamType.DATETIME, ParamType.PLACE)
_WHITHER = re.compile(r"new|deliver|ship|forward", re.IGNORECASE)
"""How the name begins of an address that something, or somebody, goes to."""

_KINDS = {
    "string_type": "must be text",
    "tuple_type": "must be a list",
    "mapping_type": "must be a mapping",
    "model_type": "must be a mapping",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "string_too_short": "must not be empty",
}


@dataclass(slots=True)
class Parsed:
    """What a file declares.

    Attributes:
        fields: The declarations without mistakes of form.
        problems: The mistakes of form.
        intent_ids: Every intent id that the file declares, also those with mistakes.
        param_names: Every parameter that the file declares, also those with mistakes.
        declared_keys: The keys that the file gives for each parameter: the tools' schemas fill in
            the others.
        places: Another path for the declarations in a list: by id instead of by
            position.
    """

    fields: CatalogFields = field(default_factory=CatalogFields)
    problems: list[Problem] = field(default_factory=list)
    intent_ids: set[str] = field(default_factory=set)
    param_names: set[str] = field(default_factory=set)
    declared_keys: dict[str, frozenset[str]] = field(default_factory=dict)
    places: dict[DataPath, DataPath] = field(default_factory=dict)


def parse_catalog(data: object) -> Parsed:
    """Read the whole catalog from `data`, whatever it is."""
    parsed = Parsed()
    if data is None or data == {}:
        parsed.problems.append(Problem((), "it is empty: declare at least 'intents'"))
        return parsed
    if not isinstance(data, Mapping):
        parsed.problems.append(Problem((), "it must be a mapping with the key 'intents'"))
        return parsed
    parsed.problems += _unknown_keys(data, CatalogFields.model_fields)
    if "intents" not in data:
        parsed.problems.append(Problem((), "'intents' is missing"))
    _parse_parts(parsed, data)
    return parsed


def _parse_parts(parsed: Parsed, data: Mapping[object, object]) -> None:
    intents = tuple(_intents(parsed, data.get("intents", ())))
    params = _stays(intents, dict(_params(parsed, data.get("params"))), parsed.declared_keys)
    replies = _model(parsed, Replies, _section(data, "replies"), ("replies",)) or Replies()
    redaction = (
        _model(parsed, Redaction, _section(data, "redaction"), ("redaction",)) or Redaction()
    )
    escalate_to = data.get("escalate_to")
    if escalate_to is not None and not isinstance(escalate_to, str):
        parsed.problems.append(Problem(("escalate_to",), "must be the id of an intent"))
        escalate_to = None
    parsed.fields = CatalogFields(
        intents=intents,
        params=params,
        replies=replies,
        escalate_to=escalate_to,
        redaction=redaction,
        timeout=_timeout(parsed, data.get("timeout")),
    )


_SECONDS: Final[TypeAdapter[float | None]] = TypeAdapter(Seconds | None)


def _timeout(parsed: Parsed, value: object) -> float | None:
    try:
        return _SECONDS.validate_python(value)
    except ValidationError as exc:
        parsed.problems += _mistakes(exc, CatalogFields, value, ("timeout",))
        return None


_COMES: Final = re.compile(r"\barriv", re.IGNORECASE)
_GOES: Final = re.compile(r"\b(?:leav|depart)", re.IGNORECASE)


def _stays(
    intents: Iterable[Intent], params: dict[str, Param], declared_keys: Mapping[str, frozenset[str]]
) -> dict[str, Param]:
    """The parameters, where an arrival followed by a leave makes a stay.

    A stay begins with the arrival: the arrival gets the role `from`, the leave the role `to`.

    A journey begins with the leave.
    """
    for intent in intents:
        own = [
            params[name]
            for name in intent.param_names
            if name in params and "role" not in declared_keys.get(name, ())
        ]
        for comes, goes in zip(own, own[1:], strict=False):
            if (
                comes.type is goes.type
                and comes.role == "to"
                and goes.role == "from"
                and _COMES.search(comes.name)
                and _GOES.search(goes.name)
            ):
                params |= {
                    comes.name: comes.model_copy(update={"role": "from"}),
                    goes.name: goes.model_copy(update={"role": "to"}),
                }
    return params


def _section(data: Mapping[object, object], key: str) -> object:
    """What is declared under `key`; a key with nothing under it declares nothing."""
    value = data.get(key)
    return {} if value is None else value


def _intents(parsed: Parsed, value: object) -> Iterator[Intent]:
    if not value:
        parsed.problems.append(Problem(("intents",), "it must hold at least one intent"))
    for place, raw in _entries(parsed, value, "intents", "id"):
        name = raw.get("id") if isinstance(raw, Mapping) else None
        if isinstance(name, str):
            if name in parsed.intent_ids:
                parsed.problems.append(
                    Problem((*place, "id"), f"another intent is named {name!r} too")
                )
                continue
            parsed.intent_ids.add(name)
            parsed.places[("intents", name)] = place
        intent = _model(parsed, Intent, _with_texts(raw), place)
        if intent is not None:
            yield intent


def _params(parsed: Parsed, value: object) -> Iterator[tuple[str, Param]]:
    for place, raw in _entries(parsed, value, "params", "name"):
        name = raw.get("name") if isinstance(raw, Mapping) else None
        if isinstance(name, str):
            if name in parsed.param_names:
                parsed.problems.append(
                    Problem((*place, "name"), f"another parameter is named {name!r} too")
                )
                continue
            parsed.param_names.add(name)
            parsed.places[("params", name)] = place
        param = _model(parsed, Param, _with_texts(raw), place)
        if param is not None:
            parsed.declared_keys[param.name] = frozenset(param.model_fields_set)
            yield param.name, complete(param)


def complete(param: Param) -> Param:
    """The parameter with the type, role and question that its declaration leaves out.

    Type and role are inferred from its name and description; one with allowed values is an enum.
    """
    added: dict[str, object] = {}
    if "type" not in param.model_fields_set:
        added["type"] = ParamType.ENUM if param.enum else infer_type(param.name, param.description)
    kind = added.get("type", param.type)
    if "role" not in param.model_fields_set and kind in _PAIRED:
        added["role"] = infer_role(param.name, param.description)
    elif "role" not in param.model_fields_set and kind is ParamType.ADDRESS:
        added["role"] = infer_role(param.name) or ("to" if _WHITHER.match(param.name) else None)
    if not param.prompt:
        added["prompt"] = default_prompt(param)
    if kind in _COUNTED and (counted := _number(param.default)) is not None:
        added["default"] = counted  # a file has decimals as text
    return param.model_copy(update=added)


_COUNTED: Final = frozenset((ParamType.NUMBER, ParamType.MONEY, ParamType.DURATION))


def _number(value: JsonValue) -> float | None:
    return (
        float(value)
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,15}\.\d{1,15}", value)
        else None
    )


def default_prompt(param: Param) -> str:
    """The question for a parameter that has none."""
    words = param.description.strip().rstrip(".?!")
    if not words or "\n" in words or len(words.split()) > 10:
        words = in_words(param.name) or param.name
    if words[:1].isupper() and not words[1:2].isupper():
        words = words[:1].lower() + words[1:]
    if words.startswith("whether "):
        return f"Please tell me {words}: yes or no?"
    article = (
        ""
        if words.startswith(("the ", "your ", "a ", "an ", "how ", "what ", "which "))
        else "the "
    )
    return f"What is {article}{words}?"


def _entries(
    parsed: Parsed, value: object, key: str, name_field: str
) -> Iterator[tuple[DataPath, Any]]:
    """The declarations under `key`, each with its path.

    They are a mapping by name, or a list of mappings that hold their name.
    """
    if isinstance(value, Mapping):
        for name, raw in value.items():
            declaration = {} if raw is None else raw
            if (
                isinstance(declaration, Mapping)
                and name_field in declaration
                and declaration[name_field] != name
            ):
                parsed.problems.append(
                    Problem(
                        (key, str(name), name_field),
                        f"must be {name!r}, like its key, or be omitted",
                    )
                )
            yield (
                (key, str(name)),
                {**declaration, name_field: str(name)}
                if isinstance(declaration, Mapping)
                else declaration,
            )
    elif isinstance(value, list | tuple):
        yield from (((key, index), raw) for index, raw in enumerate(value))
    elif value is not None:
        parsed.problems.append(Problem((key,), f"must be a list, or a mapping by {name_field}"))


def _with_texts(raw: object) -> object:
    """`raw` with its short forms written out.

    Examples become texts, a list of allowed values a mapping, and a single synonym a list.
    """
    if not isinstance(raw, Mapping):
        return raw
    full: dict[object, object] = dict(raw)
    if isinstance(examples := full.get("examples"), list | tuple):
        full["examples"] = [_text(item) for item in examples]
    enum = full.get("enum")
    if isinstance(enum, list | tuple) and all(isinstance(item, str | int) for item in enum):
        full["enum"] = {_text(item): () for item in enum}
    elif isinstance(enum, Mapping):
        full["enum"] = {_text(value): _synonyms(synonyms) for value, synonyms in enum.items()}
    return full


def _synonyms(value: object) -> object:
    if value is None:
        return ()
    return (
        tuple(_text(item) for item in value) if isinstance(value, list | tuple) else (_text(value),)
    )


def _text(value: object) -> object:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _model(parsed: Parsed, model: type[M], raw: object, place: DataPath) -> M | None:
    """The declaration; None when it has mistakes, which are noted."""
    try:
        return model.model_validate(raw)
    except ValidationError as exc:
        parsed.problems += _mistakes(exc, model, raw, place)
        return None


def _mistakes(
    exc: ValidationError, model: type[BaseModel], raw: object, place: DataPath
) -> Iterator[Problem]:
    """One problem for each wrong place.

    When all alternative types fail at one place, only the first failure is reported.
    """
    seen: set[DataPath] = set()
    for error in exc.errors(include_url=False):
        path = (*place, *_steps_in(raw, error["loc"]))
        if path in seen:
            continue
        seen.add(path)
        if error["type"] == "extra_forbidden":
            yield Problem(
                path, f"unknown key; {instead_of(str(error['loc'][-1]), model.model_fields)}"
            )
        elif error["type"] in ("enum", "literal_error"):
            known = [
                choice.strip("' ")
                for choice in error["ctx"]["expected"].replace(" or ", ",").split(",")
            ]
            yield Problem(
                path, f"{error['input']!r} is not allowed; {instead_of(str(error['input']), known)}"
            )
        elif error["type"] == "missing":
            yield Problem((*place, *error["loc"]), "is missing")
        else:
            yield Problem(
                path, _KINDS.get(error["type"], error["msg"].removeprefix("Value error, "))
            )


def _steps_in(raw: object, loc: Sequence[str | int]) -> Iterator[str | int]:
    """The part of `loc` that leads through `raw`.

    Behind it, pydantic names the alternative types that it tried.
    """
    for step in loc:
        inside: Mapping[Any, object] = (
            raw
            if isinstance(raw, Mapping)
            else dict(enumerate(raw))
            if isinstance(raw, list | tuple)
            else {}
        )
        if step not in inside:
            return
        raw = inside[step]
        yield step


def _unknown_keys(data: Mapping[object, object], known: Iterable[str]) -> Iterator[Problem]:
    names = tuple(known)
    for key in data:
        if key not in names:
            yield Problem((str(key),), f"unknown key; {instead_of(str(key), names)}")
