"""Commands that keep a database small: they delete expired threads and old checkpoints."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from contextlib import closing
from datetime import timedelta

import typer

from langmem_ext.checkpointer.saver import DeltaSaver
from langmem_ext.cli.commands.threads.listing import counted, settings_for, sweep_memories, there
from langmem_ext.cli.errors import give_space_back, note, require_yes
from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import MessageLog
from langmem_ext.log.retention import Retention
from langmem_ext.settings.model import Settings
from langmem_ext.threads.threads import Threads
from langmem_ext.types import Pruned


def sweep_with(
    db: str | None,
    owner: str | None,
    *,
    ttl: float | None,
    tool_ttl: float | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Delete the threads that have expired, and say what was deleted.

    Args:
        db: The database.
        owner: Whose threads.
        ttl: Hours that a thread lives; None: as the setting `auto_prune_days` has it. 0: for ever.
        tool_ttl: The same for the threads of tools; None: as the setting `ttl_hours` has it. 0: as
            `ttl`.
        dry_run: Show what would be deleted; change nothing.
        as_json: Print JSON.

    Raises:
        LangmemExtError: The database cannot be opened or written.
    """
    settings = settings_for(db, owner)
    lives = timedelta(days=settings.auto_prune_days) if ttl is None else _hours(ttl, "--ttl")
    tools_live = (
        timedelta(hours=settings.ttl_hours) if tool_ttl is None else _hours(tool_ttl, "--tool-ttl")
    )
    with closing(
        _opened(settings, Retention(ttl=lives or None, tool_ttl=tools_live or None))
    ) as saver:
        pruned = saver.sweep(dry_run=dry_run)
        if pruned.threads and not dry_run:
            sweep_memories(saver.log, saver.owner)
        given_back = give_space_back(saver.log, note) if pruned.threads and not dry_run else 0
    _say(pruned, given_back, dry_run=dry_run, as_json=as_json)
    if dry_run and not lives and not as_json:
        lasting = "only conversations of tools expire" if tools_live else "no conversation expires"
        typer.echo(f"langmem-ext: {lasting}: set --ttl or the setting auto_prune_days", err=True)


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
        older_than: Days after which a thread that was not written is deleted; None: as the setting
            `auto_prune_days` has it, unless `keep_last` says that something else is meant.
        keep_last: How many of the newest checkpoints of each thread stay.
        yes: Skip the confirmation prompt.
        dry_run: Show what would be deleted; change nothing.
        as_json: Print JSON.
        interactive: Whether a person is there who can be asked.

    Raises:
        InvalidInput: It is not said what to delete, or nobody is there to say that it is meant.
        LangmemExtError: The database cannot be opened or written.
    """
    if older_than == 0:
        raise InvalidInput("--older-than must be above 0 days, like 0.5 for twelve hours")
    if not (yes or dry_run or interactive):
        raise InvalidInput(
            "pruning is permanent and needs a confirmation: pass --yes, or --dry-run to preview"
        )
    settings = settings_for(db, owner)
    days = settings.auto_prune_days if older_than is None and keep_last is None else older_than
    if not days and keep_last is None:
        raise InvalidInput(
            "nothing to prune: pass --older-than DAYS to delete threads, --keep-last N to keep N"
            " checkpoints of each"
        )
    with closing(
        _opened(settings, Retention(ttl=_days(days) if days else None, keep_last=keep_last))
    ) as saver:
        pruned, given_back = _prune(saver, asks=not (yes or dry_run), dry_run=dry_run)
    _say(pruned, given_back, dry_run=dry_run, as_json=as_json)


def _prune(saver: DeltaSaver, *, asks: bool, dry_run: bool) -> tuple[Pruned, int]:
    pruned = saver.sweep(dry_run=dry_run or asks)
    if dry_run or pruned == Pruned():
        return pruned, 0
    if asks:
        typer.echo(_in_words(pruned), err=True)
        require_yes("Delete them permanently?")
        pruned = saver.sweep()
    sweep_memories(saver.log, saver.owner)
    return pruned, give_space_back(saver.log, note)


def forget_with(
    db: str | None, owner: str | None, *, yes: bool, as_json: bool, interactive: bool
) -> None:
    """Delete everything of an owner, if that is meant, and say what was deleted.

    Raises:
        InvalidInput: No owner is named, or nobody is there to say that it is meant.
        LangmemExtError: The database cannot be opened or written.
    """
    if not owner:
        raise InvalidInput("whose conversations are to be forgotten? pass --owner NAME")
    if not (yes or interactive):
        raise InvalidInput("forgetting is permanent and needs a confirmation: pass --yes")
    settings = settings_for(db, owner)
    log = MessageLog.open(
        there(settings.storage_path, read_only=False), synchronous=settings.synchronous, own=True
    )
    with closing(log):
        threads = Threads(log)
        if not yes:
            count = threads.count(owner=owner, status=None)
            require_yes(
                f"Delete {counted(count, 'conversation')} of {owner!r}, and all that is remembered"
                " of this owner, permanently?"
            )
        pruned = threads.forget_owner(owner)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(pruned)))
    else:
        note(
            f"deleted {_in_words(pruned)}, {counted(pruned.store_items, 'item')} of the store"
            " (memories and facts among them)"
        )


def _opened(settings: Settings, retention: Retention) -> DeltaSaver:
    log = MessageLog.open(
        there(settings.storage_path, read_only=False), synchronous=settings.synchronous, own=True
    )
    return DeltaSaver(log, owner=settings.owner or None, retention=retention)


def _hours(hours: float, option: str) -> timedelta:
    return _span(lambda: timedelta(hours=hours), option)


def _days(days: float) -> timedelta:
    return _span(lambda: timedelta(days=days), "--older-than")


def _span(make: Callable[[], timedelta], option: str) -> timedelta:
    try:
        return make()
    except (ValueError, OverflowError) as error:
        raise InvalidInput(f"{option} is too long: pass a smaller number") from error


def _say(pruned: Pruned, given_back: int, *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        typer.echo(
            json.dumps(dataclasses.asdict(pruned) | {"given_back": given_back, "dry_run": dry_run})
        )
        return
    if dry_run:
        typer.echo(f"langmem-ext: would delete {_in_words(pruned)}", err=True)
    else:
        typer.echo(
            f"langmem-ext: deleted {_in_words(pruned)}; the file is {given_back:,} bytes smaller",
            err=True,
        )


def _in_words(pruned: Pruned) -> str:
    rows = (
        (pruned.threads, "thread"),
        (pruned.checkpoints, "checkpoint"),
        (pruned.items, "message"),
    )
    return f"{', '.join(counted(count, noun) for count, noun in rows)}, {pruned.bytes:,} bytes"
