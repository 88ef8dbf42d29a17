"""Rows written by hand with matching checks: they must be refused for what they say."""

from __future__ import annotations

import sqlite3
import tracemalloc
from collections.abc import Callable
from typing import Any, Final, TypeVar

import pytest
from langchain_core.messages import HumanMessage

from langmem_ext import DamagedRow, DeltaSaver, Report
from langmem_ext.storage.checkpoints.lookup import key_of
from langmem_ext.storage.checkpoints.sql import CHECKPOINT_COLUMNS, ITEM_COLUMNS, WRITE_COLUMNS
from langmem_ext.storage.operation import Op, execute, fetch, operation
from langmem_ext.storage.rows import checksum as checks
from langmem_ext.storage.schema.dialect import AT, KEY, NUMBER, OF_THREAD, SQLITE

T = TypeVar("T")

ID: Final = "1ffe6000-0000-6000-8000-000000000001"
"""The checkpoint of the thread "forged" that says what it should not."""

REFERENCES: Final[dict[str, list[Any]]] = {
    "messages that are not there": [None, 0, 500],
    "numbers beyond all messages": [None, 1 << 32, (1 << 32) + 3],
    "negative": [None, -3, 2],
    "backwards": [None, 3, 1],
    "more than memory": [None, 0, 1 << 40],
    "all that can be": [None, 0, 1 << 32],
    "as many as can be": [None, 0, 1 << 24],
    "many times all that can be": [None, *[0, 1 << 24] * 50],
    "odd": [None, 1],
    "no numbers": [None, "a", "b"],
    "ids that are not there": [None, 0, 3, [0, 1 << 40]],
    "a value that is not there": [77],
    "a negative value": [-1],
    "a value beyond all numbers": [1 << 32],
    "changes that are not there": [[0, 1, 2]],
    "no value at all": [[]],
}
"""What a header may say of a list of messages, and there is nothing of it. In a file, numbers
beyond all are another thread's."""


def assert_named(subject: T, read: Callable[[T, str], Any], look: Callable[[T], Report]) -> None:
    """Reading the forged thread is a clear error, which the doctor names; others are unchanged."""
    tracemalloc.start()
    try:
        with pytest.raises(DamagedRow):
            read(subject, "forged")
        report = look(subject)
        assert tracemalloc.get_traced_memory()[1] < 20_000_000
    finally:
        tracemalloc.stop()
    damaged = [finding for finding in report.findings if finding.severity == "damaged"]
    assert damaged
    assert {finding.thread for finding in damaged} == {"forged"}
    assert {name for finding in damaged for name in finding.checkpoints} == {ID}
    assert read(subject, "whole")["messages"][4] == HumanMessage("whole 4", id="whole4")


def reseal(connection: sqlite3.Connection) -> None:
    """Give every row of a database the check that it should have."""
    before = connection.text_factory
    connection.text_factory = lambda raw: raw.decode("utf-8", "replace")
    try:
        for row in connection.execute(SQLITE.render(f"SELECT {ITEM_COLUMNS} FROM item")).fetchall():
            connection.execute(
                "UPDATE item SET crc = ? WHERE key = ?",
                (checks.item_check(row[0] >> 32, row), row[0]),
            )
        for key, body in connection.execute("SELECT key, body FROM value").fetchall():
            check = checks.check_of(key >> 32, key & 0xFFFFFFFF, body)
            connection.execute("UPDATE value SET crc = ? WHERE key = ?", (check, key))
        for table, column in (("word", "body"), ("namespace", "name")):
            for row in connection.execute(
                f"SELECT thread, number, {column} FROM {table}"
            ).fetchall():
                connection.execute(
                    f"UPDATE {table} SET crc = ? WHERE thread = ? AND number = ?",
                    (checks.check_of(*row), *row[:2]),
                )
        columns = CHECKPOINT_COLUMNS.replace(":thread", "checkpoint.thread")
        for row in connection.execute(
            f"SELECT thread, namespace, {columns} FROM checkpoint"
        ).fetchall():
            where = "thread = ? AND namespace = ? AND id = ?"
            check = checks.checkpoint_check(row[0], row[1:-1])
            connection.execute(
                f"UPDATE checkpoint SET crc = ? WHERE {where}", (check, *row[:2], key_of(row[2:]))
            )
        for row in connection.execute(
            f"SELECT thread, {WRITE_COLUMNS} FROM pending_write"
        ).fetchall():
            where = "thread = ? AND namespace = ? AND checkpoint = ? AND task = ?"
            connection.execute(
                f"UPDATE pending_write SET crc = ? WHERE {where}",
                (checks.check_of(*row[:-1]), *row[:4]),
            )
        connection.commit()
    finally:
        connection.text_factory = before


def reseal_rows(saver: DeltaSaver) -> None:
    """The same on any kind of database, of rows that can be read."""
    saver.log.run(_resealed(), write=True)
    saver.log.caches.forget()


@operation
def _resealed() -> Op[None]:
    for (thread,) in (yield from fetch("SELECT number FROM thread")):
        for row in (
            yield from fetch(f"SELECT {ITEM_COLUMNS} FROM item WHERE {OF_THREAD}", thread=thread)
        ):
            number, check = row[0] & NUMBER, checks.item_check(thread, row)
            yield from execute(
                f"UPDATE item SET crc = :crc WHERE {AT}", thread=thread, number=number, crc=check
            )
        for number, body in (
            yield from fetch(f"SELECT {KEY}, body FROM value WHERE {OF_THREAD}", thread=thread)
        ):
            number &= NUMBER
            check = checks.check_of(thread, number, body)
            yield from execute(
                f"UPDATE value SET crc = :crc WHERE {AT}", thread=thread, number=number, crc=check
            )
        for table, column in (("word", "body"), ("namespace", "name")):
            for row in (
                yield from fetch(
                    f"SELECT number, {column} FROM {table} WHERE thread = :thread", thread=thread
                )
            ):
                where = "thread = :thread AND number = :number"
                check = checks.check_of(thread, *row)
                yield from execute(
                    f"UPDATE {table} SET crc = :crc WHERE {where}",
                    thread=thread,
                    number=row[0],
                    crc=check,
                )
        for row in (
            yield from fetch(
                f"SELECT namespace, {CHECKPOINT_COLUMNS} FROM checkpoint WHERE thread = :thread",
                thread=thread,
            )
        ):
            where = "thread = :thread AND namespace = :namespace AND id = :id"
            check = checks.checkpoint_check(thread, row[:-1])
            key = {"thread": thread, "namespace": row[0], "id": key_of(row[1:])}
            yield from execute(f"UPDATE checkpoint SET crc = :crc WHERE {where}", crc=check, **key)
        for row in (
            yield from fetch(
                f"SELECT {WRITE_COLUMNS} FROM pending_write WHERE thread = :thread", thread=thread
            )
        ):
            where = (
                "thread = :thread AND namespace = :namespace AND checkpoint = :checkpoint AND task"
                " = :task"
            )
            key = dict(zip(("namespace", "checkpoint", "task"), row[:3], strict=True))
            yield from execute(
                f"UPDATE pending_write SET crc = :crc WHERE {where}",
                thread=thread,
                crc=checks.check_of(thread, *row[:-1]),
                **key,
            )
