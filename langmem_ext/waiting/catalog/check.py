"""Whether the parts of a catalog fit together, and fit the tools: every mistake, with its place."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence

from langchain_core.tools import BaseTool
from rapidfuzz.distance import DamerauLevenshtein

from langmem_ext._internal.names import in_words, instead_of, nearest
from langmem_ext._internal.yaml import DataPath, Problem
from langmem_ext.waiting.catalog.intent import OWN_FIELDS, CatalogFields, Intent, template_fields
from langmem_ext.waiting.catalog.param import NONE, Extensions, Param, ParamType
from langmem_ext.waiting.catalog.tool_params import Arguments
from langmem_ext.waiting.catalog.tool_schema import ToolArgument, field_error, step_arguments
from langmem_ext.waiting.extract.numbers.duration import UNITS
from langmem_ext.waiting.extract.validity import bounds_mistake, is_valid

RESULT = "result"
"""In a reply template, `{result.key}` is what the last tool returned."""

_NUMERIC = frozenset((ParamType.INTEGER, ParamType.NUMBER, ParamType.MONEY))
_WORDED = frozenset(
    (
        ParamType.DATE,
        ParamType.TIME,
        ParamType.DATETIME,
        ParamType.PLACE,
        ParamType.PERSON,
        ParamType.NAME,
        ParamType.ADDRESS,
        ParamType.EMAIL,
        ParamType.URL,
    )
)
_REFUSES: Mapping[object, frozenset[str]] = {
    "string": _NUMERIC | {ParamType.BOOLEAN},
    "integer": _WORDED,
    "number": _WORDED,
    "boolean": _WORDED | _NUMERIC,
}
"""For each JSON type of an argument, the parameters that never give one. Text and identifiers may
look like anything."""


def check_parts(
    catalog: CatalogFields,
    params: Collection[str],
    intents: Collection[str],
    *,
    complete: bool,
    extensions: Extensions = NONE,
) -> Iterator[Problem]:
    """What is wrong with the catalog by itself.

    Args:
        catalog: The declarations.
        params: Every declared parameter.
        intents: Every declared intent.
        complete: Whether these parameters are all; else the tools may bring more, and the
            application its functions.
        extensions: The application's functions.
    """
    for intent in catalog.intents:
        yield from _check_intent(intent, params)
    for name, param in catalog.params.items():
        yield from _check_param(("params", name), param)
        if complete:
            yield from _check_names(("params", name), param, extensions)
    for key, template in catalog.replies.model_dump().items():
        yield from _check_template(("replies", key), template, {*params, *OWN_FIELDS.get(key, ())})
    for index, name in enumerate(catalog.redaction.params):
        if name not in params and (complete or not _from_tools(catalog, name, params)):
            yield Problem(
                ("redaction", "params", index),
                f"unknown parameter {name!r}; {instead_of(name, params)}",
            )
    if catalog.escalate_to is not None and catalog.escalate_to not in intents:
        yield Problem(
            ("escalate_to",),
            f"unknown intent {catalog.escalate_to!r}; {instead_of(catalog.escalate_to, intents)}",
        )


def _check_intent(intent: Intent, params: Collection[str]) -> Iterator[Problem]:
    place = ("intents", intent.id)
    for index, pattern in enumerate(intent.patterns):
        yield from _check_pattern((*place, "patterns", index), pattern)
    yield from _check_references(intent, params)
    for param in sorted(set(intent.required) & set(intent.optional)):
        yield Problem(
            (*place, "optional", intent.optional.index(param)),
            f"{param!r} is also in `required`: list it once",
        )
    for key, target in intent.param_mapping.items():
        if not isinstance(target, str) and key not in intent.tool:
            yield Problem(
                (*place, "param_mapping", key),
                f"this intent has no tool {key!r}; {instead_of(key, intent.tool)}",
            )
    if not intent.takes_params_from_tool:
        known = {*params, *intent.param_names, *_mapped(intent)}
        yield from _check_template((*place, "reply"), intent.reply, known)
        if isinstance(intent.confirm, str):
            yield from _check_template((*place, "confirm"), intent.confirm, known)


def _check_references(intent: Intent, params: Collection[str]) -> Iterator[Problem]:
    """Names of parameters that are declared nowhere.

    With tools, which may bring parameters of their own, only a name that looks misspelt is
    reported.
    """
    for key in ("required", "optional"):
        names: tuple[str, ...] = getattr(intent, key)
        for index, name in enumerate(names):
            unused = [param for param in params if param not in intent.param_names]
            near = nearest(name, unused)
            if name not in params and (not intent.tool or (near and _is_slip(name, near))):
                known = unused if near else params
                yield Problem(
                    ("intents", intent.id, key, index),
                    f"unknown parameter {name!r}; {instead_of(name, known)}",
                )


def _from_tools(catalog: CatalogFields, name: str, params: Collection[str]) -> bool:
    """Whether the tools may bring the parameter: its name is no misspelling of a declared one."""
    near = nearest(name, params)
    return any(intent.tool for intent in catalog.intents) and not (near and _is_slip(name, near))


def _is_slip(name: str, other: str) -> bool:
    """Whether one name is a misspelling of the other: at most two edits, the same digits."""
    digits = re.sub(r"\D", "", name) == re.sub(r"\D", "", other)
    return digits and DamerauLevenshtein.distance(name, other) <= 2 < min(len(name), len(other))


def _mapped(intent: Intent) -> set[str]:
    names = set(intent.mapping_for(""))
    for tool in intent.tool:
        names |= set(intent.mapping_for(tool))
    return names


def _check_names(place: DataPath, param: Param, extensions: Extensions) -> Iterator[Problem]:
    """Names of functions that the application does not give."""
    types = [*(kind.value for kind in ParamType), *extensions.extractors]
    if param.type not in types:
        near = nearest(param.type, types)
        how = (
            f"did you mean {near!r}?"
            if near
            else f"pass an extractor: extractors={{{param.type!r}: …}}"
        )
        yield Problem((*place, "type"), f"unknown type {param.type!r}; {how}")
    for key, known in (
        ("validator", extensions.validators),
        ("normaliser", extensions.normalisers),
    ):
        name: str | None = getattr(param, key)
        if name is not None and name not in known:
            how = instead_of(name, known) if known else f"pass one: {key}s={{{name!r}: …}}"
            yield Problem((*place, key), f"unknown {key} {name!r}; {how}")


def _check_units(place: DataPath, param: Param) -> Iterator[Problem]:
    if not param.units:
        return
    if param.type not in _NUMERIC | {ParamType.DURATION}:
        yield Problem(
            (*place, "units"),
            f"only numbers and durations have units; this has the type {param.type}",
        )
    elif param.type == ParamType.DURATION and param.units not in UNITS:
        yield Problem(
            (*place, "units"),
            f"{param.units!r} is not a unit of time; {instead_of(param.units, UNITS)}",
        )


def _check_param(place: DataPath, param: Param) -> Iterator[Problem]:
    if param.type is ParamType.ENUM and not param.enum:
        yield Problem((*place, "enum"), "an enum needs its values: `enum: {value: [synonyms]}`")
    if param.type in (ParamType.INTEGER, ParamType.NUMBER, ParamType.MONEY):
        for value in param.enum:
            if not re.fullmatch(
                r"[+-]?\d+" if param.type is ParamType.INTEGER else r"[+-]?\d+(?:\.\d+)?", value
            ):
                yield Problem((*place, "enum", value), f"{value!r} is not a valid {param.type}")
    if param.open_values and not param.enum:
        yield Problem((*place, "open_values"), "`open_values` needs `enum`: declare it")
    yield from _check_units(place, param)
    yield from _check_bounds(place, param)
    yield from _check_shown_and_default(place, param)
    yield from _check_synonyms(place, param)
    if param.pattern is None:
        return
    mistakes = list(_check_pattern((*place, "pattern"), param.pattern))
    yield from mistakes
    if not mistakes:
        for index, example in enumerate(param.examples):
            if not re.fullmatch(param.pattern, example, re.IGNORECASE):
                yield Problem(
                    (*place, "examples", index),
                    f"{example!r} does not match the pattern {param.pattern}",
                )


def _check_shown_and_default(place: DataPath, param: Param) -> Iterator[Problem]:
    for value in param.labels:
        if value not in param.enum:
            yield Problem(
                (*place, "labels", value),
                f"{value!r} is not an allowed value; {instead_of(value, param.enum)}",
            )
    if param.default is not None and not is_valid(param, param.default):
        yield Problem(
            (*place, "default"), f"{param.default!r} is not an allowed value of type {param.type}"
        )


def _check_bounds(place: DataPath, param: Param) -> Iterator[Problem]:
    if mistake := bounds_mistake(param):
        yield Problem((*place, "bounds"), mistake)
    if param.future and param.type not in (ParamType.DATE, ParamType.DATETIME):
        yield Problem(
            (*place, "future"), f"`future` needs a date or datetime; this has the type {param.type}"
        )


def _check_synonyms(place: DataPath, param: Param) -> Iterator[Problem]:
    owners = {value.casefold(): value for value in param.enum}
    for value, synonyms in param.enum.items():
        for index, synonym in enumerate(synonyms):
            owner = owners.setdefault(synonym.casefold(), value)
            if owner != value:
                yield Problem(
                    (*place, "enum", value, index), f"{synonym!r} means {owner!r} already"
                )


def _check_pattern(place: DataPath, pattern: str) -> Iterator[Problem]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # a set that a later Python reads in another way
            re.compile(pattern)
    except (re.error, OverflowError, RecursionError, Warning) as exc:
        yield Problem(place, f"not a regular expression: {exc}")


def _check_template(place: DataPath, template: str, known: Collection[str]) -> Iterator[Problem]:
    for name in template_fields(template):
        if name not in known and name.split(".")[0] != RESULT:
            yield Problem(
                place,
                f"{{{name}}} is neither a parameter nor {{{RESULT}.key}};"
                f" {instead_of(name, sorted(known))}",
            )


# -- with the tools --------------------------------------------------------------------------------


def check_tools(
    catalog: CatalogFields, tools: Mapping[str, BaseTool], arguments: Arguments
) -> Iterator[Problem]:
    """What is wrong between the catalog, complete with its tools' parameters, and the tools."""
    for intent in catalog.intents:
        for index, tool in enumerate(intent.tool):
            if tool not in arguments:
                yield Problem(
                    _tool_place(intent, index),
                    f"unknown tool {tool!r}; {instead_of(tool, arguments)}",
                )
                continue
            yield from _check_mapping(intent, tool, arguments[tool])
            yield from _check_coverage(intent, index, arguments[tool])
            yield from _check_values(intent, tools[tool], arguments[tool], catalog.params)
        if intent.tool and all(tool in arguments for tool in intent.tool):
            yield from _check_sources(intent, catalog.params)
            yield from _check_use(catalog, intent, tools, arguments)


