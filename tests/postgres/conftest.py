"""What more than one file of these tests uses."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from postgres.cluster import Cluster
from postgres.server import SHARED, Database


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A server of the file's own: its tests may stop and kill it, and leave it running."""
    with Cluster() as made:
        yield made


@pytest.fixture
def numbers(database: Database) -> str:
    """A table with a column `n` in a schema of the test's own, by its full name."""
    schema = SHARED.new_schema()
    with psycopg.connect(database.url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {schema}".encode())
        connection.execute(
            f"CREATE TABLE {schema}.numbers (n INTEGER PRIMARY KEY, body BYTEA)".encode()
        )
    return f"{schema}.numbers"
