"""Threads at a terminal or in a pipe: a table for a person, a line each for a program.

A listing needs the rows of threads alone: no message class and no graph is imported for it. What
reads messages is in `cli.reading`.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from shutil import get_terminal_size
from typing import Any, Final, TypeVar

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from langmem_ext.cli.config import settings_with
from langmem_ext.cli.control_characters import json_line, printable
from langmem_ext.cli.errors import give_space_back, note, require_yes
from langmem_ext.errors import InvalidInput, StorageUnavailable, ThreadNotFound
from langmem_ext.log.message_log import MessageLog, existing, is_server, owner_key, sqlite_path
from langmem_ext.settings.model import Settings
from langmem_ext.storage.threads.list import has_store_items
from langmem_ext.threads.rows import ThreadRows
from langmem_ext.types import ThreadInfo

T = TypeVar("T", bound=ThreadRows)

NOW: Final = "now"
_MADE: Final = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_GAP, _COUNT_WIDE, _AGE_WIDE, _TITLES_WIDE, _IDS_WIDE = 2, 10, 8, 24, 10
"""Columns of a table of threads, each with the gap after it; of titles and ids, what they need at
least, if there is room."""
_NO_SUCH: Final = "no matching threads: `langmem-ext threads list --all` lists all of them"
_SPANS: Final = (
    (timedelta(days=365), "y"),
    (timedelta(days=1), "d"),
    (timedelta(hours=1), "h"),
    (timedelta(minutes=1), "min"),
)


def settings_for(db: str | None, owner: str | None) -> Settings:
    """The settings of a command on threads.

    Raises:
        InvalidInput: The owner is not a name; without one, the threads of all would be meant.
        SettingsError: They have mistakes.
    """
    return settings_with(storage_path=db, owner=owner_key(owner))


def there(url: str, *, read_only: bool) -> str:
    """The URL of a database that is there.

    Raises:
        StorageUnavailable: It does not exist.
        InvalidInput: The URL names none.
    """
    if is_server(url):
        return existing(url, read_only=read_only)
    path, _ = sqlite_path(url)
    if Path(path).is_dir():
        raise StorageUnavailable(f"{path} is a directory: name a database file in it (--db)")
    if path != ":memory:" and not Path(path).exists():
        raise StorageUnavailable(
            f"database {Path(path).absolute()} not found: pass another path (--db), or create it"
            " with `langmem-ext chat`"
        )
    return existing(url, read_only=read_only)


@contextmanager
def opened_log(settings: Settings, *, read_only: bool) -> Iterator[MessageLog]:
    """A database that is there."""
    url = there(settings.storage_path, read_only=read_only)
    with closing(MessageLog.open(url, synchronous=settings.synchronous, own=True)) as log:
        yield log


@contextmanager
def opened(settings: Settings, *, read_only: bool) -> Iterator[ThreadRows]:
    """The rows of the threads of a database that is there."""
    with opened_log(settings, read_only=read_only) as log:
        yield ThreadRows(log, settings.owner or None)


def find(threads: ThreadRows, name: str) -> ThreadInfo:
    """The thread of an id, or the only one whose id begins so, or the only one of that title.

    Raises:
        ThreadNotFound: It does not exist.
        InvalidInput: There are several.
    """
    try:
        return threads.get(name)
    except ThreadNotFound:
        matching = threads.list(status=None, begins=name, limit=3)
    how = "begin with"
    if not matching:
        how = "are called"
        matching = list(
            islice(
                (
                    thread
                    for thread in threads.each(status=None, title=name)
                    if thread.title == name
                ),
                3,
            )
        )
    if len(matching) > 1:
        raise several(how, name, matching)
    if not matching:
        raise ThreadNotFound(f"thread {name!r} not found; see `langmem-ext threads list`")
    return matching[0]


def several(how: str, name: str, matching: Sequence[ThreadInfo]) -> InvalidInput:
    """The error for an ambiguous name; it lists two of the threads."""
    ids = ", ".join(thread.id for thread in matching[:2])
    return InvalidInput(
        f"several threads {how} {name!r}: {ids}{', …' if len(matching) > 2 else ''}: give more of"
        " the id"
    )


# -- listing ---------------------------------------------------------------------------------------


def list_with(
    db: str | None,
    owner: str | None,
    *,
    limit: int | None,
    status: str | None,
    asked: Mapping[str, Any],
    expired: bool = False,
    as_json: bool,
    interactive: bool,
) -> None:
    """Print the threads that are asked for; without a limit, as many as the settings say.

    Args:
        db: The database; None: the one of the settings.
        owner: Whose threads; None: the owner of the settings.
        limit: At most so many; 0 for all.
        status: `active` or `archived`; None: both.
        asked: What else they must be.
        expired: Only those whose question has expired: the plan of each that waits is read.
        as_json: Print JSON.
        interactive: Print a table.

    Raises:
        LangmemExtError: As `Threads.list` has it.
    """
    wanted: Any = {"status": status} | {
        name: value for name, value in asked.items() if value is not None
    }
    settings = settings_for(db, owner)
    limit = settings.list_limit if limit is None else limit
    with opened(settings, read_only=True) as threads:
        listed = _expired(threads, wanted) if expired else threads.each(**wanted)
        shown_threads = list(islice(listed, limit or None))
        full = bool(limit) and len(shown_threads) == limit
        left_out = (
            0
            if not full
            else sum(1 for _ in listed)
            if expired
            else threads.count(**wanted) - len(shown_threads)
        )
    if as_json or not interactive:
        for thread in shown_threads:
            typer.echo(
                json_line(as_data(thread)) if as_json else columns_of(thread, settings.title_length)
            )
    elif shown_threads:
        Console(highlight=False).print(
            table_of(shown_threads, datetime.now(UTC), settings.title_length)
        )
    if not shown_threads:
        asks = bool(wanted.keys() - {"status"}) or status is not None or bool(settings.owner)
        typer.echo(
            f"langmem-ext: {_NO_SUCH if asks else 'no threads yet: the first message creates one'}",
            err=True,
        )
    if left_out > 0:
        typer.echo(f"langmem-ext: {left_out:,} more: --limit 0 lists all", err=True)


def _expired(threads: ThreadRows, wanted: Any) -> Iterator[ThreadInfo]:
    """Those of the threads whose question has expired."""
    from langmem_ext.log.scope import DatabaseView  # noqa: PLC0415 - as above
    from langmem_ext.threads.session.channels import (  # noqa: PLC0415
        CHANNELS,
        SessionChannels,
    )

    view, now = DatabaseView.of(threads.log, threads.owner), datetime.now(UTC)
    for thread in threads.each(**wanted):
        end = SessionChannels(view, view.key(thread.id), CHANNELS).expires_at()
        if end is not None and end <= now:
            yield thread


def as_data(thread: ThreadInfo) -> dict[str, Any]:
    """A thread as JSON says it."""
    data = dataclasses.asdict(thread)
    del data["number"]
    return {
        name: value.isoformat() if isinstance(value, datetime) else value
        for name, value in data.items()
    }


def title_of(thread: ThreadInfo, length: int) -> str:
    """A thread's title, of at most so many characters; 0: all of it."""
    title = printable(thread.title or "")
    return title if not length or len(title) <= length else f"{title[: max(length - 1, 0)]}…"


