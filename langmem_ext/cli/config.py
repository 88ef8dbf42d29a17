"""The settings at a terminal or in a pipe, and as the other commands use them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import typer
from pydantic.fields import FieldInfo
from rich.console import Console
from rich.table import Table
from rich.text import Text

from langmem_ext._internal.names import closest
from langmem_ext.errors import InvalidInput
from langmem_ext.settings.descriptions import descriptions
from langmem_ext.settings.field import about, allowed, written
from langmem_ext.settings.model import Settings
from langmem_ext.settings.origin import masked
from langmem_ext.settings.sources import project_file, user_file

Fields: TypeAlias = Mapping[str, FieldInfo]


def settings_with(**arguments: str | bool | None) -> Settings:
    """The settings, where the arguments that were given count for more than all else.

    Raises:
        SettingsError: They have mistakes.
    """
    values: dict[str, Any] = {name: value for name, value in arguments.items() if value is not None}
    return Settings(**values)


def one_of(named: str | None, option: str | None) -> str | None:
    """The database that a command names, by its argument or its option; None if by neither.

    Raises:
        InvalidInput: It is given two.
    """
    if named is not None and option is not None:
        raise InvalidInput(
            f"{masked(named)} and --db {masked(option)} both name a database: pass only one"
        )
    return option if named is None else named


def database(named: str | None, option: str | None = None) -> str:
    """The database of a command: what it names, or that of the settings, read only then.

    Raises:
        InvalidInput: It is given two.
        SettingsError: The settings are needed and have mistakes.
    """
    name = one_of(named, option)
    return name if name is not None else Settings().storage_path


def show_with(
    names: Sequence[str], assigned: Sequence[str], *, as_json: bool, interactive: bool
) -> None:
    """Print settings, and where their values come from.

    Args:
        names: Only these, with what each takes and governs; all, if none is named.
        assigned: `name=value`, to be taken as arguments.
        as_json: Print JSON.
        interactive: Whether a person reads it.

    Raises:
        InvalidInput: Something is assigned to nothing, or a name is not a setting's.
        SettingsError: The settings have mistakes.
    """
    settings = settings_with(**dict(map(_parts, assigned)))
    _check_names(names)
    shown = {
        name: field
        for name, field in type(settings).model_fields.items()
        if not names or name in names
    }
    if as_json:
        typer.echo(json.dumps(dict(_described(settings, shown))))
    elif not interactive:
        typer.echo("\n".join("\t".join(row) for row in _rows(settings, shown)))
    elif names:
        _print_pages(settings, shown)
    else:
        _print_table(settings, shown)


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if name not in Settings.model_fields:
            raise InvalidInput(
                f"{_plain(name)} is not a setting; did you mean"
                f" {closest(name.lower().replace('-', '_'), Settings.model_fields)}?"
            )


def paths_with(*, as_json: bool) -> None:
    """Print the files that settings are read from, the one that counts for more first."""
    files = [("project file", project_file()), ("user file", user_file())]
    if as_json:
        typer.echo(
            json.dumps(
                [
                    {"layer": layer, "path": str(path), "exists": path.exists()}
                    for layer, path in files
                ]
            )
        )
    else:
        typer.echo(
            "\n".join(
                f"{layer}\t{_plain(str(path))}\t{'' if path.exists() else 'not found'}".rstrip()
                for layer, path in files
            )
        )


def _parts(assignment: str) -> tuple[str, str]:
    name, sign, value = assignment.partition("=")
    if not sign or name.startswith("_"):  # pydantic-settings has arguments of its own that begin so
        raise InvalidInput(
            f"--set {assignment!r} is invalid: write --set name=value with the name of a setting"
        )
    return name.strip(), value


def _described(settings: Settings, shown: Fields) -> Iterator[tuple[str, dict[str, object]]]:
    for name, field in shown.items():
        value, origin, special = getattr(settings, name), settings.origins[name], about(field)
        yield (
            name,
            {
                "value": masked(value) if isinstance(value, str) else value,
                "unit": special.unit or None,
                "off": special.off,
                "takes": allowed(field),
                "governs": _words(name),
                "from": origin.layer,
                "name": origin.name or None,
                "line": origin.line,
            },
        )


def _rows(settings: Settings, shown: Fields) -> Iterator[tuple[str, str, str]]:
    """Name, value and where it comes from."""
    for name in shown:
        yield (
            name,
            _plain(masked(written(getattr(settings, name)))),
            _plain(str(settings.origins[name])),
        )


def _print_table(settings: Settings, shown: Fields) -> None:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("setting", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("from", overflow="fold")
    for (name, value, origin), field in zip(_rows(settings, shown), shown.values(), strict=True):
        off = about(field).off is not None and value == str(about(field).off)
        text = Text.assemble(value, (" (off)" if off else f" {about(field).unit}", "dim"))
        table.add_row(name, text, Text(origin, style="dim" if origin == "default" else "bold"))
    console = Console(highlight=False)
    console.print(table)
    console.print(
        Text("`langmem-ext config show NAME` shows the allowed values of a setting.", style="dim")
    )


def _print_pages(settings: Settings, shown: Fields) -> None:
    table = Table.grid(padding=(0, 2))
    for (name, value, origin), field in zip(_rows(settings, shown), shown.values(), strict=True):
        table.add_row(Text(name, style="bold"), Text(value))
        rows = (("from", origin), ("takes", allowed(field)), ("governs", _words(name)))
        for title, text in rows:
            table.add_row(Text(f"  {title}", style="dim"), Text(text))
    Console(highlight=False).print(table)


def _words(name: str) -> str:
    return descriptions().get(name, "").replace("`", "")


def _plain(text: str) -> str:
    """The text in one line, without what could steer the terminal."""
    return text if text.isprintable() else repr(text)
