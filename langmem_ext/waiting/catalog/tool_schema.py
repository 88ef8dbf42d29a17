"""What a tool takes by its own schema: arguments, parameters made from them, valid values.

Arguments that are injected (`InjectedToolArg`, injected state or store, a `RunnableConfig`) are not
a user's to give and do not appear.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import jsonschema  # type: ignore[import-untyped]  # ships no types
from langchain_core.tools import BaseTool
from pydantic import BaseModel, JsonValue, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema
from referencing import Registry
from referencing.exceptions import Unresolvable

from langmem_ext.errors import InvalidInput
from langmem_ext.waiting.catalog.inference import infer_type
from langmem_ext.waiting.catalog.intent import Intent
from langmem_ext.waiting.catalog.param import Param, ParamType

Schema: TypeAlias = Mapping[str, Any]

_TYPES = {"integer": ParamType.INTEGER, "number": ParamType.NUMBER, "boolean": ParamType.BOOLEAN}
_FORMATS = {
    "date": ParamType.DATE,
    "time": ParamType.TIME,
    "date-time": ParamType.DATETIME,
    "duration": ParamType.DURATION,
    "email": ParamType.EMAIL,
    "idn-email": ParamType.EMAIL,
    "uri": ParamType.URL,
    "iri": ParamType.URL,
    "url": ParamType.URL,
}
_AS_TEXT = {
    ParamType.INTEGER: ParamType.IDENTIFIER,
    ParamType.NUMBER: ParamType.IDENTIFIER,
    ParamType.MONEY: ParamType.TEXT,
    ParamType.BOOLEAN: ParamType.TEXT,
}
"""What an argument that takes text is, though its name and description speak of a number: "number
of the order" is an identifier."""


@dataclass(frozen=True, slots=True)
class ToolArgument:
    """One argument of a tool.

    Attributes:
        name: As the tool calls it.
        required: Whether a call without it fails.
        schema: Its JSON schema, references resolved.
    """

    name: str
    required: bool
    schema: Schema


def tool_arguments(tool: BaseTool) -> dict[str, ToolArgument]:
    """The arguments that a caller gives to `tool`, by name, in its own order.

    Raises:
        InvalidInput: The tool's arguments cannot be described as JSON schema.
    """
    called = _call_schema(tool)
    schema = _full_schema(tool) or called
    required = schema.get("required", ())
    return {
        name: ToolArgument(name, name in required, _resolved(argument, schema))
        for name, argument in schema.get("properties", {}).items()
        if isinstance(argument, Mapping) and name in called.get("properties", {})
    }


def step_arguments(intent: Intent, tool: BaseTool) -> dict[str, str]:
    """The parameter that fills each argument of `tool` when it runs for `intent`."""
    arguments = tool_arguments(tool)
    mapping = intent.mapping_for(tool.name)
    filled = {argument: param for param, argument in mapping.items() if argument in arguments}
    for param in intent.param_names:
        if param in arguments and param not in mapping:
            filled.setdefault(param, param)
    return {name: filled[name] for name in arguments if name in filled}


def param_from(argument: ToolArgument, name: str) -> Param:
    """The parameter `name` as the tool's argument describes it; it has no prompt."""
    schema = argument.schema
    description = str(schema.get("description", ""))
    values = [value for value in _enum(schema) if isinstance(value, str)]
    pattern = schema.get("pattern")
    return Param(
        name=name,
        type=_type(schema, name, description, values),
        description=description,
        examples=tuple(
            str(example)
            for example in schema.get("examples", ())
            if isinstance(example, str | int | float)
        ),
        pattern=pattern if isinstance(pattern, str) else None,
        enum={value: () for value in values},
        sensitive=schema.get("format") == "password",
    )


def _type(schema: Schema, name: str, description: str, values: list[str]) -> ParamType:
    if values:
        return ParamType.ENUM
    kind = schema.get("type")
    if kind in _TYPES:
        return _TYPES[kind]
    if any(isinstance(value, int) for value in _enum(schema)):
        return ParamType.INTEGER
    return _FORMATS.get(str(schema.get("format"))) or _AS_TEXT.get(
        inferred := infer_type(name, description), inferred
    )


def _enum(schema: Schema) -> list[JsonValue]:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum", [])
    return list(values) if isinstance(values, list) else []


WRONG_FORM: Final = "it does not have the right form"
"""What is wrong with a value that does not match a pattern; the question gives an example."""