def columns_of(thread: ThreadInfo, length: int) -> str:
    """A thread in a line that other programs can cut up at its tabs."""
    columns = (
        thread.id,
        thread.updated_at.isoformat(timespec="seconds"),
        str(thread.messages),
        thread.waiting_for or "",
        title_of(thread, length),
    )
    return "\t".join(printable(column).replace("\t", " ").replace("\n", " ") for column in columns)


def table_of(threads: Sequence[ThreadInfo], now: datetime, length: int) -> Table:
    """Threads as a person reads them."""
    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="dim")
    shortened = [printable(key) for key in short_ids([thread.id for thread in threads])]
    # Widths are dealt out here: left alone, a narrow window takes them from the ids, by which
    # everything is named.
    left = get_terminal_size().columns - _COUNT_WIDE - _AGE_WIDE
    longest = max((len(shown) + _GAP for shown in shortened), default=0)
    ids_wide = min(longest, max(left - _TITLES_WIDE, _IDS_WIDE))
    table.add_column("id", overflow="fold", width=ids_wide, style="cyan")
    table.add_column("title", overflow="ellipsis", no_wrap=True, width=max(left - ids_wide, 1))
    table.add_column("messages", justify="right", no_wrap=True, width=_COUNT_WIDE)
    table.add_column("age", justify="right", no_wrap=True, width=_AGE_WIDE)
    for thread, shown in zip(threads, shortened, strict=True):
        title = Text(title_of(thread, length))
        if noted := printable(", ".join(_noted(thread))):
            # On a line of its own: beside the rest, nothing of the title would be left in a narrow
            # window.
            title = Text.assemble(title, *("\n" if title else ""), (noted, "yellow"))
        table.add_row(Text(shown), title, f"{thread.messages:,}", age(thread.updated_at, now))
    return table


def _noted(thread: ThreadInfo) -> list[str]:
    """What is special about a thread."""
    noted = [f"waits for {thread.waiting_for}"] if thread.waiting_for else []
    noted += ["archived"] if thread.status == "archived" else []
    noted += [thread.tool] if thread.tool else []
    noted += [f"of {thread.owner}"] if thread.owner else []
    return noted + [f"#{tag}" for tag in thread.tags]


def short_ids(ids: Sequence[str]) -> list[str]:
    """Ids as a person types them: long generated ids are shortened to a unique prefix.

    >>> short_ids(["order-17", "0b3c1d6e-52d3-4b6f-a0a3-61a4a5d3c0de"])
    ['order-17', '0b3c1d6e']
    """
    made = [key for key in ids if _MADE.fullmatch(key)]
    length = next(
        (size for size in (8, 13, 18) if len({key[:size] for key in made}) == len(made)), 36
    )
    return [key[:length] if _MADE.fullmatch(key) else key for key in ids]


