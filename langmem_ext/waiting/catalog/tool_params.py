"""Parameters from tools: those of an intent that names none, and details of declared ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from typing import TypeAlias

from langmem_ext.waiting.catalog.intent import Intent
from langmem_ext.waiting.catalog.param import Param, ParamType
from langmem_ext.waiting.catalog.parse import complete
from langmem_ext.waiting.catalog.tool_schema import ToolArgument, param_from

Arguments: TypeAlias = Mapping[str, Mapping[str, ToolArgument]]
"""The arguments of every tool, by its name."""


def with_tool_params(intent: Intent, arguments: Arguments) -> Intent:
    """The intent; one that names no parameters gets its tools' arguments.

    Required arguments become required parameters, the others optional ones.
    """
    if not intent.takes_params_from_tool:
        return intent
    sources = [
        source for tool in intent.tool for source in _sources(intent, tool, arguments.get(tool, {}))
    ]
    required = dict.fromkeys(name for name, argument in sources if argument.required)
    optional = dict.fromkeys(name for name, _ in sources if name not in required)
    return intent.model_copy(update={"required": tuple(required), "optional": tuple(optional)})


def params_with_tools(
    intents: Iterable[Intent],
    params: Mapping[str, Param],
    declared_keys: Mapping[str, frozenset[str]],
    arguments: Arguments,
) -> dict[str, Param]:
    """The declared parameters, and those that the intents take from their tools alone.

    A declared parameter is completed by the argument that it fills, an undeclared one is made from
    it.

    Args:
        intents: The intents, with their parameters.
        params: The declared parameters.
        declared_keys: For each of them, the keys that its declaration says; these stay as they are.
        arguments: The tools' arguments.
    """
    made: dict[str, Param] = {}
    for intent in intents:
        for tool in intent.tool:
            for name, argument in _sources(intent, tool, arguments.get(tool, {})):
                if name in intent.param_names:
                    made.setdefault(name, param_from(argument, name))
    declared = {
        name: completed(
            param, declared_keys.get(name, frozenset(param.model_fields_set)), made.get(name)
        )
        for name, param in params.items()
    }
    return declared | {
        name: complete(param) for name, param in made.items() if name not in declared
    }


def _sources(
    intent: Intent, tool: str, arguments: Mapping[str, ToolArgument]
) -> Iterator[tuple[str, ToolArgument]]:
    """The arguments of the tool, each with the parameter mapped to it or of the same name."""
    param_of = {argument: param for param, argument in intent.mapping_for(tool).items()}
    return ((param_of.get(name, name), argument) for name, argument in arguments.items())


def completed(param: Param, declared_keys: Set[str], made: Param | None) -> Param:
    """A declared parameter with what its declaration leaves out.

    Args:
        param: The parameter.
        declared_keys: The keys that its declaration says; these stay as they are.
        made: The parameter as the argument that it fills describes it; None where it fills none.
    """
    if made is None:
        return complete(param)
    update: dict[str, object] = {}
    if "type" not in declared_keys and "enum" not in declared_keys:
        update["type"] = made.type
    kind = update.get("type", param.type)
    if kind is ParamType.ENUM and not param.enum:
        update["enum"] = made.enum
    for field in ("description", "pattern", "examples"):
        if field not in declared_keys:
            update[field] = getattr(made, field)
    if "prompt" not in declared_keys:
        update["prompt"] = ""
    update["sensitive"] = param.sensitive or made.sensitive
    return complete(param.model_copy(update=update))
