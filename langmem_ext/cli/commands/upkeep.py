"""What keeps a database small, from the command line: threads that have expired, threads and checkpoints that are old."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import typer

from langmem_ext.checkpoint import DeltaSaver
from langmem_ext.cli.commands.listing import counted, settings_for, there
from langmem_ext.cli.errors import give_space_back, note, require_yes
from langmem_ext.errors import InvalidInput
from langmem_ext.log import MessageLog
from langmem_ext.retention import Retention
from langmem_ext.settings.model import Settings
from langmem_ext.types import Pruned


def sweep_with(db: str | None, owner: str | None, *, ttl: float | None, tool_ttl: float | None, dry_run: bool, as_json: bool) -> None:
    """Delete the threads that have expired, and say what was deleted.

    Args:
        db: The database.
        owner: Whose threads.
        ttl: Hours that a thread lives; None: as the setting `auto_prune_days` has it. 0: for ever.
        tool_ttl: The same for the threads of tools; None: as the setting `ttl_hours` has it. 0: as `ttl`.
        dry_run: Only say what would be deleted.
        as_json: Print JSON.

    Raises:
        LangmemExtError: The database cannot be opened or written.
    """
    settings = settings_for(db, owner)
    lives = timedelta(days=settings.auto_prune_days) if ttl is None else _hours(ttl, "--ttl")
    tools_live = timedelta(hours=settings.ttl_hours) if tool_ttl is None else _hours(tool_ttl, "--tool-ttl")
    with closing(_opened(settings, Retention(ttl=lives or None, tool_ttl=tools_live or None))) as saver:
        pruned = saver.sweep(dry_run=dry_run)
        given_back = give_space_back(saver.log, note) if pruned.threads and not dry_run else 0
    _say(pruned, given_back, dry_run=dry_run, as_json=as_json)
    if dry_run and not lives and not as_json:
        lasting = "only conversations of tools expire" if tools_live else "no conversation expires"
        typer.echo(f"langmem-ext: {lasting}, until --ttl or the setting auto_prune_days says how long one lives", err=True)


def prune_with(
    db: str | None,
    owner: str | None,
    *,
    older_than: float | None,
    keep_last: int | None,
    yes: bool,
    dry_run: bool,
    as_json: bool,
    interactive: bool,
) -> None:
    """Delete old threads and old checkpoints, if that is meant, and say what was deleted.

    Args:
        db: The database.
        owner: Whose threads.
        older_than: Days after which a thread that was not written is deleted; None: as the setting `auto_prune_days` has it, unless
            `keep_last` says that something else is meant.
        keep_last: How many of the newest checkpoints of each thread stay.
        yes: Do not ask.
        dry_run: Only say what would be deleted.
        as_json: Print JSON.
        interactive: Whether a person is there who can be asked.

    Raises:
        InvalidInput: It is not said what to delete, or nobody is there to say that it is meant.
        LangmemExtError: The database cannot be opened or written.
    """
    if older_than == 0:
        raise InvalidInput("--older-than 0 is no age: give a number of days above 0, like 0.5 for twelve hours")
    if not (yes or dry_run or interactive):
        raise InvalidInput("pruning is for good and nobody can be asked here: say --yes, or --dry-run to see what would go")
    settings = settings_for(db, owner)
    days = settings.auto_prune_days if older_than is None and keep_last is None else older_than
    if not days and keep_last is None:
        raise InvalidInput("say what to prune: --older-than DAYS deletes threads, --keep-last N leaves that many checkpoints of each")
    with closing(_opened(settings, Retention(ttl=_days(days) if days else None, keep_last=keep_last))) as saver:
        pruned, given_back = _prune(saver, asks=not (yes or dry_run), dry_run=dry_run)
    _say(pruned, given_back, dry_run=dry_run, as_json=as_json)


def _prune(saver: DeltaSaver, *, asks: bool, dry_run: bool) -> tuple[Pruned, int]:
    pruned = saver.sweep(dry_run=dry_run or asks)
    if dry_run or pruned == Pruned():
        return pruned, 0
    if asks:
        typer.echo(_in_words(pruned), err=True)
        require_yes("Delete them for good?")
        pruned = saver.sweep()
    return pruned, give_space_back(saver.log, note)


def _opened(settings: Settings, retention: Retention) -> DeltaSaver:
    log = MessageLog.open(there(settings.storage_path, read_only=False), synchronous=settings.synchronous, own=True)
    return DeltaSaver(log, owner=settings.owner or None, retention=retention)


def _hours(hours: float, option: str) -> timedelta:
    return _span(lambda: timedelta(hours=hours), option)


def _days(days: float) -> timedelta:
    return _span(lambda: timedelta(days=days), "--older-than")


def _span(make: Callable[[], timedelta], option: str) -> timedelta:
    try:
        return make()
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{option} is no length of time that can be counted: take a smaller number") from error


def _say(pruned: Pruned, given_back: int, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(pruned) | {"given_back": given_back, "dry_run": dry_run}))
        return
    if dry_run:
        typer.echo(f"langmem-ext: would delete {_in_words(pruned)}", err=True)
    else:
        typer.echo(f"langmem-ext: deleted {_in_words(pruned)}; the file is {given_back:,} bytes smaller", err=True)


def _in_words(pruned: Pruned) -> str:
    rows = ((pruned.threads, "thread"), (pruned.checkpoints, "checkpoint"), (pruned.items, "message"))
    return f"{', '.join(counted(count, noun) for count, noun in rows)}, {pruned.bytes:,} bytes"
