"""The commands `langmem-ext catalog …`: their options and what they are for."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from langmem_ext.cli.errors import clear_errors
from langmem_ext.cli.examples import examples_of

catalog = typer.Typer(
    help="Check the catalog of a waiting graph, and try it.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples_of("catalog"),
)

_CATALOG = typer.Argument(help="The catalog: a YAML file.", metavar="FILE")
_TOOLS = typer.Option(
    help="A list of the tools that it names. No tool is called.", metavar="FILE.py:NAME|MODULE:NAME"
)
_EXTENSIONS = typer.Option(
    help="An Extensions with the extractors, validators and normalisers that it names.",
    metavar="FILE.py:NAME|MODULE:NAME",
)


@catalog.command("check", short_help="Check a catalog for mistakes.")
def catalog_check(
    path: Annotated[str, _CATALOG],
    tools: Annotated[str | None, _TOOLS] = None,
    extensions: Annotated[str | None, _EXTENSIONS] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the findings as one line of JSON.")
    ] = False,
) -> None:
    """Report every mistake in a catalog with its line, and every example read as another intent.

    With --tools, what the catalog leaves out is taken from the schemas of the tools, and is checked
    against them. Exits with 2 if there are mistakes, with 1 if only examples are not understood.
    """
    with clear_errors():
        from langmem_ext.cli.commands.catalog.intents import check_with  # noqa: PLC0415 - as in `chat`

        well = check_with(path, tools=tools, extensions=extensions, as_json=as_json)
    raise typer.Exit(0 if well else 1)


@catalog.command("try", short_help="Chat, and see what is understood and why.")
def catalog_try(
    path: Annotated[str, _CATALOG],
    tools: Annotated[str | None, _TOOLS] = None,
    extensions: Annotated[str | None, _EXTENSIONS] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print each turn as one line of JSON.")
    ] = False,
) -> None:
    """Chat with a catalog, and see what is understood and why.

    Each turn shows the commands, the scores of the intents, the values and the next question.
    Nothing is stored. Tools are shown, not called. In a pipe, each line of stdin is a message.
    /reset starts over, /quit ends. Exits with 1 if a message failed.
    """
    with clear_errors():
        from langmem_ext.cli.commands.catalog.intents import try_with  # noqa: PLC0415 - as in `chat`

        interactive = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
        well = try_with(
            path, tools=tools, extensions=extensions, as_json=as_json, interactive=interactive
        )
    raise typer.Exit(0 if well else 1)
