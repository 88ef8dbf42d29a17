"""Bringing a database's schema up to this release: each migration and its record in one transaction."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from typing import Any

from langmem_ext.errors import NotADatabase, SchemaTooNew, StorageUnavailable
from langmem_ext.storage.schema import APPLICATION_ID, MIGRATION_TABLE, MIGRATIONS, Migration

Again = Callable[[Callable[[], Any]], Any]


def migrate(connection: sqlite3.Connection, again: Again) -> None:
    """Apply what is missing; never undoes, never skips.

    Args:
        connection: The open database.
        again: Calls its argument until another process's lock is gone.

    Raises:
        SchemaTooNew: The database has a migration that this release does not know; nothing was changed.
        NotADatabase: It holds another program's tables under our names.
    """
    if not pending(connection):
        return
    again(lambda: connection.execute("BEGIN IMMEDIATE"))
    try:
        # Looked at again under the lock: another process may have migrated meanwhile.
        for migration in pending(connection):
            connection.execute(MIGRATION_TABLE)
            for statement in migration.sqlite:
                connection.execute(statement)
            connection.execute("INSERT INTO langmem_migration (name, applied_at) VALUES (?, ?)", (migration.name, int(time.time())))
        if read_rows(connection, "PRAGMA application_id") == [(0,)]:
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException as error:
        connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.OperationalError) and "already exists" in str(error):
            raise NotADatabase(f"the database holds another program's tables under our names ({error}): use a file of its own") from error
        raise


def pending(connection: sqlite3.Connection) -> list[Migration]:
    """The migrations that the database lacks, in order; writes nothing.

    Raises:
        SchemaTooNew: It has one that this release does not know.
    """
    exists = read_rows(connection, "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'langmem_migration'")
    applied = [name for (name,) in read_rows(connection, "SELECT name FROM langmem_migration")] if exists else []
    unknown = sorted(set(applied) - {migration.name for migration in MIGRATIONS})
    if unknown:
        raise SchemaTooNew(f"the database was written by a newer release (it has {', '.join(unknown)}): upgrade langmem-ext to open it")
    return [migration for migration in MIGRATIONS if migration.name not in applied]


def refuse_others(connection: sqlite3.Connection, path: str, *, complete: bool) -> None:
    """Leave the files of other programs alone.

    Args:
        connection: The open database.
        path: Its file.
        complete: Nothing may be added to it: it must be a database of this package, and of this release.

    Raises:
        NotADatabase: It is another program's.
        StorageUnavailable: It is complete only after a migration.
    """
    missing = pending(connection)
    [(application,)] = read_rows(connection, "PRAGMA application_id")
    if missing and (application not in (0, APPLICATION_ID) or (complete and len(missing) == len(MIGRATIONS))):
        raise NotADatabase(f"{path} is not a database of this package: give the path of one, or of a file that does not exist yet")
    if missing and complete:
        raise StorageUnavailable(f"{path} was written by an older release: open it once for writing, which brings it up to this one")


def read_rows(connection: sqlite3.Connection, statement: str) -> list[tuple[Any, ...]]:
    """The rows as tuples, whatever row factory a passed connection has."""
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor.execute(statement).fetchall()
