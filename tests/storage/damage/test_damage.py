"""Promise: a damaged or forged database gives what is right or a clear error that names the row: no
other exception, no other thread's words, no write to another thread.

Files of which bits or whole parts are missing: tests/promises/test_damage.py.
"""

from __future__ import annotations

import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import ormsgpack
import pytest
from forged_rows import ID, REFERENCES, assert_named
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from raw_tables import change, is_file, number_of, place, tables

from langmem_ext import (
    DamagedRow,
    DeltaSaver,
    LangmemExtError,
    Report,
    StorageError,
    StorageUnavailable,
    ThreadChatMessageHistory,
    examine,
)

OTHER_ID = f"{ID[:-1]}2"


def at(thread: str, checkpoint_id: str | None = None, namespace: str = "") -> Any:
    named = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, **named}}


def put(saver: DeltaSaver, parent: Any, values: dict[str, Any], id: str = ID, step: int = 1) -> Any:
    versions: Any = dict.fromkeys(values, str(step))
    checkpoint: Any = {
        "v": 4,
        "id": id,
        "ts": "now",
        "channel_values": values,
        "channel_versions": versions,
        "versions_seen": {},
    }
    return saver.put(parent, checkpoint, {"step": step}, versions)


def read(url: str, thread: str) -> Any:
    with DeltaSaver.open(url) as saver:
        found = saver.get_tuple(at(thread))
        return None if found is None else found.checkpoint["channel_values"]


def amiss(url: str) -> list[Any]:
    return [finding for finding in examine(url).findings if finding.severity != "note"]


# -- changed columns -------------------------------------------------------------------------------


@pytest.fixture
def varied(url: str) -> str:
    """A thread with a row of every kind: metadata of messages, blocks, a value of its own, a
    namespace, pending writes.
    """
    blocks: Any = [{"type": "text", "text": "some words"}, {"type": "image_url", "image_url": "x"}]
    metadata = {"model": "one", "finish": "stop", "more": list(range(9))}
    said: list[BaseMessage] = [
        HumanMessage("hello", id="a", name="Ann"),
        AIMessage(blocks, id="b", response_metadata=metadata),
        ToolMessage("found", id="c", tool_call_id="call"),
    ]
    with DeltaSaver.open(url) as saver:
        for namespace in ("", "child:1"):
            first = put(saver, at("t", namespace=namespace), {"messages": said, "big": ["x"] * 50})
            saver.put_writes(
                first, [("messages", [HumanMessage("more")]), ("big", ["y"] * 50)], "task"
            )
            put(saver, first, {"messages": said[:2]}, OTHER_ID, 2)
    return url


def other(value: Any, column: str) -> Any:
    """A value of the same kind that differs a little, or one for a column that has none."""
    if value is None:
        bare = {"message_id": b"x", "rest": b"\x80", "parent": bytes(16), "given_id": bytes(16)}
        return bare.get(column, "x" if column in ("name", "text", "tool_call_id") else 1)
    if isinstance(value, bytes):
        return bytes([value[0] ^ 1]) + value[1:] if value else b"\x01"
    if isinstance(value, str):
        return chr(ord(value[0]) ^ 1) + value[1:] if value else "x"
    return value + 1


DERIVED = {("item", "tokens")}
"""Columns that nobody reads who restores a checkpoint; the doctor compares them."""


def columns_of(url: str, run: Callable[..., list[Any]], table: str) -> dict[str, bool]:
    """The columns of a table, and whether each is part of its key."""
    if is_file(url):
        return {row[1]: bool(row[5]) for row in run(f"PRAGMA table_info({table})")}
    return dict(
        run(
            "SELECT attname::text, COALESCE(attnum = ANY (indkey), FALSE) FROM pg_attribute LEFT"
            " JOIN pg_index ON indrelid = attrelid AND indisprimary WHERE attrelid ="
            f" '{table}'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum"
        )
    )


