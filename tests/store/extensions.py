"""Databases that compare vectors themselves: PostgreSQL with pgvector."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from postgres.cluster import Cluster
from postgres.sandbox import Sandbox
from postgres.server import PREFIX, SHARED
from proxy import with_database

_HAS_PGVECTOR = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"


@contextmanager
def pgvector_server() -> Iterator[str]:
    """URL of a server that has pgvector: the tests' own where it has it, else that of pgserver."""
    shared = SHARED.database()
    with psycopg.connect(shared.url, autocommit=True) as connection:
        if connection.execute(_HAS_PGVECTOR).fetchone() is not None:
            yield shared.server
            return
    found = find_spec("pgserver")
    if found is None or found.origin is None:
        pytest.skip(
            "the PostgreSQL server has no pgvector, and there is no pgserver for this machine:"
            " LANGMEM_EXT_POSTGRES names another server"
        )
    programs = Sandbox()
    try:
        # Its account may not be let into the folder of this environment.
        package = Path(found.origin).parent
        for part in ("pgserver/pginstall", "pgserver.libs"):
            shutil.copytree(package.parent / part, programs.folder / part, symlinks=True)
        with Cluster(folder=programs.folder / "pgserver/pginstall/bin") as cluster:
            yield cluster.url
    finally:
        programs.close()


@contextmanager
def pgvector_database(server: str, *, schema: str = "public") -> Iterator[str]:
    """URL of a database with the extension in one of its schemas."""
    name = f"{PREFIX}{uuid4().hex}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8'".encode())
        url = with_database(server, name)
        try:
            # As long as this is open, no other run takes the database for a forgotten one.
            with psycopg.connect(url, autocommit=True) as kept:
                kept.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}".encode())
                kept.execute(f"CREATE EXTENSION vector SCHEMA {schema}".encode())
                yield url
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def execute(url: str, statement: str) -> list[tuple[object, ...]]:
    """Run a statement, committed by itself; its rows, if it gives any."""
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement.encode())
        return cursor.fetchall() if cursor.description else []
