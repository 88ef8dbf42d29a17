"""How a refused command ends: a message on stderr and an exit code.

The package, a person or the reader of its output may refuse.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

import typer

from langmem_ext.cli.control_characters import printable
from langmem_ext.errors import (
    InvalidInput,
    LangmemExtError,
    MissingExtra,
    SettingsError,
    StorageUnavailable,
)

if TYPE_CHECKING:  # help must not wait for it
    from langmem_ext.log.message_log import MessageLog

READER_GONE: Final = 141
"""What a shell calls a program that was stopped because nobody reads on (128 and the number of
SIGPIPE)."""

STOPPED: Final = 130

_LONGEST_ERROR: Final = 200
"""Characters that are repeated of an error of other code."""


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn what the package refuses into a message and an exit code."""
    try:
        yield
        # what cannot be written is said here, and not by the interpreter when it ends
        sys.stdout.flush()
    except LangmemExtError as error:
        note(str(error))
        raise typer.Exit(
            2 if isinstance(error, InvalidInput | MissingExtra | SettingsError) else 1
        ) from error
    except BrokenPipeError as error:
        _write_no_more()
        raise typer.Exit(READER_GONE) from error
    except OSError as error:
        _write_no_more()
        note(f"{error.filename or 'the output'} cannot be used: {error.strerror or error}")
        raise typer.Exit(1) from error


def give_space_back(log: MessageLog, tell: Callable[[str], None]) -> int:
    """Free the disk space of deleted rows; a role that may not do so gets a note instead."""
    try:
        return log.compact()
    except StorageUnavailable as error:
        tell(str(error))
        return 0


def note(text: str) -> None:
    """Say something beside the data."""
    typer.echo(f"langmem-ext: {printable(text)}", err=True)


def _write_no_more() -> None:
    """Let what is left in the buffer of standard output go nowhere."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def require_yes(question: str) -> None:
    """Ask a person; unless the answer is yes, exit with 1, or with 130 after Ctrl-C."""
    try:
        meant = typer.confirm(question, err=True)
    except typer.Abort as error:
        typer.echo("\nlangmem-ext: stopped; nothing was deleted", err=True)
        raise typer.Exit(STOPPED) from error
    if not meant:
        typer.echo("langmem-ext: nothing was deleted", err=True)
        raise typer.Exit(1)


def in_a_line(error: Exception) -> str:
    r"""An error from other code: its class and the beginning of its first line.

    The rest may be a page, or a whole request.

    >>> in_a_line(ValueError("no connection.\nTried again 3 times."))
    'ValueError: no connection'
    """
    try:
        line = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    except Exception:  # an error that cannot be said
        line = ""
    short = line if len(line) <= _LONGEST_ERROR else f"{line[:_LONGEST_ERROR]}…"
    return f"{type(error).__name__}: {short.rstrip('.')}" if short else type(error).__name__