_MESSAGES: Final[Mapping[str, str]] = {
    "pattern": WRONG_FORM,
    "format": WRONG_FORM,
    "minimum": "it must be at least {}",
    "maximum": "it must be at most {}",
    "exclusiveMinimum": "it must be more than {}",
    "exclusiveMaximum": "it must be less than {}",
    "multipleOf": "it must be a multiple of {}",
    "minLength": "it must have at least {} characters",
    "maxLength": "it must have at most {} characters",
}
"""The message to the user for each JSON schema constraint that a value does not meet."""


def field_error(tool: BaseTool, argument: str, value: JsonValue) -> str | None:
    """Why `tool` does not accept `value` for `argument`; None when it does.

    The constraints and validators of that argument's field decide.

    The other arguments play no part, so neither do validators of the arguments as a whole. The
    sentence does not hold the value, unless a validator of the tool's author puts it there.
    """
    schema = tool.args_schema
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return _model_error(schema, argument, value)
    described = schema if isinstance(schema, dict) else _call_schema(tool)
    return _schema_error(described, argument, value)


def _model_error(model: type[BaseModel], argument: str, value: JsonValue) -> str | None:
    try:
        model.model_validate({argument: value})
    except ValidationError as exc:
        for error in exc.errors(include_url=False, include_context=False, include_input=False):
            if error["loc"][:1] == (argument,):
                return WRONG_FORM if error["type"] == "string_pattern_mismatch" else error["msg"]
    except (
        Exception
    ):  # a validator of all arguments that misses the others: the call itself will judge
        return None
    return None


def _schema_error(schema: Schema, argument: str, value: JsonValue) -> str | None:
    kind = jsonschema.Draft202012Validator
    # A moment is local and has no offset, as JSON schema wants it. An own registry: references are
    # never fetched.
    formats = jsonschema.FormatChecker(kind.FORMAT_CHECKER.checkers.keys() - {"date-time"})
    validator = kind(schema, format_checker=formats, registry=Registry())
    try:
        for error in validator.iter_errors({argument: value}):
            if list(error.absolute_path)[:1] == [argument]:
                problem = _MESSAGES.get(
                    str(error.validator), f"does not meet {error.validator}: {{}}"
                )
                return problem.format(error.validator_value)
    except Unresolvable:  # a reference to another document: the tool itself will judge
        return None
    return None


def _call_schema(tool: BaseTool) -> Schema:
    """The JSON schema of what a caller gives to the tool, known to be one."""
    try:
        described = tool.tool_call_schema
        if not isinstance(described, dict):
            return (
                described.model_json_schema()
                if issubclass(described, BaseModel)
                else described.schema()
            )
        jsonschema.Draft202012Validator.check_schema(described)
    except Exception as exc:  # pydantic has several errors for types that have no JSON schema
        raise InvalidInput(
            f"the arguments of tool {tool.name!r} cannot be described as JSON schema:"
            f" {type(exc).__name__}"
        ) from exc
    return described


def _full_schema(tool: BaseTool) -> Schema | None:
    """The schema of all arguments; None where the tool has no complete one.

    It keeps examples, which the schema for callers loses.
    """
    if not (isinstance(tool.args_schema, type) and issubclass(tool.args_schema, BaseModel)):
        return None
    try:
        return tool.args_schema.model_json_schema()
    except PydanticInvalidForJsonSchema:
        return None


def _resolved(schema: Schema, root: Schema) -> Schema:
    """The schema without its outer references, and without the null of an optional value."""
    seen: dict[str, Any] = dict(schema)
    for _ in range(10):
        if isinstance(target := seen.pop("$ref", None), str):
            seen = {**_lookup(target, root), **seen}
        elif options := list(_alternatives(seen)):
            rest = {
                key: value for key, value in seen.items() if key not in ("anyOf", "oneOf", "allOf")
            }
            seen = {**options[0], **rest}
        else:
            break
    if isinstance(kinds := seen.get("type"), list):
        seen["type"] = next((kind for kind in kinds if kind != "null"), "null")
    return seen


def _alternatives(schema: Schema) -> Iterator[Schema]:
    for key in ("anyOf", "oneOf", "allOf"):
        for option in schema.get(key, ()):
            if isinstance(option, Mapping) and option.get("type") != "null":
                yield option


def _lookup(target: str, root: Schema) -> Schema:
    node: Any = root
    for step in target.removeprefix("#/").split("/"):
        node = node.get(step, {}) if isinstance(node, Mapping) else {}
    return node if isinstance(node, Mapping) else {}
