"""The access of PostgreSQL roles to a database, from the command line.

Needs the extra `postgres`.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence

import typer

from langmem_ext.cli.config import database
from langmem_ext.cli.control_characters import printable
from langmem_ext.cli.errors import note
from langmem_ext.errors import InvalidInput
from langmem_ext.log.message_log import is_server, owner_key
from langmem_ext.settings.origin import masked
from langmem_ext.storage.postgres import roles
from langmem_ext.storage.postgres.roles import Grant, Rights
from langmem_ext.storage.postgres.server import Server


def list_with(db: str | None, *, as_json: bool) -> None:
    """Print what roles may do, a line for each.

    Raises:
        LangmemExtError: The database cannot be read.
    """
    for grant in roles.granted(_server(db)):
        line = (
            json.dumps(dataclasses.asdict(grant))
            if as_json
            else "\t".join(map(printable, (grant.role, grant.rights, _threads(grant.owner))))
        )
        typer.echo(line)


def grant_with(db: str | None, role: str, rights: Rights, *, owner: str | None, sql: bool) -> None:
    """Let a role do something, and say so; or print how.

    Raises:
        LangmemExtError: It cannot be granted; nothing was changed.
    """
    wanted = Grant(role, rights, owner_key(owner))
    _report(
        roles.grant(_server(db), wanted, execute=not sql),
        f"{role} is a {rights} of {_threads(wanted.owner)}",
        sql=sql,
    )


def revoke_with(db: str | None, role: str, *, sql: bool) -> None:
    """Take from a role what it was granted, and say so; or print how.

    Raises:
        LangmemExtError: It cannot be taken; nothing was changed.
    """
    _report(
        roles.revoke(_server(db), role, execute=not sql),
        f"{role} has no access to these tables",
        sql=sql,
    )


def _report(statements: Sequence[str], done: str, *, sql: bool) -> None:
    if sql:
        typer.echo("\n".join(f"{statement};" for statement in ("BEGIN", *statements, "COMMIT")))
    else:
        note(done)


def _threads(owner: str | None) -> str:
    return "all threads" if owner is None else f"the threads of {owner}"


def _server(db: str | None) -> Server:
    url = database(db)
    if not is_server(url):
        raise InvalidInput(
            f"{masked(url)} is not a PostgreSQL database and has no roles: pass --db"
            " postgresql://user@host/name"
        )
    return Server.of(url)
