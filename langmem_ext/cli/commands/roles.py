"""The commands `langmem-ext roles …`: which roles of a PostgreSQL server may use a database, and how."""

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
    help="Say which roles may use a PostgreSQL database: readers, writers, those of one owner.",
    no_args_is_help=True,
    rich_markup_mode=None,
    epilog=examples_of("roles"),
)

_Db = Annotated[
    str | None,
    typer.Option(help="The database, with the role that owns its tables: postgresql://user@host/name.", metavar="URL"),
]
_Role = Annotated[str, typer.Argument(help="A role of the server.", metavar="ROLE")]
_Sql = Annotated[bool, typer.Option("--sql", help="Do nothing, and print the statements that do it.")]


@contextmanager
def _at_a_server() -> Iterator[None]:
    with clear_errors():
        if find_spec("psycopg") is None:
            raise MissingExtra("a PostgreSQL database", "postgres")
        yield


@roles.command("list")
def list_(db: _Db = None, as_json: Annotated[bool, typer.Option("--json", help="Print JSON, a line for each.")] = False) -> None:
    """List the roles that were granted something."""
    with _at_a_server():
        from langmem_ext.cli.commands.grants import list_with  # noqa: PLC0415 - help must not wait for it

        list_with(db, as_json=as_json)


@roles.command(epilog=examples_of("grant"))
def grant(
    role: _Role,
    writer: Annotated[bool, typer.Option("--writer", help="It reads and writes.")] = False,
    reader: Annotated[bool, typer.Option("--reader", help="It only reads.")] = False,
    owner: Annotated[
        str | None,
        typer.Option(help="It sees this owner's threads alone: row-level security is switched on. Default: all threads.", metavar="NAME"),
    ] = None,
    db: _Db = None,
    sql: _Sql = False,
) -> None:
    """Let a role read, or read and write, and take from it what else it had here."""
    with _at_a_server():
        from langmem_ext.cli.commands.grants import grant_with  # noqa: PLC0415 - help must not wait for it

        if writer == reader:
            raise InvalidInput("say what the role may do, by one of --writer and --reader")

        grant_with(db, role, "writer" if writer else "reader", owner=owner, sql=sql)


@roles.command()
def revoke(role: _Role, db: _Db = None, sql: _Sql = False) -> None:
    """Take from a role what it was granted; with the last role of an owner, row-level security is switched off."""
    with _at_a_server():
        from langmem_ext.cli.commands.grants import revoke_with  # noqa: PLC0415 - help must not wait for it

        revoke_with(db, role, sql=sql)
