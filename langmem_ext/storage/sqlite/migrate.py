"""Migrates a database to this release: each migration and its record in one transaction."""

from __future__ import annotations

import os
import re
import sqlite3
import time
from collections.abc import Callable
from typing import Any, Final

from langmem_ext.errors import NotADatabase, StorageError, StorageUnavailable
from langmem_ext.storage.operation import Params
from langmem_ext.storage.schema.dialect import SQLITE
from langmem_ext.storage.schema.migrations import (
    APPLICATION_ID,
    MIGRATION_TABLE,
    MIGRATIONS,
    Migration,
    unknown_migrations,
)
from langmem_ext.storage.search import sql as search_sql

SMALLEST_PAGE: Final = 512
"""Bytes."""

_TABLES: Final = (
    "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
    " ORDER BY name"
)
_SAVERS_TABLE: Final = _TABLES.replace("ORDER", "AND name = 'checkpoints' ORDER")

_MADE: Final = frozenset(
    SQLITE.render(statement).replace("IF NOT EXISTS ", "")
    for statement in (
        MIGRATION_TABLE,
        *(statement for migration in MIGRATIONS for statement in migration.sqlite),
        *search_sql.CREATE,
    )
)
"""All that this package makes, as SQLite keeps it; a migration that alters a table adds to it."""

_FTS5: Final = frozenset(f"search_{end}" for end in ("data", "idx", "content", "config", "docsize"))
"""The tables that SQLite makes for the search index, whichever its release writes."""

_NAMES: Final = _FTS5.union(
    re.findall(r"^CREATE (?:VIRTUAL )?(?:TABLE|VIEW) (\w+)", "\n".join(_MADE), re.MULTILINE)
)

# SQLite itself reads blobs here, too, and texts to their first NUL, and that type and names are
# those of the SQL it checks.
_OBJECTS: Final = (
    "SELECT lower(printf('%s', type)), printf('%s', name), lower(printf('%s', tbl_name)),"
    " CAST(sql AS TEXT) FROM sqlite_master WHERE sql IS NOT NULL"
)

Again = Callable[[Callable[[], Any]], Any]


def migrate(connection: sqlite3.Connection, again: Again) -> None:
    """Apply missing migrations; never undoes, never skips.

    Args:
        connection: The open database.
        again: Calls its argument until another process's lock is released.

    Raises:
        SchemaTooNew: The database has a migration that this release does not know; nothing was
            changed.
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
                connection.execute(SQLITE.render(statement))
            connection.execute(
                "INSERT INTO langmem_migration (name, applied_at) VALUES (?, ?)",
                (migration.name, int(time.time())),
            )
        _mark(connection)
        connection.execute("COMMIT")
    except BaseException as error:
        connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.OperationalError) and "already exists" in str(error):
            raise NotADatabase(
                f"another program's tables in this database have the same names ({error}): use"
                " another file"
            ) from error
        raise


def mark_new(connection: sqlite3.Connection) -> None:
    """Mark an empty file as this package's, so that it is recognised if its log is lost.

    The mark that `connection.require_log` reads is written only once there is a log: if the process
    is killed here, the file can still be opened.

    Args:
        connection: The open database, with a write-ahead log.
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        if not read_rows(connection, "SELECT 1 FROM sqlite_master LIMIT 1"):
            _mark(connection)
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    read_rows(connection, "PRAGMA wal_checkpoint(PASSIVE)")  # into the file itself


def _mark(connection: sqlite3.Connection) -> None:
    if read_rows(connection, "PRAGMA application_id") == [(0,)]:
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def pending(connection: sqlite3.Connection) -> list[Migration]:
    """The migrations that the database lacks, in order; writes nothing.

    Raises:
        SchemaTooNew: It has one that this release does not know.
        StorageUnavailable: It was made before the first release.
    """
    exists = read_rows(
        connection,
        "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'langmem_migration'",
    )
    applied = (
        [name for (name,) in read_rows(connection, "SELECT name FROM langmem_migration")]
        if exists
        else []
    )
    if (error := unknown_migrations([str(name) for name in applied])) is not None:
        raise error
    return [migration for migration in MIGRATIONS if migration.name not in applied]


