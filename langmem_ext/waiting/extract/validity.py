"""Whether a value is one its parameter may hold, and what is wrong with one that it may not."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time

from pydantic import JsonValue

from langmem_ext.waiting.catalog.param import ISO_DURATION, Bound, Param, ParamType, label
from langmem_ext.waiting.extract.codes.identifier import compiled
from langmem_ext.waiting.extract.codes.url import address_of

NUMERIC = frozenset((ParamType.INTEGER, ParamType.NUMBER, ParamType.MONEY))
"""Types whose values are numbers."""


def is_valid(param: Param, value: JsonValue) -> bool:
    """Whether the value has the parameter's type, is allowed, and matches its pattern."""
    return (
        _has_type(param.type, value, param.units)
        and is_allowed(param, value)
        and _matches(param, value)
    )


def _has_type(kind: str, value: JsonValue, units: str = "") -> bool:
    if not isinstance(kind, ParamType):
        return isinstance(value, str | int | float)
    if kind == ParamType.BOOLEAN:
        return isinstance(value, bool)
    if kind in NUMERIC or (kind == ParamType.DURATION and units):
        return isinstance(
            value, int if kind == ParamType.INTEGER else (int, float)
        ) and not isinstance(value, bool)
    if not isinstance(value, str) or not value.strip():
        return False
    if kind == ParamType.DATE:
        return _parses(date.fromisoformat, value)
    if kind == ParamType.TIME:
        return re.fullmatch(r"\d\d:\d\d", value) is not None and _parses(time.fromisoformat, value)
    if kind == ParamType.DATETIME:
        return _MOMENT.fullmatch(value) is not None and _parses(datetime.fromisoformat, value)
    if kind == ParamType.DURATION:
        return ISO_DURATION.fullmatch(value) is not None
    return kind != ParamType.URL or address_of(value) == value


_MOMENT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")


def _parses(parse: Callable[[str], object], value: str) -> bool:
    try:
        parse(value)
    except ValueError:
        return False
    return True


def is_allowed(param: Param, value: JsonValue) -> bool:
    """Whether the value is one of the parameter's allowed values, if it lists any.

    A number is compared as text.
    """
    free = not param.enum or param.open_values or param.type == ParamType.BOOLEAN
    return free or str(value) in param.enum


def problem_of(param: Param, value: JsonValue, *, now: datetime) -> str | None:
    """A sentence that says what is allowed, for a value out of the parameter's bounds.

    Args:
        param: The parameter.
        value: A value of its type; one of another type lies nowhere and has no problem here.
        now: What "today" is.

    Returns:
        "it must be between 11:00 and 23:00", "it must be today or later"; None where the value is
        allowed.
    """
    if param.bounds is None and not param.future:
        return None
    place = _place(param.type, value)
    if place is None:
        return None
    if param.future and param.type == ParamType.DATE and place < _days(now.date()):
        return "it must be today or later"
    if param.future and param.type == ParamType.DATETIME and place < _minutes(now):
        return "it must be later than now"
    if _bounds_hours(param):
        hours = param.model_copy(update={"type": ParamType.TIME, "future": False})
        return problem_of(hours, str(value)[-5:], now=now)
    low, high = param.bounds or (None, None)
    least, most = _end(param.type, low), _end(param.type, high)
    if (least is None or place >= least) and (most is None or place <= most):
        return None
    lowest, highest = (
        label(param, end) if param.type == ParamType.DURATION else end for end in (low, high)
    )
    if least is not None and most is not None:
        return f"it must be between {lowest} and {highest}"
    late = param.type in (ParamType.DATE, ParamType.TIME, ParamType.DATETIME)
    if least is not None:
        return f"it must be {lowest} or {'later' if late else 'more'}"
    return f"it must be {highest} or {'earlier' if late else 'less'}"


