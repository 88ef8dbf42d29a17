"""The commands `langmem-ext store …`: the items of the long-term store."""

from __future__ import annotations

from typing import Annotated

import typer

from langmem_ext.cli.errors import clear_errors
from langmem_ext.cli.examples import examples_of

store = typer.Typer(
    help="List, export, import and re-embed the items of the long-term store.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples_of("store"),
)

_Db = Annotated[
    str | None,
    typer.Option(
        help="Path or URL of the database. Default: the setting storage_path.",
        metavar="PATH",
        show_default=False,
    ),
]
_Owner = Annotated[
    str | None,
    typer.Option(
        help="Only the items of this owner. Default: the setting owner.",
        metavar="NAME",
        show_default=False,
    ),
]
_Json = Annotated[bool, typer.Option("--json", help="Print one line of JSON for each.")]


@store.command("list")
def list_(
    namespace: Annotated[
        list[str] | None,
        typer.Argument(help="Labels of a namespace; without any, all namespaces are listed."),
    ] = None,
    db: _Db = None,
    owner: _Owner = None,
    as_json: _Json = False,
) -> None:
    """List the namespaces, or the items below one."""
    with clear_errors():
        from langmem_ext.cli.commands.store.items import (  # noqa: PLC0415 - help must not wait for it
            list_with,
        )

        list_with(db, owner, namespace or [], as_json=as_json)


@store.command("export")
def export_(
    to: Annotated[
        str, typer.Option("--to", help="The file to write; - for the output.", metavar="FILE")
    ] = "-",
    db: _Db = None,
    owner: _Owner = None,
) -> None:
    """Export all items as lines of JSON."""
    with clear_errors():
        from langmem_ext.cli.commands.store.items import (  # noqa: PLC0415 - help must not wait for it
            export_with,
        )

        export_with(db, owner, to)


@store.command("import")
def import_(
    source: Annotated[
        str, typer.Argument(help="A file that an export has written.", metavar="FILE")
    ],
    db: _Db = None,
    owner: _Owner = None,
) -> None:
    """Import exported items, replacing those with the same namespace and key."""
    with clear_errors():
        from langmem_ext.cli.commands.store.items import (  # noqa: PLC0415 - help must not wait for it
            import_with,
        )

        import_with(db, owner, source)


@store.command()
def reindex(
    dims: Annotated[
        int, typer.Option(help="The length of the model's vectors.", min=1, max=10**9, metavar="N")
    ],
    embed: Annotated[
        str,
        typer.Option(
            help=(
                "The embedding model, as provider:model; or file.py:attribute, or"
                " package.module:attribute."
            ),
            metavar="MODEL",
        ),
    ],
    field: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "A field to embed, like text or notes[*].title; may be repeated. Default: the whole"
                " value."
            ),
            metavar="PATH",
        ),
    ] = None,
    db: _Db = None,
) -> None:
    """Embed all items again, after a change of model; can be stopped and continued."""
    with clear_errors():
        from langmem_ext.cli.commands.store.items import (  # noqa: PLC0415 - help must not wait for it
            reindex_with,
        )

        reindex_with(db, embed, dims, field or [])
