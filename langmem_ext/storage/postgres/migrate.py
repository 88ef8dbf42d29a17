"""Migrates the tables in PostgreSQL, in one transaction and one process at a time.

So it is with the vectors' copy for pgvector, which is in no migration: a server may have the
extension at one time and not at another.
"""

from __future__ import annotations

import time
from contextlib import suppress
from typing import Any, Final

import psycopg
from psycopg import errors

from langmem_ext.errors import InvalidInput, StorageUnavailable
from langmem_ext.storage.postgres.roles import settle
from langmem_ext.storage.postgres.server import Server, storage_error
from langmem_ext.storage.schema import postgres as postgres_schema
from langmem_ext.storage.schema.dialect import SCHEMA, Dialect, postgres
from langmem_ext.storage.schema.migrations import MIGRATIONS, Migration, unknown_migrations
from langmem_ext.storage.schema.store import pgvector

_LOCK: Final = 0x6C6D6578
"""The advisory lock of migrations: "lmex"."""

_DATABASE: Final = "SELECT oid FROM pg_database WHERE datname = current_database()"
_IDENTITY: Final = f"SELECT system_identifier, ({_DATABASE}) FROM pg_control_system()"
"""Identifies the database, by whatever name it is reached; a standby is the same as its primary."""

_APPLIED: Final = "SELECT name FROM langmem_migration"
_HAS_SCHEMA: Final = f"SELECT 1 FROM pg_namespace WHERE oid = to_regnamespace('{SCHEMA}')"
_UNPARTED: Final = (
    f"SELECT relname FROM pg_class WHERE relnamespace = '{SCHEMA}'::regnamespace AND relkind = 'p'"
    " AND NOT EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = pg_class.oid)"
)
"""Tables that have no partitions yet, and take no row before they have."""

_COUNT_PARTITIONS: Final = (
    f"SELECT count(*) FROM pg_inherits WHERE inhparent = to_regclass('{SCHEMA}.item')"
)

_HAS_NEAR: Final = (
    f"SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('{SCHEMA}.store_vector') AND NOT"
    " attisdropped AND attname = 'near'"
)
_EXTENSION: Final = (
    "SELECT quote_ident(nspname) FROM pg_extension JOIN pg_namespace ON pg_namespace.oid ="
    " extnamespace WHERE extname = 'vector'"
)
"""The schema of pgvector, if it is installed."""

_COUNT_UP_TO: Final = "SELECT count(*) FROM (SELECT FROM store_vector LIMIT :most) AS few"

_REFUSED: Final = (
    errors.DeadlockDetected,
    errors.InsufficientPrivilege,
    errors.LockNotAvailable,
    errors.ReadOnlySqlTransaction,
)
_PGVECTOR_SINCE: Final = 140_000

_RECORD: Final = "INSERT INTO langmem_migration (name, applied_at) VALUES (:name, :now)"


def migrate(server: Server) -> None:
    """Make the tables or migrate them; a role that may only write is enough if nothing is missing.

    Args:
        server: The database, and whether the tables must exist already, from this release.

    Raises:
        SchemaTooNew: The database has a migration that this release does not know; nothing was
            changed.
        NotADatabase: Its schema holds another program's tables under our names; nothing was
            changed.
        InvalidInput: Its tables have another number of partitions than the URL says.
        StorageUnavailable: It cannot be reached, or refuses.
    """
    dialect = postgres(server.schema)
    try:
        with psycopg.connect(server.direct, **server.options()) as connection:
            _require_unicode(connection, server)
            _require_same(connection, server)
            missing = _missing(connection, dialect)
            if len(missing) < len(MIGRATIONS):
                _require_partitions(connection, dialect, server)
            if not missing:
                return
            if server.mode == "ro" or (server.mode == "rw" and len(missing) == len(MIGRATIONS)):
                raise StorageUnavailable(
                    f"the {server.place} has no tables of this package in its schema"
                    f" {server.schema!r}, or older ones: name another one (schema= in its URL), or"
                    " open it once for writing, as `langmem-ext chat` does"
                )
            with connection.transaction():
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                # Looked at again under the lock: another process may have migrated meanwhile.
                missing = _missing(connection, dialect)
                partitions = (
                    server.partitions
                    if len(missing) == len(MIGRATIONS)
                    else _partitions(connection, dialect)
                )
                if len(missing) == len(MIGRATIONS):
                    _begin(connection, dialect)
                for migration in missing:
                    _apply(
                        connection,
                        postgres(server.schema, partitioned=partitions > 0),
                        migration,
                        partitions,
                    )
                settle(connection, server.schema)
    except psycopg.Error as error:
        raise storage_error(error, server) from error


