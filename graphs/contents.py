"""What a database holds: its tables with their sizes, and the beginning of a conversation."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from langmem_ext.errors import MissingExtra
from langmem_ext.log.message_log import is_server

if TYPE_CHECKING:
    import psycopg

ABOUT = {
    "item": "messages, each stored once",
    "value": "other values of the state, each stored once",
    "checkpoint": "states to go back to; they refer to messages and values",
    "pending_write": "results of steps not yet in a checkpoint",
    "thread": "one row per conversation: title, status, what it waits for",
    "namespace": "subgraphs",
    "word": "names that repeat from checkpoint to checkpoint",
    "setting": "settings of the database",
    "langmem_migration": "versions of the schema",
    "grantee": "roles that may use the tables",
    "checkpoints": "states, each with all messages",
    "writes": "results of steps, with their messages again",
}
"""What a table holds, in a few words."""

_BEGINNING = (
    "SELECT number, role, coalesce(nullif(text, ''), '(calls a tool)') FROM {}conversation LIMIT 6"
)
_SERVER_TABLES = (
    "SELECT relname, pg_total_relation_size(pg_class.oid) FROM pg_class JOIN pg_namespace ON"
    " pg_namespace.oid = relnamespace WHERE nspname = %s AND relkind = 'r'"
)


@dataclass(frozen=True, slots=True)
class Table:
    """A table's size: its rows, and its bytes with its indexes'."""

    name: str
    rows: int
    bytes: int


def tables_of(database: str) -> list[Table]:
    """The non-empty tables of a database (a file's path or a server's URL), the largest first."""
    with _opened(database) as (connection, prefix):
        found = [
            *(
                _server_tables(connection, prefix)
                if is_server(database)
                else _file_tables(connection)
            )
        ]
    return sorted((table for table in found if table.rows), key=lambda table: -table.bytes)


def beginning_of(database: str) -> list[tuple[int, str, str]]:
    """The first messages of a database, as anybody may read them: number, role and text."""
    with _opened(database) as (connection, prefix):
        return [
            (number, role, text)
            for number, role, text in connection.execute(_BEGINNING.format(prefix)).fetchall()
        ]


def bytes_of(connection: sqlite3.Connection, name: str) -> int:
    """The size of a table and its indexes in pages, or of its values where SQLite cannot say."""
    pages = (
        "SELECT sum(pgsize) FROM dbstat WHERE name IN (SELECT name FROM sqlite_master WHERE"
        " tbl_name = ?)"
    )
    try:
        [size] = connection.execute(pages, (name,)).fetchone()
    except sqlite3.DatabaseError:
        columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')]
        total = " + ".join(f'coalesce(length(CAST("{column}" AS BLOB)), 0)' for column in columns)
        [size] = connection.execute(f'SELECT sum({total}) FROM "{name}"').fetchone()
    return int(size)


# -- servers ---------------------------------------------------------------------------------------


def in_schema(url: str, schema: str) -> str:
    """The URL of another schema in the same database."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query.replace("+", "%2B"), keep_blank_values=True)) | {
        "schema": schema
    }
    return parts._replace(query=urlencode(options, quote_via=quote)).geturl()


def drop_schema(url: str) -> None:
    """Delete the schema that a URL names, and all that is in it.

    Raises:
        MissingExtra: There is no psycopg.
        StorageUnavailable: The server cannot be reached, or refuses.
    """
    with _opened(url) as (connection, prefix):
        connection.execute(f"DROP SCHEMA IF EXISTS {prefix.removesuffix('.')} CASCADE")


@contextmanager
def _opened(database: str) -> Iterator[tuple[Any, str]]:
    """A connection to a database, and what stands before the names of its tables."""
    if not is_server(database):
        with closing(sqlite3.connect(database)) as connection:
            yield connection, ""
        return
    try:
        import psycopg  # noqa: PLC0415 (an extra)

        from langmem_ext.storage.postgres.server import (  # noqa: PLC0415 (needs it)
            Server,
            storage_error,
        )
    except ImportError as error:
        raise MissingExtra("a PostgreSQL database", "postgres") from error
    server = Server.of(database)
    try:
        with psycopg.connect(server.direct, **server.options()) as opened:
            opened.execute("SET client_min_messages = warning")
            yield opened, f"{server.schema}."
    except psycopg.Error as error:
        raise storage_error(error, server) from error


def _file_tables(connection: sqlite3.Connection) -> Iterator[Table]:
    names = [
        name
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    ]
    for name in names:
        if name != "sqlite_sequence":
            [rows] = connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()
            yield Table(name, rows, bytes_of(connection, name) if rows else 0)


def _server_tables(connection: psycopg.Connection[Any], prefix: str) -> Iterator[Table]:
    for name, size in connection.execute(_SERVER_TABLES, (prefix.removesuffix("."),)).fetchall():
        row = connection.execute(f'SELECT count(*) FROM {prefix}"{name}"'.encode()).fetchone()
        yield Table(name, row[0] if row else 0, size)
