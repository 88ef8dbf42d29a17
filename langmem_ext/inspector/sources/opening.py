"""Opening a database for the inspector: whose it is, its tables say."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from langmem_ext._internal.url import parts_of
from langmem_ext.checkpointer.saver import DeltaSaver
from langmem_ext.errors import MissingExtra, NotADatabase, StorageUnavailable
from langmem_ext.inspector.sources.foreign import PostgresSaverSource, SqliteSaverSource
from langmem_ext.inspector.sources.own import OwnSource
from langmem_ext.inspector.sources.source import Source
from langmem_ext.log.message_log import Database, MessageLog, existing, is_server, sqlite_path

OURS = "langmem_migration"


def source_of(database: Database | Source) -> Source:
    """What the inspector sees of a database: an open one, or one that a path or URL names.

    Raises:
        StorageError: It cannot be opened (its subclasses say why).
        InvalidInput: The URL names no database.
    """
    if isinstance(database, Source):
        return database
    if isinstance(database, DeltaSaver):
        return OwnSource(database)
    if isinstance(database, MessageLog):
        return OwnSource(DeltaSaver(database))
    return open_source(str(database))


def open_source(url: str, *, read_only: bool = False) -> Source:
    """Open a database that is there.

    Args:
        url: A path or a URL: a database of this package, or of a `SqliteSaver` or a
            `PostgresSaver`, which is only read.
        read_only: Change nothing: no thread is forked, no index of a search is made.

    Raises:
        StorageError: It cannot be opened (its subclasses say why).
        InvalidInput: The URL names no database.
        NotADatabase: It is there, and nobody's that the inspector knows.
    """
    if is_server(url):
        return _open_server(url, read_only)
    path, asked = sqlite_path(url)
    if not Path(path).is_file():
        raise StorageUnavailable(
            f"there is no database {Path(path).absolute()}: name another one, or look at"
            " `langmem-ext inspect --demo`"
        )
    tables = _tables(path)
    if OURS not in tables and {"checkpoints", "writes"} <= tables:
        return SqliteSaverSource(path)
    if OURS not in tables:
        raise NotADatabase(
            f"{Path(path).absolute()} holds no threads: name a database of this package or of a"
            " SqliteSaver"
        )
    only = read_only or asked
    return OwnSource(DeltaSaver.open(existing(url, read_only=only)), writable=not only)


def _tables(path: str) -> set[str]:
    """The tables of a SQLite file."""
    try:
        with closing(
            sqlite3.connect(f"file:{quote(str(Path(path).absolute()))}?mode=ro", uri=True)
        ) as connection:
            return {
                name
                for (name,) in connection.execute(
                    "SELECT name FROM sqlite_master WHERE type = 'table'"
                )
            }
    except sqlite3.Error as error:
        raise NotADatabase(
            f"{Path(path).absolute()} cannot be read as a database ({error}): name another file"
        ) from error


def _open_server(url: str, read_only: bool) -> Source:
    try:
        from langmem_ext.storage.postgres.server import Server  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise MissingExtra("a PostgreSQL database", "postgres") from error
    server, named = Server.of(url), parts_of(url)[1].get("schema")
    if OURS in _server_tables(server.conninfo, server.schema, server.place):
        return OwnSource(
            DeltaSaver.open(existing(url, read_only=read_only)), writable=not read_only
        )
    if {"checkpoints", "checkpoint_blobs", "checkpoint_writes"} <= _server_tables(
        server.conninfo, named, server.place
    ):
        return PostgresSaverSource(server.conninfo, named, server.place)
    raise NotADatabase(
        f"the {server.place} holds no threads: name a database of this package or of a"
        " PostgresSaver (schema= in its URL)"
    )


def _server_tables(conninfo: str, schema: str | None, place: str) -> set[str]:
    """The tables of a schema; None: the one in which a connection finds tables first."""
    import psycopg  # noqa: PLC0415 - an extra

    statement = "SELECT tablename FROM pg_tables WHERE schemaname = coalesce(%s, current_schema())"
    try:
        with psycopg.connect(conninfo) as connection:
            return {name for (name,) in connection.execute(statement, (schema,)).fetchall()}
    except psycopg.Error as error:
        raise StorageUnavailable(
            f"the {place} cannot be reached ({str(error).splitlines()[0]})"
        ) from error
