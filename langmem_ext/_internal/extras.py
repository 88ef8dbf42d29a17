"""The packages that optional parts need, and the error if they are missing.

It is checked before the part imports any of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Final

from langmem_ext.errors import MissingExtra

_WAITING: Final = (
    "email_validator",
    "jsonschema",
    "phonenumbers",
    "rapidfuzz",
    "referencing",
    "yaml",
)
_SETTINGS: Final = ("platformdirs", "pydantic_settings", "yaml")

# Of what the extra `cli` brings, only `chat` needs `waiting`; it asks for itself.
NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "cli": (*_SETTINGS, "prompt_toolkit", "rich", "typer"),
    "mcp": (*_WAITING, "mcp"),
    "server": (*_WAITING, "fastapi", "jinja2", "markdown_it", "uvicorn"),
    "settings": _SETTINGS,
    "waiting": _WAITING,
}
"""The modules of an extra whose part cannot be imported without them."""


def require(feature: str, extra: str) -> None:
    """Require that an extra's packages are installed, without importing them.

    Args:
        feature: What needs the extra, for the error.
        extra: The extra, a key of `NEEDED`.

    Raises:
        MissingExtra: One of its packages is not installed.
    """
    if any(find_spec(name) is None for name in NEEDED[extra]):
        raise MissingExtra(feature, extra)
