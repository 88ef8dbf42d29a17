"""A search at a terminal or in a pipe."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import typer
from rich.console import Console
from rich.text import Text

from langmem_ext.cli.commands.threads.listing import age, find, settings_for
from langmem_ext.cli.commands.threads.reading import opened_whole
from langmem_ext.cli.control_characters import json_line, printable
from langmem_ext.cli.dates import moment_of
from langmem_ext.errors import InvalidInput, StorageUnavailable
from langmem_ext.types import SearchHit

ROLES: Final = {"user": "human", "you": "human", "agent": "ai", "assistant": "ai"}
"""What those who speak are called elsewhere."""


def search_with(
    db: str | None,
    owner: str | None,
    text: str,
    *,
    thread: str | None,
    role: str | None,
    since: str | None,
    limit: int,
    as_json: bool,
    interactive: bool,
) -> None:
    """Print the messages that are looked for.

    Raises:
        LangmemExtError: As `Threads.search` has it.
    """
    if not text.strip():
        raise InvalidInput("nothing to search for: langmem-ext threads search 'broken lamp'")
    moment, settings = (
        None if since is None else moment_of(since, "--since"),
        settings_for(db, owner),
    )
    heard = None if role is None else ROLES.get(role.lower(), role)

    def look(*, read_only: bool) -> list[SearchHit]:
        with opened_whole(settings, read_only=read_only) as threads, _warnings_noted():
            within = None if thread is None else find(threads, thread).id
            return threads.search(text, thread=within, role=heard, since=moment, limit=limit)

    try:
        hits = look(read_only=False)  # the first search makes the index
    except StorageUnavailable:
        hits = look(read_only=True)
    if as_json or not interactive:
        for hit in hits:
            typer.echo(json_line(hit_data(hit)) if as_json else hit_columns(hit))
    elif hits:
        console, now = Console(highlight=False), datetime.now(UTC)
        for line in shown(hits, now):
            console.print(line)
    if not hits:
        typer.echo(
            "langmem-ext: no messages found; `langmem-ext threads list --title TEXT` searches"
            " titles",
            err=True,
        )


@contextmanager
def _warnings_noted() -> Iterator[None]:
    """Say warnings as notes."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        typer.echo(f"langmem-ext: {printable(str(warning.message))}", err=True)


def hit_data(hit: SearchHit) -> dict[str, object]:
    """A hit as JSON says it."""
    return dataclasses.asdict(hit) | {"created_at": hit.created_at.isoformat()}


def hit_columns(hit: SearchHit) -> str:
    """A hit in a line that other programs can cut up at its tabs: thread, time, role, text."""
    columns = (hit.thread_id, hit.created_at.isoformat(timespec="seconds"), hit.role, hit.snippet)
    return "\t".join(printable(column).replace("\t", " ").replace("\n", " ") for column in columns)


def shown(hits: Sequence[SearchHit], now: datetime) -> Iterator[Text]:
    """Hits as a person reads them: a line for the place, a line of text with the match."""
    for hit in hits:
        snippet = Text(printable(hit.snippet))
        for highlight in hit.highlights:
            # The places are those of the snippet; what is printed in front of them may be longer.
            start, end = (len(printable(hit.snippet[:place])) for place in highlight)
            snippet.stylize("bold yellow", start, end)
        where = f"  {hit.role}, {age(hit.created_at, now)}  "
        yield Text.assemble(
            (printable(hit.thread_id), "cyan"), (where, "dim"), printable(hit.title or "")
        )
        yield Text.assemble("  ", snippet)
