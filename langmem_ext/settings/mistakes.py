"""Invalid settings in sentences: each says where it is, and what would be valid."""

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
"""How many characters of a value a message repeats."""


def mistakes(
    error: ValidationError, written: Mapping[str, Found], fields: Mapping[str, FieldInfo]
) -> list[str]:
    """A sentence for each invalid setting and each unknown name, in the order of the sources.

    Args:
        error: Pydantic's error.
        written: The values as they were written, and where.
        fields: The settings.
    """
    wrong = {
        str(detail["loc"][0])
        for detail in error.errors(include_url=False, include_context=False, include_input=False)
    }
    ordered = sorted(
        wrong,
        key=lambda name: (
            _LAYERS.index(written[name].origin.layer),
            written[name].origin.line or 0,
            name,
        ),
    )
    return [
        (
            _cannot_be(name, written[name], fields[name])
            if name in fields
            else _unknown(name, written[name], fields)
        )
        for name in ordered
    ]


def _cannot_be(name: str, written: Found, field: FieldInfo) -> str:
    return f"{written.origin}: {name} cannot be {_repeated(written.value)}; {allowed(field)}"


def _unknown(name: str, written: Found, fields: Mapping[str, FieldInfo]) -> str:
    """The sentence for an unknown name; without the value, which may be a secret."""
    if written.origin.layer == "environment":
        names = {variable.removeprefix(PREFIX): variable for variable in variables(fields)}
        return (
            f"{_named(name)} is not a setting; did you mean"
            f" {names[closest(name.removeprefix(PREFIX).upper(), names)]}?"
        )
    return (
        f"{written.origin}: {_named(name)} is not a setting; did you mean"
        f" {closest(name.lower().replace('-', '_'), fields)}?"
    )


def _named(name: str) -> str:
    """A name as it was written, quoted if it is unusual."""
    return name if name.isprintable() and 0 < len(name) <= _LONGEST else _repeated(name)


def _repeated(value: object) -> str:
    """A value, short and without a password."""
    text = masked(repr(value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
