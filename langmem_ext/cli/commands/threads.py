"""The commands `langmem-ext threads …`: their options and what they are for."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from langmem_ext.cli.errors import clear_errors
from langmem_ext.cli.examples import examples_of

if TYPE_CHECKING:
    from langmem_ext.threads.rows import ThreadRows
    from langmem_ext.threads.threads import Threads
    from langmem_ext.types import ThreadInfo

threads = typer.Typer(
    help="List, search, show, name, fork, rewind, export, import and delete conversations.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples_of("threads"),
)

_Db = Annotated[
    str | None,
    typer.Option(
        help="The database: a path or a URL. Default: the setting storage_path (LANGMEM_EXT_DB), memory.db if nothing sets it.",
        metavar="URL",
    ),
]
_Owner = Annotated[str | None, typer.Option(help="Only this owner's threads. Default: the setting owner.", metavar="NAME")]
_Id = Annotated[str, typer.Argument(help="The thread: its id, any unique prefix of it, or its title.", metavar="ID")]
_Ids = Annotated[list[str], typer.Argument(help="The threads: their ids, or enough of their beginnings, or their titles.", metavar="ID")]
_Json = Annotated[bool, typer.Option("--json", help="Print the thread as one line of JSON.")]
_JsonLines = Annotated[bool, typer.Option("--json", help="Print JSON, a line for each.")]
_TIME = "2026-01-31, 2026-01-31T09:30, today or yesterday"


@threads.command("list", epilog=examples_of("list"))
def list_(
    db: _Db = None,
    owner: _Owner = None,
    archived: Annotated[bool, typer.Option("--archived", help="Those that were put away.")] = False,
    everything: Annotated[bool, typer.Option("--all", "-a", help="Those that were put away, too.")] = False,
    waiting: Annotated[bool, typer.Option("--waiting", "-w", help="Those that wait for an answer.")] = False,
    expired: Annotated[bool, typer.Option("--expired", help="Those whose question has waited longer than its timeout.")] = False,
    waiting_for: Annotated[str | None, typer.Option(help="Those that wait for this parameter.", metavar="NAME")] = None,
    tool: Annotated[str | None, typer.Option(help="Those whose newest turn is for this tool.", metavar="NAME")] = None,
    tag: Annotated[str | None, typer.Option(help="Those with this tag.", metavar="TAG")] = None,
    title: Annotated[str | None, typer.Option(help="Those with this in their title.", metavar="TEXT")] = None,
    since: Annotated[str | None, typer.Option(help=f"Those last used then or later: {_TIME}.", metavar="TIME")] = None,
    until: Annotated[str | None, typer.Option(help="Those last used before then.", metavar="TIME")] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", help="At most so many; 0 for all. Default: the setting list_limit.", min=0, metavar="N")
    ] = None,
    as_json: _JsonLines = False,
) -> None:
    """List conversations, the one used last first."""
    with clear_errors():
        from langmem_ext.cli.commands.listing import list_with  # noqa: PLC0415 - help must not wait for it
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
        list_with(db, owner, limit=limit, status=status, asked=asked, expired=expired, as_json=as_json, interactive=interactive)


@threads.command(short_help="Show what there is to know of a conversation.")
def show(thread: _Id, db: _Db = None, owner: _Owner = None, as_json: _Json = False) -> None:
    """Show what there is to know of a conversation without reading it."""
    with clear_errors():
        from langmem_ext.cli.commands.listing import show_with  # noqa: PLC0415 - help must not wait for it

        show_with(db, owner, thread, as_json=as_json)


@threads.command(short_help="Print what was said in a conversation.")
def history(
    thread: _Id,
    db: _Db = None,
    owner: _Owner = None,
    last: Annotated[int | None, typer.Option("--last", "-n", help="Only so many of the last messages.", min=1, metavar="N")] = None,
    times: Annotated[bool, typer.Option("--times", "-t", help="Say when each message was stored; with --json it is always said.")] = False,
    as_json: _JsonLines = False,
) -> None:
    """Print what was said, oldest first; sensitive values are hidden."""
    with clear_errors():
        from langmem_ext.cli.commands.reading import history_with  # noqa: PLC0415 - help must not wait for it

        history_with(db, owner, thread, last=last, times=times, as_json=as_json, interactive=sys.stdout.isatty())


@threads.command()
def rename(
    thread: _Id,
    title: Annotated[str, typer.Argument(help="What to call it; empty: its next message gives it a title again.", metavar="TITLE")],
    db: _Db = None,
    owner: _Owner = None,
    as_json: _Json = False,
) -> None:
    """Call a conversation something else."""
    with clear_errors():
        from langmem_ext.cli.commands.listing import change_with  # noqa: PLC0415 - help must not wait for it

        def told(changed: ThreadInfo) -> str:
            return f"this conversation is called {changed.title!r}" if changed.title else "its next message gives it a title"

        change_with(db, owner, [thread], lambda threads, key: threads.rename(key, title), as_json=as_json, told=told)


@threads.command(epilog=examples_of("tag"))
def tag(
    thread: _Id,
    tags: Annotated[list[str] | None, typer.Argument(help="Tags to give it.", metavar="TAG")] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", "-r", help="A tag to take away; may be given again.", metavar="TAG")
    ] = None,
    db: _Db = None,
    owner: _Owner = None,
    as_json: _Json = False,
) -> None:
    """Give a conversation tags, and take others away."""
    with clear_errors():
        from langmem_ext.cli.commands.listing import change_with  # noqa: PLC0415 - help must not wait for it

        def told(changed: ThreadInfo) -> str:
            return f"its tags are {', '.join(changed.tags)}" if changed.tags else "it has no tags"

        change_with(
            db,
            owner,
            [thread],
            lambda threads, key: threads.tag(key, *(tags or ()), remove=remove or ()),
            as_json=as_json,
            told=told,
        )


@threads.command()
def archive(
    conversations: _Ids,
    undo: Annotated[bool, typer.Option("--undo", help="Take them back into the lists, as `unarchive` does.")] = False,
    db: _Db = None,
    owner: _Owner = None,
    as_json: _JsonLines = False,
) -> None:
    """Put conversations away: lists leave them out. They can be continued as before."""
    with clear_errors():
        from langmem_ext.cli.commands.listing import change_with  # noqa: PLC0415 - help must not wait for it

        def change(threads: ThreadRows, key: str) -> ThreadInfo:
            return threads.unarchive(key) if undo else threads.archive(key)

        change_with(db, owner, conversations, change, as_json=as_json)


@threads.command()
def unarchive(conversations: _Ids, db: _Db = None, owner: _Owner = None, as_json: _JsonLines = False) -> None:
    """Take conversations back into the lists."""
    with clear_errors():
        from langmem_ext.cli.commands.listing import change_with  # noqa: PLC0415 - help must not wait for it

        change_with(db, owner, conversations, lambda threads, key: threads.unarchive(key), as_json=as_json)


@threads.command(short_help="Copy a conversation, whole or up to a place in it.", epilog=examples_of("fork"))
def fork(
    thread: _Id,
    at: Annotated[
        str | None, typer.Option(help="End the copy with this message; `history --json` has the ids.", metavar="MESSAGE-ID")
    ] = None,
    checkpoint: Annotated[
        str | None,
        typer.Option(help="End the copy at this checkpoint; `get_state_history` of a graph has the ids.", metavar="CHECKPOINT-ID"),
    ] = None,
    to: Annotated[str | None, typer.Option(help="The copy's id; a new one by default.", metavar="ID")] = None,
    db: _Db = None,
    owner: _Owner = None,
    as_json: _Json = False,
) -> None:
    """Copy a conversation, whole or up to a place in it; the copy's id is printed."""
    with clear_errors():
        from langmem_ext.cli.commands.reading import change_whole_with  # noqa: PLC0415 - help must not wait for it

        change_whole_with(
            db,
            owner,
            thread,
            lambda threads, key: threads.fork(key, checkpoint_id=checkpoint, message_id=at, to=to),
            as_json=as_json,
        )


