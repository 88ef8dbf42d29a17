"""Conversations out of a database and into one, from the command line."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from io import StringIO
from pathlib import Path
from typing import Any, Final, TextIO

import typer

from langmem_ext.cli.commands.threads.listing import counted, find, settings_for
from langmem_ext.cli.commands.threads.reading import opened_whole
from langmem_ext.cli.control_characters import escaped, json_line, printable
from langmem_ext.errors import InvalidInput, LangmemExtError
from langmem_ext.log.message_log import MessageLog, is_server, sqlite_path
from langmem_ext.threads.export.files import Place
from langmem_ext.threads.export.writer import Format
from langmem_ext.threads.threads import Threads

_MARKDOWN: Final = (".md", ".md.gz", ".markdown")


def export_with(
    db: str | None,
    owner: str | None,
    names: Sequence[str],
    *,
    everything: bool,
    to: str,
    form: str | None,
    sensitive: bool,
    as_json: bool,
) -> None:
    """Write threads to a file or to standard output, and say how many.

    Raises:
        InvalidInput: It is not said which, or what is asked for cannot be.
        LangmemExtError: As `Threads.export_to` has it.
    """
    if everything == bool(names):
        raise InvalidInput(
            "pass either thread ids or --all, not both"
            if names
            else "name the threads to export, or pass --all"
        )
    if as_json and to == "-":
        raise InvalidInput(
            "with --json, stdout shows the counts: pass a file for the export (--to PATH)"
        )
    wanted: Any = format_for(to) if form is None else form
    with opened_whole(settings_for(db, owner), read_only=True) as threads:
        ids = [find(threads, name).id for name in names]
        target: Place = to
        if to == "-" and wanted == "markdown":
            target = SafeOutput(sys.stdout, printable)
        elif to == "-" and sys.stdout.isatty():
            target = SafeOutput(sys.stdout, escaped)
        done = threads.export_to(
            target, *dict.fromkeys(ids), format=wanted, include_sensitive=sensitive
        )
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(done)))
    else:
        typer.echo(
            f"langmem-ext: exported {counted(done.threads, 'thread')},"
            f" {counted(done.messages, 'message')}",
            err=True,
        )


def format_for(path: str) -> Format:
    """The format that a path's ending asks for: Markdown for `.md`, else JSON lines."""
    return "markdown" if path.lower().endswith(_MARKDOWN) else "jsonl"


class SafeOutput(StringIO):
    """Passes text on without what could steer a terminal.

    Args:
        target: Where to.
        harmless: Makes a text harmless.
    """

    def __init__(self, target: TextIO, harmless: Callable[[str], str]) -> None:
        super().__init__()
        self._target = target
        self._harmless = harmless

    def write(self, text: str, /) -> int:
        """Pass it on."""
        self._target.write(self._harmless(text))
        return len(text)


def import_with(
    db: str | None,
    owner: str | None,
    source: str,
    *,
    keep_ids: bool,
    keep_owners: bool,
    as_json: bool,
) -> None:
    """Bring threads in, and print the ids that they have now.

    Raises:
        LangmemExtError: As `Threads.import_from` has it.
    """
    if source != "-" and "://" not in source and not Path(source).is_file():
        lacks = f"{source} is a directory" if Path(source).is_dir() else f"{source} not found"
        raise InvalidInput(f"{lacks}: name a file that `langmem-ext threads export` wrote")
    settings = settings_for(db, owner)
    path = "" if is_server(settings.storage_path) else sqlite_path(settings.storage_path)[0]
    there = path in {"", ":memory:"} or Path(path).exists()
    try:
        log = MessageLog.open(
            settings.storage_path,
            synchronous=settings.synchronous,
            compress=settings.compress,
            own=True,
        )
        with closing(log):
            done = Threads(log, owner=settings.owner or None).import_from(
                source, keep_ids=keep_ids, keep_owners=keep_owners
            )
    except LangmemExtError:
        if not there:
            _remove_empty(path)
        raise
    if as_json:
        data = {
            "ids": dict(done.ids),
            "skipped": list(done.skipped),
            "messages": done.messages,
            "checkpoints": done.checkpoints,
        }
        typer.echo(json_line(data))
        return
    for was, became in done.ids.items():
        typer.echo(printable(became) if was == became else f"{printable(was)}\t{printable(became)}")
    left = f"; skipped because they exist already: {len(done.skipped):,}" if done.skipped else ""
    typer.echo(
        f"langmem-ext: imported {counted(len(done.ids), 'thread')},"
        f" {counted(done.messages, 'message')}{left}",
        err=True,
    )


def _remove_empty(path: str) -> None:
    """Remove a database created for an import that failed, if nobody else has used it meanwhile."""
    if not Path(path).exists():
        return
    with closing(MessageLog.open(path)) as log:
        used = Threads(log).count(status=None) > 0
    if not used:
        for suffix in ("", "-wal", "-shm"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