def refuse_strange(connection: sqlite3.Connection, path: str) -> None:
    """Refuse tables of ours that are not, or not only, as this package makes them.

    A stranger's trigger, index or constraint would delete or drop what is written. Other tables in
    the file, with all that is theirs, are an application's.

    Raises:
        NotADatabase: There are such.
    """
    found = [row for row in read_rows(connection, _OBJECTS) if row[2] in _NAMES]
    if not any(table == "langmem_migration" for *_, table, _ in found):
        return  # nothing was made here yet
    strange = [
        f"{kind} {name!r}" + (f" on {table!r}" if kind in ("trigger", "index") else "")
        for kind, name, table, sql in found
        if sql not in _MADE and (kind, table in _FTS5) != ("table", True)
    ]
    if strange:
        raise NotADatabase(
            f"{path or 'the database'} holds what this package did not make, and what could change"
            f" or drop what is stored: {', '.join(strange)}. Drop your own triggers and indexes"
            " there (DROP TRIGGER, DROP INDEX); of a stranger's file, ask for an export"
            " (`langmem-ext threads export --all`) instead"
        )


def refuse_others(
    connection: sqlite3.Connection, path: str, *, complete: bool, alone: bool
) -> None:
    """Refuse the files of other programs, and truncated ones.

    Args:
        connection: The open database.
        path: Its file.
        complete: Whether nothing may be added: it must be a database of this package, and of this
            release.
        alone: Whether nothing may be added to another program's tables.

    Raises:
        NotADatabase: It is another program's.
        StorageUnavailable: It needs a migration first.
        StorageError: Its end is missing.
    """
    size = _size_of(path)
    [(page,)] = read_rows(connection, "PRAGMA page_size")
    missing = pending(connection)
    [(application,)] = read_rows(connection, "PRAGMA application_id")
    others = application not in (0, APPLICATION_ID) or (
        complete and len(missing) == len(MIGRATIONS)
    )
    # SQLite takes a file that is shorter than any page for a new one.
    if missing and (others or 0 < size < SMALLEST_PAGE):
        raise _not_ours(
            connection,
            path,
            f"{path} is not a langmem_ext database: pass the path of one, or of a file that does"
            " not exist yet",
        )
    if alone and len(missing) == len(MIGRATIONS) and (theirs := read_rows(connection, _TABLES)):
        names = f"{theirs[0][0]!r}{' and others' if len(theirs) > 1 else ''}"
        raise _not_ours(
            connection,
            path,
            f"{path} is another program's database (it has the table {names}): pass the path of a"
            " file that does not exist yet",
        )
    if size % page and not _size_of(f"{path}-wal"):
        # SQLite would read zeros for what is missing. With a log, a checkpoint was stopped, and the
        # log has the whole page.
        raise StorageError(
            f"{path} is damaged (its last page is cut off): restore it from a copy, or read what is"
            " left with sqlite3's .recover"
        )
    if missing and complete:
        raise StorageUnavailable(
            f"{path} was written by an older release: open it once with write access to upgrade it"
        )


def _size_of(path: str) -> int:
    return os.path.getsize(path) if os.path.isfile(path) else 0


def read_rows(
    connection: sqlite3.Connection, statement: str, params: Params | None = None
) -> list[tuple[Any, ...]]:
    """The rows as tuples, even if a passed connection has a row factory."""
    cursor = connection.cursor()
    cursor.row_factory = None
    return cursor.execute(statement, params or {}).fetchall()


def _not_ours(connection: sqlite3.Connection, path: str, text: str) -> NotADatabase:
    """The error for another program's database; one of LangGraph's savers is named as such."""
    if read_rows(connection, _SAVERS_TABLE):
        text = (
            f"{path} is the database of another LangGraph saver: `langmem-ext inspect` shows it as"
            " it is, `langmem-ext import-checkpoints` copies its threads into a database of this"
            " package"
        )
    return NotADatabase(text)