@threads.command(short_help="Take back answers with which a conversation is stuck.")
def rewind(thread: _Id, db: _Db = None, owner: _Owner = None, as_json: _Json = False) -> None:
    """Take back the answers that a conversation's open step was given: its question waits again.

    For a conversation in which every answer fails as the one before: LangGraph has stored an answer
    that the graph cannot use, and replays it. All that was said stays. A step with several
    questions asks again from the first one at the next run.
    """
    with clear_errors():
        from langmem_ext.cli.commands.reading import change_whole_with  # noqa: PLC0415 - help must not wait for it

        def told(changed: ThreadInfo) -> str:
            again = f"`langmem-ext chat --thread {changed.id} --graph …`"
            return f"the answers were taken back: {again} shows the question again"

        def change(threads: Threads, key: str) -> ThreadInfo:
            return threads.rewind(key)

        change_whole_with(db, owner, thread, change, as_json=as_json, told=told)


@threads.command()
def delete(
    conversations: _Ids,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    db: _Db = None,
    owner: _Owner = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was deleted as one line of JSON.")] = False,
) -> None:
    """Delete conversations with everything that they have, for good."""
    with clear_errors():
        from langmem_ext.cli.commands.listing import delete_with  # noqa: PLC0415 - help must not wait for it

        delete_with(db, owner, conversations, yes=yes, as_json=as_json, interactive=sys.stdin.isatty() and sys.stderr.isatty())


