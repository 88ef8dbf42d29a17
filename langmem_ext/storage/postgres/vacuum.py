"""Space in PostgreSQL: what the tables take, and giving back what deleted rows took."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, Final

import psycopg

from langmem_ext.errors import StorageUnavailable
from langmem_ext.storage.postgres.server import Server, storage_error
from langmem_ext.storage.schema.dialect import SIZE, postgres

TABLES: Final = ("item", "value", "checkpoint", "pending_write", "word", "namespace", "thread")
SEARCHED: Final = ("search", "search_message")
"""Those that a database has once somebody has searched it."""

_HAS: Final = "SELECT 1 FROM pg_tables WHERE schemaname = :schema AND tablename = :table"

_OWNS: Final = (
    "SELECT pg_has_role(relowner, 'USAGE') FROM pg_class"
    " WHERE relnamespace = to_regnamespace(quote_ident(%(schema)s)) AND relname = 'thread'"
)


def compaction(server: Server, *, full: bool) -> Generator[None, None, int]:
    """Vacuum each table, one in each step; returns by how many bytes they have shrunk.

    Args:
        server: The database.
        full: Rewrite each table, while its users wait; else only the empty pages at its end are
            returned, and the space of deleted rows is used again.

    Raises:
        StorageUnavailable: The role does not own the tables.
    """
    try:
        with psycopg.connect(server.direct, **server.options()) as connection:
            if connection.execute(_OWNS, {"schema": server.schema}).fetchone() != (True,):
                # The server would only warn, and pass the tables over.
                raise StorageUnavailable(
                    f"the tables of the {server.place} are vacuumed by the role that owns them:"
                    " compact with that one; autovacuum has the space used again all the same"
                )
            before = _size(connection, server.schema)
            has = postgres(server.schema).render(_HAS)
            searched = [
                table
                for table in SEARCHED
                if connection.execute(has, {"schema": server.schema, "table": table}).fetchone()
            ]
            for table in (*TABLES, *searched):
                connection.execute(f"VACUUM {'(FULL)' if full else ''} {server.schema}.{table}")
                yield
            return max(0, before - _size(connection, server.schema))
    except psycopg.Error as error:
        raise storage_error(error, server) from error


def _size(connection: psycopg.Connection[Any], schema: str) -> int:
    row = connection.execute(postgres(schema).render(SIZE), {}).fetchone()
    return int(row[0]) if row is not None else 0
