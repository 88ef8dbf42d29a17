"""What is wrong with settings, in sentences: each with its place, and with what would be right."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from langmem_ext._internal.names import closest
from langmem_ext.settings.field import allowed
from langmem_ext.settings.origin import Found, Layer, masked
from langmem_ext.settings.sources import PREFIX, variables

_LAYERS: Final = get_args(Layer)
_LONGEST: Final = 80
"""Characters of a value that a message repeats."""


def mistakes(
    error: ValidationError, found: Mapping[str, Found], fields: Mapping[str, FieldInfo]
) -> list[str]:
    """A sentence for each invalid setting and each unknown name, in the order of the sources.

    Args:
        error: What pydantic says.
        found: The values as they were written, and where.
        fields: The settings.
    """
    wrong = {
        str(detail["loc"][0])
        for detail in error.errors(include_url=False, include_context=False, include_input=False)
    }
    ordered = sorted(
        wrong,
        key=lambda name: (
            _LAYERS.index(found[name].origin.layer),
            found[name].origin.line or 0,
            name,
        ),
    )
    return [
        (
            _cannot_be(name, found[name], fields[name])
            if name in fields
            else _unknown(name, found[name], fields)
        )
        for name in ordered
    ]


def _cannot_be(name: str, found: Found, field: FieldInfo) -> str:
    return f"{found.origin}: {name} cannot be {_repeated(found.value)}; {allowed(field)}"


def _unknown(name: str, found: Found, fields: Mapping[str, FieldInfo]) -> str:
    """Never with the value: what is written under a name of its own may be a secret."""
    if found.origin.layer == "environment":
        names = {variable.removeprefix(PREFIX): variable for variable in variables(fields)}
        return (
            f"{_named(name)} is not a setting; did you mean"
            f" {names[closest(name.removeprefix(PREFIX).upper(), names)]}?"
        )
    return (
        f"{found.origin}: {_named(name)} is not a setting; did you mean"
        f" {closest(name.lower().replace('-', '_'), fields)}?"
    )


def _named(name: str) -> str:
    """A name as it was written, which may be anything."""
    return name if name.isprintable() and 0 < len(name) <= _LONGEST else _repeated(name)


def _repeated(value: object) -> str:
    """A value, short and without a password."""
    text = masked(repr(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
