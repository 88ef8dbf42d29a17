"""What a setting has besides its name, type and default, and the description of its values."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias, get_args, get_origin
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic.fields import FieldInfo


@dataclass(frozen=True, slots=True)
class About:
    """What a field's name, type and default do not show.

    Attributes:
        unit: What a number counts.
        off: The number that turns the thing off.
        is_path: Whether it names a file. A relative path in a file of settings counts from that
            file's folder.
        variable: An older environment variable for it.
        takes: The values that it takes, if the type does not show them well.
    """

    unit: str = ""
    off: int | None = None
    is_path: bool = False
    variable: str | None = None
    takes: str = ""


NOTHING_SPECIAL = About()


def _number(value: object) -> object:
    """Pydantic takes true for 1: `ttl_hours: true` would expire a conversation in an hour."""
    if isinstance(value, bool):
        raise ValueError("no number")
    return value


def _path(value: object) -> object:
    """An argument may be a `pathlib.Path`."""
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _text(text: str) -> str:
    """Reject text that is no UTF-8, such as invalid bytes of the environment."""
    text.encode()
    return text


def _zone(name: str) -> str:
    """A time zone, or none."""
    try:
        if name:
            ZoneInfo(name)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError("no time zone") from error
    return name


MOST = 1_000_000_000
"""More than any count here can sensibly be; a value beyond it is a slip of the keyboard."""

Text: TypeAlias = Annotated[str, AfterValidator(_text)]
Zone: TypeAlias = Annotated[Text, AfterValidator(_zone)]
Path: TypeAlias = Annotated[str, BeforeValidator(_path), AfterValidator(os.path.expanduser)]
Count: TypeAlias = Annotated[int, BeforeValidator(_number), Field(ge=0, le=MOST)]
Days: TypeAlias = Annotated[float, BeforeValidator(_number), Field(ge=0, le=36_500)]
Hours: TypeAlias = Annotated[float, BeforeValidator(_number), Field(ge=0, le=24 * 36_500)]
Minutes: TypeAlias = Annotated[float, BeforeValidator(_number), Field(ge=0, le=60 * 24 * 365)]


def about(field: FieldInfo) -> About:
    """A field's further properties."""
    return next((mark for mark in field.metadata if isinstance(mark, About)), NOTHING_SPECIAL)


def allowed(field: FieldInfo) -> str:
    """The values of a setting, in words: `a whole number of turns, 0 to 1,000; 0 turns it off`."""
    special = about(field)
    if special.takes:
        return special.takes
    kind = field.annotation
    if kind is bool:
        return "true or false"
    if get_origin(kind) is Literal:
        return " or ".join(get_args(kind))
    if kind in (int, float):
        number = "a whole number" if kind is int else "a number"
        lowest, highest = _bound(field, "ge"), _bound(field, "le")
        off = "" if special.off is None else f"; {special.off} turns it off"
        return f"{number} of {special.unit}, {lowest} to {highest:,}{off}"
    return "text, in quotes if it looks like a number"


def written(value: object) -> str:
    """A value as it is written in a file."""
    if isinstance(value, bool):
        return str(value).lower()
    return (
        f"{value:g}"
        if isinstance(value, float) and value.is_integer() and value < MOST
        else str(value)
    )


def _bound(field: FieldInfo, name: Literal["ge", "le"]) -> int:
    """A bound as pydantic keeps it."""
    return next(int(getattr(mark, name)) for mark in field.metadata if hasattr(mark, name))
