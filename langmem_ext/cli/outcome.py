"""How a command ends when the package refuses: a message on stderr and an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

from langmem_ext.errors import InvalidInput, LangmemExtError, MissingExtra, SettingsError


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn what the package refuses into a message and an exit code."""
    try:
        yield
    except LangmemExtError as error:
        typer.echo(f"langmem-ext: {error}", err=True)
        raise typer.Exit(2 if isinstance(error, InvalidInput | MissingExtra | SettingsError) else 1) from error