@threads.command(short_help="Find messages by their words.", epilog=examples_of("search"))
def search(
    text: Annotated[
        str,
        typer.Argument(
            help="What to look for: words in any order, the last of which may be a beginning; in double quotes, words that stand together.",
            metavar="TEXT",
        ),
    ],
    db: _Db = None,
    owner: _Owner = None,
    thread: Annotated[str | None, typer.Option("--thread", "-t", help="In this conversation only.", metavar="ID")] = None,
    role: Annotated[str | None, typer.Option(help="Only what these said.", metavar="human|ai|system|tool")] = None,
    since: Annotated[str | None, typer.Option(help=f"Only what was stored then or later: {_TIME}.", metavar="TIME")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many messages.", min=1, metavar="N")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a line for each message.")] = False,
) -> None:
    """Find messages that have all words of a text, the best first; sensitive values are not found."""
    with clear_errors():
        from langmem_ext.cli.commands.search import search_with  # noqa: PLC0415 - help must not wait for it

        search_with(db, owner, text, thread=thread, role=role, since=since, limit=limit, as_json=as_json, interactive=sys.stdout.isatty())


@threads.command(short_help="Write conversations to a file: JSON lines or Markdown.", epilog=examples_of("export"))
def export(
    conversations: Annotated[
        list[str] | None, typer.Argument(help="The threads: their ids, or enough of their beginnings, or their titles.", metavar="ID")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", "-a", help="All of them; those that were put away, too.")] = False,
    to: Annotated[str, typer.Option(help="Where to: a path, a URL, or - for standard output; .gz compresses.", metavar="PATH")] = "-",
    form: Annotated[
        str | None,
        typer.Option(
            "--format",
            "-f",
            help="JSON lines, which can be imported, or Markdown to read. Default: markdown for a path that ends in .md, else jsonl.",
            metavar="jsonl|markdown",
        ),
    ] = None,
    sensitive: Annotated[
        bool, typer.Option("--include-sensitive", help="Show sensitive values in Markdown. JSON lines always hold all there is.")
    ] = False,
    db: _Db = None,
    owner: _Owner = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print how many were exported as one line of JSON; with --to a file.")] = False,
) -> None:
    """Write conversations to a file that `threads import` takes, or as Markdown."""
    with clear_errors():
        from langmem_ext.cli.commands.transfer import export_with  # noqa: PLC0415 - help must not wait for it

        names = conversations or []
        export_with(db, owner, names, everything=everything, to=to, form=form, sensitive=sensitive, as_json=as_json)


@threads.command("import", short_help="Bring in conversations that were exported.", epilog=examples_of("import"))
def import_(
    source: Annotated[str, typer.Argument(help="What `threads export` wrote: a path, a URL, or - for standard input.", metavar="FILE")],
    keep_ids: Annotated[
        bool, typer.Option("--keep-ids", help="Under the ids that they had; those that are there already are left alone. Default: new ids.")
    ] = False,
    keep_owners: Annotated[bool, typer.Option("--keep-owners", help="For the owners that they had.")] = False,
    db: Annotated[
        str | None,
        typer.Option(help="The database: a path or a URL; made if it is not there. Default: the setting storage_path.", metavar="URL"),
    ] = None,
    owner: Annotated[str | None, typer.Option(help="For this owner. Default: the setting owner.", metavar="NAME")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was imported as one line of JSON.")] = False,
) -> None:
    """Bring in what `threads export` wrote as JSON lines; all of it is looked at before anything is stored."""
    with clear_errors():
        from langmem_ext.cli.commands.transfer import import_with  # noqa: PLC0415 - help must not wait for it

        import_with(db, owner, source, keep_ids=keep_ids, keep_owners=keep_owners, as_json=as_json)


@threads.command(short_help="Count conversations, turns, messages and tokens.")
def stats(
    db: _Db = None,
    owner: _Owner = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the counts as one line of JSON.")] = False,
) -> None:
    """Count conversations, by status and by tool, and their turns, messages and tokens."""
    with clear_errors():
        from langmem_ext.cli.commands.listing import count_with  # noqa: PLC0415 - help must not wait for it

        count_with(db, owner, as_json=as_json, interactive=sys.stdout.isatty())
