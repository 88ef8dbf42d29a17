"""Tables on PostgreSQL that are made once and emptied after each test: to make and drop them takes
longer than most tests do.

What is handed out is as if it had just been made: `Emptied.give_back` keeps it only if nothing but
rows has changed, which it looks up in the server's catalogues, and drops it where anything else
has, or where somebody still uses it. Who tests how tables are made takes a schema without any
(`Shared.new_schema`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import sql

from langmem_ext.storage.postgres.migrate import migrate
from langmem_ext.storage.postgres.server import Server
from langmem_ext.storage.postgres.vacuum import SEARCHED, TABLES

KEPT = 32
"""Schemas that wait for a test, at most."""

LARGEST = 4_000_000
"""Bytes: tables that have grown beyond are not worth emptying, and what is left of them would slow
down who comes next."""

PATIENCE = 1.0
"""Seconds in which the connections of a closed saver end. Who is still there after them was left
open, and is waited for no more."""

_VOLATILE = "{relpages,reltuples,relallvisible,relfrozenxid,relminmxid,relfilenode,relhastriggers}"
"""What rows and vacuuming change of a table; `relhastriggers` stays when the last one has gone."""

_RELATIONS = "(SELECT oid FROM pg_class WHERE relnamespace = %(schema)s::regnamespace)"

_CATALOGUES = {
    "pg_attribute": "attrelid",
    "pg_index": "indrelid",
    "pg_attrdef": "adrelid",
    "pg_constraint": "conrelid",
    "pg_trigger": "tgrelid",
    "pg_policy": "polrelid",
    "pg_rewrite": "ev_class",
}
"""What tells of a relation, and its column with the relation."""

# A row of a catalogue that has been changed has another xmin.
_MADE = f"""
    SELECT to_jsonb(one) || jsonb_build_object('namespace', xmin::text)
    FROM pg_namespace AS one WHERE oid = %(schema)s::regnamespace
    UNION ALL
    SELECT to_jsonb(one) - '{_VOLATILE}'::text[]
    FROM pg_class AS one WHERE relnamespace = %(schema)s::regnamespace
    UNION ALL SELECT jsonb_build_object('function', oid, 'xmin', xmin::text)
    FROM pg_proc WHERE pronamespace = %(schema)s::regnamespace
""" + "".join(
    f" UNION ALL SELECT jsonb_build_object('{catalogue}', ctid::text, 'xmin', xmin::text)"
    f" FROM {catalogue} WHERE {relation} IN {_RELATIONS}"
    for catalogue, relation in _CATALOGUES.items()
)

_CONTENTS = """
    SELECT jsonb_build_object('migration', name) FROM {schema}.langmem_migration
    UNION ALL SELECT to_jsonb(setting) FROM {schema}.setting
    UNION ALL SELECT to_jsonb(grantee) FROM {schema}.grantee
"""

_STATE = (
    f"SELECT md5(string_agg(line::text, '' ORDER BY line::text)) FROM ({_MADE} UNION ALL"
    f" {_CONTENTS}) AS made (line)"
)

_SIZE = (
    "SELECT coalesce(sum(pg_total_relation_size(oid)), 0)::bigint FROM pg_class"
    " WHERE relnamespace = %(schema)s::regnamespace AND relkind IN ('r', 'm')"
)

_OTHERS = (
    "SELECT pid, backend_start FROM pg_stat_activity WHERE datname = current_database() AND"
    " backend_type = 'client backend' AND pid <> pg_backend_pid()"
)

_UNSEARCHED = (
    f"DROP TABLE IF EXISTS {', '.join(f'{{schema}}.{table}' for table in SEARCHED)};"
    "DROP TRIGGER IF EXISTS item_leaves_search ON {schema}.item;"
    "DROP FUNCTION IF EXISTS {schema}.item_leaves_search, {schema}.search_lexemes;"
)
_ROWS = (*TABLES, "store_vector", "store_thread", "store_item", "tombstone")
_EMPTIED = (
    f"LOCK TABLE {', '.join(f'{{schema}}.{table}' for table in _ROWS)} IN ACCESS EXCLUSIVE MODE;"
    f"{_UNSEARCHED}{''.join(f'DELETE FROM {{schema}}.{table};' for table in _ROWS)}"
    "DELETE FROM {schema}.setting WHERE name <> 'token_counter';"
)


class Emptied:
    """The schemas of one database that have this release's tables, and no thread.

    Args:
        url: The database.
        connection: To it.
        new_name: Gives a name for a schema.
    """

    def __init__(
        self, url: str, connection: psycopg.Connection[Any], new_name: Callable[[], str]
    ) -> None:
        self._url = url
        self._connection = connection
        self._new_name = new_name
        self._made: dict[str, str] = {}
        self._free: list[str] = []
        self._left: set[tuple[Any, ...]] = set()

    def take(self) -> str:
        """A schema for somebody's own use."""
        if self._free:
            return self._free.pop()
        schema = self._new_name()
        migrate(Server.of(f"{self._url}?schema={schema}"))
        self._made[schema] = self.state(schema)
        return schema

    def give_back(self, schema: str) -> bool:
        """Empty a schema for others; False: it is not as it was, and is to be dropped.

        Raises:
            psycopg.errors.LockNotAvailable: Somebody has left a transaction open in it.
        """
        made = self._made.pop(schema, None)
        if made is None or len(self._free) >= KEPT or not self._is_left():
            return False
        try:
            if self._connection.execute(_SIZE, {"schema": schema}).fetchone() > (LARGEST,):
                return False
            self._connection.execute(_named(_EMPTIED, schema))
            if self.state(schema) != made:
                return False
        except (
            psycopg.errors.InvalidSchemaName,
            psycopg.ProgrammingError,
        ):  # dropped, or without some of its tables
            return False
        self._made[schema] = made
        self._free.append(schema)
        return True

    def _is_left(self) -> bool:
        """Whether nobody uses the schema of the test that is over: all connections have ended but
        those that earlier tests have left.
        """
        deadline = time.monotonic() + PATIENCE
        while others := self.sessions() - self._left:
            if time.monotonic() > deadline:
                self._left |= others
                return False
            time.sleep(0.002)
        return True

    def sessions(self) -> set[tuple[Any, ...]]:
        """Who else is connected to the database."""
        return set(self._connection.execute(_OTHERS).fetchall())

    def state(self, schema: str) -> str:
        """What tells whether anything but rows of threads has changed in a schema."""
        row = self._connection.execute(_named(_STATE, schema), {"schema": schema}).fetchone()
        assert row is not None
        return str(row[0])


def _named(statement: str, schema: str) -> bytes:
    return statement.replace("{schema}", sql.Identifier(schema).as_string()).encode()