def bounds_mistake(param: Param) -> str | None:
    """Why the parameter's bounds bound nothing; None where they do, or where it has none."""
    if param.bounds is None:
        return None
    if _bounds_hours(param):
        return bounds_mistake(param.model_copy(update={"type": ParamType.TIME}))
    kind = _BOUNDED.get(param.type)
    if param.type == ParamType.DURATION and not param.units:
        kind = "duration like 'PT1H30M'"
    if kind is None:
        return f"{param.type} is not ordered and has no bounds"
    low, high = (_end(param.type, end) if _is_written(param, end) else None for end in param.bounds)
    for end, place in zip(param.bounds, (low, high), strict=True):
        if end is not None and place is None:
            return f"{end!r} is not a {kind}"
    if low is None and high is None:
        return "give at least one of them"
    return (
        "the lowest value is above the highest"
        if low is not None and high is not None and low > high
        else None
    )


_BOUNDED: Mapping[str, str] = {
    ParamType.TIME: "time like '09:30'",
    ParamType.DATE: "date like '2024-05-31'",
    ParamType.DATETIME: "moment like '2024-05-31T17:00', nor a time like '09:30'",
    ParamType.DURATION: "number of the parameter's units",
    ParamType.INTEGER: "whole number",
    ParamType.NUMBER: "number",
    ParamType.MONEY: "number",
}
"""The types whose values have an order, and how a bound of each is written."""


def _is_written(param: Param, end: Bound) -> bool:
    """Whether a bound of a duration is written as its values are: with units, a number of them."""
    iso = isinstance(end, str) and ISO_DURATION.fullmatch(end) is not None
    return param.type != ParamType.DURATION or iso is not bool(param.units)


def _bounds_hours(param: Param) -> bool:
    """Whether the bounds of a moment are times of the day."""
    return param.type == ParamType.DATETIME and any(
        _end(ParamType.TIME, end) is not None for end in param.bounds or ()
    )


def _end(kind: str, bound: Bound) -> float | None:
    """Where a bound lies; a number may be written as text, as a file has it ("0.5")."""
    if kind in (*NUMERIC, ParamType.DURATION) and isinstance(bound, str):
        if re.fullmatch(r"-?\d{1,15}(?:\.\d{1,15})?", bound):
            return float(bound)
        return None if kind in NUMERIC else _place(kind, bound)
    return _place(kind, bound)


def _place(kind: str, value: JsonValue) -> float | None:
    """The place of a value in the order of its type; None for another type, or no order."""
    if kind not in _BOUNDED or not _has_type(
        kind, value, "any" if isinstance(value, int | float) else ""
    ):
        return None
    if isinstance(value, int | float):
        return float(value)
    if kind == ParamType.DURATION:
        return _seconds(str(value))
    if kind == ParamType.DATETIME:
        return _minutes(datetime.fromisoformat(str(value)))
    if kind == ParamType.DATE:
        return _days(date.fromisoformat(str(value)))
    moment = time.fromisoformat(str(value))
    return 60 * moment.hour + moment.minute


def _minutes(moment: datetime) -> float:
    return 24 * 60 * moment.toordinal() + 60 * moment.hour + moment.minute


def _seconds(duration: str) -> float | None:
    """How long an ISO duration is; a month and a year are as long as they are on average."""
    match = ISO_DURATION.fullmatch(duration)
    return match and sum(
        int(count or 0) * _LENGTH[unit] for unit, count in match.groupdict().items()
    )


_DAY = 86_400
_LENGTH: Mapping[str, float] = {
    "years": 365.2425 * _DAY,
    "months": 365.2425 / 12 * _DAY,
    "weeks": 7 * _DAY,
    "days": _DAY,
    "hours": 3_600,
    "minutes": 60,
    "seconds": 1,
}


def _days(day: date) -> float:
    return day.toordinal()


def _matches(param: Param, value: JsonValue) -> bool:
    return (
        param.pattern is None
        or not isinstance(value, str)
        or compiled(param.name, param.pattern).fullmatch(value) is not None
    )
