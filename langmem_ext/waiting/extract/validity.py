"""Whether a value is one its parameter may hold."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, time

from pydantic import JsonValue

from langmem_ext.waiting.extract.identifier import compiled
from langmem_ext.waiting.param import Param, ParamType

_NUMERIC = frozenset((ParamType.INTEGER, ParamType.NUMBER, ParamType.MONEY))


def is_valid(param: Param, value: JsonValue) -> bool:
    """Whether the value has the parameter's type, is among its allowed values and matches its pattern."""
    return _has_type(param.type, value) and is_allowed(param, value) and _matches(param, value)


def _has_type(kind: ParamType, value: JsonValue) -> bool:
    if kind == ParamType.BOOLEAN:
        return isinstance(value, bool)
    if kind in _NUMERIC:
        return isinstance(value, int if kind == ParamType.INTEGER else (int, float)) and not isinstance(value, bool)
    if not isinstance(value, str) or not value.strip():
        return False
    if kind == ParamType.DATE:
        return _parses(date.fromisoformat, value)
    if kind == ParamType.TIME:
        return re.fullmatch(r"\d\d:\d\d", value) is not None and _parses(time.fromisoformat, value)
    return True


def _parses(parse: Callable[[str], object], value: str) -> bool:
    try:
        parse(value)
    except ValueError:
        return False
    return True


def is_allowed(param: Param, value: JsonValue) -> bool:
    """Whether the value is among the parameter's possible values, where it lists any; a number is one by how it is written."""
    return not param.enum or param.type == ParamType.BOOLEAN or str(value) in param.enum


def _matches(param: Param, value: JsonValue) -> bool:
    return param.pattern is None or not isinstance(value, str) or compiled(param.name, param.pattern).fullmatch(value) is not None
