"""The commands and their options.

Exit codes: 0 success; 1 refused by the database, the thread, the graph or the user; 2 an argument
or a setting is invalid, or an extra is missing; 130 stopped by Ctrl-C; 141 the output pipe was
closed. An error is one message on stderr.
"""

from __future__ import annotations

import json
import sys
from shutil import get_terminal_size
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from langmem_ext import __version__
from langmem_ext._internal.extras import require
from langmem_ext.cli.commands.catalog.commands import catalog
from langmem_ext.cli.commands.memory.commands import forget_owner, memory
from langmem_ext.cli.commands.roles.commands import roles
from langmem_ext.cli.commands.store.commands import store
from langmem_ext.cli.commands.threads.commands import ids_of_threads, threads
from langmem_ext.cli.control_characters import write_all_characters
from langmem_ext.cli.errors import clear_errors
from langmem_ext.cli.examples import examples_of

_NARROW: Final = 52
_NARROWEST: Final = 20
_DEFAULT_DB = "Default: the setting storage_path (LANGMEM_EXT_DB), or memory.db."
_EXISTING = f"The database: a path or a URL; it must exist. {_DEFAULT_DB}"
_CREATED = f"The database: a path or a URL; created if it does not exist. {_DEFAULT_DB}"
_COMPRESS = typer.Option(
    "--compress/--no-compress",
    help=(
        "Compress new rows where that saves at least a tenth; compressed databases are read"
        " automatically. Needs the extra zstd. Default: the setting compress."
    ),
    show_default=False,
)
_CREATED_DB = typer.Argument(help=_CREATED, metavar="DB")
_DB = typer.Argument(help=_EXISTING, metavar="DB")
_SAME_DB = typer.Option(help="The same, as an option.", metavar="URL")
_GRAPH = "FILE.py:NAME|MODULE:NAME"
_KINDS_OF_GRAPH = (
    "a compiled graph, a StateGraph, or a function that takes a checkpointer and returns a graph"
)
_MODEL = typer.Option(
    help="A chat model for the graph. Default: the setting model.", metavar="MODEL"
)
_CONVERSATIONS_OF = typer.Option(
    help="Only this owner's conversations. Default: the setting owner.", metavar="NAME"
)


class _Usual(TyperGroup):
    """The commands, those first that people use every day."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return sorted(super().list_commands(ctx), key=lambda name: name not in _USUAL)


_USUAL: Final = ("chat", "threads", "inspect")


def _help_width() -> int | None:
    """The width of the help in a narrow window; None for the library's default."""
    columns = get_terminal_size().columns
    return max(columns - 1, _NARROWEST) if columns < _NARROW else None


app = typer.Typer(
    cls=_Usual,
    help="Conversation memory for LangGraph and LangChain.",
    epilog=(
        f"{examples_of('')}\n\nExit codes: 0 success; 1 refused by the database, the thread, the"
        " graph or the user; 2 an argument or a setting is invalid, or an extra is missing; 130"
        " stopped by Ctrl-C; 141 the output pipe was closed."
    ),
    no_args_is_help=True,
    # Both cost a tenth of a second of imports before the first line of help.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "terminal_width": _help_width()},
)


app.add_typer(
    threads, name="threads", short_help="List, search, show, fork, export and delete conversations."
)
app.add_typer(
    catalog, name="catalog", short_help="Check the catalog of a waiting graph, and try it."
)
app.add_typer(
    memory, name="memory", short_help="Write, show, list and forget memories of conversations."
)
app.command("forget", short_help="Delete everything of an owner.")(forget_owner)
app.add_typer(
    store,
    name="store",
    short_help="List, export, import and re-embed the items of the long-term store.",
)
app.add_typer(roles, name="roles", short_help="Grant PostgreSQL roles access to a database.")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"langmem-ext {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Conversation memory for LangGraph and LangChain."""
    write_all_characters()


