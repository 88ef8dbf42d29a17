"""The settings at a terminal or in a pipe, and as the other commands use them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from langmem_ext.errors import InvalidInput
from langmem_ext.settings.field import about, written
from langmem_ext.settings.model import Settings
from langmem_ext.settings.origin import masked
from langmem_ext.settings.sources import project_file, user_file


def settings_with(**arguments: str | bool | None) -> Settings:
    """The settings, where the arguments that were given count for more than all else.

    Raises:
        SettingsError: They have mistakes.
    """
    given: dict[str, Any] = {name: value for name, value in arguments.items() if value is not None}
    return Settings(**given)


def database(named: str | None) -> str:
    """The database of a command: the one it is given, or that of the settings, which are read only then.

    Raises:
        SettingsError: The settings are needed and have mistakes.
    """
    return named if named is not None else Settings().storage_path


def show_with(assigned: Sequence[str], *, as_json: bool, interactive: bool) -> None:
    """Print every setting, and where its value comes from.

    Args:
        assigned: `name=value`, to be taken as arguments.
        as_json: Print JSON.
        interactive: Whether a person reads it.

    Raises:
        InvalidInput: Something is assigned to nothing.
        SettingsError: The settings have mistakes.
    """
    settings = settings_with(**dict(map(_parts, assigned)))
    if as_json:
        typer.echo(json.dumps(dict(_described(settings))))
    elif interactive:
        _print_table(settings)
    else:
        typer.echo("\n".join("\t".join(row) for row in _rows(settings)))


def paths_with(*, as_json: bool) -> None:
    """Print the files that settings are read from, the one that counts for more first."""
    files = [("project file", project_file()), ("user file", user_file())]
    if as_json:
        typer.echo(json.dumps([{"layer": layer, "path": str(path), "exists": path.exists()} for layer, path in files]))
    else:
        typer.echo("\n".join(f"{layer}\t{_plain(str(path))}\t{'' if path.exists() else 'not there'}".rstrip() for layer, path in files))


def _parts(assignment: str) -> tuple[str, str]:
    name, sign, value = assignment.partition("=")
    if not sign or name.startswith("_"):  # pydantic-settings has arguments of its own that begin so
        raise InvalidInput(f"--set {assignment!r} sets nothing: write --set name=value with the name of a setting")
    return name.strip(), value


def _described(settings: Settings) -> Iterator[tuple[str, dict[str, object]]]:
    for name, field in type(settings).model_fields.items():
        value, origin, special = getattr(settings, name), settings.origins[name], about(field)
        yield (
            name,
            {
                "value": masked(value) if isinstance(value, str) else value,
                "unit": special.unit or None,
                "from": origin.layer,
                "name": origin.name or None,
                "line": origin.line,
                "in_effect": special.in_effect,
            },
        )


def _rows(settings: Settings) -> Iterator[tuple[str, str, str, str]]:
    """Name, value, where from, and whether anything heeds it."""
    for name, field in type(settings).model_fields.items():
        value, special = masked(written(getattr(settings, name))), about(field)
        yield name, _plain(value), _plain(str(settings.origins[name])), "yes" if special.in_effect else "not yet"


def _print_table(settings: Settings) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("setting", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("from", overflow="fold")
    table.add_column("in effect", no_wrap=True, style="dim")
    for name, value, origin, heeded in _rows(settings):
        table.add_row(name, Text(value), Text(origin, style="dim" if origin == "default" else "bold"), heeded)
    Console(highlight=False).print(table)


def _plain(text: str) -> str:
    """The text in one line, without what could steer the terminal."""
    return text if text.isprintable() else repr(text)
