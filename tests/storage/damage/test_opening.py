"""Promises: a database opens however the peers' users open theirs, and what cannot be opened is
refused clearly and left as it was.

What is about a file, or SQLite's connections and locks, is tested here; how PostgreSQL is reached
and migrated, in tests/postgres.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import shutil
import sqlite3
import stat
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from forked_workers import forks
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import START, MessagesState, StateGraph
from patience import PATIENCE_S
from savers import Backend, Calls, Mode, empty_tables, new_schema

from langmem_ext import (
    ConnectionInUse,
    DataSerializer,
    DeltaSaver,
    InvalidInput,
    InvalidThreadId,
    LoggingSink,
    MessageLog,
    NotADatabase,
    Retention,
    SchemaTooNew,
    StorageError,
    StorageUnavailable,
    ThreadChatMessageHistory,
    Threads,
    examine,
    stats,
)

CONFIG: Any = {"configurable": {"thread_id": "t"}}


def answer(state: MessagesState) -> dict[str, Any]:
    return {
        "messages": [
            (
                "ai",
                (
                    f"I have read {len(state['messages'])} messages, and the last one said:"
                    f" {state['messages'][-1].content}"
                ),
            )
        ]
    }


def chat(saver: DeltaSaver | None) -> Any:
    return (
        StateGraph(MessagesState)
        .add_node("answer", answer)
        .add_edge(START, "answer")
        .compile(checkpointer=saver)
    )


def say(saver: DeltaSaver, text: str = "hello", thread: Any = "t") -> list[Any]:
    messages: list[Any] = chat(saver).invoke(
        {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": thread}}
    )["messages"]
    return messages


# -- ways in ---------------------------------------------------------------------------------------


def test_a_relative_url_is_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    DeltaSaver.open("sqlite:///memory.db").close()
    assert (tmp_path / "memory.db").exists()


@pytest.mark.parametrize("url", [":memory:", "sqlite://", "sqlite:///:memory:"])
def test_memory_needs_no_file(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with DeltaSaver(url) as saver:
        assert len(say(saver)) == 2
        with saver.lease("t"):
            pass
    assert list(tmp_path.iterdir()) == []


def test_a_passed_connection_is_used_and_left_open(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "memory.db", check_same_thread=False)
    connection.row_factory = lambda cursor, row: dict(
        zip([column[0] for column in cursor.description], row, strict=True)
    )
    connection.execute("CREATE TABLE mine (x)")
    connection.execute("INSERT INTO mine VALUES (1)")
    connection.commit()
    saver = DeltaSaver(connection)
    assert len(say(saver)) == 2
    assert len(asyncio.run(_say_async(saver))) == 4
    saver.close()
    assert connection.execute("SELECT x FROM mine").fetchone()["x"] == 1
    connection.close()
    with DeltaSaver.from_conn_string(str(tmp_path / "memory.db")) as reopened:
        assert len(say(reopened)) == 6


async def _say_async(saver: DeltaSaver) -> list[Any]:
    messages: list[Any] = (await chat(saver).ainvoke({"messages": [HumanMessage("hi")]}, CONFIG))[
        "messages"
    ]
    return messages


async def test_a_connection_string_takes_what_open_takes(
    backend: Backend, mode: Mode, tmp_path: Path
) -> None:
    options: Any = {
        "serde": JsonPlusSerializer(),
        "synchronous": "normal",
        "owner": "u1",
        "retention": Retention(keep_last=3),
        "metadata_keys": ["color"],
        "telemetry": (LoggingSink(),),
        "compress": True,
    }
    assert options.keys() == inspect.signature(DeltaSaver.open).parameters.keys() - {"url"}

    def check(saver: DeltaSaver, told: dict[str, Any]) -> None:
        kept = ("serde", "owner", "retention", "metadata_keys", "telemetry")
        assert {name: getattr(saver, name) for name in kept} == {name: told[name] for name in kept}

    opening = DeltaSaver.from_conn_string(backend.new_url(tmp_path), **options)
    expected = {**options, "metadata_keys": {"color"}}
    if mode == "sync":
        with opening as saver:
            check(saver, expected)
    else:
        async with opening as saver:
            await saver.setup()
            check(saver, expected)
    with DeltaSaver.from_conn_string(backend.new_url(tmp_path)) as saver:
        assert isinstance(saver.serde, DataSerializer)
        assert (saver.owner, saver.retention, saver.metadata_keys) == (None, None, None)


def test_closing_twice_is_closing_once(backend: Backend, tmp_path: Path) -> None:
    saver = DeltaSaver.open(backend.new_url(tmp_path))
    say(saver)
    asyncio.run(_say_async(saver))
    saver.close()
    saver.close()
    asyncio.run(saver.aclose())
    with pytest.raises(StorageUnavailable, match="closed"):
        say(saver)


# -- what is refused -------------------------------------------------------------------------------


def test_a_path_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("text")
    with pytest.raises(StorageUnavailable, match="cannot be opened"):
        DeltaSaver.open(str(tmp_path / "file" / "memory.db"))
    with pytest.raises(StorageUnavailable, match="cannot be opened"):
        DeltaSaver.open(str(tmp_path / "no" / "such" / "folder" / "memory.db"))
    assert (tmp_path / "file").read_text() == "text"


def test_a_newer_schema_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    DeltaSaver.open(str(path)).close()
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO langmem_migration VALUES ('m999_from_the_future', 0)")
        connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(SchemaTooNew, match="m999_from_the_future.*upgrade"):
        DeltaSaver.open(str(path))
    assert path.read_bytes() == before


def test_another_programs_tables_under_our_names_are_refused_and_left_alone(
    durable: Backend, tmp_path: Path
) -> None:
    if durable.name == "postgres":
        url = new_schema(tmp_path)
        place, _, schema = url.partition("?schema=")
        connection: Any = psycopg.connect(place, autocommit=True)
        connection.execute(f"CREATE SCHEMA {schema}")
        connection.execute(f"CREATE TABLE {schema}.item (mine INTEGER)")
        tables = f"SELECT relname FROM pg_class WHERE relnamespace = '{schema}'::regnamespace"
    else:
        url, tables = str(tmp_path / "other.db"), "SELECT name FROM sqlite_master"
        connection = sqlite3.connect(url, isolation_level=None)
        connection.execute("CREATE TABLE item (mine)")
    with closing(connection):
        with pytest.raises(
            NotADatabase,
            match="another program's tables in .* have the same names .* use another (file|schema)",
        ):
            DeltaSaver.open(url)
        assert connection.execute(tables).fetchall() == [("item",)]


def modes(folder: Path) -> dict[str, int]:
    return {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}


@pytest.fixture
def umask() -> Iterator[None]:
    """What a process is begun with almost everywhere."""
    before = os.umask(0o022)
    yield
    os.umask(before)


@pytest.mark.usefixtures("umask")
@pytest.mark.parametrize(
    ("there", "own", "mode", "lock"),
    [
        (None, False, 0o644, 0o600),
        (None, True, 0o600, 0o600),
        (0o664, False, 0o664, 0o660),
        (0o660, True, 0o660, 0o660),
    ],
)
def test_what_stands_beside_a_database_has_its_permissions(
    tmp_path: Path, there: int | None, own: bool, mode: int, lock: int
) -> None:
    path = tmp_path / "memory.db"
    if there is not None:
        path.touch()
        path.chmod(there)
    with DeltaSaver(MessageLog.open(str(path), own=own)) as saver:
        say(saver)
        with saver.lease("t"):
            assert modes(tmp_path) == {
                "memory.db": mode,
                "memory.db-wal": mode,
                "memory.db-shm": mode,
                "memory.db-lock": lock,
            }


def test_a_passed_connection_inside_a_transaction_is_refused(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "memory.db", check_same_thread=False)
    connection.execute("CREATE TABLE mine (x)")
    connection.execute("INSERT INTO mine VALUES (1)")
    with pytest.raises(ConnectionInUse, match="commit or roll it back"):
        DeltaSaver(connection)
    connection.commit()
    saver = DeltaSaver(connection)
    connection.execute("INSERT INTO mine VALUES (2)")
    with pytest.raises(ConnectionInUse):
        say(saver)
    assert connection.execute("SELECT x FROM mine").fetchall() == [(1,), (2,)], (
        "the transaction is its owner's, to the end"
    )
    connection.rollback()
    assert len(say(saver)) == 2
    connection.close()


def test_a_passed_connection_that_belongs_to_one_thread_is_told_so(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "memory.db")
    saver = DeltaSaver(connection)
    with pytest.raises(StorageUnavailable, match="check_same_thread=False"):
        asyncio.run(saver.aget_tuple(CONFIG))
    saver.close()
    connection.close()


@pytest.mark.parametrize("thread", ["", None, 1.5, b"t", ["t"], True, "a\0b"])
async def test_what_names_no_thread_is_refused(
    backend: Backend, mode: Mode, tmp_path: Path, thread: Any
) -> None:
    calls = Calls(mode)
    with DeltaSaver(backend.new_url(tmp_path)) as saver:
        with pytest.raises(InvalidThreadId):
            await calls.call(saver, "get_tuple", {"configurable": {"thread_id": thread}})
        with pytest.raises(InvalidThreadId):
            ThreadChatMessageHistory(thread, saver)
        with pytest.raises(InvalidThreadId):
            await calls.call(saver, "delete_thread", thread)
        assert await calls.collect(saver, "list", None) == []


def test_a_thread_may_be_named_by_an_int_or_a_uuid(backend: Backend, tmp_path: Path) -> None:
    with DeltaSaver(backend.new_url(tmp_path)) as saver:
        for thread in (7, uuid4()):
            say(saver, thread=thread)
            assert len(say(saver, thread=thread)) == 4
            assert len(ThreadChatMessageHistory(str(thread), saver).messages) == 4


@pytest.mark.parametrize("key", ["a b", "a'b", 'a"b', "", "$.x", "x\n", "x)"])
async def test_a_filter_key_that_is_no_plain_name_is_refused(
    backend: Backend, mode: Mode, tmp_path: Path, key: str
) -> None:
    with DeltaSaver(backend.new_url(tmp_path)) as saver:
        say(saver)
        with pytest.raises(InvalidInput, match="plain name"):
            await Calls(mode).collect(saver, "list", CONFIG, filter={key: 1})


def stop_items(url: str, raising: str) -> None:
    """Have PostgreSQL itself refuse every new message."""
    place, _, schema = url.partition("?schema=")
    body = f"LANGUAGE plpgsql AS $$ BEGIN {raising}; END $$"
    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute(f"SET search_path = {schema}".encode())
        connection.execute(f"CREATE FUNCTION stop() RETURNS trigger {body}".encode())
        connection.execute(
            b"CREATE TRIGGER stop BEFORE INSERT ON item FOR EACH ROW EXECUTE FUNCTION stop()"
        )


def test_a_server_without_room_refuses_the_write_and_keeps_what_it_has(tmp_path: Path) -> None:
    url = empty_tables(tmp_path)
    with DeltaSaver.open(url) as saver:
        say(saver)
        kept = list(saver.list(CONFIG))
        stop_items(url, "RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'")
        with pytest.raises(StorageUnavailable, match="free some space"):
            say(saver, "long " * 50_000)
        assert list(saver.list(CONFIG)) == kept


# -- several processes -----------------------------------------------------------------------------


def _open_and_say(path: str, thread: str) -> None:
    with DeltaSaver.from_conn_string(path) as saver:
        say(saver, thread=thread)


@pytest.mark.process
def test_processes_that_open_a_new_file_at_once_all_find_it_ready(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    context = forks()
    processes = [
        context.Process(target=_open_and_say, args=(path, f"t{number}")) for number in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(PATIENCE_S)
    assert [process.exitcode for process in processes] == [0, 0, 0, 0]
    with DeltaSaver.from_conn_string(path) as saver:
        assert [
            len(ThreadChatMessageHistory(f"t{number}", saver).messages) for number in range(4)
        ] == [2, 2, 2, 2]


# -- odd checkpoints -------------------------------------------------------------------------------


async def test_a_checkpoint_comes_back_with_exactly_the_keys_that_it_was_put_with(
    backend: Backend, mode: Mode, tmp_path: Path
) -> None:
    bare: Any = {
        "v": 1,
        "id": "7",
        "ts": "now",
        "channel_values": {"a": 1},
        "pending_sends": [],
        "mine": {"x": HumanMessage("y", id="1")},
    }
    calls = Calls(mode)
    with DeltaSaver(backend.new_url(tmp_path)) as saver:
        await calls.call(saver, "put", {"configurable": {"thread_id": "t"}}, bare, {}, {"a": 1})
        found = await calls.call(saver, "get_tuple", CONFIG)
        assert found is not None
        assert found.checkpoint == bare


# -- who holds it ----------------------------------------------------------------------------------


def test_the_words_of_an_applications_trigger_are_not_taken_for_another_programs_lock(
    url: str,
) -> None:
    words = "this account is locked"
    with DeltaSaver.from_conn_string(url) as saver:
        say(saver)
        if "://" in url:
            stop_items(url, f"RAISE EXCEPTION '{words}'")
        else:
            with closing(sqlite3.connect(url)) as other, other:
                other.execute(
                    "CREATE TRIGGER stop BEFORE INSERT ON item BEGIN SELECT RAISE(ABORT,"
                    f" '{words}'); END"
                )
        with pytest.raises(StorageError, match=rf"refused an operation \({words}\)") as refused:
            say(saver)
        assert not isinstance(refused.value, StorageUnavailable)


# -- copies of a file ------------------------------------------------------------------------------


@pytest.fixture
def in_use(tmp_path: Path) -> Iterator[Path]:
    """A database that is in use, and of which nothing is in the file itself yet."""
    path = tmp_path / "memory.db"
    with DeltaSaver.open(str(path)) as saver:
        say(saver)
        yield path


OPENINGS: dict[str, Callable[[Path], object]] = {
    "to write": lambda path: DeltaSaver.open(str(path)),
    "as its own": lambda path: MessageLog.open(str(path), own=True),
    "to read": lambda path: MessageLog.open(f"sqlite:///{path}?mode=ro"),
    "threads": lambda path: Threads(str(path)),
    "the doctor": lambda path: examine(str(path)),
    "statistics": lambda path: stats(str(path)),
}


@pytest.mark.parametrize("way", OPENINGS)
def test_a_file_whose_log_was_lost_is_told_from_an_empty_database(way: str, in_use: Path) -> None:
    folder = in_use.parent / "copy"
    folder.mkdir()
    copied = folder / "memory.db"
    shutil.copy(in_use, copied)
    before = copied.read_bytes()
    with pytest.raises(StorageError, match=r"lost its write-ahead log.* put memory.db-wal back"):
        OPENINGS[way](copied)
    assert [path.name for path in folder.iterdir()] == ["memory.db"]
    assert copied.read_bytes() == before
    shutil.copy(f"{in_use}-wal", f"{copied}-wal")
    with DeltaSaver.open(str(copied)) as saver:
        assert len(say(saver)) == 4


def vacuumed(path: Path, copied: Path) -> None:
    with closing(sqlite3.connect(path)) as other:
        other.execute("VACUUM INTO ?", (str(copied),))


def backed_up(path: Path, copied: Path) -> None:
    with closing(sqlite3.connect(path)) as other, closing(sqlite3.connect(copied)) as target:
        other.backup(target)


@pytest.mark.parametrize("copy", [vacuumed, backed_up])
def test_a_backup_of_a_database_in_use_has_all_of_it(
    copy: Callable[[Path, Path], None], in_use: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "copy.db"
    copy(in_use, copied)
    with DeltaSaver.open(str(copied)) as saver:
        assert len(say(saver)) == 4


def test_a_closed_database_is_one_file(tmp_path: Path) -> None:
    for count in range(2):
        path, copied = tmp_path / f"{count}.db", tmp_path / f"copy {count}.db"
        with DeltaSaver.open(str(path)) as saver:
            for _ in range(count):  # none has ever been stored in the first one
                say(saver)
        shutil.copy(path, copied)
        with DeltaSaver.open(str(copied)) as saver:
            assert len(say(saver)) == 2 * count + 2


def test_an_empty_file_that_another_program_has_given_a_log_is_taken(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA journal_mode = WAL")
    assert path.stat().st_size > 0
    with DeltaSaver.open(str(path)) as saver:
        assert len(say(saver)) == 2


def test_a_file_whose_making_was_stopped_anywhere_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a killed process leaves it: the file, and its log where there is one."""
    path, stopped = tmp_path / "memory.db", list[Path]()

    def keep(statement: str) -> None:
        stopped.append(tmp_path / str(len(stopped)) / "memory.db")
        stopped[-1].parent.mkdir()
        for left in tmp_path.glob("memory.db*"):
            if not left.name.endswith("-shm"):
                shutil.copy(left, stopped[-1].parent)

    connect = sqlite3.connect

    def watched(*given: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*given, **options)
        connection.set_trace_callback(keep)
        return connection

    with monkeypatch.context() as patched:
        patched.setattr(sqlite3, "connect", watched)
        DeltaSaver.open(str(path)).close()
    assert len(stopped) > 10
    for copied in stopped:
        with DeltaSaver.open(str(copied)) as saver:
            assert len(say(saver)) == 2
