"""The commands `langmem-ext roles …`: the access of PostgreSQL roles to a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Annotated

import typer

from langmem_ext.cli.errors import clear_errors
from langmem_ext.cli.examples import examples_of
from langmem_ext.errors import InvalidInput, MissingExtra

roles = typer.Typer(
    help="Grant PostgreSQL roles access: readers, writers, or roles that see one owner's threads.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples_of("roles"),
)

_Db = Annotated[
    str | None,
    typer.Option(
        help="The database, as the role that owns its tables: postgresql://user@host/name.",
        metavar="URL",
    ),
]
_Role = Annotated[str, typer.Argument(help="A PostgreSQL role.", metavar="ROLE")]
_Sql = Annotated[bool, typer.Option("--sql", help="Print the SQL statements; execute nothing.")]


@contextmanager
def _at_a_server() -> Iterator[None]:
    with clear_errors():
        if find_spec("psycopg") is None:
            raise MissingExtra("a PostgreSQL database", "postgres")
        yield


@roles.command("list")
def list_(
    db: _Db = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one line of JSON for each.")
    ] = False,
) -> None:
    """List the roles that have access."""
    with _at_a_server():
        from langmem_ext.cli.commands.roles.grants import (  # noqa: PLC0415 - help must not wait for it
            list_with,
        )

        list_with(db, as_json=as_json)


@roles.command(epilog=examples_of("grant"))
def grant(
    role: _Role,
    writer: Annotated[bool, typer.Option("--writer", help="Allow reading and writing.")] = False,
    reader: Annotated[bool, typer.Option("--reader", help="Allow reading only.")] = False,
    owner: Annotated[
        str | None,
        typer.Option(
            help=(
                "Restrict the role to this owner's threads; enables row-level security. Default:"
                " all threads."
            ),
            metavar="NAME",
        ),
    ] = None,
    db: _Db = None,
    sql: _Sql = False,
) -> None:
    """Grant a role read or write access, replacing what it had."""
    with _at_a_server():
        from langmem_ext.cli.commands.roles.grants import (  # noqa: PLC0415 - help must not wait for it
            grant_with,
        )

        if writer == reader:
            raise InvalidInput("choose the access of the role: pass either --writer or --reader")

        grant_with(db, role, "writer" if writer else "reader", owner=owner, sql=sql)


@roles.command()
def revoke(role: _Role, db: _Db = None, sql: _Sql = False) -> None:
    """Revoke the access of a role.

    Revoking the last role with an owner disables row-level security.
    """
    with _at_a_server():
        from langmem_ext.cli.commands.roles.grants import (  # noqa: PLC0415 - help must not wait for it
            revoke_with,
        )

        revoke_with(db, role, sql=sql)