def _check_sources(intent: Intent, params: Mapping[str, Param]) -> Iterator[Problem]:
    for key in ("required", "optional"):
        names: tuple[str, ...] = getattr(intent, key)
        for index, name in enumerate(names):
            if name not in params:
                message = (
                    f"{name!r} is neither declared under 'params' nor an argument of a tool;"
                    f" {instead_of(name, params)}"
                )
                yield Problem(("intents", intent.id, key, index), message)


def _check_use(
    catalog: CatalogFields, intent: Intent, tools: Mapping[str, BaseTool], arguments: Arguments
) -> Iterator[Problem]:
    """Required parameters that are asked for and thrown away: nothing of the intent uses them.

    One that is kept for the thread may be for another intent.
    """
    confirm = intent.confirm if isinstance(intent.confirm, str) else catalog.replies.confirm
    filled = {tool: step_arguments(intent, tools[tool]) for tool in intent.tool}
    used = {name for step in filled.values() for name in step.values()}
    # LangChain calls an argument `args` `v__args`: it is there, though only the tool can say so.
    used |= {name.removeprefix("v__") for tool in intent.tool for name in arguments.get(tool, {})}
    used |= {*template_fields(intent.reply), *(template_fields(confirm) if intent.confirm else ())}
    for index, name in enumerate(intent.required):
        param = catalog.params.get(name)
        if name in used or param is None or param.keep == "thread":
            continue
        message = f"no tool, reply or confirmation of this intent uses {name!r}"
        open_arguments = [
            (tool, argument)
            for tool, step in filled.items()
            for argument in arguments[tool]
            if argument not in step
        ]
        slip = next((one for one in open_arguments if _is_same(name, one[1])), None)
        message += (
            f": write param_mapping: {{{name}: {slip[1]}}}, as tool {slip[0]!r} calls it"
            if slip
            else ": name it as the tool's argument, map it under 'param_mapping', or leave it out"
        )
        yield Problem(("intents", intent.id, "required", index), message)