@app.command(
    short_help="Chat with a graph; the conversation is stored.", epilog=examples_of("chat")
)
def chat(
    path: Annotated[str | None, _CREATED_DB] = None,
    thread: Annotated[
        str | None,
        typer.Option(
            "--thread",
            "-t",
            help="The conversation with this id; started if it does not exist. Default: default.",
            metavar="ID",
            autocompletion=ids_of_threads,
        ),
    ] = None,
    new: Annotated[
        bool, typer.Option("--new", "-n", help="Start a new conversation under a new id.")
    ] = False,
    latest: Annotated[
        bool, typer.Option("--continue", "-c", help="Continue the most recently used conversation.")
    ] = False,
    resume: Annotated[
        str | None,
        typer.Option(
            "--resume",
            "-r",
            help="Continue this conversation: a prefix of its id, or words of its title.",
            metavar="ID",
            autocompletion=ids_of_threads,
        ),
    ] = None,
    db: Annotated[str | None, _SAME_DB] = None,
    compress: Annotated[bool | None, _COMPRESS] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help=(
                "A chat model for what the rules cannot decide, like openai:gpt-5-mini. Default:"
                " the setting model."
            ),
            metavar="MODEL",
        ),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            help=f"Chat with your own graph: {_KINDS_OF_GRAPH}. Default: an example order desk.",
            metavar=_GRAPH,
        ),
    ] = None,
    owner: Annotated[str | None, _CONVERSATIONS_OF] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each reply as one line of JSON.")
    ] = False,
) -> None:
    """Chat with a graph in the terminal; the conversation is stored and continues where it stopped.

    At a terminal, /help lists the slash commands. In a pipe, each line of stdin is a message and
    each line of stdout its reply; the first line that is refused ends the chat.
    """
    with clear_errors():
        # Imported here: LangGraph takes a second, and help must not wait for it.
        from langmem_ext.cli.chat.chat import chat_with  # noqa: PLC0415 - see above
        from langmem_ext.cli.config import one_of, settings_with  # noqa: PLC0415 - see above
        from langmem_ext.log.message_log import owner_key  # noqa: PLC0415 - see above

        settings = settings_with(
            storage_path=one_of(path, db),
            compress=compress,
            model=model,
            owner=owner_key(owner),
        )
        interactive = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
        failed = chat_with(
            thread,
            resume=resume,
            latest=latest,
            new=new,
            settings=settings,
            graph=graph,
            as_json=as_json,
            interactive=interactive,
        )
    raise typer.Exit(failed)


