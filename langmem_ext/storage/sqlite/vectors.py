"""sqlite-vec, an extension of SQLite that compares vectors, if it is installed."""

from __future__ import annotations

import sqlite3
from importlib import import_module

from langmem_ext.storage.sqlite.migrate import read_rows

_HAS = "SELECT 1 FROM pragma_function_list WHERE name = 'vec_distance_cosine'"


def has_sqlite_vec(connection: sqlite3.Connection, *, load: bool) -> bool:
    """Whether a connection has the functions of sqlite-vec.

    Args:
        connection: The connection.
        load: Load them if they are missing, the package is installed, and this Python's SQLite
            loads extensions.
    """
    try:
        if load and not read_rows(connection, _HAS):
            extension = import_module("sqlite_vec")
            connection.enable_load_extension(True)
            try:
                extension.load(connection)
            finally:
                connection.enable_load_extension(False)
        return bool(read_rows(connection, _HAS))
    except (ImportError, AttributeError, sqlite3.Error):
        return False