def _is_same(name: str, other: str) -> bool:
    """Whether two names are one but for a slip: `from` and `from_`, `order_id` and `orderId`."""
    return in_words(name) == in_words(other) or _is_slip(name, other)


def _check_values(
    intent: Intent,
    tool: BaseTool,
    arguments: Mapping[str, ToolArgument],
    params: Mapping[str, Param],
) -> Iterator[Problem]:
    """Parameters whose values the tool would refuse, whatever a user said."""
    for argument, name in step_arguments(intent, tool).items():
        param = params.get(name)
        if param is None:
            continue
        kind = arguments[argument].schema.get("type")
        counted = param.type == ParamType.DURATION and param.units
        if (
            param.type == ParamType.DURATION
            and kind in ("integer", "number", "string")
            and bool(counted) == (kind == "string")
        ):
            how = "leave `units` out" if counted else "say in which `units`"
            yield Problem(
                ("params", name, "units"), f"tool {tool.name!r} takes {argument!r} as {kind}: {how}"
            )
        elif kind in _REFUSES and param.type in _REFUSES[kind]:
            yield Problem(
                ("params", name, "type"),
                f"{param.type} does not fit: tool {tool.name!r} takes {argument!r} as {kind}",
            )
        for value in () if param.open_values else param.enum:
            if reason := field_error(tool, argument, value):
                yield Problem(
                    ("params", name, "enum", value),
                    f"tool {tool.name!r} does not accept it for {argument!r}: {reason}",
                )


