"""The commands `langmem-ext memory …` and `langmem-ext forget`: options and help texts."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from langmem_ext.cli.errors import clear_errors
from langmem_ext.cli.examples import examples_of

memory = typer.Typer(
    help="Have a model write the memories of conversations; show, list and forget them.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples_of("memory"),
)

_Db = Annotated[
    str | None,
    typer.Option(
        help=(
            "The database: a path or a URL. Default: the setting storage_path (LANGMEM_EXT_DB),"
            " memory.db if nothing sets it."
        ),
        metavar="URL",
    ),
]
_Owner = Annotated[
    str | None,
    typer.Option(
        help="Only this owner's conversations. Default: the setting owner.", metavar="NAME"
    ),
]
_Id = Annotated[
    str,
    typer.Argument(help="The thread: its id, any unique prefix of it, or its title.", metavar="ID"),
]


@memory.command(short_help="Write the memories that are needed.", epilog=examples_of("run"))
def run(
    model: Annotated[
        str | None,
        typer.Option(
            help="The chat model, like openai:gpt-5-mini. Default: the setting model.",
            metavar="MODEL",
        ),
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option(
            "--thread",
            "-t",
            help="Only of this conversation, whether it needs one or not.",
            metavar="ID",
        ),
    ] = None,
    idle: Annotated[
        str,
        typer.Option(
            help="Only of conversations not used for so long: 45s, 30m, 2h, 1d.", metavar="TIME"
        ),
    ] = "30m",
    facts: Annotated[
        bool, typer.Option("--facts", help="Look for facts, too: what users say that lasts.")
    ] = False,
    prompt: Annotated[
        str | None,
        typer.Option(
            help=(
                "A file with the prompt for memories. Default: the active stored version, or the"
                " usual one."
            ),
            metavar="FILE",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            "--limit", "-n", help="At most so many conversations.", min=1, max=10**9, metavar="N"
        ),
    ] = None,
    every: Annotated[
        str | None,
        typer.Option(
            help="Do it again after so long, until Ctrl-C: 45s, 30m, 2h, 1d.", metavar="TIME"
        ),
    ] = None,
    db: _Db = None,
    owner: _Owner = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON for each conversation.")
    ] = False,
) -> None:
    """Write memories of idle conversations that have gone on since their last memory was written.

    Memories of deleted conversations are deleted first. Stopped at any moment, it is run again and
    continues. Exits with 1 if a memory could not be written; what there was before stays.
    """
    with clear_errors():
        from langmem_ext.cli.commands.memory.memories import (  # noqa: PLC0415 - help must not wait for it
            Run,
            run_with,
        )

        asked = Run(model, thread, idle, facts, prompt, limit, every)
        well = run_with(db, owner, asked, as_json=as_json)
    raise typer.Exit(0 if well else 1)


@memory.command(short_help="Show the memory of a conversation.")
def show(
    thread: _Id,
    db: _Db = None,
    owner: _Owner = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print it as one line of JSON.")] = False,
) -> None:
    """Show the memory of a conversation. If it has no memory, say why and exit with 1."""
    with clear_errors():
        from langmem_ext.cli.commands.memory.memories import show_with  # noqa: PLC0415 - help must not wait for it

        there = show_with(db, owner, thread, as_json=as_json)
    raise typer.Exit(0 if there else 1)


@memory.command("list", short_help="List memories, or facts.")
def list_(
    facts: Annotated[
        bool,
        typer.Option(
            "--facts", help="The facts of --owner instead of memories; without an owner, nobody's."
        ),
    ] = False,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Facts too that a later one has superseded.")
    ] = False,
    db: _Db = None,
    owner: _Owner = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON for each.")
    ] = False,
) -> None:
    """List the memories of conversations, or what an owner said that lasts."""
    with clear_errors():
        from langmem_ext.cli.commands.memory.memories import list_with  # noqa: PLC0415 - help must not wait for it

        list_with(db, owner, facts=facts or superseded, superseded=superseded, as_json=as_json)


@memory.command(short_help="Delete memories or facts; conversations stay.")
def forget(
    names: Annotated[
        list[str],
        typer.Argument(
            help="Threads, as `show` takes them; with --facts, ids of facts.", metavar="ID"
        ),
    ],
    facts: Annotated[bool, typer.Option("--facts", help="Delete facts of --owner.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    db: _Db = None,
    owner: _Owner = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the count as one line of JSON.")
    ] = False,
) -> None:
    """Delete the memories of conversations, or facts, permanently.

    A conversation stays, and may get a new memory.
    """
    with clear_errors():
        from langmem_ext.cli.commands.memory.memories import forget_with  # noqa: PLC0415 - help must not wait for it

        there = sys.stdin.isatty() and sys.stderr.isatty()
        forget_with(db, owner, names, facts=facts, yes=yes, as_json=as_json, interactive=there)


def forget_owner(
    owner: Annotated[
        str,
        typer.Option(help="Whose conversations, memories, facts and other items.", metavar="NAME"),
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    db: _Db = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print what was deleted as one line of JSON.")
    ] = False,
) -> None:
    """Delete everything of an owner permanently, and overwrite it in the file.

    Runs that are under way restore nothing of it.
    """
    with clear_errors():
        from langmem_ext.cli.commands.database.upkeep import (  # noqa: PLC0415 - help must not wait for it
            forget_with,
        )

        forget_with(
            db,
            owner,
            yes=yes,
            as_json=as_json,
            interactive=sys.stdin.isatty() and sys.stderr.isatty(),
        )
