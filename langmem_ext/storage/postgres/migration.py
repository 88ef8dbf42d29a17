"""Bringing the tables in PostgreSQL up to this release: all that is missing in one transaction, by one process at a time."""

from __future__ import annotations

import time
from typing import Any, Final

import psycopg
from psycopg import errors

from langmem_ext.errors import SchemaTooNew, StorageUnavailable
from langmem_ext.storage import postgres_schema
from langmem_ext.storage.dialect import Dialect, postgres
from langmem_ext.storage.postgres.server import Server, storage_error
from langmem_ext.storage.schema import MIGRATIONS, Migration

_LOCK: Final = 0x6C6D6578
"""The advisory lock of those who migrate: "lmex"."""

_APPLIED: Final = "SELECT name FROM langmem_migration"
_RECORD: Final = "INSERT INTO langmem_migration (name, applied_at) VALUES (:name, :now)"


def migrate(server: Server) -> None:
    """Make the tables, or bring them up to this release; a role that may only write is enough where nothing is missing.

    Args:
        server: The database, and whether the tables must be there already, and of this release.

    Raises:
        SchemaTooNew: The database has a migration that this release does not know; nothing was changed.
        StorageUnavailable: It cannot be reached, or refuses.
    """
    dialect = postgres(server.schema)
    try:
        with psycopg.connect(server.direct, **server.options()) as connection:
            missing = _missing(connection, dialect)
            if not missing:
                return
            if server.mode == "ro" or (server.mode == "rw" and len(missing) == len(MIGRATIONS)):
                raise StorageUnavailable(f"the {server.place} has no tables of this package, or older ones: open it once for writing")
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                # Looked at again under the lock: another process may have migrated meanwhile.
                for migration in _missing(connection, dialect):
                    _apply(connection, dialect, migration)
    except psycopg.Error as error:
        raise storage_error(error, server) from error


def _missing(connection: psycopg.Connection[Any], dialect: Dialect) -> list[Migration]:
    """The migrations that the database lacks, in order; writes nothing."""
    try:
        with connection.transaction():
            applied = {str(name) for (name,) in connection.execute(dialect.render(_APPLIED), {})}
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        applied = set()
    unknown = sorted(applied - {migration.name for migration in MIGRATIONS})
    if unknown:
        raise SchemaTooNew(f"the database was written by a newer release (it has {', '.join(unknown)}): upgrade langmem-ext to open it")
    return [migration for migration in MIGRATIONS if migration.name not in applied]


def _apply(connection: psycopg.Connection[Any], dialect: Dialect, migration: Migration) -> None:
    now = int(time.time())
    statements = (postgres_schema.CREATE_SCHEMA, postgres_schema.MIGRATION_TABLE, *migration.postgres)
    for statement in statements:
        connection.execute(dialect.render(statement), {})
    connection.execute(dialect.render(_RECORD), {"name": migration.name, "now": now})