def _tool_place(intent: Intent, index: int) -> DataPath:
    place: DataPath = ("intents", intent.id, "tool")
    return (*place, index) if len(intent.tool) > 1 else place


def _check_mapping(
    intent: Intent, tool: str, arguments: Mapping[str, ToolArgument]
) -> Iterator[Problem]:
    """Mapped arguments that no tool has.

    A mapping for all tools must fit one of them, a mapping for one tool must fit that tool.
    """
    place = ("intents", intent.id, "param_mapping")
    for param, target in intent.mapping_for(tool).items():
        own = intent.param_mapping.get(tool)
        if target not in arguments and (
            len(intent.tool) == 1 or (isinstance(own, Mapping) and param in own)
        ):
            where = (
                (*place, tool, param)
                if isinstance(own, Mapping) and param in own
                else (*place, param)
            )
            yield Problem(
                where, f"tool {tool!r} has no argument {target!r}; {instead_of(target, arguments)}"
            )


def _check_coverage(
    intent: Intent, index: int, arguments: Mapping[str, ToolArgument]
) -> Iterator[Problem]:
    """Required arguments of a tool that nothing fills.

    A later step may also be filled from what the steps before it returned.
    """
    tool = intent.tool[index]
    mapping = intent.mapping_for(tool)
    sources: Sequence[str] = (
        intent.required if index == 0 else (*intent.required, *intent.optional, *mapping)
    )
    covered = {mapping.get(param, param) for param in sources}
    for argument in arguments.values():
        if argument.required and argument.name not in covered:
            message = (
                f"nothing fills the argument {argument.name!r} of tool {tool!r}: name a parameter"
                " for it under 'required'"
            )
            yield Problem(_tool_place(intent, index), message)
