"""Rows of a database, changed behind the package's back, on both kinds of databases."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import psycopg
from forged_rows import reseal, reseal_rows

from langmem_ext import DeltaSaver


def is_file(url: str) -> bool:
    return "://" not in url


@contextmanager
def tables(url: str) -> Iterator[Callable[..., list[Any]]]:
    """Runs statements on the tables of a database, behind the package's back."""
    if is_file(url):
        with closing(sqlite3.connect(url, isolation_level=None)) as file:
            yield lambda statement, *values: file.execute(statement, values).fetchall()
        return
    place, _, schema = url.partition("?schema=")
    with psycopg.connect(place, autocommit=True) as server:
        server.execute(f"SET search_path = {schema}".encode())

        def run(statement: str, *values: Any) -> list[Any]:
            cursor = server.execute(statement.replace("?", "%s").encode(), values)
            return cursor.fetchall() if cursor.description else []

        yield run


def change(url: str, statement: str, *values: Any, sealed: bool = False) -> None:
    """Change rows; `sealed`: with checks that match, as one who forges writes them."""
    with tables(url) as run:
        if not is_file(url):
            run("SET session_replication_role = replica")  # foreign keys do not stop a broken disk
        assert run(f"{statement} RETURNING 1", *values), statement
    if sealed and is_file(url):
        with closing(sqlite3.connect(url)) as connection:
            reseal(connection)
    elif sealed:
        with DeltaSaver.open(url) as saver:
            reseal_rows(saver)


def number_of(url: str, thread: str) -> int:
    with tables(url) as run:
        return int(run("SELECT number FROM thread WHERE id = ?", thread)[0][0])


def place(url: str, thread: str, number: int | None = None) -> str:
    """Which rows of messages or values are a thread's, or which is the one of a number."""
    own = number_of(url, thread)
    if is_file(url):
        return f"key >> 32 = {own}" if number is None else f"key = ({own} << 32) + {number}"
    return f"thread = {own}" + ("" if number is None else f" AND number = {number}")