def _require_same(connection: psycopg.Connection[Any], server: Server) -> None:
    """Require that the URL past a pooler leads to the same database as the pooler."""
    if server.direct == server.conninfo:
        return
    with psycopg.connect(server.conninfo, **server.options()) as other:
        here, there = _identity(connection), _identity(other)
    if here != there:
        raise InvalidInput(
            f"direct= in the URL names another database than the {server.place}: give the URL of"
            " the same one past the pooler; nothing was changed"
        )


def _identity(connection: psycopg.Connection[Any]) -> tuple[Any, ...]:
    try:
        return connection.execute(_IDENTITY).fetchone() or ()
    except errors.InsufficientPrivilege:  # a server that does not say
        return connection.execute(_DATABASE).fetchone() or ()


def _require_unicode(connection: psycopg.Connection[Any], server: Server) -> None:
    """Require that the database can hold any text."""
    encoding = connection.info.parameter_status("server_encoding")
    if encoding not in (None, "UTF8"):
        raise StorageUnavailable(
            f"the {server.place} has the encoding {encoding}, which cannot hold every text: make"
            " one with CREATE DATABASE name ENCODING 'UTF8' TEMPLATE template0"
        )


def _missing(connection: psycopg.Connection[Any], dialect: Dialect) -> list[Migration]:
    """The migrations that the database lacks, in order; writes nothing."""
    try:
        with connection.transaction():
            applied = {str(name) for (name,) in connection.execute(dialect.render(_APPLIED), {})}
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        applied = set()
    if (error := unknown_migrations(applied)) is not None:
        raise error
    return [migration for migration in MIGRATIONS if migration.name not in applied]


def _partitions(connection: psycopg.Connection[Any], dialect: Dialect) -> int:
    """The number of partitions of each table; 0 if it has none."""
    row = connection.execute(dialect.render(_COUNT_PARTITIONS), {}).fetchone()
    return int(row[0]) if row is not None else 0


def _require_partitions(
    connection: psycopg.Connection[Any], dialect: Dialect, server: Server
) -> None:
    """Require that the URL does not change the partitions of existing tables."""
    if server.partitions and server.partitions != (there := _partitions(connection, dialect)):
        raise InvalidInput(
            f"the tables of the {server.place} were made with {there or 'no'} partitions: leave"
            f" partitions={server.partitions} out, or have copy_saver move the threads to another"
            " schema that is made with it"
        )


def _begin(connection: psycopg.Connection[Any], dialect: Dialect) -> None:
    """Make the schema if it is missing: not every role that may make tables may make schemas."""
    if connection.execute(dialect.render(_HAS_SCHEMA), {}).fetchone() is None:
        connection.execute(dialect.render(postgres_schema.CREATE_SCHEMA), {})
    connection.execute(dialect.render(postgres_schema.MIGRATION_TABLE), {})


def _apply(
    connection: psycopg.Connection[Any], dialect: Dialect, migration: Migration, partitions: int
) -> None:
    now = int(time.time())
    for statement in migration.postgres:
        connection.execute(dialect.render(statement), {})
    for (table,) in connection.execute(dialect.render(_UNPARTED), {}).fetchall():
        for at in range(partitions):
            connection.execute(dialect.render(postgres_schema.partition(table, at, partitions)), {})
    connection.execute(dialect.render(_RECORD), {"name": migration.name, "now": now})


def give_vectors(server: Server, *, fewer: int) -> bool:
    """Whether pgvector can compare a store's vectors: it has a copy of them.

    A missing copy is made here, if the extension is installed and the role owns the tables; the
    extension itself is never created. Writers wait meanwhile. If the vectors stay locked for 5
    seconds, the copy is left for another time.

    Args:
        server: The database.
        fewer: The copy is made if there are fewer vectors than this.

    Raises:
        StorageUnavailable: It cannot be reached.
    """
    dialect = postgres(server.schema)
    has_near = dialect.render(_HAS_NEAR)
    try:
        with psycopg.connect(server.direct, **server.options()) as connection:
            if connection.execute(has_near, {}).fetchone() is not None:
                return True
            if server.mode != "ro" and connection.info.server_version >= _PGVECTOR_SINCE:
                with suppress(*_REFUSED), connection.transaction():
                    _copy_vectors(connection, dialect, fewer)
            return connection.execute(has_near, {}).fetchone() is not None
    except psycopg.Error as error:
        raise storage_error(error, server) from error


def _copy_vectors(connection: psycopg.Connection[Any], dialect: Dialect, fewer: int) -> None:
    extension = connection.execute(_EXTENSION).fetchone()
    if extension is None:
        return
    # Before the table is looked at: two that have, and wait to change it, wait for each other.
    connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
    connection.execute("SET LOCAL lock_timeout = '5s'")
    if connection.execute(dialect.render(_HAS_NEAR), {}).fetchone() is None:
        [(count,)] = connection.execute(dialect.render(_COUNT_UP_TO), {"most": fewer})
        for statement in pgvector(extension[0]) if count < fewer else ():
            connection.execute(dialect.render(statement), {})