@pytest.mark.parametrize(
    "table", ["item", "value", "checkpoint", "pending_write", "word", "namespace"]
)
def test_every_column_of_every_row_that_is_changed_is_noticed(table: str, varied: str) -> None:
    with tables(varied) as run:
        columns = columns_of(varied, run, table)
        where = " AND ".join(f"{name} = ?" for name, is_key in columns.items() if is_key)
        rows = run(f"SELECT {', '.join(columns)} FROM {table}")
        assert rows
        for row in rows:
            key = [value for value, is_key in zip(row, columns.values(), strict=True) if is_key]
            for value, (name, is_key) in zip(row, columns.items(), strict=True):
                if is_key:
                    continue
                statement = f"UPDATE {table} SET {name} = ? WHERE {where}"
                run(statement, other(value, name), *key)
                assert amiss(varied), (name, key)
                if (table, name) not in DERIVED:
                    with pytest.raises(DamagedRow), DeltaSaver.open(varied) as saver:
                        repr(list(saver.list(None)))
                run(statement, value, *key)
    assert examine(varied).ok


def test_a_checkpoint_that_vanishes_is_noticed_by_the_one_that_followed_it(varied: str) -> None:
    change(varied, "DELETE FROM checkpoint WHERE namespace = 0 AND step = 1")
    with pytest.raises(DamagedRow, match=OTHER_ID):
        read(varied, "t")
    assert {name for finding in examine(varied).findings for name in finding.checkpoints} == {
        OTHER_ID
    }


