"""Rows that somebody has written by hand, with checks that match: what is not damage must be refused for what it says."""

from __future__ import annotations

import sqlite3

from langmem_ext import DeltaSaver
from langmem_ext.storage import checks
from langmem_ext.storage.dialect import AT, KEY, NUMBER, OF_THREAD, SQLITE
from langmem_ext.storage.effects import Op, execute, fetch, operation
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


def reseal_rows(saver: DeltaSaver) -> None:
    """The same on any kind of database, of rows that can be read."""
    saver.log.run(_resealed(), write=True)
    saver.log.indexes.forget()


@operation
def _resealed() -> Op[None]:
    for (thread,) in (yield from fetch("SELECT number FROM thread")):
        for row in (yield from fetch(f"SELECT {ITEM_COLUMNS} FROM item WHERE {OF_THREAD}", thread=thread)):
            number, check = row[0] & NUMBER, checks.item_check(thread, row)
            yield from execute(f"UPDATE item SET crc = :crc WHERE {AT}", thread=thread, number=number, crc=check)
        for number, body in (yield from fetch(f"SELECT {KEY}, body FROM value WHERE {OF_THREAD}", thread=thread)):
            number &= NUMBER
            check = checks.check_of(thread, number, body)
            yield from execute(f"UPDATE value SET crc = :crc WHERE {AT}", thread=thread, number=number, crc=check)
        for table, column in (("word", "body"), ("namespace", "name")):
            for row in (yield from fetch(f"SELECT number, {column} FROM {table} WHERE thread = :thread", thread=thread)):
                where = "thread = :thread AND number = :number"
                check = checks.check_of(thread, *row)
                yield from execute(f"UPDATE {table} SET crc = :crc WHERE {where}", thread=thread, number=row[0], crc=check)
        for row in (yield from fetch(f"SELECT namespace, {CHECKPOINT_COLUMNS} FROM checkpoint WHERE thread = :thread", thread=thread)):
            where = "thread = :thread AND namespace = :namespace AND id = :id"
            check = checks.check_of(thread, *row[:-1])
            yield from execute(f"UPDATE checkpoint SET crc = :crc WHERE {where}", thread=thread, namespace=row[0], id=row[1], crc=check)
        for row in (yield from fetch(f"SELECT {WRITE_COLUMNS} FROM pending_write WHERE thread = :thread", thread=thread)):
            where = "thread = :thread AND namespace = :namespace AND checkpoint = :checkpoint AND task = :task"
            key = dict(zip(("namespace", "checkpoint", "task"), row[:3], strict=True))
            yield from execute(
                f"UPDATE pending_write SET crc = :crc WHERE {where}", thread=thread, crc=checks.check_of(thread, *row[:-1]), **key
            )
