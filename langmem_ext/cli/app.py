"""The commands and their options.

Exit codes: 0 done; 1 the database, the thread, the graph or a person refused; 2 an argument or a setting cannot be used, or an extra is
missing; 130 stopped by Ctrl-C; 141 the reader of the output went away. What goes wrong is one message on stderr.
"""

from __future__ import annotations

import json
import sys
from shutil import get_terminal_size
from typing import Annotated, Any, Final

import typer
from typer.core import TyperGroup

from langmem_ext import __version__
from langmem_ext.cli.commands.roles import roles
from langmem_ext.cli.commands.threads import threads
from langmem_ext.cli.control_characters import write_all_characters
from langmem_ext.cli.errors import clear_errors
from langmem_ext.cli.examples import examples_of

_NARROW: Final = 52
_NARROWEST: Final = 20
_DEFAULT_DB = "Default: the setting storage_path (LANGMEM_EXT_DB), memory.db if nothing sets it."
_COMPRESS = typer.Option(
    "--compress/--no-compress",
    help="Compress what is written, where that saves a tenth; compressed databases are read automatically. Needs zstd (the extra zstd). "
    "Default: the setting compress.",
    show_default=False,
)


class _Usual(TyperGroup):
    """The commands, those first that people use every day."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return sorted(super().list_commands(ctx), key=lambda name: name not in _USUAL)


_USUAL: Final = ("chat", "threads")


def _help_width() -> int | None:
    """The width of the help in a window that is narrower than the library thinks possible; None: as the library has it."""
    columns = get_terminal_size().columns
    return max(columns - 1, _NARROWEST) if columns < _NARROW else None


app = typer.Typer(
    cls=_Usual,
    help="Conversation memory for LangGraph and LangChain.",
    epilog=f"{examples_of('')}\n\nExit codes: 0 done; 1 the database, the thread, the graph or a person refused; 2 an argument or a "
    "setting cannot be used, or an extra is missing; 130 stopped by Ctrl-C; 141 the reader of the output went away.",
    no_args_is_help=True,
    # Both cost a tenth of a second of imports before the first line of help.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "terminal_width": _help_width()},
)


app.add_typer(threads, name="threads", short_help="Find, show, name, copy, export and delete conversations.")
app.add_typer(roles, name="roles", short_help="Say which roles may use a PostgreSQL database.")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"langmem-ext {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[bool, typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True)] = False,
) -> None:
    """Conversation memory for LangGraph and LangChain."""
    write_all_characters()


@app.command(short_help="Talk to a graph; the conversation is kept.", epilog=examples_of("chat"))
def chat(
    thread: Annotated[
        str | None,
        typer.Option(
            "--thread", "-t", help="The conversation of this id, which is begun if it is not there. Default: default.", metavar="ID"
        ),
    ] = None,
    new: Annotated[bool, typer.Option("--new", "-n", help="Begin a new conversation, with an id of its own.")] = False,
    latest: Annotated[
        bool, typer.Option("--continue", "-c", help="Go on with the conversation that was used last, whichever that is.")
    ] = False,
    resume: Annotated[
        str | None,
        typer.Option("--resume", "-r", help="Go on with this one: the beginning of its id, or words of its title.", metavar="ID"),
    ] = None,
    db: Annotated[
        str | None,
        typer.Option(help=f"The database: a path or a URL; made if it is not there. {_DEFAULT_DB}", metavar="URL"),
    ] = None,
    compress: Annotated[bool | None, _COMPRESS] = None,
    model: Annotated[
        str | None,
        typer.Option(
            help="A chat model that reads what the rules leave open, like openai:gpt-5-mini. Default: the setting model.", metavar="MODEL"
        ),
    ] = None,
    graph: Annotated[
        str | None,
        typer.Option(
            help="Talk to a graph of your own: a compiled graph, a StateGraph, or a function of a checkpointer that makes one. "
            "Default: an order desk, as an example.",
            metavar="FILE.py:NAME|MODULE:NAME",
        ),
    ] = None,
    owner: Annotated[str | None, typer.Option(help="Only this owner's conversations. Default: the setting owner.", metavar="NAME")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print every reply as one line of JSON.")] = False,
) -> None:
    """Talk to a graph in the terminal; the conversation is stored and goes on where it stopped.

    At a terminal, /help shows what else can be typed. With a pipe, each line of input is a message and each line of output its reply; the
    first that is refused ends the chat.
    """
    with clear_errors():
        # Imported here: LangGraph takes a second, and help must not wait for it.
        from langmem_ext.cli.chat.chat import chat_with  # noqa: PLC0415 - see above
        from langmem_ext.cli.config import settings_with  # noqa: PLC0415 - see above
        from langmem_ext.log import owner_key  # noqa: PLC0415 - see above

        settings = settings_with(storage_path=db, compress=compress, model=model, owner=owner_key(owner))
        interactive = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
        failed = chat_with(
            thread, resume=resume, latest=latest, new=new, settings=settings, graph=graph, as_json=as_json, interactive=interactive
        )
    raise typer.Exit(failed)


@app.command("import-checkpoints", short_help="Bring in the threads of a SqliteSaver's database.")
def import_checkpoints(
    source: Annotated[str, typer.Argument(help="The database of a SqliteSaver; it is only read.", metavar="OLD.sqlite")],
    target: Annotated[
        str | None, typer.Argument(help=f"Where to: a path or a URL; made if it is not there. {_DEFAULT_DB}", metavar="NEW.db")
    ] = None,
    threads: Annotated[
        list[str] | None, typer.Option("--thread", "-t", help="Import this thread only; may be given again.", metavar="ID")
    ] = None,
    verify: Annotated[bool, typer.Option("--verify", help="Read both afterwards and compare every checkpoint.")] = False,
    skip_damaged: Annotated[bool, typer.Option("--skip-damaged", help="Leave out what does not decode, and name it.")] = False,
    compress: Annotated[bool | None, _COMPRESS] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was done as one line of JSON.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print nothing but errors.")] = False,
) -> None:
    """Bring the threads of a langgraph-checkpoint-sqlite database into one of this package.

    Every state reads there as it did here, and a thread that waits goes on. Stopped anywhere, it is run again and goes on; run again later,
    it brings in what is new.
    """
    with clear_errors():
        from langmem_ext.cli.commands.import_checkpoints import import_with  # noqa: PLC0415 - as in `chat`
        from langmem_ext.cli.config import settings_with  # noqa: PLC0415 - as in `chat`

        settings = settings_with(storage_path=target, compress=compress)
        import_with(
            source,
            settings.storage_path,
            threads=threads or (),
            verify=verify,
            skip_damaged=skip_damaged,
            compress=settings.compress,
            as_json=as_json,
            quiet=quiet,
            interactive=sys.stderr.isatty(),
            origin=None if target is not None else settings.origins["storage_path"],
        )


_DB = typer.Argument(help=f"The database: a path or a URL; it must be there. {_DEFAULT_DB}", metavar="DB")

_SAME_DB = typer.Option(help="The same, as the other commands have it.", metavar="URL")


@app.command(short_help="Check a database and repair it.")
def doctor(
    path: Annotated[str | None, _DB] = None,
    fix: Annotated[bool, typer.Option("--fix", help="Put right what follows from other rows; never a word of a conversation.")] = False,
    db: Annotated[str | None, _SAME_DB] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as one line of JSON.")] = False,
) -> None:
    """Examine a database: compute again all that is derived, decode every row, follow every reference.

    Exits with 1 if anything is wrong or damaged and has not been put right.
    """
    with clear_errors():
        from langmem_ext.cli.commands.inspection import examine_with  # noqa: PLC0415 - as in `chat`
        from langmem_ext.cli.config import database  # noqa: PLC0415 - as in `chat`

        well = examine_with(database(path, db), fix=fix, as_json=as_json, interactive=sys.stdout.isatty())
    raise typer.Exit(0 if well else 1)


@app.command(short_help="Show what takes how much space in a database.")
def stats(
    path: Annotated[str | None, _DB] = None,
    db: Annotated[str | None, _SAME_DB] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the statistics as one line of JSON.")] = False,
) -> None:
    """Show what a database holds, by kind and by thread, and what a SqliteSaver would have needed for it."""
    with clear_errors():
        from langmem_ext.cli.commands.inspection import count_with  # noqa: PLC0415 - as in `chat`
        from langmem_ext.cli.config import database  # noqa: PLC0415 - as in `chat`

        count_with(database(path, db), as_json=as_json, interactive=sys.stdout.isatty())


_HERE = typer.Option(help=f"The database: a path or a URL; it must be there. {_DEFAULT_DB}", metavar="URL")
_OWNER = typer.Option(help="Only this owner's threads. Default: the setting owner.", metavar="NAME")
_DRY_RUN = typer.Option("--dry-run", help="Only say what would be deleted.")
_COUNTS = typer.Option("--json", help="Print what was deleted as one line of JSON.")


@app.command(short_help="Delete the conversations that have expired.", epilog=examples_of("sweep"))
def sweep(
    ttl: Annotated[
        float | None,
        typer.Option(
            help="How long a conversation lives; 0: for ever. Default: the setting auto_prune_days, in days.", min=0, metavar="HOURS"
        ),
    ] = None,
    tool_ttl: Annotated[
        float | None, typer.Option(help="The same for those of tools; 0: as --ttl. Default: the setting ttl_hours.", min=0, metavar="HOURS")
    ] = None,
    dry_run: Annotated[bool, _DRY_RUN] = False,
    db: Annotated[str | None, _HERE] = None,
    owner: Annotated[str | None, _OWNER] = None,
    as_json: Annotated[bool, _COUNTS] = False,
) -> None:
    """Delete the conversations that have expired; those that wait for an answer never do. It asks nothing, and suits a timer."""
    with clear_errors():
        from langmem_ext.cli.commands.upkeep import sweep_with  # noqa: PLC0415 - as in `chat`

        sweep_with(db, owner, ttl=ttl, tool_ttl=tool_ttl, dry_run=dry_run, as_json=as_json)


@app.command(short_help="Delete old conversations and old checkpoints.", epilog=examples_of("prune"))
def prune(
    older_than: Annotated[
        float | None,
        typer.Option(
            help="Delete conversations that were not written for so long, but for those that wait. Default: the setting auto_prune_days.",
            min=0,
            metavar="DAYS",
        ),
    ] = None,
    keep_last: Annotated[
        int | None, typer.Option(help="Of every conversation, leave only so many of the newest checkpoints.", min=1, metavar="N")
    ] = None,
    dry_run: Annotated[bool, _DRY_RUN] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    db: Annotated[str | None, _HERE] = None,
    owner: Annotated[str | None, _OWNER] = None,
    as_json: Annotated[bool, _COUNTS] = False,
) -> None:
    """Delete old conversations and old checkpoints; what stays reads and goes on as before."""
    with clear_errors():
        from langmem_ext.cli.commands.upkeep import prune_with  # noqa: PLC0415 - as in `chat`

        there = sys.stdin.isatty() and sys.stderr.isatty()
        prune_with(db, owner, older_than=older_than, keep_last=keep_last, yes=yes, dry_run=dry_run, as_json=as_json, interactive=there)


catalog = typer.Typer(
    help="Check a catalog of the waiting graph, and try it out.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples_of("catalog"),
)
app.add_typer(catalog, name="catalog", short_help="Check a catalog of the waiting graph, and try it out.")

_CATALOG = typer.Argument(help="The catalog: a YAML file.", metavar="FILE")
_TOOLS = typer.Option(help="The tools that it names: a list of them. No tool is called.", metavar="FILE.py:NAME|MODULE:NAME")
_EXTENSIONS = typer.Option(
    help="The extractors, validators and normalisers that it names: an Extensions.",
    metavar="FILE.py:NAME|MODULE:NAME",
)


@catalog.command("check", short_help="Find the mistakes of a catalog.")
def catalog_check(
    path: Annotated[str, _CATALOG],
    tools: Annotated[str | None, _TOOLS] = None,
    extensions: Annotated[str | None, _EXTENSIONS] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print what was found as one line of JSON.")] = False,
) -> None:
    """Find every mistake of a catalog, each with its line, and every example that is not understood as its intent.

    With its tools, what the catalog leaves to them is filled in and must fit. Exits with 2 where
    there are mistakes, with 1 where only examples are not understood.
    """
    with clear_errors():
        from langmem_ext.cli.catalog import check_with  # noqa: PLC0415 - as in `chat`

        well = check_with(path, tools=tools, extensions=extensions, as_json=as_json)
    raise typer.Exit(0 if well else 1)


@catalog.command("try", short_help="Talk, and see what is understood and why.")
def catalog_try(
    path: Annotated[str, _CATALOG],
    tools: Annotated[str | None, _TOOLS] = None,
    extensions: Annotated[str | None, _EXTENSIONS] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print each turn as one line of JSON.")] = False,
) -> None:
    """Talk to a catalog, and see what is understood and why: commands, scores of intents, values, and the question that follows.

    Nothing is stored, and no tool is called: what would be called is shown. With a pipe, each line
    of input is a message. /reset begins anew, /quit ends. Exits with 1 if a message failed.
    """
    with clear_errors():
        from langmem_ext.cli.catalog import try_with  # noqa: PLC0415 - as in `chat`

        interactive = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
        well = try_with(path, tools=tools, extensions=extensions, as_json=as_json, interactive=interactive)
    raise typer.Exit(0 if well else 1)


config = typer.Typer(help="Show the settings, and where each comes from.", no_args_is_help=True, rich_markup_mode=None)
app.add_typer(config, name="config")


@config.command("show", short_help="Show settings: values, and where they come from.", epilog=examples_of("show"))
def config_show(
    names: Annotated[
        list[str] | None, typer.Argument(help="These settings only, each with what it takes and governs.", metavar="NAME")
    ] = None,
    assigned: Annotated[
        list[str] | None, typer.Option("--set", help="Try a value as if it were an argument; may be given again.", metavar="NAME=VALUE")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the settings as one line of JSON.")] = False,
) -> None:
    """Show every setting: its value, and the argument, environment variable or line of a file that it comes from."""
    with clear_errors():
        from langmem_ext.cli.config import show_with  # noqa: PLC0415 - as in `chat`

        show_with(names or (), assigned or (), as_json=as_json, interactive=sys.stdout.isatty())


@config.command("path", short_help="Show the files that settings are read from.")
def config_path(as_json: Annotated[bool, typer.Option("--json", help="Print the files as one line of JSON.")] = False) -> None:
    """Show where settings are read from: the project's file and the user's, whether they are there or not."""
    with clear_errors():
        from langmem_ext.cli.config import paths_with  # noqa: PLC0415 - as in `chat`

        paths_with(as_json=as_json)


@app.command()
def version(as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False) -> None:
    """Show the version."""
    typer.echo(json.dumps({"langmem-ext": __version__}) if as_json else f"langmem-ext {__version__}")
