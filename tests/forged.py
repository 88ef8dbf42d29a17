"""Rows that somebody has written by hand, with checks that match: what is not damage must be refused for what it says."""

from __future__ import annotations

import sqlite3

from langmem_ext.storage import checks
from langmem_ext.storage.dialect import SQLITE
from langmem_ext.storage.statements import CHECKPOINT_COLUMNS, ITEM_COLUMNS, WRITE_COLUMNS


def reseal(connection: sqlite3.Connection) -> None:
    """Give every row of a database the check that it should have."""
    before = connection.text_factory
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        for row in connection.execute(SQLITE.render(f"SELECT {ITEM_COLUMNS} FROM item")).fetchall():
            connection.execute("UPDATE item SET crc = ? WHERE key = ?", (checks.item_check(row[0] >> 32, row), row[0]))
        for key, body in connection.execute("SELECT key, body FROM value").fetchall():
            check = checks.check_of(key >> 32, key & 0xFFFFFFFF, body)
            connection.execute("UPDATE value SET crc = ? WHERE key = ?", (check, key))
        for table, column in (("word", "body"), ("namespace", "name")):
            for row in connection.execute(f"SELECT thread, number, {column} FROM {table}").fetchall():
                connection.execute(f"UPDATE {table} SET crc = ? WHERE thread = ? AND number = ?", (checks.check_of(*row), *row[:2]))
        columns = CHECKPOINT_COLUMNS.replace(":thread", "checkpoint.thread")
        for row in connection.execute(f"SELECT thread, namespace, {columns} FROM checkpoint").fetchall():
            where = "thread = ? AND namespace = ? AND id = ?"
            connection.execute(f"UPDATE checkpoint SET crc = ? WHERE {where}", (checks.check_of(*row[:-1]), *row[:3]))
        for row in connection.execute(f"SELECT thread, {WRITE_COLUMNS} FROM pending_write").fetchall():
            where = "thread = ? AND namespace = ? AND checkpoint = ? AND task = ?"
            connection.execute(f"UPDATE pending_write SET crc = ? WHERE {where}", (checks.check_of(*row[:-1]), *row[:4]))
        connection.commit()
    finally:
        connection.text_factory = before
