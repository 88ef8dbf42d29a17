"""What a catalog leaves to the tools: the parameters of an intent, and what the tools' arguments say about a parameter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from langmem_ext.waiting.catalog.intent import Intent
from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.catalog.parse import complete
from langmem_ext.waiting.catalog.tool_schema import ToolArgument, param_from

Arguments: TypeAlias = Mapping[str, Mapping[str, ToolArgument]]
"""The arguments of every tool, by its name."""


def with_tool_params(intent: Intent, arguments: Arguments) -> Intent:
    """The intent; one that names no parameters gets its tools' arguments: the required ones required, the others optional."""
    if not intent.takes_params_from_tool:
        return intent
    sources = [source for tool in intent.tool for source in _sources(intent, tool, arguments.get(tool, {}))]
    required = dict.fromkeys(name for name, argument in sources if argument.required)
    optional = dict.fromkeys(name for name, _ in sources if name not in required)
    return intent.model_copy(update={"required": tuple(required), "optional": tuple(optional)})


def params_with_tools(
    intents: Iterable[Intent], params: Mapping[str, Param], given: Mapping[str, frozenset[str]], arguments: Arguments
) -> dict[str, Param]:
    """The declared parameters, each completed by the argument it fills, and the undeclared ones that the intents name.

    Args:
        intents: The intents, with their parameters.
        params: The declared parameters.
        given: For each of them, the keys that its declaration says; these stay as they are.
        arguments: The tools' arguments.
    """
    made: dict[str, Param] = {}
    for intent in intents:
        for tool in intent.tool:
            for name, argument in _sources(intent, tool, arguments.get(tool, {})):
                if name in intent.param_names:
                    made.setdefault(name, param_from(argument, name))
    declared = {
        name: _completed(param, given.get(name, frozenset(param.model_fields_set)), made.get(name)) for name, param in params.items()
    }
    return declared | {name: complete(param) for name, param in made.items() if name not in declared}


def _sources(intent: Intent, tool: str, arguments: Mapping[str, ToolArgument]) -> Iterator[tuple[str, ToolArgument]]:
    """The parameter that fills each argument of the tool: the one mapped to it, else the one of its name."""
    param_of = {argument: param for param, argument in intent.mapping_for(tool).items()}
    return ((param_of.get(name, name), argument) for name, argument in arguments.items())


def _completed(param: Param, given: frozenset[str], made: Param | None) -> Param:
    if made is None:
        return complete(param)
    update: dict[str, object] = {}
    if "type" not in given and "enum" not in given:
        update["type"] = made.type
    kind = update.get("type", param.type)
    if kind is ParamType.ENUM and not param.enum:
        update["enum"] = made.enum
    for field in ("description", "pattern", "examples"):
        if field not in given:
            update[field] = getattr(made, field)
    if "prompt" not in given:
        update["prompt"] = ""
    update["sensitive"] = param.sensitive or made.sensitive
    return complete(param.model_copy(update=update))