@app.command("import-checkpoints", short_help="Import the threads of a SqliteSaver database.")
def import_checkpoints(
    source: Annotated[
        str,
        typer.Argument(
            help="The database of a SqliteSaver; it is opened read-only.", metavar="OLD.sqlite"
        ),
    ],
    target: Annotated[
        str | None,
        typer.Argument(
            help=f"The target: a path or a URL; created if it does not exist. {_DEFAULT_DB}",
            metavar="NEW.db",
        ),
    ] = None,
    owner: Annotated[
        str | None,
        typer.Option(
            help="The owner of the imported threads. Default: the setting owner.", metavar="NAME"
        ),
    ] = None,
    threads: Annotated[
        list[str] | None,
        typer.Option(
            "--thread", "-t", help="Import only this thread; may be repeated.", metavar="ID"
        ),
    ] = None,
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Compare every checkpoint in both databases afterwards."),
    ] = False,
    skip_damaged: Annotated[
        bool,
        typer.Option(
            "--skip-damaged", help="Skip checkpoints that cannot be decoded, and list them."
        ),
    ] = False,
    compress: Annotated[bool | None, _COMPRESS] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the report as one line of JSON.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Import the threads of a langgraph-checkpoint-sqlite database.

    Every state reads as before, and a waiting thread can be resumed. If the import is interrupted,
    run it again to continue; run it later to import new checkpoints.
    """
    with clear_errors():
        from langmem_ext.cli.commands.database.import_checkpoints import (  # noqa: PLC0415 - as in `chat`
            import_with,
        )
        from langmem_ext.cli.config import settings_with  # noqa: PLC0415 - as in `chat`
        from langmem_ext.log.message_log import owner_key  # noqa: PLC0415 - as in `chat`

        settings = settings_with(storage_path=target, compress=compress, owner=owner_key(owner))
        import_with(
            source,
            settings.storage_path,
            owner=settings.owner or None,
            threads=threads or (),
            verify=verify,
            skip_damaged=skip_damaged,
            compress=settings.compress,
            as_json=as_json,
            quiet=quiet,
            interactive=sys.stderr.isatty(),
            origin=None if target is not None else settings.origins["storage_path"],
        )


@app.command(short_help="Check a database and repair it.")
def doctor(
    path: Annotated[str | None, _DB] = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix", help="Repair what can be derived from other rows; messages are never changed."
        ),
    ] = False,
    db: Annotated[str | None, _SAME_DB] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as one line of JSON.")
    ] = False,
) -> None:
    """Check a database: recompute derived columns, decode every row, follow every reference.

    Exits with 1 if anything is wrong or damaged and was not repaired.
    """
    with clear_errors():
        from langmem_ext.cli.commands.database.inspection import examine_with  # noqa: PLC0415 - as in `chat`
        from langmem_ext.cli.config import database  # noqa: PLC0415 - as in `chat`

        well = examine_with(
            database(path, db), fix=fix, as_json=as_json, interactive=sys.stdout.isatty()
        )
    raise typer.Exit(0 if well else 1)


@app.command(short_help="Show what takes up space in a database.")
def stats(
    path: Annotated[str | None, _DB] = None,
    db: Annotated[str | None, _SAME_DB] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the statistics as one line of JSON.")
    ] = False,
) -> None:
    """Show rows and bytes by kind and by thread."""
    with clear_errors():
        from langmem_ext.cli.commands.database.inspection import count_with  # noqa: PLC0415 - as in `chat`
        from langmem_ext.cli.config import database  # noqa: PLC0415 - as in `chat`

        count_with(database(path, db), as_json=as_json, interactive=sys.stdout.isatty())


@app.command(short_help="Look into a database in the browser.", epilog=examples_of("inspect"))
def inspect(
    path: Annotated[
        str | None,
        typer.Argument(
            help=(
                "The database: a path or a URL. That of a SqliteSaver or a PostgresSaver is only"
                f" read. {_DEFAULT_DB}"
            ),
            metavar="DB",
        ),
    ] = None,
    demo: Annotated[
        bool,
        typer.Option(
            "--demo", help="Look at example conversations, one of which waits for your answer."
        ),
    ] = False,
    graph: Annotated[
        str | None,
        typer.Option(
            help="The graph of these conversations, to answer their questions and rerun steps.",
            metavar=_GRAPH,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            help="The port. Default: 8127, or any free one.", min=1, max=65535, metavar="N"
        ),
    ] = None,
    browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the browser.")
    ] = True,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Change nothing: no copies, no search index.")
    ] = False,
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Allow sensitive values to be shown on request.")
    ] = False,
    owner: Annotated[
        str | None, typer.Option(help="Only this owner's conversations.", metavar="NAME")
    ] = None,
    prices: Annotated[
        list[str] | None,
        typer.Option(
            "--price",
            help="The cost of a million tokens of a model; may be repeated.",
            metavar="MODEL=PROMPT,COMPLETION",
        ),
    ] = None,
    db: Annotated[str | None, _SAME_DB] = None,
) -> None:
    """Look into a database in the browser: its conversations, and each of their steps.

    A step shows who set a value, and what a model was sent. Only this machine can open it, and it
    needs no network. Ctrl-C ends it.
    """
    with clear_errors():
        require("langmem-ext inspect", "server")
        from langmem_ext.cli.commands.serving.inspect import inspect_with  # noqa: PLC0415 - as in `chat`

        shown: dict[str, Any] = {
            "port": port,
            "browser": browser,
            "read_only": read_only,
            "reveal": reveal,
        }
        inspect_with(path, db, demo=demo, graph=graph, owner=owner, prices=prices or (), **shown)


_OWNER = typer.Option(help="Only this owner's threads. Default: the setting owner.", metavar="NAME")
_DRY_RUN = typer.Option("--dry-run", help="Show what would be deleted; change nothing.")
_COUNTS = typer.Option("--json", help="Print what was deleted as one line of JSON.")


@app.command(short_help="Delete expired conversations.", epilog=examples_of("sweep"))
def sweep(
    path: Annotated[str | None, _DB] = None,
    ttl: Annotated[
        float | None,
        typer.Option(
            help=(
                "Hours until a conversation expires; 0: never. Default: the setting"
                " auto_prune_days, in days."
            ),
            min=0,
            metavar="HOURS",
        ),
    ] = None,
    tool_ttl: Annotated[
        float | None,
        typer.Option(
            help=(
                "The same for conversations of tools; 0: as --ttl. Default: the setting ttl_hours."
            ),
            min=0,
            metavar="HOURS",
        ),
    ] = None,
    dry_run: Annotated[bool, _DRY_RUN] = False,
    db: Annotated[str | None, _SAME_DB] = None,
    owner: Annotated[str | None, _OWNER] = None,
    as_json: Annotated[bool, _COUNTS] = False,
) -> None:
    """Delete expired conversations without asking, for a timer; waiting ones never expire."""
    with clear_errors():
        from langmem_ext.cli.commands.database.upkeep import sweep_with  # noqa: PLC0415 - as in `chat`
        from langmem_ext.cli.config import one_of  # noqa: PLC0415 - as in `chat`

        db = one_of(path, db)
        sweep_with(db, owner, ttl=ttl, tool_ttl=tool_ttl, dry_run=dry_run, as_json=as_json)


@app.command(
    short_help="Delete old conversations and old checkpoints.", epilog=examples_of("prune")
)
def prune(
    path: Annotated[str | None, _DB] = None,
    older_than: Annotated[
        float | None,
        typer.Option(
            help=(
                "Delete conversations not written to for so many days; waiting ones are kept."
                " Default: the setting auto_prune_days."
            ),
            min=0,
            metavar="DAYS",
        ),
    ] = None,
    keep_last: Annotated[
        int | None,
        typer.Option(
            help="Keep only this many of the newest checkpoints of each conversation.",
            min=1,
            max=10**9,
            metavar="N",
        ),
    ] = None,
    dry_run: Annotated[bool, _DRY_RUN] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Skip the confirmation prompt.")] = False,
    db: Annotated[str | None, _SAME_DB] = None,
    owner: Annotated[str | None, _OWNER] = None,
    as_json: Annotated[bool, _COUNTS] = False,
) -> None:
    """Delete old conversations and old checkpoints; the rest reads and continues as before."""
    with clear_errors():
        from langmem_ext.cli.commands.database.upkeep import prune_with  # noqa: PLC0415 - as in `chat`
        from langmem_ext.cli.config import one_of  # noqa: PLC0415 - as in `chat`

        interactive = sys.stdin.isatty() and sys.stderr.isatty()
        prune_with(
            one_of(path, db),
            owner,
            older_than=older_than,
            keep_last=keep_last,
            yes=yes,
            dry_run=dry_run,
            as_json=as_json,
            interactive=interactive,
        )


@app.command(short_help="Serve a database over HTTP.")
def serve(
    path: Annotated[str | None, _CREATED_DB] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            help=(
                f"Run this graph for clients: {_KINDS_OF_GRAPH}. Default: none; threads are listed"
                " and read."
            ),
            metavar=_GRAPH,
        ),
    ] = None,
    graph_id: Annotated[
        str, typer.Option(help="The graph's name for clients.", metavar="NAME")
    ] = "agent",
    host: Annotated[
        str,
        typer.Option(
            help="The address to listen on; other than this machine's needs --tokens.",
            metavar="HOST",
        ),
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(help="The port to listen on.", min=0, max=65535, metavar="PORT")
    ] = 2024,
    tokens: Annotated[
        str | None,
        typer.Option(
            help=(
                "Require one of these bearer tokens. Each line has a token and, after a space, the"
                " owner whose conversations it shows; without an owner it shows all."
            ),
            metavar="FILE",
        ),
    ] = None,
    origins: Annotated[
        list[str] | None,
        typer.Option(
            "--origin",
            help="Allow calls from this web page, like https://chat.example.com; may be repeated.",
            metavar="URL",
        ),
    ] = None,
    model: Annotated[str | None, _MODEL] = None,
    memory_model: Annotated[
        str | None,
        typer.Option(
            help="A chat model that writes memories of conversations. Default: none are written.",
            metavar="MODEL",
        ),
    ] = None,
    mcp: Annotated[bool, typer.Option(help="Serve the graph's intents as MCP tools.")] = False,
    owner: Annotated[
        str | None,
        typer.Option(
            help="Without --tokens: only this owner's conversations. Default: the setting owner.",
            metavar="NAME",
        ),
    ] = None,
    db: Annotated[str | None, _SAME_DB] = None,
) -> None:
    """Serve a database over HTTP until Ctrl-C, for LangGraph's SDK and compatible user interfaces.

    Without --tokens only this machine may call.
    """
    with clear_errors():
        require("langmem-ext serve", "server")
        from langmem_ext.cli.commands.serving.serve import serve_with  # noqa: PLC0415 - as in `chat`
        from langmem_ext.cli.config import one_of, settings_with  # noqa: PLC0415 - as in `chat`
        from langmem_ext.log.message_log import owner_key  # noqa: PLC0415 - as in `chat`

        name = one_of(path, db)
        settings = settings_with(storage_path=name, model=model, owner=owner_key(owner))
        serve_with(
            settings,
            graph=graph,
            graph_id=graph_id,
            host=host,
            port=port,
            tokens=tokens,
            origins=origins or (),
            memory_model=memory_model,
            mcp=mcp,
        )


@app.command(short_help="Serve a graph's intents as MCP tools.", epilog=examples_of("mcp"))
def mcp(
    path: Annotated[str | None, _CREATED_DB] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            help=(
                f"The waiting graph whose intents are the tools: {_KINDS_OF_GRAPH}. Default: an"
                " example order desk."
            ),
            metavar=_GRAPH,
        ),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option(
            help=(
                "Serve streamable HTTP on this port of this machine, under /mcp. Default: stdin and"
                " stdout, for a client that starts this command."
            ),
            min=1,
            max=65535,
            metavar="PORT",
        ),
    ] = None,
    model: Annotated[str | None, _MODEL] = None,
    owner: Annotated[str | None, _CONVERSATIONS_OF] = None,
    db: Annotated[str | None, _SAME_DB] = None,
) -> None:
    """Serve the intents of a waiting graph as MCP tools.

    A tool asks by elicitation for missing arguments. A question outlives the server: its answer may
    come after a restart.
    """
    with clear_errors():
        require("langmem-ext mcp", "mcp")
        from langmem_ext.cli.commands.serving.mcp import mcp_with  # noqa: PLC0415 - as in `chat`
        from langmem_ext.cli.config import one_of, settings_with  # noqa: PLC0415 - as in `chat`
        from langmem_ext.log.message_log import owner_key  # noqa: PLC0415 - as in `chat`

        mcp_with(
            settings_with(storage_path=one_of(path, db), model=model, owner=owner_key(owner)),
            graph=graph,
            port=port,
        )


config = typer.Typer(
    help="Show settings and their sources.", no_args_is_help=True, rich_markup_mode=None
)
app.add_typer(config, name="config")


@config.command("show", short_help="Show settings: values and sources.", epilog=examples_of("show"))
def config_show(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Only these settings, each with its description and allowed values.",
            metavar="NAME",
        ),
    ] = None,
    assigned: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            help="Try a value as if passed as an argument; may be repeated.",
            metavar="NAME=VALUE",
        ),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the settings as one line of JSON.")
    ] = False,
) -> None:
    """Show each setting with its value and its source: argument, environment or a file's line."""
    with clear_errors():
        from langmem_ext.cli.config import show_with  # noqa: PLC0415 - as in `chat`

        show_with(names or (), assigned or (), as_json=as_json, interactive=sys.stdout.isatty())


@config.command("path", short_help="Show the paths of the settings files.")
def config_path(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the files as one line of JSON.")
    ] = False,
) -> None:
    """Show the paths of the project's and the user's settings file, whether or not they exist."""
    with clear_errors():
        from langmem_ext.cli.config import paths_with  # noqa: PLC0415 - as in `chat`

        paths_with(as_json=as_json)


@app.command()
def version(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the version."""
    typer.echo(
        json.dumps({"langmem-ext": __version__}) if as_json else f"langmem-ext {__version__}"
    )
