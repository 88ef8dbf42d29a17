"""The sources of values besides arguments: the environment, and files.

A source's values are passed on as they are written, even unknown names: all mistakes are reported
at once, at the end.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, NoReturn, TypeAlias

from platformdirs import user_config_path
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource

from langmem_ext._internal.yaml import DataPath, Document, line_of, read_document, render
from langmem_ext.errors import SettingsError
from langmem_ext.settings.field import about
from langmem_ext.settings.origin import Found, Origin

PREFIX: Final = "LANGMEM_EXT_"
FILE: Final = "langmem.yaml"

SECTION: Final = "memory"
"""The one key that a file may have instead: with all settings below it."""

NOT_SETTINGS: Final = frozenset(
    {
        f"{PREFIX}{name}"
        for name in ("AGENT_MODEL", "EXAMPLES", "POSTGRES", "SHOP_DB", "SHRINK", "SOAK")
    }
)
"""Variables of the example shop and agent and of this project's tests."""

Fields: TypeAlias = Mapping[str, FieldInfo]


def project_file() -> Path:
    """The project's file: in the current folder only, so that no file above it counts."""
    try:
        return Path(os.path.abspath(FILE))
    except OSError:  # the folder was deleted
        return Path(FILE)


def user_file() -> Path:
    """The user's file, in the system's folder for such files."""
    return user_config_path("langmem-ext", appauthor=False) / FILE


def variables(fields: Fields) -> dict[str, str]:
    """The environment variables with their settings, in ascending precedence."""
    older = {
        special.variable: name
        for name, field in fields.items()
        if (special := about(field)).variable
    }
    return {variable: name for variable, name in older.items() if variable} | {
        f"{PREFIX}{name.upper()}": name for name in fields
    }


class _Source(PydanticBaseSettingsSource):
    """A place that is read as a whole."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        """The value of one setting here.

        pydantic-settings requires this method, but reads all settings at once.
        """
        return self().get(field_name), field_name, False

    @property
    def _fields(self) -> Fields:
        return self.settings_cls.model_fields


class EnvironmentSource(_Source):
    """The environment."""

    def __call__(self) -> dict[str, Any]:
        """Every variable that is a setting, or looks like one. One that is empty is not there."""
        known = variables(self._fields)
        there = [
            name
            for name in os.environ
            if name.startswith(PREFIX) and os.environ[name] and name not in NOT_SETTINGS
        ]
        ordered = [
            *(name for name in known if name in there),
            *(name for name in sorted(there) if name not in known),
        ]
        return {
            known.get(name, name): Found(os.environ[name], Origin("environment", name))
            for name in ordered
        }


class FileSource(_Source):
    """A file of YAML.

    Args:
        settings_cls: The settings.
        layer: The project's file, or the user's.
        path: Its path, if there is one.
    """

    def __init__(
        self,
        settings_cls: type[BaseSettings],
        layer: Literal["project file", "user file"],
        path: Path,
    ) -> None:
        super().__init__(settings_cls)
        self._layer: Literal["project file", "user file"] = layer
        self._path = path

    def __call__(self) -> dict[str, Any]:
        """Every key that has a value.

        Raises:
            SettingsError: The file cannot be read, is not YAML, or is not a mapping.
        """
        if not os.path.exists(self._path):
            return {}
        document = read_document(self._path)
        top, data = self._mapping(document)
        values = {}
        for name, value in data.items():
            if value is not None:
                origin = Origin(self._layer, str(self._path), line_of((*top, name), document.lines))
                values[name] = Found(self._placed(name, value), origin)
        return values

    def _mapping(self, document: Document) -> tuple[DataPath, Mapping[str, object]]:
        """The settings in a file, and below which keys they are."""
        if document.problems:
            self._refuse(render(document.problems, document.lines))
        top: DataPath = ()
        data = document.data
        if isinstance(data, dict) and list(data) == [SECTION]:
            top, data = (SECTION,), data[SECTION]
        if data is None:
            return top, {}
        if not isinstance(data, dict):
            self._refuse(
                [
                    f"line {line_of(top, document.lines)}: write settings as `name: value`, one per"
                    " line; this is not a mapping"
                ]
            )
        return top, data

    def _refuse(self, problems: list[str]) -> NoReturn:
        raise SettingsError([f"{self._path}: {problem}" for problem in problems])

    def _placed(self, name: str, value: object) -> object:
        """A path, relative to the folder of the file that names it, not to the current folder."""
        field = self._fields.get(name)
        if (
            field is None
            or not about(field).is_path
            or not isinstance(value, str)
            or value in ("", ":memory:")
            or "://" in value
        ):
            return value
        return os.path.join(self._path.parent, os.path.expanduser(value))