def age(moment: datetime, now: datetime) -> str:
    """How long ago a moment was, in one unit.

    >>> age(datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 3, tzinfo=UTC))
    '2 d'
    """
    for span, unit in _SPANS:
        if now - moment >= span:
            return f"{(now - moment) // span} {unit}"
    return NOW


def sweep_memories(log: MessageLog, owner: str | None) -> None:
    """Delete the memories of threads that were deleted, and the facts that stand on them alone."""
    if log.run(has_store_items(), write=False):
        from langmem_ext.memory.memories import (  # noqa: PLC0415
            ConversationMemories,
        )

        ConversationMemories(log, owner=owner).sweep()


def counted(count: int, noun: str) -> str:
    """A number of things.

    >>> counted(1, "thread"), counted(1200, "message")
    ('1 thread', '1,200 messages')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def count_with(db: str | None, owner: str | None, *, as_json: bool, interactive: bool) -> None:
    """Print how many threads there are, and what they hold.

    Raises:
        LangmemExtError: The database cannot be read.
    """
    with opened(settings_for(db, owner), read_only=True) as threads:
        stats = threads.stats()
    if as_json:
        by_tool = [{"tool": tool, "threads": count} for tool, count in stats.by_tool.items()]
        typer.echo(json_line(dataclasses.asdict(stats) | {"by_tool": by_tool}))
        return
    rows = [
        (name, getattr(stats, name))
        for name in ("threads", "turns", "messages", "tokens", "waiting")
    ]
    rows += [(printable(status), count) for status, count in stats.by_status.items()]
    rows += [
        ("of no tool" if tool is None else f"of the tool {printable(tool)}", count)
        for tool, count in stats.by_tool.items()
    ]
    wide = max(len(name) for name, _ in rows)
    for name, count in rows:
        typer.echo(f"{name:<{wide}}  {count:>9,}" if interactive else f"{name}\t{count}")


# -- one thread ------------------------------------------------------------------------------------


def show_with(db: str | None, owner: str | None, name: str, *, as_json: bool) -> None:
    """Print what a thread's row says.

    Raises:
        LangmemExtError: As `find` has it.
    """
    with opened(settings_for(db, owner), read_only=True) as threads:
        data = as_data(find(threads, name))
    if as_json:
        typer.echo(json_line(data))
        return
    for field, value in data.items():
        if value not in (None, (), {}):
            typer.echo(f"{field.replace('_', ' '):16} {printable(_words(value))}")


def _words(value: Any) -> str:
    if isinstance(value, tuple):
        return ", ".join(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)


# -- changes ---------------------------------------------------------------------------------------


def change_with(
    db: str | None,
    owner: str | None,
    names: Sequence[str],
    change: Callable[[ThreadRows, str], ThreadInfo],
    *,
    as_json: bool,
    note_of: Callable[[ThreadInfo], str] | None = None,
) -> None:
    """Change existing threads; print their ids, and as a note what has become of each.

    Raises:
        LangmemExtError: As `find` and the change have it.
    """
    with opened(settings_for(db, owner), read_only=False) as threads:
        change_each(threads, names, change, as_json=as_json, note_of=note_of)


def change_each(
    threads: T,
    names: Sequence[str],
    change: Callable[[T, str], ThreadInfo],
    *,
    as_json: bool,
    note_of: Callable[[ThreadInfo], str] | None = None,
) -> None:
    """`change_with`, where the threads are open already."""
    for thread in [find(threads, name) for name in names]:
        changed = change(threads, thread.id)
        typer.echo(json_line(as_data(changed)) if as_json else printable(changed.id))
        if note_of is not None and not as_json:
            typer.echo(f"langmem-ext: {printable(note_of(changed))}", err=True)


def delete_with(
    db: str | None,
    owner: str | None,
    names: Sequence[str],
    *,
    yes: bool,
    as_json: bool,
    interactive: bool,
) -> None:
    """Delete threads, if that is meant, and overwrite what they held.

    Raises:
        InvalidInput: Nobody is there to say that it is meant.
        LangmemExtError: As `find` has it.
    """
    with opened(settings_for(db, owner), read_only=False) as threads:
        chosen = [find(threads, name) for name in names]
        if not yes:
            if not interactive:
                raise InvalidInput("deleting is permanent and needs a confirmation: pass --yes")
            for thread in chosen:
                typer.echo(
                    f"{printable(thread.id)}  {printable(thread.title or '')} "
                    f" {counted(thread.stored_messages, 'message')}",
                    err=True,
                )
            require_yes(
                f"Delete {'it' if len(chosen) == 1 else f'these {len(chosen)}'} permanently?"
            )
        pruned = threads.delete(*(thread.id for thread in chosen))
        sweep_memories(threads.log, threads.owner)
        give_space_back(threads.log, note)
    if as_json:
        typer.echo(json.dumps(dataclasses.asdict(pruned)))
    else:
        counts = (
            f"{counted(pruned.threads, 'thread')}, {counted(pruned.items, 'message')},"
            f" {pruned.bytes:,} bytes"
        )
        typer.echo(f"langmem-ext: deleted {counts}", err=True)
