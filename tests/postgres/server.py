"""The PostgreSQL server that tests share: a database for the process that runs them, a schema for
each test.

The server is the one that LANGMEM_EXT_POSTGRES names by its URL, else the one on port 5432 of this
machine where `postgres` may come in without a password, else one that is made for this run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import uuid4

import psycopg
from proxy import with_database
from psycopg import sql

from postgres.cluster import Cluster
from postgres.emptied import Emptied
from postgres.missing import missing

VARIABLE = "LANGMEM_EXT_POSTGRES"
DEFAULT = "postgresql://postgres@127.0.0.1:5432/postgres"

PREFIX = "langmem_ext_test_"
"""How the databases of test runs are called."""

ONE_AT_A_TIME = 6_340_112_953_471
"""The advisory lock under which they come and go."""


class Database:
    """A database that is there for one process of tests.

    Attributes:
        name: Of the database.
        url: Of it.
        server: URL of the server, to make databases and roles on.
        emptied: Schemas in it that have the tables already.
    """

    def __init__(self, server: str) -> None:
        self.server = server
        self.name = f"{PREFIX}{uuid4().hex}"
        self.url = with_database(server, self.name)
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", [ONE_AT_A_TIME])
            _drop_forgotten(connection)
            connection.execute(
                sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(
                    sql.Identifier(self.name)
                )
            )
            # No test can take the power from this server: only its own processes end, and they lose
            # nothing that is committed.
            connection.execute(
                sql.SQL("ALTER DATABASE {} SET synchronous_commit = off").format(
                    sql.Identifier(self.name)
                )
            )
            # As long as this is open, nobody else takes the database for a forgotten one.
            self._connection = psycopg.connect(self.url, autocommit=True)
        self._connection.execute("SET lock_timeout = '10s'; SET client_min_messages = 'warning'")
        # As it is from PostgreSQL 15 on.
        self._connection.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
        self.emptied = Emptied(self.url, self._connection, new_name)

    def drop_schemas(self, names: Sequence[str]) -> None:
        """Drop schemas with all that is in them.

        Raises:
            psycopg.errors.LockNotAvailable: Somebody has left a transaction open in one of them.
        """
        for (
            name
        ) in names:  # not together: each table takes a lock, of which a transaction has not so many
            self._connection.execute(
                sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name))
            )

    def close(self) -> None:
        """Drop the database, and whoever is still connected to it."""
        self._connection.close()
        with psycopg.connect(self.server, autocommit=True) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", [ONE_AT_A_TIME])
            _drop(connection, [self.name])


def _drop_forgotten(connection: psycopg.Connection) -> None:
    """Drop what killed test runs have left: databases of this name to which nobody is connected."""
    forgotten = connection.execute(
        "SELECT datname FROM pg_database WHERE starts_with(datname, %s) AND NOT EXISTS (SELECT 1"
        " FROM pg_stat_activity WHERE pg_stat_activity.datname = pg_database.datname)",
        [PREFIX],
    )
    _drop(connection, [name for (name,) in forgotten.fetchall()])


def _drop(connection: psycopg.Connection, names: Sequence[str]) -> None:
    for name in names:
        connection.execute(
            sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name))
        )


def new_name() -> str:
    """A name that no schema has."""
    return f"test_{uuid4().hex}"


class Shared:
    """The server, and the database of this process on it, once a test has asked for them."""

    def __init__(self) -> None:
        self._own: Cluster | None = None
        self._database: Database | None = None
        self._schemas: list[str] = []

    def database(self) -> Database:
        """This process's database; skips the test where there is no server."""
        if self._database is None:
            self._database = Database(self._find())
        return self._database

    def new_schema(self) -> str:
        """A name for a schema of the test that runs.

        Who gets it makes the schema; it is dropped after the test.
        """
        self._schemas.append(new_name())
        return self._schemas[-1]

    def tables(self) -> str:
        """The name of a schema of the test that runs, which has the tables of this release, and no
        thread; emptied or dropped after it.
        """
        self._schemas.append(self.database().emptied.take())
        return self._schemas[-1]

    @contextmanager
    def own_schemas(self) -> Iterator[None]:
        """Empty or drop, when this is over, the schemas whose names were given out while it
        lasted.
        """
        before = len(self._schemas)
        yield
        names, self._schemas[before:] = self._schemas[before:], []
        if names:
            database = self.database()
            database.drop_schemas([name for name in names if not database.emptied.give_back(name)])

    def _find(self) -> str:
        named = os.environ.get(VARIABLE)
        try:
            psycopg.connect(named or DEFAULT, connect_timeout=5).close()
        except psycopg.OperationalError as error:
            if named:
                missing(f"no PostgreSQL server where {VARIABLE} says: {error}")
            self._own = Cluster()
            return self._own.url
        return named or DEFAULT

    def close(self) -> None:
        """Drop the database, and remove the server if it is one of our own."""
        if self._database is not None:
            self._database.close()
            self._database = None
        if self._own is not None:
            self._own.close()
            self._own = None


SHARED = Shared()
"""Of this process. The session's fixture closes it."""
