"""Commands on threads that read messages: what was said in one, and copies of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.text import Text

from langmem_ext.cli.commands.threads.line import COLOURS, line_of
from langmem_ext.cli.commands.threads.listing import change_each, find, opened_log, settings_for
from langmem_ext.cli.control_characters import json_line, printable
from langmem_ext.settings.model import Settings
from langmem_ext.threads.threads import Threads
from langmem_ext.types import ThreadInfo


@contextmanager
def opened_whole(settings: Settings, *, read_only: bool) -> Iterator[Threads]:
    """The threads of a database that is there, with all that can be done with them."""
    with opened_log(settings, read_only=read_only) as log:
        yield Threads(
            log, owner=settings.owner or None, tool_ttl=None
        )  # who looks finds what is there, also what no tool may continue


def history_with(
    db: str | None,
    owner: str | None,
    name: str,
    *,
    last: int | None,
    times: bool,
    as_json: bool,
    interactive: bool,
) -> None:
    """Print a thread's messages, with their times if that is asked for.

    Raises:
        LangmemExtError: As `Threads.messages` has it.
    """
    with opened_whole(settings_for(db, owner), read_only=True) as threads:
        messages = threads.dated_messages(find(threads, name).id, last=last)
    console = Console(highlight=False)
    if not messages:
        typer.echo("langmem-ext: its context is empty; cleared messages stay stored", err=True)
    for message, stored in messages:
        line = line_of(message)
        when = f"{stored.astimezone():%Y-%m-%d %H:%M:%S}  " if times else ""
        if as_json:
            typer.echo(json_line(line.data() | {"created_at": stored.isoformat()}))
        elif interactive:
            parts = (
                (f"{printable(line.role)} ", COLOURS.get(line.role, "bold")),
                ("› ", "dim"),
                printable(line.text),
            )
            console.print(Text.assemble((when, "dim"), *parts))
        else:
            typer.echo(
                f"{when}{printable(line.role)}: {' '.join(printable(line.text).splitlines())}"
            )


def change_whole_with(
    db: str | None,
    owner: str | None,
    name: str,
    change: Callable[[Threads, str], ThreadInfo],
    *,
    as_json: bool,
    note_of: Callable[[ThreadInfo], str] | None = None,
) -> None:
    """`change_with` of one thread, for a change that needs more than its row.

    Raises:
        LangmemExtError: As `find` and the change have it.
    """
    with opened_whole(settings_for(db, owner), read_only=False) as threads:
        change_each(threads, [name], change, as_json=as_json, note_of=note_of)