def test_the_doctor_names_rows_in_whose_key_a_bit_has_flipped(varied: str) -> None:
    with tables(varied) as run:
        for table, column in (
            ("checkpoint", "id"),
            ("pending_write", "checkpoint"),
            ("pending_write", "task"),
        ):
            [key] = run(f"SELECT {column} FROM {table} WHERE namespace = 0 ORDER BY 1 LIMIT 1")[0]
            statement = f"UPDATE {table} SET {column} = ? WHERE namespace = 0 AND {column} = ?"
            for bit in range(8 * len(key) - 6, 8 * len(key), 2):
                changed = key[: bit // 8] + bytes([key[bit // 8] ^ 1 << bit % 8])
                changed += key[bit // 8 + 1 :]
                run(statement, changed, key)
                assert amiss(varied), (table, column, bit)
                run(statement, key, changed)
    assert examine(varied).ok


def test_a_thread_with_a_damaged_message_goes_on_from_before_it(url: str) -> None:
    said = [HumanMessage(f"{number}", id=f"m{number}") for number in range(4)]
    with DeltaSaver.open(url) as saver:
        first = put(saver, at("t"), {"messages": said[:2]})
        second = put(saver, first, {"messages": said}, OTHER_ID, 2)
    change(url, "UPDATE item SET text = 'never said' WHERE text = '3'")
    with DeltaSaver.open(url) as saver:
        with pytest.raises(DamagedRow, match="message 3"):
            saver.get_tuple(second)
        instead = [*said[:2], HumanMessage("instead", id="new")]
        put(saver, first, {"messages": instead}, f"{ID[:-1]}3", 2)
    assert read(url, "t")["messages"] == instead


# -- forged rows -----------------------------------------------------------------------------------


@pytest.fixture
def forged(url: str) -> str:
    """Two threads of one checkpoint each; a test changes the rows of `forged`."""
    with DeltaSaver.open(url) as saver:
        for name in ("forged", "whole"):
            messages = [HumanMessage(f"{name} {at}", id=f"{name}{at}") for at in range(5)]
            put(saver, at(name), {"messages": messages, "big": [name] * 50})
    return url


@pytest.mark.parametrize("reference", REFERENCES)
def test_a_forged_reference_is_an_error_that_names_its_checkpoint(
    reference: str, forged: str
) -> None:
    thread = number_of(forged, "forged")
    with tables(forged) as run:
        [(body,)] = run("SELECT body FROM checkpoint WHERE thread = ?", thread)
    fields = ormsgpack.unpackb(body)
    fields[2][0] = REFERENCES[reference]
    statement = "UPDATE checkpoint SET body = ? WHERE thread = ?"
    change(forged, statement, ormsgpack.packb(fields), thread, sealed=True)
    assert_named(forged, read, examine)


ITEM = "UPDATE item SET {} WHERE {{item}}"
VALUE = "UPDATE value SET body = ? WHERE {values}"
ROWS: dict[str, tuple[str, Any]] = {
    "an unknown role": (ITEM.format("role = ?"), 99),
    "an invalid rest": (ITEM.format("rest = ?"), b"text"),
    "an invalid message that is kept whole": (
        ITEM.format("role = NULL, rest = ?"),
        ormsgpack.packb([1, 2, 3]),
    ),
    "a message that is not there": ("DELETE FROM item WHERE {item} AND ? = 1", 1),
    "a value of a newer release": (VALUE, ormsgpack.packb(ormsgpack.Ext(99, b""))),
    "a value that names no message": (VALUE, ormsgpack.packb(ormsgpack.Ext(64, b"\x07"))),
    "an empty value": (VALUE, b""),
    "an invalid checkpoint": ("UPDATE checkpoint SET body = ? WHERE thread = {thread}", b"\0"),
    "no label": ("UPDATE checkpoint SET label = ? WHERE thread = {thread}", 99),
    "an invalid word": ("UPDATE word SET body = ? WHERE thread = {thread}", b"\xc1"),
    "writes that are none": ("UPDATE pending_write SET body = ? WHERE thread = {thread}", b"\xc1"),
}
OF_FILES: dict[str, tuple[str, Any]] = {
    "a role that is no number": (ITEM.format("role = ?"), "human"),
    "a text that is no text": (ITEM.format("text = ?"), b"\xff\xfe"),
    "a value that is a number": (VALUE, 7),
}
"""What a column of SQLite takes, and none of PostgreSQL."""


@pytest.mark.parametrize("sealed", [True, False], ids=["forged", "damaged"])
@pytest.mark.parametrize("row", [*ROWS, *OF_FILES])
def test_a_forged_row_is_an_error_that_names_its_checkpoint(
    row: str, sealed: bool, forged: str
) -> None:
    if row in OF_FILES and not is_file(forged):
        return
    if row == "writes that are none":
        with DeltaSaver.open(forged) as saver:
            saver.put_writes(at("forged", ID), [("big", ["y"] * 50)], "task")
    statement, value = {**ROWS, **OF_FILES}[row]
    where = {"item": place(forged, "forged", 1), "values": place(forged, "forged")}
    statement = statement.format(thread=number_of(forged, "forged"), **where)
    change(forged, statement, value, sealed=sealed)
    assert_named(forged, read, examine)


def test_a_row_that_comes_to_stand_in_another_thread_is_no_row_of_it(forged: str) -> None:
    mine, theirs = place(forged, "whole", 1), place(forged, "forged", 1)
    change(forged, f"DELETE FROM item WHERE {mine}")
    moved = mine.replace(" AND", ",")
    change(forged, f"UPDATE item SET {moved} WHERE {theirs}")
    with pytest.raises(DamagedRow, match="message 1 of thread number"):
        read(forged, "whole")


@pytest.mark.parametrize("value", [-1, 0, 1 << 30])
def test_a_forged_counter_never_leads_a_write_to_another_thread(value: int, forged: str) -> None:
    for column in ("next_item", "next_value", "next_word", "next_namespace", "generation"):
        change(forged, f"UPDATE thread SET {column} = ? WHERE id = 'forged'", value)
        with DeltaSaver.open(forged) as saver:
            history = ThreadChatMessageHistory("forged", saver)
            with suppress(LangmemExtError):  # the tables themselves refuse numbers that are there
                history.add_messages([HumanMessage("more")])
            examine(saver, fix=True)
        with DeltaSaver.open(forged) as saver:
            ThreadChatMessageHistory("forged", saver).add_messages([HumanMessage("still more")])
        assert amiss(forged) == [], column
        assert [message.content for message in read(forged, "whole")["messages"]] == [
            f"whole {number}" for number in range(5)
        ]


def test_an_index_that_leads_to_another_threads_row_shows_nothing_of_it(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with DeltaSaver.from_conn_string(str(path)) as saver:
        for name in ("alpha", "beta", "gamma"):
            ThreadChatMessageHistory(name, saver).add_messages([HumanMessage(f"of {name}")])
    data, entry = path.read_bytes(), b"beta\x02"  # in the index of ids: the id, the row's number
    assert data.count(entry) == 1
    path.write_bytes(data.replace(entry, b"beta\x03"))
    with DeltaSaver.open(str(path)) as saver:
        for name in ("alpha", "gamma"):
            assert ThreadChatMessageHistory(name, saver).messages[0].text == f"of {name}"
        with suppress(LangmemExtError):
            assert ThreadChatMessageHistory("beta", saver).messages == []
        with pytest.raises(StorageError, match="doctor"):
            saver.put_writes(at("beta", "1"), [("messages", HumanMessage("more"))], "task")
    assert any(finding.kind == "file" for finding in examine(str(path)).findings)


def test_writing_to_a_damaged_file_is_done_or_refused_and_the_doctor_repairs_what_it_says(
    varied: str, tmp_path: Path
) -> None:
    if not is_file(varied):
        return
    data, chance, path = Path(varied).read_bytes(), random.Random(3), tmp_path / "damaged.db"
    for _ in range(8):
        place, bit = chance.randrange(len(data)), 1 << chance.randrange(8)
        path.write_bytes(data[:place] + bytes([data[place] ^ bit]) + data[place + 1 :])
        with suppress(LangmemExtError):
            fixed = examine(str(path), fix=True)
            again = examine(str(path))
            assert fixed.ok <= again.ok
            assert [one for one in again.findings if one.fixable] == []
        with suppress(LangmemExtError), DeltaSaver.from_conn_string(str(path)) as saver:
            history = ThreadChatMessageHistory("t", saver)
            writes: list[Callable[[], object]] = [
                lambda: put(saver, at("t"), {"messages": [HumanMessage("x")]}, OTHER_ID, 3),
                lambda: saver.put_writes(at("t", ID), [("messages", [HumanMessage("y")])], "task"),
                lambda history=history: history.add_messages([HumanMessage("z", id="z")]),  # type: ignore[misc]
                lambda: saver.delete_thread("t"),
            ]
            for write in writes:
                with suppress(LangmemExtError):
                    write()
        for left in tmp_path.glob("damaged.db*"):
            left.unlink()


# -- no room, no right to write --------------------------------------------------------------------


def everything(report: Report, saver: DeltaSaver) -> Any:
    """All that a database shows."""
    return report.items, report.checkpoints, [repr(found) for found in saver.list(None)]


def test_a_full_disk_refuses_writes_and_nothing_is_half_written(tmp_path: Path) -> None:
    with closing(sqlite3.connect(tmp_path / "memory.db", check_same_thread=False)) as connection:
        saver = DeltaSaver(connection)
        history = ThreadChatMessageHistory("t", saver)
        history.add_messages([HumanMessage("first")])
        refused = 0
        for room in range(12):
            [(pages,)] = connection.execute("PRAGMA page_count").fetchall()
            connection.execute(f"PRAGMA max_page_count = {pages + room}")
            before = everything(examine(saver), saver)
            writes: list[Callable[[], object]] = [
                lambda: put(saver, at("t"), {"big": os.urandom(30_000)}, step=9),
                lambda: saver.put_writes(at("t", ID), [("big", os.urandom(30_000))], "task"),
                lambda: history.add_messages([HumanMessage("long " * 6_000)]),
            ]
            for write in writes:
                try:
                    write()
                except StorageUnavailable as error:
                    refused += "is full" in str(error)
                    assert everything(examine(saver), saver) == before, room
                before = everything(examine(saver), saver)
        assert refused > 12
        connection.execute("PRAGMA max_page_count = 1073741823")
        history.add_messages([HumanMessage("there is room again")])
        assert history.messages[-1].content == "there is room again"
        assert examine(saver).ok


@pytest.mark.parametrize("form", ["sqlite:///{path}?mode=ro", "{path}"])
def test_what_may_only_be_read_is_read(form: str, tmp_path: Path) -> None:
    whole, folder = tmp_path / "whole.db", tmp_path / "closed"
    with DeltaSaver.from_conn_string(str(whole)) as saver:
        ThreadChatMessageHistory("t", saver).add_messages([HumanMessage("one")])
        expected = list(saver.list(None))
    folder.mkdir()
    path = folder / "memory.db"
    shutil.copy(whole, path)
    path.chmod(0o444)
    if "ro" in form:
        folder.chmod(0o555)
    try:
        with DeltaSaver.from_conn_string(form.format(path=path)) as saver:
            assert list(saver.list(None)) == expected
            # The system lets its superuser write whatever the file says.
            if "ro" in form or os.geteuid() != 0:
                history = ThreadChatMessageHistory("t", saver)
                writes: list[Callable[[], object]] = [
                    lambda: put(saver, at("t"), {"x": 1}),
                    lambda: saver.put_writes(at("t", ID), [("x", 1)], "task"),
                    lambda: saver.delete_thread("t"),
                    lambda: history.add_messages([HumanMessage("x")]),
                ]
                for write in writes:
                    with pytest.raises(StorageUnavailable, match="is read-only"):
                        write()
        with pytest.raises(StorageUnavailable):
            DeltaSaver.open(f"sqlite:///{folder}/none.db?mode=ro")
        assert examine(str(path)).ok
        assert path.read_bytes() == whole.read_bytes()
    finally:
        folder.chmod(0o755)


def test_a_reader_that_may_not_write_sees_what_a_writer_adds(url: str) -> None:
    reading = f"sqlite:///{url}?mode=ro" if is_file(url) else f"{url}&mode=ro"
    with DeltaSaver.from_conn_string(url) as writer:
        ThreadChatMessageHistory("t", writer).add_messages([HumanMessage("one")])
        with DeltaSaver.from_conn_string(reading) as reader:
            assert len(ThreadChatMessageHistory("t", reader).messages) == 1
            ThreadChatMessageHistory("t", writer).add_messages([HumanMessage("two")])
            assert len(ThreadChatMessageHistory("t", reader).messages) == 2


# -- no database -----------------------------------------------------------------------------------


def another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA application_id = 252006675")
        connection.execute("CREATE TABLE bookmarks (title)")
        connection.commit()


STRANGERS: dict[str, Callable[[Path], Any]] = {
    "a folder": lambda path: path.mkdir(),
    "a text": lambda path: path.write_text("Dear diary, " * 500),
    "another program's database": another_program,
    "an empty file": lambda path: path.touch(),
    "nothing": lambda path: None,
}


@pytest.mark.parametrize("stranger", STRANGERS)
def test_what_is_no_database_of_ours_is_refused_by_name_and_left_alone(
    stranger: str, tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    STRANGERS[stranger](path)
    before = path.read_bytes() if path.is_file() else None
    urls = [f"sqlite:///{path}?mode=ro"]
    if stranger not in ("an empty file", "nothing"):
        urls.append(str(path))
    for url in urls:
        for use in (DeltaSaver.open, examine):
            with pytest.raises(StorageError, match=r"memory\.db"):
                use(url)
    assert before == (path.read_bytes() if path.is_file() else None)
    assert len(list(tmp_path.iterdir())) == (stranger != "nothing")
