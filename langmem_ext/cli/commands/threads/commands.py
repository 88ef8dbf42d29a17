"""The commands `langmem-ext threads …`: their options and what they are for."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Annotated, Final

import typer

from langmem_ext.cli.errors import clear_errors
from langmem_ext.cli.examples import examples_of

if TYPE_CHECKING:
    from langmem_ext.threads.rows import ThreadRows
    from langmem_ext.threads.threads import Threads
    from langmem_ext.types import ThreadInfo

threads = typer.Typer(
    help="List, search, show, rename, fork, rewind, export, import and delete conversations.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples_of("threads"),
)

_Db = Annotated[
    str | None,
    typer.Option(
        help=(
            "The database: a path or a URL. Default: the setting storage_path (LANGMEM_EXT_DB), or"
            " memory.db."
        ),
        metavar="URL",
    ),
]
_Owner = Annotated[
    str | None,
    typer.Option(help="Only this owner's threads. Default: the setting owner.", metavar="NAME"),
]
_Path = Annotated[
    str | None,
    typer.Argument(help="The database: a path or a URL; the same as --db.", metavar="DB"),
]


def ids_of_threads(ctx: typer.Context, incomplete: str) -> list[str]:
    """The ids of threads that begin so, for a shell to complete.

    Shells evaluate what they complete: titles, and ids with other characters, are left out.
    """
    from langmem_ext.cli.commands.threads.listing import (  # noqa: PLC0415 - help must not wait for it
        opened,
        settings_for,
    )
    from langmem_ext.cli.config import one_of  # noqa: PLC0415 - help must not wait for it

    given = ctx.params
    path = given.get("path")
    if path is None and "path" in given and ctx.args:  # an option that still lacks its value
        path = ctx.args[0]
    try:
        settings = settings_for(one_of(path, given.get("db")), given.get("owner"))
        with opened(settings, read_only=True) as rows:
            found = rows.list(status=None, begins=incomplete, limit=_COMPLETED)
        return [thread.id for thread in found if _PLAIN.fullmatch(thread.id)]
    except Exception:  # whatever is wrong, the command itself says it; a shell only completes
        return []


_COMPLETED: Final = 50
_PLAIN: Final = re.compile(r"[A-Za-z0-9_.@+-]+")
_Id = Annotated[
    str,
    typer.Argument(
        help="The thread: its id, any unique prefix of it, or its title.",
        metavar="ID",
        autocompletion=ids_of_threads,
    ),
]
_Ids = Annotated[
    list[str],
    typer.Argument(
        help="The threads: ids, unique prefixes of ids, or titles.",
        metavar="ID",
        autocompletion=ids_of_threads,
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print the thread as one line of JSON.")]
_JsonLines = Annotated[bool, typer.Option("--json", help="Print one line of JSON for each.")]
_TIME = "2026-01-31, 2026-01-31T09:30, today or yesterday"


@threads.command("list", epilog=examples_of("list"))
def list_(
    path: _Path = None,
    db: _Db = None,
    owner: _Owner = None,
    archived: Annotated[
        bool, typer.Option("--archived", help="Only archived conversations.")
    ] = False,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="Include archived conversations.")
    ] = False,
    waiting: Annotated[
        bool, typer.Option("--waiting", "-w", help="Only those waiting for an answer.")
    ] = False,
    expired: Annotated[
        bool, typer.Option("--expired", help="Only those whose question has timed out.")
    ] = False,
    waiting_for: Annotated[
        str | None, typer.Option(help="Only those waiting for this parameter.", metavar="NAME")
    ] = None,
    tool: Annotated[
        str | None,
        typer.Option(help="Only those whose latest turn used this tool.", metavar="NAME"),
    ] = None,
    tag: Annotated[
        str | None, typer.Option(help="Only those with this tag.", metavar="TAG")
    ] = None,
    title: Annotated[
        str | None, typer.Option(help="Only those with this text in their title.", metavar="TEXT")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help=f"Only those last used at this time or later: {_TIME}.", metavar="TIME"),
    ] = None,
    until: Annotated[
        str | None, typer.Option(help="Only those last used before this time.", metavar="TIME")
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit",
            "-n",
            help="Maximum number of conversations; 0 for all. Default: the setting list_limit.",
            min=0,
            max=10**9,
            metavar="N",
        ),
    ] = None,
    as_json: _JsonLines = False,
) -> None:
    """List conversations, most recently used first."""
    with clear_errors():
        from langmem_ext.cli.commands.threads.listing import (  # noqa: PLC0415 - help must not wait for it
            list_with,
        )
        from langmem_ext.cli.config import one_of  # noqa: PLC0415 - help must not wait for it
        from langmem_ext.cli.dates import moment_of  # noqa: PLC0415 - help must not wait for it

        status = None if everything else "archived" if archived else "active"
        asked = {
            "tool": tool,
            "tag": tag,
            "title": title,
            "waiting_for": waiting_for or (True if waiting or expired else None),
            "since": None if since is None else moment_of(since, "--since"),
            "until": None if until is None else moment_of(until, "--until"),
        }
        interactive = sys.stdout.isatty()
        list_with(
            one_of(path, db),
            owner,
            limit=limit,
            status=status,
            asked=asked,
            expired=expired,
            as_json=as_json,
            interactive=interactive,
        )


@threads.command(short_help="Show the details of a conversation.")
def show(thread: _Id, db: _Db = None, owner: _Owner = None, as_json: _Json = False) -> None:
    """Show the details of a conversation, without its messages."""
    with clear_errors():
        from langmem_ext.cli.commands.threads.listing import (  # noqa: PLC0415 - help must not wait for it
            show_with,
        )

        show_with(db, owner, thread, as_json=as_json)


@threads.command(short_help="Print the messages of a conversation.")
def history(
    thread: _Id,
    db: _Db = None,
    owner: _Owner = None,
    last: Annotated[
        int | None,
        typer.Option(
            "--last", "-n", help="Only the last N messages.", min=1, max=10**9, metavar="N"
        ),
    ] = None,
    times: Annotated[
        bool,
        typer.Option(
            "--times", "-t", help="Show when each message was stored; --json always does."
        ),
    ] = False,
    as_json: _JsonLines = False,
) -> None:
    """Print the messages, oldest first; sensitive values are hidden."""
    with clear_errors():
        from langmem_ext.cli.commands.threads.reading import (  # noqa: PLC0415 - help must not wait for it
            history_with,
        )

        history_with(
            db,
            owner,
            thread,
            last=last,
            times=times,
            as_json=as_json,
            interactive=sys.stdout.isatty(),
        )


@threads.command()
def rename(
    thread: _Id,
    title: Annotated[
        str,
        typer.Argument(
            help="The new title; empty: the next message sets a title again.", metavar="TITLE"
        ),
    ],
    db: _Db = None,
    owner: _Owner = None,
    as_json: _Json = False,
) -> None:
    """Rename a conversation."""
    with clear_errors():
        from langmem_ext.cli.commands.threads.listing import (  # noqa: PLC0415 - help must not wait for it
            change_with,
        )

        def note_of(changed: ThreadInfo) -> str:
            return f"title: {changed.title!r}" if changed.title else "the next message sets a title"

        change_with(
            db,
            owner,
            [thread],
            lambda threads, key: threads.rename(key, title),
            as_json=as_json,
            note_of=note_of,
        )


@threads.command(epilog=examples_of("tag"))
def tag(
    thread: _Id,
    tags: Annotated[list[str] | None, typer.Argument(help="Tags to add.", metavar="TAG")] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option("--remove", "-r", help="A tag to remove; may be repeated.", metavar="TAG"),
    ] = None,
    db: _Db = None,
    owner: _Owner = None,
    as_json: _Json = False,
) -> None:
    """Add tags to a conversation, and remove others."""
    with clear_errors():
        from langmem_ext.cli.commands.threads.listing import (  # noqa: PLC0415 - help must not wait for it
            change_with,
        )

        def note_of(changed: ThreadInfo) -> str:
            return f"tags: {', '.join(changed.tags)}" if changed.tags else "no tags"

        change_with(
            db,
            owner,
            [thread],
            lambda threads, key: threads.tag(key, *(tags or ()), remove=remove or ()),
            as_json=as_json,
            note_of=note_of,
        )


@threads.command()
def archive(
    conversations: _Ids,
    undo: Annotated[bool, typer.Option("--undo", help="Undo: the same as `unarchive`.")] = False,
    db: _Db = None,
    owner: _Owner = None,
    as_json: _JsonLines = False,
) -> None:
    """Archive conversations: lists leave them out. They can be continued as before."""
    with clear_errors():
        from langmem_ext.cli.commands.threads.listing import (  # noqa: PLC0415 - help must not wait for it
            change_with,
        )

        def change(threads: ThreadRows, key: str) -> ThreadInfo:
            return threads.unarchive(key) if undo else threads.archive(key)

        change_with(db, owner, conversations, change, as_json=as_json)


@threads.command()
def unarchive(
    conversations: _Ids, db: _Db = None, owner: _Owner = None, as_json: _JsonLines = False
) -> None:
    """Show archived conversations in lists again."""
    with clear_errors():
        from langmem_ext.cli.commands.threads.listing import (  # noqa: PLC0415 - help must not wait for it
            change_with,
        )

        change_with(
            db, owner, conversations, lambda threads, key: threads.unarchive(key), as_json=as_json
        )


@threads.command(short_help="Copy a conversation, or its beginning.", epilog=examples_of("fork"))
def fork(
    thread: _Id,
    at: Annotated[
        str | None,
        typer.Option(
            help="Copy up to this message; `history --json` shows the ids.", metavar="MESSAGE-ID"
        ),
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(
            help="Copy up to this checkpoint; the `get_state_history` of a graph has the ids.",
            metavar="CHECKPOINT-ID",
        ),
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="The id of the copy. Default: a new id.", metavar="ID")
    ] = None,
    db: _Db = None,
    owner: _Owner = None,
    as_json: _Json = False,
) -> None:
    """Copy a conversation, or its beginning; the id of the copy is printed."""
    with clear_errors():
        from langmem_ext.cli.commands.threads.reading import (  # noqa: PLC0415 - help must not wait for it
            change_whole_with,
        )

        change_whole_with(
            db,
            owner,
            thread,
            lambda threads, key: threads.fork(key, checkpoint_id=checkpoint, message_id=at, to=to),
            as_json=as_json,
        )


@threads.command(short_help="Undo answers that a conversation is stuck on.")
def rewind(thread: _Id, db: _Db = None, owner: _Owner = None, as_json: _Json = False) -> None:
    """Undo the answers given to the pending step of a conversation, so its question waits again.

    Use it when every answer fails in the same way: LangGraph has stored an answer that the graph
    cannot use, and replays it. All messages stay. A step with several questions asks again from the
    first one at the next run.
    """
    with clear_errors():
        from langmem_ext.cli.commands.threads.reading import (  # noqa: PLC0415 - help must not wait for it
            change_whole_with,
        )

        def note_of(changed: ThreadInfo) -> str:
            again = f"`langmem-ext chat --thread {changed.id} --graph …`"
            return f"the answers were undone: {again} shows the question again"

        def change(threads: Threads, key: str) -> ThreadInfo:
            return threads.rewind(key)

        change_whole_with(db, owner, thread, change, as_json=as_json, note_of=note_of)


@threads.command(short_help="Give a conversation to another owner.")
def give(
    thread: _Id,
    to: Annotated[str, typer.Argument(help="The new owner of the thread.", metavar="OWNER")],
    db: _Db = None,
    owner: _Owner = None,
    as_json: _Json = False,
) -> None:
    """Give a conversation to another owner, with all its steps; the owner before sees it no more.

    The memory of it and the facts that stand on it alone are deleted: they are written again for
    the new owner.
    """
    with clear_errors():
        from langmem_ext.cli.commands.threads.listing import (  # noqa: PLC0415 - help must not wait for it
            change_with,
        )

        change_with(
            db,
            owner,
            [thread],
            lambda threads, key: threads.give(key, to),
            as_json=as_json,
            note_of=lambda changed: f"belongs to {changed.owner} now",
        )


@threads.command()
def delete(
    conversations: _Ids,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")] = False,
    db: _Db = None,
    owner: _Owner = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was deleted as one line of JSON.")
    ] = False,
) -> None:
    """Delete conversations and everything they hold, permanently."""
    with clear_errors():
        from langmem_ext.cli.commands.threads.listing import (  # noqa: PLC0415 - help must not wait for it
            delete_with,
        )

        delete_with(
            db,
            owner,
            conversations,
            yes=yes,
            as_json=as_json,
            interactive=sys.stdin.isatty() and sys.stderr.isatty(),
        )


@threads.command(short_help="Find messages by their words.", epilog=examples_of("search"))
def search(
    text: Annotated[
        str,
        typer.Argument(
            help=(
                "What to look for: words in any order, the last may be a prefix; a phrase in double"
                " quotes."
            ),
            metavar="TEXT",
        ),
    ],
    db: _Db = None,
    owner: _Owner = None,
    thread: Annotated[
        str | None,
        typer.Option(
            "--thread",
            "-t",
            help="Only in this conversation.",
            metavar="ID",
            autocompletion=ids_of_threads,
        ),
    ] = None,
    role: Annotated[
        str | None, typer.Option(help="Only messages of this role.", metavar="human|ai|system|tool")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help=f"Only messages stored at this time or later: {_TIME}.", metavar="TIME"),
    ] = None,
    limit: Annotated[
        int,
        typer.Option(
            "--limit", "-n", help="Maximum number of messages.", min=1, max=10**9, metavar="N"
        ),
    ] = 20,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON for each message.")
    ] = False,
) -> None:
    """Find messages that contain all words of a text, best match first.

    Sensitive values are not indexed.
    """
    with clear_errors():
        from langmem_ext.cli.commands.threads.search import (  # noqa: PLC0415 - help must not wait for it
            search_with,
        )

        search_with(
            db,
            owner,
            text,
            thread=thread,
            role=role,
            since=since,
            limit=limit,
            as_json=as_json,
            interactive=sys.stdout.isatty(),
        )


@threads.command(
    short_help="Export conversations as JSON lines or Markdown.", epilog=examples_of("export")
)
def export(
    conversations: Annotated[
        list[str] | None,
        typer.Argument(
            help="The threads: ids, unique prefixes of ids, or titles.",
            metavar="ID",
            autocompletion=ids_of_threads,
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", "-a", help="All conversations, including archived ones.")
    ] = False,
    to: Annotated[
        str,
        typer.Option(
            help="The target: a path, a URL, or - for stdout; .gz compresses.", metavar="PATH"
        ),
    ] = "-",
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help=(
                "JSON lines, which can be imported, or Markdown to read. Default: markdown for a"
                " path ending in .md, else jsonl."
            ),
            metavar="jsonl|markdown",
        ),
    ] = None,
    sensitive: Annotated[
        bool,
        typer.Option(
            "--include-sensitive",
            help="Show sensitive values in Markdown. JSON lines always contain them.",
        ),
    ] = False,
    db: _Db = None,
    owner: _Owner = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the counts as one line of JSON; needs --to FILE.")
    ] = False,
) -> None:
    """Export conversations as JSON lines, for `threads import`, or as Markdown."""
    with clear_errors():
        from langmem_ext.cli.commands.threads.transfer import (  # noqa: PLC0415 - help must not wait for it
            export_with,
        )

        names = conversations or []
        export_with(
            db,
            owner,
            names,
            everything=everything,
            to=to,
            form=form,
            sensitive=sensitive,
            as_json=as_json,
        )


@threads.command(
    "import", short_help="Import exported conversations.", epilog=examples_of("import")
)
def import_(
    source: Annotated[
        str,
        typer.Argument(
            help="A file written by `threads export`: a path, a URL, or - for stdin.",
            metavar="FILE",
        ),
    ],
    keep_ids: Annotated[
        bool,
        typer.Option(
            "--keep-ids",
            help="Keep the ids; threads that exist already are skipped. Default: new ids.",
        ),
    ] = False,
    keep_owners: Annotated[bool, typer.Option("--keep-owners", help="Keep the owners.")] = False,
    db: Annotated[
        str | None,
        typer.Option(
            help=(
                "The database: a path or a URL; created if it does not exist. Default: the setting"
                " storage_path."
            ),
            metavar="URL",
        ),
    ] = None,
    owner: Annotated[
        str | None,
        typer.Option(
            help="The new owner of the threads. Default: the setting owner.", metavar="NAME"
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the counts as one line of JSON.")
    ] = False,
) -> None:
    """Import JSON lines written by `threads export`.

    The whole file is checked before anything is stored.
    """
    with clear_errors():
        from langmem_ext.cli.commands.threads.transfer import (  # noqa: PLC0415 - help must not wait for it
            import_with,
        )

        import_with(db, owner, source, keep_ids=keep_ids, keep_owners=keep_owners, as_json=as_json)


@threads.command(short_help="Count conversations, turns, messages and tokens.")
def stats(
    path: _Path = None,
    db: _Db = None,
    owner: _Owner = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the counts as one line of JSON.")
    ] = False,
) -> None:
    """Count conversations by status and tool, and their turns, messages and tokens."""
    with clear_errors():
        from langmem_ext.cli.commands.threads.listing import (  # noqa: PLC0415 - help must not wait for it
            count_with,
        )
        from langmem_ext.cli.config import one_of  # noqa: PLC0415 - help must not wait for it

        db = one_of(path, db)
        count_with(db, owner, as_json=as_json, interactive=sys.stdout.isatty())
