"""Where a value came from."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from langmem_ext._internal.secret_names import masked_parameters

Layer: TypeAlias = Literal["argument", "environment", "project file", "user file", "default"]

_PASSWORDS: Final = (
    # It may hold question marks and the like as they are (`_internal.url`), and even an @.
    (re.compile(r"(://[^/?#\s:@]*:)[^/]*[^?#]*(?=@)"), r"\1***"),
    # And in a URL within a URL (`direct=`), where these characters may be written as codes.
    (
        re.compile(
            r"((?::|%3A)(?:/|%2F){2}(?:(?!%3A|%40|%2F)[^/?#&\s:@])*(?::|%3A))[^?#&\s]*(?=@|%40)",
            re.IGNORECASE,
        ),
        r"\1***",
    ),
)
"""A password where URLs have it before the host."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value came from.

    Attributes:
        layer: The kind of place.
        name: The environment variable, or the path of the file; empty for an argument and a
            default.
        line: The line of the file, from 1.
    """

    layer: Layer
    name: str = ""
    line: int | None = None

    def __str__(self) -> str:
        if self.line is not None:
            return f"{self.name}:{self.line}"
        return self.name or self.layer


ARGUMENT: Final = Origin("argument")
DEFAULT: Final = Origin("default")


@dataclass(frozen=True, slots=True)
class Found:
    """A value as it was written, and where."""

    value: object
    origin: Origin


def masked(text: str) -> str:
    """The text with `***` for what is secret in a database's URL or connection string."""
    for pattern, hidden in _PASSWORDS:
        text = pattern.sub(hidden, text)
    return masked_parameters(text)
