"""Filters on values: which values pass a search's `filter`, exactly, and which SQL can exclude.

All keys must match. A bare value must be equal (`True == 1`, `10 == 10.0`); None also matches a
missing key. A list is compared element by element, a dict by the keys that it names, at any depth,
with operators inside. `$eq` and `$ne` compare as Python does. `$gt`, `$gte`, `$lt` and `$lte`
compare numbers with numbers and texts with texts; nothing else matches.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from langmem_ext.errors import InvalidInput
from langmem_ext.storage.schema.dialect import field, scalar, truth

_ORDERED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}
_OPERATORS: Final = frozenset({"$eq", "$ne", *_ORDERED})

_EXACT: Final = 1 << 53
"""Whole numbers below this are the same in every database."""

_SLACK: Final = 1e-9
"""The part of a bound by which SQL's is wider than the filter's: a database may round."""

MOST: Final = 8
"""The maximum number of conditions in SQL."""


@dataclass(frozen=True, slots=True)
class Narrowing:
    """What SQL can exclude; the filter must still check the rest.

    Attributes:
        sql: A condition on `store_item`, to be joined by AND; empty if there is none.
        params: Its parameters.
    """

    sql: str
    params: Mapping[str, str]


def require_filter(wanted: object) -> None:
    """Require that a filter can be evaluated, whatever is stored.

    Raises:
        InvalidInput: It is not a dict, or names an unknown operator.
    """
    if not isinstance(wanted, dict):
        raise InvalidInput(f"a filter is a dict, not {type(wanted).__name__}")
    for value in wanted.values():
        _require(value)


def _require(wanted: object) -> None:
    if isinstance(wanted, list | tuple):
        for value in wanted:
            _require(value)
    elif isinstance(wanted, dict):
        names = list(wanted)
        if not all(isinstance(name, str) for name in names):
            raise InvalidInput("a filter's keys are strings")
        if not _has_operators(wanted):
            for value in wanted.values():
                _require(value)
        elif unknown := [name for name in names if name not in _OPERATORS]:
            known = ", ".join(sorted(_OPERATORS))
            raise InvalidInput(f"a filter has no operator {unknown[0]!r}: use {known}")


def passes(value: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Whether a value passes a filter."""
    return all(_equals(value.get(key), expected) for key, expected in wanted.items())


def _equals(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, dict):
        if _has_operators(wanted):
            return all(_compares(value, name, expected) for name, expected in wanted.items())
        return isinstance(value, dict) and passes(value, wanted)
    if isinstance(wanted, list | tuple):
        return (
            isinstance(value, list)
            and len(value) == len(wanted)
            and all(map(_equals, value, wanted))
        )
    return bool(value == wanted)


def _has_operators(wanted: Mapping[str, Any]) -> bool:
    return any(name.startswith("$") for name in wanted)


def _compares(value: Any, name: str, wanted: Any) -> bool:
    if name == "$eq":
        return bool(value == wanted)
    if name == "$ne":
        return bool(value != wanted)
    numbers = isinstance(value, int | float) and isinstance(wanted, int | float)
    texts = isinstance(value, str) and isinstance(wanted, str)
    return (numbers or texts) and _ORDERED[name](value, wanted)


# -- in SQL ------------------------------------------------------------------------------------


def narrowing(wanted: Mapping[str, Any]) -> Narrowing:
    """The part of a filter that SQL can check: numbers by size, texts and numbers by equality."""
    conditions: list[str] = []
    params: dict[str, str] = {}
    for key, expected in wanted.items():
        compared = (
            expected
            if isinstance(expected, dict) and _has_operators(expected)
            else {"$eq": expected}
        )
        for name, value in compared.items():
            at = len(conditions)
            if at < MOST and (condition := _condition(at, name, value)) and _is_plain_name(key):
                conditions.append(condition[0])
                params |= {f"name{at}": key, f"value{at}": json.dumps(condition[1])}
    if not conditions:
        return Narrowing("", {})
    return Narrowing(f"CASE WHEN plain = 1 THEN {' AND '.join(conditions)} ELSE TRUE END", params)


def _condition(at: int, name: str, wanted: Any) -> tuple[str, Any] | None:
    """A condition that holds whenever the filter does, and the value it compares with."""
    if name == "$eq" and isinstance(wanted, str) and wanted.isprintable():
        return f"{field(at)} = {scalar(at)}", wanted
    if isinstance(wanted, bool) or not isinstance(wanted, int | float):
        return None
    if not -_EXACT < wanted < _EXACT:  # not a number, too
        return None
    # To PostgreSQL, true is not a number.
    if name == "$eq":
        return (f"{field(at)} = {scalar(at)}", wanted) if wanted not in (0, 1) else None
    slack = abs(wanted) * _SLACK
    if name in ("$gt", "$gte"):
        return f"({truth(at)} OR {field(at)} >= {scalar(at)})", wanted - slack
    if name in ("$lt", "$lte"):
        return f"({truth(at)} OR {field(at)} <= {scalar(at)})", wanted + slack
    return None


def _is_plain_name(key: str) -> bool:
    """Whether a key can be used in a path of SQLite's JSON functions."""
    return key.isprintable() and '"' not in key and "\\" not in key
