"""Whether a value fits a JSON schema, by the keywords that schemas of answers are made of.

Keywords that are not known here refuse nothing. Pure and total: a schema is somebody else's, and
nothing in it makes this raise, or go on for long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain, repeat
from operator import ge, gt, le, lt
from typing import Any, Final

_DEPTH: Final = 64
"""Schemas inside one another that are followed; one that refers to itself ends here."""

_CHECKS: Final = 10_000
"""Schemas that are looked at for one value; what is left then is taken to fit."""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPES: Final[Mapping[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": lambda value: _is_number(value) and value == value // 1,
}


def fits(value: object, schema: object) -> bool:
    """Whether a JSON value fits a schema. Anything fits what is no schema."""
    return _Schema(schema).fits(value, schema, _DEPTH)


class _Schema:
    """A whole schema, to whose parts its parts may refer."""

    def __init__(self, root: object) -> None:
        self._root = root
        self._left = _CHECKS

    def fits(self, value: object, schema: object, depth: int) -> bool:
        """Whether a value fits a part of the schema."""
        self._left -= 1
        if schema is False:
            return False
        if not isinstance(schema, Mapping) or depth == 0 or self._left <= 0:
            return True
        if not _is_one_of(value, schema) or not self._fits_parts(value, schema, depth - 1):
            return False
        if isinstance(value, dict):
            return self._fits_object(value, schema, depth - 1)
        return self._fits_array(value, schema, depth - 1) if isinstance(value, list) else True

    def _fits_parts(self, value: object, schema: Mapping[str, Any], depth: int) -> bool:
        if "$ref" in schema and not self.fits(value, self._referred(schema["$ref"]), depth):
            return False
        for name, needed in (("anyOf", any), ("oneOf", any), ("allOf", all)):
            parts = schema.get(name)
            if not isinstance(parts, list):
                continue
            if not needed(self.fits(value, part, depth) for part in parts):
                return False
        return True

    def _fits_object(self, value: dict[str, Any], schema: Mapping[str, Any], depth: int) -> bool:
        required, properties = schema.get("required"), schema.get("properties")
        names = required if isinstance(required, list) else []
        if not all(name in value for name in names if isinstance(name, str)):
            return False
        declared = properties if isinstance(properties, Mapping) else {}
        others = schema.get("additionalProperties", True)
        schemas = [declared.get(name, others) for name in value]
        return all(map(self.fits, value.values(), schemas, repeat(depth)))

    def _fits_array(self, value: list[Any], schema: Mapping[str, Any], depth: int) -> bool:
        least, most = schema.get("minItems"), schema.get("maxItems")
        if isinstance(least, int) and len(value) < least:
            return False
        if isinstance(most, int) and len(value) > most:
            return False
        first = schema.get("prefixItems")
        schemas = chain(first if isinstance(first, list) else [], repeat(schema.get("items", True)))
        return all(map(self.fits, value, schemas, repeat(depth)))

    def _referred(self, reference: object) -> object:
        """What `#/…` refers to; what is not there refuses nothing."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return True
        node = self._root
        for name in reference.removeprefix("#").split("/")[1:]:
            if not isinstance(node, Mapping):
                return True
            node = node.get(name.replace("~1", "/").replace("~0", "~"), True)
        return node


def _is_one_of(value: object, schema: Mapping[str, Any]) -> bool:
    """Whether a value is of the types, and among the values, that a schema names."""
    types, values = schema.get("type"), schema.get("enum")
    listed = types if isinstance(types, list) else [types]
    names = [name for name in listed if isinstance(name, str) and name in _TYPES]
    if names and not any(_TYPES[name](value) for name in names):
        return False
    if "const" in schema and not _same(value, schema["const"]):
        return False
    if not _within(value, schema):
        return False
    return not isinstance(values, list) or any(_same(value, allowed) for allowed in values)


_LIMITS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "minimum": ge,
    "maximum": le,
    "exclusiveMinimum": gt,
    "exclusiveMaximum": lt,
}
_LENGTHS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {"minLength": ge, "maxLength": le}


def _within(value: object, schema: Mapping[str, Any]) -> bool:
    """Whether a number, or the length of a text, is within the limits that a schema sets."""
    if isinstance(value, str):
        measured, limits = len(value), _LENGTHS
    elif _is_number(value):
        measured, limits = value, _LIMITS  # type: ignore[assignment]  # a number
    else:
        return True
    return all(
        holds(measured, schema[name])
        for name, holds in limits.items()
        if _is_number(schema.get(name))
    )


def _same(value: object, wanted: object) -> bool:
    """Equal as JSON has it, where true is not 1."""
    return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted
